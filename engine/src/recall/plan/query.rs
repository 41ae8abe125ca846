//! The query of a recall: its words and its vector.

use crate::model::embed;
use crate::read::snapshot::Snapshot;
use crate::{Error, Result};
use holotype_query::ast::Recall;

/// The words and the vector that a recall asks with. A text without a vector is embedded if the space of the database
/// is that of the built-in embedder.
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
        let id = snapshot.resolve_item(like.node.bound())?;
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
        (Some(space), None) => {
            let embedder =
                embed::HashingEmbedder::from_name(&space.model).filter(|embedder| embedder.dim() == space.dim);
            match (embedder, &text) {
                (Some(embedder), Some(text)) => vector = embedder.embed(text),
                (None, Some(_)) => {
                    notes.push("No query vector given: keyword and link search only.".to_owned());
                }
                _ => {}
            }
        }
        (None, None) => {}
    }
    Ok((text, vector))
}

/// The vector of a text, in a database of the built-in embedder's space.
pub(crate) fn embed_text(snapshot: &Snapshot, text: &str) -> Result<Option<Vec<f32>>> {
    let Some(space) = snapshot.space()? else { return Ok(None) };
    let embedder = embed::HashingEmbedder::from_name(&space.model).filter(|embedder| embedder.dim() == space.dim);
    Ok(embedder.and_then(|embedder| embedder.embed(text)))
}
