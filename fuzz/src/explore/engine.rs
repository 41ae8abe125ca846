//! The whole database under the explorer: transactions of each durability, checkpoints with their segments and merges,
//! forgetting, compacting, sealing and retaining, closing, opening, crashing.

use holotype::answer::Output;
use holotype::query::Params;
use holotype::{
    Durability, EpisodeChange, Forget, Holotype, ItemId, Layer, Mark, NewRecall, NewTrace, Options, Pointer, Space,
    Status, Transaction,
};
use holotype_storage::vfs::{Crash, SimVfs, Vfs as _};
use std::path::Path;

use super::{DiskView, Found, Limits, RunSegment, Step, Subject, steps};
use crate::story::{self, DATABASE, Seen, see_all};

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
#[derive(Clone, Copy, Debug)]
pub struct EngineSubject;

/// The items that a reader sees after each commit, and the first commit that forgot something.
#[derive(Clone, Debug)]
pub struct Visible {
    commits: Vec<Vec<Seen>>,
    forgotten: Option<usize>,
}

impl Subject for EngineSubject {
    type Truth = Visible;

    fn name(&self) -> &'static str {
        "engine"
    }

    fn steps(&self) -> &'static [&'static str] {
        &STEPS
    }

    fn writes(&self) -> usize {
        5
    }

    fn mutant_units(&self) -> Vec<Vec<Step>> {
        vec![
            steps(&[(0, 0), (5, 0), (1, 0), (6, 0), (3, 0)]),
            steps(&[(4, 0), (5, 0), (0, 2), (5, 0), (8, 3), (0, 0)]),
            steps(&[(0, 0), (2, 0), (5, 0), (9, 1), (0, 0), (10, 0), (11, 0)]),
            steps(&[(4, 0), (3, 0), (12, 0), (0, 0), (12, 0)]),
            steps(&[(0, 0), (6, 0), (4, 0)]),
        ]
    }

    fn limits(&self) -> (Limits, Limits) {
        let all = Limits { states_of_point: 8, states_of_recovery: 3, recoveries: 32, only_last_step: true };
        (all, Limits { only_last_step: false, ..all })
    }

    fn run(&self, view: DiskView<'_>, steps: &[Step]) -> Result<Vec<RunSegment<Self::Truth>>, String> {
        let disk = SimVfs::new();
        let options = Options { space: Some(Space::new("explored", 2)), ..story::options() };
        let mut database = Holotype::create_on(view(&disk), DATABASE, options).map_err(said)?;
        let mut parts = vec![RunSegment::new(disk, 0, Visible { commits: vec![Vec::new(); 2], forgotten: None })];
        parts[0].promise(1);
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
                    let items = part.truth.commits.last().map_or(&[][..], Vec::as_slice);
                    write(&mut transaction, step, newest, items).map_err(said)?;
                    let commit = transaction.commit(durability).map_err(said)?;
                    // Readers see a commit that is not durable yet only if no one waits for its sync, so the truth
                    // comes from the state.
                    let snapshot = database.snapshot();
                    if snapshot.commit() != commit.number {
                        return Err(format!("commit {} is not seen at {}", commit.number, snapshot.commit()));
                    }
                    part.truth.commits.push(see_all(&snapshot).map_err(said)?);
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
                    if let Some(some) = some_item(part.truth.commits.last().map_or(&[][..], Vec::as_slice), step) {
                        let forget = Forget::because("it was asked for");
                        let forget = if step.salt % 2 == 1 { forget.cascade() } else { forget };
                        database.forget(&[some], &forget).map_err(said)?;
                        part.truth.forgotten.get_or_insert(part.truth.commits.len());
                        part.truth.commits.push(see_all(&database.snapshot()).map_err(said)?);
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
                    let (head, seen) = (database.head().commit.0, see_all(&database.snapshot()).map_err(said)?);
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
        let seen = see_all(&snapshot).map_err(said)?;
        if seen != *expected {
            let differs = seen.iter().zip(expected).find(|(seen, expected)| seen != expected);
            return Err(format!("commit {commit} shows something else: {differs:?}"));
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
        let items = truth.commits.get(before as usize).map_or(&[][..], Vec::as_slice);
        write(&mut transaction, Step { kind: 0, salt: 77 }, 9_999, items).map_err(said)?;
        transaction.commit(Durability::Sync).map_err(said)?;
        let seen = see_all(&database.snapshot()).map_err(said)?;
        let lost = disk.crash(Crash::Lose);
        kill(database, disk);
        let database = Holotype::open_on(view(&lost), DATABASE, story::options()).map_err(said)?;
        if see_all(&database.snapshot()).map_err(said)? != seen {
            return Err(format!("a transaction after commit {before} was lost or altered"));
        }
        without_catalog(view, &lost, database)
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

/// Removes the catalog of a database and compares the rebuilt state with the former one: reused segments must be of
/// this log, and contain nothing that was forgotten.
fn without_catalog(view: DiskView<'_>, disk: &SimVfs, database: Holotype) -> Result<(), String> {
    let expected = (see_all(&database.snapshot()).map_err(said)?, found(&database)?);
    kill(database, disk);
    disk.remove(&Path::new(DATABASE).join("catalog.redb")).map_err(|error| error.to_string())?;
    let database = Holotype::open_on(view(disk), DATABASE, story::options()).map_err(said)?;
    if (see_all(&database.snapshot()).map_err(said)?, found(&database)?) != expected {
        return Err(format!("after a rebuild that reused {} segments, the state differs", database.report().reused));
    }
    let report = database.verify(&mut |_, _| ()).map_err(said)?;
    kill(database, disk);
    if report.is_clean() { Ok(()) } else { Err(format!("after a rebuild it does not verify: {:?}", report.faults)) }
}

/// The results of a word search and of a vector search.
fn found(database: &Holotype) -> Result<Vec<(ItemId, f32)>, String> {
    let snapshot = database.snapshot();
    let mut found = Vec::new();
    for output in snapshot.query(BY_WORDS, &Params::new()).map_err(said)? {
        if let Output::Answer(answer) = output {
            found.extend(answer.rows.iter().map(|row| (row.item, row.score)));
        }
    }
    for layer in [Layer::Trace, Layer::Recall] {
        found.extend(snapshot.nearest(layer, &[1.0, 2.0], 20).map_err(said)?);
    }
    Ok(found)
}

const BY_WORDS: &str = "recall 'said in much' through traces 30 by words; recall 'fact of' through recalls 30 by words";

/// Expects that no file contains forgotten content: neither the log nor derived files.
fn nothing_survives(disk: &SimVfs, commits: &[Vec<Seen>]) -> Result<(), String> {
    let now = commits.last().map_or(&[][..], Vec::as_slice);
    let forgotten = (0..now.len()).filter(|&item| now[item].text.is_empty());
    let text =
        |item: usize| commits.iter().filter_map(|seen| Some(&seen.get(item)?.text)).find(|text| !text.is_empty());
    let marks: Vec<&[u8]> = forgotten.filter_map(|item| mark_in(text(item)?)).collect();
    for path in disk.files() {
        let bytes = disk.bytes(&path).map_err(|error| error.to_string())?;
        for mark in &marks {
            if bytes.windows(mark.len()).any(|window| window == *mark) {
                return Err(format!("{:?} was forgotten, but is in {}", mark.escape_ascii(), path.display()));
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
fn some_item(items: &[Seen], step: Step) -> Option<ItemId> {
    let known: Vec<usize> = (0..items.len()).filter(|&at| !items[at].text.is_empty()).collect();
    let chosen = known.get((step.salt as usize).checked_rem(known.len())?)?;
    Some(ItemId(*chosen as u32))
}

/// Writes the records of a step, after `commit` commits that made these items.
fn write(transaction: &mut Transaction<'_>, step: Step, commit: u32, items: &[Seen]) -> holotype::Result<()> {
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
