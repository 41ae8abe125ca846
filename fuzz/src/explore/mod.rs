//! The crash explorer: runs a subject on the simulated disk, crashes it at every point, opens the remaining disk, and
//! compares it with what was promised.
//!
//! A *subject* ([`Subject`]) is something durable: the log, the catalog in redb, the whole database. A *unit* is one
//! run of it: a sequence of steps of its public interface. Short sequences are units, all of them where that does not
//! take too long, and so are longer ones drawn from a seed. A step may be a crash; the steps after it are another *run
//! segment*, on the disk that the crash left.
//!
//! After each change that a run segment made to its disk, the explorer takes the states that a crash may leave
//! ([`SimVfs::crash_states`]): all combinations of fates of up to twelve uncovered operations if there are at most
//! [`Limits::states_of_point`], else that many samples. In exhaustive runs a sequence repeats all but the last step of
//! a shorter one, so only states of the last step are taken. Each state is opened, which recovers it, and must show:
//!
//! 1. everything that was acknowledged before that point, and an exact prefix of what was written: no partial, altered
//!    or repeated transaction;
//! 2. after losing everything that recovery did not sync, the same again, with nothing left to remove (recovery is
//!    idempotent, and everything that an opening showed is durable);
//! 3. for each different disk after recovery, or one in [`Limits::outcomes`]: it verifies, accepts another transaction,
//!    and keeps that over a crash.
//!
//! Some recoveries are crashed too, at each change they make.
//!
//! A state whose disk equals, byte for byte, one already opened in the same run segment is a duplicate. It is not
//! counted and not opened again, but its known result is compared with the promises at this point. If another run
//! segment reaches the same disk, the disk is opened there too, since its history may differ, but does not count as
//! different ([`Disks`]).

pub mod catalog;
pub mod engine;
mod linked;
pub mod log;
pub mod protocol_mutants;
pub mod replica;
pub mod rules;

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use holotype_storage::vfs::{Crash, SimVfs, Vfs};

/// A subject's view of a simulated disk: the disk itself, or a layer that breaks the protocol.
pub type DiskView<'w> = &'w (dyn Fn(&SimVfs) -> Arc<dyn Vfs> + Sync);

/// The view that is the disk itself.
pub fn plain(sim: &SimVfs) -> Arc<dyn Vfs> {
    Arc::new(sim.clone())
}

/// One call of a subject's public interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The kind of step: an index into [`Subject::steps`].
    pub kind: usize,
    /// The seed of the call's arguments.
    pub salt: u64,
}

/// The part of a run on one disk, between crashes.
#[derive(Debug)]
pub struct RunSegment<T> {
    /// The disk, with its history.
    pub disk: SimVfs,
    /// Pairs of a length of the history and the progress acknowledged at that point, ascending.
    pub promises: Vec<(usize, u32)>,
    /// The length of the history when the last step began.
    pub last_step: usize,
    /// Everything that was written.
    pub truth: T,
}

impl<T> RunSegment<T> {
    /// A run segment on a disk on which this progress is durable.
    pub fn new(disk: SimVfs, durable: u32, truth: T) -> Self {
        Self { disk, promises: vec![(0, durable)], last_step: 0, truth }
    }

    /// Notes that this progress is acknowledged from now on.
    pub fn promise(&mut self, progress: u32) {
        self.promises.push((self.disk.history_len(), progress));
    }
}

/// The result of opening a crashed disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its progress in the subject's count, which increases with everything acknowledged; 0 for nothing.
    pub progress: u32,
    /// True if recovery repaired something.
    pub recovered: bool,
    /// True if recovery removed an unsynced tail.
    pub cut: bool,
}

/// Something durable that can be explored.
pub trait Subject: Sync {
    /// A description of everything that a run wrote.
    type Truth: Send + Sync;

    /// Its name.
    fn name(&self) -> &'static str;

