//! Uses: the items that a reader was shown, and those of them that an answer went on to use.
//!
//! 1. What was shown is a *read*, like the answers that the setting `audit = reads` logs: `audit` counts it.
//! 2. A use is a mark with the reason `used in ANSWER`. It counts as a reward of 1, so that `score utility`, `decay`
//!    and `prune` know it; `audit` gives the share of the shown items that were used.

use super::{Mark, Transaction};
use crate::model::item::ItemId;
use crate::records::record::{Change, MarkRecord, ReadRecord, Record, RowRecord};
use crate::{Error, Result};

/// The start of the reason of a mark that is a use.
const BECAUSE: &str = "used in ";

/// True for a mark that is a use.
pub(crate) fn is_use(mark: &MarkRecord) -> bool {
    matches!(mark.change, Change::Utility(..))
        && mark.because.as_deref().is_some_and(|because| because.starts_with(BECAUSE))
}

impl Transaction<'_> {
    /// Notes that a reader in this episode was shown items, in this order, other than by an answer that was logged: in
    /// the first words of a session, say.
    ///
    /// # Errors
    /// [`Error::Missing`] for an item or an episode that does not exist.
    pub fn shown(&mut self, episode: &str, items: &[ItemId]) -> Result<()> {
        if self.state.episode_number(episode)?.is_none() {
            return Err(Error::Missing { what: "episode", name: format!("'{episode}'") });
        }
        let snapshot = self.snapshot()?;
        let mut whole = blake3::Hasher::new();
        let mut rows = Vec::with_capacity(items.len());
        for item in items {
            let hash = *blake3::hash(snapshot.content(*item)?.text().as_bytes()).as_bytes();
            whole.update(&hash);
            rows.push(RowRecord { item: item.0, hash });
        }
        self.push(Record::Read(ReadRecord {
            episode: Some(episode.to_owned()),
            step: None,
            time: None,
            version: None,
            commit: self.number(),
            rows,
            spans: Vec::new(),
            answer: *whole.finalize().as_bytes(),
        }))
    }

    /// Notes that an answer used an item: cited its key, or said its words. `answer` names the answer.
    ///
    /// ```
    /// use holotype::{Durability, Holotype, NewTrace, Options};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let database = Holotype::create(dir.path().join("memory.holo"), Options::default())?;
    /// let mut transaction = database.begin()?;
    /// let item = transaction.record(NewTrace::turn("trip-42", "the night train costs 89 euros"))?;
    /// transaction.shown("trip-42", &[item])?;
    /// transaction.used(item, "trip-42/answer-1")?;
    /// transaction.commit(Durability::Sync)?;
    /// assert_eq!(database.snapshot().audit(&[], &[])?.get("used"), Some(1.0));
    /// # Ok::<(), holotype::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Missing`] for an item that does not exist.
    pub fn used(&mut self, item: ItemId, answer: &str) -> Result<()> {
        let attributes = self.state.attributes(item)?;
        let count = attributes.utility_count;
        let mean = (attributes.utility * count as f32 + 1.0) / (count + 1) as f32;
        self.mark(item, Mark::Utility(mean, count + 1), Some(format!("{BECAUSE}{answer}")))
    }
}
