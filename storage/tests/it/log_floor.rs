//! A log whose beginning is cut off: it goes on as if nothing had been, a crash leaves the old or the new, and what is
//! gone is not asked for.

use std::path::Path;

use crate::log_fixture::{create, dir, disk, holds, open, read_only, records, segment_path, try_open, writable};
use holotype_storage::Error;
use holotype_storage::log::{Head, Log, Lsn};
use holotype_storage::vfs::{Crash, Failure, Operation, SimVfs, Vfs};

/// Transactions in a log.
const COUNT: u64 = 12;

/// A log of several segments, and the heads its transactions left.
fn filled(sim: &SimVfs) -> (Log, Vec<Head>) {
    let log = create(sim);
    let mut heads = Vec::new();
    for number in 0..COUNT {
        log.append(&records(number as u8, &[100, 2500]), number as i64).unwrap();
        heads.push(log.head());
    }
    log.sync_to(log.end()).unwrap();
    (log, heads)
}

/// Tells two records again and cuts off what is before the head with this index.
fn retire(log: &Log, heads: &[Head], at: usize) -> holotype_storage::Result<u64> {
    let from = log.head();
    let appended = log.append(&records(0xaa, &[30, 40]), 100)?;
    log.sync_to(appended.end)?;
    let records_before = 0;
    let leaves = (records_before, heads[at].position);
    Ok(log.retire(leaves, heads[at], from, log.head())?.segments)
}

#[test]
fn what_goes_is_counted_and_what_stays_is_verified() {
    let sim = SimVfs::new();
    let (log, heads) = filled(&sim);
    let len = |number| sim.bytes(&segment_path(number)).unwrap().len() as u64;
    let lens: Vec<u64> = log.segments().into_iter().map(len).collect();
    let from = log.head();
    let told = log.append(&records(0xaa, &[30]), 100).unwrap();
    let before = sim.history().len();
    let retired = log.retire((0, heads[7].position), heads[7], from, log.head()).unwrap();
    assert!(retired.segments > 1);
    let first: u64 = lens[..retired.segments as usize].iter().sum();
    assert_eq!((retired.bytes, log.floor().unwrap().first), (first, Lsn(first)));
    assert_eq!(log.verify(&mut |_, _| {}).unwrap().bytes, told.end.0 - first);
    for operation in &sim.history()[before..] {
        if let Operation::Create(path) | Operation::Remove(path) | Operation::Rename(path, _) = operation {
            assert!(path.starts_with(dir()), "{operation:?}");
        }
    }
}

/// Whatever call of archiving fails, it says so; and once more goes on where it failed.
#[test]
fn archiving_that_fails_is_told_and_goes_on() {
    let sim = SimVfs::new();
    let heads = filled(&sim).1;
    // A reader, beside whom nothing is prepared.
    let log = open(&sim, &read_only()).log;
    let archive = Path::new("/archive");
    let begin = |at| {
        sim.fail_at(sim.calls() + at, Failure::Io, false);
        log.archive(&sim, archive, heads[7].position, heads[7])
    };
    let (mut failed, mut at) = (0, 0);
    loop {
        match begin(at) {
            Err(Error::Io { .. }) => failed += 1,
            Ok(bytes) => {
                assert_eq!(bytes, 0, "call {at}");
                break;
            }
            other => panic!("call {at}: {other:?}"),
        }
        let copied = log.archive(&sim, archive, heads[7].position, heads[7]);
        assert!(copied.is_ok(), "call {at}: {copied:?}");
        at += 1;
    }
    assert!(failed > 6, "{failed}");
    sim.fail_at(u64::MAX, Failure::Io, false);
    for name in sim.list(archive).unwrap() {
        assert!(sim.bytes(&archive.join(&name)).unwrap() == sim.bytes(&dir().join(&name)).unwrap(), "{name}");
    }
}

