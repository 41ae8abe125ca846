//! The witness: with it, opening refuses a database that was rolled back, written anew, or signed by somebody else; and
//! whatever crashes or fails, it never refuses the database that was written.

use holotype::{Durability, Error, Forget, Holotype, NewTrace, Options};
use holotype_storage::vfs::{Crash, Failure, LockKind, OpenMode, SimVfs, Vfs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const DB: &str = "/db";
const WITNESS: &str = "/witness";
const KEY: &str = "/witness.key";

fn options() -> Options {
    Options { page_size: 4096, witness: Some(WITNESS.into()), ..Options::default() }
}

fn on(sim: &SimVfs) -> Arc<dyn Vfs> {
    Arc::new(sim.clone())
}

fn create(sim: &SimVfs) -> Holotype {
    Holotype::create_on(on(sim), DB, options()).unwrap()
}

fn open(sim: &SimVfs, options: Options) -> holotype::Result<Holotype> {
    Holotype::open_on(on(sim), DB, options)
}

fn write(database: &Holotype, text: &str) -> holotype::Result<()> {
    let mut transaction = database.begin()?;
    transaction.record(NewTrace::turn("e", text).key(text))?;
    transaction.commit(Durability::Sync).map(drop)
}

/// The code of the error of opening, for writing and for reading.
fn refusals(sim: &SimVfs) -> [&'static str; 2] {
    [false, true].map(|read_only| open(sim, Options { read_only, ..options() }).map_or_else(|e| e.code(), |_| "opened"))
}

/// Copies files from one disk to another.
fn copy(from: &SimVfs, to: &SimVfs, paths: &[&str]) {
    for path in paths {
        to.replace(Path::new(path), &from.bytes(Path::new(path)).unwrap());
    }
}

#[test]
fn a_database_that_was_rolled_back_is_refused() {
    let sim = SimVfs::new();
    let database = create(&sim);
    let mut copies = vec![sim.crash(Crash::Keep)];
    for text in ["one", "two", "three"] {
        write(&database, text).unwrap();
        copies.push(sim.crash(Crash::Keep));
    }
    database.checkpoint().unwrap();
    copies.push(sim.crash(Crash::Keep));
    write(&database, "four").unwrap();
    database.close().unwrap();
    for old in &copies {
        assert_eq!(refusals(&old.crash(Crash::Keep)), ["opened"; 2], "a copy with its own witness");
        copy(&sim, old, &[WITNESS]);
        assert_eq!(refusals(old), ["rolled-back"; 2]);
    }
    // Restored on purpose.
    let restored = &copies[2];
    restored.remove(Path::new(WITNESS)).unwrap();
    assert_eq!(refusals(restored), ["witness-missing"; 2]);
    let accepting = Options { accept_witness: true, ..options() };
    write(&open(restored, accepting.clone()).unwrap(), "another").unwrap();
    assert_eq!(refusals(restored), ["opened"; 2]);
    assert_eq!(refusals(&sim), ["opened"; 2]);
    // It does not excuse a witness that is there.
    copy(&sim, restored, &[WITNESS]);
    assert!(open(restored, accepting).is_err());
}

#[test]
fn another_history_of_the_same_database_is_refused() {
    let sim = SimVfs::new();
    let database = create(&sim);
    write(&database, "as it was").unwrap();
    let fork = sim.crash(Crash::Keep);
    write(&database, "what happened").unwrap();
    database.close().unwrap();
    let forked = open(&fork, Options { witness: None, ..options() }).unwrap();
    for text in ["what did not", "and more", "and so on"] {
        write(&forked, text).unwrap();
    }
    forked.close().unwrap();
    copy(&sim, &fork, &[WITNESS]);
    assert_eq!(refusals(&fork), ["forged"; 2]);
}

#[test]
fn a_witness_of_another_key_or_database_is_refused() {
    let (sim, other) = (SimVfs::new(), SimVfs::new());
    for disk in [&sim, &other] {
        let database = create(disk);
        write(&database, "text").unwrap();
        database.close().unwrap();
    }
    let kept = other.crash(Crash::Keep);
    copy(&sim, &other, &[WITNESS]);
    assert_eq!(refusals(&other), ["forged"; 2], "another key");
    copy(&sim, &other, &[WITNESS, KEY]);
    assert_eq!(refusals(&other), ["forged"; 2], "another database");
    // Of the right one, no byte may change.
    let (note, key) = (kept.bytes(Path::new(WITNESS)).unwrap(), kept.bytes(Path::new(KEY)).unwrap());
    for at in 0..note.len() {
        let mut changed = note.clone();
        changed[at] ^= 1;
        kept.replace(Path::new(WITNESS), &changed);
        assert_eq!(refusals(&kept), ["forged"; 2], "byte {at}");
    }
    kept.replace(Path::new(WITNESS), &note);
    kept.replace(Path::new(KEY), b"no key");
    assert_eq!(refusals(&kept), ["forged"; 2]);
    kept.replace(Path::new(KEY), &vec![b' '; 5_000]);
    assert_eq!(refusals(&kept), ["forged"; 2]);
    kept.replace(Path::new(KEY), &key);
    assert_eq!(refusals(&kept), ["opened"; 2]);
}

#[test]
fn a_witness_is_outside_the_database_and_new_with_it() {
    let sim = SimVfs::new();
    let within = Options { witness: Some(PathBuf::from("/db/witness")), ..options() };
    assert!(matches!(Holotype::create_on(on(&sim), DB, within.clone()), Err(Error::Invalid(_))));
    let sim = SimVfs::new();
    create(&sim).close().unwrap();
    assert!(matches!(open(&sim, within), Err(Error::Invalid(_))));
    let again = Holotype::create_on(on(&sim), "/second", options());
    assert!(matches!(again, Err(Error::Exists { path }) if path == Path::new(WITNESS)));
}

#[test]
fn what_changes_the_files_keeps_the_witness_right() {
    let sim = SimVfs::new();
    let database = create(&sim);
    for number in 0..20 {
        write(&database, &format!("text {number}")).unwrap();
    }
    let id = database.snapshot().get("text 3").unwrap().unwrap().id;
    database.forget(&[id], &Forget::because("asked")).unwrap();
    assert_eq!(refusals_of_reader(&sim), "opened");
    database.compact().unwrap();
    database.seal().unwrap();
    write(&database, "after").unwrap();
    let floor = database.head().commit.0 - 5;
    database.retain(floor, None).unwrap();
    write(&database, "at last").unwrap();
    assert_eq!(refusals_of_reader(&sim), "opened");
    database.close().unwrap();
    assert_eq!(refusals(&sim), ["opened"; 2]);
    let rebuilt = Holotype::rebuild_on(on(&sim), DB, options()).unwrap();
    assert!(rebuilt.snapshot().get("at last").unwrap().is_some());
}

/// As [`refusals`], beside a writer.
fn refusals_of_reader(sim: &SimVfs) -> &'static str {
    open(sim, Options { read_only: true, ..options() }).map_or_else(|error| error.code(), |_| "opened")
}

