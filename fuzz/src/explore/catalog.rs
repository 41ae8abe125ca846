//! The catalog under the explorer: checkpoints of rows, each a durable transaction of redb.

use std::collections::BTreeMap;
use std::path::Path;

use holotype_storage::Error;
use holotype_storage::catalog::{Applied, Catalog, CatalogOptions};
use holotype_storage::features::Access;
use holotype_storage::log::{CommitNo, Lsn};
use holotype_storage::overlay::{RowKey, View};
use holotype_storage::vfs::{Crash, SimVfs};

use super::{DiskView, Found, Limits, Random, RunSegment, Step, Subject, sequences, steps};

const PATH: &str = "/db/catalog.redb";
const DATABASE: [u8; 16] = [5; 16];
const STEPS: [&str; 7] = [
    "checkpoint",
    "checkpoint many rows",
    "checkpoint long rows",
    "delete all rows",
    "close and open",
    "crash",
    "pack",
];

/// The catalog.
#[derive(Clone, Copy, Debug)]
pub struct CatalogSubject;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;
type Changes = Vec<(RowKey, Option<Vec<u8>>)>;

impl Subject for CatalogSubject {
    /// The rows after each checkpoint; the first entry is the empty catalog.
    type Truth = Vec<Rows>;

    fn name(&self) -> &'static str {
        "catalog"
    }

    fn steps(&self) -> &'static [&'static str] {
        &STEPS
    }

    fn writes(&self) -> usize {
        4
    }

    fn short_sequences(&self) -> Vec<Vec<Step>> {
        sequences(STEPS.len(), 2).collect()
    }

    fn mutant_units(&self) -> Vec<Vec<Step>> {
        vec![
            steps(&[(0, 0), (1, 0), (4, 0), (2, 0)]),
            steps(&[(2, 0), (3, 0), (5, 3), (0, 0)]),
            steps(&[(1, 0), (6, 0), (0, 0)]),
        ]
    }

    fn limits(&self) -> (Limits, Limits) {
        let all =
            Limits { states_of_point: 16, states_of_recovery: 4, recoveries: 48, outcomes: 1, only_last_step: true };
        (all, Limits { states_of_point: 24, only_last_step: false, ..all })
    }

    fn run(&self, view: DiskView<'_>, steps: &[Step]) -> Result<Vec<RunSegment<Vec<Rows>>>, String> {
        let said = |error: Error| error.to_string();
        let disk = SimVfs::new();
        let vfs = view(&disk);
        vfs.create_dir(Path::new("/db")).map_err(|error| error.to_string())?;
        let mut catalog = Catalog::create(&*vfs, Path::new(PATH), DATABASE, &options()).map_err(said)?;
        let mut parts = vec![RunSegment::new(disk, 0, vec![Rows::new(), Rows::new()])];
        for &step in steps {
            let part = parts.last_mut().ok_or("there is a part")?;
            part.last_step = part.disk.history_len();
            match step.kind {
                4 => {
                    drop(catalog);
                    catalog = open(view, &part.disk).map_err(said)?;
                }
                6 => {
                    catalog.pack(&*view(&part.disk)).map_err(said)?;
                    drop(catalog);
                    catalog = open(view, &part.disk).map_err(said)?;
                }
                5 => {
                    drop(catalog);
                    let disk = part.disk.crash(Crash::Seeded(step.salt));
                    catalog = open(view, &disk).map_err(said)?;
                    let found = identify(&catalog, &part.truth)?;
                    let promised = part.promises.last().map_or(0, |(_, promised)| *promised);
                    let mut next = RunSegment::new(disk, promised, part.truth[..=found as usize].to_vec());
                    next.promise(found);
                    parts.push(next);
                }
                _ => {
                    let number = part.truth.len() as u64 - 1;
                    let (rows, changes) = change(part.truth.last().ok_or("there are rows")?, step, number);
                    part.truth.push(rows);
                    catalog.checkpoint(changes, &applied(number)).map_err(said)?;
                    part.promise(part.truth.len() as u32 - 1);
                }
            }
        }
        drop(catalog);
        Ok(parts)
    }

    fn open(&self, view: DiskView<'_>, disk: &SimVfs, truth: &Vec<Rows>) -> Result<Option<Found>, String> {
        match open(view, disk) {
            Ok(catalog) => Ok(Some(Found { progress: identify(&catalog, truth)?, recovered: true, cut: false })),
            Err(Error::MissingFile { .. }) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn go_on(&self, view: DiskView<'_>, disk: &SimVfs, truth: &Vec<Rows>) -> Result<(), String> {
        let said = |error: Error| error.to_string();
        let catalog = open(view, disk).map_err(said)?;
        catalog.verify().map_err(said)?;
        let before = identify(&catalog, truth)? as usize;
        let (rows, changes) = change(&truth[before], Step { kind: 1, salt: 99 }, before as u64);
        catalog.checkpoint(changes, &applied(before as u64)).map_err(said)?;
        drop(catalog);
        let catalog = open(view, &disk.crash(Crash::Lose)).map_err(said)?;
        let mut truth = truth[..=before].to_vec();
        truth.push(rows);
        match identify(&catalog, &truth)? as usize {
            after if after == before + 1 => catalog.verify().map(drop).map_err(said),
            after => Err(format!("a checkpoint after {before} was lost: {after}")),
        }
    }
}

fn options() -> CatalogOptions {
    CatalogOptions { cache_len: 1 << 20, ..CatalogOptions::default() }
}

fn open(view: DiskView<'_>, disk: &SimVfs) -> Result<Catalog, Error> {
    Catalog::open(&*view(disk), Path::new(PATH), DATABASE, &options(), Access::Write)
}

fn applied(number: u64) -> Applied {
    Applied { position: Lsn(number * 100), commit: CommitNo(number), head: [number as u8; 32], blob: Vec::new() }
}

/// The changes of a checkpoint, and the rows after it.
fn change(before: &Rows, step: Step, number: u64) -> (Rows, Changes) {
    let mut random = Random(step.salt ^ number << 32);
    let (count, len) = match step.kind {
        0 => (3, 30),
        1 => (60, 40),
        2 => (4, 3000),
        _ => (0, 0),
    };
    let mut changed: BTreeMap<Vec<u8>, Option<Vec<u8>>> = (0..count)
        .map(|_| {
            let key = (random.below(40) as u32).to_be_bytes().to_vec();
            let value = (!random.below(5) != 0).then(|| vec![random.next() as u8; len]);
            (key, value)
        })
        .collect();
    if step.kind == 3 {
        changed = before.keys().map(|key| (key.clone(), None)).collect();
    }
    let mut rows = before.clone();
    for (key, value) in &changed {
        match value {
            Some(value) => rows.insert(key.clone(), value.clone()),
            None => rows.remove(key),
        };
    }
    (rows, changed.into_iter().map(|(key, value)| (RowKey::new(1, &key), value)).collect())
}

/// The number of checkpoints that the catalog contains, from its position; its rows must be those of that checkpoint.
fn identify(catalog: &Catalog, truth: &[Rows]) -> Result<u32, String> {
    let said = |error: Error| error.to_string();
    let applied = catalog.applied().map_err(said)?;
    let at = applied.as_ref().map_or(1, |applied| applied.commit.0 as usize + 1);
    if applied.is_some_and(|applied| applied != self::applied(applied.commit.0)) {
        return Err("the position was never written".to_owned());
    }
    let view = View::new(Some(catalog.snapshot().map_err(said)?));
    let rows: Result<Rows, Error> =
        view.prefix(1, &[]).map(|row| row.map(|(key, value)| (key, value.to_vec()))).collect();
    match truth.get(at) {
        Some(expected) if *expected == rows.map_err(said)? => Ok(at as u32),
        _ => Err(format!("the rows are not those of checkpoint {at}")),
    }
}
