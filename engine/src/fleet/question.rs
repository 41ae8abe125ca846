//! A question to a fleet, and how one database is asked it.

use crate::core::handle::Holotype;
use crate::memory::embedder::Embedder;
use crate::model::embed::{self, HashingEmbedder};
use crate::model::space::Space;
use crate::model::time::Moment;
use crate::read::answer::Answer;
use crate::read::snapshot::Snapshot;
use crate::recall::condition::Condition;
use crate::recall::stage::Weights;
use crate::state::settings;
use crate::{Error, Result};
use holotype_storage::log::Head;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Rows of an answer unless the question sets them.
pub const DEFAULT_ROWS: usize = 10;

/// How a fleet is asked.
///
/// ```
/// use holotype::fleet::FleetRecall;
/// use holotype::condition::attribute;
///
/// let recall = FleetRecall::default().limit(5).ask(20).filter(attribute("kind").is("turn"));
/// # let _ = recall;
/// ```
#[derive(Debug, Clone)]
pub struct FleetRecall {
    pub(super) limit: usize,
    pub(super) ask: Option<usize>,
    near: Option<Vec<f32>>,
    profile: Option<String>,
    filter: Option<Condition>,
    at_time: Option<i64>,
}

impl Default for FleetRecall {
    fn default() -> Self {
        FleetRecall { limit: DEFAULT_ROWS, ask: None, near: None, profile: None, filter: None, at_time: None }
    }
}

impl FleetRecall {
    /// Gives at most this many rows.
    pub fn limit(self, rows: usize) -> Self {
        FleetRecall { limit: rows, ..self }
    }

    /// Asks at most this many databases: those of which the router expects most. Without it, and with a router, a
    /// twentieth of them is asked, and 16 at least; without a router, all are.
    pub fn ask(self, databases: usize) -> Self {
        FleetRecall { ask: Some(databases), ..self }
    }

    /// Sets the query vector. Databases without an embedding space are asked by the words alone.
    pub fn near(self, vector: Vec<f32>) -> Self {
        FleetRecall { near: Some(vector), ..self }
    }

    /// Sets the score profile, in place of each database's own.
    pub fn profile(self, name: impl Into<String>) -> Self {
        FleetRecall { profile: Some(name.into()), ..self }
    }

    /// Sets a condition on rows, which is never relaxed.
    pub fn filter(self, condition: Condition) -> Self {
        FleetRecall { filter: Some(condition), ..self }
    }

    /// Sets the reader's time in every database: a [`Timestamp`](crate::Timestamp), or microseconds since the epoch.
    /// Without it, each is read as of its own newest time.
    pub fn at_time(self, at: impl Moment) -> Self {
        FleetRecall { at_time: Some(at.micros()), ..self }
    }
}

/// A question, with the vectors that models made of it.
pub(super) struct Question<'q> {
    pub(super) text: &'q str,
    pub(super) recall: &'q FleetRecall,
    /// By the fingerprint of the embedder: a model reads a question once, however many databases are asked.
    vectors: Mutex<HashMap<String, Option<Vec<f32>>>>,
}

/// The answer of a database, the head it was asked at, and the profile that its scores are by.
pub(super) struct Said {
    pub(super) answer: Answer,
    pub(super) head: Head,
    pub(super) profile: String,
}

impl<'q> Question<'q> {
    pub(super) fn new(text: &'q str, recall: &'q FleetRecall) -> Result<Question<'q>> {
        if text.trim().is_empty() && recall.near.is_none() {
            return Err(Error::Invalid("the question is blank; ask with a text or a vector".to_owned()));
        }
        if recall.limit == 0 {
            return Err(Error::Invalid("a question for 0 rows; ask for at least one".to_owned()));
        }
        if recall.ask == Some(0) {
            return Err(Error::Invalid("a question to 0 databases; ask at least one".to_owned()));
        }
        let profiles = holotype_query::attributes::PROFILES;
        if let Some(profile) = recall.profile.as_deref().filter(|profile| !profiles.contains(profile)) {
            let known = profiles.join(", ");
            return Err(Error::Invalid(format!("there is no score profile {profile:?}; expected one of {known}")));
        }
        Ok(Question { text, recall, vectors: Mutex::default() })
    }

    /// The question as words; `None` if it is a vector alone.
    pub(super) fn words(&self) -> Option<&str> {
        Some(self.text).filter(|text| !text.trim().is_empty())
    }

    /// Asks one database.
    pub(super) fn ask(&self, database: &Holotype) -> Result<Said> {
        let snapshot = database.snapshot();
        let FleetRecall { limit, profile, filter, at_time, .. } = self.recall;
        let vector = self.vector_for(&snapshot)?;
        let mut builder = match (self.words(), vector) {
            (Some(text), Some(vector)) => snapshot.recall(text).near(vector),
            (Some(text), None) => snapshot.recall(text),
            (None, Some(vector)) => snapshot.recall_near(vector),
            (None, None) => {
                let hint =
                    "the database has no embedding space, and the question is a vector alone; ask with a text too";
                return Err(Error::Vector(hint.to_owned()));
            }
        };
        builder = builder.limit(*limit as u64);
        if let Some(profile) = profile {
            builder = builder.score(Weights::profile(profile));
        }
        if let Some(filter) = filter {
            builder = builder.filter(filter.clone());
        }
        if let Some(at) = at_time {
            builder = builder.at_time(*at);
        }
        let answer = builder.run()?;
        let profile = match profile {
            Some(profile) => profile.clone(),
            None => settings::value(&snapshot.state, "profile")?,
        };
        Ok(Said { answer, head: snapshot.state.head, profile })
    }

    /// The vector to ask a database by; `None` if it has no space, or nothing makes one.
    fn vector_for(&self, snapshot: &Snapshot) -> Result<Option<Vec<f32>>> {
        if snapshot.space()?.is_none() {
            return Ok(None);
        }
        if self.recall.near.is_some() {
            return Ok(self.recall.near.clone());
        }
        match snapshot.state.embedder(snapshot.core.options.embedder.as_ref())? {
            Some(embedder) => self.embedded_by(embedder.as_ref()),
            None => Ok(None),
        }
    }

    /// The vector of the question in a space, if it has one: the given one, or that of the embedder that makes vectors
    /// of the space.
    pub(super) fn vector_in(&self, space: &Space, given: Option<&Arc<dyn Embedder>>) -> Result<Option<Vec<f32>>> {
        if let Some(near) = &self.recall.near {
            return Ok(Some(near.clone()).filter(|near| space.check_vector(near).is_ok()));
        }
        let is_of_space = |embedder: &&Arc<dyn Embedder>| embedder.dimensions() == space.dim;
        if let Some(embedder) = given.filter(is_of_space) {
            return self.embedded_by(embedder.as_ref());
        }
        match HashingEmbedder::from_name(&space.model) {
            Some(embedder) => self.embedded_by(&embedder),
            None => Ok(None),
        }
    }

    fn embedded_by(&self, embedder: &dyn Embedder) -> Result<Option<Vec<f32>>> {
        let fingerprint = embedder.fingerprint();
        // Held while the model reads: the other threads need the same vector.
        let mut vectors = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(vector) = vectors.get(&fingerprint) {
            return Ok(vector.clone());
        }
        let vector = embed::query_vector(embedder, self.text)?;
        vectors.insert(fingerprint, vector.clone());
        Ok(vector)
    }
}
