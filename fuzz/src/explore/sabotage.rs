//! Mutants of the protocol: each sync left out, each two changes swapped that stand in an order, and the explorer and
//! the auditor must notice. The product knows nothing of it: a run is recorded with the place in the code that made
//! each change, and crashed as if that place had been written otherwise ([`SimVfs::reordered`]).
//!
//! A *site* is what a change is and the functions of ours it was made in, innermost first. Leaving a sync out
//! means leaving out all changes of its site, in runs and in recoveries. Swapping means moving the first of two changes
//! of one thread behind the second wherever they follow each other; at least one of the two is a sync, a rename or a
//! removal, for the order of two writes with no sync between them means nothing to a disk.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use holotype_storage::vfs::{Operation, SimVfs, Vfs};

use super::{Disks, Edit, Leg, Limits, Step, Subject, explore_legs};

/// How many functions make a site.
const DEPTH: usize = 4;

/// Something written otherwise.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mutant {
    /// The syncs of a site are left out.
    Without(String),
    /// The changes of the first site come after those of the second that follow them.
    Swapped(String, String),
}

impl Mutant {
    /// True if it is the other one where that is called by more functions.
    fn is_called(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Without(site), Self::Without(inner)) => site.starts_with(inner),
            (Self::Swapped(first, second), Self::Swapped(inner_first, inner_second)) => {
                first.starts_with(inner_first) && second.starts_with(inner_second)
            }
            _ => false,
        }
    }
}

impl std::fmt::Display for Mutant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Without(site) => write!(f, "without {site}"),
            Self::Swapped(first, second) => write!(f, "{first} after {second}"),
        }
    }
}

/// Why a mutant is none: what it leaves out or swaps changes nothing that was promised.
#[must_use]
pub fn equivalent(mutant: &Mutant) -> Option<&'static str> {
    let text = mutant.to_string();
    EQUIVALENT.iter().find(|(parts, _)| parts.iter().all(|part| text.contains(part))).map(|(_, why)| *why)
}

/// Why the first status block of a database need not be durable.
const FIRST_LOCK: &str = "nothing was said before, and a lock that says nothing is what the first opening expects";

/// Why an older status block does no harm.
const OLD_LOCK: &str = "that the log was closed is believed only where it ends there, and what a crash left behind that end is cut off once it is met";

/// Why it does not matter what redb does to a catalog as it is let go of.
const CLOSED_CATALOG: &str = "another catalog has its place by then, or is about to be made from the log";

