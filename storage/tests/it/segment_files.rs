//! Derived files: whole or absent after a crash, and no damaged, foreign or misplaced byte becomes
//! an answer.

use std::path::Path;

use holotype_storage::Error;
use holotype_storage::columns::{Columns, ColumnsWriter, MAX_IDS, ZONE_IDS};
use holotype_storage::log::{CommitNo, Head, Lsn};
use holotype_storage::segment_file::{FileIdentity, SegmentFile, SegmentFileStream, SegmentFileWriter, is_temporary};
use holotype_storage::vfs::{Failure, OpenMode, OsVfs, SimVfs, Vfs};
use proptest::prelude::*;

const KIND: [u8; 4] = *b"TEST";
const IDENTITY: FileIdentity = FileIdentity { database: [9; 16], generation: 3, place: 2 };
const TAGS: [[u8; 4]; 3] = [*b"one ", *b"two ", *b"none"];

fn small_file(identity: FileIdentity) -> SegmentFileWriter {
    let mut writer = SegmentFileWriter::new(KIND, 5, identity);
    writer.section(TAGS[0], (0..100).collect());
    writer.section(TAGS[1], vec![7; 64]);
    writer.section(TAGS[2], Vec::new());
    writer
}

fn small_columns(count: u32) -> ColumnsWriter {
    let mut writer = ColumnsWriter::new(1_000, count);
    let ids = 0..count;
    writer.u8("status", ids.clone().map(|id| (id % 5) as u8).collect());
    writer.u16("short", ids.clone().map(|id| (id * 7) as u16).collect());
    writer.u32("episode", ids.clone().map(|id| id / 10).collect());
    writer.u64("step", ids.clone().map(|id| u64::from(id) << 33).collect());
    writer.i64("time", ids.clone().map(|id| -i64::from(id)).collect());
    writer.f32("utility", ids.map(|id| id as f32 / 2.0).collect());
    writer
}

/// Everything a reader can learn from a file, or the first error.
fn read_all(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let file = SegmentFile::from_bytes(bytes.to_vec(), KIND, &IDENTITY)?;
    file.check_version(5)?;
    TAGS.iter().map(|&tag| file.section(tag).map(<[u8]>::to_vec)).collect()
}

#[test]
fn the_bytes_of_the_frame() {
    let mut writer = SegmentFileWriter::new(
        *b"KIND",
        2,
        FileIdentity { database: *b"0123456789abcdef", generation: 0x0807_0605_0403_0201, place: 0x0c0b_0a09 },
    );
    writer.section(*b"data", b"payload".to_vec());
    let bytes = writer.into_bytes();
    let crc = |parts: &[&[u8]]| crc32fast::hash(&parts.concat()).to_le_bytes();
    let mut entry = b"data".to_vec();
    entry.extend_from_slice(&crc(&[&bytes[16..44], b"data", &128_u64.to_le_bytes(), b"payload"]));
    entry.extend_from_slice(&[128, 0, 0, 0, 0, 0, 0, 0]);
    entry.extend_from_slice(&[7, 0, 0, 0, 0, 0, 0, 0]);
    entry.extend_from_slice(&[0; 8]);
    let mut header = b"HOLSKIND".to_vec();
    header.extend_from_slice(&[1, 0, 0, 0, 2, 0, 0, 0]);
    header.extend_from_slice(b"0123456789abcdef");
    header.extend_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
    header.extend_from_slice(&[9, 10, 11, 12]);
    header.extend_from_slice(&[1, 0, 0, 0]);
    header.extend_from_slice(&[192, 0, 0, 0, 0, 0, 0, 0]);
    header.extend_from_slice(&[0; 4]);
    let head_crc = crc(&[&header, &entry]);
    let mut expected = [header, head_crc.to_vec(), entry].concat();
    expected.resize(128, 0);
    expected.extend_from_slice(b"payload");
    expected.resize(192, 0);
    assert_eq!(bytes, expected);
}

