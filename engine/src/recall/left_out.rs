//! The best item that an exclusion keeps out (answers: excluded items are counted, and the best of them is named).
//!
//! An item that has more of the question's words than the first row would have been the first row. A note names it with
//! the reason, so that a reader who misses it knows where it went.
//!
//! Cost: one search by words among the excluded items, if there are any.

use super::plan::Plan;
use super::select::Selection;
use super::words::Words;
use crate::Result;
use crate::model::item::{ItemId, Layer};
use crate::read::snapshot::{Snapshot, is_damage};

/// The note on the best excluded item; `None` if the first row matches at least as well.
pub(super) fn note(
    snapshot: &Snapshot,
    plan: &Plan,
    words: &Words<'_>,
    selection: &Selection,
) -> Result<Option<String>> {
    if plan.text.is_none() || !plan.excludes_anything() {
        return Ok(None);
    }
    let first = match selection.rows.first() {
        Some(row) => score_of(words, row.scored.scalars.layer, row.id())?,
        None => 0.0,
    };
    let mut best: Option<(ItemId, f32)> = None;
    for stage in &plan.stages {
        let kept_out = plan.exclusions.iter().map(|exclusion| stage.relaxable.and(&exclusion.items));
        let Some(kept_out) = kept_out.reduce(|all, more| all.or(&more)).filter(|items| !items.is_empty()) else {
            continue;
        };
        for layer in Layer::ALL.iter().filter(|layer| stage.is_in(**layer)) {
            let Some(scorer) = words.of(*layer)? else { continue };
            let hit = scorer.top(Some(&kept_out), 1)?.into_iter().next();
            if let Some(hit) = hit.filter(|hit| hit.score > best.map_or(first, |(_, score)| score)) {
                best = Some((ItemId(hit.id), hit.score));
            }
        }
    }
    let Some((id, _)) = best else { return Ok(None) };
    let reasons = plan.flaws_of(id).join(", ");
    match snapshot.key_of(id) {
        Ok(key) => Ok(Some(format!("{key} matched best and was left out: {reasons}."))),
        Err(error) if is_damage(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn score_of(words: &Words<'_>, layer: Layer, id: ItemId) -> Result<f32> {
    let scores = words.of(layer)?.map(|scorer| scorer.scores(&[id.0])).transpose()?;
    Ok(scores.and_then(|scores| scores.first().copied()).unwrap_or(0.0))
}
