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
use std::collections::{BTreeSet, HashMap};
use std::vec::IntoIter;

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
    let mut merged = Merged::new(plan, stages);
    while let Some(offered) = merged.next() {
        let is_full = wanted.is_some_and(|wanted| selection.rows.len() as u64 >= wanted);
        if is_full || left == Some(0) || of_stage.iter().all(|left| *left == 0) {
            break;
        }
        let cost = u64::from(offered.scored.scalars.tokens);
        let taken = offered.stages().all(|stage| of_stage[stage] == 0);
        if taken || left.is_some_and(|left| cost > left) || routes_only(&offered.scored)? {
            continue;
        }
        let content = match snapshot.content(offered.scored.id) {
            Ok(content) => content,
            Err(error) if is_damage(&error) => {
                selection.damaged.push((offered.scored.id, error.to_string()));
                continue;
            }
            Err(error) => return Err(error),
        };
        let Offered { scored, stage, others } = offered;
        let mut row = Chosen::new(snapshot, scored, content)?;
        match restated(snapshot, plan, &mut selection.rows, &mut row)? {
            Some(better) => selection.rows[better].folded.push(row.scored.id),
            None => {
                left = left.map(|left| left - cost);
                for stage in std::iter::once(stage).chain(others) {
                    of_stage[stage] = of_stage[stage].saturating_sub(1);
                    if of_stage[stage] == 0 {
                        merged.has_enough_of(stage);
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
struct Offered {
    scored: Scored,
    stage: usize,
    others: Vec<usize>,
}

impl Offered {
    fn stages(&self) -> impl Iterator<Item = usize> + '_ {
        std::iter::once(self.stage).chain(self.others.iter().copied())
    }
}

/// The candidates of all stages, best first, each item once. The stages are best first themselves, so a candidate is looked
/// at when it is asked for.
struct Merged {
    stages: Vec<IntoIter<Scored>>,
    /// The stages that offer an item which several offer; emptied when it is given.
    shared: HashMap<ItemId, Vec<usize>>,
}

impl Merged {
    fn new(plan: &Plan, stages: Vec<Vec<Scored>>) -> Merged {
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
        Merged { stages: stages.into_iter().map(Vec::into_iter).collect(), shared }
    }

    /// Passes over what only a stage offers that has given its rows.
    fn has_enough_of(&mut self, stage: usize) {
        if self.shared.is_empty() {
            self.stages[stage] = IntoIter::default();
        }
    }
}

impl Iterator for Merged {
    type Item = Offered;

    fn next(&mut self) -> Option<Offered> {
        loop {
            let mut best: Option<(usize, &Scored)> = None;
            for (stage, ranked) in self.stages.iter().enumerate() {
                let Some(head) = ranked.as_slice().first() else { continue };
                // Of equals that of the earlier stage.
                if best.is_none_or(|(_, best)| head.best_first(best).is_lt()) {
                    best = Some((stage, head));
                }
            }
            let (stage, _) = best?;
            let scored = self.stages[stage].next()?;
            let others = match self.shared.get_mut(&scored.id) {
                None => Vec::new(),
                // It was given already, from a stage where it is better.
                Some(stages) if stages.is_empty() => continue,
                Some(stages) => std::mem::take(stages).into_iter().filter(|other| *other != stage).collect(),
            };
            return Some(Offered { scored, stage, others });
        }
    }
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
