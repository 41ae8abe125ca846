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

/// The active recalls nearest to a text, best first: by vector if there is one, else by words.
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
    if let Some(vector) = &plan.vector
        && let Some(found) = nearest::search(snapshot, Layer::Recall, vector, most, &plan.recalls)?
    {
        return Ok(found.hits.into_iter().map(|hit| ItemId(hit.id)).collect());
    }
    let indexes = WordIndexes::of(snapshot)?;
    let words = indexes.ask(Some(text))?;
    let Some(scorer) = words.of(Layer::Recall)? else { return Ok(Vec::new()) };
    Ok(scorer.top(Some(&plan.recalls), most)?.into_iter().map(|hit| ItemId(hit.id)).collect())
}

/// The analyser of the database.
pub(crate) fn analyzer(snapshot: &Snapshot) -> Result<Analyzer> {
    Ok(WordIndexes::of(snapshot)?.analyzer())
}
