//! Provenance expansion (HELM Algorithm 4): breadth first along pointers from the rows, within a budget.
//!
//! The seeds count; at most `depth` levels and `tokens` tokens, as a hard limit (the paper may overshoot by one item); each
//! item once. What is inactive, redacted or ahead of the reader is no evidence. Rows that are added follow their seed with
//! the role `evidence`.
//!
//! `expand to` a sort of item shows that sort only: what lies between it and the row is walked through and costs nothing.
//! To pages or episodes each trace that is reached, a row among them, brings the traces of its page or episode, in order.

use super::places::Place;
use super::plan::{ExpandPlan, Plan};
use crate::Result;
use crate::item::{ItemId, Layer};
use crate::snapshot::Snapshot;
use holotype_query::Noun;
use std::collections::{BTreeSet, VecDeque};

/// The evidence under each seed, in the order it was reached.
pub(crate) fn expand(
    snapshot: &Snapshot,
    plan: &Plan,
    limits: ExpandPlan,
    seeds: &[ItemId],
) -> Result<Vec<Vec<ItemId>>> {
    let mut left = limits.tokens;
    for seed in seeds {
        left = left.saturating_sub(u64::from(snapshot.state.attributes(*seed)?.tokens));
    }
    let mut expansion = Expansion {
        snapshot,
        plan,
        left,
        shown: seeds.iter().copied().collect(),
        evidence: vec![Vec::new(); seeds.len()],
    };
    let mut reached: BTreeSet<ItemId> = seeds.iter().copied().collect();
    let mut places = BTreeSet::new();
    let mut queue: VecDeque<(usize, ItemId, u64)> =
        seeds.iter().copied().enumerate().map(|(at, id)| (at, id, 0)).collect();
    while let Some((seed, id, level)) = queue.pop_front() {
        snapshot.tick()?;
        let layer = snapshot.state.layer_of(id)?;
        if let (Layer::Trace, Some(noun @ (Noun::Pages | Noun::Episodes))) = (layer, limits.to) {
            match Place::of(noun, &snapshot.state.attributes(id)?) {
                Some(place) if places.insert(place) => {
                    for trace in place.traces(snapshot)? {
                        expansion.show(seed, ItemId(trace))?;
                    }
                }
                Some(_) => {}
                None => drop(expansion.show(seed, id)?),
            }
        }
        if level == limits.depth || layer == Layer::Trace {
            continue;
        }
        for source in snapshot.state.sources(id, layer)? {
            let kind = snapshot.state.attributes.kind(source)?;
            let goes_on = match limits.to {
                Some(noun) if !kind.is_of(noun) => expansion.may_show(source)?,
                _ => expansion.show(seed, source)?,
            };
            if goes_on && reached.insert(source) {
                queue.push_back((seed, source, level + 1));
            }
        }
    }
    Ok(expansion.evidence)
}

/// What was shown so far, and what may still be.
struct Expansion<'e> {
    snapshot: &'e Snapshot,
    plan: &'e Plan,
    left: u64,
    shown: BTreeSet<ItemId>,
    evidence: Vec<Vec<ItemId>>,
}

impl Expansion<'_> {
    /// Whether an item may be evidence at all.
    fn may_show(&self, id: ItemId) -> Result<bool> {
        let attributes = self.snapshot.state.attributes(id)?;
        let is_known = !attributes.redacted && (attributes.active || self.plan.inactive);
        Ok(is_known && !self.plan.standing.is_ahead(&attributes))
    }

    /// Shows an item under a seed, once and when it fits. True when it is new there.
    fn show(&mut self, seed: usize, id: ItemId) -> Result<bool> {
        let cost = u64::from(self.snapshot.state.attributes(id)?.tokens);
        if cost > self.left || !self.may_show(id)? || !self.shown.insert(id) {
            return Ok(false);
        }
        self.left -= cost;
        self.evidence[seed].push(id);
        Ok(true)
    }
}
