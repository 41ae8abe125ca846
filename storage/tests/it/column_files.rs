//! Contents of column files. Files that no writer of this project made are refused, regardless of their checksums.

use holotype_storage::Error;
use holotype_storage::columns::{Columns, ColumnsWriter, MAX_IDS, ZONE_IDS};
use holotype_storage::features::Access;
use holotype_storage::segment_file::{FileIdentity, SegmentFile, SegmentFileWriter};
use proptest::prelude::*;

const KIND: [u8; 4] = *b"CSEG";
const IDENTITY: FileIdentity = FileIdentity { database: [9; 16], generation: 3, place: 2 };

fn opened(bytes: Vec<u8>) -> Result<Columns, Error> {
    Columns::from_file(SegmentFile::from_bytes(bytes, KIND, &IDENTITY)?)
}

/// A file whose head says this, with so many columns named by their numbers, and these sections.
fn file(first_id: u32, count: u32, said: u32, columns: u32, kind: u8, sections: &[([u8; 4], Vec<u8>)]) -> Vec<u8> {
    file_of(1, [first_id, count, said, columns], [kind, 0], sections)
}

/// The same of a version, with columns of this type and form.
fn file_of(
    version: u32,
    [first_id, count, said, columns]: [u32; 4],
    [kind, form]: [u8; 2],
    sections: &[([u8; 4], Vec<u8>)],
) -> Vec<u8> {
    let mut head = [first_id, count, said, 0].map(u32::to_le_bytes).concat();
    for number in 0..columns {
        let mut entry = number.to_string().into_bytes();
        entry.resize(24, 0);
        head.extend_from_slice(&entry);
        head.extend_from_slice(&[kind, form, 0, 0, 0, 0, 0, 0]);
    }
    let mut writer = SegmentFileWriter::new(KIND, version, IDENTITY);
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
        assert!(what(read).contains("of the wrong length"), "{values:?} {zones:?}");
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

/// Distances from the least value of a zone, whose wrong lengths and unknown forms are damage.
#[test]
fn values_are_read_in_every_form() {
    let columns = |form, values: &[u8], zones: &[u8]| {
        let sections = [(*b"v000", values.to_vec()), (*b"z000", zones.to_vec())];
        opened(file_of(2, [0, 3, 1, 1], [4, form], &sections)).unwrap()
    };
    let zones = |least: u64, greatest: u64| [least.to_le_bytes(), greatest.to_le_bytes()].concat();
    let whole = [7u64, 9, 7].map(u64::to_le_bytes).concat();
    let (at_7, to_9) = (zones(7, 7), zones(7, 9));
    let (short, long) = (&[0, 0, 2, 0, 0, 0][..], &[0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0][..]);
    for (form, values, zones, expected) in [
        (0, &whole[..], &to_9, [7, 9, 7]),
        (1, &[], &at_7, [7, 7, 7]),
        (2, &[0, 2, 0], &to_9, [7, 9, 7]),
        (3, short, &to_9, [7, 9, 7]),
        (4, long, &to_9, [7, 9, 7]),
    ] {
        let read = columns(form, values, zones);
        assert_eq!(read.u64s("0").unwrap(), expected);
        let one = read.values(read.column::<u64>("0").unwrap()).unwrap();
        assert_eq!([0, 1, 2, 3].map(|at| one.get(at)), [Some(expected[0]), Some(expected[1]), Some(expected[2]), None]);
        read.verify().unwrap();
        for (form, values) in [(form, [values, &[0]].concat()), (5, values.to_vec()), (255, values.to_vec())] {
            let refused = columns(form, &values, zones);
            assert!(what(refused.u64s("0")).contains("the wrong length or an unknown form"), "{form} {values:?}");
            assert!(refused.verify().is_err());
        }
        assert!(what(columns(form, values, &zones[..8]).u64s("0")).contains("zones of the wrong length"));
    }
    let zone = [1.0f32.to_le_bytes(), 1.0f32.to_le_bytes()].concat();
    for form in [2, 3, 4] {
        let sections = [(*b"v000", vec![0; 3 << (form - 2)]), (*b"z000", zone.clone())];
        let floats = opened(file_of(2, [0, 3, 1, 1], [6, form], &sections)).unwrap();
        assert!(what(floats.f32s("0")).contains("an unknown form") && floats.verify().is_err(), "{form}");
    }
    // Zones that their values do not reach, and distances beyond the type.
    for (form, values, zones) in [(1, &[][..], &to_9), (2, &[1, 2, 1], &to_9), (2, &[0, 1, 0], &zones(u64::MAX, 0))] {
        assert!(what(columns(form, values, zones).verify()).contains("zones that do not match its values"), "{form}");
    }
}

/// The bytes that a column of these values takes.
fn taken(write: impl Fn(&mut ColumnsWriter)) -> usize {
    let mut writer = ColumnsWriter::new(0, 2 * ZONE_IDS);
    write(&mut writer);
    opened(writer.into_file(IDENTITY).into_bytes()).unwrap().file().section(*b"v000").unwrap().len()
}

#[test]
fn values_that_are_near_each_other_take_few_bytes() {
    let ids = || 0..u64::from(2 * ZONE_IDS);
    let count = ids().count();
    let numbers = |step: u64| ids().map(|id| 1_000_000 + id * step).collect::<Vec<u64>>();
    assert_eq!(taken(|to| _ = to.u64("x", vec![1 << 60; count])), 0);
    assert_eq!(taken(|to| _ = to.u64("x", ids().map(|id| (id / 4096) << 50).collect())), 0, "one value to a zone");
    assert_eq!(taken(|to| _ = to.u64("x", ids().map(|id| 5000 + id / 100).collect())), count);
    assert_eq!(taken(|to| _ = to.u64("x", numbers(8))), 2 * count);
    assert_eq!(taken(|to| _ = to.u64("x", numbers(1300))), 4 * count);
    assert_eq!(taken(|to| _ = to.u64("x", numbers(1 << 40))), 8 * count);
    assert_eq!(taken(|to| _ = to.u32("x", ids().map(|id| u32::MAX - id as u32 % 2).collect())), count);
    assert_eq!(
        taken(|to| _ = to.u32("x", ids().map(|id| if id % 2 == 0 { 0 } else { u32::MAX }).collect())),
        4 * count
    );
    assert_eq!(taken(|to| _ = to.u8("x", vec![255; count])), 0);
    assert_eq!(taken(|to| _ = to.u8("x", ids().map(|id| id as u8).collect())), count);
    assert_eq!(taken(|to| _ = to.f32("x", vec![-0.5; count])), 0);
    assert_eq!(taken(|to| _ = to.f32("x", vec![f32::NAN; count])), 4 * count);
}

/// Values of which neighbours are equal, near, or anything.
fn near_each_other() -> impl Strategy<Value = Vec<u64>> {
    let spread = prop_oneof![Just(1u64), Just(200), Just(60_000), Just(1 << 31), Just(u64::MAX)];
    (any::<u64>(), spread, 1usize..9_000, any::<u64>()).prop_map(|(base, spread, count, seed)| {
        let mixed = |at: u64| (at ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        (0..count as u64).map(|at| base.wrapping_add(mixed(at) % spread)).collect()
    })
}

proptest! {
    /// Whatever the values are, a file gives back every bit of them.
    #[test]
    fn a_column_file_gives_back_what_was_written(numbers in near_each_other()) {
        let mut writer = ColumnsWriter::new(0, numbers.len() as u32);
        let all = |bits: u32| numbers.iter().map(move |number| number >> bits);
        let bytes: Vec<u8> = all(0).map(|n| n as u8).collect();
        let shorts: Vec<u16> = all(3).map(|n| n as u16).collect();
        let halves: Vec<u32> = all(7).map(|n| n as u32).collect();
        let signed: Vec<i64> = all(0).map(|n| n as i64).collect();
        let floats: Vec<f32> = all(0).map(|n| f32::from_bits(n as u32)).collect();
        writer.u8("a", bytes.clone()).u16("b", shorts.clone()).u32("c", halves.clone()).u64("d", numbers.clone());
        writer.i64("e", signed.clone()).f32("f", floats.clone());
        let columns = opened(writer.into_file(IDENTITY).into_bytes()).unwrap();
        columns.verify().unwrap();
        prop_assert_eq!(columns.u8s("a").unwrap(), bytes);
        prop_assert_eq!(columns.u16s("b").unwrap(), shorts);
        prop_assert_eq!(columns.u32s("c").unwrap(), halves);
        prop_assert_eq!(columns.i64s("e").unwrap(), signed);
        let bits = |floats: Vec<f32>| floats.into_iter().map(f32::to_bits).collect::<Vec<u32>>();
        prop_assert_eq!(bits(columns.f32s("f").unwrap()), bits(floats));
        let read = columns.values(columns.column::<u64>("d").unwrap()).unwrap();
        prop_assert!((0..numbers.len()).all(|at| read.get(at) == Some(numbers[at])));
        prop_assert_eq!((read.count(), read.get(numbers.len()), read.to_vec()), (numbers.len(), None, numbers));
    }
}

#[test]
fn verifying_reads_every_byte() {
    let mut writer = ColumnsWriter::new(0, 2 * ZONE_IDS);
    writer.u8("a", (0..2 * ZONE_IDS).map(|id| id as u8).collect());
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
        assert_eq!(columns.file().section(tag('v')).unwrap(), [0u8; 0]);
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