#[test]
fn a_written_file_reads_back_aligned() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.vseg");
    let len = small_file(IDENTITY).write(&OsVfs, &path).unwrap();
    let file = SegmentFile::open(&OsVfs, &path, KIND, &IDENTITY).unwrap();
    assert_eq!(file.file_len(), len);
    assert_eq!((file.version(), *file.identity()), (5, IDENTITY));
    assert_eq!(file.section(TAGS[0]).unwrap(), (0..100).collect::<Vec<u8>>());
    assert_eq!(file.section(TAGS[1]).unwrap(), [7; 64]);
    assert!(file.section(TAGS[2]).unwrap().is_empty());
    for tag in TAGS {
        assert_eq!(file.section(tag).unwrap().as_ptr().align_offset(64), 0);
    }
    assert!(file.optional_section(*b"what").unwrap().is_none());
    assert!(matches!(file.section(*b"what"), Err(Error::DamagedFile { .. })));
    file.verify().unwrap();
    assert_eq!(OsVfs.list(dir.path()).unwrap(), ["a.vseg"], "no temporary file stays");
    assert_eq!(std::fs::read(&path).unwrap(), small_file(IDENTITY).into_bytes());
}

#[test]
fn a_section_may_be_read_before_it_is_checked() {
    let mut bytes = small_file(IDENTITY).into_bytes();
    let at = bytes.len() - 10;
    bytes[at] ^= 1;
    let file = SegmentFile::from_bytes(bytes, KIND, &IDENTITY).unwrap();
    assert_eq!(file.unchecked_section(TAGS[0]).unwrap(), (0..100).collect::<Vec<u8>>());
    let changed = file.unchecked_section(TAGS[1]).unwrap();
    assert_eq!((changed.len(), changed.iter().filter(|&&byte| byte == 7).count()), (64, 63));
    assert!(matches!(file.section(TAGS[1]), Err(Error::DamagedFile { .. })));
    assert!(matches!(file.unchecked_section(*b"more"), Err(Error::DamagedFile { .. })));
    assert!(is_temporary("a.test.tmp") && !is_temporary("a.test") && !is_temporary("tmp"));
}

#[test]
fn another_file_under_the_name_is_refused() {
    let bytes = small_file(IDENTITY).into_bytes();
    let open = |kind, identity: FileIdentity| SegmentFile::from_bytes(bytes.clone(), kind, &identity);
    assert!(open(KIND, IDENTITY).is_ok());
    assert!(matches!(open(*b"ELSE", IDENTITY), Err(Error::DamagedFile { .. })));
    let foreign = FileIdentity { database: [8; 16], ..IDENTITY };
    assert!(matches!(open(KIND, foreign), Err(Error::WrongDatabase { .. })));
    let older = FileIdentity { generation: 2, ..IDENTITY };
    assert!(matches!(open(KIND, older), Err(Error::DamagedFile { .. })));
    let elsewhere = FileIdentity { place: 1, ..IDENTITY };
    assert!(matches!(open(KIND, elsewhere), Err(Error::DamagedFile { .. })));
    let file = open(KIND, IDENTITY).unwrap();
    assert!(matches!(file.check_version(4), Err(Error::NewerFormat { .. })));
    let missing = SegmentFile::open(&SimVfs::new(), Path::new("/a"), KIND, &IDENTITY);
    assert!(matches!(missing, Err(Error::MissingFile { .. })));
}

#[test]
fn a_section_of_another_generation_does_not_pass() {
    let older = small_file(FileIdentity { generation: 2, ..IDENTITY }).into_bytes();
    let mut bytes = small_file(IDENTITY).into_bytes();
    // Same content at the same place, with its own checksum: only whose it is differs.
    bytes[192..].copy_from_slice(&older[192..]);
    assert!(read_all(&bytes).is_ok(), "equal bytes are equal");
    bytes[64..160].copy_from_slice(&older[64..160]);
    assert!(matches!(read_all(&bytes), Err(Error::DamagedFile { .. })));
}

