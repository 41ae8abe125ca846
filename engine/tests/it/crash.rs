//! After a crash at any moment, with any choice of what the disk kept, and after any failing call: a whole prefix of
//! the transactions is there, all that was acknowledged with `sync`, nothing half; `verify` is clean, opening again
//! changes nothing, and the database goes on writing.

use crate::observed::{everything, faults};
use holotype::time::FixedClock;
use holotype::{
    Durability, Edge, EpisodeChange, ErrorClass, Holotype, Mark, NewRecall, NewTrace, Options, Pointer, Space, Status,
};
use holotype_storage::vfs::{Crash, Failure, SimVfs};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const DATABASE: &str = "/memory.holo";
const TRANSACTIONS: u64 = 10;

fn options() -> Options {
    Options { page_size: 4096, clock: Arc::new(FixedClock(1_770_000_000_000_000)), ..Options::default() }
}

fn open(sim: &SimVfs) -> holotype::Result<Holotype> {
    Holotype::open_on(Arc::new(sim.clone()), DATABASE, options())
}

/// The progress of a run: commits acknowledged with each durability, at each length of the disk's history.
#[derive(Debug, Default)]
struct Run {
    acknowledged: Vec<(usize, u64, Durability)>,
    attempted: u64,
}

impl Run {
    /// Creates the database and commits the story, with checkpoints in between; stops at the first error.
    fn go(&mut self, sim: &SimVfs, durability: impl Fn(u64) -> Durability) -> holotype::Result<()> {
        let create = Options { space: Some(Space::new("test", 2)), ..options() };
        self.attempted = 1;
        let database = Holotype::create_on(Arc::new(sim.clone()), DATABASE, create)?;
        self.acknowledge(sim, 1, Durability::Sync);
        for number in 2..=TRANSACTIONS {
            self.attempted = number;
            let commit = write(&database, number, durability(number))?;
            assert_eq!(commit, number);
            self.acknowledge(sim, number, durability(number));
            // Four of them make word segments that merge.
            if number % 2 == 0 {
                database.checkpoint()?;
                self.acknowledge(sim, number, Durability::Sync);
            }
        }
        database.close()?;
        self.acknowledge(sim, TRANSACTIONS, Durability::Sync);
        Ok(())
    }

    fn acknowledge(&mut self, sim: &SimVfs, number: u64, durability: Durability) {
        self.acknowledged.push((sim.history().len(), number, durability));
    }

    /// The newest transaction acknowledged, at least as durable as asked, when the history had this length.
    fn acknowledged_at(&self, history_len: usize, least: Durability) -> u64 {
        // Nothing is promised of a commit without durability.
        let counts = |durability| durability == Durability::Sync || durability == least;
        let known = self.acknowledged.iter().filter(|(at, _, durability)| *at <= history_len && counts(*durability));
        known.map(|(_, number, _)| *number).max().unwrap_or(0)
    }
}

/// Transaction `number` of the story; the first is that of creation.
fn write(database: &Holotype, number: u64, durability: Durability) -> holotype::Result<u64> {
    let mut transaction = database.begin()?;
    let key = format!("t{number}");
    match number % 5 {
        0 => {
            let fact = transaction.remember(
                NewRecall::fact(format!("fact of {number}")).key(format!("r{number}")).from(Pointer::to_key("t2")),
            )?;
            transaction.remember(NewRecall::theme("facts").key(format!("th{number}")).child(format!("r{number}")))?;
            transaction.mark(fact, Mark::Utility(0.25, 1), None)?;
        }
        1 => {
            let id = transaction.find(&holotype::Target::Key("t2".to_owned()))?;
            transaction.mark(id, Mark::Status(Status::Failed), Some("it was wrong".to_owned()))?;
            transaction.episode("e", EpisodeChange { open: Some(false), ..EpisodeChange::default() })?;
        }
        4 => {
            transaction.record(NewTrace::turn("e", "long ".repeat(2000)).key(key))?;
            let known = database.snapshot().len();
            if known > 5 {
                let (from, to) = (holotype::ItemId(4), holotype::ItemId(2));
                transaction.link(from, Edge::Sibling, to)?;
            }
        }
        _ => {
            for n in 0..3 {
                let trace = NewTrace::turn("e", format!("said {n} in {number}")).vector(vec![1.0, n as f32]);
                transaction.record(if n == 0 { trace.key(key.clone()) } else { trace })?;
            }
        }
    }
    Ok(transaction.commit(durability)?.number)
}

/// The content of the database after each transaction of an undisturbed run.
fn story() -> Vec<String> {
    let sim = SimVfs::new();
    let mut texts = vec![String::new()];
    let create = Options { space: Some(Space::new("test", 2)), ..options() };
    let database = Holotype::create_on(Arc::new(sim), DATABASE, create).unwrap();
    texts.push(everything(&database.snapshot()).unwrap());
    for number in 2..=TRANSACTIONS {
        write(&database, number, Durability::None).unwrap();
        texts.push(everything(&database.snapshot()).unwrap());
    }
    texts
}

