//! `.npy` files that hold no vectors: neighbours as `<i4`, filters as `|u1`. Two dimensions, C order.

use crate::Result;
use holotype::interchange::npy::NpyHeader;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// A table of fixed-width numbers, as bytes.
pub(crate) struct Table {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    width: usize,
    bytes: Vec<u8>,
}

impl Table {
    /// Reads a file whose numbers are of one of `types`, all of that width.
    fn read(path: &Path, types: &[&str], width: usize) -> Result<Table> {
        let fault = |what: String| format!("{}: {what}", path.display());
        let file = File::open(path).map_err(|error| fault(error.to_string()))?;
        let header = NpyHeader::read(&file, path)?;
        let &[rows, columns] = header.shape.as_slice() else {
            return Err(fault(format!("2 dimensions are expected, found {:?}", header.shape)).into());
        };
        if header.fortran_order || !types.contains(&header.descr.as_str()) {
            return Err(fault(format!("{types:?} in C order is expected, found {header:?}")).into());
        }
        let len = rows.checked_mul(columns).and_then(|count| count.checked_mul(width as u64));
        let found = file.metadata()?.len();
        let Some(len) = len.filter(|len| len.checked_add(header.data_at) == Some(found)) else {
            return Err(fault(format!("{rows} x {columns} numbers do not make {found} bytes")).into());
        };
        // The file has that many bytes, so neither the allocation nor the counts can run away.
        let mut bytes = vec![0; usize::try_from(len)?];
        file.read_exact_at(&mut bytes, header.data_at)?;
        Ok(Table { rows: usize::try_from(rows)?, columns: usize::try_from(columns)?, width, bytes })
    }

    /// Reads rows of ids.
    pub(crate) fn ids(path: &Path) -> Result<Table> {
        Table::read(path, &["<i4"], 4)
    }

    /// Reads rows of zeros and ones.
    pub(crate) fn flags(path: &Path) -> Result<Table> {
        Table::read(path, &["|u1", "<u1", "|b1"], 1)
    }

    fn row(&self, row: usize) -> &[u8] {
        let len = self.columns * self.width;
        &self.bytes[row * len..][..len]
    }

    /// The ids of a row.
    pub(crate) fn ids_of(&self, row: usize) -> Vec<i32> {
        self.row(row).as_chunks::<4>().0.iter().map(|id| i32::from_le_bytes(*id)).collect()
    }

    /// The positions of a row that are not zero.
    pub(crate) fn set_of(&self, row: usize) -> impl Iterator<Item = u32> + '_ {
        self.row(row).iter().zip(0..).filter(|(flag, _)| **flag != 0).map(|(_, position)| position)
    }
}

/// A table as a file: what smoke asks questions about.
pub(crate) fn write(path: &Path, descr: &str, rows: usize, columns: usize, bytes: &[u8]) -> Result<()> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    file.extend(format!("{text:<117}\n").into_bytes());
    file.extend(bytes);
    Ok(std::fs::write(path, file)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.npy");
        let ids: Vec<u8> = [5, -1, 7, 9, 2, 3].into_iter().flat_map(i32::to_le_bytes).collect();
        write(&path, "<i4", 3, 2, &ids).unwrap();
        let table = Table::ids(&path).unwrap();
        assert_eq!((table.rows, table.columns, table.ids_of(0), table.ids_of(2)), (3, 2, vec![5, -1], vec![2, 3]));
        assert!(Table::flags(&path).is_err(), "of another type");
        write(&path, "|u1", 2, 3, &[0, 1, 1, 1, 0, 0]).unwrap();
        let table = Table::flags(&path).unwrap();
        assert!(table.set_of(0).eq([1, 2]) && table.set_of(1).eq([0]));
        for (rows, columns) in [(2, 4), (usize::MAX / 2, 3)] {
            write(&path, "|u1", rows, columns, &[0; 6]).unwrap();
            assert!(Table::flags(&path).is_err(), "{rows} x {columns} in 6 bytes");
        }
    }
}
