//! Sequences of operations on a database, against a plain model: a list of items for every commit.
//!
//! The bytes are operations: writes, commits, drops, forgetting, checkpoints, closing and opening, losing every derived
//! file, crashes, failing calls. After each opening the database must equal the model's state of some commit: the last
//! one, or after a crash any one that is not older than the last durable commit.

use std::path::Path;
use std::sync::Arc;

use holotype::{
    Durability, Edge, Forget, Holotype, ItemId, Mark, NewRecall, NewTrace, Options, Pointer, Space, Status, Transaction,
};
use holotype_storage::vfs::{Crash, Failure, SimVfs, Vfs as _};

use crate::input::Input;
use crate::story::{self, DATABASE, Seen, see_all};

/// Longer sequences rarely find more than shorter ones, and cost as much as many of them.
const MAX_STEPS: usize = 24;

/// Runs the operations.
///
/// # Panics
/// When database and model disagree.
pub fn target(data: &[u8]) {
    let mut input = Input::new(data);
    let mut run = Run::new();
    for _ in 0..MAX_STEPS {
        if input.is_empty() {
            break;
        }
        run.step(&mut input);
    }
    run.crash(Crash::Lose);
}

/// Sequences that reach every operation.
pub fn seeds() -> Vec<Vec<u8>> {
    let story = [0, 0, 4, 1, 1, 0, 2, 1, 2, 1, 2, 0, 3, 2, 3, 0, 1, 9];
    let mut all: Vec<u8> = (0..9).flat_map(|what| [&[0][..], &story, &[what, 1, 2, 3]].concat()).collect();
    all.extend([7, 2, 0, 0, 0]);
    all.extend([&[0][..], &story].concat());
    vec![[&[0][..], &story].concat(), all, (0..=255).collect()]
}

/// An item in the model; its number is its index in the list.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    key: String,
    text: String,
    /// The last stated status of a trace; for recalls and themes the database derives it.
    status: Option<Status>,
    active: bool,
    trace: bool,
    /// The number of its source.
    source: Option<usize>,
    forgotten: bool,
}

/// The state after a commit.
#[derive(Clone, Debug, Default)]
struct State {
    known: Vec<Known>,
    /// Everything that a reader saw after the commit, which must be the same after every opening; `None` until read.
    seen: Option<Vec<Seen>>,
}

struct Run {
    disk: SimVfs,
    database: Option<Holotype>,
    /// The states by commit number; commit 1 created the database.
    states: Vec<State>,
    /// The newest commit that is known to be durable.
    durable: usize,
}

impl Run {
    fn new() -> Self {
        let disk = SimVfs::new();
        let options = Options { space: Some(Space::new("model", 2)), ..story::options() };
        let database = Holotype::create_on(Arc::new(disk.clone()), DATABASE, options).expect("an empty disk has room");
        Self { disk, database: Some(database), states: vec![State::default(); 2], durable: 1 }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.byte() % 9 {
            0 | 1 => self.transaction(input),
            2 => {
                let done = self.database().checkpoint();
                self.survive(done.is_ok(), input);
            }
            3 => self.reopen(input, false),
            4 => self.reopen(input, true),
            5 => {
                let how = match input.byte() % 4 {
                    0 => Crash::Lose,
                    1 => Crash::Keep,
                    _ => Crash::Seeded(u64::from(input.u16())),
                };
                self.crash(how);
            }
            6 => {
                let report = self.database().verify(&mut |_, _| ());
                if let Ok(report) = &report {
                    assert!(report.is_clean(), "{:?}", report.faults);
                }
                self.survive(report.is_ok(), input);
            }
            7 => self.forget(input),
            _ => {
                let kind = if input.byte().is_multiple_of(2) { Failure::Io } else { Failure::NoSpace };
                let at = self.disk.calls() + u64::from(input.byte());
                self.disk.fail_at(at, kind, input.byte().is_multiple_of(2));
            }
        }
    }

    fn database(&self) -> &Holotype {
        self.database.as_ref().expect("it is open between steps")
    }

