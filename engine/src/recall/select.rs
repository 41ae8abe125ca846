//! Selection: from ranked candidates to the rows of the answer.
//!
//! Each stage contributes its best `count` rows (all, without a count and under a token budget), and the answer is
//! their union in order of S. A row that is folded or does not fit uses up no count. Under a budget rows are taken
//! whole, and a row that does not fit is skipped. (Ordering by S per token favours short rows and found a third less
//! evidence.) Under a budget a recall whose evidence is also a candidate only routes: its trace names it in its match
//! path, so that the evidence is paid for once.
//!
//! A row that restates a better one is *folded* into it: same layer, kind, episode, source and tool, a cosine above
//! `recall.fold`, and at least half of their words in common, not counting numbers. What an agent asked ten times in
//! a day is one row, the best one, which names the others. So is what a newer trace claims again (`recall::restated`).

use super::plan::Plan;
use super::rank::Scored;
use super::restated::Restated;
use crate::Result;
use crate::derive::repair;
use crate::model::item::{Attributes, ItemId, Layer};
use crate::read::answer::Parts;
use crate::read::snapshot::{Snapshot, is_damage};
use crate::state::content::Content;
use holotype_index::words::analysis::Role;
use std::collections::{BTreeSet, HashMap};
use std::vec::IntoIter;

/// A selected row with its content.
pub(crate) struct Chosen {
    pub(crate) scored: Scored,
    pub(crate) attributes: Attributes,
    pub(crate) content: Content,
    pub(crate) folded: Vec<ItemId>,
    /// Its unit vector and its words, computed for the first comparison.
    vector: Option<Vec<f32>>,
    words: Option<BTreeSet<String>>,
}

impl Chosen {
    pub(crate) fn new(snapshot: &Snapshot, plan: &Plan, scored: Scored, content: Content) -> Result<Self> {
        let attributes = snapshot.state.attributes(scored.id)?;
        let conflict = plan.conflict_of(&snapshot.state, scored.id, attributes.conflict)?.map(|winner| winner.0);
        let attributes = Attributes { conflict, ..attributes };
        Ok(Chosen { scored, attributes, content, folded: Vec::new(), vector: None, words: None })
    }
}

impl Chosen {
    /// The item.
    pub(crate) fn id(&self) -> ItemId {
        self.scored.id
    }

    /// The terms of its score.
    pub(crate) fn parts(&self) -> &Parts {
        &self.scored.parts
    }

    /// Its score.
    pub(crate) fn score(&self) -> f32 {
        self.scored.score()
    }
}

/// The selected rows and what to report about the others.
pub(crate) struct Selection {
    pub(crate) rows: Vec<Chosen>,
    /// Items whose bytes cannot be read as written.
    pub(crate) damaged: Vec<(ItemId, String)>,
    /// Remarks on how the rows were selected.
    pub(crate) notes: Vec<String>,
}

