//! Mutants of the write protocol: one sync is left out, or two ordered changes are swapped, and the explorer or the
//! auditor must detect it. The product code is not changed: a run is recorded with the code location of each change,
//! and crashed as if that code were different ([`SimVfs::reordered`]).
//!
//! A *site* is the kind of a change with the functions of this project that made it, innermost first. Leaving out a
//! sync removes all changes of its site, in runs and in recoveries. A swap moves the first of two changes of one thread
//! after the second wherever they follow each other. At least one of the two is a sync, a rename or a removal: without
//! a sync between them, the order of two writes does not matter to a disk.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use holotype_storage::vfs::{Operation, SimVfs, Vfs};

use super::{Disks, Edit, Limits, RunSegment, Step, Subject, explore_parts};

/// The number of functions in a site's name.
const DEPTH: usize = 4;

/// A change of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mutant {
    /// The syncs of a site are left out.
    Without(String),
    /// Changes of the first site are moved after those of the second that follow them.
    Swapped(String, String),
}

impl Mutant {
    /// True if it equals the other mutant, with fewer callers in the names of its sites.
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

/// The reason why a mutant is equivalent to the original: it breaks no promise. `None` if it is not known to be.
#[must_use]
pub fn equivalent(mutant: &Mutant) -> Option<&'static str> {
    let text = mutant.to_string();
    EQUIVALENT.iter().find(|(parts, _)| parts.iter().all(|part| text.contains(part))).map(|(_, why)| *why)
}

/// The reason why the first status block of a database need not be durable.
const FIRST_LOCK: &str = "the file had no status before, and the first opening expects a LOCK without a status";

/// The reason why an older status block does no harm.
const OLD_LOCK: &str =
    "`closed` counts only at the end of the log, and remains of a crash after it are removed when met";

/// The reason why redb's last changes of a closed catalog do not matter.
const CLOSED_CATALOG: &str = "another catalog has replaced it by then, or is about to be rebuilt from the log";

/// The reason why one of the syncs of a packed catalog may come late or not at all.
const PACKED_CATALOG: &str =
    "it is synced by its commit and once more by closing, which only cuts the file, and then named";