    /// The names of its steps.
    fn steps(&self) -> &'static [&'static str];

    /// The number of steps that write, which are the first ones.
    fn writes(&self) -> usize;

    /// The runs that are explored first: all short sequences of steps, or those that promise most.
    fn short_sequences(&self) -> Vec<Vec<Step>>;

    /// The runs for mutants of the protocol: every call, in few steps.
    fn mutant_units(&self) -> Vec<Vec<Step>>;

    /// The limits of exploring its units, for exhaustive and for drawn sequences.
    fn limits(&self) -> (Limits, Limits);

    /// Runs the steps, after creating the subject on an empty disk.
    ///
    /// # Errors
    /// A description of a failure, which is always a defect.
    fn run(&self, view: DiskView<'_>, steps: &[Step]) -> Result<Vec<RunSegment<Self::Truth>>, String>;

    /// Inspects a crashed disk, on which this progress was acknowledged, without opening it.
    ///
    /// # Errors
    /// A description of what must not be on the disk.
    fn look(&self, _disk: &SimVfs, _truth: &Self::Truth, _promised: u32) -> Result<(), String> {
        Ok(())
    }

    /// Opens a disk and compares its content with what was written; `None` if the subject does not exist yet.
    ///
    /// # Errors
    /// A description of the difference, or the reason why it cannot be opened.
    fn open(&self, view: DiskView<'_>, disk: &SimVfs, truth: &Self::Truth) -> Result<Option<Found>, String>;

    /// Verifies, writes something, crashes the disk and expects it there.
    ///
    /// # Errors
    /// A description of the failure.
    fn go_on(&self, view: DiskView<'_>, disk: &SimVfs, truth: &Self::Truth) -> Result<(), String>;

    /// Removes from a copy of a recovered disk what may differ for equal subjects: quarantine files, clocks.
    fn without_remains(&self, _disk: &SimVfs) {}
}

/// Limits of exploring a unit.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The greatest number of states at one point.
    pub states_of_point: u64,
    /// The greatest number of states at one point of a recovery.
    pub states_of_recovery: u64,
    /// One in this many recoveries is crashed.
    pub recoveries: u64,
    /// One in this many different disks after recovery is verified and written to.
    pub outcomes: u64,
    /// Explore only the last step of every run segment, instead of all steps.
    pub only_last_step: bool,
}

/// Figures of an exploration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Runs.
    pub units: u64,
    /// Points at which crashes were tried.
    pub points: u64,
    /// Points of which every state was taken.
    pub exhausted_points: u64,
    /// States opened, including those of crashed recoveries, each different from all others of its run segment.
    pub states: u64,
    /// Those of them that no other run segment had reached.
    pub different: u64,
    /// Those of them that are states of crashed recoveries.
    pub recovery_states: u64,
    /// States that had occurred before in the same run segment.
    pub duplicates: u64,
    /// Different disks after recovery.
    pub outcomes: u64,
}

impl Counts {
    /// Adds the figures of another part.
    pub fn add(&mut self, other: &Self) {
        self.units += other.units;
        self.points += other.points;
        self.exhausted_points += other.exhausted_points;
        self.states += other.states;
        self.different += other.different;
        self.recovery_states += other.recovery_states;
        self.duplicates += other.duplicates;
        self.outcomes += other.outcomes;
    }

    /// As a JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        format!(
            "{{\"units\":{},\"points\":{},\"exhausted_points\":{},\"states\":{},\"different\":{},\
             \"recovery_states\":{},\"duplicates\":{},\"outcomes\":{}}}",
            self.units,
            self.points,
            self.exhausted_points,
            self.states,
            self.different,
            self.recovery_states,
            self.duplicates,
            self.outcomes
        )
    }
}

/// All sequences of one to `longest` steps out of `kinds`, the shorter ones first.
pub fn sequences(kinds: usize, longest: u32) -> impl Iterator<Item = Vec<Step>> {
    (1..=longest).flat_map(move |len| {
        (0..kinds.pow(len)).map(move |number| {
            let step = |at| Step { kind: number / kinds.pow(at) % kinds, salt: 2 * u64::from(at) };
            (0..len).map(step).collect()
        })
    })
}

/// Steps of these kinds and salts.
pub(crate) fn steps(kinds: &[(usize, u64)]) -> Vec<Step> {
    kinds.iter().map(|&(kind, salt)| Step { kind, salt }).collect()
}