#[test]
fn every_flipped_bit_is_an_error_or_changes_nothing() {
    let bytes = small_file(IDENTITY).into_bytes();
    let expected = read_all(&bytes).unwrap();
    let mut unseen = 0;
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        if let Ok(answers) = read_all(&flipped) {
            assert_eq!(answers, expected, "bit {bit}");
            let file = SegmentFile::from_bytes(flipped, KIND, &IDENTITY).unwrap();
            assert!(file.verify().is_err(), "verify sees bit {bit}, in padding");
            unseen += 1;
        }
    }
    // Padding after the directory (64 + 3 * 32 = 160, to 192) and after the first section (292 to 320).
    assert_eq!(unseen, (32 + 28) * 8);
}

#[test]
fn a_file_of_any_other_length_is_an_error() {
    let bytes = small_file(IDENTITY).into_bytes();
    for len in 0..bytes.len() {
        assert!(matches!(read_all(&bytes[..len]), Err(Error::DamagedFile { .. })), "length {len}");
    }
    let mut longer = bytes;
    longer.push(0);
    assert!(matches!(read_all(&longer), Err(Error::DamagedFile { .. })));
}

#[test]
fn a_crash_while_writing_leaves_the_whole_file_or_the_old_one() {
    let path = Path::new("/db/a.vseg");
    let sim = SimVfs::new();
    sim.create_dir(Path::new("/db")).unwrap();
    let old = SegmentFileWriter::new(KIND, 5, IDENTITY);
    let old_bytes = SegmentFileWriter::new(KIND, 5, IDENTITY).into_bytes();
    old.write(&sim, path).unwrap();
    let before = sim.history().len();
    small_file(IDENTITY).write(&sim, path).unwrap();
    let new_bytes = small_file(IDENTITY).into_bytes();
    let mut states = 0;
    for (step, point) in sim.replay().enumerate().skip(before) {
        for state in point.crashes(64, step as u64) {
            let found = state.bytes(path).unwrap();
            assert!(found == old_bytes || found == new_bytes, "after step {step}");
            for name in state.list(Path::new("/db")).unwrap() {
                assert!(name == "a.vseg" || is_temporary(&name));
            }
            // A left-over temporary file is no obstacle.
            small_file(IDENTITY).write(&state, path).unwrap();
            assert_eq!(state.list(Path::new("/db")).unwrap(), ["a.vseg"]);
            states += 1;
        }
    }
    assert!(states > 20, "the exploration found {states} states");
}

#[test]
fn a_failing_call_leaves_the_old_file_and_no_other() {
    let path = Path::new("/a.vseg");
    for call in 0.. {
        let sim = SimVfs::new();
        sim.fail_at(sim.calls() + call, Failure::NoSpace, false);
        let written = small_file(IDENTITY).write(&sim, path);
        sim.heal();
        match written {
            Ok(_) if call == 0 => panic!("the first call does not fail the write"),
            Ok(_) if sim.calls() <= call => {
                assert!(call >= 8, "every call was made to fail");
                return;
            }
            Ok(_) => {}
            Err(Error::Io { .. }) => {
                let left = sim.list(Path::new("/")).unwrap();
                assert!(left.is_empty() || left == ["a.vseg"], "call {call} left {left:?}");
            }
            Err(other) => panic!("call {call}: {other}"),
        }
    }
}