    /// A transaction, to its commit or dropped.
    fn transaction(&mut self, input: &mut Input<'_>) {
        let database = self.database().clone();
        let Ok(mut transaction) = database.begin() else {
            self.crash(Crash::Keep);
            return;
        };
        let mut known = self.newest().known.clone();
        let mut wrote = false;
        let mut failed = false;
        for _ in 0..input.byte() % 16 {
            match write(&mut transaction, &mut known, input) {
                Written::Yes => wrote = true,
                Written::No => {}
                Written::Failed => {
                    failed = true;
                    break;
                }
            }
        }
        let durability = match input.byte() % 8 {
            0 => {
                drop(transaction);
                drop(database);
                self.survive(!failed, input);
                self.check_newest();
                return;
            }
            1 => Durability::Flush,
            2 => Durability::None,
            _ => Durability::Sync,
        };
        let committed = transaction.commit(durability);
        drop(database);
        if wrote {
            // A commit that failed may be there or not.
            self.states.push(State { known, seen: None });
        }
        match committed {
            Ok(commit) => {
                assert_eq!(usize::try_from(commit.number), Ok(self.states.len() - 1));
                if durability == Durability::Sync && wrote {
                    self.durable = self.states.len() - 1;
                }
                self.check_newest();
            }
            Err(_) => self.survive(false, input),
        }
    }

    /// Forgets an item.
    fn forget(&mut self, input: &mut Input<'_>) {
        let mut known = self.newest().known.clone();
        if known.is_empty() {
            return;
        }
        let item = usize::from(input.byte()) % known.len();
        known[item] = Known { text: String::new(), forgotten: true, ..known[item].clone() };
        let done = self.database().forget(&[ItemId(item as u32)], &Forget::because("it was asked for"));
        self.states.push(State { known, seen: None });
        match done {
            Ok(_) => {
                self.durable = self.states.len() - 1;
                self.check_newest();
            }
            // It may have been committed or not.
            Err(_) => self.survive(false, input),
        }
    }

    /// Closes and opens, perhaps without the derived files.
    fn reopen(&mut self, input: &mut Input<'_>, lose_derived: bool) {
        let database = self.database.take().expect("it is open between steps");
        if database.close().is_err() {
            self.crash(Crash::Keep);
            return;
        }
        self.durable = self.states.len() - 1;
        if lose_derived {
            for path in story::files(&self.disk) {
                let kept = path.starts_with(Path::new(DATABASE).join("log")) || path.ends_with("LOCK");
                if !kept && self.disk.remove(&path).is_err() {
                    self.crash(Crash::Keep);
                    return;
                }
            }
        }
        match story::open(&self.disk) {
            Ok(database) => {
                self.database = Some(database);
                self.check_newest();
            }
            Err(_) => self.survive(false, input),
        }
    }

    /// Handles a failure, for which only a failing disk is an excuse, with a crash.
    fn survive(&mut self, well: bool, input: &mut Input<'_>) {
        if !well {
            let how = if input.byte().is_multiple_of(2) { Crash::Keep } else { Crash::Lose };
            self.crash(how);
        }
    }

    /// Crashes the machine and opens the remaining disk.
    fn crash(&mut self, how: Crash) {
        let disk = self.disk.crash(how);
        // The old handle closes on a disk that is no longer used.
        self.database = None;
        self.disk = disk;
        let database = story::open(&self.disk).expect("after a crash a database opens");
        let commit = usize::try_from(database.head().commit.0).expect("a small number");
        assert!(commit >= self.durable, "commit {} was durable, but after a crash {commit} is the last", self.durable);
        assert!(commit < self.states.len(), "commit {commit} was never made");
        self.states.truncate(commit + 1);
        self.durable = commit;
        self.database = Some(database);
        self.check_newest();
    }

    fn newest(&self) -> &State {
        self.states.last().expect("there is the first")
    }

