//! Provenance expansion (HELM Algorithm 4): breadth first along pointers from the rows, within a budget.
//!
//! Adds at most `depth` levels and `tokens` tokens, each item once. The limit is hard and includes the seeds (the
//! paper may exceed it by one item). Inactive and redacted items and items ahead of the reader are not evidence.
//! Added rows follow their seed and have the role `evidence`.
//!
//! `expand to` a noun shows items of that noun only; items between them and the row are traversed at no cost. With
//! pages or episodes, each trace reached, including the rows themselves, adds the traces of its container in order.

use super::container::Container;
use super::plan::{ExpandPlan, Plan};
use crate::Result;
use crate::model::item::{ItemId, Layer};
use crate::read::snapshot::Snapshot;
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
            match Container::of(noun, &snapshot.state.attributes(id)?) {
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

/// The shown items and the remaining tokens.
struct Expansion<'e> {
    snapshot: &'e Snapshot,
    plan: &'e Plan,
    left: u64,
    shown: BTreeSet<ItemId>,
    evidence: Vec<Vec<ItemId>>,
}

impl Expansion<'_> {
    /// Returns true if an item qualifies as evidence.
    fn may_show(&self, id: ItemId) -> Result<bool> {
        let attributes = self.snapshot.state.attributes(id)?;
        let is_known = !attributes.redacted && (attributes.active || self.plan.inactive);
        Ok(is_known && !self.plan.reader_position.is_ahead(&attributes))
    }

    /// Shows an item under a seed if it fits. Returns true if it was not shown before.
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