/// A random sequence of four to eleven steps out of `kinds`; those below `writes`, which write, are drawn more often.
#[must_use]
pub fn drawn(kinds: usize, writes: usize, seed: u64) -> Vec<Step> {
    let mut random = Random(seed);
    let len = 4 + random.below(8);
    let step = |_| {
        let kinds = if random.below(2) == 0 { writes } else { kinds };
        Step { kind: random.below(kinds as u64) as usize, salt: random.next() >> 8 }
    };
    (0..len).map(step).collect()
}

/// Steele, Lea and Flood's SplitMix.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    #[allow(clippy::should_implement_trait, reason = "it never ends and is no iterator")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// An index below `len`, which is not 0.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// One of several; `None` if there is none.
    pub fn pick<'s, T>(&mut self, of: &'s [T]) -> Option<&'s T> {
        if of.is_empty() { None } else { of.get(self.index(of.len())) }
    }
}

/// Explores one unit.
///
/// # Errors
/// The first broken promise, with its place.
pub fn explore<S: Subject>(
    subject: &S,
    view: DiskView<'_>,
    steps: &[Step],
    limits: &Limits,
    disks: &Disks,
) -> Result<Counts, String> {
    let told = || {
        let names = steps.iter().map(|step| format!("{}({})", subject.steps()[step.kind], step.salt));
        format!("{}: {}", subject.name(), names.collect::<Vec<_>>().join(", "))
    };
    let explored = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let parts = subject.run(view, steps).map_err(|why| format!("running: {why}"))?;
        let edit = Edit { order: &|_| None, objections: Mutex::default() };
        explore_parts(subject, view, &parts, limits, &edit, disks)
    }));
    match explored {
        Ok(explored) => explored.map_err(|why: String| format!("{}: {why}", told())),
        Err(panic) => {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
            Err(format!("{}: panicked: {said}", told()))
        }
    }
}

/// An edit of recorded changes, to test whether it is detected.
pub(crate) struct Edit<'e> {
    /// The indices of the changes of a disk's history to make, in the new order; `None` to keep the history.
    pub(crate) order: &'e (dyn Fn(&SimVfs) -> Option<Vec<usize>> + Sync),
    /// The auditor's objections to the edited history.
    pub(crate) objections: Mutex<Vec<String>>,
}

impl Edit<'_> {
    /// The disk with the edited history, and the order of changes if it was edited.
    fn apply(&self, disk: &SimVfs) -> (SimVfs, Option<Vec<usize>>) {
        match (self.order)(disk) {
            None => (disk.clone(), None),
            Some(order) => {
                let edited = disk.reordered(&order);
                self.objections.lock().unwrap_or_else(PoisonError::into_inner).extend(edited.objections());
                (edited, Some(order))
            }
        }
    }
}

/// Explores the segments of a run.
pub(crate) fn explore_parts<S: Subject>(
    subject: &S,
    view: DiskView<'_>,
    parts: &[RunSegment<S::Truth>],
    limits: &Limits,
    edit: &Edit<'_>,
    disks: &Disks,
) -> Result<Counts, String> {
    let mut counts = Counts { units: 1, ..Counts::default() };
    let last = parts.len().saturating_sub(1);
    for (number, part) in parts.iter().enumerate() {
        if number == last || !limits.only_last_step {
            let mut exploring = Exploring::new(subject, view, part, limits, edit, disks);
            exploring.all_points().map_err(|why| format!("part {number}, {why}"))?;
            counts.add(&exploring.counts);
        }
    }
    Ok(counts)
}

struct Exploring<'e, S: Subject> {
    subject: &'e S,
    view: DiskView<'e>,
    truth: &'e S::Truth,
    limits: &'e Limits,
    edit: &'e Edit<'e>,
    disks: &'e Disks,
    /// The disk and the promises of the run segment, after the edit.
    disk: SimVfs,
    promises: Vec<(usize, u32)>,
    last_step: usize,
    /// Fingerprints of opened states, with the progress found.
    seen: HashMap<u64, u32>,
    /// Fingerprints of disks after recovery, with their progress.
    outcomes: HashMap<u64, Option<u32>>,
    counts: Counts,
}

