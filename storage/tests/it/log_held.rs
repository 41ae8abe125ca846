//! Short transactions are held in memory until somebody needs them in their file, and lost to nobody.

use std::path::Path;
use std::sync::Arc;

use crate::log_fixture::{create, dir, disk, open, read_only, records, writable};
use holotype_storage::Error;
use holotype_storage::log::{Appended, Log, LogOptions, Lsn};
use holotype_storage::vfs::{Failure, Operation, SimVfs};

/// The number of writes.
fn writes(sim: &SimVfs) -> usize {
    sim.history().iter().filter(|operation| matches!(operation, Operation::Write { .. })).count()
}

fn append(log: &Log, marker: u8, len: usize) -> Appended {
    log.append(&records(marker, &[len]), marker.into()).unwrap()
}

#[test]
fn short_transactions_share_the_write_of_the_sync_that_they_wait_for() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let before = writes(&sim);
    let last = (1..=5).map(|marker| append(&log, marker, 100).end).max().unwrap();
    assert_eq!((log.end(), log.head().position, writes(&sim)), (last, last, before));
    log.sync_to(last).unwrap();
    assert_eq!((log.durable(), writes(&sim)), (last, before + 1));
    // Nothing is written twice.
    log.flush().unwrap();
    log.sync_to(last).unwrap();
    assert_eq!(writes(&sim), before + 1);
}

#[test]
fn a_read_writes_them_first() {
    type Finds = fn(&Log, &Appended) -> bool;
    let readers: [(&str, Finds); 8] = [
        ("read", |log, last| log.read(last.lsns[0]).is_ok()),
        ("payload", |log, last| log.payload(last.lsns[0]).is_ok()),
        ("scan", |log, _| log.scan(Lsn(0)).unwrap().map(Result::unwrap).count() == 2),
        ("scan_files", |log, _| log.scan_files().map(Result::unwrap).count() == 2),
        ("leaves", |log, last| log.leaves(last.lsns[0], log.end()).map(Result::unwrap).count() == 2),
        ("records_before", |log, last| log.records_before(last.end).unwrap() == 4),
        ("verify", |log, _| log.verify(&mut |_, _| {}).unwrap().commits == 2),
        ("copy_to", |log, _| {
            let copy = SimVfs::new();
            log.copy_to(&copy, dir(), log.head(), &mut |_, _| {}).unwrap();
            open(&copy, &read_only()).transactions.len() == 2
        }),
    ];
    for (name, finds) in readers {
        let sim = SimVfs::new();
        let log = create(&sim);
        let first = append(&log, 1, 100);
        log.flush().unwrap();
        let before = writes(&sim);
        let last = append(&log, 2, 100);
        log.read(first.lsns[0]).unwrap();
        assert_eq!(writes(&sim), before, "{name}: what is written already is read as it is");
        assert!(finds(&log, &last), "{name}");
        assert_eq!(writes(&sim), before + 1, "{name}");
    }
}

#[test]
fn from_half_a_page_on_a_transaction_is_written_at_once() {
    // With what is around its record, and the record of its commit, half a page long; and longer.
    for (payload, len, written) in [(1_888, 2_048, 0), (1_896, 2_056, 1)] {
        let sim = SimVfs::new();
        let log = create(&sim);
        let (start, before) = (log.end().0, writes(&sim));
        assert_eq!(append(&log, 1, payload).end.0 - start, len);
        assert_eq!(writes(&sim), before + written);
    }
}

#[test]
fn what_comes_behind_them_is_written_behind_them() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let before = writes(&sim);
    append(&log, 1, 100);
    // Too long to be held, and in a segment of its own.
    append(&log, 2, 17_000);
    assert!(writes(&sim) > before + 1);
    append(&log, 3, 100);
    log.seal().unwrap();
    append(&log, 4, 100);
    log.close().unwrap();
    let found = open(&sim, &read_only());
    let markers: Vec<i64> = found.transactions.iter().map(|transaction| transaction.time_us).collect();
    assert_eq!(markers, [1, 2, 3, 4]);
    assert_eq!(found.report.tail, None);
}

#[test]
fn a_flush_and_the_end_of_the_log_put_them_into_the_file() {
    for is_flushed in [true, false] {
        let sim = SimVfs::new();
        let log = create(&sim);
        append(&log, 1, 100);
        assert_eq!(open(&sim, &read_only()).transactions.len(), 0);
        let _still_open = if is_flushed {
            log.flush().unwrap();
            Some(log)
        } else {
            drop(log);
            None
        };
        assert_eq!(open(&sim, &read_only()).transactions.len(), 1);
    }
}

/// Nobody asks for them, and yet memory is not filled with them.
#[test]
fn no_more_is_held_than_a_little() {
    let sim = SimVfs::new();
    let options = LogOptions { first_segment_len: 4 << 20, ..LogOptions::new([7; 16]) };
    let log = Log::create(Arc::new(sim.clone()), Path::new("/log"), &options).unwrap();
    let before = writes(&sim);
    let mut most = 0;
    let mut written = log.end();
    for _ in 0..100 {
        let seen = writes(&sim);
        let end = append(&log, 1, 10_000).end;
        if writes(&sim) > seen {
            written = end;
        }
        most = most.max(end.0 - written.0);
    }
    assert!(most > 200_000 && most <= 256 << 10, "{most} bytes were held");
    // Each time what was held, and the transaction that there was no room for.
    assert!((4..=10).contains(&(writes(&sim) - before)));
}

#[test]
fn when_they_cannot_be_written_nothing_is_believed_any_more() {
    for is_for_ever in [false, true] {
        for kind in [Failure::Io, Failure::NoSpace] {
            let sim = SimVfs::new();
            let log = create(&sim);
            let durable = append(&log, 1, 100).end;
            log.sync_to(durable).unwrap();
            let lost = append(&log, 2, 100);
            sim.fail_at(sim.calls(), kind, is_for_ever);
            assert!(matches!(log.read(lost.lsns[0]), Err(Error::NoRecord { .. })));
            assert!(matches!(log.flush(), Err(Error::Poisoned { .. })));
            assert!(matches!(log.sync_to(lost.end), Err(Error::Poisoned { .. })));
            assert!(matches!(log.append(&records(3, &[100]), 3), Err(Error::Poisoned { .. })));
            assert_eq!(log.durable(), durable);
            drop(log);
            sim.heal();
            let found = open(&sim, &writable());
            assert_eq!(found.transactions.len(), 1);
            let end = append(&found.log, 4, 100).end;
            found.log.sync_to(end).unwrap();
        }
    }
}

/// One thread's flush waits for the write of another that has taken what it appended.
#[test]
fn a_flush_returns_when_everything_before_it_is_written() {
    let sim = SimVfs::new();
    let options = LogOptions { first_segment_len: 4 << 20, ..LogOptions::new([7; 16]) };
    let log = Log::create(disk(&sim), Path::new("/log"), &options).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let (log, sim) = (&log, &sim);
            scope.spawn(move || {
                for _ in 0..100 {
                    let appended = append(log, thread, 100);
                    log.flush().unwrap();
                    let bytes = sim.bytes(Path::new("/log/0000000001.log")).unwrap();
                    let (start, end) = (appended.lsns[0].0 as usize, appended.end.0 as usize);
                    assert_ne!(bytes[start..start + 8], [0; 8]);
                    assert_ne!(bytes[end - 8..end], [0; 8]);
                }
            });
        }
    });
    assert_eq!(log.scan(Lsn(0)).unwrap().count(), 400);
}