#[test]
fn a_file_is_the_same_however_it_is_written() {
    let sections: Vec<Vec<u8>> = [100, 0, 64, 700_000, 3, 300_000, 70_000]
        .iter()
        .map(|len: &usize| (0..*len).map(|at| (at * 7 + len) as u8).collect())
        .collect();
    let tags: Vec<[u8; 4]> = (0..sections.len()).map(|number| [b't', b'a', b'g', b'0' + number as u8]).collect();
    let mut writer = SegmentFileWriter::new(KIND, 5, IDENTITY);
    tags.iter().zip(&sections).for_each(|(tag, bytes)| writer.section(*tag, bytes.clone()));
    let origin = Head { position: Lsn(70), commit: CommitNo(5), hash: [3; 32] };
    let at_once = writer.made_from(&origin).into_bytes();
    let mut lens: Vec<_> = tags.iter().zip(&sections).map(|(tag, bytes)| (*tag, Some(bytes.len() as u64))).collect();
    lens.last_mut().unwrap().1 = None;
    let path = Path::new("/a.test");
    for piece in [1_000, 65_537, 300_000] {
        let sim = SimVfs::new();
        let mut stream = SegmentFileStream::create(&sim, path, (KIND, 5), IDENTITY, Some(origin), &lens).unwrap();
        // Side by side, the last first.
        for start in (0..700_000).step_by(piece) {
            for (number, bytes) in sections.iter().enumerate().rev() {
                stream.append(number, &bytes[start.min(bytes.len())..(start + piece).min(bytes.len())]).unwrap();
            }
        }
        assert!(sim.list(Path::new("/")).unwrap().iter().all(|name| is_temporary(name)));
        assert_eq!(stream.finish().unwrap(), at_once.len() as u64);
        assert!(sim.bytes(path).unwrap() == at_once, "in pieces of {piece}");
        assert_eq!(SegmentFile::open(&sim, path, KIND, &IDENTITY).unwrap().origin().unwrap(), Some(origin));
        drop(SegmentFileStream::create(&sim, path, (KIND, 5), IDENTITY, None, &lens).unwrap());
        assert_eq!(sim.list(Path::new("/")).unwrap(), ["a.test"], "what is not finished leaves nothing");
    }
}

#[test]
fn a_section_of_unknown_length_is_read_again_when_it_has_ended() {
    let path = Path::new("/a.test");
    let sections: [Vec<u8>; 4] = [vec![1; 64], vec![2; 300_001], vec![3; 5], vec![4; 70]];
    let tags = [*b"head", *b"long", *b"next", *b"last"];
    let mut writer = SegmentFileWriter::new(KIND, 5, IDENTITY);
    tags.iter().zip(&sections).for_each(|(tag, bytes)| writer.section(*tag, bytes.clone()));
    let at_once = writer.into_bytes();
    let sim = SimVfs::new();
    let lens = [(tags[0], Some(64)), (tags[1], None), (tags[2], None), (tags[3], None)];
    let mut stream = SegmentFileStream::create(&sim, path, (KIND, 5), IDENTITY, None, &lens).unwrap();
    for number in [1, 2, 3] {
        sections[number].chunks(1_000).for_each(|piece| stream.append(number, piece).unwrap());
        for (earlier, bytes) in sections.iter().enumerate().take(number + 1).skip(1) {
            let (map, range) = stream.written(earlier).unwrap();
            assert!(map[range] == *bytes, "section {earlier} after {number}");
        }
    }
    stream.append(0, &sections[0]).unwrap();
    assert_eq!(stream.finish().unwrap(), at_once.len() as u64);
    assert!(sim.bytes(path).unwrap() == at_once);
}

#[test]
fn verifying_finds_every_flipped_bit() {
    let path = Path::new("/a.test");
    let mut writer = SegmentFileWriter::new(KIND, 5, IDENTITY);
    writer.section(*b"some", vec![7; 100]);
    writer.section(*b"none", Vec::new());
    writer.section(*b"more", (0..150).collect());
    // With the origin there are five: the list of sections does not end where the first one begins.
    writer.section(*b"last", vec![1]);
    let sound = writer.made_from(&Head::default()).into_bytes();
    let with = |bytes: &[u8]| {
        let sim = SimVfs::new();
        sim.open(path, OpenMode::CreateNew).unwrap().write_at(bytes, 0).unwrap();
        SegmentFile::open(&sim, path, KIND, &IDENTITY)?.verify()
    };
    with(&sound).unwrap();
    for bit in 0..sound.len() * 8 {
        let mut bytes = sound.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(matches!(with(&bytes), Err(Error::DamagedFile { .. } | Error::NewerFormat { .. })), "bit {bit}");
    }
}

