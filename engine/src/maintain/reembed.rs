//! Making all vectors of a database anew, by another model or in another space.
//!
//! ```text
//! batch by batch   embed texts, write the vectors: a commit each, which nobody sees
//! at the end       the rest, and the record that puts all of them in force: one commit
//! ```
//!
//! 1. Every recall sees all the old vectors or all the new ones: the last commit is the only one that is seen, and a
//!    snapshot keeps its state.
//! 2. A process that was killed goes on where it stopped if it is called again with the same model. With another model
//!    it begins anew.
//! 3. Others may read and write meanwhile. Items that are written before the last commit have vectors of the old space,
//!    and are embedded with it.
//!
//! The new vectors are read into memory before they are written as segments.

use crate::core::handle::Holotype;
use crate::core::turns::TurnGuard;
use crate::core::writer_lock::WriterGuard;
use crate::core::{Core, Writer};
use crate::model::embed::{self, Embedder};
use crate::model::item::ItemId;
use crate::model::space::Space;
use crate::options::Durability;
use crate::read::snapshot::Snapshot;
use crate::records::record::{Record, ReembedRecord, SpaceRecord, VectorRecord};
use crate::state::State;
use crate::state::content::{ContentReader, OwnItems};
use crate::state::embedder::canonical;
use crate::state::pages::is_event;
use crate::write::transaction::Transaction;
use crate::{Error, Result};
use std::sync::Arc;

/// Options of computing vectors again.
#[derive(Debug, Clone)]
pub struct ReembedOptions {
    /// Texts of one call of the embedder, which are one commit too.
    pub batch: usize,
    /// The durability of the commits before the last one, which is always on the disk.
    pub durability: Durability,
}

impl Default for ReembedOptions {
    fn default() -> Self {
        ReembedOptions { batch: 256, durability: Durability::Flush }
    }
}

/// The outcome of making vectors anew.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReembedReport {
    /// Items with a new vector.
    pub embedded: u64,
    /// Items without one: their text says nothing, or was forgotten.
    pub without: u64,
    /// Items whose vectors an earlier call had written before it was interrupted.
    pub resumed: u64,
    /// The commit from which on the new vectors are seen.
    pub commit: u64,
}

impl Holotype {
    /// Makes the vectors of all items anew, by this embedder and in this space, and puts them in force in one commit.
    /// If it is interrupted, the old vectors stay, and the same call goes on.
    ///
    /// Open the database without [`Options::embedder`](crate::Options::embedder), or with that of the old vectors; then
    /// open it again with the new one.
    ///
    /// ```
    /// use holotype::embed::HashingEmbedder;
    /// use holotype::{Durability, Holotype, NewTrace, Options, ReembedOptions, Space};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("memory.holo");
    /// let database = Holotype::create(&path, Options::default().embedder(HashingEmbedder::new(64)))?;
    /// let mut transaction = database.begin()?;
    /// let id = transaction.record(NewTrace::turn("trip-42", "the night train costs 89 euros"))?;
    /// transaction.commit(Durability::Sync)?;
    ///
    /// let model = HashingEmbedder::new(128);
    /// let report = database.reembed(&Space::new(model.name(), 128), &model, &ReembedOptions::default())?;
    /// assert_eq!(report.embedded, 1);
    /// assert_eq!(database.snapshot().vector(id)?, model.embed("the night train costs 89 euros"));
    /// # Ok::<(), holotype::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Vector`] if the space does not fit the embedder; [`Error::Embedder`]; [`Error::Cancelled`] if another
    /// call put new vectors in force meanwhile; those of [`Holotype::begin`] and [`Transaction::commit`].
    pub fn reembed(&self, space: &Space, embedder: &dyn Embedder, options: &ReembedOptions) -> Result<ReembedReport> {
        space.check()?;
        embed::check_space(space, embedder)?;
        let fingerprint = canonical(&embedder.fingerprint())?;
        let epoch = self.snapshot().state.next_vector_epoch(&fingerprint)?;
        let mut work = Reembedding { space, embedder, epoch, fingerprint, report: ReembedReport::default() };
        let (batch, mut from) = (options.batch.max(1), 0);
        loop {
            let snapshot = self.snapshot();
            let found = work.unwritten(&snapshot, from, batch)?;
            if found.items.len() < batch {
                break;
            }
            (from, work.report.resumed) = (found.next, work.report.resumed + found.resumed);
            let vectors = work.embedded(&snapshot, &found.items)?;
            let mut transaction = self.begin()?;
            work.write(&mut transaction, vectors)?;
            transaction.commit(options.durability)?;
        }
        let mut transaction = self.begin()?;
        let snapshot = transaction.names()?;
        let rest = work.unwritten(&snapshot, from, usize::MAX)?;
        work.report.resumed += rest.resumed;
        for items in rest.items.chunks(batch) {
            let vectors = work.embedded(&snapshot, items)?;
            work.write(&mut transaction, vectors)?;
        }
        let bound = snapshot.len();
        let record =
            ReembedRecord { epoch, bound, space: SpaceRecord::from(space), fingerprint: work.fingerprint.clone() };
        transaction.push(Record::Reembed(record))?;
        work.report.commit = transaction.commit(Durability::Sync)?.number;
        Ok(work.report)
    }
}

