//! The query of a recall: its words and its vector.

use crate::model::embed::{self, Embedder};
use crate::read::snapshot::Snapshot;
use crate::{Error, Result};
use holotype_query::plan::Recall;
use std::sync::Arc;

/// The words and the vector that a recall asks with. A text without a vector is embedded by the embedder of the
/// options, or by the built-in one in its space.
pub(super) fn of(
    snapshot: &Snapshot,
    recall: &Recall,
    notes: &mut Vec<String>,
) -> Result<(Option<String>, Option<Vec<f32>>)> {
    let query = &recall.query;
    let space = snapshot.space()?;
    let mut text = query.words().map(str::to_owned);
    let mut vector = query.vector().map(|vector| vector.components.clone());
    if let Some(like) = &query.like {
        let id = snapshot.resolve_item(like)?;
        text = Some(snapshot.content(id)?.text().to_owned());
        vector = snapshot.vector(id)?;
    }
    match (&space, &vector) {
        (Some(space), Some(vector)) => space.check_vector(vector)?,
        (None, Some(_)) => {
            return Err(Error::Vector(
                "the database has no embedding space; create one with a space to search by vector".to_owned(),
            ));
        }
        (Some(_), None) => {
            if let Some(text) = &text {
                match embedder(snapshot)? {
                    Some(embedder) => vector = embed::query_vector(embedder.as_ref(), text)?,
                    None => notes.push("No query vector given: keyword and link search only.".to_owned()),
                }
            }
        }
        (None, None) => {}
    }
    Ok((text, vector))
}

/// The vector of a text as a question, if the database has a space and an embedder.
pub(crate) fn embed_text(snapshot: &Snapshot, text: &str) -> Result<Option<Vec<f32>>> {
    if snapshot.state.meta.space.is_none() {
        return Ok(None);
    }
    match embedder(snapshot)? {
        Some(embedder) => embed::query_vector(embedder.as_ref(), text),
        None => Ok(None),
    }
}

/// The embedder of the options, or the built-in one in its space.
fn embedder(snapshot: &Snapshot) -> Result<Option<Arc<dyn Embedder>>> {
    snapshot.state.embedder(snapshot.core.options.embedder.as_ref())
}
