//! The crash explorer: runs of a subject on the simulated disk, a crash at every point of them, and what is left opened
//! and held against what was promised.
//!
//! A *subject* ([`Subject`]) is something durable: the log, redb as the catalog uses it, the whole database. A *unit*
//! is one run of it: a sequence of steps of its public face. All sequences of up to three steps are units, and so are
//! longer ones drawn from a seed. A step may be a crash itself; what follows it is another *leg* on the disk the crash
//! left.
//!
//! After each change a leg made to its disk the explorer stands there and takes the states a crash may leave
//! ([`SimVfs::crash_states`]): all combinations of fates up to twelve uncovered operations where these are not more
//! than [`Limits::states_of_point`], else so many samples. Of the states of an exhausted sequence that end in the same
//! steps as a shorter one only those of the last step are new, so only they are taken. Each state is opened, which
//! recovers it, and must show:
//!
//! 1. everything that was acknowledged before that point, and an exact prefix of what was written: no transaction in
//!    half, none altered, none twice;
//! 2. after losing whatever recovery did not sync, the same again, with nothing left to cut off (recovery is
//!    idempotent, and what an opening showed is durable);
//! 3. for the first state that recovery leaves so: it verifies, takes another transaction, and keeps that over a crash.
//!
//! Some of the recoveries are crashed in turn, at each change they make.
//!
//! A state whose disk is the same, byte for byte, as one already opened in the same leg is a duplicate. It is not
//! counted and not opened again, but what was found there is held against what is promised here. Another leg may come
//! to the same disk; it is opened there too, for what was written may be another, but it is not counted as different
//! ([`Disks`]).

pub mod catalog;
pub mod engine;
pub mod log;
pub mod sabotage;

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use holotype_storage::vfs::{Crash, SimVfs, Vfs};

/// How the subject sees a simulated disk: as it is, or through something that breaks the protocol.
pub type World<'w> = &'w (dyn Fn(&SimVfs) -> Arc<dyn Vfs> + Sync);

/// The disk as it is.
pub fn plain(sim: &SimVfs) -> Arc<dyn Vfs> {
    Arc::new(sim.clone())
}

/// One call of a subject's public face.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which: below [`Subject::steps`]'s length.
    pub kind: usize,
    /// What it is called with follows from this.
    pub salt: u64,
}

/// A stretch of a run on one disk.
#[derive(Debug)]
pub struct Leg<T> {
    /// The disk, with its history.
    pub disk: SimVfs,
    /// What progress was acknowledged when the history had this length, ascending.
    pub promises: Vec<(usize, u32)>,
    /// The length of the history when the last step began.
    pub last_step: usize,
    /// All that was written.
    pub truth: T,
}

impl<T> Leg<T> {
    /// A stretch on a disk where this progress is durable.
    pub fn new(disk: SimVfs, durable: u32, truth: T) -> Self {
        Self { disk, promises: vec![(0, durable)], last_step: 0, truth }
    }

    /// This progress is acknowledged from now on.
    pub fn promise(&mut self, progress: u32) {
        self.promises.push((self.disk.history_len(), progress));
    }
}

/// What a crash left, as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// How far it is, as the subject counts: more for everything that is acknowledged, 0 when there is nothing yet.
    pub progress: u32,
    /// True if recovery had something to do.
    pub recovered: bool,
    /// True if it cut off what was never synced.
    pub cut: bool,
}

/// Something durable that can be explored.
pub trait Subject: Sync {
    /// What a run wrote.
    type Truth: Send + Sync;

    /// What it is called.
    fn name(&self) -> &'static str;

