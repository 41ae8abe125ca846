//! `.npy` files of vectors: two dimensions (rows, numbers of a row), C order, little-endian single or half precision.
//!
//! | offset | size | field |
//! |--------|------|-------|
//! | 0      | 6    | magic, `\x93NUMPY` |
//! | 6      | 1    | major version, 1 or 2 |
//! | 7      | 1    | minor version, 0 |
//! | 8      | 2 or 4 | length of the header text, `u16` in version 1 and `u32` in version 2 |
//! | then   | that | header text: `{'descr': '<f2', 'fortran_order': False, 'shape': (622, 384), }`, spaces, LF |
//! | then   | rows × dim × 4 or 2 | the numbers, row by row |
//!
//! Written files are version 1.0 with a header of [`HEADER_LEN`] bytes in all (so the numbers are aligned to 64), byte
//! for byte what NumPy writes. The row count is patched in by [`NpyWriter::finish`]; until then the header says 0
//! rows, so that a file that was cut short is refused for its length.
//!
//! Invariants:
//!
//! 1. A file that opens has exactly the length that its header promises, at least one number a row and at most
//!    [`MAX_DIM`], so that a row is a small allocation and a read never leaves the file.
//! 2. Half precision is exact: [`NpyReader::read_row_f16`] gives the bits of the file and
//!    [`NpyWriter::push_f16`] writes them.

mod header;

pub use header::NpyHeader;

use crate::model::plural::counted;
use half::f16;
use half::slice::HalfFloatSliceExt as _;
use std::fs::File;
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The longest row, in numbers.
pub const MAX_DIM: usize = 65_536;

/// Length of a written header, magic and version included.
pub const HEADER_LEN: usize = 128;

/// A fault of a `.npy` file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// The file could not be read or written.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The header is not one that is read here.
    #[error("{}: {what}: expected {expected}, found {found}", file.display())]
    Header {
        /// The file.
        file: PathBuf,
        /// The part of the header.
        what: &'static str,
        /// The expected value.
        expected: String,
        /// The found value.
        found: String,
    },
    /// The file is longer or shorter than its header says.
    #[error(
        "{}: expected {expected} bytes for {} of {}, found {found} (cut short or still being written?)",
        file.display(),
        counted(*rows, "rows"),
        counted(*dim as u64, "numbers")
    )]
    Length {
        /// The file.
        file: PathBuf,
        /// Rows, by the header.
        rows: u64,
        /// Numbers of a row, by the header.
        dim: usize,
        /// The resulting length of the file.
        expected: u64,
        /// The length of the file.
        found: u64,
    },
    /// A row that the file does not have.
    #[error("{}: no row {row}: the file has {}, counted from 0", file.display(), counted(*rows, "rows"))]
    NoSuchRow {
        /// The file.
        file: PathBuf,
        /// The requested row.
        row: u64,
        /// The number of rows.
        rows: u64,
    },
    /// A number that is NaN or infinite.
    #[error("{}: row {row}, number {position}: {value} is not a finite number", file.display())]
    NotFinite {
        /// The file.
        file: PathBuf,
        /// The row, from 0.
        row: u64,
        /// The position in the row, from 0.
        position: usize,
        /// NaN or an infinity.
        value: f32,
    },
    /// A row of another precision or length than the file's.
    #[error("{}: expected {expected}, found {found}", file.display())]
    Row {
        /// The file.
        file: PathBuf,
        /// The precision and length of the file's rows.
        expected: String,
        /// The requested precision or length.
        found: String,
    },
}

type Result<T> = std::result::Result<T, NpyError>;

/// Precision of the numbers in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// `<f4`
    F32,
    /// `<f2`
    F16,
}

impl Precision {
    /// Bytes of one number.
    pub fn width(self) -> usize {
        match self {
            Precision::F32 => 4,
            Precision::F16 => 2,
        }
    }

    fn descr(self) -> &'static str {
        match self {
            Precision::F32 => "<f4",
            Precision::F16 => "<f2",
        }
    }
}

