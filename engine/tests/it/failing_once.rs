//! Each change of a file fails once, in each step of what changes more than the end of the log: a checkpoint, a
//! compaction, a retention, a forget, a salvage. The same handle then finishes the job, or says that it must be opened
//! again and the next one finishes it; nothing is lost, and nothing is found wrong.
//!
//! Backups have their own test in `space`. Handles that take turns are tried, too; another handle then goes on beside.

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
    let word = if number == 3 { "velvet" } else { "and on" };
    let text = format!("{number} was said {}", format!("{word} ").repeat(number as usize % 50));
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

/// All that is seen, but for the number of the last commit: a retention that failed late is made again in another one.
fn seen(database: &Holotype) -> String {
    let mut seen = everything(&database.snapshot()).unwrap();
    seen.truncate(seen.rfind("commit ").unwrap());
    seen
}

/// Compares what is seen with what is expected, and says the first line that differs.
fn assert_same(database: &Holotype, expected: &str, context: &str) {
    let seen = seen(database);
    if let Some((seen, expected)) = seen.lines().zip(expected.lines()).find(|(seen, expected)| seen != expected) {
        panic!("{context}:\n{seen}\ninstead of\n{expected}");
    }
    assert_eq!(seen.len(), expected.len(), "{context}");
}

/// The calls after `before` that fail one after the other: those that change something, and the others too if
/// `HOLOTYPE_EVERY_CALL` is set.
fn failing_calls(sim: &SimVfs, before: u64) -> Vec<u64> {
    match std::env::var_os("HOLOTYPE_EVERY_CALL") {
        Some(_) => (0..sim.calls() - before).collect(),
        None => sim.changing_calls().into_iter().filter_map(|call| call.checked_sub(before)).collect(),
    }
}

/// A job, run on a handle once or twice; and a word that is in no file after it.
#[derive(Clone, Copy)]
struct Job {
    run: fn(&Holotype) -> holotype::Result<()>,
    erased: Option<&'static str>,
}

impl Job {
    fn assert_erased(&self, sim: &SimVfs, context: &str) {
        let Some(word) = self.erased else { return };
        for path in sim.files() {
            let bytes = sim.bytes(&path).unwrap();
            let found = bytes.windows(word.len()).any(|window| window == word.as_bytes());
            assert!(!found, "{context}: {} still has the forgotten text", path.display());
        }
    }

    /// Runs the job with one call failing, and again where that made it fail; then opens the database again.
    fn fails_at(&self, base: &SimVfs, exclusive: bool, call: u64, expected: &str, context: &str) -> bool {
        let sim = base.crash(Crash::Keep);
        let database = open(&sim, exclusive);
        let kind = if call.is_multiple_of(2) { Failure::Io } else { Failure::NoSpace };
        sim.fail_at(sim.calls() + call, kind, false);
        let first = (self.run)(&database);
        sim.heal();
        let failed = first.is_err();
        let ended = first.or_else(|error| {
            let names_a_file = error.to_string().contains('/');
            assert!(names_a_file || error.code() == "poisoned", "{context}: {error}");
            (self.run)(&database)
        });
        match &ended {
            Ok(()) => {
                assert_same(&database, expected, context);
                assert_eq!(faults(&database), Vec::<String>::new(), "{context}");
                self.assert_erased(&sim, context);
            }
            Err(error) => {
                let told = error.to_string();
                let says_what_to_do =
                    ["open the database again", "reopen the database"].iter().any(|it| told.contains(it));
                assert!(says_what_to_do, "{context}: {told}");
            }
        }
        match exclusive {
            true => drop(database),
            // Another one goes on beside it, and does not even learn of it.
            false => {
                return self.goes_on(&sim, ended.is_ok(), expected, &format!("{context}, another handle")) | failed;
            }
        }
        let database = open(&sim, exclusive);
        assert_eq!(database.report().damage, None, "{context}");
        if ended.is_err() {
            (self.run)(&database).unwrap();
        }
        assert_same(&database, expected, &format!("{context}, opened again"));
        self.assert_erased(&sim, &format!("{context}, opened again"));
        write(&database, 0xffff);
        assert_eq!(faults(&database), Vec::<String>::new(), "{context}, opened again");
        failed
    }

    fn goes_on(&self, sim: &SimVfs, ended: bool, expected: &str, context: &str) -> bool {
        let other = open(sim, false);
        if ended {
            assert_same(&other, expected, context);
        }
        write(&other, 0xffff);
        let has_text = |item: holotype::Item| !item.attributes.redacted;
        if self.erased.is_some() && !other.snapshot().get("t3").unwrap().is_some_and(has_text) {
            self.assert_erased(sim, context);
        }
        write(&other, 0xfffe);
        assert_eq!(faults(&other), Vec::<String>::new(), "{context}");
        false
    }

    /// Runs it with each call failing once, on handles of both kinds, and reports all that goes wrong.
    fn fails_once(&self) {
        let base = filled();
        let mut wrong = Vec::new();
        for exclusive in [true, false] {
            let sim = base.crash(Crash::Keep);
            let database = open(&sim, exclusive);
            let before = sim.calls();
            (self.run)(&database).unwrap();
            let calls = failing_calls(&sim, before);
            let expected = seen(&database);
            drop(database);
            let mut failed = 0;
            for call in &calls {
                let context = format!("call {call}, exclusive {exclusive}");
                let tried =
                    std::panic::AssertUnwindSafe(|| self.fails_at(&base, exclusive, *call, &expected, &context));
                match std::panic::catch_unwind(tried) {
                    Ok(has_failed) => failed += usize::from(has_failed),
                    Err(panic) => wrong.push(said(panic)),
                }
            }
            assert!(
                calls.len() > 10 && failed * 4 > calls.len() || !wrong.is_empty(),
                "{failed} of {} calls failed",
                calls.len()
            );
        }
        assert!(wrong.is_empty(), "{} steps went wrong:\n{}", wrong.len(), wrong.join("\n"));
    }
}

/// The message of a panic.
fn said(panic: Box<dyn std::any::Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => panic.downcast::<&str>().map_or_else(|_| "a panic".to_owned(), |message| (*message).to_owned()),
    }
}

fn fails_once(run: fn(&Holotype) -> holotype::Result<()>) {
    Job { run, erased: None }.fails_once();
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
    fails_once(|database| match database.history_since() {
        20.. => Ok(()),
        _ => database.retain(20, None).map(drop),
    });
}

#[test]
fn a_forget_ends_whichever_call_fails_once() {
    let run = |database: &Holotype| {
        drop(database.begin()?);
        let snapshot = database.snapshot();
        let item = snapshot.get("t3")?;
        let due: Vec<_> = item.filter(|item| !item.attributes.redacted).map(|item| item.id).into_iter().collect();
        drop(snapshot);
        if due.is_empty() { Ok(()) } else { database.forget(&due, &Forget::because("asked")).map(drop) }
    };
    Job { run, erased: Some("velvet") }.fails_once();
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
    let expected = seen(&sim);
    let calls = failing_calls(&sim, before);
    let mut failed = 0;
    for call in &calls {
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
        assert_eq!(seen(&sim), expected, "call {call}");
        let source = open(&sim, true);
        assert_eq!(faults(&source), Vec::<String>::new(), "call {call}");
    }
    assert!(failed * 2 > calls.len(), "{failed} of {} calls failed", calls.len());
}
