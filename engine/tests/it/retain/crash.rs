//! A crash, or a failing call, at every step of it: the database is as it was, or as it was to be.

use super::{PLACE, faults, open, seen, write};
use holotype::{Holotype, Options, Space};
use holotype_storage::vfs::{Crash, Failure, Operation, SimVfs};
use std::sync::Arc;

/// Few commits whose log takes two files.
fn small() -> (SimVfs, u64, Vec<String>) {
    let disk = SimVfs::new();
    let create = Options { space: Some(Space::new("test", 2)), ..super::options() };
    let database = Holotype::create_on(Arc::new(disk.clone()), PLACE, create).unwrap();
    for number in 3..=9 {
        write(&database, number, 60_000, 80);
    }
    let newest = database.head().commit.0;
    let story = seen(&database, 1..=newest);
    database.close().unwrap();
    (disk, newest, story)
}

/// Checks a disk that a crash left, and says whether history is cut off on it.
fn check(disk: &SimVfs, since: u64, story: &[String], context: &str) -> bool {
    let database = open(disk, PLACE).unwrap_or_else(|error| panic!("{context}: {error}"));
    let from = database.history_since();
    assert!([0, since].contains(&from), "{context}: {from}");
    let newest = story.len() as u64;
    let of = |commit: u64| story[commit as usize - 1].clone();
    let kept = [from.max(1), newest];
    assert!(seen(&database, kept) == kept.map(of), "{context}");
    assert_eq!(faults(&database), [""; 0], "{context}");
    database.retain(since, None).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert!(seen(&database, [since, newest]) == [since, newest].map(of), "{context}, done again");
    assert_eq!(faults(&database), [""; 0], "{context}, done again");
    from == since
}

/// The distance between cases: 1 when the environment says `HOLOTYPE_EVERY_CASE`.
fn every() -> usize {
    if std::env::var_os("HOLOTYPE_EVERY_CASE").is_some() { 1 } else { 4 }
}

#[test]
fn a_crash_leaves_the_old_or_the_new() {
    let (disk, newest, story) = small();
    let since = newest - 1;
    let database = open(&disk, PLACE).unwrap();
    let begins = disk.history_len();
    let report = database.retain(since, Some(std::path::Path::new("/archive"))).unwrap();
    assert!(report.segments > 0, "{report:?}");
    let done = disk.history_len();
    let (mut old, mut new) = (0, 0);
    // The last operations, after which the new log is found, are few.
    let is_chosen = |at: usize| at.is_multiple_of(every()) || at + 8 > done;
    for (history_len, point) in disk.replay().enumerate().skip(begins).filter(|(at, _)| is_chosen(*at)) {
        for (number, crashed) in point.crashes(3, history_len as u64).into_iter().enumerate() {
            let context = format!("operation {history_len} of {begins} to {done}, state {number}");
            let is_new = check(&crashed, since, &story, &context);
            assert!(is_new || history_len < done, "{context}: it was acknowledged");
            *if is_new { &mut new } else { &mut old } += 1;
        }
    }
    assert!(old > 10 && new > 3, "{old} {new}");
}

/// Segments go only when the floor has its name for good. Were its directory not synced before, or before it had the
/// name, a crash would leave a log without a beginning; as it is, none does.
#[test]
fn without_the_sync_of_the_floors_name_a_crash_would_be_noticed() {
    let (disk, newest, _) = small();
    let database = open(&disk, PLACE).unwrap();
    let begins = disk.history_len();
    database.retain(newest - 1, None).unwrap();
    let changes = disk.history();
    let named = |change: &Operation| matches!(change, Operation::Rename(_, to) if to.ends_with("floor"));
    let rename = begins + changes[begins..].iter().position(named).unwrap();
    let is_sync = |change: &Operation| matches!(change, Operation::SyncDir(dir) if dir.ends_with("log"));
    let sync = rename + changes[rename..].iter().position(is_sync).unwrap();
    let whole: Vec<usize> = (0..changes.len()).collect();
    let mut without = whole.clone();
    without.remove(sync);
    let mut swapped = whole.clone();
    swapped[rename..=sync].rotate_left(1);
    assert!(changes[rename + 1..sync].is_empty());
    let is_noticed = |order: &[usize]| {
        let points = disk.reordered(order);
        let mut points = points.replay().enumerate().skip(rename);
        points.any(|(at, point)| {
            point
                .crashes(64, at as u64)
                .iter()
                .any(|crashed| Holotype::open_on(Arc::new(crashed.clone()), PLACE, super::options()).is_err())
        })
    };
    assert!(!is_noticed(&whole));
    assert!(is_noticed(&without), "without the sync");
    assert!(is_noticed(&swapped), "with the sync before the name");
}

#[test]
fn a_failing_call_leaves_the_old_or_the_new() {
    let (disk, newest, story) = small();
    let since = newest - 1;
    let mut failed = 0;
    for call in (0..).step_by(every() * 5) {
        let disk = disk.crash(Crash::Keep);
        let database = open(&disk, PLACE).unwrap();
        disk.fail_at(disk.calls() + call, Failure::Io, true);
        let retained = database.retain(since, Some(std::path::Path::new("/archive")));
        drop(database);
        disk.heal();
        let context = format!("call {call}: {retained:?}");
        let is_new = check(&disk.crash(Crash::Seeded(call)), since, &story, &context);
        if let Ok(report) = retained {
            assert!(is_new && report.since == since, "{context}");
            break;
        }
        failed += 1;
    }
    assert!(failed > 5, "{failed}");
}