impl<'e, S: Subject> Exploring<'e, S> {
    fn new(
        subject: &'e S,
        view: DiskView<'e>,
        part: &'e RunSegment<S::Truth>,
        limits: &'e Limits,
        edit: &'e Edit<'e>,
        disks: &'e Disks,
    ) -> Self {
        let (disk, order) = edit.apply(&part.disk);
        // A promise now follows those of its former predecessors that are left.
        let moved = |len: usize| order.as_ref().map_or(len, |order| order.iter().filter(|&&at| at < len).count());
        let promises = part.promises.iter().map(|&(len, promised)| (moved(len), promised)).collect();
        let last_step = moved(part.last_step);
        let (seen, outcomes, counts) = (HashMap::new(), HashMap::new(), Counts::default());
        let truth = &part.truth;
        Self { subject, view, truth, limits, edit, disks, disk, promises, last_step, seen, outcomes, counts }
    }

    fn promised_at(&self, history_len: usize) -> u32 {
        let before = self.promises.partition_point(|(from, _)| *from <= history_len);
        before.checked_sub(1).map_or(0, |last| self.promises[last].1)
    }

    fn all_points(&mut self) -> Result<(), String> {
        let from = if self.limits.only_last_step { self.last_step } else { 0 };
        for (history_len, point) in self.disk.clone().replay().enumerate().skip(from) {
            let promised = self.promised_at(history_len);
            let states = point.crash_states(self.limits.states_of_point, history_len as u64);
            self.counts.points += 1;
            self.counts.exhausted_points += u64::from(states.is_exhaustive());
            for (number, state) in states.enumerate() {
                let found = self.state(&state, promised).map_err(|why| {
                    let history = self.disk.history();
                    let operation = history_len.checked_sub(1).map(|at| &history[at]);
                    format!("after change {history_len} ({}), state {number}: {why}", told(operation))
                })?;
                let recovered = found.is_some_and(|found| found.recovered);
                if recovered && self.counts.states.is_multiple_of(self.limits.recoveries) {
                    self.recovery(&state, promised)
                        .map_err(|why| format!("after change {history_len}, state {number}, its recovery {why}"))?;
                }
            }
        }
        Ok(())
    }

    /// Crashes the recovery of a just opened state, at each change it made.
    fn recovery(&mut self, state: &SimVfs, promised: u32) -> Result<(), String> {
        for (change, point) in self.edit.apply(state).0.replay().enumerate() {
            for (number, inner) in point.crash_states(self.limits.states_of_recovery, change as u64).enumerate() {
                let before = self.counts.states;
                self.state(&inner, promised)
                    .map_err(|why| format!("stopped after change {change}, state {number}: {why}"))?;
                self.counts.recovery_states += self.counts.states - before;
            }
        }
        Ok(())
    }

    /// Opens a state, unless it was opened before, and returns the result if it is new.
    fn state(&mut self, state: &SimVfs, promised: u32) -> Result<Option<Found>, String> {
        let print = state.fingerprint();
        if let Some(&progress) = self.seen.get(&print) {
            self.counts.duplicates += 1;
            return enough(progress, promised).map(|()| None);
        }
        self.counts.states += 1;
        self.counts.different += u64::from(self.disks.is_new(print));
        self.subject.look(state, self.truth, promised)?;
        let found = self.subject.open(self.view, state, self.truth)?;
        let progress = found.map_or(0, |found| found.progress);
        self.seen.insert(print, progress);
        enough(progress, promised)?;
        self.again(state, found)?;
        Ok(found)
    }

