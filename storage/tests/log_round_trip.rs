//! What is appended is what is read: one by one, in order, and after closing, crashing and opening again.

use std::path::Path;
use std::sync::Arc;

use holotype_storage::log::{Log, LogLimits, LogOptions, Lsn, OpenOptions, Transaction};
use holotype_storage::vfs::{OsVfs, SimVfs, Vfs};
use holotype_storage::{Error, NewRecord, RecoveryReport};
use proptest::prelude::*;

const DIR: &str = "/db/log";

fn small_options() -> LogOptions {
    LogOptions {
        page_size: 4096,
        first_segment_len: 16 << 10,
        limits: LogLimits {
            max_segment_len: 64 << 10,
            ..LogLimits::default()
        },
        ..LogOptions::new([7; 16])
    }
}

fn open_options() -> OpenOptions {
    OpenOptions {
        limits: small_options().limits,
        ..OpenOptions::default()
    }
}

fn open(vfs: &Arc<dyn Vfs>, options: &OpenOptions) -> (Log, RecoveryReport, Vec<Transaction>) {
    let mut seen = Vec::new();
    let (log, report) = Log::open(
        Arc::clone(vfs),
        Path::new(DIR),
        None,
        options,
        &mut |transaction| {
            seen.push(transaction);
            Ok::<(), Error>(())
        },
    )
    .unwrap();
    (log, report, seen)
}

fn payloads(transaction: &Transaction) -> Vec<(u8, Vec<u8>)> {
    transaction
        .records
        .iter()
        .map(|record| (record.kind, record.payload.clone()))
        .collect()
}

fn record(kind: u8, len: usize, fill: u8) -> NewRecord {
    NewRecord {
        kind,
        payload: vec![fill; len],
    }
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
    let (log, report) = Log::open(
        vfs,
        &dir,
        None,
        &OpenOptions::default(),
        &mut |transaction| {
            seen.push(transaction);
            Ok::<(), Error>(())
        },
    )
    .unwrap();
    assert!(report.closed && report.tail.is_none());
    assert_eq!(
        (report.head, report.transactions, report.records),
        (head, 2, 3)
    );
    assert_eq!(payloads(&seen[0]), [(1, vec![1; 10]), (2, vec![])]);
    assert_eq!(payloads(&seen[1]), [(3, vec![9; 100_000])]);
    assert_eq!(log.read(second.lsns[0]).unwrap(), seen[1].records[0]);
    assert!(log.verify(&mut |_, _| {}).unwrap().is_clean());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_transactions_round_trip(
        steps in proptest::collection::vec(
            (proptest::collection::vec((1_u8..0xf0, prop_oneof![0_usize..200, 3900_usize..4100, 0_usize..20_000]), 0..6), any::<i64>(), 0_u8..6),
            1..25,
        )
    ) {
        let vfs: Arc<dyn Vfs> = Arc::new(SimVfs::new());
        let mut log = Log::create(Arc::clone(&vfs), Path::new(DIR), &small_options()).unwrap();
        let mut written: Vec<(Vec<(u8, Vec<u8>)>, i64)> = Vec::new();
        let mut heads = Vec::new();
        for (number, (records, time, then)) in steps.into_iter().enumerate() {
            let new: Vec<NewRecord> = records.iter().map(|&(kind, len)| record(kind, len, number as u8)).collect();
            let appended = log.append(&new, time).unwrap();
            let clock = written.last().map_or(time, |last| last.1.max(time));
            prop_assert_eq!(appended.time_us, clock);
            prop_assert_eq!(appended.commit.0, number as u64 + 1);
            for (lsn, new) in appended.lsns.iter().zip(&new) {
                let read = log.read(*lsn).unwrap();
                prop_assert_eq!((read.kind, &read.payload, read.lsn), (new.kind, &new.payload, *lsn));
            }
            written.push((new.into_iter().map(|new| (new.kind, new.payload)).collect(), clock));
            heads.push(log.head());
            match then {
                0 => log.seal().unwrap(),
                1 => log.sync_to(appended.end).unwrap(),
                2 => {
                    log.close().unwrap();
                    drop(log);
                    log = open(&vfs, &open_options()).0;
                }
                3 => {
                    drop(log);
                    log = open(&vfs, &open_options()).0;
                }
                _ => {}
            }
        }
        prop_assert_eq!(log.head(), *heads.last().unwrap());
        let verified = log.verify(&mut |_, _| {}).unwrap();
        prop_assert_eq!(&verified.faults, &[]);
        prop_assert_eq!(verified.commits, written.len() as u64);
        drop(log);
        let (log, report, seen) = open(&vfs, &open_options());
        prop_assert!(report.tail.is_none() && report.damage.is_none());
        prop_assert_eq!(seen.len(), written.len());
        for (transaction, (records, clock)) in seen.iter().zip(&written) {
            prop_assert_eq!(&payloads(transaction), records);
            prop_assert_eq!(transaction.time_us, *clock);
        }
        let scanned: Vec<Transaction> = log.scan(Lsn(0)).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(&scanned, &seen);
        drop(log);
        // From every commit on, opening and scanning give the rest.
        for (at, head) in heads.iter().enumerate() {
            prop_assert_eq!(seen[at].head, *head);
            let mut rest = Vec::new();
            let (log, _) = Log::open(Arc::clone(&vfs), Path::new(DIR), Some(*head), &open_options(), &mut |transaction| {
                rest.push(transaction);
                Ok::<(), Error>(())
            }).unwrap();
            prop_assert_eq!(&rest, &seen[at + 1..]);
            let scanned: Vec<Transaction> = log.scan(head.position).unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(scanned, rest);
        }
    }
}