/// Parts of the names of equivalent mutants, with the reason.
const EQUIVALENT: &[(&[&str], &str)] = &[
    (&["without sync .log in mod::sync_from"], "recovery rewrites and syncs everything that is not proven durable"),
    (
        &["sync .log in mod::renew", "after sync .log in mod::sync_from"],
        "the next opening syncs the same files, and nothing is acknowledged between the two",
    ),
    (
        &["write .log in group_commit::write_held", "group_commit::drop", "after sync .log in mod::sync_from"],
        "recovery rewrites and syncs everything that is not proven durable, so that sync need not cover the write",
    ),
    (
        &["without sync directory in mod::sync_from"],
        "the name of a segment in use was durable before its header was written, and a prepared one is renamed again",
    ),
    (&["mod::sync_from", "after sync directory in mod::sync_from"], "two syncs with nothing between them"),
    (
        &["sync directory in mod::sync_from", "after"],
        "nothing that recovery writes depends on a name that this sync makes durable",
    ),
    (&["remove_unfinished"], "no code reads an unfinished file"),
    (
        &["sync directory in mod::renew_first", "after rename .log in mod::spares"],
        "the sync after the renames of later segments also covers the first one's name, and nothing is written between",
    ),
    (&["prepare::fill", "first_segment", "without"], "the sync of the header that follows covers the zeros"),
    (&["prepare::fill", "first_segment", "after"], "the sync of the header that follows covers the zeros"),
    (
        &["prepare::fill", "after remove .log.tmp in prepare::remove_if_there"],
        "a failed preparation leaves a file that no code uses",
    ),
    (
        &["prepare::discard"],
        "a prepared segment that is there again after closing holds nothing, and the next opening uses or removes it",
    ),
    (
        &["sync .log in mod::renew", "in mod::spares"],
        "the bytes of the segment in use and the names of later segments are independent",
    ),
    (
        &["sync .log in mod::mend_headers", "in mod::spares"],
        "the next opening mends a copy of a header that is not durable, and no name of a later segment depends on it",
    ),
    (
        &["sync .log in mod::renew", "after write .log in mod::mend_headers"],
        "the header is mended from its valid copy, which neither depends on renewed bytes nor is read with them",
    ),
    (
        &["sync .log in tail::zero", "after write .log in writer::write"],
        "the sync that acknowledges the next append covers the zeros",
    ),
    (
        &["sync .log in tail::zero", "after write .log in group_commit::write_held"],
        "the sync that acknowledges the next append covers the zeros",
    ),
    (
        &["sync directory in mod::spares", "after write .log in group_commit::write_held"],
        "buffered bytes belong to the segment in use and do not depend on later names",
    ),
    (
        &["remove_later_segments", "after sync .log in tail::zero"],
        "two syncs with nothing between them: if bytes are zeroed, that write is between them",
    ),
    (
        &["catalog::open_writer"],
        "redb's changes at opening are in the header that the next commit syncs, and nothing depends on them before",
    ),
    (
        &["sync catalog.redb", "catalog::begin", "after write catalog.redb", "catalog::begin"],
        "the first commit of a file syncs twice, and the file gets its name after that",
    ),
    (
        &["catalog::begin", "after rename catalog.redb.tmp"],
        "after its last sync redb writes an equivalent header, without waiting for it",
    ),
    (
        &["catalog::checkpoint", "after rename catalog.redb.tmp in catalog::put_in_place"],
        "after its last sync redb writes an equivalent header, without waiting for it",
    ),
    (
        &["catalog::begin", "after sync .log in mod::sync_from"],
        "no code reads a catalog that was begun but has no name",
    ),
    (
        &["sync directory in catalog::put_in_place", "after write catalog.redb", "catalog::checkpoint"],
        "a checkpoint has no effect before it is synced, and the name is durable by then",
    ),
    (&["remove .", "files::remove_other", " after remove "], "files that no manifest names are removed in any order"),
    (
        &["remove .", "derived_writer::remove_replaced", " after remove "],
        "files that no manifest names are removed in any order",
    ),
    (
        &["remove .", "derived_writer::remove_replaced", " after write .log"],
        "opening removes files that no manifest names, and the log does not depend on their removal",
    ),
    (
        &["sync .log in mod::renew", " after remove .", "files::remove_other"],
        "the log does not depend on files that no manifest names",
    ),
    (
        &["sync .log in tail::zero", " after remove .", "files::remove_other"],
        "the log does not depend on files that no manifest names",
    ),
    (&["sync .log in mod::renew", " after write catalog.redb in open::open"], CLOSED_CATALOG),
    (&["sync .log in group_commit", " after write catalog.redb in open::open"], CLOSED_CATALOG),
    (&["without sync catalog.redb in open::open"], CLOSED_CATALOG),
    (&["without sync catalog.redb in compact::compact"], CLOSED_CATALOG),
    (&["without sync catalog.redb in forget::complete_forget"], CLOSED_CATALOG),
    (&["sync catalog.redb in open::open", " after "], CLOSED_CATALOG),
    (&["sync catalog.redb in compact::compact", " after "], CLOSED_CATALOG),
    (&["sync catalog.redb in forget::complete_forget", " after "], CLOSED_CATALOG),
    (&["without sync catalog.redb", "catalog::pack"], PACKED_CATALOG),
    (&["sync catalog.redb", "catalog::pack", " after write catalog.redb", "catalog::pack"], PACKED_CATALOG),
    (&["write catalog.redb", "catalog::pack", " after sync catalog.redb", "catalog::pack"], PACKED_CATALOG),
    (&["sync catalog.redb", "catalog::pack", " after rename catalog.redb.tmp"], PACKED_CATALOG),
    (
        &["sync directory in catalog::put_in_place", "catalog::pack", " after write catalog.redb in backend::write"],
        "the file that is written next is the one before, which has no name any more",
    ),
    (&["set length of catalog.redb", " after sync catalog.redb"], "redb truncates unused space as it closes"),
    (&["sync catalog.redb in database::close", " after write LOCK"], "the lock's status does not concern the catalog"),
    (
        &["without sync directory in catalog::put_in_place", "rebuild::install"],
        "a rebuilt catalog that lost its name is rebuilt again",
    ),
    (
        &[
            "rename catalog.redb.tmp in catalog::put_in_place",
            "rebuild::install",
            " after sync directory in catalog::put_in_place",
        ],
        "a rebuilt catalog that lost its name is rebuilt again",
    ),
    (
        &["sync .log in mod::renew", " after write .log in redaction::erase"],
        "recovery rewrites bytes that are already there before it continues an erasure, so a crash cannot change them",
    ),
    (&[" after remove catalog.redb.tmp in catalog::discard"], "no code reads a catalog that was begun but has no name"),
    (
        &[
            "sync directory in catalog::put_in_place",
            "database::create_on",
            " after write .log in group_commit::write_held",
        ],
        "until its first commit is durable there is nothing to lose, and a catalog without a name is rebuilt",
    ),
    (&["sync directory in files::sync_dirs", " after write catalog.redb in compact::compact"], CLOSED_CATALOG),
    (&["sync directory in files::sync_dirs", " after write catalog.redb in forget::complete_forget"], CLOSED_CATALOG),
    (
        &["sync directory in mod::renew_first", " after rename catalog.redb.tmp"],
        "a file that recovery renames again already has its name, so a crash cannot change it",
    ),
    (
        &["sync directory in stream::finish", " after write catalog.redb", "catalog::checkpoint"],
        "a checkpoint has no effect before it is synced, and the directory is synced before that",
    ),
    (&["sync directory in floor::retire"], "opening removes the segments before the floor that a crash left"),
    (
        &["sync directory in floor::write"],
        "no segment is removed in these runs; the engine's tests of `retain` detect this where one is",
    ),
    (
        &[
            "remove .wseg in files::remove_other",
            "rebuild_online::rebuild_once",
            " after sync directory in files::sync_dirs",
        ],
        "this syncs the first of three directories; the directory of words comes last",
    ),
    (&["without sync LOCK in lock::writer", "database::create_on"], FIRST_LOCK),
    (&["write LOCK in lock::writer", "database::create_on", " after sync LOCK in lock::writer"], FIRST_LOCK),
    (&["without sync LOCK in lock::writer", "open::open"], OLD_LOCK),
    (&["write LOCK in lock::writer", "open::open", " after sync LOCK in lock::writer"], OLD_LOCK),
    (
        &["sync LOCK in lock::writer", " after remove catalog.redb.tmp in catalog::begin"],
        "no code reads a catalog that was begun but has no name",
    ),
];

