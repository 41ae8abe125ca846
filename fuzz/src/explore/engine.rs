//! The whole database under the explorer: transactions of each durability, checkpoints with their segments and merges,
//! forgetting, compacting, sealing and retaining, closing, opening, crashing.
//!
//! A run begins with an empty database, or with one whose next checkpoint links a graph, or extends one, that refers to
//! the log for its vectors (`linked.rs`).

use holotype::answer::Output;
use holotype::query::Params;
use holotype::{
    Durability, EpisodeChange, Forget, Holotype, ItemId, Layer, Mark, NewRecall, NewTrace, Options, Pointer, Snapshot,
    Space, Status, Transaction,
};
use holotype_storage::vfs::{Crash, SimVfs, Vfs as _};
use std::path::Path;

use super::linked::{self, Start};
use super::{DiskView, Found, Limits, RunSegment, Step, Subject, sequences, steps};
use crate::story::{self, DATABASE, Seen, see};

const STEPS: [&str; 13] = [
    "record and sync",
    "record and flush",
    "remember and do not wait",
    "mark and sync",
    "record much",
    "checkpoint",
    "close and open",
    "drop and open",
    "crash",
    "forget",
    "compact",
    "seal",
    "retain",
];

/// The database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineSubject {
    /// It is created at the beginning.
    Empty,
    /// It has so many vectors at the beginning that one more makes them a graph.
    Linked,
    /// It has a graph at the beginning, and so many vectors besides that one more extends it.
    Extended,
}

/// A reader's view after each commit, and the first commit that forgot something.
#[derive(Clone, Debug)]
pub struct Visible {
    commits: Vec<View>,
    forgotten: Option<usize>,
}

/// A reader's view of items, and of the answers to some searches by vector.
#[derive(Clone, Debug, Default, PartialEq)]
struct View {
    items: Vec<(ItemId, Seen)>,
    nearest: Vec<(ItemId, f32)>,
}

impl EngineSubject {
    /// The database that a run begins with; `None` if it is created.
    fn start(self) -> Option<&'static Start> {
        match self {
            Self::Empty => None,
            Self::Linked => Some(&linked::UNLINKED),
            Self::Extended => Some(&linked::LINKED),
        }
    }

    /// A reader's view of all items, but of those that a run begins with only of some.
    fn view(self, snapshot: &Snapshot) -> Result<View, String> {
        let seen = (0..snapshot.len()).filter(|item| self.start().is_none_or(|start| start.is_sample(*item)));
        let items = seen.map(|item| Ok((ItemId(item), see(snapshot, ItemId(item))?)));
        let items = items.collect::<holotype::Result<_>>().map_err(said)?;
        Ok(View { items, nearest: nearest(snapshot).map_err(said)? })
    }

    /// Begins a run: its disk, its database, and what a reader sees after each commit.
    fn begin(self, view: DiskView<'_>) -> Result<(SimVfs, Holotype, Vec<View>), String> {
        if let Some(start) = self.start() {
            let disk = start.disk();
            let database = Holotype::open_on(view(&disk), DATABASE, story::options()).map_err(said)?;
            let first = self.view(&database.snapshot())?;
            let commit = database.head().commit.0 as usize;
            return Ok((disk, database, vec![first; commit + 1]));
        }
        let disk = SimVfs::new();
        let options = Options { space: Some(Space::new("explored", 2)), ..story::options() };
        let database = Holotype::create_on(view(&disk), DATABASE, options).map_err(said)?;
        Ok((disk, database, vec![View::default(); 2]))
    }

    /// Removes the catalog of a database and compares the rebuilt state with the former one: reused segments must be of
    /// this log, and contain nothing that was forgotten.
    fn without_catalog(self, view: DiskView<'_>, disk: &SimVfs, database: Holotype) -> Result<(), String> {
        let expected = (self.view(&database.snapshot())?, found(&database)?);
        kill(database, disk);
        disk.remove(&Path::new(DATABASE).join("catalog.redb")).map_err(|error| error.to_string())?;
        let database = Holotype::open_on(view(disk), DATABASE, story::options()).map_err(said)?;
        if (self.view(&database.snapshot())?, found(&database)?) != expected {
            return Err(format!(
                "after a rebuild that reused {} segments, the state differs",
                database.report().reused
            ));
        }
        let report = database.verify(&mut |_, _| ()).map_err(said)?;
        kill(database, disk);
        if report.is_clean() { Ok(()) } else { Err(format!("after a rebuild it does not verify: {:?}", report.faults)) }
    }
}

impl Visible {
    /// The items after the last commit.
    fn newest(&self) -> &[(ItemId, Seen)] {
        self.commits.last().map_or(&[][..], |view| &view.items)
    }
}