    /// The names of its steps.
    fn steps(&self) -> &'static [&'static str];

    /// How many of them, from the first on, write.
    fn writes(&self) -> usize;

    /// The runs that mutants of the protocol are tried on: every call, in few steps.
    fn mutant_units(&self) -> Vec<Vec<Step>>;

    /// How far its units are explored, when all sequences are run and when they are drawn.
    fn limits(&self) -> (Limits, Limits);

    /// Runs the steps, after creating the subject on an empty disk.
    ///
    /// # Errors
    /// What went wrong: nothing should.
    fn run(&self, world: World<'_>, steps: &[Step]) -> Result<Vec<Leg<Self::Truth>>, String>;

    /// Looks at a crashed disk itself, on which this progress was acknowledged.
    ///
    /// # Errors
    /// What must not be there.
    fn look(&self, _disk: &SimVfs, _truth: &Self::Truth, _promised: u32) -> Result<(), String> {
        Ok(())
    }

    /// Opens a disk and compares what is there with what was written; nothing if there is no subject yet.
    ///
    /// # Errors
    /// What is not as it was written, or why it cannot be opened.
    fn open(&self, world: World<'_>, disk: &SimVfs, truth: &Self::Truth) -> Result<Option<Found>, String>;

    /// Verifies, writes something, crashes the disk and expects it there.
    ///
    /// # Errors
    /// What went wrong.
    fn go_on(&self, world: World<'_>, disk: &SimVfs, truth: &Self::Truth) -> Result<(), String>;

    /// Removes from a copy of a recovered disk what differs although the subject does not: what recovery put aside,
    /// clocks.
    fn without_remains(&self, _disk: &SimVfs) {}
}

/// How far a unit is explored.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The states taken at one point.
    pub states_of_point: u64,
    /// The states taken at one point of a recovery.
    pub states_of_recovery: u64,
    /// One in so many recoveries is crashed.
    pub recoveries: u64,
    /// Explore every leg from its beginning, or only its last step.
    pub only_last_step: bool,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Runs.
    pub units: u64,
    /// Points crashed at.
    pub points: u64,
    /// Those of which every state was taken.
    pub exhausted_points: u64,
    /// States opened, each different from all others of its leg, those of crashed recoveries among them.
    pub states: u64,
    /// Of these the ones no other leg had come to.
    pub different: u64,
    /// Of these the states of crashed recoveries.
    pub recovery_states: u64,
    /// States that had been seen before in the same leg.
    pub duplicates: u64,
    /// Different disks that recovery left, verified and gone on with.
    pub outcomes: u64,
}

impl Counts {
    /// Adds what another part did.
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
            r#"{{"units":{},"points":{},"exhausted_points":{},"states":{},"different":{},"recovery_states":{},"duplicates":{},"outcomes":{}}}"#,
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

/// The steps with these kinds; those that wait for a sync are marked so.
pub(crate) fn steps(kinds: &[(usize, u64)]) -> Vec<Step> {
    kinds.iter().map(|&(kind, salt)| Step { kind, salt }).collect()
}

/// A sequence of four to eleven steps out of `kinds`, of which those below `writes` write and are drawn more often.
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
}

/// Explores one unit.
///
/// # Errors
/// The first thing that is not as promised, with where it is.
pub fn explore<S: Subject>(
    subject: &S,
    world: World<'_>,
    steps: &[Step],
    limits: &Limits,
    disks: &Disks,
) -> Result<Counts, String> {
    let told = || {
        let names = steps.iter().map(|step| format!("{}({})", subject.steps()[step.kind], step.salt));
        format!("{}: {}", subject.name(), names.collect::<Vec<_>>().join(", "))
    };
    let explored = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let legs = subject.run(world, steps).map_err(|why| format!("running: {why}"))?;
        let edit = Edit { order: &|_| None, objections: Mutex::default() };
        explore_legs(subject, world, &legs, limits, &edit, disks)
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

/// What is done otherwise than it was, to see who notices.
pub(crate) struct Edit<'e> {
    /// The numbers of the changes of a disk's history that are made, in their order; nothing for all as they were.
    pub(crate) order: &'e (dyn Fn(&SimVfs) -> Option<Vec<usize>> + Sync),
    /// What the auditor says of that.
    pub(crate) objections: Mutex<Vec<String>>,
}

impl Edit<'_> {
    /// The disk with its history as it is done now, and that order if it is another.
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

/// Explores the legs of a run.
pub(crate) fn explore_legs<S: Subject>(
    subject: &S,
    world: World<'_>,
    legs: &[Leg<S::Truth>],
    limits: &Limits,
    edit: &Edit<'_>,
    disks: &Disks,
) -> Result<Counts, String> {
    let mut counts = Counts { units: 1, ..Counts::default() };
    let last = legs.len().saturating_sub(1);
    for (number, leg) in legs.iter().enumerate() {
        if number == last || !limits.only_last_step {
            let mut exploring = Exploring::new(subject, world, leg, limits, edit, disks);
            exploring.all_points().map_err(|why| format!("leg {number}, {why}"))?;
            counts.add(&exploring.counts);
        }
    }
    Ok(counts)
}

struct Exploring<'e, S: Subject> {
    subject: &'e S,
    world: World<'e>,
    truth: &'e S::Truth,
    limits: &'e Limits,
    edit: &'e Edit<'e>,
    disks: &'e Disks,
    /// The disk of the leg and what was promised, as edited.
    disk: SimVfs,
    promises: Vec<(usize, u32)>,
    last_step: usize,
    /// Fingerprints of the states opened, and the progress found.
    seen: HashMap<u64, u32>,
    /// Fingerprints of the disks that recovery left, and the progress they hold.
    outcomes: HashMap<u64, Option<u32>>,
    counts: Counts,
}

