//! `.cseg` files with valid checksums and any content: they are refused when opened or read, without a panic.

use holotype_storage::columns::{Columns, ColumnsWriter};

use crate::input::Input;
use crate::sections::{IDENTITY, seal, unseal};

const KIND: [u8; 4] = *b"CSEG";
const TAGS: [[u8; 4]; 13] = [
    *b"head", *b"v000", *b"z000", *b"v001", *b"z001", *b"v002", *b"z002", *b"v003", *b"z003", *b"v004", *b"z004",
    *b"v005", *b"z005",
];

/// Seals the sections, opens the columns and reads each under its name as every type.
///
/// # Panics
/// When a column that was verified cannot be read, or has another length than it says.
pub fn target(data: &[u8]) {
    let file = seal(&mut Input::new(data), KIND, 2, &TAGS);
    let Ok(columns) = Columns::from_file(file) else { return };
    let whole = columns.verify().is_ok();
    let count = columns.count() as usize;
    for name in columns.names().collect::<Vec<_>>() {
        let lengths = [
            columns.u8s(&name).map(|values| values.len()),
            columns.u16s(&name).map(|values| values.len()),
            columns.u32s(&name).map(|values| values.len()),
            columns.u64s(&name).map(|values| values.len()),
            columns.i64s(&name).map(|values| values.len()),
            columns.f32s(&name).map(|values| values.len()),
        ];
        let readable: Vec<usize> = lengths.into_iter().flatten().collect();
        assert!(readable.iter().all(|len| *len == count));
        // Two columns may have the same name, or one that is not text: then a look-up finds another column, or none.
        assert!(!whole || readable.len() <= 1, "a column has one type");
        let _ = (columns.zones_u32(&name), columns.zones_f32(&name), columns.has(&name));
    }
}

/// Files with a column of each type, one of values that are far from each other and one of near ones.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut writer = ColumnsWriter::new(8, 3);
    writer.u8("status", vec![1, 0, 255]).u16("tokens", vec![7, 9, 65_535]).u32("step", vec![3, 1, 2]);
    writer.u64("lsn", vec![1 << 40, 0, 8]).i64("time", vec![-1, 0, 1]).f32("utility", vec![0.5, f32::NAN, -1.0]);
    let mut near = ColumnsWriter::new(0, 3);
    near.u8("status", vec![2; 3]).u16("tokens", vec![700, 701, 702]).u32("step", vec![70_000, 70_300, 70_000]);
    near.u64("lsn", vec![1 << 40, 1 << 40, (1 << 40) + (1 << 20)])
        .i64("time", vec![-7; 3])
        .f32("utility", vec![0.5; 3]);
    let seed = |writer: ColumnsWriter| {
        let mut bytes = Vec::new();
        unseal(writer.into_file(IDENTITY), KIND, &TAGS, &mut bytes);
        bytes
    };
    vec![seed(writer), seed(near)]
}