impl Subject for EngineSubject {
    type Truth = Visible;

    fn name(&self) -> &'static str {
        match self {
            Self::Empty => "engine",
            Self::Linked => "linked",
            Self::Extended => "extended",
        }
    }

    fn steps(&self) -> &'static [&'static str] {
        &STEPS
    }

    fn writes(&self) -> usize {
        5
    }

    fn short_sequences(&self) -> Vec<Vec<Step>> {
        match self {
            Self::Empty => sequences(STEPS.len(), 2).collect(),
            // A graph is linked, also after the records of its vectors moved; then records move or are erased.
            Self::Linked => vec![
                steps(&[(4, 0), (5, 0), (9, 6)]),
                steps(&[(1, 0), (5, 0)]),
                steps(&[(2, 0), (6, 0)]),
                steps(&[(12, 0), (1, 0), (5, 0)]),
                steps(&[(1, 0), (5, 0), (12, 0)]),
                steps(&[(4, 0), (5, 0), (10, 0)]),
            ],
            // It is extended after records of its vectors moved, and then erased or moved.
            Self::Extended => vec![steps(&[(1, 0), (5, 0), (9, 6)]), steps(&[(12, 0), (1, 0), (5, 0)])],
        }
    }

    fn mutant_units(&self) -> Vec<Vec<Step>> {
        if *self != Self::Empty {
            return self.short_sequences();
        }
        vec![
            steps(&[(0, 0), (5, 0), (1, 0), (6, 0), (3, 0)]),
            steps(&[(4, 0), (5, 0), (0, 2), (5, 0), (8, 3), (0, 0)]),
            steps(&[(0, 0), (2, 0), (5, 0), (9, 1), (0, 0), (10, 0), (11, 0)]),
            steps(&[(4, 0), (3, 0), (12, 0), (0, 0), (12, 0)]),
            steps(&[(0, 0), (6, 0), (4, 0)]),
        ]
    }

    fn limits(&self) -> (Limits, Limits) {
        let all =
            Limits { states_of_point: 8, states_of_recovery: 3, recoveries: 32, outcomes: 1, only_last_step: true };
        // A state of thousands of items takes as long as many of an empty database.
        let all = match self {
            Self::Empty => all,
            Self::Linked => Limits { states_of_point: 3, states_of_recovery: 2, outcomes: 16, ..all },
            Self::Extended => Limits { states_of_point: 2, states_of_recovery: 2, outcomes: 16, ..all },
        };
        (all, Limits { only_last_step: false, ..all })
    }

    fn run(&self, view: DiskView<'_>, steps: &[Step]) -> Result<Vec<RunSegment<Self::Truth>>, String> {
        let (disk, mut database, commits) = self.begin(view)?;
        let first = commits.len() as u32 - 1;
        let durable = if *self == Self::Empty { 0 } else { first };
        let mut parts = vec![RunSegment::new(disk, durable, Visible { commits, forgotten: None })];
        parts[0].promise(first);
        for &step in steps {
            let part = parts.last_mut().ok_or("there is a part")?;
            part.last_step = part.disk.history_len();
            let newest = part.truth.commits.len() as u32 - 1;
            match step.kind {
                0..=4 => {
                    let durability = match step.kind {
                        0 | 3 | 4 => Durability::Sync,
                        1 => Durability::Flush,
                        _ => Durability::None,
                    };
                    let mut transaction = database.begin().map_err(said)?;
                    let items = part.truth.newest();
                    write(&mut transaction, step, newest, items).map_err(said)?;
                    let commit = transaction.commit(durability).map_err(said)?;
                    // Readers see a commit that is not durable yet only if no one waits for its sync, so the truth
                    // comes from the state.
                    let snapshot = database.snapshot();
                    if snapshot.commit() != commit.number {
                        return Err(format!("commit {} is not seen at {}", commit.number, snapshot.commit()));
                    }
                    part.truth.commits.push(self.view(&snapshot)?);
                    if durability == Durability::Sync {
                        part.promise(newest + 1);
                    }
                }
                5 => {
                    database.checkpoint().map_err(said)?;
                    part.promise(newest);
                }
                6 | 7 => {
                    if step.kind == 6 {
                        database.close().map_err(said)?;
                        part.promise(newest);
                    } else {
                        kill(database, &part.disk);
                    }
                    database = Holotype::open_on(view(&part.disk), DATABASE, story::options()).map_err(said)?;
                    part.promise(newest);
                }
                9 => {
                    if let Some(some) = some_item(part.truth.newest(), step) {
                        let forget = Forget::because("it was asked for");
                        let forget = if step.salt % 2 == 1 { forget.cascade() } else { forget };
                        database.forget(&[some], &forget).map_err(said)?;
                        part.truth.forgotten.get_or_insert(part.truth.commits.len());
                        part.truth.commits.push(self.view(&database.snapshot())?);
                        part.promise(newest + 1);
                    }
                }
                10 => {
                    database.compact().map_err(said)?;
                    part.promise(newest);
                }
                11 => {
                    database.seal().map_err(said)?;
                    part.promise(newest);
                }
                12 => {
                    database.retain(newest.into(), None).map_err(said)?;
                    // Retained records show nothing new.
                    let (head, seen) = (database.head().commit.0, self.view(&database.snapshot())?);
                    part.truth.commits.resize(head as usize + 1, seen);
                    part.promise(head as u32);
                }
                _ => {
                    let disk = part.disk.crash(Crash::Seeded(step.salt));
                    kill(database, &part.disk);
                    database = Holotype::open_on(view(&disk), DATABASE, story::options()).map_err(said)?;
                    let found = database.head().commit.0 as usize;
                    let promised = part.promises.last().map_or(0, |(_, promised)| *promised);
                    let truth = part.truth.commits.get(..=found).ok_or("more commits than were made")?.to_vec();
                    let forgotten = part.truth.forgotten.filter(|first| *first <= found);
                    let mut next = RunSegment::new(disk, promised, Visible { commits: truth, forgotten });
                    next.promise(found as u32);
                    parts.push(next);
                }
            }
        }
        if let Some(part) = parts.last() {
            kill(database, &part.disk);
        }
        Ok(parts)
    }

    fn look(&self, disk: &SimVfs, truth: &Self::Truth, promised: u32) -> Result<(), String> {
        let promised = promised as usize;
        let forgotten = truth.forgotten.is_some_and(|first| first <= promised);
        if forgotten { nothing_survives(disk, &truth.commits[..=promised]) } else { Ok(()) }
    }

    fn open(&self, view: DiskView<'_>, disk: &SimVfs, truth: &Self::Truth) -> Result<Option<Found>, String> {
        let database = match Holotype::open_on(view(disk), DATABASE, story::options()) {
            Ok(database) => database,
            // Before the database was created, any error is right.
            Err(_) if !disk.files().iter().any(|path| path.extension().is_some_and(|end| end == "log")) => {
                return Ok(None);
            }
            Err(error) => return Err(error.to_string()),
        };
        let snapshot = database.snapshot();
        let commit = snapshot.commit() as usize;
        let expected = truth.commits.get(commit).ok_or_else(|| format!("commit {commit} was never made"))?;
        let seen = self.view(&snapshot)?;
        if seen != *expected {
            let differs = seen.items.iter().zip(&expected.items).find(|(seen, expected)| seen != expected);
            let nearest = (seen.nearest != expected.nearest).then_some((seen.nearest, &expected.nearest));
            return Err(format!("commit {commit} shows something else: {differs:?}, {nearest:?}"));
        }
        let report = database.report();
        // An interrupted forget is an exception: derived files from before it must not be used again.
        let forgotten = truth.forgotten.is_some_and(|first| first <= commit);
        if report.rebuilt.is_some() && !forgotten && commit > 1 {
            return Err(format!("a crash made a rebuild necessary: {:?}", report.rebuilt));
        }
        if forgotten {
            nothing_survives(disk, &truth.commits[..=commit])?;
        }
        let recovered = !report.recovery.is_empty();
        let cut = report.recovery.iter().any(|words| words.contains("never synced"));
        drop(snapshot);
        kill(database, disk);
        Ok(Some(Found { progress: commit as u32, recovered, cut }))
    }

    fn go_on(&self, view: DiskView<'_>, disk: &SimVfs, truth: &Self::Truth) -> Result<(), String> {
        let database = Holotype::open_on(view(disk), DATABASE, story::options()).map_err(said)?;
        let report = database.verify(&mut |_, _| ()).map_err(said)?;
        if !report.is_clean() {
            return Err(format!("it does not verify: {:?}", report.faults));
        }
        let before = database.head().commit.0;
        if before == 0 {
            return Ok(());
        }
        let mut transaction = database.begin().map_err(said)?;
        let items = truth.commits.get(before as usize).map_or(&[][..], |view| &view.items);
        write(&mut transaction, Step { kind: 0, salt: 77 }, 9_999, items).map_err(said)?;
        transaction.commit(Durability::Sync).map_err(said)?;
        let seen = self.view(&database.snapshot())?;
        let lost = disk.crash(Crash::Lose);
        kill(database, disk);
        let database = Holotype::open_on(view(&lost), DATABASE, story::options()).map_err(said)?;
        if self.view(&database.snapshot())? != seen {
            return Err(format!("a transaction after commit {before} was lost or altered"));
        }
        self.without_catalog(view, &lost, database)
    }

    fn without_remains(&self, disk: &SimVfs) {
        for path in disk.files() {
            if path.ends_with("LOCK") || path.extension().is_some_and(|extension| extension == "bin") {
                // It was just listed.
                let _ = disk.remove(&path);
            }
        }
    }
}