#[test]
fn it_begins_where_its_floor_says() {
    let sim = SimVfs::new();
    let (log, heads) = filled(&sim);
    let before = log.segments().len() as u64;
    let removed = retire(&log, &heads, 7).unwrap();
    assert!(removed > 1 && log.segments().len() as u64 <= before - removed + 1, "{removed} of {before}");
    let floor = log.floor().unwrap();
    assert_eq!((floor.head, floor.from, floor.segment), (heads[7], heads[11], log.segments()[0]));
    let check = |log: &Log| {
        let found: Vec<_> = log.scan(Lsn(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(found.len(), 5);
        assert_eq!(found[0].number, holotype_storage::log::CommitNo(9));
        assert!(holds(&found[0], &records(8, &[100, 2500])));
        assert!(log.scan_files().map(Result::unwrap).count() >= 5);
        let report = log.verify(&mut |_, _| {}).unwrap();
        let is_whole = report.not_checked.iter().all(|what| what.starts_with("the bytes after position"));
        assert!(report.is_clean() && is_whole, "{report:?}");
        assert!(matches!(log.read(Lsn(4096)), Err(Error::NoRecord { .. })));
        assert!(matches!(log.scan(heads[0].position), Err(Error::NoRecord { .. })));
        assert_eq!(log.records_before(log.head().position).unwrap(), 13 * 3);
    };
    check(&log);
    let copy = Path::new("/copy");
    log.copy_to(&sim, copy, log.head(), &mut |_, _| {}).unwrap();
    drop(log);
    for options in [writable(), read_only()] {
        let opened = open(&sim, &options);
        assert_eq!(opened.transactions.len(), 5);
        check(&opened.log);
    }
    let ignore = &mut |_| Ok::<(), Error>(());
    check(&Log::open(disk(&sim), copy, None, &read_only(), ignore).unwrap().0);
    let mut told = 0;
    let salvaged = Log::salvage::<Error>(disk(&sim), dir(), Lsn(0), &mut |it| {
        told += it.records.len();
        Ok(())
    });
    let salvaged = salvaged.unwrap();
    assert_eq!((salvaged.floor, salvaged.unreadable.len()), (Some(floor), 0), "{salvaged:?}");
    assert!(told >= 10);
    let (opened, _) = try_open(&sim, Some(heads[0]), &writable());
    assert!(matches!(opened, Err(Error::CheckpointMismatch { .. })), "{opened:?}");
    let log = open(&sim, &writable()).log;
    retire(&log, &[heads.as_slice(), &[log.head()]].concat(), 12).unwrap();
    assert!(log.verify(&mut |_, _| {}).unwrap().is_clean());
}

#[test]
fn an_archive_puts_everything_back() {
    let sim = SimVfs::new();
    let (log, heads) = filled(&sim);
    let archive = Path::new("/archive");
    let copied = log.archive(&sim, archive, heads[7].position, heads[7]).unwrap();
    assert_eq!(log.archive(&sim, archive, heads[7].position, heads[7]).unwrap(), 0, "it is there already");
    let removed = retire(&log, &heads, 7).unwrap();
    assert!(copied > 0 && removed > 0);
    drop(log);
    sim.replace(&archive.join("0000000001.log"), b"something else");
    let log = open(&sim, &writable()).log;
    assert!(log.archive(&sim, archive, heads[9].position, heads[9]).is_ok(), "the others are not there yet");
    drop(log);
    let whole = SimVfs::new();
    let (log, _) = filled(&whole);
    let refused = {
        sim.replace(&segment_path(1), b"");
        log.archive(&sim, archive, heads[7].position, heads[7])
    };
    assert!(matches!(refused, Err(Error::LogExists { .. })), "{refused:?}");
}

#[test]
fn a_floor_that_is_damaged_is_named() {
    let sim = SimVfs::new();
    let (log, heads) = filled(&sim);
    retire(&log, &heads, 7).unwrap();
    let path = dir().join("floor");
    sim.flip(&path, 50, 1).unwrap();
    let report = log.verify(&mut |_, _| {}).unwrap();
    assert!(report.faults.iter().any(|fault| fault.file == path), "{report:?}");
    drop(log);
    for options in [writable(), read_only()] {
        let (opened, _) = try_open(&sim, None, &options);
        assert!(matches!(&opened, Err(Error::DamagedFloor { path: named, .. }) if *named == path), "{opened:?}");
    }
    let salvaged = Log::salvage::<Error>(disk(&sim), dir(), Lsn(0), &mut |_| Ok(())).unwrap();
    assert!(salvaged.floor.is_none() && salvaged.unreadable[0].what.ends_with("missing"), "{salvaged:?}");
}

/// With a right checksum, too, a floor may name a file that cannot be.
#[test]
fn a_floor_that_names_the_last_possible_file_is_refused() {
    let sim = SimVfs::new();
    let (log, heads) = filled(&sim);
    retire(&log, &heads, 7).unwrap();
    drop(log);
    let path = dir().join("floor");
    let mut bytes = sim.bytes(&path).unwrap();
    bytes[32..40].fill(0xff);
    let (fields, crc) = bytes.split_last_chunk_mut().unwrap();
    *crc = crc32fast::hash(fields).to_le_bytes();
    sim.replace(&path, &bytes);
    for options in [writable(), read_only()] {
        let (opened, _) = try_open(&sim, None, &options);
        assert!(matches!(&opened, Err(Error::MissingSegment { number: u64::MAX, .. })), "{opened:?}");
    }
}

#[test]
fn a_crash_leaves_the_old_or_the_new() {
    let sim = SimVfs::new();
    let (log, heads) = filled(&sim);
    let begins = sim.history_len();
    retire(&log, &heads, 7).unwrap();
    let done = sim.history_len();
    let (mut old, mut new) = (0, 0);
    for (history_len, point) in sim.replay().enumerate().skip(begins) {
        for (number, crashed) in point.crashes(64, history_len as u64).into_iter().enumerate() {
            let context = format!("operation {history_len} of {begins} to {done}, state {number}");
            for crashed in [crashed.crash(Crash::Keep), crashed] {
                let opened = open(&crashed, &writable());
                let is_new = opened.log.floor().is_some();
                let least = if is_new { 5 } else { COUNT as usize };
                assert!(opened.transactions.len() >= least, "{context}: {}", opened.transactions.len());
                assert!(is_new || history_len < done, "{context}");
                assert!(opened.log.verify(&mut |_, _| {}).unwrap().is_clean(), "{context}");
                let behind = opened.log.segments()[0] - 1;
                assert!((1..=behind).all(|gone| crashed.bytes(&segment_path(gone)).is_err()), "{context}");
                // The transactions that it found survive the next crash.
                drop(opened);
                let again = open(&crashed.crash(Crash::Lose), &writable());
                assert_eq!(again.log.floor().is_some(), is_new, "{context}, again");
                *if is_new { &mut new } else { &mut old } += 1;
            }
        }
    }
    assert!(old > 10 && new > 10, "{old} {new}");
}