/// An open file of vectors; rows may be read from several threads at once.
#[derive(Debug)]
pub struct NpyReader {
    path: PathBuf,
    file: File,
    rows: u64,
    dim: usize,
    precision: Precision,
    data_at: u64,
}

impl NpyReader {
    /// Opens a file and checks its header and length.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let file = File::open(&path).map_err(|source| io_error(&path, source))?;
        let header = NpyHeader::read(&file, &path)?;
        let fault = |what, expected: &str, found: String| NpyError::Header {
            file: path.clone(),
            what,
            expected: expected.to_owned(),
            found,
        };
        let precision = match header.descr.as_str() {
            "<f4" => Precision::F32,
            "<f2" => Precision::F16,
            other => {
                return Err(fault("type of numbers", "'<f4' or '<f2'", format!("'{}'", other.escape_debug())));
            }
        };
        if header.fortran_order {
            return Err(fault("order", "C order", "Fortran order (save np.ascontiguousarray(…))".to_owned()));
        }
        let &[rows, dim] = header.shape.as_slice() else {
            let found = format!("{} ({:?})", header.shape.len(), header.shape);
            return Err(fault("dimensions", "2: rows and the numbers of a row", found));
        };
        let dim = usize::try_from(dim)
            .ok()
            .filter(|dim| (1..=MAX_DIM).contains(dim))
            .ok_or_else(|| fault("numbers of a row", &format!("1 to {MAX_DIM}"), dim.to_string()))?;
        let found = file.metadata().map_err(|source| io_error(&path, source))?.len();
        let row_len = (dim * precision.width()) as u64;
        let expected = rows.checked_mul(row_len).and_then(|len| len.checked_add(header.data_at));
        if expected != Some(found) {
            let expected = expected.unwrap_or(u64::MAX);
            return Err(NpyError::Length { file: path, rows, dim, expected, found });
        }
        Ok(NpyReader { path, file, rows, dim, precision, data_at: header.data_at })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The number of components of a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Precision of its numbers.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Reads one row into `row`, which is resized. NaN and infinities pass; see [`NpyReader::check_finite`].
    pub fn read_row(&self, index: u64, row: &mut Vec<f32>) -> Result<()> {
        self.read_rows(index, 1, row)
    }

    /// Reads `count` rows from `first` on, one after the other, into `rows`, which is resized.
    pub fn read_rows(&self, first: u64, count: usize, rows: &mut Vec<f32>) -> Result<()> {
        let bytes = self.bytes(first, count)?;
        rows.clear();
        match self.precision {
            Precision::F32 => {
                let (numbers, _) = bytes.as_chunks::<4>();
                rows.extend(numbers.iter().map(|number| f32::from_le_bytes(*number)));
            }
            Precision::F16 => {
                rows.resize(bytes.len() / 2, 0.0);
                halves(&bytes).convert_to_f32_slice(rows);
            }
        }
        Ok(())
    }

    /// Reads the bits of one row of half precision into `row`, which is resized; an error for single precision.
    pub fn read_row_f16(&self, index: u64, row: &mut Vec<u16>) -> Result<()> {
        if self.precision != Precision::F16 {
            let (expected, found) = ("single precision".to_owned(), "a reader of half precision".to_owned());
            return Err(NpyError::Row { file: self.path.clone(), expected, found });
        }
        let bytes = self.bytes(index, 1)?;
        let (numbers, _) = bytes.as_chunks::<2>();
        row.clear();
        row.extend(numbers.iter().map(|bits| u16::from_le_bytes(*bits)));
        Ok(())
    }

    /// An error that names row and position when a row read from `index` has a number that is NaN or infinite.
    pub fn check_finite(&self, index: u64, row: &[f32]) -> Result<()> {
        match row.iter().position(|number| !number.is_finite()) {
            None => Ok(()),
            Some(position) => Err(NpyError::NotFinite {
                file: self.path.clone(),
                row: index,
                position,
                value: row.get(position).copied().unwrap_or(f32::NAN),
            }),
        }
    }