    /// Loses everything that recovery did not sync, and expects the same again.
    fn again(&mut self, state: &SimVfs, found: Option<Found>) -> Result<(), String> {
        let left = self.edit.apply(state).0.crash(Crash::Lose);
        let bare = left.crash(Crash::Keep);
        self.subject.without_remains(&bare);
        let progress = found.map(|found| found.progress);
        let print = bare.fingerprint();
        let known = match self.outcomes.get(&print) {
            Some(known) => *known,
            None => {
                let goes_on = self.counts.outcomes.is_multiple_of(self.limits.outcomes);
                self.counts.outcomes += 1;
                let again =
                    self.subject.open(self.view, &left, self.truth).map_err(|why| format!("opened again: {why}"))?;
                if let Some(again) = again {
                    if again.cut {
                        return Err(format!("opened again, it removes another tail: {again:?}"));
                    }
                    if goes_on {
                        self.subject.go_on(self.view, &left, self.truth).map_err(|why| format!("continued: {why}"))?;
                    }
                }
                let known = again.map(|again| again.progress);
                self.outcomes.insert(print, known);
                known
            }
        };
        if known == progress {
            Ok(())
        } else {
            Err(format!("showed progress {progress:?}, but {known:?} when opened again"))
        }
    }
}

fn enough(found: u32, promised: u32) -> Result<(), String> {
    if found >= promised {
        Ok(())
    } else {
        Err(format!("progress {promised} was acknowledged, but only {found} is left"))
    }
}

/// Describes an operation without its bytes.
fn told(operation: Option<&holotype_storage::vfs::Operation>) -> String {
    match operation {
        Some(holotype_storage::vfs::Operation::Write { path, offset, bytes }) => {
            format!("Write {} at {offset}, {} bytes", path.display(), bytes.len())
        }
        Some(other) => format!("{other:?}"),
        None => "nothing".to_owned(),
    }
}

/// The fingerprints of all disks that the explorer reached, in a hash table with eight bytes for each.
#[derive(Debug)]
pub struct Disks {
    parts: Vec<Mutex<HashSet<u64>>>,
}

impl Disks {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self { parts: (0..64).map(|_| Mutex::default()).collect() }
    }

    /// Adds a disk, and returns true if it is new.
    fn is_new(&self, print: u64) -> bool {
        let part = &self.parts[print as usize % self.parts.len()];
        part.lock().unwrap_or_else(PoisonError::into_inner).insert(print)
    }
}

impl Default for Disks {
    fn default() -> Self {
        Self::new()
    }
}

/// The shared progress of threads that explore units until there are enough different states.
#[derive(Debug)]
pub struct Progress<'d> {
    next: AtomicU64,
    enough: u64,
    disks: &'d Disks,
    different: AtomicU64,
    stop: AtomicBool,
    counts: Mutex<Counts>,
    failure: Mutex<Option<String>>,
}

impl<'d> Progress<'d> {
    /// Explores until `enough` states are found that are not in `disks`.
    #[must_use]
    pub fn new(enough: u64, disks: &'d Disks) -> Self {
        Self {
            next: AtomicU64::new(0),
            enough,
            disks,
            different: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            counts: Mutex::default(),
            failure: Mutex::default(),
        }
    }

    /// Explores units on `jobs` threads. `unit` returns the unit of an index, or `None` after the last; `so_far`
    /// receives the figures after each unit.
    ///
    /// # Errors
    /// The first failure.
    pub fn run<S: Subject>(
        self,
        subject: &S,
        jobs: usize,
        unit: impl Fn(u64) -> Option<(Vec<Step>, Limits)> + Sync,
        so_far: impl Fn(&Counts) + Sync,
    ) -> Result<Counts, String> {
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    while !self.stop.load(Ordering::Relaxed) && self.different.load(Ordering::Relaxed) < self.enough {
                        let Some((steps, limits)) = unit(self.next.fetch_add(1, Ordering::Relaxed)) else { return };
                        match explore(subject, &plain, &steps, &limits, self.disks) {
                            Ok(counts) => {
                                self.different.fetch_add(counts.different, Ordering::Relaxed);
                                let mut all = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
                                all.add(&counts);
                                so_far(&all);
                            }
                            Err(why) => {
                                self.stop.store(true, Ordering::Relaxed);
                                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                                let failure = failure.get_or_insert_default();
                                let _ = writeln!(failure, "{why}");
                            }
                        }
                    }
                });
            }
        });
        match self.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(why) => Err(why),
            None => Ok(self.counts.into_inner().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}