    /// Compares what readers see with the newest state.
    fn check_newest(&mut self) {
        let snapshot = self.database().snapshot();
        assert_eq!(usize::try_from(snapshot.commit()), Ok(self.states.len() - 1));
        // A failing disk may be unreadable; then there is nothing to compare.
        let Ok(seen) = see_all(&snapshot) else { return };
        let state = self.states.last_mut().expect("there is the first");
        assert_eq!(seen.len(), state.known.len());
        for (seen, known) in seen.iter().zip(&state.known) {
            assert_eq!((&seen.key, &seen.text), (&known.key, &known.text));
            assert_eq!(seen.attributes.active, known.active, "{}", known.key);
            if known.trace {
                assert_eq!(seen.attributes.status, known.status, "{}", known.key);
            } else {
                let gone = |source: usize| state.known.get(source).is_some_and(|source| source.forgotten);
                let lost = known.source.is_some_and(gone);
                assert!(lost || !seen.cited.is_empty(), "{} lost its evidence", known.key);
            }
        }
        match &state.seen {
            Some(before) => assert_eq!(&seen, before, "the same commit shows something else"),
            None => state.seen = Some(seen),
        }
    }
}

enum Written {
    Yes,
    /// It was refused, as the model expects.
    No,
    /// The disk failed.
    Failed,
}

/// Makes one write; the model decides whether it must succeed.
fn write(transaction: &mut Transaction<'_>, known: &mut Vec<Known>, input: &mut Input<'_>) -> Written {
    let what = input.byte() % 6;
    let key = format!("k{}", input.byte() % 24);
    let other = usize::from(input.byte());
    let taken = known.iter().any(|item| item.key == key);
    let pick = |number: usize| (!known.is_empty()).then(|| number % known.len());
    let id = |number: usize| ItemId(number as u32);
    let (allowed, done) = match what {
        0 | 1 => {
            let text = format!("said {other} by {key}");
            let status = Status::ALL[other % Status::ALL.len()];
            let trace = NewTrace::turn(format!("e{}", other % 3), text.clone()).key(key.clone()).status(status);
            let done = transaction.record(trace.vector(vec![1.0, other as f32]));
            // The same trace recorded again is known, unless a mark has changed it since.
            let is_same = |item: &Known| item.key == key && item.trace && item.text == text && !item.forgotten;
            if known.iter().any(is_same) && done.is_ok() {
                return Written::No;
            }
            if done.is_ok() {
                known.push(Known {
                    key,
                    text,
                    status: Some(status),
                    active: true,
                    trace: true,
                    source: None,
                    forgotten: false,
                });
            }
            (!taken, done.map(|_| ()))
        }
        2 => {
            let Some(source) = pick(other) else { return Written::No };
            let allowed = !taken && !known[source].forgotten;
            let text = format!("{key} rests on {source}");
            let done =
                transaction.remember(NewRecall::fact(text.clone()).key(key.clone()).from(Pointer::to_item(id(source))));
            if done.is_ok() {
                let source = Some(source);
                known.push(Known { key, text, status: None, active: true, trace: false, source, forgotten: false });
            }
            (allowed, done.map(|_| ()))
        }
        3 => {
            let (Some(from), Some(to)) = (pick(other), pick(other / 7)) else { return Written::No };
            let edge = [Edge::Sibling, Edge::DerivedFrom, Edge::ConflictsWith, Edge::Supersedes][other % 4];
            let done = transaction.link(id(from), edge, id(to));
            if done.is_ok() && edge == Edge::Supersedes {
                known[to].active = false;
            }
            let lineage = edge == Edge::DerivedFrom;
            (from != to && !(lineage && (to > from || known[from].trace)), done)
        }
        4 => {
            let Some(item) = pick(other) else { return Written::No };
            let status = Status::ALL[other % Status::ALL.len()];
            let done = transaction.mark(id(item), Mark::Status(status), Some("it was looked at again".to_owned()));
            if done.is_ok() {
                known[item].status = Some(status);
            }
            (true, done)
        }
        _ => {
            let Some(item) = pick(other) else { return Written::No };
            let done = transaction.mark(id(item), Mark::Inactive, None);
            if done.is_ok() {
                known[item].active = false;
            }
            (true, done)
        }
    };
    match done {
        Ok(()) => {
            assert!(allowed, "operation {what} was accepted, but must be refused");
            Written::Yes
        }
        Err(error) => {
            let input = error.class() == holotype::ErrorClass::Input;
            assert!(!(input && allowed), "operation {what} was refused: {error}");
            if input { Written::No } else { Written::Failed }
        }
    }
}