    fn bytes(&self, first: u64, count: usize) -> Result<Vec<u8>> {
        let last = first.saturating_add(count as u64).saturating_sub(1);
        if last >= self.rows {
            return Err(NpyError::NoSuchRow { file: self.path.clone(), row: last, rows: self.rows });
        }
        // Opening checked that the row is within the file, which bounds the product and the allocation.
        let row_len = self.dim * self.precision.width();
        let mut bytes = vec![0; row_len * count];
        let at = self.data_at + first * row_len as u64;
        self.file.read_exact_at(&mut bytes, at).map_err(|source| io_error(&self.path, source))?;
        Ok(bytes)
    }
}

/// Writes a file of vectors row by row.
#[derive(Debug)]
pub struct NpyWriter {
    path: PathBuf,
    file: BufWriter<File>,
    rows: u64,
    dim: usize,
    precision: Precision,
    row: Vec<u8>,
}

impl NpyWriter {
    /// Creates the file, or replaces what is there. `dim` is 1 to [`MAX_DIM`].
    pub fn create(path: impl Into<PathBuf>, dim: usize, precision: Precision) -> Result<Self> {
        let path = path.into();
        if !(1..=MAX_DIM).contains(&dim) {
            let (expected, found) = (format!("rows of 1 to {MAX_DIM} numbers"), dim.to_string());
            return Err(NpyError::Row { file: path, expected, found });
        }
        let file = File::create(&path).map_err(|source| io_error(&path, source))?;
        let mut writer = NpyWriter { path, file: BufWriter::new(file), rows: 0, dim, precision, row: Vec::new() };
        let header = header::encode(0, dim, precision);
        writer.file.write_all(&header).map_err(|source| io_error(&writer.path, source))?;
        Ok(writer)
    }

    /// The number of rows written.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Appends a row and gives its index; in a file of half precision each number is rounded to the nearest.
    pub fn push(&mut self, row: &[f32]) -> Result<u64> {
        self.row.clear();
        match self.precision {
            Precision::F32 => self.row.extend(row.iter().flat_map(|number| number.to_le_bytes())),
            Precision::F16 => self.row.extend(row.iter().flat_map(|number| f16::from_f32(*number).to_le_bytes())),
        }
        self.append(row.len())
    }

    /// Appends a row given as bits of half precision and gives its index; exact in a file of either precision.
    pub fn push_f16(&mut self, row: &[u16]) -> Result<u64> {
        self.row.clear();
        match self.precision {
            Precision::F16 => self.row.extend(row.iter().flat_map(|bits| bits.to_le_bytes())),
            Precision::F32 => {
                self.row.extend(row.iter().flat_map(|bits| f16::from_bits(*bits).to_f32().to_le_bytes()));
            }
        }
        self.append(row.len())
    }

    /// Patches the row count into the header, syncs the file and gives the count.
    pub fn finish(mut self) -> Result<u64> {
        let header = header::encode(self.rows, self.dim, self.precision);
        let file = &mut self.file;
        let written = file.flush().and_then(|()| {
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&header)?;
            file.flush()?;
            file.get_ref().sync_all()
        });
        written.map_err(|source| io_error(&self.path, source))?;
        Ok(self.rows)
    }

    fn append(&mut self, len: usize) -> Result<u64> {
        if len != self.dim {
            let (expected, found) = (format!("a row of {}", counted(self.dim as u64, "numbers")), len.to_string());
            return Err(NpyError::Row { file: self.path.clone(), expected, found });
        }
        self.file.write_all(&self.row).map_err(|source| io_error(&self.path, source))?;
        self.rows += 1;
        Ok(self.rows - 1)
    }
}

fn halves(bytes: &[u8]) -> Vec<f16> {
    let (numbers, _) = bytes.as_chunks::<2>();
    numbers.iter().map(|bits| f16::from_le_bytes(*bits)).collect()
}

