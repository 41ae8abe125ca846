//! Files are deleted or replaced beneath a process that writes: a "stale" LOCK is removed, a folder is restored from a
//! backup. Two writers could then each believe to be the only one, and what one of them acknowledged was lost without
//! a word. Now the second one is refused, or the first one stops and says why.
#![cfg(unix)]

use holotype::{Durability, Error, Holotype, NewTrace, Options, Space};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn created(options: Options) -> (tempfile::TempDir, PathBuf, Holotype) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    let database = Holotype::create(&path, Options { space: Some(Space::new("test", 2)), ..options }).unwrap();
    record(&database, "first").unwrap();
    (dir, path, database)
}

fn shared() -> Options {
    Options { write_timeout: Duration::from_millis(50), ..Options::shared() }
}

fn record(database: &Holotype, key: &str) -> Result<(), Error> {
    let mut transaction = database.begin()?;
    transaction.record(NewTrace::turn("e", format!("what {key} says")).key(key))?;
    transaction.commit(Durability::Sync).map(|_| ())
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_dir(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// The keys that a database holds in the end; it has no fault.
fn keys(path: &Path) -> Vec<String> {
    let database = Holotype::open(path, Options::read_only()).unwrap();
    assert_eq!(database.verify(&mut |_, _| {}).unwrap().faults, []);
    database.snapshot().keys("", 100).unwrap()
}

#[test]
fn a_second_writer_is_refused_after_lock_was_deleted_and_the_first_one_stops() {
    let (_dir, path, first) = created(Options::default());
    fs::remove_file(path.join("LOCK")).unwrap();
    let second = Holotype::open(&path, Options::default());
    assert_eq!(second.unwrap_err().code(), "locked");
    // The refused one made another LOCK.
    let refused = record(&first, "second").unwrap_err();
    assert_eq!(refused.code(), "replaced");
    assert!(refused.to_string().contains("LOCK: was deleted or replaced"), "{refused}");
    drop(first);
    record(&Holotype::open(&path, Options::default()).unwrap(), "third").unwrap();
    assert_eq!(keys(&path), ["first", "third"]);
}

#[test]
fn handles_that_take_turns_stop_once_lock_is_another_file() {
    let (_dir, path, one) = created(shared());
    let other = Holotype::open(&path, shared()).unwrap();
    record(&other, "second").unwrap();
    fs::remove_file(path.join("LOCK")).unwrap();
    let newest = Holotype::open(&path, shared()).unwrap();
    record(&newest, "third").unwrap();
    for old in [&one, &other] {
        assert_eq!(record(old, "lost").unwrap_err().code(), "replaced");
        assert_eq!(old.checkpoint().unwrap_err().code(), "replaced");
    }
    drop((one, other));
    record(&newest, "fourth").unwrap();
    newest.close().unwrap();
    assert_eq!(keys(&path), ["first", "fourth", "second", "third"]);
}

#[test]
fn a_turn_under_the_old_lock_keeps_those_with_the_new_one_waiting() {
    let (_dir, path, one) = created(shared());
    let mut transaction = one.begin().unwrap();
    transaction.record(NewTrace::turn("e", "under way").key("second")).unwrap();
    fs::remove_file(path.join("LOCK")).unwrap();
    assert_eq!(Holotype::open(&path, shared()).unwrap_err().code(), "locked");
    transaction.commit(Durability::Sync).unwrap();
    drop(one);
    record(&Holotype::open(&path, shared()).unwrap(), "third").unwrap();
    assert_eq!(keys(&path), ["first", "second", "third"]);
}

#[test]
fn a_folder_that_is_restored_beneath_a_writer_stays_as_it_was_restored() {
    for options in [Options::default(), shared()] {
        let (dir, path, database) = created(options);
        let backup = dir.path().join("backup");
        copy_dir(&path, &backup);
        record(&database, "second").unwrap();
        fs::rename(&path, dir.path().join("away")).unwrap();
        copy_dir(&backup, &path);
        assert_eq!(record(&database, "third").unwrap_err().code(), "replaced");
        assert_eq!(database.checkpoint().unwrap_err().code(), "replaced");
        database.close().unwrap_err();
        assert_eq!(keys(&path), ["first"]);
        record(&Holotype::open(&path, Options::default()).unwrap(), "fourth").unwrap();
        assert_eq!(keys(&path), ["first", "fourth"]);
    }
}

#[test]
fn a_commit_into_a_log_file_that_was_replaced_is_not_acknowledged() {
    let (_dir, path, database) = created(Options::default());
    let log = path.join("log/0000000001.log");
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("e", "into the void").key("second")).unwrap();
    fs::copy(&log, path.join("log/copy")).unwrap();
    fs::rename(path.join("log/copy"), &log).unwrap();
    let failed = transaction.commit(Durability::Sync).unwrap_err();
    assert!(failed.to_string().contains("0000000001.log: was deleted or replaced"), "{failed}");
    assert_eq!(record(&database, "third").unwrap_err().code(), "poisoned");
    drop(database);
    assert_eq!(keys(&path), ["first"]);
}

#[test]
fn a_handle_of_this_process_is_named_as_such() {
    let (_dir, path, _database) = created(Options::default());
    let refused = Holotype::open(&path, Options::default()).unwrap_err().to_string();
    assert!(refused.contains("another handle of this process"), "{refused}");
}

/// The new derived files of two copies had the same names and identities, so one that a synchronising folder put into
/// the other was believed: wrong answers, and `verify` found nothing.
#[test]
fn copies_that_are_written_separately_give_their_files_different_names() {
    let (dir, path, database) = created(Options::default());
    database.close().unwrap();
    let copy = dir.path().join("copy.holo");
    copy_dir(&path, &copy);
    let write = |path: &Path, key: &str| {
        let database = Holotype::open(path, Options::default()).unwrap();
        record(&database, key).unwrap();
        database.close().unwrap();
    };
    write(&path, "here");
    write(&copy, "there");
    let names = |path: &Path, form: &str| -> Vec<PathBuf> {
        fs::read_dir(path.join(form)).unwrap().map(|entry| entry.unwrap().file_name().into()).collect()
    };
    for form in ["words", "columns"] {
        let (of_one, of_other) = (names(&path, form), names(&copy, form));
        let newest = |names: &[PathBuf]| names.iter().max().cloned().unwrap();
        assert_ne!(newest(&of_one), newest(&of_other), "{form}");
        // Under the name of the own file it is refused, and made again from the log.
        fs::copy(copy.join(form).join(newest(&of_other)), path.join(form).join(newest(&of_one))).unwrap();
    }
    let database = Holotype::open(&path, Options::default()).unwrap();
    assert!(database.report().rebuilt.is_some());
    assert!(database.verify(&mut |_, _| {}).unwrap().is_clean());
    let found = database.snapshot().recall("says").run().unwrap();
    let keys: Vec<_> = found.rows.iter().map(|row| row.key.as_str()).collect();
    assert!(keys.contains(&"here") && !keys.contains(&"there"), "{keys:?}");
}
