//! Following a log that another process appends to: a reader sees what is durable, all of it, once, and in order.

use crate::log_fixture;
use crate::log_fixture::{PAGE, create, holds, open, read_only, records, segment_path, writable};
use holotype_storage::log::{Checkpoint, Log, Lsn, OpenOptions, Transaction};
use holotype_storage::vfs::{SimVfs, Vfs};
use holotype_storage::{Error, Result};

fn follow(reader: &Log, from: Option<Checkpoint>, durable: Lsn) -> Result<Vec<Transaction>> {
    let mut found = Vec::new();
    reader.follow(from, durable, &mut |transaction| {
        found.push(transaction);
        Ok::<(), Error>(())
    })?;
    Ok(found)
}

/// A writer with one durable transaction, and a reader that has seen it.
fn pair(sim: &SimVfs) -> (Log, Log) {
    let log = create(sim);
    log.append(&records(0, &[100]), 0).unwrap();
    log.sync_to(log.end()).unwrap();
    let reader = open(sim, &OpenOptions { durable_hint: Some(log.durable()), ..read_only() }).log;
    assert_eq!(reader.head(), log.head());
    (log, reader)
}

#[test]
fn a_reader_sees_what_is_durable_and_nothing_twice() {
    let sim = SimVfs::new();
    let (log, reader) = pair(&sim);
    let mut heads = vec![log.head()];
    let mut written = Vec::new();
    for number in 1..60_u8 {
        let lens: &[usize] = [&[100, 2500][..], &[], &[3000, 900], &[9000], &[40; 12]][usize::from(number) % 5];
        written.push(records(number, lens));
        let appended = log.append(written.last().unwrap(), number.into()).unwrap();
        heads.push(log.head());
        let before = (reader.end(), reader.durable(), reader.head());
        assert_eq!(follow(&reader, Some(reader.head()), log.durable()).unwrap(), [], "{number} is not durable yet");
        assert_eq!((reader.end(), reader.durable(), reader.head()), before);
        // Sometimes one transaction behind, sometimes seven, over several segments.
        if number % 10 < 3 {
            log.sync_to(appended.end).unwrap();
            let seen = reader.head().commit.0 as usize;
            let found = follow(&reader, Some(reader.head()), log.durable()).unwrap();
            assert_eq!(found.len(), heads.len() - seen);
            for (transaction, written) in found.iter().zip(&written[seen - 1..]) {
                assert!(holds(transaction, written), "{transaction:?}");
                assert!(transaction.records.iter().all(|record| reader.read(record.lsn).unwrap() == *record));
            }
            assert_eq!((reader.end(), reader.durable(), reader.head()), (log.end(), log.durable(), log.head()));
            assert_eq!(reader.segments(), log.segments());
            // An older place tells what came after it again, and moves nothing.
            let old = heads[seen / 2];
            let again = follow(&reader, Some(old), Lsn(0)).unwrap();
            assert_eq!(again.len(), heads.len() - old.commit.0 as usize);
            assert_eq!((reader.end(), reader.head()), (log.end(), log.head()));
        }
    }
    assert!(log.segments().len() > 5);
}

/// Opening had taken what a page lacked when it was first read for damage, once the writer had filled it meanwhile.
#[test]
fn what_a_writer_appends_during_an_opening_is_no_damage() {
    let sim = SimVfs::new();
    let log = create(&sim);
    for number in 0..3 {
        log.append(&records(number, &[100]), 0).unwrap();
        log.sync_to(log.end()).unwrap();
    }
    let options = OpenOptions { durable_hint: Some(log.durable()), ..read_only() };
    let mut seen = Vec::new();
    let opened = Log::open(log_fixture::disk(&sim), log_fixture::dir(), None, &options, &mut |transaction| {
        seen.push(transaction.number.0);
        // In the same page first, then in later ones and in the next segment.
        for number in 0..3 {
            log.append(&records(number, &[100, 1_100]), 0)?;
            log.sync_to(log.end())?;
        }
        Ok::<(), Error>(())
    });
    let (reader, report) = opened.unwrap();
    assert_eq!(report.damage, None);
    assert!(seen.len() > 3, "what the log proves durable behind the hint is read: {seen:?}");
    assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>());
    let behind = follow(&reader, Some(reader.head()), log.durable()).unwrap();
    assert_eq!(behind.first().map(|next| next.number.0), Some(seen.len() as u64 + 1));
    assert_eq!(reader.head(), log.head());
}

