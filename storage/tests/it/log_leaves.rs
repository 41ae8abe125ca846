//! The hashes of a log's records in order: the same from every place, in one log and in one opened again, and the same
//! that whole transactions are read with.

use holotype_storage::log::{Log, LogOptions, Lsn, OpenOptions};
use holotype_storage::proof::leaf_hash;
use holotype_storage::vfs::{OpenMode, SimVfs, Vfs};
use holotype_storage::{Error, NewRecord};
use std::path::Path;
use std::sync::Arc;

/// Records from none to several pages long, over many segments, with sealed pages and an end in between.
fn written(sim: &SimVfs) -> Log {
    let mut log = small(sim);
    for number in 0..120_usize {
        let lengths: Vec<usize> = (0..number % 7).map(|part| (number * 97 + part * 1_301) % 1_500).collect();
        let mut records: Vec<NewRecord> = lengths
            .iter()
            .map(|&len| NewRecord { kind: 1 + (len % 9) as u8, payload: vec![number as u8; len] })
            .collect();
        if number % 19 == 3 {
            records.insert(0, NewRecord { kind: 3, payload: vec![7; 4_000 + number * 200] });
        }
        if number % 29 == 5 {
            // Just what a page has room for, and eight bytes more.
            records.push(NewRecord { kind: 4, payload: vec![9; 3_972 + number % 2] });
        }
        log.append(&records, number as i64).unwrap();
        if number % 23 == 22 {
            log.seal().unwrap();
        }
        if number == 70 {
            log.close().unwrap();
            log = opened(sim);
        }
    }
    log.sync_to(log.end()).unwrap();
    log
}

/// An empty log, its first segment of four pages.
fn small(sim: &SimVfs) -> Log {
    let options = LogOptions { page_size: 4096, first_segment_len: 16 << 10, ..LogOptions::new([5; 16]) };
    Log::create(Arc::new(sim.clone()), Path::new("/log"), &options).unwrap()
}

fn opened(sim: &SimVfs) -> Log {
    Log::open::<Error>(Arc::new(sim.clone()), Path::new("/log"), None, &OpenOptions::default(), &mut |_| Ok(()))
        .unwrap()
        .0
}

#[test]
fn leaves_are_the_records_in_order() {
    let sim = SimVfs::new();
    let log = written(&sim);
    let all: Vec<_> = log.leaves(Lsn(0), log.end()).collect::<Result<_, _>>().unwrap();
    let mut places = all.iter();
    let mut commits = 0;
    let mut told = Vec::new();
    for transaction in log.scan(Lsn(0)).unwrap() {
        let transaction = transaction.unwrap();
        told.extend(transaction.leaves);
        commits += 1;
        for record in &transaction.records {
            let leaf = places.find(|leaf| leaf.lsn == record.lsn).expect("in order");
            assert_eq!(leaf.hash, record.hash);
        }
    }
    assert_eq!(told, all, "transactions come with the same");
    let records: usize = log.scan(Lsn(0)).unwrap().map(|transaction| transaction.unwrap().records.len()).sum();
    assert_eq!(all.len(), records + commits + 1, "one close record");
    for (number, leaf) in all.iter().enumerate() {
        assert_eq!(log.records_before(leaf.lsn).unwrap(), number as u64);
        let stored = log.read_stored(leaf.lsn).unwrap();
        let (salt, payload) = stored.content.unwrap();
        assert_eq!(leaf_hash(&stored.header, &salt, &payload), leaf.hash);
        if number % 11 == 0 {
            let rest: Vec<_> = log.leaves(leaf.end, log.end()).collect::<Result<_, _>>().unwrap();
            assert_eq!(rest, all[number + 1..]);
            let before: Vec<_> = log.leaves(Lsn(0), leaf.lsn).collect::<Result<_, _>>().unwrap();
            assert_eq!(before, all[..number]);
        }
    }
    for transaction in log.scan(Lsn(0)).unwrap() {
        let end = transaction.unwrap().head.position;
        let expected = all.iter().filter(|leaf| leaf.lsn < end).count();
        assert_eq!(log.records_before(end).unwrap(), expected as u64, "{end}");
    }
    log.close().unwrap();
    let again = opened(&sim);
    let mut same: Vec<_> = again.leaves(Lsn(0), again.end()).collect::<Result<_, _>>().unwrap();
    same.pop();
    assert_eq!(same, all, "all but the close record written since");
}

#[test]
fn what_is_known_without_reading_is_what_is_read() {
    let sim = SimVfs::new();
    let log = written(&sim);
    let all: Vec<_> = log.leaves(Lsn(0), log.end()).collect::<Result<_, _>>().unwrap();
    let first = all.iter().position(|leaf| log.recent_leaves(leaf.lsn, log.end()).is_some()).unwrap();
    assert!((1..all.len() - 40).contains(&first), "this log was opened in between, and knows from there on");
    assert_eq!(log.recent_leaves(Lsn(0), log.end()), None);
    for (at, leaf) in all.iter().enumerate().skip(first) {
        assert_eq!(log.recent_leaves(leaf.lsn, log.end()).unwrap(), all[at..], "from {}", leaf.lsn);
        assert_eq!(log.recent_leaves(leaf.end, log.end()).unwrap(), all[at + 1..], "behind {}", leaf.lsn);
        let last = all[(at + 40).min(all.len() - 1)];
        let until = log.recent_leaves(leaf.lsn, last.lsn).unwrap();
        assert_eq!(until, log.leaves(leaf.lsn, last.lsn).collect::<Result<Vec<_>, _>>().unwrap());
        assert_eq!(log.recent_leaves(leaf.lsn, leaf.lsn), Some(Vec::new()));
    }
    assert_eq!(opened(&sim).recent_leaves(all[first].lsn, log.end()), None, "of another's records nothing is known");
}