/// The detection of a mutant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The failure of a crash state, if there is one.
    pub crash: Option<String>,
    /// The auditor's objection, if there is one.
    pub auditor: Option<String>,
}

impl Verdict {
    /// True if the explorer or the auditor detects it.
    #[must_use]
    pub fn is_caught(&self) -> bool {
        self.crash.is_some() || self.auditor.is_some()
    }
}

/// The sites of changes, numbered in order of occurrence.
#[derive(Debug, Default)]
pub struct Sites {
    names: Mutex<Vec<String>>,
    numbers: Mutex<HashMap<String, u64>>,
    threads: AtomicU64,
}

thread_local! {
    static THREAD: Cell<u64> = const { Cell::new(0) };
    /// The functions of this project at an address, innermost first.
    static FRAMES: RefCell<HashMap<usize, Vec<String>>> = RefCell::new(HashMap::new());
}

impl Sites {
    /// A view of a disk that records the site and the thread of every change.
    #[must_use]
    pub fn view(self: &Arc<Self>, sim: &SimVfs) -> Arc<dyn Vfs> {
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

    /// All mutants of a disk's history.
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

    /// The indices of the changes that the mutant makes, in its order.
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
                        // After the second, at its present index.
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

/// The runs of a subject for mutants, and their mutants.
pub struct Runs<'s, S: Subject> {
    subject: &'s S,
    limits: Limits,
    sites: Arc<Sites>,
    runs: Vec<Vec<RunSegment<S::Truth>>>,
    mutants: BTreeSet<Mutant>,
}

impl<'s, S: Subject> Runs<'s, S> {
    /// Runs a subject, unchanged.
    ///
    /// # Errors
    /// If an unchanged run fails or is objected to, or the program was built without line tables.
    pub fn of(subject: &'s S, units: &[Vec<Step>], limits: Limits) -> Result<Self, String> {
        if !has_line_tables() {
            return Err(
                "built without line tables, which tell sites apart: set debug = \"line-tables-only\"".to_owned()
            );
        }
        let sites = Arc::new(Sites::default());
        let view = |sim: &SimVfs| sites.view(sim);
        let mut runs = Vec::new();
        let mut mutants = BTreeSet::new();
        for steps in units {
            let parts = subject.run(&view, steps)?;
            for part in &parts {
                mutants.extend(sites.mutants(&part.disk));
            }
            // Recoveries have their own syncs: they are recorded here, and mutated whenever the explorer opens a state.
            let met = Mutex::new(&mut mutants);
            let order = |disk: &SimVfs| {
                met.lock().unwrap_or_else(PoisonError::into_inner).extend(sites.mutants(disk));
                None
            };
            let edit = Edit { order: &order, objections: Mutex::default() };
            explore_parts(subject, &view, &parts, &limits, &edit, &Disks::new())?;
            runs.push(parts);
        }
        Ok(Self { subject, limits, sites, runs, mutants })
    }