/// Parts of the names of mutants that are equivalent, with the reason.
const EQUIVALENT: &[(&[&str], &str)] = &[
    (&["without sync .log in mod::sync_from"], "recovery writes again and syncs whatever nothing proves to be durable"),
    (
        &["without sync directory in mod::sync_from"],
        "the name of a segment in use was durable before its header was written, and a prepared one gets its name again",
    ),
    (&["mod::sync_from", "after sync directory in mod::sync_from"], "two syncs with nothing between them"),
    (
        &["sync directory in mod::sync_from", "after"],
        "nothing that recovery writes rests on a name that this sync makes durable",
    ),
    (&["remove_unfinished"], "an unfinished file means nothing to anybody"),
    (
        &["sync directory in mod::renew_first", "after rename .log in mod::spares"],
        "the sync behind the names of the next segment covers that of the first, and nothing is written between",
    ),
    (&["prepare::fill", "first_segment", "without"], "the sync of the header right behind it covers the zeros"),
    (&["prepare::fill", "first_segment", "after"], "the sync of the header right behind it covers the zeros"),
    (
        &["prepare::fill", "after remove .log.tmp in prepare::remove_if_there"],
        "a preparation that failed leaves a file that nobody uses",
    ),
    (
        &["sync .log in mod::renew", "in mod::spares"],
        "the bytes of the segment in use and the names of those behind it do not touch",
    ),
    (
        &["sync .log in tail::zero", "after write .log in writer::write"],
        "the sync that the next append is acknowledged by covers the zeros",
    ),
    (
        &["sync .log in tail::zero", "after write .log in group_commit::write_held"],
        "the sync that the next append is acknowledged by covers the zeros",
    ),
    (
        &["sync directory in mod::spares", "after write .log in group_commit::write_held"],
        "what is held belongs to the segment in use and rests on no name behind it",
    ),
    (
        &["remove_later_segments", "after sync .log in tail::zero"],
        "two syncs with nothing between them: where something is zeroed, that write comes between",
    ),
    (
        &["catalog::open_writer"],
        "what redb writes as it opens a file is in the header that the next commit writes and syncs, and nothing rests on it before",
    ),
    (
        &["sync catalog.redb", "catalog::begin", "after write catalog.redb", "catalog::begin"],
        "the first commit of a file syncs twice, and the file has its name after that",
    ),
    (
        &["catalog::begin", "after rename catalog.redb.tmp"],
        "behind its last sync redb writes a header that means the same, and waits for nothing",
    ),
    (
        &["catalog::checkpoint", "after rename catalog.redb.tmp in catalog::put_in_place"],
        "behind its last sync redb writes a header that means the same, and waits for nothing",
    ),
    (
        &["catalog::begin", "after sync .log in mod::sync_from"],
        "a catalog that was begun and has no name means nothing to anybody",
    ),
    (
        &["sync directory in catalog::put_in_place", "after write catalog.redb", "catalog::checkpoint"],
        "what is written of a checkpoint means nothing before it is synced, and the name is durable by then",
    ),
    (&["remove .", "files::remove_other", " after remove "], "files that no manifest names are removed in any order"),
    (
        &["remove .", "derived_writer::remove_replaced", " after remove "],
        "files that no manifest names are removed in any order",
    ),
    (
        &["remove .", "derived_writer::remove_replaced", " after write .log"],
        "opening removes what no manifest names, and nothing in the log rests on its being gone",
    ),
    (
        &["sync .log in mod::renew", " after remove .", "files::remove_other"],
        "nothing in the log rests on files that no manifest names",
    ),
    (
        &["sync .log in tail::zero", " after remove .", "files::remove_other"],
        "nothing in the log rests on files that no manifest names",
    ),
    (&["sync .log in mod::renew", " after write catalog.redb in open::open"], CLOSED_CATALOG),
    (&["sync .log in group_commit", " after write catalog.redb in open::open"], CLOSED_CATALOG),
    (&["without sync catalog.redb in open::open"], CLOSED_CATALOG),
    (&["without sync catalog.redb in compact::compact"], CLOSED_CATALOG),
    (&["without sync catalog.redb in forget::complete_forget"], CLOSED_CATALOG),
    (&["sync catalog.redb in open::open", " after "], CLOSED_CATALOG),
    (&["sync catalog.redb in compact::compact", " after "], CLOSED_CATALOG),
    (&["sync catalog.redb in forget::complete_forget", " after "], CLOSED_CATALOG),
    (&["set length of catalog.redb", " after sync catalog.redb"], "redb cuts off what nothing uses as it closes"),
    (&["sync catalog.redb in database::close", " after write LOCK"], "the lock says nothing of the catalog"),
    (
        &["without sync directory in catalog::put_in_place", "rebuild::install"],
        "a catalog that was made from the log and lost its name is made from it once more",
    ),
    (
        &[
            "rename catalog.redb.tmp in catalog::put_in_place",
            "rebuild::install",
            " after sync directory in catalog::put_in_place",
        ],
        "a catalog that was made from the log and lost its name is made from it once more",
    ),
    (
        &["sync .log in mod::renew", " after write .log in redaction::erase"],
        "what recovery writes again before it goes on erasing stands there already, whatever a crash leaves of it",
    ),
    (
        &[" after remove catalog.redb.tmp in catalog::discard"],
        "a catalog that was begun and has no name means nothing to anybody",
    ),
    (
        &[
            "sync directory in catalog::put_in_place",
            "database::create_on",
            " after write .log in group_commit::write_held",
        ],
        "until its first commit is durable there is nothing to lose, and a catalog without a name is made anew",
    ),
    (&["sync directory in files::sync_dirs", " after write catalog.redb in compact::compact"], CLOSED_CATALOG),
    (&["sync directory in files::sync_dirs", " after write catalog.redb in forget::complete_forget"], CLOSED_CATALOG),
    (
        &["sync directory in mod::renew_first", " after rename catalog.redb.tmp"],
        "what recovery names again has its name already, whatever a crash leaves of it",
    ),
    (
        &["sync directory in stream::finish", " after write catalog.redb", "catalog::checkpoint"],
        "what is written of a checkpoint means nothing before it is synced, and the directory is synced before that",
    ),
    (&["sync directory in floor::retire"], "opening removes the segments before the floor that a crash left"),
    (
        &["sync directory in floor::write"],
        "no segment goes in these runs: the engine's tests of `retain` notice it where one does",
    ),
    (
        &[
            "remove .wseg in files::remove_other",
            "rebuild_online::rebuild_once",
            " after sync directory in files::sync_dirs",
        ],
        "that is the first of three directories to be synced; the one of words comes last",
    ),
    (&["without sync LOCK in lock::writer", "database::create_on"], FIRST_LOCK),
    (&["write LOCK in lock::writer", "database::create_on", " after sync LOCK in lock::writer"], FIRST_LOCK),
    (&["without sync LOCK in lock::writer", "open::open"], OLD_LOCK),
    (&["write LOCK in lock::writer", "open::open", " after sync LOCK in lock::writer"], OLD_LOCK),
    (
        &["sync LOCK in lock::writer", " after remove catalog.redb.tmp in catalog::begin"],
        "a catalog that was begun and has no name means nothing to anybody",
    ),
];

