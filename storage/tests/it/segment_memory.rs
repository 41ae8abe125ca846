//! A derived file that is read from end to end does not stay in memory: it is let go of on the way.
#![cfg(target_os = "linux")]

use std::hint::black_box;
use std::path::Path;

use holotype_storage::segment_file::{FileIdentity, SegmentFile, SegmentFileWriter};
use holotype_storage::vfs::OsVfs;

const KIND: [u8; 4] = *b"TEST";
const TAG: [u8; 4] = *b"LONG";
const IDENTITY: FileIdentity = FileIdentity { database: [9; 16], generation: 3, place: 2 };
const MIB: usize = 1 << 20;
const LEN: usize = 33 * MIB;
/// The limit of a streamed file's resident memory.
const MOST: usize = 8 * MIB;

/// The bytes of a mapped file that are in this process's memory.
fn resident(path: &Path) -> usize {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let name = path.to_str().unwrap();
    let of_file = maps.lines().skip_while(|line| !line.ends_with(name)).find_map(|line| line.strip_prefix("Rss:"));
    let kib: usize = of_file.unwrap().trim().strip_suffix(" kB").unwrap().parse().unwrap();
    kib << 10
}

fn touch(bytes: &[u8]) {
    black_box(bytes.iter().step_by(4096).fold(0, |seen, byte| seen | byte));
}

#[test]
fn what_is_read_through_is_let_go_of() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long");
    let mut writer = SegmentFileWriter::new(KIND, 1, IDENTITY);
    writer.section(TAG, (0..LEN).map(|at| (at / 64) as u8).collect());
    writer.write(&OsVfs, &path).unwrap();
    let file = SegmentFile::open(&OsVfs, &path, KIND, &IDENTITY).unwrap();

    let bytes = file.section(TAG).unwrap();
    assert!(resident(&path) <= MOST, "after the first check: {}", resident(&path));
    touch(bytes);
    assert!(resident(&path) >= LEN, "after reading everything: {}", resident(&path));
    file.verify().unwrap();
    assert!(resident(&path) <= MOST, "after checking again: {}", resident(&path));

    file.advise_dont_need();
    let mut reader = file.streaming_reader();
    for (number, part) in bytes.chunks(MIB).enumerate() {
        touch(part);
        reader.advance(part.len());
        assert!(number > 0 || resident(&path) >= MIB, "a little stays: {}", resident(&path));
        assert!(resident(&path) <= MOST, "on the way: {}", resident(&path));
    }
    touch(bytes);
    file.streaming_reader().advance(LEN);
    assert_eq!(resident(&path), 0, "passed at once");
    touch(bytes);
    file.advise_dont_need();
    assert_eq!(resident(&path), 0);
    assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == (at / 64) as u8));
}
