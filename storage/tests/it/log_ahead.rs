//! A writer is never further ahead of what is durable than recovery looks.

use std::path::Path;
use std::sync::Arc;

use holotype_storage::NewRecord;
use holotype_storage::log::{Log, LogOptions, OpenOptions, Transaction};
use holotype_storage::vfs::{Crash, OpenMode, SimVfs, Vfs};

/// The most that may be written and not synced.
const AHEAD: u64 = 4 << 20;
const SEGMENT: &str = "/log/0000000001.log";

fn create(disk: &SimVfs) -> Log {
    let options = LogOptions { first_segment_len: 32 << 20, ..LogOptions::new([7; 16]) };
    Log::create(Arc::new(disk.clone()), Path::new("/log"), &options).unwrap()
}

fn records(count: usize, len: usize) -> Vec<NewRecord> {
    vec![NewRecord { kind: 1, payload: vec![7; len] }; count]
}

/// Opens the log, and says how many transactions there are and whether a tail was cut off.
fn open(disk: &SimVfs) -> (u64, bool) {
    let mut count = 0;
    let on = &mut |_: Transaction| {
        count += 1;
        Ok::<_, holotype_storage::Error>(())
    };
    let (log, report) =
        Log::open(Arc::new(disk.clone()), Path::new("/log"), None, &OpenOptions::default(), on).unwrap();
    drop(log);
    (count, report.tail.is_some())
}

/// Positions behind the durable end that nothing is written to: a long record begins a segment, and what is left of the
/// one before it is skipped.
fn skipped(disk: &SimVfs, log: &Log) -> u64 {
    let segments = log.segments();
    let (mut end, mut skipped) = (0, 0);
    for number in &segments[..segments.len() - 1] {
        let content = disk.bytes(Path::new(&format!("/log/{number:010}.log"))).unwrap();
        let used = end + content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
        end += content.len() as u64;
        skipped += end.saturating_sub(used.max(log.durable().0));
    }
    skipped
}

#[test]
fn what_is_not_synced_is_bounded_and_survives_no_crash_in_part() {
    let disk = SimVfs::new();
    let log = create(&disk);
    let mut appended = 0;
    for (count, len) in [(1, 60_000); 120].into_iter().chain([(40, 300_000), (1, 100), (3, 5 << 20), (1, 100)]) {
        log.append(&records(count, len), 0).unwrap();
        appended += 1;
        let transaction = (count * (len + 60_000)) as u64;
        let ahead = log.end().0 - log.durable().0 - skipped(&disk, &log);
        assert!(ahead <= AHEAD + transaction, "{ahead} bytes are not synced after transaction {appended}");
    }
    // Transactions synced on the way survive every crash; half of a transaction never does.
    let (kept, _) = open(&disk.crash(Crash::Lose));
    assert!((119..appended).contains(&kept), "{kept} of {appended} transactions are there");
    assert_eq!(open(&disk.crash(Crash::Keep)), (appended, false));
}

/// The log of one transaction, with what looks like a part of another so many bytes behind its end.
fn left_behind(distance: u64) -> SimVfs {
    let disk = SimVfs::new();
    let log = create(&disk);
    log.append(&records(1, 100), 0).unwrap();
    log.sync_to(log.end()).unwrap();
    let end = log.end().0;
    drop(log);
    let file = disk.open(Path::new(SEGMENT), OpenMode::ReadWrite).unwrap();
    file.write_at(&[9; 100], end + distance).unwrap();
    file.sync().unwrap();
    disk
}

#[test]
fn what_an_append_left_behind_a_hole_is_found_and_set_aside() {
    for distance in [40_000, AHEAD - 100_000, AHEAD - 100] {
        let disk = left_behind(distance);
        assert_eq!(open(&disk), (1, true), "{distance} bytes behind the end");
        assert_eq!(open(&disk), (1, false), "set aside, {distance} bytes behind the end");
    }
}

/// As much of nothing as a writer may be ahead is the end: looking costs no more, whatever the length of a segment.
#[test]
fn further_behind_nobody_looks() {
    let disk = left_behind(2 * AHEAD);
    assert_eq!(open(&disk), (1, false));
}
