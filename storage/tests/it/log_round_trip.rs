//! Appended records are read back: one by one, in order, and after closing, crashing and opening again.

use std::sync::Arc;

use crate::log_fixture::{
    Opened, PAGE, create, dir, holds, open, read_only, records, segment_path, try_open, writable,
};
use holotype_storage::features::Access;
use holotype_storage::log::{Log, LogOptions, Lsn, OpenOptions, Transaction};
use holotype_storage::vfs::{Crash, OsVfs, SimVfs, Vfs};
use holotype_storage::{Error, NewRecord};
use proptest::prelude::*;

fn record(kind: u8, len: usize, fill: u8) -> NewRecord {
    NewRecord { kind, payload: vec![fill; len] }
}

#[test]
fn a_log_on_real_files_is_there_again() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("log");
    let vfs: Arc<dyn Vfs> = Arc::new(OsVfs);
    let log = Log::create(Arc::clone(&vfs), &dir, &LogOptions::new([1; 16])).unwrap();
    let first = log.append(&[record(1, 10, 1), record(2, 0, 0)], 5).unwrap();
    let second = log.append(&[record(3, 100_000, 9)], 4).unwrap();
    assert_eq!((first.commit.0, second.commit.0, second.time_us), (1, 2, 5));
    log.sync_to(second.end).unwrap();
    assert_eq!((log.durable(), log.end()), (second.end, second.end));
    let head = log.head();
    log.close().unwrap();
    assert!(matches!(log.append(&[], 0), Err(Error::Closed)));
    drop(log);

    let mut seen = Vec::new();
    let (log, report) = Log::open(vfs, &dir, None, &OpenOptions::default(), &mut |transaction| {
        seen.push(transaction);
        Ok::<(), Error>(())
    })
    .unwrap();
    assert!(report.closed && report.tail.is_none());
    assert_eq!((report.head, report.transactions, report.records), (head, 2, 3));
    assert!(holds(&seen[0], &[record(1, 10, 1), record(2, 0, 0)]));
    assert!(holds(&seen[1], &[record(3, 100_000, 9)]));
    assert_eq!(log.read(second.lsns[0]).unwrap(), seen[1].records[0]);
    assert!(log.verify(&mut |_, _| {}).unwrap().is_clean());
}

/// The action after appending in a step of the property below.
#[derive(Clone, Copy, Debug)]
enum Then {
    Nothing,
    Sync,
    Seal,
    Reopen,
    CloseAndReopen,
}

fn then() -> impl Strategy<Value = Then> {
    prop_oneof![
        3 => Just(Then::Nothing),
        1 => Just(Then::Sync),
        1 => Just(Then::Seal),
        1 => Just(Then::Reopen),
        1 => Just(Then::CloseAndReopen),
    ]
}

/// Short ones, some that just fit a page or just do not, and some that take several.
fn payload_len() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 0_usize..200, 1 => 3900_usize..4100, 1 => 0_usize..20_000]
}