/// Items without a vector of an epoch.
#[derive(Default)]
struct Unwritten {
    items: Vec<ItemId>,
    /// The number of the first item that was not looked at.
    next: u32,
    /// The items before it that have a vector.
    resumed: u64,
}

/// A reembedding under way.
struct Reembedding<'r> {
    space: &'r Space,
    embedder: &'r dyn Embedder,
    epoch: u64,
    fingerprint: String,
    report: ReembedReport,
}

impl Reembedding<'_> {
    /// The items from a number on without a vector of this epoch, at most so many.
    fn unwritten(&self, snapshot: &Snapshot, from: u32, most: usize) -> Result<Unwritten> {
        let mut found = Unwritten { next: from, ..Unwritten::default() };
        while found.next < snapshot.len() && found.items.len() < most {
            let id = ItemId(found.next);
            found.next += 1;
            match snapshot.state.has_vector_in(id, self.epoch)? {
                true => found.resumed += 1,
                false => found.items.push(id),
            }
        }
        Ok(found)
    }

    /// The vectors of items, by one call of the model.
    fn embedded(&self, snapshot: &Snapshot, items: &[ItemId]) -> Result<Vec<(ItemId, Option<Vec<u8>>)>> {
        let mut texts = Vec::with_capacity(items.len());
        for id in items {
            let says = match snapshot.state.attributes(*id)?.redacted {
                true => None,
                false => Some(snapshot.content(*id)?).filter(|content| !is_event(content.tool())),
            };
            texts.push(says.map(|content| embed::spoken(content.speaker(), content.text()).into_owned()));
        }
        let given: Vec<&str> = texts.iter().flatten().map(String::as_str).collect();
        let mut vectors = match given.is_empty() {
            true => Vec::new(),
            false => embed::vectors(self.embedder, &given)?,
        }
        .into_iter();
        let encoded = |text: &Option<String>| match text.as_ref().and_then(|_| vectors.next().flatten()) {
            Some(vector) => self.space.encode(&vector).map(Some),
            None => Ok(None),
        };
        let encoded: Vec<Option<Vec<u8>>> = texts.iter().map(encoded).collect::<Result<_>>()?;
        Ok(items.iter().copied().zip(encoded).collect())
    }

    /// Stages vectors, of items that were not forgotten meanwhile.
    fn write(&mut self, transaction: &mut Transaction<'_>, vectors: Vec<(ItemId, Option<Vec<u8>>)>) -> Result<()> {
        if transaction.state()?.next_vector_epoch(&self.fingerprint)? != self.epoch {
            return Err(Error::Cancelled("other vectors were put in force meanwhile; reembed again"));
        }
        for (id, vector) in vectors {
            let redacted = transaction.state()?.attributes(id)?.redacted;
            let vector = vector.filter(|_| !redacted);
            match vector {
                Some(_) => self.report.embedded += 1,
                None => self.report.without += 1,
            }
            transaction.push(Record::Vector(VectorRecord { epoch: self.epoch, item: id.0, vector }))?;
        }
        Ok(())
    }
}

impl Core {
    /// Completes an appended reembedding: reads the new vectors and writes the derived files with them. If the files
    /// cannot be written, the state is published from memory and the next opening rebuilds the files.
    pub(crate) fn complete_reembed(
        self: &Arc<Self>,
        mut writer: WriterGuard<'_, Writer>,
        mut state: State,
        turn: Option<TurnGuard<'_>>,
    ) -> Result<()> {
        let reader = ContentReader { log: Arc::clone(&self.log), own: OwnItems::new() };
        let durable = self.log.sync_to(state.head.position).map_err(Error::from);
        if let Err(error) = durable.and_then(|()| state.reload_vectors(&reader)) {
            writer.poisoned = Some(error.to_string());
            self.turns.note_failure();
            return Err(error);
        }
        self.record_durable(state.head);
        self.publish_purged(writer, state, turn)
    }
}
