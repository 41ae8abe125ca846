//! Contents of column files. Files that no writer of this project made are refused, regardless of their checksums.

use holotype_storage::Error;
use holotype_storage::columns::{Columns, ColumnsWriter, MAX_IDS, ZONE_IDS};
use holotype_storage::features::Access;
use holotype_storage::segment_file::{FileIdentity, SegmentFile, SegmentFileWriter};

const KIND: [u8; 4] = *b"CSEG";
const IDENTITY: FileIdentity = FileIdentity { database: [9; 16], generation: 3, place: 2 };

fn opened(bytes: Vec<u8>) -> Result<Columns, Error> {
    Columns::from_file(SegmentFile::from_bytes(bytes, KIND, &IDENTITY)?)
}

/// A file whose head says this, with so many columns named by their numbers, and these sections.
fn file(first_id: u32, count: u32, said: u32, columns: u32, kind: u8, sections: &[([u8; 4], Vec<u8>)]) -> Vec<u8> {
    let mut head = [first_id, count, said, 0].map(u32::to_le_bytes).concat();
    for number in 0..columns {
        let mut entry = number.to_string().into_bytes();
        entry.resize(24, 0);
        head.extend_from_slice(&entry);
        head.extend_from_slice(&[kind, 0, 0, 0, 0, 0, 0, 0]);
    }
    let mut writer = SegmentFileWriter::new(KIND, 1, IDENTITY);
    writer.section(*b"head", head);
    for (tag, bytes) in sections {
        writer.section(*tag, bytes.clone());
    }
    writer.into_bytes()
}

fn what(result: Result<impl Sized, Error>) -> String {
    match result {
        Err(Error::DamagedFile { what, .. }) => what,
        Err(error) => panic!("{error}"),
        Ok(_) => String::new(),
    }
}

#[test]
fn impossible_heads_are_damage() {
    let told = |first_id, count, said, columns| what(opened(file(first_id, count, said, columns, 1, &[])));
    for (first_id, count) in [(0, 0), (0, MAX_IDS + 1), (u32::MAX, 2)] {
        assert_eq!(told(first_id, count, 0, 0), "its range of ids is impossible", "{first_id} {count}");
    }
    for (said, columns) in [(1, 0), (0, 1), (2, 1), (1_001, 1_001)] {
        assert_eq!(told(0, 1, said, columns), "its list of columns has the wrong length", "{said} {columns}");
    }
    assert_eq!((told(u32::MAX, 1, 0, 0), told(0, MAX_IDS, 1_000, 1_000)), (String::new(), String::new()));
    let mut writer = SegmentFileWriter::new(KIND, 1, IDENTITY);
    writer.section(*b"head", vec![0; 15]);
    assert_eq!(what(opened(writer.into_bytes())), "its head is cut short");
}

#[test]
fn arrays_and_zones_that_do_not_belong_are_damage() {
    let columns = |count, kind, values: &[u8], zones: &[u8]| {
        opened(file(0, count, 1, 1, kind, &[(*b"v000", values.to_vec()), (*b"z000", zones.to_vec())])).unwrap()
    };
    columns(3, 1, &[1, 2, 3], &[1, 3]).verify().unwrap();
    for (values, zones) in
        [(&[1, 2][..], &[1, 3][..]), (&[1, 2, 3, 4], &[1, 3]), (&[1, 2, 3], &[1]), (&[1, 2, 3], &[1, 3, 1, 3])]
    {
        let columns = columns(3, 1, values, zones);
        let read = columns.u8s("0").and_then(|_| columns.zones_u8("0"));
        assert!(what(read).contains("an array of the wrong length"), "{values:?} {zones:?}");
        assert!(columns.verify().is_err());
    }
    for zones in [[0, 3], [1, 2], [3, 1]] {
        let columns = columns(3, 1, &[1, 2, 3], &zones);
        assert_eq!(columns.u8s("0").unwrap(), [1, 2, 3]);
        assert!(what(columns.verify()).contains("zones that do not match its values"), "{zones:?}");
    }
    assert!(what(columns(3, 7, &[1, 2, 3], &[1, 3]).verify()).contains("the unknown type 7"));
    let alone = opened(file(0, 1, 1, 1, 1, &[(*b"v000", vec![1])])).unwrap();
    assert!(what(alone.zones_u8("0")).contains("no values or no zones"));
}

#[test]
fn verifying_reads_every_byte() {
    let mut writer = ColumnsWriter::new(0, 2 * ZONE_IDS);
    writer.u8("a", vec![1; 2 * ZONE_IDS as usize]);
    let mut bytes = writer.into_file(IDENTITY).into_bytes();
    opened(bytes.clone()).unwrap().verify().unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    assert!(what(opened(bytes).unwrap().verify()).contains("the checksum of section v000"));
}

#[test]
fn as_many_columns_as_there_may_be_are_told_apart() {
    let mut writer = ColumnsWriter::new(0, 1);
    for number in 0..1_000 {
        writer.u16(&number.to_string(), vec![number]);
    }
    let columns = opened(writer.into_file(IDENTITY).into_bytes()).unwrap();
    for number in 0..1_000_u16 {
        assert_eq!(columns.u16s(&number.to_string()).unwrap(), [number]);
        let tag = |letter| format!("{letter}{number:03}").into_bytes().try_into().unwrap();
        assert_eq!(columns.file().section(tag('v')).unwrap(), number.to_le_bytes());
        assert_eq!(columns.file().section(tag('z')).unwrap(), [number.to_le_bytes(); 2].concat());
    }
    columns.verify().unwrap();
}

#[test]
fn names_that_are_none_are_refused() {
    for name in ["", "a\0b", &"a".repeat(25)] {
        let refused = std::panic::catch_unwind(|| {
            ColumnsWriter::new(0, 1).u8(name, vec![1]);
        });
        assert!(refused.is_err(), "{name:?}");
    }
    ColumnsWriter::new(0, 1).u8(&"a".repeat(24), vec![1]);
}

/// Of nought and minus nought, which are equal, a zone keeps the one that came first: a file's bytes are fixed.
#[test]
fn equal_values_leave_a_zone_as_it_is() {
    for (values, zone) in [([0.0, -0.0], [0.0_f32; 2]), ([-0.0, 0.0], [-0.0; 2])] {
        let mut writer = ColumnsWriter::new(0, 2);
        writer.f32("x", values.to_vec());
        let columns = opened(writer.into_file(IDENTITY).into_bytes()).unwrap();
        assert_eq!(columns.zones_f32("x").unwrap()[0].map(f32::to_bits), zone.map(f32::to_bits));
    }
}

#[test]
fn a_file_that_may_only_be_read_beside_is_only_read() {
    let mut bytes = ColumnsWriter::new(0, 1).into_file(IDENTITY).into_bytes();
    let columns = |bytes: &[u8]| opened(bytes.to_vec()).unwrap();
    columns(&bytes).check_access(Access::Write).unwrap();
    // Features that a program must know to write beside the file.
    let features = 57;
    bytes[features] = 1;
    let crc = crc32fast::hash(&[&bytes[..60], &bytes[64..96]].concat());
    bytes[60..64].copy_from_slice(&crc.to_le_bytes());
    columns(&bytes).check_access(Access::Read).unwrap();
    assert!(matches!(columns(&bytes).check_access(Access::Write), Err(Error::NewerFormat { .. })));
}