/// The results of a word search.
fn found(database: &Holotype) -> Result<Vec<(ItemId, f32)>, String> {
    let mut found = Vec::new();
    for output in database.snapshot().query(BY_WORDS, &Params::new()).map_err(said)? {
        if let Output::Answer(answer) = output {
            found.extend(answer.rows.iter().map(|row| (row.item, row.score)));
        }
    }
    Ok(found)
}

/// The results of searches by vector; none before the first commit, which tells the space.
fn nearest(snapshot: &Snapshot) -> holotype::Result<Vec<(ItemId, f32)>> {
    let mut found = Vec::new();
    if snapshot.commit() == 0 {
        return Ok(found);
    }
    for (layer, near) in [(Layer::Trace, [1.0, 2.0]), (Layer::Recall, [1.0, 2.0]), (Layer::Trace, linked::MIDDLE)] {
        found.extend(snapshot.nearest(layer, &near, 20)?);
    }
    Ok(found)
}

const BY_WORDS: &str = "recall 'said in much' through traces 30 by words; recall 'fact of' through recalls 30 by words";

/// Expects that no file contains forgotten content: neither the log nor derived files.
fn nothing_survives(disk: &SimVfs, commits: &[View]) -> Result<(), String> {
    let now = commits.last().map_or(&[][..], |view| &view.items);
    let forgotten = (0..now.len()).filter(|&at| now[at].1.text.is_empty());
    let text =
        |at: usize| commits.iter().filter_map(|view| Some(&view.items.get(at)?.1.text)).find(|text| !text.is_empty());
    let marks: Vec<&[u8]> = forgotten.filter_map(|at| mark_in(text(at)?)).collect();
    for path in disk.files() {
        let bytes = disk.bytes(&path).map_err(|error| error.to_string())?;
        for mark in &marks {
            if bytes.windows(mark.len()).any(|window| window == *mark) {
                return Err(format!("{} was forgotten, but is in {}", mark.escape_ascii(), path.display()));
            }
        }
    }
    Ok(())
}