    /// All mutants.
    #[must_use]
    pub fn mutants(&self) -> &BTreeSet<Mutant> {
        &self.mutants
    }

    /// Removes the mutants that are tried in other runs of the same code.
    #[must_use]
    pub fn without(mut self, others: &BTreeSet<Mutant>) -> Self {
        self.mutants.retain(|mutant| !others.iter().any(|other| mutant.is_called(other)));
        self
    }

    /// Keeps only the mutants whose names contain a text.
    #[must_use]
    pub fn named(mut self, text: &str) -> Self {
        self.mutants.retain(|mutant| mutant.to_string().contains(text));
        self
    }

    /// Tries all mutants and returns their detection; calls back with each as soon as it is known.
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

/// Tries a mutant; if it is not detected but should be, tries it again with more states at each point.
fn try_mutant<S: Subject>(
    subject: &S,
    sites: &Arc<Sites>,
    mutant: &Mutant,
    runs: &[Vec<RunSegment<S::Truth>>],
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
    runs: &[Vec<RunSegment<S::Truth>>],
    limits: &Limits,
) -> Verdict {
    let view = |sim: &SimVfs| sites.view(sim);
    let order = |disk: &SimVfs| Some(sites.order(mutant, &disk.changes()));
    let edit = Edit { order: &order, objections: Mutex::default() };
    let crash = runs.iter().find_map(|parts| {
        let explored = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            explore_parts(subject, &view, parts, limits, &edit, &Disks::new())
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

/// The kind of a change and its file: names without numbers and temporary suffixes.
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

/// True if this program has line tables of its own code.
fn has_line_tables() -> bool {
    let mut found = false;
    backtrace::trace(|frame| {
        backtrace::resolve_frame(frame, |symbol| {
            found |= symbol.lineno().is_some()
                && symbol.filename().is_some_and(|file| file.ends_with("protocol_mutants.rs"));
        });
        !found
    });
    found
}

/// The functions of this project on the caller's stack, innermost first. All changes of redb in one call are one site.
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

/// The name of a function of this project, without crate, closures and generics.
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