/// Opens what a crash or a failure left, and checks all that is promised.
fn check(disk: &SimVfs, story: &[String], least: u64, most: u64, context: &str) {
    let Some(commit) = check_opened(disk, story, least, most, context) else { return };
    let database = open(disk).unwrap_or_else(|error| panic!("{context}, again: {error}"));
    assert_eq!(database.report().recovery, [""; 0], "{context}: recovery left something to do");
    assert_eq!(database.report().rebuilt, None, "{context}");
    assert_eq!(check_prefix(&database, story, commit, commit, context), commit);
    if commit == 0 {
        return;
    }
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("after", "it goes on").key("after")).unwrap();
    assert_eq!(transaction.commit(Durability::Sync).unwrap().number, commit + 1, "{context}");
    let text = everything(&database.snapshot()).unwrap();
    let crashed = disk.crash(Crash::Lose);
    drop(database);
    let database = open(&crashed).unwrap_or_else(|error| panic!("{context}, gone on: {error}"));
    assert_eq!(everything(&database.snapshot()).unwrap(), text, "{context}");
    assert_eq!(faults(&database), [""; 0], "{context}");
}

/// Opens what a crash left once, and says which prefix is there; nothing when there was no database yet.
fn check_opened(disk: &SimVfs, story: &[String], least: u64, most: u64, context: &str) -> Option<u64> {
    let database = match open(disk) {
        Ok(database) => database,
        Err(error) => {
            assert_eq!(least, 0, "{context}: {error}");
            assert!(error.to_string().len() > 10, "{context}: {error}");
            return None;
        }
    };
    let commit = check_prefix(&database, story, least, most, context);
    assert_eq!(faults(&database), [""; 0], "{context}");
    Some(commit)
}

fn check_prefix(database: &Holotype, story: &[String], least: u64, most: u64, context: &str) -> u64 {
    let snapshot = database.snapshot();
    let commit = snapshot.commit();
    assert!((least..=most).contains(&commit), "{context}: {commit} where {least} to {most} are expected");
    if commit > 0 {
        let found = everything(&snapshot).unwrap_or_else(|error| panic!("{context}: {error}"));
        let differs = found.lines().zip(story[commit as usize].lines()).find(|(found, wanted)| found != wanted);
        assert!(found == story[commit as usize], "{context}, commit {commit}: {differs:#?}");
    }
    commit
}

/// The distance between the cases of a long row: 1 when the environment says `HOLOTYPE_EVERY_CASE`.
fn stride(usual: usize) -> usize {
    if std::env::var_os("HOLOTYPE_EVERY_CASE").is_some() { 1 } else { usual }
}

