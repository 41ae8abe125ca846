//! The router of a fleet: a database that says what each database is about.
//!
//! Each database has one fact, its [`Entry`]: the words it uses, what it holds, the time that spans, the commit it
//! was seen at. The themes above that fact have the centroids of its vectors, with the words that mark each. So a
//! router is read, asked and verified as any database is.
//!
//! The router expects of a database what its best row may score:
//!
//! ```text
//! E(database; q) = max over its centroids c of cos(v_q, c) + the share of q that its words cover
//! ```
//!
//! Words count by how rare they are among the databases. A database without centroids in the router's space has the
//! mean of the others in place of the first term.

pub(super) mod clusters;
pub(super) mod entry;
mod summary;
pub(super) mod update;

use super::question::Question;
use crate::core::handle::Holotype;
use crate::memory::embedder::Embedder;
use crate::model::item::{ItemId, Layer};
use crate::model::plural::counted;
use crate::options::Options;
use crate::read::nearest;
use crate::read::snapshot::Snapshot;
use crate::recall::words::WordIndexes;
use crate::{Error, Result};
use entry::{Entry, Part};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The key of the item that marks a router.
pub const MARKER: &str = "holotype-router";

/// Centroids that a question is compared with, at most: beyond them, the nearest ones by the graph.
const MOST_COMPARED: usize = 1 << 16;

/// A router, open for reading.
#[derive(Debug)]
pub struct Router {
    path: PathBuf,
    database: Holotype,
    loaded: Mutex<Option<Arc<Loaded>>>,
}

/// The entries of a router at one commit.
#[derive(Debug)]
pub(super) struct Loaded {
    snapshot: Snapshot,
    /// Without their words, which are many.
    entries: HashMap<String, Entry>,
    /// The facts of the entries, ascending, and the name of each.
    facts: Vec<(u32, String)>,
    /// The place in `facts` of each centroid's database.
    owners: HashMap<u32, usize>,
}

/// True if a database is a router.
pub(super) fn is_router(database: &Holotype) -> Result<bool> {
    Ok(database.snapshot().state.item_by_key(MARKER)?.is_some())
}

/// Refuses a database that is no router.
fn check(path: &Path, database: &Holotype) -> Result<()> {
    match is_router(database)? {
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "{} is a database, and no router; `holotype route build` makes one",
            path.display()
        ))),
    }
}

impl Router {
    /// Opens a router for reading. Its memory and its device are those of the options.
    ///
    /// # Errors
    /// As [`Holotype::open`]; [`Error::Invalid`] for a database that is no router.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Router> {
        let path = path.as_ref();
        let options = Options { read_only: true, append_only: false, witness: None, embedder: None, ..options.clone() };
        let database = Holotype::open(path, options)?;
        check(path, &database)?;
        Ok(Router { path: path.to_owned(), database, loaded: Mutex::default() })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its entries, by the paths of their databases.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let entries = entry::read_all(&self.load()?.snapshot)?;
        let mut entries: Vec<Entry> = entries.into_iter().map(|(_, entry)| entry).collect();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    /// The parts of a database; none if the router does not know it, or knows it by its words alone.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn parts(&self, entry: &Entry) -> Result<Vec<Part>> {
        let loaded = self.load()?;
        match loaded.facts.iter().find(|(_, name)| *name == entry.path) {
            Some((fact, _)) => Entry::parts(&loaded.snapshot, ItemId(*fact)),
            None => Ok(Vec::new()),
        }
    }

    /// The entries as they are now.
    pub(super) fn load(&self) -> Result<Arc<Loaded>> {
        self.database.refresh()?;
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = self.database.snapshot();
        let state = &snapshot.state;
        let is_newest = |loaded: &&Arc<Loaded>| {
            (loaded.snapshot.commit(), loaded.snapshot.state.meta.forgets) == (snapshot.commit(), state.meta.forgets)
        };
        if let Some(newest) = loaded.as_ref().filter(is_newest) {
            return Ok(Arc::clone(newest));
        }
        let newest = Arc::new(Loaded::new(snapshot)?);
        *loaded = Some(Arc::clone(&newest));
        Ok(newest)
    }
}

