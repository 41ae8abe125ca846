//! Decay of what is of no use, and old episodes compressed to their pages (PlugMem Table 13, `memory.delete`).
//!
//! Invariant: ages count from the newest item's time, so that the same database decays in the same way at any time.

use super::Transaction;
use crate::model::item::{Attributes, ItemId, Layer};
use crate::read::snapshot::Snapshot;
use crate::{Error, Result};
use holotype_index::bitmap::Bits;

/// The measure of decay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decay {
    /// After this long, in microseconds, utility counts half.
    pub half_life: i64,
    /// Facts and procedures whose decayed utility is below this are retired; one without feedback and credit, once it
    /// is a half-life old.
    pub below: f32,
    /// Traces that are older, in microseconds, in a summarised page, and that nothing active rests on, are retired:
    /// their page stands for them. `None` keeps all.
    pub compress_after: Option<i64>,
}

impl Transaction<'_> {
    /// Retires what decayed, and old traces whose page stands for them. Ages count from the newest item's time.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a half-life of 0 or less.
    pub fn decay(&mut self, criteria: Decay) -> Result<Vec<ItemId>> {
        self.atomically(|transaction| {
            let mut retired = transaction.decay_among(None, criteria.half_life, criteria.below)?;
            if let Some(after) = criteria.compress_after {
                retired.extend(transaction.compress_among(None, after)?);
            }
            Ok(retired)
        })
    }

    /// Retires the recalls whose utility decayed; of some items, where they are given.
    ///
    /// # Errors
    /// As [`Transaction::decay`].
    pub(crate) fn decay_among(&mut self, among: Option<&Bits>, half_life: i64, below: f32) -> Result<Vec<ItemId>> {
        if half_life <= 0 || below.is_nan() {
            return Err(Error::Invalid("decay needs a half-life above 0 and a bound that is a number".to_owned()));
        }
        let retired = decayed(&self.snapshot()?, among, half_life, below)?;
        self.retire(retired, "its utility decayed")
    }

    /// Retires old traces in summarised pages that nothing active rests on; of some items, where they are given.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub(crate) fn compress_among(&mut self, among: Option<&Bits>, after: i64) -> Result<Vec<ItemId>> {
        let retired = compressed(&self.snapshot()?, among, after)?;
        self.retire(retired, "compressed to its page")
    }

    fn retire(&mut self, items: Vec<ItemId>, because: &str) -> Result<Vec<ItemId>> {
        self.atomically(|transaction| {
            for item in &items {
                transaction.deactivate(*item, None, Some(because.to_owned()))?;
            }
            Ok(items)
        })
    }
}

/// The active items of a layer that `is_due` chooses by their attributes and by how much older than the newest item
/// they are. An item without a time stays.
fn due(
    snapshot: &Snapshot,
    layer: Layer,
    among: Option<&Bits>,
    is_due: impl Fn(ItemId, &Attributes, i64) -> Result<bool>,
) -> Result<Vec<ItemId>> {
    let state = &snapshot.state;
    let base = state.attributes.base_sets(state.bound());
    let Some(now) = state.meta.newest_time else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for id in base.visible()?.and(&*base.layer(layer)?).iter().map(ItemId) {
        snapshot.tick()?;
        if among.is_some_and(|among| !among.contains(id.0)) {
            continue;
        }
        let attributes = state.attributes(id)?;
        let Some(time) = attributes.time else { continue };
        if is_due(id, &attributes, now.saturating_sub(time).max(0))? {
            found.push(id);
        }
    }
    Ok(found)
}

/// The recalls that a decay retires.
fn decayed(snapshot: &Snapshot, among: Option<&Bits>, half_life: i64, below: f32) -> Result<Vec<ItemId>> {
    due(snapshot, Layer::Recall, among, |_, attributes, age| {
        // A recall that nothing has judged yet is given time to be of use.
        let is_new = attributes.utility_count == 0 && attributes.utility == 0.0 && age < half_life;
        let share = (-(age as f64) / half_life as f64).exp2();
        // Credit compares the rollouts of a group: less of it than others had is no reason to go.
        let worth = attributes.utility + attributes.credit.max(0.0);
        Ok(!is_new && f64::from(worth) * share < f64::from(below))
    })
}

/// The traces that their pages stand for.
fn compressed(snapshot: &Snapshot, among: Option<&Bits>, after: i64) -> Result<Vec<ItemId>> {
    let state = &snapshot.state;
    due(snapshot, Layer::Trace, among, |id, attributes, age| {
        let Some(page) = attributes.page.filter(|_| age > after) else { return Ok(false) };
        for dependent in state.dependents(id)? {
            if state.attributes(dependent)?.active {
                return Ok(false);
            }
        }
        Ok(state.page(page)?.summarised)
    })
}
