//! A bit flips in the header of the only file of the log. The header states the database's id and the size of a log
//! page, without which nothing else could be read: one bit lost a small database whole. A copy of the header is read
//! instead.
#![cfg(unix)]

use holotype::query::Params;
use holotype::{Durability, Holotype, NewTrace, Options, Space, salvage};
use std::path::{Path, PathBuf};

/// The length of the header, and the place of its copy.
const HEADER_LEN: usize = 144;
const COPY_AT: usize = 2048;

fn flip(log: &Path, bits: &[usize]) {
    let mut bytes = std::fs::read(log).unwrap();
    for bit in bits {
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    std::fs::write(log, bytes).unwrap();
}

fn filled() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    let options = Options { space: Some(Space::new("test", 2)), ..Options::default() };
    let database = Holotype::create(&path, options).unwrap();
    for number in 0..5 {
        let mut transaction = database.begin().unwrap();
        transaction.record(NewTrace::turn("e", "all that is known").key(format!("t{number}"))).unwrap();
        transaction.commit(Durability::Sync).unwrap();
    }
    database.close().unwrap();
    (dir, path)
}

fn count(path: &Path) -> u32 {
    Holotype::open(path, Options::read_only()).unwrap().snapshot().len()
}

#[test]
fn a_flipped_bit_of_the_only_header_loses_nothing() {
    let (dir, path) = filled();
    let log = path.join("log/0000000001.log");
    for (number, bit) in (0..HEADER_LEN * 8).step_by(61).enumerate() {
        for at in [bit, COPY_AT * 8 + bit] {
            flip(&log, &[at]);
            assert_eq!(count(&path), 5, "bit {at}");
            let database = Holotype::open(&path, Options::read_only()).unwrap();
            let faults = database.verify(&mut |_, _| {}).unwrap().faults;
            let told = faults.iter().map(|fault| fault.what.as_str()).collect::<Vec<_>>();
            assert!(
                matches!(told[..], [one] if one.contains("header of the segment is damaged")),
                "bit {at}: {told:?}"
            );
            drop(database);
            if number % 6 == 0 {
                let saved = dir.path().join(format!("saved-{at}.holo"));
                let report = salvage(&path, &saved).unwrap();
                assert_eq!((count(&saved), report.lost.len()), (5, 0), "bit {at}: {report:?}");
            }
            flip(&log, &[at]);
        }
    }
    flip(&log, &[40 * 8]);
    let database = Holotype::open(&path, Options::default()).unwrap();
    let told = &database.report().recovery;
    assert!(told.iter().any(|line| line.contains("0000000001.log: the header was damaged")), "{told:?}");
    assert!(database.verify(&mut |_, _| {}).unwrap().is_clean());
    database.query("record turn 'and more' in episode 'e'", &Params::new()).unwrap();
}
