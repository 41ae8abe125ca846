//! Merging facts (PlugMem C.5), and feedback on them (Table 13, `memory.update`).
//!
//! A merge takes active recalls of one kind that share a concept and no source and whose cosine is above `tau`
//! (see [`pairing`]). A merged statement is always written, with the pointers and links of its originals; whether they
//! are retired is the merger's word. An item is in one merge of a call, and what a call wrote is no original in it. A
//! merge over a memory to which nothing was added since the last one changes nothing.

mod pairing;

use super::{Mark, Transaction};
use crate::memory::structure::{FactMerger, Relation};
use crate::model::edge::Edge;
use crate::model::item::{ItemId, Kind, Layer};
use crate::model::pointer::Pointer;
use crate::write::draft::NewRecall;
use crate::{Error, Result};

/// Merges of one call.
pub(crate) const MOST_MERGES: usize = 800;

/// Which pairs are merged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MergeOptions {
    /// The least cosine, exclusive.
    pub tau: f32,
    /// The number of nearest items that are considered for each item, the `m` of the paper.
    pub top: usize,
}

impl Default for MergeOptions {
    fn default() -> Self {
        MergeOptions { tau: 0.7, top: 1 }
    }
}

/// A merged statement with what it was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merge {
    /// The new item.
    pub merged: ItemId,
    /// The originals, the earlier first.
    pub of: Vec<ItemId>,
    /// Their relation.
    pub relation: Relation,
}

/// A report on an item that was used.
#[derive(Debug, Clone, PartialEq)]
pub enum Feedback {
    /// It helped (1) or did not (0): its utility becomes the mean over all such reports.
    Reward(f32),
    /// It is wrong, and this is right; with the evidence for that.
    Correction(String, Vec<Pointer>),
    /// It is wrong.
    Wrong(String),
}

impl Transaction<'_> {
    /// Merges what belongs together among some items. Inactive ones are passed over.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a `tau` that is no number; what the merger fails with. Then nothing is merged.
    pub fn merge(&mut self, among: &[ItemId], merger: &dyn FactMerger, options: MergeOptions) -> Result<Vec<Merge>> {
        if !options.tau.is_finite() {
            return Err(Error::Invalid("tau is a finite number".to_owned()));
        }
        self.atomically(|transaction| {
            let snapshot = transaction.snapshot()?;
            let mut merged = Vec::new();
            for joined in pairing::joined(&snapshot, among, merger, options)? {
                merged.push(transaction.merge_items(&joined.of, &joined.text, joined.relation, None)?);
            }
            Ok(merged)
        })
    }

    /// Merges items into one statement.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than two different items, for traces, and for items of several kinds.
    pub fn merge_items(
        &mut self,
        of: &[ItemId],
        text: &str,
        relation: Relation,
        vector: Option<Vec<f32>>,
    ) -> Result<Merge> {
        let mut of = of.to_vec();
        of.sort_unstable();
        of.dedup();
        let [first, _, ..] = of.as_slice() else {
            return Err(Error::Invalid("a merge needs two different items".to_owned()));
        };
        let kind = self.state.attributes(*first)?.kind;
        for id in &of {
            let attributes = self.state.attributes(*id)?;
            if attributes.kind != kind || attributes.layer() == Layer::Trace {
                return Err(Error::Invalid(format!(
                    "{id} cannot be merged: originals are recalls or themes of one kind"
                )));
            }
        }
        self.atomically(|transaction| {
            let mut recall = NewRecall::new(kind, text);
            for id in &of {
                for pointer in transaction.state.pointers(*id)? {
                    recall = recall.from(transaction.as_stated(pointer)?);
                }
            }
            recall.ungrounded = recall.from.is_empty();
            recall.vector = match vector {
                Some(vector) => Some(vector),
                None => transaction.vector_of_merged(&of, text)?,
            };
            let merged = transaction.remember(recall)?;
            for id in &of {
                transaction.unite_links(*id, merged)?;
                let edge = if relation.retires() { Edge::Supersedes } else { Edge::DerivedFrom };
                transaction.link(merged, edge, *id)?;
            }
            Ok(Merge { merged, of, relation })
        })
    }

    /// The embedder's vector of a merged text, or the unit mean of the originals'.
    fn vector_of_merged(&mut self, of: &[ItemId], text: &str) -> Result<Option<Vec<f32>>> {
        if let Some(vector) = self.text_vector(text)? {
            return Ok(Some(vector));
        }
        let names = self.names()?;
        let mut mean: Option<Vec<f32>> = None;
        for id in of {
            let Some(vector) = names.vector(*id)? else { return Ok(None) };
            match &mut mean {
                Some(mean) => mean.iter_mut().zip(&vector).for_each(|(sum, part)| *sum += part),
                None => mean = Some(vector),
            }
        }
        Ok(mean.map(unit).filter(|mean| mean.iter().any(|part| *part != 0.0)))
    }

    /// Takes feedback on a recall or a theme; a correction supersedes it and keeps its provenance and its links.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a reward outside of 0 to 1 and for traces; those of [`Transaction::update`].
    pub fn feedback(&mut self, item: ItemId, feedback: &Feedback) -> Result<ItemId> {
        let attributes = self.attributes(item)?;
        if attributes.layer() == Layer::Trace {
            return Err(Error::Invalid(format!("{item} is a trace: what happened takes no feedback, only marks")));
        }
        match feedback {
            Feedback::Reward(reward) if (0.0..=1.0).contains(reward) => {
                let count = attributes.utility_count;
                let mean = (attributes.utility * count as f32 + reward) / (count + 1) as f32;
                self.mark(item, Mark::Utility(mean, count + 1), None)?;
                Ok(item)
            }
            Feedback::Reward(reward) => Err(Error::Invalid(format!("a reward is a number from 0 to 1, not {reward}"))),
            Feedback::Wrong(because) => {
                self.deactivate(item, None, Some(because.clone()))?;
                Ok(item)
            }
            Feedback::Correction(text, from) => self.atomically(|transaction| {
                let key = transaction.names()?.key_of(item)?;
                let mut recall = NewRecall::new(attributes.kind, text);
                recall.from = from.clone();
                recall.ungrounded = from.is_empty() && transaction.state.pointers(item)?.is_empty();
                recall.return_score = attributes.return_score.filter(|_| attributes.kind == Kind::Procedure);
                recall.vector = transaction.text_vector(text)?;
                let new = transaction.update(&key, recall)?;
                transaction.unite_links(item, new)?;
                Ok(new)
            }),
        }
    }
}

/// The vector scaled to length 1; one of length 0 stays.
fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|part| part * part).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|part| *part /= length);
    }
    vector
}