#[test]
fn what_does_not_fit_is_an_error_and_moves_nothing() {
    let sim = SimVfs::new();
    let (log, reader) = pair(&sim);
    let seen = reader.head();
    for number in 1..12 {
        log.append(&records(number, &[2500]), 0).unwrap();
    }
    log.sync_to(log.end()).unwrap();
    let other = Checkpoint { hash: [1; 32], ..seen };
    let refused = follow(&reader, Some(other), log.durable());
    assert!(matches!(refused, Err(Error::CheckpointMismatch { .. })), "{refused:?}");
    let beyond = follow(&reader, Some(seen), Lsn(log.end().0 + PAGE));
    assert!(matches!(&beyond, Err(Error::Damaged(damage)) if damage.position == log.end()), "{beyond:?}");
    let path = segment_path(2);
    let content = sim.bytes(&path).unwrap();
    log_fixture::disk(&sim).remove(&path).unwrap();
    let gone = follow(&reader, Some(seen), log.durable());
    assert!(matches!(gone, Err(Error::MissingSegment { number: 2, .. })), "{gone:?}");
    sim.replace(&path, &content);
    sim.flip(&path, PAGE + 40, 1).unwrap();
    let damaged = follow(&reader, Some(seen), log.durable());
    assert!(matches!(&damaged, Err(Error::Damaged(damage)) if damage.file == path), "{damaged:?}");
    assert_eq!((reader.head(), reader.end()), (seen, seen.position));
    sim.flip(&path, PAGE + 40, 1).unwrap();
    assert_eq!(follow(&reader, Some(seen), log.durable()).unwrap().len(), 11);
}

#[test]
fn a_reader_goes_on_where_the_beginning_was_cut_off() {
    let sim = SimVfs::new();
    let (log, reader) = pair(&sim);
    let mut heads = Vec::new();
    for number in 1..12 {
        log.append(&records(number, &[100, 2500]), 0).unwrap();
        heads.push(log.head());
    }
    let from = log.head();
    log.append(&records(0xaa, &[30, 40]), 100).unwrap();
    log.sync_to(log.end()).unwrap();
    log.retire((0, heads[7].position), heads[7], from, log.head()).unwrap();
    // The reader's position and all segments that it knows were removed.
    for from in [None, Some(reader.head()), Some(heads[2])] {
        let refused = follow(&reader, from, log.durable());
        assert!(matches!(refused, Err(Error::CheckpointMismatch { .. })), "{from:?}: {refused:?}");
    }
    let found = follow(&reader, Some(heads[7]), log.durable()).unwrap();
    assert_eq!(found.iter().map(|found| found.number.0).collect::<Vec<_>>(), [10, 11, 12, 13]);
    assert_eq!((reader.floor(), reader.head()), (log.floor(), log.head()));
    assert_eq!(reader.segments(), log.segments());
    assert!(reader.verify(&mut |_, _| {}).unwrap().is_clean());
    log.append(&records(0xbb, &[9000]), 100).unwrap();
    log.sync_to(log.end()).unwrap();
    assert_eq!(follow(&reader, Some(reader.head()), log.durable()).unwrap().len(), 1);
}

/// A segment after a reader's end may be begun again after a crash: the reader sees the new one.
#[test]
fn a_segment_that_was_begun_anew_is_read_anew() {
    let sim = SimVfs::new();
    let log = create(&sim);
    // Just full, and sealed: the next record begins the next segment.
    log.append(&records(1, &[3_900, 3_900, 3_700]), 1).unwrap();
    log.seal().unwrap();
    log.sync_to(log.end()).unwrap();
    let full = log.end();
    assert_eq!(full.0, 4 * PAGE);
    log.append(&records(2, &[10]), 2).unwrap();
    log.sync_to(log.end()).unwrap();
    drop(log);
    let reader = open(&sim, &OpenOptions { durable_hint: Some(full), ..read_only() }).log;
    sim.remove(&segment_path(2)).unwrap();
    let log = open(&sim, &writable()).log;
    let new = records(3, &[500, 9_000]);
    log.append(&new, 1_000_000).unwrap();
    log.sync_to(log.end()).unwrap();
    let found = follow(&reader, Some(reader.head()), log.durable()).unwrap();
    assert!(found.len() == 1 && holds(&found[0], &new), "{found:?}");
    assert_eq!((reader.end(), reader.head(), reader.segments()), (log.end(), log.head(), log.segments()));
}