#[test]
fn columns_read_back_with_their_zones() {
    let count = ZONE_IDS * 2 + 10;
    let file = small_columns(count).into_file(IDENTITY).into_bytes();
    let file = SegmentFile::from_bytes(file, *b"CSEG", &IDENTITY).unwrap();
    let columns = Columns::from_file(file).unwrap();
    assert_eq!((columns.first_id(), columns.count()), (1_000, count));
    let names: Vec<String> = columns.names().collect();
    assert_eq!(names, ["status", "short", "episode", "step", "time", "utility"]);
    assert_eq!(columns.u8s("status").unwrap()[7], 2);
    assert_eq!(columns.u16s("short").unwrap()[10], 70);
    assert_eq!(columns.u32s("episode").unwrap()[4_000], 400);
    assert_eq!(columns.u64s("step").unwrap()[1], 1 << 33);
    assert_eq!(columns.i64s("time").unwrap()[3], -3);
    assert_eq!(columns.f32s("utility").unwrap()[3].to_bits(), 1.5_f32.to_bits());
    assert_eq!(columns.zones_u8("status").unwrap(), [[0, 4]; 3]);
    assert_eq!(columns.zones_u32("episode").unwrap(), [[0, 409], [409, 819], [819, 820]]);
    assert_eq!(columns.zones_i64("time").unwrap()[2], [-8201, -8192]);
    assert_eq!(columns.zones_f32("utility").unwrap()[0], [0.0, 2047.5]);
    assert_eq!(columns.zones_u16("short").unwrap().len(), 3);
    assert_eq!(columns.zones_u64("step").unwrap().len(), 3);
    columns.verify().unwrap();
    assert!(matches!(columns.u32s("status"), Err(Error::DamagedFile { .. })), "another type");
    assert!(matches!(columns.u8s("stat"), Err(Error::DamagedFile { .. })), "another name");
    assert!(columns.has("time") && !columns.has("tim"));
    let time = columns.column::<i64>("time").unwrap();
    assert_eq!(columns.values(time).unwrap().to_vec(), columns.i64s("time").unwrap());
    assert_eq!(columns.zones(time).unwrap(), columns.zones_i64("time").unwrap());
    assert!(columns.column::<u64>("time").is_err() && columns.column::<i64>("tim").is_err());
}

#[test]
fn the_bytes_of_a_column_file() {
    let mut writer = ColumnsWriter::new(0x0403_0201, 2);
    writer.u16("ab", vec![0x0201, 0x0403]).u64("c", vec![1 << 40, (1 << 40) + 0x0102]).u8("d", vec![9, 9]);
    let file = SegmentFile::from_bytes(writer.into_file(IDENTITY).into_bytes(), *b"CSEG", &IDENTITY).unwrap();
    let mut head = vec![1, 2, 3, 4, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];
    for (name, kind, form) in [(*b"ab", 2, 0), (*b"c\0", 4, 3), (*b"d\0", 1, 1)] {
        head.extend_from_slice(&name);
        head.resize(head.len() + 22, 0);
        head.extend_from_slice(&[kind, form, 0, 0, 0, 0, 0, 0]);
    }
    assert_eq!(file.version(), 2);
    assert_eq!(file.section(*b"head").unwrap(), head);
    assert_eq!(file.section(*b"v000").unwrap(), [1, 2, 3, 4]);
    assert_eq!(file.section(*b"z000").unwrap(), [1, 2, 3, 4]);
    assert_eq!(file.section(*b"v001").unwrap(), [0, 0, 2, 1]);
    assert_eq!(file.section(*b"z001").unwrap(), [0, 0, 0, 0, 0, 1, 0, 0, 2, 1, 0, 0, 0, 1, 0, 0]);
    assert_eq!(file.section(*b"v002").unwrap(), [0u8; 0]);
    assert_eq!(file.section(*b"z002").unwrap(), [9, 9]);
}

