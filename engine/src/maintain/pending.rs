//! Pending vectors: texts that were written without a vector, by a process that had no model, get theirs later.
//!
//! ```text
//! batch by batch   find pending items, read their texts    a snapshot
//!                  compute the vectors                     nothing is held: others write meanwhile
//!                  write those that are still missing      a transaction, a record each
//! ```
//!
//! 1. An item is filled once: the transaction passes over items that another process filled, or forgot, meanwhile.
//! 2. A process that is killed leaves whole batches. What is not filled is still pending.
//! 3. Filling changes no fact: no item, no key, no history. A snapshot that is held keeps the vectors it had.

use crate::core::handle::Holotype;
use crate::model::embed::{self, Embedder};
use crate::model::item::ItemId;
use crate::model::space::Space;
use crate::options::Durability;
use crate::read::snapshot::Snapshot;
use crate::records::record::{Record, VectorRecord};
use crate::state::State;
use crate::write::transaction::Transaction;
use crate::{Error, Result};
use holotype_storage::priority::lowest_thread_priority;
use std::sync::Arc;

/// Makes the vectors of items' texts.
type Compute = dyn Fn(&Snapshot, &dyn Embedder, &[ItemId]) -> Result<Vec<Option<Vec<f32>>>>;

/// Texts of one call of the embedder, which are one commit too.
const BATCH: usize = 64;

/// The outcome of filling pending vectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EmbedReport {
    /// Items that got their vector.
    pub embedded: u64,
    /// Items whose text has none, as the model says.
    pub without: u64,
    /// Items that are still pending.
    pub pending: u64,
}

impl Holotype {
    /// Makes the vectors of at most `limit` pending items by the embedder of the options, or by the built-in one in its
    /// space. Others may read and write meanwhile; the model computes while no transaction is open.
    ///
    /// ```
    /// use holotype::embed::HashingEmbedder;
    /// use holotype::{Durability, Holotype, NewTrace, Options};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("memory.holo");
    /// let with_model = || Options::default().embedder(HashingEmbedder::new(128));
    /// Holotype::create(&path, with_model())?.close()?;
    /// // A process without the model records what happens.
    /// let database = Holotype::open(&path, Options::append_only())?;
    /// let mut transaction = database.begin()?;
    /// let id = transaction.record(NewTrace::turn("trip-42", "the night train costs 89 euros"))?;
    /// transaction.commit(Durability::Sync)?;
    /// assert_eq!(database.snapshot().without_vector(10)?, [id]);
    /// database.close()?;
    ///
    /// let database = Holotype::open(&path, with_model())?;
    /// assert_eq!(database.stats()?.content.pending, 1);
    /// assert_eq!(database.embed_pending(u64::MAX)?.embedded, 1);
    /// assert_eq!(database.snapshot().without_vector(10)?, []);
    /// # Ok::<(), holotype::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Embedder`] if the model fails or there is none; [`Error::OtherEmbedder`]; those of [`Holotype::begin`]
    /// and [`Transaction::commit`]. What was committed before stays.
    pub fn embed_pending(&self, limit: u64) -> Result<EmbedReport> {
        self.fill_pending(limit, &vectors_of)
    }

    /// The same behind everything else that the machine does: where the system has priorities of threads, the model
    /// computes at the lowest. What others wait for, a transaction, is written at the priority of the caller.
    ///
    /// # Errors
    /// As [`Holotype::embed_pending`].
    pub fn embed_pending_in_background(&self, limit: u64) -> Result<EmbedReport> {
        self.fill_pending(limit, &|snapshot, embedder, items| {
            let compute = || {
                lowest_thread_priority();
                vectors_of(snapshot, embedder, items)
            };
            let computed = std::thread::scope(|scope| scope.spawn(compute).join());
            computed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn fill_pending(&self, limit: u64, compute: &Compute) -> Result<EmbedReport> {
        let Some(embedder) = self.snapshot().state.embedder(self.core.options.embedder.as_ref())? else {
            let reason = "no embedder makes the vectors of this database: open it with Options::embedder".to_owned();
            return Err(Error::Embedder { reason });
        };
        let mut report = EmbedReport::default();
        let mut left = limit;
        while left > 0 {
            let snapshot = self.snapshot();
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(BATCH);
            let items = snapshot.state.without_vector(most)?;
            if items.is_empty() {
                break;
            }
            let vectors = compute(&snapshot, embedder.as_ref(), &items)?;
            drop(snapshot);
            let mut transaction = self.begin()?;
            transaction.adopt(embedder.as_ref())?;
            for (id, vector) in items.iter().zip(vectors) {
                if !transaction.state()?.attributes(*id)?.pending {
                    continue;
                }
                match vector {
                    Some(_) => report.embedded += 1,
                    None => report.without += 1,
                }
                transaction.fill(*id, vector.as_deref())?;
            }
            transaction.commit(Durability::Sync)?;
            left = left.saturating_sub(items.len() as u64);
        }
        report.pending = self.snapshot().state.pending_count()?;
        Ok(report)
    }
}

/// The vectors of items' texts, by one call of the model.
fn vectors_of(snapshot: &Snapshot, embedder: &dyn Embedder, items: &[ItemId]) -> Result<Vec<Option<Vec<f32>>>> {
    let contents = items.iter().map(|id| snapshot.content(*id)).collect::<Result<Vec<_>>>()?;
    let texts: Vec<_> = contents.iter().map(|content| embed::spoken(content.speaker(), content.text())).collect();
    let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    embed::vectors(embedder, &texts)
}

impl Snapshot {
    /// The number of items whose text waits for a vector of the database's model; 0 in a space without a model.
    ///
    /// # Errors
    /// When a derived file cannot be read.
    pub fn pending(&self) -> Result<u64> {
        self.state.pending_count()
    }

    /// The first items with a text and no vector, at most so many, in the order in which they were written. In a space
    /// with an embedder they are *pending*, and [`Holotype::embed_pending`] fills them.
    ///
    /// # Errors
    /// When a derived file cannot be read.
    pub fn without_vector(&self, limit: usize) -> Result<Vec<ItemId>> {
        self.state.without_vector(limit)
    }
}

impl Transaction<'_> {
    /// Gives an item that has no vector the one that the caller made of its text. The item stays as it is.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the item has a vector or was forgotten; [`Error::Vector`] if the vector does not fit the
    /// space of the database; [`Error::Missing`].
    pub fn set_vector(&mut self, id: ItemId, vector: impl Into<Vec<f32>>) -> Result<()> {
        let attributes = self.state()?.attributes(id)?;
        if attributes.has_vector || attributes.redacted {
            let why = if attributes.redacted { "was forgotten" } else { "has a vector" };
            let hint = "vectors of other items are made anew with `reembed`";
            return Err(Error::Invalid(format!("item {id} {why}: a vector is set where there is none; {hint}")));
        }
        self.fill(id, Some(&vector.into()))
    }

    fn fill(&mut self, id: ItemId, vector: Option<&[f32]>) -> Result<()> {
        let state: &State = self.state()?;
        let epoch = state.epoch_in_force()?;
        let space = state.meta.space.as_ref().map(Arc::as_ref).map(Space::try_from).transpose()?;
        let vector = match (vector, space) {
            (Some(vector), Some(space)) => Some(space.encode(vector)?),
            (Some(_), None) => {
                let message = "the database has no embedding space; define one before writing vectors";
                return Err(Error::Vector(message.to_owned()));
            }
            (None, _) => None,
        };
        self.push(Record::Vector(VectorRecord { epoch, item: id.0, vector }))
    }
}
