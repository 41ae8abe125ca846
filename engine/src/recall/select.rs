//! Selection: from ranked candidates to the rows of the answer.
//!
//! Each stage gives its best `count` (without a number and under a token budget, all it has), and the rows are their union
//! in order of S; what is folded or does not fit takes nobody's place. Under a budget rows are taken whole, as long as
//! they fit; one that does not fit is passed over. (Taking them by S per token instead favours short rows and was measured
//! to find a third less evidence.) A recall whose evidence is itself a candidate then only routes: its trace carries it in
//! its path, so that evidence is paid for once.
//!
//! A row that restates a better one is *folded* into it: same layer, kind, episode, source and tool, a vector nearer than
//! `recall.fold`, and at least half of their words (numbers aside) in common. What an agent asked ten times in a day is
//! one row, the best one, which names the others.

use super::plan::Plan;
use super::rank::Scored;
use crate::Result;
use crate::content::Content;
use crate::item::{Attributes, ItemId, Layer};
use crate::mend;
use crate::snapshot::{Snapshot, is_damage};
use holotype_index::words::analyse::Role;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

/// A row that was chosen, with its content.
pub(crate) struct Chosen {
    pub(crate) scored: Scored,
    pub(crate) attributes: Attributes,
    pub(crate) content: Content,
    pub(crate) folded: Vec<ItemId>,
    /// Its vector at length 1 and its words, once something had to be compared with them.
    vector: Option<Vec<f32>>,
    words: Option<BTreeSet<String>>,
}

impl Chosen {
    pub(crate) fn new(snapshot: &Snapshot, scored: Scored, content: Content) -> Result<Self> {
        let conflict = scored.scalars.conflict;
        let attributes = Attributes { conflict, ..snapshot.state.attributes(scored.id)? };
        Ok(Chosen { scored, attributes, content, folded: Vec::new(), vector: None, words: None })
    }
}

/// What became of the candidates.
pub(crate) struct Selection {
    pub(crate) rows: Vec<Chosen>,
    /// Items whose bytes could not be read as they were written.
    pub(crate) damaged: Vec<(ItemId, String)>,
    /// What a reader should know of how the rows were chosen.
    pub(crate) notes: Vec<String>,
}

/// The rows of the answer, best first, from the ranked candidates of each stage.
pub(crate) fn select(snapshot: &Snapshot, plan: &Plan, stages: Vec<Vec<Scored>>) -> Result<Selection> {
    let mut merged = merge(stages);
    if plan.budget.is_some() {
        let is_trace = |scored: &&Scored| scored.scalars.layer == Layer::Trace;
        let traces: BTreeSet<ItemId> =
            merged.iter().map(|offered| &offered.scored).filter(is_trace).map(|scored| scored.id).collect();
        let mut kept = Vec::with_capacity(merged.len());
        for offered in merged {
            let scored = &offered.scored;
            let routes_only = scored.scalars.layer == Layer::Recall
                && snapshot.state.sources(scored.id, Layer::Recall)?.iter().any(|source| traces.contains(source));
            if !routes_only {
                kept.push(offered);
            }
        }
        merged = kept;
    }
    let mut selection = Selection { rows: Vec::new(), damaged: Vec::new(), notes: Vec::new() };
    let wanted = plan.limit.map(|limit| limit.saturating_add(plan.skip));
    let mut left = plan.budget;
    let mut of_stage: Vec<u64> = plan.stages.iter().map(|stage| stage.count.unwrap_or(u64::MAX)).collect();
    for Offered { scored, stages } in merged {
        if wanted.is_some_and(|wanted| selection.rows.len() as u64 >= wanted) || left == Some(0) {
            break;
        }
        let cost = u64::from(scored.scalars.tokens);
        let taken = stages.iter().all(|stage| of_stage[*stage] == 0);
        if taken || left.is_some_and(|left| cost > left) {
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
        let mut row = Chosen::new(snapshot, scored, content)?;
        match restated(snapshot, plan, &mut selection.rows, &mut row)? {
            Some(better) => selection.rows[better].folded.push(row.scored.id),
            None => {
                left = left.map(|left| left - cost);
                for stage in stages {
                    of_stage[stage] = of_stage[stage].saturating_sub(1);
                }
                selection.rows.push(row);
            }
        }
    }
    let skip = usize::try_from(plan.skip).unwrap_or(usize::MAX).min(selection.rows.len());
    selection.rows.drain(..skip);
    Ok(selection)
}

/// A candidate with the stages that offer it.
struct Offered {
    scored: Scored,
    stages: Vec<usize>,
}

/// The candidates of all stages, best first, each item once.
fn merge(stages: Vec<Vec<Scored>>) -> Vec<Offered> {
    let mut best: HashMap<ItemId, Offered> = HashMap::new();
    for (stage, ranked) in stages.into_iter().enumerate() {
        for scored in ranked {
            match best.entry(scored.id) {
                Entry::Vacant(free) => {
                    free.insert(Offered { scored, stages: vec![stage] });
                }
                Entry::Occupied(mut known) => {
                    known.get_mut().stages.push(stage);
                    if scored.best_first(&known.get().scored).is_lt() {
                        known.get_mut().scored = scored;
                    }
                }
            }
        }
    }
    let mut merged: Vec<Offered> = best.into_values().collect();
    merged.sort_by(|a, b| a.scored.best_first(&b.scored));
    merged
}

/// The better row that this one restates, if there is one.
fn restated(snapshot: &Snapshot, plan: &Plan, rows: &mut [Chosen], row: &mut Chosen) -> Result<Option<usize>> {
    if plan.fold >= 1.0 || !row.attributes.has_vector {
        return Ok(None);
    }
    let layer = row.scored.scalars.layer;
    for (at, better) in rows.iter_mut().enumerate() {
        let (a, b) = (&better.attributes, &row.attributes);
        let same_voice =
            (a.kind, a.episode, a.source, a.tool, a.speaker) == (b.kind, b.episode, b.source, b.tool, b.speaker);
        if !same_voice || !a.has_vector {
            continue;
        }
        for row in [&mut *better, &mut *row] {
            if row.vector.is_none() {
                row.vector = mend::vector(snapshot, layer, row.scored.id)?.map(unit);
            }
        }
        let (Some(a), Some(b)) = (&better.vector, &row.vector) else { continue };
        if dot(a, b) > plan.fold && share_words(snapshot, layer, better, row) {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The vector at length 1.
fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let len = dot(&vector, &vector).sqrt();
    if len > 0.0 {
        vector.iter_mut().for_each(|number| *number /= len);
    }
    vector
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
