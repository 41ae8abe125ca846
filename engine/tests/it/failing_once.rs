//! Each call of the file system fails once, in each step of what changes more than the end of the log: a checkpoint, a
//! compaction, a retention, a forget, a salvage. The same handle then finishes the job, or says that it must be opened
//! again and the next one finishes it; nothing is lost, and nothing is found wrong.
//!
//! Backups have their own test in `space`. Handles that take turns are tried, too, and another handle goes on meanwhile.

use crate::observed::{everything, faults};
use holotype::{Durability, Forget, Holotype, NewRecall, NewTrace, Options, Pointer, Space, salvage_on};
use holotype_storage::vfs::{Crash, Failure, SimVfs, Vfs};
use std::path::Path;
use std::sync::Arc;

const PATH: &str = "/db";

/// No checkpoint in the background, which would meet the failures.
fn options(exclusive: bool) -> Options {
    Options { page_size: 4096, checkpoint_records: 1 << 40, checkpoint_bytes: 1 << 40, exclusive, ..Options::shared() }
}

fn on(sim: &SimVfs) -> Arc<dyn Vfs> {
    Arc::new(sim.clone())
}

fn open(sim: &SimVfs, exclusive: bool) -> Holotype {
    Holotype::open_on(on(sim), PATH, options(exclusive)).unwrap()
}

fn write(database: &Holotype, number: u64) {
    let mut transaction = database.begin().unwrap();
    let key = format!("t{number}");
    let text = format!("{number} was said {}", "and on ".repeat(number as usize % 50));
    transaction.record(NewTrace::turn("e", text).key(key.clone()).vector(vec![1.0, number as f32])).unwrap();
    let fact = NewRecall::fact(format!("{number} holds")).key(format!("r{number}")).vector(vec![number as f32, 1.0]);
    transaction.remember(fact.from(Pointer::to_key(key))).unwrap();
    transaction.commit(Durability::Sync).unwrap();
}

/// A database with some checkpoints and commits behind them, as a process that was killed leaves it.
fn filled() -> SimVfs {
    let sim = SimVfs::new();
    let space = Some(Space::new("test", 2));
    let database = Holotype::create_on(on(&sim), PATH, Options { space, ..options(true) }).unwrap();
    for number in 0..22 {
        write(&database, number);
        if number % 8 == 7 {
            database.checkpoint().unwrap();
        }
    }
    sim.crash(Crash::Keep)
}

/// Compares what is seen with what is expected, and says the first line that differs.
fn assert_same(database: &Holotype, expected: &str, context: &str) {
    let seen = everything(&database.snapshot()).unwrap();
    if let Some((seen, expected)) = seen.lines().zip(expected.lines()).find(|(seen, expected)| seen != expected) {
        panic!("{context}:\n{seen}\ninstead of\n{expected}");
    }
    assert_eq!(seen.len(), expected.len(), "{context}");
}

/// Runs a job with each call failing once, on handles of both kinds.
fn fails_once(job: fn(&Holotype) -> holotype::Result<()>) {
    let base = filled();
    for exclusive in [true, false] {
        let begun = || {
            let sim = base.crash(Crash::Keep);
            let database = open(&sim, exclusive);
            (sim, database)
        };
        let (sim, database) = begun();
        let before = sim.calls();
        job(&database).unwrap();
        let calls = sim.calls() - before;
        let expected = everything(&database.snapshot()).unwrap();
        let mut failed = 0;
        for call in 1..=calls {
            let context = format!("call {call} of {calls}, exclusive {exclusive}");
            let (sim, database) = begun();
            sim.fail_at(sim.calls() + call, Failure::Io, false);
            let done = job(&database);
            let was_done = done.is_ok();
            sim.heal();
            let ended = done.or_else(|error| {
                failed += 1;
                assert!(error.to_string().contains('/') || error.code() == "poisoned", "{context}: {error}");
                job(&database)
            });
            if let Err(error) = &ended {
                let told = ["open the database again", "reopen the database"];
                let says_what_to_do = told.iter().any(|told| error.to_string().contains(told));
                assert!(error.code() == "poisoned" || says_what_to_do, "{context}: {error}");
            } else {
                assert_same(&database, &expected, &context);
                if was_done {
                    assert_eq!(faults(&database), Vec::<String>::new(), "{context}");
                }
            }
            if !exclusive {
                // The other one does not even learn of it.
                let other = open(&sim, false);
                if ended.is_ok() {
                    assert_same(&other, &expected, &format!("{context}, seen by another"));
                }
                write(&other, 0xffff);
                write(&other, 0xfffe);
                assert_eq!(faults(&other), Vec::<String>::new(), "{context}, seen by another");
                continue;
            }
            drop(database);
            let database = open(&sim, exclusive);
            assert_eq!(database.report().damage, None, "{context}");
            if ended.is_err() {
                job(&database).unwrap();
            }
            assert_same(&database, &expected, &format!("{context}, opened again"));
            assert_eq!(faults(&database), Vec::<String>::new(), "{context}, opened again");
            write(&database, 0xffff);
        }
        assert!(calls > 10 && failed * 4 > calls, "{failed} of {calls} calls failed, exclusive {exclusive}");
    }
}

#[test]
fn a_checkpoint_ends_whichever_call_fails_once() {
    fails_once(Holotype::checkpoint);
}

#[test]
fn a_compaction_ends_whichever_call_fails_once() {
    fails_once(|database| database.compact().map(drop));
}

#[test]
fn a_retention_ends_whichever_call_fails_once() {
    fails_once(|database| database.retain(20, None).map(drop));
}

#[test]
fn a_forget_ends_whichever_call_fails_once() {
    fails_once(|database| {
        drop(database.begin()?);
        let snapshot = database.snapshot();
        let item = snapshot.get("t3")?;
        let due: Vec<_> = item.filter(|item| !item.attributes.redacted).map(|item| item.id).into_iter().collect();
        drop(snapshot);
        if due.is_empty() { Ok(()) } else { database.forget(&due, &Forget::because("asked")).map(drop) }
    });
}

#[test]
fn a_salvage_ends_whichever_call_fails_once() {
    let base = filled();
    let seen = |sim: &SimVfs| {
        let saved = Holotype::open_on(on(sim), "/saved", options(true)).unwrap();
        assert_eq!(faults(&saved), Vec::<String>::new());
        saved.snapshot().len()
    };
    let sim = base.crash(Crash::Keep);
    let before = sim.calls();
    salvage_on(on(&sim), PATH, "/saved").unwrap();
    let (calls, expected) = (sim.calls() - before, seen(&sim));
    let mut failed = 0;
    for call in 1..=calls {
        let sim = base.crash(Crash::Keep);
        sim.fail_at(sim.calls() + call, Failure::Io, false);
        let saved = salvage_on(on(&sim), PATH, "/saved");
        sim.heal();
        if let Err(error) = saved {
            failed += 1;
            assert!(error.to_string().contains('/'), "call {call}: {error}");
            if sim.list(Path::new("/saved")).is_err() {
                salvage_on(on(&sim), PATH, "/saved").unwrap();
            }
        }
        assert_eq!(seen(&sim), expected, "call {call} of {calls}");
        let source = open(&sim, true);
        assert_eq!(faults(&source), Vec::<String>::new(), "call {call} of {calls}");
    }
    assert!(failed * 2 > calls, "{failed} of {calls} calls failed");
}
