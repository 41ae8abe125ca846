//! Answers to searches by vector that are found before they are asked, many in one pass.
//!
//! Statements that run together often search by vector under one filter. Where that compares all matching vectors,
//! one pass answers all of them ([`VectorIndex::search_batch`](holotype_index::VectorIndex::search_batch)). A
//! snapshot carries the answers; a search that finds its own there does not compare again. Every answer is that of a
//! search alone.

use crate::Result;
use crate::model::item::Layer;
use crate::read::nearest;
use crate::read::snapshot::Snapshot;
use holotype_index::Search;
use holotype_index::bitmap::Bits;
use std::collections::HashMap;

/// Searches to come, by what they share.
#[derive(Debug, Default)]
pub(crate) struct NearQuestions {
    groups: Vec<Group<Vec<Vec<f32>>>>,
}

/// Answers, each to be found by its whole question.
#[derive(Debug, Default)]
pub(crate) struct NearAnswers {
    groups: Vec<Group<HashMap<Vec<u32>, Search>>>,
}

/// Searches of one layer for as many vectors within one filter.
#[derive(Debug)]
struct Group<T> {
    layer: Layer,
    filter: Bits,
    most: usize,
    of: T,
}

impl<T> Group<T> {
    fn is_of(&self, layer: Layer, filter: &Bits, most: usize) -> bool {
        (self.layer, self.most) == (layer, most) && self.filter == *filter
    }
}

impl NearQuestions {
    /// Adds a search.
    pub(crate) fn add(&mut self, layer: Layer, vector: &[f32], filter: &Bits, most: usize) {
        if filter.is_empty() {
            return;
        }
        if let Some(group) = self.groups.iter_mut().find(|group| group.is_of(layer, filter, most)) {
            group.of.push(vector.to_vec());
            return;
        }
        self.groups.push(Group { layer, filter: filter.clone(), most, of: vec![vector.to_vec()] });
    }

    /// Answers the searches that share a pass. One that fails is left to the statement that asks, which tells why.
    pub(crate) fn answer(self, snapshot: &Snapshot) -> NearAnswers {
        let mut answers = NearAnswers::default();
        for Group { layer, filter, most, of: mut vectors } in self.groups {
            let key = |vector: &[f32]| -> Vec<u32> { vector.iter().map(|x| x.to_bits()).collect() };
            vectors.sort_unstable_by_key(|vector| key(vector));
            vectors.dedup_by_key(|vector| key(vector));
            if vectors.len() < 2 || snapshot.tick().is_err() {
                continue;
            }
            let asked: Vec<&[f32]> = vectors.iter().map(Vec::as_slice).collect();
            if let Ok(Some(found)) = nearest::search_together(snapshot, layer, &asked, most, &filter) {
                let of = vectors.iter().map(|vector| key(vector)).zip(found).collect();
                answers.groups.push(Group { layer, filter, most, of });
            }
        }
        answers
    }
}

impl NearAnswers {
    /// True if nothing was answered.
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The answer to a search.
    pub(crate) fn find(&self, layer: Layer, vector: &[f32], filter: &Bits, most: usize) -> Option<&Search> {
        let group = self.groups.iter().find(|group| group.is_of(layer, filter, most))?;
        let key: Vec<u32> = vector.iter().map(|x| x.to_bits()).collect();
        group.of.get(&key)
    }
}

/// True if a search by vector in any layer compares so many vectors that statements gain by running together.
///
/// # Errors
/// When a segment cannot be read.
pub(crate) fn pays(snapshot: &Snapshot) -> Result<bool> {
    for layer in Layer::ALL {
        if nearest::shares_scan(snapshot, *layer)? {
            return Ok(true);
        }
    }
    Ok(false)
}