#[test]
fn not_a_number_lies_in_no_zone() {
    let mut writer = ColumnsWriter::new(0, 3);
    writer.f32("some", vec![f32::NAN, 2.0, -1.0]);
    writer.f32("none", vec![f32::NAN; 3]);
    let file = SegmentFile::from_bytes(writer.into_file(IDENTITY).into_bytes(), *b"CSEG", &IDENTITY);
    let columns = Columns::from_file(file.unwrap()).unwrap();
    assert_eq!(columns.zones_f32("some").unwrap(), [[-1.0, 2.0]]);
    assert_eq!(columns.zones_f32("none").unwrap(), [[f32::INFINITY, f32::NEG_INFINITY]]);
    columns.verify().unwrap();
}

#[test]
fn a_full_chunk_at_the_last_ids_is_possible() {
    let mut writer = ColumnsWriter::new(u32::MAX - MAX_IDS + 1, MAX_IDS);
    writer.u8("x", vec![1; MAX_IDS as usize]);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("0.cseg");
    writer.write(&OsVfs, &path, IDENTITY).unwrap();
    let columns = Columns::open(&OsVfs, &path, &IDENTITY).unwrap();
    assert_eq!(columns.zones_u8("x").unwrap().len(), 16);
}

#[test]
fn every_flipped_bit_of_a_column_file_is_an_error_or_changes_nothing() {
    let read = |bytes: &[u8]| -> Result<String, Error> {
        let columns = Columns::from_file(SegmentFile::from_bytes(bytes.to_vec(), *b"CSEG", &IDENTITY)?)?;
        Ok(format!(
            "{} {} {:?} {:?} {:?} {:?} {:?}",
            columns.first_id(),
            columns.count(),
            columns.u8s("status")?,
            columns.u16s("short")?,
            columns.zones_i64("time")?,
            columns.u64s("step")?,
            columns.zones_f32("utility")?,
        ))
    };
    let bytes = small_columns(20).into_file(IDENTITY).into_bytes();
    let expected = read(&bytes).unwrap();
    let mut errors = 0;
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        match read(&flipped) {
            Ok(answers) => assert_eq!(answers, expected, "bit {bit}"),
            Err(_) => errors += 1,
        }
    }
    assert!(errors > 4_000, "{errors} flips were noticed");
}

proptest! {
    /// Whatever stands in a file's head under a right checksum, opening and reading it ends in an
    /// answer or an error.
    #[test]
    fn no_head_makes_a_column_file_panic(
        head in proptest::collection::vec(any::<u8>(), 0..200),
        values in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut writer = SegmentFileWriter::new(*b"CSEG", 1, IDENTITY);
        writer.section(*b"head", head);
        writer.section(*b"v000", values.clone());
        writer.section(*b"z000", values);
        let file = SegmentFile::from_bytes(writer.into_bytes(), *b"CSEG", &IDENTITY).unwrap();
        if let Ok(columns) = Columns::from_file(file) {
            let names: Vec<String> = columns.names().collect();
            for name in names {
                let _ = (columns.u8s(&name).is_ok(), columns.u64s(&name).is_ok(), columns.zones_f32(&name).is_ok());
            }
            let _ = columns.verify();
        }
    }

    /// A directory rewritten under a right checksum is checked field by field.
    #[test]
    fn no_directory_makes_a_file_panic(entry in proptest::array::uniform32(any::<u8>()), small in any::<bool>()) {
        let mut bytes = small_file(IDENTITY).into_bytes();
        bytes[64..96].copy_from_slice(&entry);
        if small {
            // Offsets and lengths near the file's own are the likelier mistakes.
            bytes[72..80].copy_from_slice(&u64::from(entry[0]).to_le_bytes());
            bytes[80..88].copy_from_slice(&u64::from(entry[1]).to_le_bytes());
        }
        let crc = crc32fast::hash(&[&bytes[..60], &bytes[64..160]].concat());
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        if let Ok(file) = SegmentFile::from_bytes(bytes, KIND, &IDENTITY) {
            let mut tag = [0; 4];
            tag.copy_from_slice(&entry[..4]);
            let _ = (file.section(tag).is_ok(), file.section(TAGS[1]).is_ok(), file.verify().is_ok());
        }
    }
}