/// Runs every case on all processors; the first that fails fails the test.
fn on_all_processors<T: Send>(cases: impl Iterator<Item = T> + Send, run: impl Fn(T) + Sync) -> usize {
    let (cases, failed, done) = (Mutex::new(cases), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(4, usize::from) {
            scope.spawn(|| {
                while failed.load(Ordering::Relaxed) == 0 {
                    let Some(case) = cases.lock().unwrap().next() else { return };
                    if let Err(panic) = std::panic::catch_unwind(AssertUnwindSafe(|| run(case))) {
                        failed.fetch_add(1, Ordering::Relaxed);
                        std::panic::resume_unwind(panic);
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    done.into_inner()
}

#[test]
fn whatever_the_disk_keeps_what_was_acknowledged_is_there() {
    let story = story();
    let mixed = |number: u64| match number % 3 {
        0 => Durability::Sync,
        1 => Durability::Flush,
        _ => Durability::None,
    };
    let durabilities: [&(dyn Fn(u64) -> Durability + Sync); 2] = [&|_| Durability::Sync, &mixed];
    for (name, durability) in ["sync", "mixed"].into_iter().zip(durabilities) {
        let sim = SimVfs::new();
        let mut run = Run::default();
        run.go(&sim, durability).unwrap();
        let points = sim.replay().enumerate().filter(|(history_len, _)| history_len.is_multiple_of(stride(5)));
        let states = on_all_processors(points, |(history_len, point)| {
            let synced = run.acknowledged_at(history_len, Durability::Sync);
            for (number, crashed) in point.crashes(3, history_len as u64).into_iter().enumerate() {
                let context = format!("{name}, operation {history_len}, state {number}");
                if (history_len + number).is_multiple_of(5) {
                    check(&crashed, &story, synced, TRANSACTIONS, &context);
                } else {
                    check_opened(&crashed, &story, synced, TRANSACTIONS, &context);
                }
            }
            // Only the process died: the system still writes what it was given.
            let given = run.acknowledged_at(history_len, Durability::Flush);
            let context = format!("{name}, operation {history_len}, process killed");
            check_opened(&point.crash(Crash::Keep), &story, given, TRANSACTIONS, &context);
        });
        assert!(states > 30, "{states} points: too few to mean anything");
    }
}

/// Interrupts opening at each of its calls, crashes there, and expects the same of the second opening.
#[test]
fn opening_may_crash_too() {
    let story = story();
    let sim = SimVfs::new();
    let mut run = Run::default();
    run.go(&sim, |_| Durability::Sync).unwrap();
    let points = sim.replay().enumerate().filter(|(history_len, _)| history_len % stride(29) == 0);
    let interrupted = AtomicUsize::new(0);
    on_all_processors(points, |(history_len, point)| {
        let synced = run.acknowledged_at(history_len, Durability::Sync);
        let Some(crashed) = point.crashes(5, history_len as u64).pop() else { return };
        for call in (0..).step_by(3) {
            let disk = crashed.crash(Crash::Keep);
            let failing = disk.calls() + call;
            disk.fail_at(failing, Failure::Io, true);
            let opened = open(&disk);
            let whole = disk.calls() <= failing;
            drop(opened);
            disk.heal();
            let context = format!("operation {history_len}, opening interrupted at call {call}");
            let crashed = disk.crash(Crash::Seeded(call));
            if call % 4 == 0 {
                check(&crashed, &story, synced, TRANSACTIONS, &context);
            } else {
                check_opened(&crashed, &story, synced, TRANSACTIONS, &context);
            }
            if whole {
                break;
            }
            interrupted.fetch_add(1, Ordering::Relaxed);
        }
    });
    assert!(interrupted.into_inner() > 50);
}

/// A failing call, once or from then on, at every place of the run.
#[test]
fn what_a_failing_disk_acknowledged_is_there_after_it_has_healed() {
    let story = story();
    let sim = SimVfs::new();
    Run::default().go(&sim, |_| Durability::Sync).unwrap();
    let calls = sim.calls();
    let cases = (0..calls).step_by(stride(5)).enumerate().map(|(number, at)| {
        let kinds =
            [Failure::Io, Failure::NoSpace, Failure::Interrupted, Failure::Io, Failure::NoSpace, Failure::Short];
        (at, kinds[number % 6], number % 5 < 2)
    });
    let failures = AtomicUsize::new(0);
    on_all_processors(cases, |(at, kind, for_ever)| {
        let context = format!("{kind:?} at call {at}{}", if for_ever { " and ever after" } else { "" });
        let sim = SimVfs::new();
        sim.fail_at(at, kind, for_ever);
        let mut run = Run::default();
        let outcome = run.go(&sim, |_| Durability::Sync);
        let whole = kind == Failure::Short || (kind == Failure::Interrupted && !for_ever);
        assert!(outcome.is_ok() || !whole, "{context}: {outcome:?}: what is interrupted or cut short is no failure");
        if let Err(error) = &outcome {
            failures.fetch_add(1, Ordering::Relaxed);
            assert!(matches!(error.class(), ErrorClass::Io | ErrorClass::Open), "{context}: {error:?}");
            assert!(error.to_string().contains('/') || error.code() == "poisoned", "{context}: {error}");
        }
        sim.heal();
        let acknowledged = run.acknowledged_at(usize::MAX, Durability::Sync);
        let crashed = [Crash::Lose, Crash::Keep, Crash::Seeded(at)][at as usize / 2 % 3];
        check(&sim.crash(crashed), &story, acknowledged, run.attempted, &format!("{context}, then {crashed:?}"));
        check(&sim, &story, acknowledged, run.attempted, &context);
    });
    assert!(failures.into_inner() > calls as usize / 3 / stride(5));
}

/// A disk that fills up refuses, says so, and loses nothing; with room again the database goes on, at the latest after
/// it was opened again.
#[test]
fn a_full_disk_refuses_and_loses_nothing() {
    let refused = AtomicUsize::new(0);
    let cases = (0..40_u64).map(|case| case * 24_000);
    on_all_processors(cases, |room| {
        let sim = SimVfs::new();
        let database = Holotype::create_on(Arc::new(sim.clone()), DATABASE, options()).unwrap();
        sim.set_quota(Some(sim.used_bytes() + room));
        let (mut kept, mut number) = (Vec::new(), 0);
        let mut commit = |database: &Holotype| -> holotype::Result<()> {
            number += 1;
            let mut transaction = database.begin()?;
            let key = format!("k{number}");
            transaction.record(NewTrace::turn("e", "much ".repeat(9_000)).key(key.clone()))?;
            transaction.commit(Durability::Sync)?;
            kept.push(key);
            if number % 7 == 0 { database.checkpoint() } else { Ok(()) }
        };
        let mut refusal = None;
        for _ in 0..30 {
            if let Err(error) = commit(&database) {
                refusal = Some(error);
                break;
            }
        }
        if let Some(error) = &refusal {
            refused.fetch_add(1, Ordering::Relaxed);
            assert_eq!(error.code(), "disk-full", "room {room}: {error}");
        }
        sim.set_quota(None);
        let go_on = commit(&database);
        if let Err(error) = &go_on {
            assert_eq!(error.code(), "poisoned", "room {room}: {error}");
        }
        drop(database);
        let database = open(&sim).unwrap_or_else(|error| panic!("room {room}: {error}"));
        commit(&database).unwrap();
        assert_eq!(faults(&database), [""; 0], "room {room}");
        let snapshot = database.snapshot();
        for key in &kept {
            assert!(snapshot.get(key).unwrap().is_some(), "room {room}: {key} was acknowledged");
        }
    });
    assert!(refused.into_inner() > 10);
}