#[test]
fn no_crash_makes_the_witness_refuse_what_was_written() {
    let sim = SimVfs::new();
    let database = create(&sim);
    for number in 0..6 {
        let before = sim.crash(Crash::Keep);
        write(&database, &format!("text {number}")).unwrap();
        for crashed in sim.crashes(40, number).into_iter().chain([before]) {
            assert_eq!(refusals(&crashed), ["opened"; 2], "commit {number}");
        }
    }
}

#[test]
fn a_witness_that_cannot_be_written_is_written_before_the_next_transaction() {
    let sim = SimVfs::new();
    // No checkpoint in the background, which would meet the failures.
    let database = Holotype::create_on(on(&sim), DB, Options { checkpoint_records: 1 << 40, ..options() }).unwrap();
    write(&database, "first").unwrap();
    let before = sim.calls();
    write(&database, "second").unwrap();
    let calls = sim.calls() - before;
    let mut missed = 0;
    // The last calls are those of the witness.
    for call in (0..calls).rev() {
        let old = sim.bytes(Path::new(WITNESS)).unwrap();
        sim.fail_at(sim.calls() + call, Failure::Io, true);
        let acknowledged = write(&database, &format!("text {call}")).is_ok();
        let is_old = sim.bytes(Path::new(WITNESS)).unwrap() == old;
        if acknowledged && is_old {
            missed += 1;
            assert!(write(&database, "refused").is_err(), "while the witness is behind");
        }
        sim.heal();
        if !acknowledged {
            // The log may refuse further writes: the next opening goes on.
            break;
        }
        write(&database, &format!("after {call}")).unwrap();
        assert_ne!(sim.bytes(Path::new(WITNESS)).unwrap(), old);
        assert_eq!(refusals_of_reader(&sim), "opened");
    }
    drop(database);
    assert_eq!(refusals(&sim), ["opened"; 2]);
    assert!(missed > 3, "{missed}: creating, writing, syncing and renaming a file failed");
}

