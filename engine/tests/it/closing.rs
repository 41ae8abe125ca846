//! Closing gives the database to others at once, whatever is still held of it, and a path stays what it was.
#![cfg(unix)]

use holotype::query::Params;
use holotype::time::FixedClock;
use holotype::{Durability, Holotype, NewRecall, NewTrace, Options, Pointer, Space, interchange};
use std::sync::Arc;

fn options() -> Options {
    Options { space: Some(Space::new("test", 2)), ..Options::default() }
}

fn record(database: &Holotype, key: &str) {
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("e", "as it was said").key(key)).unwrap();
    transaction.commit(Durability::Sync).unwrap();
}

/// `close` reported success and the lock stayed with the snapshot: the next opening was refused.
#[test]
fn a_snapshot_does_not_keep_a_closed_database() {
    for options in [options(), Options { space: options().space, ..Options::shared() }] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("memory.holo");
        let database = Holotype::create(&path, options).unwrap();
        record(&database, "first");
        let snapshot = database.snapshot();
        database.close().unwrap();
        let next = Holotype::open(&path, Options::default()).unwrap();
        record(&next, "second");
        next.checkpoint().unwrap();
        assert_eq!(snapshot.keys("", 10).unwrap(), ["first"]);
        assert_eq!(snapshot.get("first").unwrap().unwrap().content.text(), "as it was said");
        drop(snapshot);
        assert!(next.verify(&mut |_, _| {}).unwrap().is_clean());
        next.close().unwrap();
    }
}

/// A file within a database would be taken for a file of it.
#[test]
fn nothing_is_copied_into_the_database_itself() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    let database = Holotype::create(&path, options()).unwrap();
    record(&database, "first");
    std::os::unix::fs::symlink(&path, dir.path().join("link")).unwrap();
    for within in
        [path.join("copy"), path.join("log/copy"), dir.path().join("link/copy"), path.join("../memory.holo/x")]
    {
        let refused = database.backup(&within, &mut |_, _| {}).unwrap_err();
        assert_eq!(refused.code(), "invalid", "{refused}");
    }
    database.backup(dir.path().join("copy.holo"), &mut |_, _| {}).unwrap();
    assert!(database.verify(&mut |_, _| {}).unwrap().is_clean());
}

/// A log of few large records has no file that can go: each retention wrote all of it again, and it grew.
#[test]
fn retaining_what_has_no_file_to_remove_does_not_make_it_longer() {
    let dir = tempfile::tempdir().unwrap();
    let database = Holotype::create(dir.path().join("memory.holo"), options()).unwrap();
    for number in 0..20 {
        let mut transaction = database.begin().unwrap();
        transaction.record(NewTrace::turn("e", format!("{number} ").repeat(10_000))).unwrap();
        transaction.commit(Durability::Sync).unwrap();
    }
    let before = database.head();
    let report = database.retain(before.commit.0 - 1, None).unwrap();
    assert_eq!((report.records, report.segments, database.head()), (0, 0, before));
    database.query("count traces as of commit 2", &Params::new()).unwrap();
}

/// An age names the last commit that is older.
#[test]
fn history_is_kept_by_its_age() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    const DAY: i64 = 86_400_000_000;
    let start = 1_770_000_000_000_000;
    let at = |day: i64, space| {
        let clock: Arc<dyn holotype::time::Clock> = Arc::new(FixedClock(start + day * DAY));
        Options { clock, space, ..Options::default() }
    };
    Holotype::create(&path, at(0, options().space)).unwrap().close().unwrap();
    for day in [10, 20, 30] {
        let database = Holotype::open(&path, at(day, None)).unwrap();
        record(&database, &format!("day {day}"));
        database.close().unwrap();
    }
    let database = Holotype::open(&path, at(100, None)).unwrap();
    let older = |days: u64| database.commit_older_than(days * DAY as u64).unwrap();
    assert_eq!([older(200), older(95), older(85), older(75), older(0)], [0, 1, 2, 3, 4]);
    assert_eq!(database.retain(older(75), None).unwrap().since, 3);
    assert_eq!((database.history_since(), older(200)), (3, 3));
}

/// Each word is looked up in every segment, and a time limit is looked at only between steps.
#[test]
fn a_question_of_too_many_words_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let database = Holotype::create(dir.path().join("memory.holo"), options()).unwrap();
    record(&database, "first");
    let ask = |count: u32| {
        let words: Vec<String> = (0..count).map(|number| format!("word{number}")).collect();
        database.query(&format!("recall '{}' limit 3 return key", words.join(" ")), &Params::new())
    };
    assert_eq!(ask(20_000).unwrap_err().code(), "limit");
    ask(1_000).unwrap();
}

/// A clock past the last time that can be written gave every later commit a time that no export could write.
#[test]
fn a_clock_past_the_year_9999_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    let good = 1_770_000_000_000_000;
    let with_clock = |time| Options { clock: Arc::new(FixedClock(time)), ..options() };
    let database = Holotype::create(&path, with_clock(good)).unwrap();
    database.close().unwrap();
    let database = Holotype::open(&path, Options { space: None, ..with_clock(i64::MAX - 1) }).unwrap();
    record(&database, "first");
    let mut out = Vec::new();
    interchange::export(&database.snapshot(), &mut out, None).unwrap();
    let lines = String::from_utf8(out).unwrap();
    assert!(!lines.contains("9999-"), "{lines}");
}

/// A fact that rests on nothing could be made and not be updated.
#[test]
fn what_is_ungrounded_stays_so_when_it_is_updated() {
    let dir = tempfile::tempdir().unwrap();
    let database = Holotype::create(dir.path().join("memory.holo"), options()).unwrap();
    record(&database, "evidence");
    let mut transaction = database.begin().unwrap();
    transaction.remember(NewRecall::fact("a guess").key("k").ungrounded()).unwrap();
    transaction.update("k", NewRecall::fact("a better guess")).unwrap();
    transaction.update("k", NewRecall::fact("it was said").from(Pointer::to_key("evidence"))).unwrap();
    transaction.update("k", NewRecall::fact("it was said so")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let found = database.query("find facts return key, text", &Params::new()).unwrap();
    assert!(format!("{found:?}").contains("it was said so"), "{found:?}");
}