impl Loaded {
    fn new(snapshot: Snapshot) -> Result<Loaded> {
        let (mut entries, mut facts, mut owners) = (HashMap::new(), Vec::new(), HashMap::new());
        for (id, entry) in entry::read_all(&snapshot)? {
            for theme in entry::themes_of(&snapshot, id)? {
                owners.insert(theme.0, facts.len());
            }
            facts.push((id.0, entry.path.clone()));
            entries.insert(entry.path.clone(), Entry { words: String::new(), ..entry });
        }
        Ok(Loaded { snapshot, entries, facts, owners })
    }

    /// The commit of the router.
    pub(super) fn commit(&self) -> u64 {
        self.snapshot.commit()
    }

    /// The entry of a database, without its words.
    pub(super) fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.get(name)
    }

    /// The score that is expected of each database, by its name.
    pub(super) fn expect(
        &self,
        question: &Question<'_>,
        embedder: Option<&Arc<dyn Embedder>>,
        notes: &mut Vec<String>,
    ) -> Result<HashMap<String, f32>> {
        let words = self.coverage(question)?;
        let similarities = self.similarities(question, embedder)?;
        let known: Vec<f32> = similarities.iter().flatten().copied().collect();
        let mean = known.iter().sum::<f32>() / known.len().max(1) as f32;
        let unknown = similarities.len() - known.len();
        if unknown > 0 && !known.is_empty() {
            notes.push(format!(
                "the router knows {} by their words alone: they have no vectors in its space",
                counted(unknown as u64, "databases")
            ));
        } else if unknown > 0 && self.snapshot.space()?.is_some() {
            notes.push("the databases were chosen by words alone: nothing makes a vector of the question".to_owned());
        }
        let expected = self.facts.iter().zip(similarities).zip(words);
        Ok(expected
            .map(|(((_, name), similarity), words)| (name.clone(), similarity.unwrap_or(mean) + words))
            .collect())
    }

    /// The share of the question that the words of each database cover.
    fn coverage(&self, question: &Question<'_>) -> Result<Vec<f32>> {
        let ids: Vec<u32> = self.facts.iter().map(|(id, _)| *id).collect();
        let indexes = WordIndexes::of(&self.snapshot)?;
        match indexes.ask(question.words())?.of(Layer::Recall)? {
            Some(scorer) => Ok(scorer.coverage(&ids)?),
            None => Ok(vec![0.0; ids.len()]),
        }
    }

    /// The similarity of each database's best centroid; `None` for one that has no centroid, or a question without a
    /// vector in the router's space.
    fn similarities(&self, question: &Question<'_>, embedder: Option<&Arc<dyn Embedder>>) -> Result<Vec<Option<f32>>> {
        let mut best: Vec<Option<f32>> = vec![None; self.facts.len()];
        let Some(space) = self.snapshot.space()? else { return Ok(best) };
        let Some(vector) = question.vector_in(&space, embedder)? else { return Ok(best) };
        let state = &self.snapshot.state;
        let themes = state.attributes.base_sets(state.bound()).eligible(Layer::Theme)?;
        let found = nearest::search(&self.snapshot, Layer::Theme, &vector, MOST_COMPARED, &themes)?.unwrap_or_default();
        // One that is not among the nearest is at most as near as the last of them.
        let least = found.hits.last().map(|hit| hit.score);
        for hit in &found.hits {
            if let Some(best) = self.owners.get(&hit.id).and_then(|owner| best.get_mut(*owner)) {
                *best = Some(best.map_or(hit.score, |score: f32| score.max(hit.score)));
            }
        }
        for owner in self.owners.values() {
            if let Some(best) = best.get_mut(*owner).filter(|best| best.is_none()) {
                *best = least;
            }
        }
        Ok(best)
    }
}