fn shared() -> Options {
    Options { exclusive: false, write_timeout: std::time::Duration::ZERO, ..options() }
}

/// The commit in the witness.
fn witnessed(bytes: &[u8]) -> u64 {
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines().find_map(|line| line.strip_prefix("commit ")).unwrap().parse().unwrap()
}

#[test]
fn handles_that_take_turns_keep_one_witness() {
    let sim = SimVfs::new();
    let one = Holotype::create_on(on(&sim), DB, shared()).unwrap();
    let other = open(&sim, shared()).unwrap();
    let now = || witnessed(&sim.bytes(Path::new(WITNESS)).unwrap());
    for number in 0..10 {
        let (writer, reader) = if number % 2 == 0 { (&one, &other) } else { (&other, &one) };
        write(writer, &format!("text {number}")).unwrap();
        assert_eq!(now(), writer.head().commit.0);
        assert_eq!(refusals_of_reader(&sim), "opened");
        reader.checkpoint().unwrap();
        assert_eq!(now(), writer.head().commit.0);
    }
    // Gone, it is written again; another file in its place is none of theirs.
    sim.remove(Path::new(WITNESS)).unwrap();
    write(&one, "without").unwrap();
    assert_eq!(now(), 11);
    let note = sim.bytes(Path::new(WITNESS)).unwrap();
    sim.replace(Path::new(WITNESS), b"something else");
    write(&other, "stands").unwrap();
    assert_eq!(write(&other, "refused").unwrap_err().code(), "forged");
    sim.replace(Path::new(WITNESS), &note);
    write(&other, "again").unwrap();
    assert_eq!(now(), 13);
    one.close().unwrap();
    other.close().unwrap();
    assert_eq!(refusals(&sim), ["opened"; 2]);
}

#[test]
fn no_handle_replaces_the_head_of_another_by_an_earlier_one() {
    let sim = SimVfs::new();
    let one = Holotype::create_on(on(&sim), DB, shared()).unwrap();
    let other = open(&sim, shared()).unwrap();
    write(&one, "first").unwrap();
    // The key is locked while the first handle commits, as if another one wrote the witness: it misses its head.
    let key = sim.open(Path::new(KEY), OpenMode::ReadWrite).unwrap();
    assert!(key.try_lock(0..1, LockKind::Exclusive).unwrap());
    write(&one, "second").unwrap();
    assert_eq!(witnessed(&sim.bytes(Path::new(WITNESS)).unwrap()), 1);
    assert!(write(&one, "refused").unwrap_err().to_string().contains("keeps it locked"));
    drop(key);
    write(&other, "third").unwrap();
    let newest = sim.bytes(Path::new(WITNESS)).unwrap();
    assert_eq!(witnessed(&newest), 3);
    drop(one.begin().unwrap());
    assert_eq!(sim.bytes(Path::new(WITNESS)).unwrap(), newest);
}

#[test]
fn threads_of_two_handles_move_the_witness_forward_only() {
    let dir = tempfile::tempdir().unwrap();
    let (path, witness) = (dir.path().join("db"), dir.path().join("witness"));
    let options = Options { witness: Some(witness.clone()), page_size: 4096, ..Options::shared() };
    let one = Holotype::create(&path, options.clone()).unwrap();
    let other = Holotype::open(&path, options.clone()).unwrap();
    write(&one, "first").unwrap();
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (name, handle) in [("a", &one), ("b", &one), ("c", &other), ("d", &other)] {
            let done = &done;
            scope.spawn(move || {
                for number in 0..25 {
                    write(handle, &format!("{name}{number}")).unwrap();
                }
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        let mut seen = 0;
        while done.load(Ordering::SeqCst) < 4 {
            let commit = witnessed(&std::fs::read(&witness).unwrap());
            assert!(commit >= seen, "{commit} after {seen}");
            seen = commit;
        }
    });
    assert_eq!(witnessed(&std::fs::read(&witness).unwrap()), 101);
    drop((one, other));
    assert_eq!(Holotype::open(&path, options).unwrap().snapshot().len(), 101);
}
