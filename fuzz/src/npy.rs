//! `.npy` files of vectors: a file is refused, or every row that it states can be read.

use std::io::Write as _;

use holotype::interchange::{NpyReader, NpyWriter, Precision};

/// Opens the bytes as a file.
///
/// # Panics
/// When a file that was accepted has rows that cannot be read.
pub fn target(data: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().expect("there is room for a small file");
    file.write_all(data).expect("there is room for a small file");
    let Ok(reader) = NpyReader::open(file.path()) else { return };
    let (rows, dim) = (reader.rows(), reader.dim());
    assert!(rows * (dim * reader.precision().width()) as u64 <= data.len() as u64);
    let (mut row, mut bits) = (Vec::new(), Vec::new());
    for index in 0..rows.min(64) {
        reader.read_row(index, &mut row).expect("it is there");
        assert_eq!(row.len(), dim);
        assert_eq!(reader.check_finite(index, &row).is_ok(), row.iter().all(|number| number.is_finite()));
        assert_eq!(reader.read_row_f16(index, &mut bits).is_ok(), reader.precision() == Precision::F16);
    }
    assert!(reader.read_row(rows, &mut row).is_err());
    assert!(reader.read_rows(u64::MAX, 2, &mut row).is_err());
}

/// A file of each precision, and the other spelling of a header.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![[b"\x93NUMPY\x02\x00\x35\x00\x00\x00".as_slice(), HEADER.as_bytes(), &[0; 12]].concat()];
    for precision in [Precision::F32, Precision::F16] {
        let dir = tempfile::tempdir().expect("a folder can be made");
        let path = dir.path().join("v.npy");
        let mut writer = NpyWriter::create(&path, 3, precision).expect("a file can be made");
        for row in [[1.0, -0.5, 0.0], [65_504.0, f32::MIN_POSITIVE, 3.25]] {
            writer.push(&row).expect("it fits");
        }
        writer.finish().expect("it is written");
        seeds.push(std::fs::read(path).expect("it was written"));
    }
    seeds
}

const HEADER: &str = "{\"shape\":(1,3),\"fortran_order\":False,\"descr\":\"<f4\"} \n";
const _: () = assert!(HEADER.len() == 0x35);
