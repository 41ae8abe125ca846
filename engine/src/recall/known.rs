//! The recalls nearest to a text, for a write-back.

use super::plan::Plan;
use super::words::WordIndexes;
use crate::Result;
use crate::model::item::{ItemId, Layer};
use crate::read::nearest;
use crate::read::snapshot::Snapshot;
use holotype_index::words::Analyzer;
use holotype_query::plan::{Clauses, Query, Recall};
use holotype_query::{Passage, Vector};

/// Recalls that share words with a text among which those without a vector are looked for.
const SHARING_WORDS: usize = 16;

/// The active recalls nearest to a text, best first: as many by vector if there is one, then as many by words of those
/// that no vector finds.
pub(crate) fn nearest_recalls(
    snapshot: &Snapshot,
    text: &str,
    vector: Option<&[f32]>,
    most: usize,
) -> Result<Vec<ItemId>> {
    let query = Query {
        text: Some(Passage { text: text.to_owned(), vector: None }),
        near: vector.map(|vector| Vector { param: "vector".to_owned(), components: vector.to_vec() }),
        like: None,
    };
    let plan = Plan::new(snapshot, &Recall { query, clauses: Clauses::default() })?;
    let by_vector = match &plan.vector {
        Some(vector) => nearest::search(snapshot, Layer::Recall, vector, most, &plan.recalls)?,
        None => None,
    };
    let is_by_words = by_vector.is_none();
    let hits = by_vector.map(|found| found.hits).unwrap_or_default();
    let mut known: Vec<ItemId> = hits.into_iter().map(|hit| ItemId(hit.id)).collect();
    let indexes = WordIndexes::of(snapshot)?;
    let words = indexes.ask(Some(text))?;
    let Some(scorer) = words.of(Layer::Recall)? else { return Ok(known) };
    let wanted = if is_by_words { most } else { SHARING_WORDS };
    let mut by_words = Vec::new();
    for hit in scorer.top(Some(&plan.recalls), wanted)? {
        let id = ItemId(hit.id);
        if is_by_words || !snapshot.state.attributes(id)?.has_vector {
            by_words.push(id);
        }
    }
    known.extend(by_words.into_iter().take(most));
    Ok(known)
}

/// The items of a layer that share most words with a text, best first.
pub(crate) fn sharing_words(snapshot: &Snapshot, layer: Layer, text: &str, most: usize) -> Result<Vec<ItemId>> {
    let indexes = WordIndexes::of(snapshot)?;
    let words = indexes.ask(Some(text))?;
    let Some(scorer) = words.of(layer)? else { return Ok(Vec::new()) };
    Ok(scorer.top(None, most)?.into_iter().map(|hit| ItemId(hit.id)).collect())
}

/// The analyser of the database.
pub(crate) fn analyzer(snapshot: &Snapshot) -> Result<Analyzer> {
    Ok(WordIndexes::of(snapshot)?.analyzer())
}