#[test]
fn a_log_says_whose_it_is_and_which_segments_it_uses() {
    let sim = SimVfs::new();
    let identify = |sim: &SimVfs| Log::identify(sim, dir(), Access::Write);
    sim.create_dir(dir()).unwrap();
    assert_eq!(identify(&sim).unwrap(), None);
    let log = create(&sim);
    assert_eq!((identify(&sim).unwrap(), log.database(), log.page_size()), (Some([7; 16]), [7; 16], PAGE as u32));
    assert_eq!(format!("{} {}", Lsn(12), log.head().commit), "12 0");
    // Just full, and sealed: the next record begins the next segment.
    log.append(&records(1, &[3_900, 3_900, 3_700]), 1).unwrap();
    log.seal().unwrap();
    log.sync_to(log.end()).unwrap();
    let full = log.end();
    assert_eq!((full.0, log.segments()), (4 * PAGE, vec![1]));
    log.append(&records(2, &[10]), 1).unwrap();
    log.sync_to(log.end()).unwrap();
    assert_eq!(log.segments(), [1, 2]);
    drop(log);
    let reader = open(&sim, &OpenOptions { durable_hint: Some(full), ..read_only() }).log;
    assert_eq!((reader.end(), reader.segments()), (full, vec![1]));
    // Features beside which others may only read, and such as keep them away.
    for (at, may_read) in [(20, true), (24, false)] {
        let newer = sim.crash(Crash::Keep);
        let mut bytes = newer.bytes(&segment_path(1)).unwrap();
        bytes[at] = 1;
        let crc = crc32fast::hash(&bytes[..136]);
        bytes[136..140].copy_from_slice(&crc.to_le_bytes());
        newer.replace(&segment_path(1), &bytes);
        assert!(matches!(identify(&newer), Err(Error::NewerFormat { .. })), "byte {at}");
        assert_eq!(Log::identify(&newer, dir(), Access::Read).is_ok(), may_read, "byte {at}");
    }
    sim.flip(&segment_path(1), 40, 1).unwrap();
    assert_eq!(identify(&sim).unwrap(), Some([7; 16]), "the copy of its header can be read");
    sim.flip(&segment_path(1), 2048 + 40, 1).unwrap();
    assert_eq!(identify(&sim).unwrap(), None, "its header cannot be read");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_transactions_round_trip(
        steps in proptest::collection::vec(
            (proptest::collection::vec(payload_len(), 0..6), any::<i64>(), then()),
            1..25,
        )
    ) {
        let sim = SimVfs::new();
        let mut log = create(&sim);
        let mut written: Vec<Vec<NewRecord>> = Vec::new();
        let mut clocks: Vec<i64> = Vec::new();
        let mut heads = Vec::new();
        for (number, (lens, time, then)) in steps.into_iter().enumerate() {
            let new = records(number as u8, &lens);
            let appended = log.append(&new, time).unwrap();
            let clock = clocks.last().map_or(time, |&last| last.max(time));
            prop_assert_eq!((appended.commit.0, appended.time_us), (number as u64 + 1, clock));
            for (lsn, new) in appended.lsns.iter().zip(&new) {
                let read = log.read(*lsn).unwrap();
                let payload = log.payload(*lsn).unwrap();
                assert_eq!((payload.kind, &payload.bytes, payload.redacted), (read.kind, &read.payload, false));
                prop_assert_eq!((read.lsn, read.kind, &read.payload), (*lsn, new.kind, &new.payload));
            }
            written.push(new);
            clocks.push(clock);
            heads.push(log.head());
            match then {
                Then::Nothing => {}
                Then::Sync => log.sync_to(appended.end).unwrap(),
                Then::Seal => log.seal().unwrap(),
                Then::Reopen => {
                    drop(log);
                    log = open(&sim, &writable()).log;
                }
                Then::CloseAndReopen => {
                    log.close().unwrap();
                    drop(log);
                    log = open(&sim, &writable()).log;
                }
            }
        }
        prop_assert_eq!(log.head(), *heads.last().unwrap());
        let verified = log.verify(&mut |_, _| {}).unwrap();
        prop_assert_eq!(&verified.faults, &[]);
        prop_assert_eq!(&verified.not_checked, &[] as &[String]);
        prop_assert_eq!(verified.commits, written.len() as u64);
        drop(log);

        let Opened { log, report, transactions: seen } = open(&sim, &writable());
        prop_assert!(report.tail.is_none() && report.damage.is_none());
        prop_assert_eq!(seen.len(), written.len());
        for (at, transaction) in seen.iter().enumerate() {
            prop_assert!(holds(transaction, &written[at]));
            prop_assert_eq!((transaction.time_us, transaction.head), (clocks[at], heads[at]));
        }
        let scanned: Vec<Transaction> = log.scan(Lsn(0)).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(&scanned, &seen);
        drop(log);
        // From every commit on, opening and scanning give the rest.
        for (at, head) in heads.iter().enumerate() {
            let (opened, rest) = try_open(&sim, Some(*head), &writable());
            prop_assert_eq!(&rest, &seen[at + 1..]);
            let scanned: Vec<Transaction> =
                opened.unwrap().0.scan(head.position).unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(scanned, rest);
        }
    }
}