/// Who notices a mutant, and what they say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// A crash state that is not as promised.
    pub crash: Option<String>,
    /// The auditor.
    pub auditor: Option<String>,
}

impl Verdict {
    /// True if anybody does.
    #[must_use]
    pub fn is_caught(&self) -> bool {
        self.crash.is_some() || self.auditor.is_some()
    }
}

/// The places changes are made in, numbered as they are met.
#[derive(Debug, Default)]
pub struct Sites {
    names: Mutex<Vec<String>>,
    numbers: Mutex<HashMap<String, u64>>,
    threads: AtomicU64,
}

thread_local! {
    static THREAD: Cell<u64> = const { Cell::new(0) };
    /// The functions of ours at an address, innermost first.
    static FRAMES: RefCell<HashMap<usize, Vec<String>>> = RefCell::new(HashMap::new());
}

impl Sites {
    /// Shows a disk to a subject, noting the site and the thread of every change it makes.
    #[must_use]
    pub fn world(self: &Arc<Self>, sim: &SimVfs) -> Arc<dyn Vfs> {
        let sites = Arc::clone(self);
        sim.tag_changes(Arc::new(move |operation| sites.tag(operation)));
        Arc::new(sim.clone())
    }

    fn tag(&self, operation: &Operation) -> u64 {
        let thread = THREAD.with(|thread| {
            if thread.get() == 0 {
                thread.set(self.threads.fetch_add(1, Ordering::Relaxed) + 1);
            }
            thread.get()
        });
        let name = format!("{} in {}", kind(operation), functions().join(" < "));
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let next = numbers.len() as u64;
        let number = *numbers.entry(name).or_insert_with_key(|name| {
            self.names.lock().unwrap_or_else(PoisonError::into_inner).push(name.clone());
            next
        });
        thread << 32 | number
    }

    fn name(&self, tag: u64) -> String {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)[(tag & 0xffff_ffff) as usize].clone()
    }

    /// Every mutant there is of what a disk's history did.
    #[must_use]
    pub fn mutants(&self, disk: &SimVfs) -> BTreeSet<Mutant> {
        let changes = disk.changes();
        let mut mutants = BTreeSet::new();
        let mut last = HashMap::new();
        for (number, (tag, operation)) in changes.iter().enumerate() {
            if is_sync(operation) {
                mutants.insert(Mutant::Without(self.name(*tag)));
            }
            if let Some(before) = last.insert(tag >> 32, number) {
                let (first_tag, first): &(u64, Operation) = &changes[before];
                if first_tag != tag && is_ordered(first, operation) {
                    mutants.insert(Mutant::Swapped(self.name(*first_tag), self.name(*tag)));
                }
            }
        }
        mutants
    }

    /// The numbers of the changes the mutant makes, in its order.
    #[must_use]
    pub fn order(&self, mutant: &Mutant, changes: &[(u64, Operation)]) -> Vec<usize> {
        match mutant {
            Mutant::Without(site) => {
                (0..changes.len()).filter(|&at| !is_sync(&changes[at].1) || self.name(changes[at].0) != *site).collect()
            }
            Mutant::Swapped(first, second) => {
                let mut order: Vec<usize> = (0..changes.len()).collect();
                let mut last: HashMap<u64, usize> = HashMap::new();
                for at in 0..changes.len() {
                    let (tag, operation) = &changes[at];
                    let Some(before) = last.insert(tag >> 32, at) else { continue };
                    let (first_tag, first_operation) = &changes[before];
                    let swaps = self.name(*first_tag) == *first
                        && self.name(*tag) == *second
                        && is_ordered(first_operation, operation);
                    if swaps {
                        // Behind the second, wherever that stands by now.
                        order.retain(|&number| number != before);
                        let place = order.iter().position(|&number| number == at).map_or(order.len(), |at| at + 1);
                        order.insert(place, before);
                    }
                }
                order
            }
        }
    }
}

