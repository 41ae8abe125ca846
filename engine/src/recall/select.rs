//! Selection: from ranked candidates to the rows of the answer.
//!
//! Without a token budget each stage gives its best `count`, and the rows are their union in order of S. Under a budget
//! rows are taken in order of S, whole, as long as they fit; one that does not fit is passed over. (Taking them by S per
//! token instead favours short rows and was measured to find a third less evidence.) A recall whose evidence is itself a
//! candidate then only routes: its trace carries it in its path, so that evidence is paid for once.
//!
//! A row that restates a better one is *folded* into it: same layer, kind, episode, source and tool, a vector nearer than
//! `recall.fold`, and at least half of their words (numbers aside) in common. What an agent asked ten times in a day is
//! one row, the best one, which names the others.

use super::plan::Plan;
use super::rank::Scored;
use crate::Result;
use crate::content::Content;
use crate::item::{ItemId, Layer};
use crate::snapshot::{Snapshot, is_damage};
use holotype_index::words::analyse::Role;
use std::collections::{BTreeSet, HashMap};

/// A row that was chosen, with its content.
pub(crate) struct Chosen {
    pub(crate) scored: Scored,
    pub(crate) content: Content,
    pub(crate) folded: Vec<ItemId>,
    words: Option<BTreeSet<String>>,
}

impl Chosen {
    pub(crate) fn new(scored: Scored, content: Content) -> Self {
        Chosen { scored, content, folded: Vec::new(), words: None }
    }
}

/// What became of the candidates.
pub(crate) struct Selection {
    pub(crate) rows: Vec<Chosen>,
    /// Items whose bytes could not be read as they were written.
    pub(crate) damaged: Vec<(ItemId, String)>,
}

/// The rows of the answer, best first, from the ranked candidates of each stage.
pub(crate) fn select(snapshot: &Snapshot, plan: &Plan, stages: Vec<Vec<Scored>>) -> Result<Selection> {
    let mut merged = merge(plan, stages);
    if plan.budget.is_some() {
        let traces: BTreeSet<ItemId> =
            merged.iter().filter(|scored| scored.attributes.layer() == Layer::Trace).map(|scored| scored.id).collect();
        let mut kept = Vec::with_capacity(merged.len());
        for scored in merged {
            let routes_only = scored.attributes.layer() == Layer::Recall
                && snapshot.state.sources(scored.id, Layer::Recall)?.iter().any(|source| traces.contains(source));
            if !routes_only {
                kept.push(scored);
            }
        }
        merged = kept;
    }
    let mut selection = Selection { rows: Vec::new(), damaged: Vec::new() };
    let wanted = plan.limit.map(|limit| limit.saturating_add(plan.skip));
    let mut left = plan.budget;
    for scored in merged {
        if wanted.is_some_and(|wanted| selection.rows.len() as u64 >= wanted) || left == Some(0) {
            break;
        }
        let cost = u64::from(scored.attributes.tokens);
        if left.is_some_and(|left| cost > left) {
            continue;
        }
        let content = match snapshot.content(scored.id) {
            Ok(content) => content,
            Err(error) if is_damage(&error) => {
                selection.damaged.push((scored.id, error.to_string()));
                continue;
            }
            Err(error) => return Err(error),
        };
        let mut row = Chosen::new(scored, content);
        match restated(snapshot, plan, &mut selection.rows, &mut row)? {
            Some(better) => selection.rows[better].folded.push(row.scored.id),
            None => {
                left = left.map(|left| left - cost);
                selection.rows.push(row);
            }
        }
    }
    let skip = usize::try_from(plan.skip).unwrap_or(usize::MAX).min(selection.rows.len());
    selection.rows.drain(..skip);
    Ok(selection)
}

/// The candidates that stages contribute, best first, each item once.
fn merge(plan: &Plan, stages: Vec<Vec<Scored>>) -> Vec<Scored> {
    let mut best: HashMap<ItemId, Scored> = HashMap::new();
    for (stage, ranked) in plan.stages.iter().zip(stages) {
        // What folds away must not cost a stage its rows, so it gives a few more than its count.
        let count = stage.count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
        let count = if plan.fold < 1.0 { count.saturating_mul(FOLD_RESERVE) } else { count };
        for scored in ranked.into_iter().take(count) {
            match best.get(&scored.id) {
                Some(known) if known.best_first(&scored).is_le() => {}
                _ => {
                    best.insert(scored.id, scored);
                }
            }
        }
    }
    let mut merged: Vec<Scored> = best.into_values().collect();
    merged.sort_by(Scored::best_first);
    merged
}

/// How many times its count a stage hands over, so that enough are left when rows are folded.
const FOLD_RESERVE: usize = 4;

/// The better row that this one restates, if there is one.
fn restated(snapshot: &Snapshot, plan: &Plan, rows: &mut [Chosen], row: &mut Chosen) -> Result<Option<usize>> {
    if plan.fold >= 1.0 || !row.scored.attributes.has_vector {
        return Ok(None);
    }
    let layer = row.scored.attributes.layer();
    let Some(index) = snapshot.state.layer(layer).vector_index()? else { return Ok(None) };
    let mut vector = None;
    for (at, better) in rows.iter_mut().enumerate() {
        let (a, b) = (&better.scored.attributes, &row.scored.attributes);
        let same_voice =
            (a.kind, a.episode, a.source, a.tool, a.speaker) == (b.kind, b.episode, b.source, b.tool, b.speaker);
        if !same_voice || !a.has_vector {
            continue;
        }
        if vector.is_none() {
            vector = index.vector(row.scored.id.0)?;
        }
        let Some(vector) = &vector else { return Ok(None) };
        let Some(other) = index.vector(better.scored.id.0)? else { continue };
        if cosine(vector, &other) > plan.fold && share_words(snapshot, layer, better, row) {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let norm = (dot(a, a) * dot(b, b)).sqrt();
    if norm > 0.0 { dot(a, b) / norm } else { 0.0 }
}

/// Whether two rows have at least half of their words in common, numbers and codes aside.
fn share_words(snapshot: &Snapshot, layer: Layer, a: &mut Chosen, b: &mut Chosen) -> bool {
    let analyzer = snapshot.state.layer(layer).words.analyzer;
    for row in [&mut *a, &mut *b] {
        if row.words.is_none() {
            let terms = analyzer.analyze(row.content.text()).into_iter();
            let plain = terms.filter(|(key, role)| *role == Role::Word && !key.contains(|c: char| c.is_ascii_digit()));
            row.words = Some(plain.map(|(key, _)| key).collect());
        }
    }
    let (Some(a), Some(b)) = (&a.words, &b.words) else { return false };
    let common = a.intersection(b).count();
    common > 0 && 2 * common >= a.union(b).count()
}
