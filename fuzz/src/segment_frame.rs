//! The frame of derived files: invalid bytes are refused, and the sections of an opened file can be read.

use std::path::Path;

use holotype_storage::columns::{Columns, ColumnsWriter};
use holotype_storage::segment_file::{SegmentFile, SegmentFileWriter};

use crate::sections::IDENTITY;

const KIND: [u8; 4] = *b"CSEG";

/// Opens the bytes as they are, and again with the header's checksum repaired.
///
/// # Panics
/// When what was verified cannot be read.
pub fn target(data: &[u8]) {
    let mut repaired = data.to_vec();
    repair(&mut repaired);
    for bytes in [data.to_vec(), repaired] {
        let Ok(file) = SegmentFile::from_bytes(bytes, KIND, &IDENTITY) else { continue };
        assert_eq!(file.path(), Path::new("(memory)"));
        let whole = file.verify().is_ok();
        for tag in [*b"head", *b"v000", *b"z000", *b"none"] {
            let section = file.optional_section(tag);
            assert!(section.is_ok() || !whole, "a verified file has a section that cannot be read");
            if let Ok(Some(section)) = section {
                assert!(section.len() as u64 <= file.file_len());
            }
        }
        if let Ok(columns) = Columns::from_file(file) {
            let _ = (columns.u32s("step"), columns.verify());
        }
    }
}

/// A file with sections of several lengths, and a column file.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut writer = SegmentFileWriter::new(KIND, 1, IDENTITY);
    writer.section(*b"head", vec![1; 20]);
    writer.section(*b"v000", Vec::new());
    writer.section(*b"z000", vec![2; 64]);
    let mut columns = ColumnsWriter::new(8, 3);
    columns.u32("step", vec![3, 1, 2]).f32("utility", vec![0.5, f32::NAN, -1.0]);
    vec![writer.into_bytes(), columns.into_file(IDENTITY).into_bytes()]
}

/// Repairs the checksum of header and directory.
fn repair(bytes: &mut [u8]) {
    let Some((header, rest)) = bytes.split_at_mut_checked(HEADER_LEN) else { return };
    let count =
        u32::from_le_bytes([header[COUNT_AT], header[COUNT_AT + 1], header[COUNT_AT + 2], header[COUNT_AT + 3]]);
    let Some(directory) = (count as usize).checked_mul(ENTRY_LEN).and_then(|len| rest.get(..len)) else { return };
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&header[..CRC_AT]);
    hasher.update(directory);
    header[CRC_AT..].copy_from_slice(&hasher.finalize().to_le_bytes());
}

const COUNT_AT: usize = 44;
const CRC_AT: usize = 60;
const HEADER_LEN: usize = 64;
const ENTRY_LEN: usize = 32;