/// The runs of a subject that mutants are tried on, and the mutants they have.
pub struct Runs<'s, S: Subject> {
    subject: &'s S,
    limits: Limits,
    sites: Arc<Sites>,
    runs: Vec<Vec<Leg<S::Truth>>>,
    mutants: BTreeSet<Mutant>,
}

impl<'s, S: Subject> Runs<'s, S> {
    /// Runs a subject, unchanged.
    ///
    /// # Errors
    /// When a run fails, or is noticed; when the program was built without line tables.
    pub fn of(subject: &'s S, units: &[Vec<Step>], limits: Limits) -> Result<Self, String> {
        if !has_line_tables() {
            return Err(
                "built without line tables, which tell sites apart: set debug = \"line-tables-only\"".to_owned()
            );
        }
        let sites = Arc::new(Sites::default());
        let world = |sim: &SimVfs| sites.world(sim);
        let mut runs = Vec::new();
        let mut mutants = BTreeSet::new();
        for steps in units {
            let legs = subject.run(&world, steps)?;
            for leg in &legs {
                mutants.extend(sites.mutants(&leg.disk));
            }
            // Recoveries have syncs of their own: met here, and mutated wherever the explorer opens a state.
            let met = Mutex::new(&mut mutants);
            let order = |disk: &SimVfs| {
                met.lock().unwrap_or_else(PoisonError::into_inner).extend(sites.mutants(disk));
                None
            };
            let edit = Edit { order: &order, objections: Mutex::default() };
            explore_legs(subject, &world, &legs, &limits, &edit, &Disks::new())?;
            runs.push(legs);
        }
        Ok(Self { subject, limits, sites, runs, mutants })
    }

    /// The mutants there are.
    #[must_use]
    pub fn mutants(&self) -> &BTreeSet<Mutant> {
        &self.mutants
    }

    /// Leaves out the mutants that are tried in other runs, of what is called here.
    #[must_use]
    pub fn without(mut self, others: &BTreeSet<Mutant>) -> Self {
        self.mutants.retain(|mutant| !others.iter().any(|other| mutant.is_called(other)));
        self
    }

    /// Leaves only those in whose name a text stands.
    #[must_use]
    pub fn named(mut self, text: &str) -> Self {
        self.mutants.retain(|mutant| mutant.to_string().contains(text));
        self
    }

    /// Tries them all, and says of each who notices; calls back as soon as that is known.
    pub fn try_all(&self, jobs: usize, on_verdict: &(dyn Fn(&Mutant, &Verdict) + Sync)) -> BTreeMap<Mutant, Verdict> {
        let mutants = Mutex::new(self.mutants.iter());
        let verdicts = Mutex::new(BTreeMap::new());
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    loop {
                        let mutant = mutants.lock().unwrap_or_else(PoisonError::into_inner).next();
                        let Some(mutant) = mutant else { return };
                        let verdict = try_mutant(self.subject, &self.sites, mutant, &self.runs, &self.limits);
                        on_verdict(mutant, &verdict);
                        verdicts.lock().unwrap_or_else(PoisonError::into_inner).insert(mutant.clone(), verdict);
                    }
                });
            }
        });
        verdicts.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tries a mutant; again, with more states of each point, when nobody notices and somebody should.
fn try_mutant<S: Subject>(
    subject: &S,
    sites: &Arc<Sites>,
    mutant: &Mutant,
    runs: &[Vec<Leg<S::Truth>>],
    limits: &Limits,
) -> Verdict {
    let verdict = try_within(subject, sites, mutant, runs, limits);
    if verdict.is_caught() || equivalent(mutant).is_some() {
        return verdict;
    }
    let more = Limits {
        states_of_point: 4 * limits.states_of_point,
        states_of_recovery: 2 * limits.states_of_recovery,
        recoveries: limits.recoveries.div_ceil(2),
        ..*limits
    };
    try_within(subject, sites, mutant, runs, &more)
}

fn try_within<S: Subject>(
    subject: &S,
    sites: &Arc<Sites>,
    mutant: &Mutant,
    runs: &[Vec<Leg<S::Truth>>],
    limits: &Limits,
) -> Verdict {
    let world = |sim: &SimVfs| sites.world(sim);
    let order = |disk: &SimVfs| Some(sites.order(mutant, &disk.changes()));
    let edit = Edit { order: &order, objections: Mutex::default() };
    let crash = runs.iter().find_map(|legs| {
        let explored = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            explore_legs(subject, &world, legs, limits, &edit, &Disks::new())
        }));
        match explored {
            Ok(Ok(_)) => None,
            Ok(Err(why)) => Some(why),
            Err(_) => Some("a panic".to_owned()),
        }
    });
    let auditor = edit.objections.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().next();
    Verdict { crash, auditor }
}

