//! The ranked candidates of all stages as one sequence, best first.
//!
//! The best ones can be looked at, reordered and grouped before any is taken; the rest are merged when they are needed.
//!
//! Invariant: an item that several stages found is offered once, at its best rank, for all of them.

use super::plan::Plan;
use super::rank::Scored;
use crate::memory::frames::FrameText;
use crate::model::item::{ItemId, Layer};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::vec::IntoIter;

/// A candidate with the stages that offer it.
pub(super) struct Offer {
    pub(super) scored: Scored,
    stage: usize,
    others: Vec<usize>,
    /// Its text, if it was read to be compared.
    pub(super) text: Option<Arc<FrameText>>,
}

impl Offer {
    /// The order of rows.
    pub(super) fn best_first(&self, other: &Offer) -> std::cmp::Ordering {
        self.scored.best_first(&other.scored)
    }

    /// The stages that offer it.
    pub(super) fn stages(&self) -> impl Iterator<Item = usize> + '_ {
        std::iter::once(self.stage).chain(self.others.iter().copied())
    }
}

/// The candidates of all stages: the best ones, which may be reordered and grouped, then the others.
pub(super) struct Offers {
    best: VecDeque<Offer>,
    rest: StageMerge,
}

impl Offers {
    /// Merges the ranked candidates of the stages of a plan.
    pub(super) fn new(plan: &Plan, stages: Vec<Vec<Scored>>) -> Offers {
        Offers { best: VecDeque::new(), rest: StageMerge::new(plan, stages) }
    }

    /// The best candidates, at most this many.
    pub(super) fn best(&mut self, most: usize) -> &mut [Offer] {
        while self.best.len() < most {
            match self.rest.next() {
                Some(offer) => self.best.push_back(offer),
                None => break,
            }
        }
        self.best.make_contiguous()
    }

    /// The next candidate, best first.
    pub(super) fn next(&mut self) -> Option<Offer> {
        self.best.pop_front().or_else(|| self.rest.next())
    }

    /// Skips the rest of a stage that has contributed all its rows, unless other stages share its items.
    pub(super) fn exhaust_stage(&mut self, stage: usize) {
        if self.rest.shared.is_empty() {
            self.rest.stages[stage] = IntoIter::default();
        }
    }

    /// The traces among all candidates.
    pub(super) fn traces(&self) -> BTreeSet<ItemId> {
        let best = self.best.iter().map(|offer| &offer.scored);
        let rest = self.rest.stages.iter().flat_map(|stage| stage.as_slice());
        best.chain(rest).filter(|scored| scored.scalars.layer == Layer::Trace).map(|scored| scored.id).collect()
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

    fn next(&mut self) -> Option<Offer> {
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
            return Some(Offer { scored, stage, others, text: None });
        }
    }
}