impl<'e, S: Subject> Exploring<'e, S> {
    fn new(
        subject: &'e S,
        world: World<'e>,
        leg: &'e Leg<S::Truth>,
        limits: &'e Limits,
        edit: &'e Edit<'e>,
        disks: &'e Disks,
    ) -> Self {
        let (disk, order) = edit.apply(&leg.disk);
        // A promise stands behind as many changes as are left of those it stood behind.
        let moved = |len: usize| order.as_ref().map_or(len, |order| order.iter().filter(|&&at| at < len).count());
        let promises = leg.promises.iter().map(|&(len, promised)| (moved(len), promised)).collect();
        let last_step = moved(leg.last_step);
        let (seen, outcomes, counts) = (HashMap::new(), HashMap::new(), Counts::default());
        let truth = &leg.truth;
        Self { subject, world, truth, limits, edit, disks, disk, promises, last_step, seen, outcomes, counts }
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

    /// Crashes the recovery of a state that was just opened, at each change it made.
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

    /// Opens a state, unless it was before, and says what was found if something new was.
    fn state(&mut self, state: &SimVfs, promised: u32) -> Result<Option<Found>, String> {
        let print = state.fingerprint();
        if let Some(&progress) = self.seen.get(&print) {
            self.counts.duplicates += 1;
            return enough(progress, promised).map(|()| None);
        }
        self.counts.states += 1;
        self.counts.different += u64::from(self.disks.is_new(print));
        self.subject.look(state, self.truth, promised)?;
        let found = self.subject.open(self.world, state, self.truth)?;
        let progress = found.map_or(0, |found| found.progress);
        self.seen.insert(print, progress);
        enough(progress, promised)?;
        self.again(state, found)?;
        Ok(found)
    }

    /// Loses what recovery did not sync, and expects the same again.
    fn again(&mut self, state: &SimVfs, found: Option<Found>) -> Result<(), String> {
        let left = self.edit.apply(state).0.crash(Crash::Lose);
        let bare = left.crash(Crash::Keep);
        self.subject.without_remains(&bare);
        let progress = found.map(|found| found.progress);
        let print = bare.fingerprint();
        let known = match self.outcomes.get(&print) {
            Some(known) => *known,
            None => {
                self.counts.outcomes += 1;
                let again =
                    self.subject.open(self.world, &left, self.truth).map_err(|why| format!("opened again: {why}"))?;
                if let Some(again) = again {
                    if again.cut {
                        return Err(format!("opened again there is something left to cut off: {again:?}"));
                    }
                    self.subject.go_on(self.world, &left, self.truth).map_err(|why| format!("gone on with: {why}"))?;
                }
                let known = again.map(|again| again.progress);
                self.outcomes.insert(print, known);
                known
            }
        };
        if known == progress {
            Ok(())
        } else {
            Err(format!("showed progress {progress:?}, and opened again {known:?}"))
        }
    }
}

fn enough(found: u32, promised: u32) -> Result<(), String> {
    if found >= promised { Ok(()) } else { Err(format!("progress {found} is left of {promised} acknowledged")) }
}

/// An operation without its bytes.
fn told(operation: Option<&holotype_storage::vfs::Operation>) -> String {
    match operation {
        Some(holotype_storage::vfs::Operation::Write { path, offset, bytes }) => {
            format!("Write {} at {offset}, {} bytes", path.display(), bytes.len())
        }
        Some(other) => format!("{other:?}"),
        None => "nothing".to_owned(),
    }
}

/// The fingerprints of all disks that a run of the explorer came to: eight bytes each and the room of a hash table.
#[derive(Debug)]
pub struct Disks {
    parts: Vec<Mutex<HashSet<u64>>>,
}

impl Disks {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self { parts: (0..64).map(|_| Mutex::default()).collect() }
    }

    /// Notes a disk, and says whether nobody had come to it.
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

/// What several threads share that explore units one after another until there are enough different states.
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
    /// Until there are so many states that none of `disks` is the same as.
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

    /// Explores units on `jobs` threads: `unit` gives the unit with a number, or nothing when there are no more;
    /// `so_far` is told after each what was done.
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