fn is_sync(operation: &Operation) -> bool {
    matches!(operation, Operation::Sync(_) | Operation::SyncDir(_))
}

/// True if the order of two changes can matter, and the second does not need the first to be possible.
fn is_ordered(first: &Operation, second: &Operation) -> bool {
    let makes = |operation: &Operation| {
        matches!(operation, Operation::Create(_) | Operation::CreateDir(_) | Operation::RenameDir(..))
    };
    let fails = |operation: &Operation| matches!(operation, Operation::FailedSync(_) | Operation::FailedSyncDir(_));
    if [first, second].into_iter().any(|operation| makes(operation) || fails(operation)) {
        return false;
    }
    let orders =
        |operation: &Operation| is_sync(operation) || matches!(operation, Operation::Rename(..) | Operation::Remove(_));
    let names = |operation: &Operation| match operation {
        Operation::Rename(from, to) => vec![from.clone(), to.clone()],
        Operation::Remove(path) => vec![path.clone()],
        _ => Vec::new(),
    };
    let second_names = names(second);
    (orders(first) || orders(second)) && !names(first).iter().any(|name| second_names.contains(name))
}

/// What a change is, and of what: names without numbers. Bytes are a file's whatever it was called when it was opened.
fn kind(operation: &Operation) -> String {
    let of = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = name.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '-');
        let is_of_names = matches!(operation, Operation::Rename(..) | Operation::Remove(_) | Operation::Create(_));
        if is_of_names { name } else { name.strip_suffix(".tmp").unwrap_or(name) }.to_owned()
    };
    match operation {
        Operation::CreateDir(_) => "create directory".to_owned(),
        Operation::RemoveDir(_) => "remove directory".to_owned(),
        Operation::RenameDir(..) => "rename directory".to_owned(),
        Operation::Create(path) => format!("create {}", of(path)),
        Operation::Write { path, .. } => format!("write {}", of(path)),
        Operation::SetLen { path, .. } => format!("set length of {}", of(path)),
        Operation::Sync(path) | Operation::FailedSync(path) => format!("sync {}", of(path)),
        Operation::Rename(from, _) => format!("rename {}", of(from)),
        Operation::Remove(path) => format!("remove {}", of(path)),
        Operation::SyncDir(_) | Operation::FailedSyncDir(_) => "sync directory".to_owned(),
    }
}

/// True if this program knows the file and line of its own code.
fn has_line_tables() -> bool {
    let mut found = false;
    backtrace::trace(|frame| {
        backtrace::resolve_frame(frame, |symbol| {
            found |= symbol.lineno().is_some() && symbol.filename().is_some_and(|file| file.ends_with("sabotage.rs"));
        });
        !found
    });
    found
}

/// The functions of ours that the caller is in, innermost first. What redb does in one call of ours is one site.
fn functions() -> Vec<String> {
    let mut functions = Vec::new();
    FRAMES.with_borrow_mut(|known| {
        backtrace::trace(|frame| {
            let address = frame.ip() as usize;
            let ours = known.entry(address).or_insert_with(|| {
                let mut ours = Vec::new();
                backtrace::resolve_frame(frame, |symbol| ours.extend(function(symbol)));
                ours
            });
            functions.extend_from_slice(ours);
            functions.len() < DEPTH
        });
    });
    functions.truncate(DEPTH);
    functions
}

/// The name of a function of ours with its line, without crate, closures and generics.
fn function(symbol: &backtrace::Symbol) -> Option<String> {
    let file = symbol.filename()?.to_string_lossy().into_owned();
    let ours = ["storage/src/", "engine/src/", "index/src/"].iter().any(|place| file.contains(place));
    if !ours || file.contains("src/vfs/") {
        return None;
    }
    let name = format!("{:#}", symbol.name()?);
    let module = Path::new(&file).file_stem()?.to_string_lossy().into_owned();
    let mut depth = 0;
    let plain = name.replace("->", "").split_inclusive(['<', '>']).fold(String::new(), |mut plain, part| {
        if depth == 0 {
            plain.push_str(part.trim_end_matches(['<', '>']));
        }
        depth += i32::from(part.ends_with('<')) - i32::from(part.ends_with('>'));
        plain
    });
    let function = plain.split("::").filter(|part| !part.is_empty() && !part.starts_with('{')).last()?;
    Some(format!("{module}::{function}:{}", symbol.lineno().unwrap_or(0)))
}