fn io_error(path: &Path, source: io::Error) -> NpyError {
    NpyError::Io { file: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    fn open_bytes(bytes: &[u8]) -> Result<NpyReader> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("v.npy");
        fs::write(&path, bytes).unwrap();
        NpyReader::open(&path)
    }

    /// The message of the error, without the directory of the file.
    fn fault(bytes: &[u8]) -> String {
        let message = open_bytes(bytes).expect_err("a fault").to_string();
        message.split_once("v.npy: ").map_or(message.clone(), |(_, what)| what.to_owned())
    }

    fn file(version: [u8; 2], text: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = header::MAGIC.to_vec();
        bytes.extend(version);
        match version[0] {
            1 => bytes.extend(u16::try_from(text.len()).unwrap().to_le_bytes()),
            _ => bytes.extend(u32::try_from(text.len()).unwrap().to_le_bytes()),
        }
        bytes.extend(text.as_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn the_bytes_of_a_written_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("v.npy");
        let mut writer = NpyWriter::create(&path, 2, Precision::F16).unwrap();
        assert_eq!(writer.push(&[1.0, -0.5]).unwrap(), 0);
        assert_eq!(writer.push_f16(&[0x3c01, 0x0001]).unwrap(), 1);
        assert_eq!(writer.finish().unwrap(), 2);
        let mut expected = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        expected.extend(format!("{:<117}\n", "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 2), }").as_bytes());
        expected.extend([0x00, 0x3c, 0x00, 0xb8, 0x01, 0x3c, 0x01, 0x00]);
        assert_eq!(fs::read(&path).unwrap(), expected);

        let reader = NpyReader::open(&path).unwrap();
        assert_eq!((reader.rows(), reader.dim(), reader.precision()), (2, 2, Precision::F16));
        let (mut row, mut bits) = (Vec::new(), Vec::new());
        reader.read_row(0, &mut row).unwrap();
        assert_eq!(row, [1.0, -0.5]);
        reader.read_row_f16(1, &mut bits).unwrap();
        assert_eq!(bits, [0x3c01, 0x0001]);
        let message = reader.read_row(2, &mut row).unwrap_err().to_string();
        assert!(message.ends_with("v.npy: no row 2: the file has 2 rows, counted from 0"), "{message}");
    }

    #[test]
    fn both_versions_and_other_spellings_are_read() {
        let data = [1.5_f32, 2.0, -3.0].map(f32::to_le_bytes).concat();
        for (version, text) in [
            ([1, 0], "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }\n"),
            ([2, 0], "{\"shape\":(1,3),\"fortran_order\":False,\"descr\":\"<f4\"}   \n"),
        ] {
            let reader = open_bytes(&file(version, text, &data)).unwrap();
            let mut row = Vec::new();
            reader.read_row(0, &mut row).unwrap();
            assert_eq!(row, [1.5, 2.0, -3.0]);
            assert!(reader.read_row_f16(0, &mut Vec::new()).is_err());
        }
    }

    #[test]
    fn an_unfinished_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("v.npy");
        let mut writer = NpyWriter::create(&path, 1, Precision::F32).unwrap();
        writer.push(&[1.0]).unwrap();
        drop(writer);
        let message = NpyReader::open(&path).unwrap_err().to_string();
        assert!(message.contains("expected 128 bytes for 0 rows of 1 number, found 132"), "{message}");
    }

    #[test]
    fn faults_name_what_was_expected_and_found() {
        let text = |descr: &str, order: &str, shape: &str| {
            format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n")
        };
        for (bytes, message) in [
            (Vec::new(), "magic: expected \\x93NUMPY, found []"),
            (b"{\"key\"}".to_vec(), "magic: expected \\x93NUMPY, found [7b, 22, 6b, 65, 79, 22]"),
            (header::MAGIC.to_vec(), "header: expected its length, found the end of the file"),
            (file([3, 0], "", &[]), "version: expected 1.0 or 2.0, found 3.0"),
            (b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(), "header: expected at most 10000 bytes, found 4294967295"),
            (
                b"\x93NUMPY\x01\x00\x76\x00{'de".to_vec(),
                "header: expected 118 bytes, found 4, then the end of the file",
            ),
            (
                file([1, 0], "[]\n", &[]),
                "header: expected {'descr': …, 'fortran_order': …, 'shape': (…), }, found \"[]\"",
            ),
            (
                file([1, 0], &text("<f8", "False", "(1, 1)"), &[0; 8]),
                "type of numbers: expected '<f4' or '<f2', found '<f8'",
            ),
            (
                file([1, 0], &text(">f4", "False", "(1, 1)"), &[0; 4]),
                "type of numbers: expected '<f4' or '<f2', found '>f4'",
            ),
            (
                file([1, 0], &text("<f4", "True", "(1, 1)"), &[0; 4]),
                "order: expected C order, found Fortran order (save np.ascontiguousarray(…))",
            ),
            (
                file([1, 0], &text("<f4", "False", "(1,)"), &[0; 4]),
                "dimensions: expected 2: rows and the numbers of a row, found 1 ([1])",
            ),
            (file([1, 0], &text("<f4", "False", "(1, 0)"), &[]), "numbers of a row: expected 1 to 65536, found 0"),
            (
                file([1, 0], &text("<f4", "False", "(0, 4294967296)"), &[]),
                "numbers of a row: expected 1 to 65536, found 4294967296",
            ),
        ] {
            assert_eq!(fault(&bytes), message);
        }
        let whole = file([1, 0], &text("<f4", "False", "(18446744073709551615, 1)"), &[0; 8]);
        let message = fault(&whole);
        assert!(message.contains("for 18446744073709551615 rows of 1 number, found 97"), "{message}");
    }

    #[test]
    fn a_cut_file_is_refused_at_every_length() {
        let whole = file([1, 0], "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }\n", &[0; 12]);
        assert!(open_bytes(&whole).is_ok());
        for len in 0..whole.len() {
            assert!(open_bytes(&whole[..len]).is_err(), "cut at {len}");
        }
        assert!(open_bytes(&[whole.as_slice(), &[0]].concat()).is_err());
    }

    #[test]
    fn numbers_that_are_not_finite_are_found_when_asked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("v.npy");
        let mut writer = NpyWriter::create(&path, 3, Precision::F32).unwrap();
        writer.push(&[0.0, 1.0, f32::NEG_INFINITY]).unwrap();
        assert!(writer.push(&[1.0]).unwrap_err().to_string().ends_with("expected a row of 3 numbers, found 1"));
        writer.finish().unwrap();
        let reader = NpyReader::open(&path).unwrap();
        let mut row = Vec::new();
        reader.read_row(0, &mut row).unwrap();
        let message = reader.check_finite(0, &row).unwrap_err().to_string();
        assert!(message.ends_with("v.npy: row 0, number 2: -inf is not a finite number"), "{message}");
        assert!(reader.check_finite(0, &row[..2]).is_ok());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn rows_come_back(dim in 1_usize..9, rows in 0_usize..6, seed: u16, half: bool) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("v.npy");
            let precision = if half { Precision::F16 } else { Precision::F32 };
            let bits: Vec<u16> = (0..rows * dim)
                .map(|n| seed.wrapping_mul(31).wrapping_add(u16::try_from(n).unwrap().wrapping_mul(12_345)))
                .collect();
            let mut writer = NpyWriter::create(&path, dim, precision).unwrap();
            for row in bits.chunks(dim) {
                writer.push_f16(row).unwrap();
            }
            prop_assert_eq!(writer.finish().unwrap(), rows as u64);
            let reader = NpyReader::open(&path).unwrap();
            let mut all = Vec::new();
            reader.read_rows(0, rows, &mut all).unwrap_or_default();
            let expected: Vec<f32> = bits.iter().map(|bits| f16::from_bits(*bits).to_f32()).collect();
            prop_assert_eq!(all.len(), expected.len());
            prop_assert!(all.iter().zip(&expected).all(|(a, b)| a == b || (a.is_nan() && b.is_nan())));
            for (index, row) in bits.chunks(dim).enumerate().filter(|_| half) {
                let mut read = Vec::new();
                reader.read_row_f16(index as u64, &mut read).unwrap();
                prop_assert_eq!(&read, row);
            }
        }
    }
}