#[test]
fn a_new_log_knows_all_and_an_opened_one_what_is_new() {
    let sim = SimVfs::new();
    let log = small(&sim);
    log.append(&[NewRecord { kind: 1, payload: vec![1; 10] }], 0).unwrap();
    let all: Vec<_> = log.leaves(Lsn(0), log.end()).collect::<Result<_, _>>().unwrap();
    assert_eq!(log.recent_leaves(Lsn(0), log.end()), Some(all));
    log.sync_to(log.end()).unwrap();
    drop(log);
    let log = opened(&sim);
    let from = log.end();
    assert_eq!(log.recent_leaves(from, from), Some(Vec::new()));
    log.append(&[NewRecord { kind: 1, payload: vec![2; 10] }], 0).unwrap();
    let new: Vec<_> = log.leaves(from, log.end()).collect::<Result<_, _>>().unwrap();
    assert_eq!((new.len(), log.recent_leaves(from, log.end())), (2, Some(new)));
    assert_eq!(log.recent_leaves(Lsn(from.0 - 8), log.end()), None);
}

#[test]
fn other_places_and_changed_bytes_are_errors() {
    let sim = SimVfs::new();
    let log = written(&sim);
    let all: Vec<_> = log.leaves(Lsn(0), log.end()).collect::<Result<_, _>>().unwrap();
    let leaf = all[all.len() / 2];
    for wrong in [Lsn(0), Lsn(8), Lsn(leaf.lsn.0 + 8), log.end(), Lsn(log.end().0 + 8), Lsn(u64::MAX)] {
        assert!(log.read_stored(wrong).is_err(), "{wrong}");
    }
    assert!(log.records_before(Lsn(144)).is_err());
    assert!(log.records_before(Lsn(u64::MAX)).is_err());
    sim.flip(Path::new("/log/0000000001.log"), 4_096 + 20, 1).unwrap();
    assert!(matches!(log.leaves(Lsn(0), log.end()).next(), Some(Err(Error::Damaged(_)))));
}

/// A run that fills its segment ends where the next one's header begins.
#[test]
fn a_record_that_ends_with_its_segment_counts() {
    let sim = SimVfs::new();
    let log = small(&sim);
    let lsn = log.append(&[NewRecord { kind: 1, payload: vec![1; 3 * 4_096 - 96 - 28] }], 0).unwrap().lsns[0];
    log.append(&[NewRecord { kind: 1, payload: vec![1; 10] }], 0).unwrap();
    let run = log.leaves(Lsn(0), log.end()).next().unwrap().unwrap();
    assert_eq!((run.lsn, run.end), (lsn, Lsn(4 * 4_096)));
    assert_eq!((log.records_before(run.lsn).unwrap(), log.records_before(run.end).unwrap()), (0, 1));
    assert!(matches!(log.records_before(Lsn(run.end.0 + 8)), Err(Error::NoRecord { .. })), "in the header");
}

/// Zeros are passed over where pages were left unused at the end of a segment, and nowhere else.
#[test]
fn a_record_that_is_zero_now_is_damage() {
    let sim = SimVfs::new();
    let log = small(&sim);
    for number in 0..4 {
        log.append(&[NewRecord { kind: 1, payload: vec![number; 1_500] }], 0).unwrap();
    }
    let all: Vec<_> = log.leaves(Lsn(0), log.end()).collect::<Result<_, _>>().unwrap();
    let path = Path::new("/log/0000000001.log");
    let whole = sim.bytes(path).unwrap();
    let is_first = |lsn: Lsn| lsn.0.is_multiple_of(4_096);
    let inner =
        all.iter().filter(|leaf| !is_first(leaf.lsn)).map(|leaf| (leaf.lsn, leaf.lsn.0.next_multiple_of(4_096)));
    let pages = all.iter().filter(|leaf| is_first(leaf.lsn)).map(|leaf| (leaf.lsn, log.end().0)).skip(1);
    // From within a page to its end, its footer with it; and the last page, which has none yet.
    for (from, to) in inner.chain(pages) {
        let file = sim.open(path, OpenMode::ReadWrite).unwrap();
        file.write_at(&vec![0; (to - from.0) as usize], from.0).unwrap();
        let read = log.leaves(from, log.end()).next();
        file.write_at(&whole[from.0 as usize..to as usize], from.0).unwrap();
        assert!(matches!(&read, Some(Err(Error::Damaged(damage))) if damage.position == from), "{from}: {read:?}");
    }
}

/// A length that leaves the segment is the record's fault, not the file's.
#[test]
fn a_length_that_leaves_the_segment_is_damage() {
    let sim = SimVfs::new();
    let log = small(&sim);
    let lsn = log.append(&[NewRecord { kind: 1, payload: vec![1; 10] }], 0).unwrap().lsns[0];
    log.flush().unwrap();
    for byte in [1, 2] {
        sim.flip(Path::new("/log/0000000001.log"), lsn.0 + byte, 0x40).unwrap();
        let read = log.leaves(Lsn(0), log.end()).next();
        assert!(matches!(&read, Some(Err(Error::Damaged(damage))) if damage.position == lsn), "{read:?}");
        sim.flip(Path::new("/log/0000000001.log"), lsn.0 + byte, 0x40).unwrap();
    }
}