/// A text with a unique word. A dictionary may omit a prefix that a word shares with the word before it.
fn marked(text: &str, commit: u32, n: u8) -> String {
    let [first, second] = [commit as u8, n].map(|number| char::from(b'a' + number % 26));
    format!("{text} {}.", format!("{first}{second}").repeat(8))
}

/// The part of the word that is present in every representation of it.
fn mark_in(text: &str) -> Option<&[u8]> {
    text.rsplit(' ').next()?.as_bytes().get(1..15)
}

/// Drops the database without the close record that dropping writes.
fn kill(database: Holotype, disk: &SimVfs) {
    disk.set_read_only(true);
    drop(database);
    disk.set_read_only(false);
}

fn said(error: holotype::Error) -> String {
    error.to_string()
}

/// One of the items that were not forgotten, since forgotten items refuse writes.
fn some_item(items: &[(ItemId, Seen)], step: Step) -> Option<ItemId> {
    let known: Vec<ItemId> = items.iter().filter(|(_, seen)| !seen.text.is_empty()).map(|(id, _)| *id).collect();
    known.get((step.salt as usize).checked_rem(known.len())?).copied()
}

/// Writes the records of a step, after `commit` commits that made these items.
fn write(transaction: &mut Transaction<'_>, step: Step, commit: u32, items: &[(ItemId, Seen)]) -> holotype::Result<()> {
    let key = format!("k{commit}");
    match (step.kind, some_item(items, step)) {
        (2, Some(some)) => {
            let text = marked("fact of", commit, 0);
            let fact = NewRecall::fact(text.clone()).key(key).from(Pointer::to_item(some));
            let fact = transaction.remember(fact.vector(vec![0.5, commit as f32]))?;
            transaction.claim(fact, "said", &text, false, &[])?;
        }
        (3, Some(some)) => {
            transaction.mark(some, Mark::Status(Status::Failed), Some(format!("looked at in {commit}")))?;
            transaction.episode("e", EpisodeChange { open: Some(false), ..EpisodeChange::default() })?;
        }
        (4, _) => {
            for n in 0..3 {
                let trace = NewTrace::turn("e", marked(&"much ".repeat(2_000), commit, n)).key(format!("{key}-{n}"));
                transaction.record(trace.vector(vec![1.0, f32::from(n)]))?;
            }
        }
        _ => {
            transaction.record(NewTrace::turn("e", marked("said in", commit, 0)).key(key).vector(vec![1.0, 0.0]))?;
        }
    }
    Ok(())
}