/// Selects the rows of the answer, best first, from the ranked candidates of each stage.
pub(super) fn select(
    snapshot: &Snapshot,
    plan: &Plan,
    stages: Vec<Vec<Scored>>,
    restated: &Restated,
) -> Result<Selection> {
    let traces: BTreeSet<ItemId> = match plan.budget {
        Some(_) => {
            let traces = stages.iter().flatten().filter(|scored| scored.scalars.layer == Layer::Trace);
            traces.map(|scored| scored.id).collect()
        }
        None => BTreeSet::new(),
    };
    let routes_only = |scored: &Scored| -> Result<bool> {
        let carried = !traces.is_empty() && scored.scalars.layer == Layer::Recall;
        Ok(carried && snapshot.state.sources(scored.id, Layer::Recall)?.iter().any(|source| traces.contains(source)))
    };
    let mut selection = Selection { rows: Vec::new(), damaged: Vec::new(), notes: Vec::new() };
    let wanted = plan.limit.map(|limit| limit.saturating_add(plan.skip));
    let mut left = plan.budget;
    let mut of_stage: Vec<u64> = plan.stages.iter().map(|stage| stage.count.unwrap_or(u64::MAX)).collect();
    let mut merged = StageMerge::new(plan, stages);
    while let Some(candidate) = merged.next() {
        let is_full = wanted.is_some_and(|wanted| selection.rows.len() as u64 >= wanted);
        if is_full || left == Some(0) || of_stage.iter().all(|left| *left == 0) {
            break;
        }
        let cost = u64::from(candidate.scored.scalars.tokens);
        let taken = candidate.stages().all(|stage| of_stage[stage] == 0);
        if taken || left.is_some_and(|left| cost > left) || routes_only(&candidate.scored)? {
            continue;
        }
        let content = match snapshot.content(candidate.scored.id) {
            Ok(content) => content,
            Err(error) if is_damage(&error) => {
                selection.damaged.push((candidate.scored.id, error.to_string()));
                continue;
            }
            Err(error) => return Err(error),
        };
        let MergedCandidate { scored, stage, others } = candidate;
        let mut row = Chosen::new(snapshot, plan, scored, content)?;
        let newer = restated.by(row.id()).and_then(|by| selection.rows.iter().position(|row| row.id() == by));
        let better = match newer {
            Some(newer) => Some(newer),
            None => find_restated(snapshot, plan, &mut selection.rows, &mut row)?,
        };
        match better {
            Some(better) => selection.rows[better].folded.push(row.scored.id),
            None => {
                left = left.map(|left| left - cost);
                for stage in std::iter::once(stage).chain(others) {
                    of_stage[stage] = of_stage[stage].saturating_sub(1);
                    if of_stage[stage] == 0 {
                        merged.exhaust_stage(stage);
                    }
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
struct MergedCandidate {
    scored: Scored,
    stage: usize,
    others: Vec<usize>,
}

impl MergedCandidate {
    fn stages(&self) -> impl Iterator<Item = usize> + '_ {
        std::iter::once(self.stage).chain(self.others.iter().copied())
    }
}

/// Merges the candidates of all stages lazily, best first, each item once. Every stage is sorted already.
struct StageMerge {
    stages: Vec<IntoIter<Scored>>,
    /// For items in several stages, those stages; emptied when the item is returned.
    shared: HashMap<ItemId, Vec<usize>>,
}

impl StageMerge {
    fn new(plan: &Plan, stages: Vec<Vec<Scored>>) -> StageMerge {
        let mut shared: HashMap<ItemId, Vec<usize>> = HashMap::new();
        let is_once = |layer: &Layer| plan.stages.iter().filter(|stage| stage.is_in(*layer)).count() <= 1;
        if !Layer::ALL.iter().all(is_once) {
            for (stage, ranked) in stages.iter().enumerate() {
                for scored in ranked {
                    shared.entry(scored.id).or_default().push(stage);
                }
            }
            shared.retain(|_, stages| stages.len() > 1);
        }
        StageMerge { stages: stages.into_iter().map(Vec::into_iter).collect(), shared }
    }

    /// Skips the rest of a stage that has contributed all its rows, unless other stages share its items.
    fn exhaust_stage(&mut self, stage: usize) {
        if self.shared.is_empty() {
            self.stages[stage] = IntoIter::default();
        }
    }
}

impl Iterator for StageMerge {
    type Item = MergedCandidate;

    fn next(&mut self) -> Option<MergedCandidate> {
        loop {
            let mut best: Option<(usize, &Scored)> = None;
            for (stage, ranked) in self.stages.iter().enumerate() {
                let Some(head) = ranked.as_slice().first() else { continue };
                // Among equals the earlier stage wins.
                if best.is_none_or(|(_, best)| head.best_first(best).is_lt()) {
                    best = Some((stage, head));
                }
            }
            let (stage, _) = best?;
            let scored = self.stages[stage].next()?;
            let others = match self.shared.get_mut(&scored.id) {
                None => Vec::new(),
                // Already returned by a stage where it ranks higher.
                Some(stages) if stages.is_empty() => continue,
                Some(stages) => std::mem::take(stages).into_iter().filter(|other| *other != stage).collect(),
            };
            return Some(MergedCandidate { scored, stage, others });
        }
    }
}

/// The index of the better row that this one restates.
fn find_restated(snapshot: &Snapshot, plan: &Plan, rows: &mut [Chosen], row: &mut Chosen) -> Result<Option<usize>> {
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
                row.vector = repair::vector(snapshot, layer, row.scored.id)?.map(unit);
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

/// The vector scaled to length 1.
fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let len = dot(&vector, &vector).sqrt();
    if len > 0.0 {
        vector.iter_mut().for_each(|number| *number /= len);
    }
    vector
}

/// Returns true if two rows share at least half of their words, not counting numbers and codes.
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
