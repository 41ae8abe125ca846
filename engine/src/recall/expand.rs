//! Provenance expansion (HELM Algorithm 4): breadth first along pointers from the rows, within a budget.
//!
//! The seeds count; at most `depth` levels and `tokens` tokens, as a hard limit (the paper may overshoot by one item); each
//! item once. What is inactive, redacted or ahead of the reader is no evidence. Rows that are added follow their seed with
//! the role `evidence`.

use super::plan::{ExpandPlan, Plan};
use crate::Result;
use crate::item::{ItemId, Layer};
use crate::snapshot::Snapshot;
use std::collections::{BTreeSet, VecDeque};

/// The evidence under each seed, in the order it was reached.
pub(crate) fn expand(
    snapshot: &Snapshot,
    plan: &Plan,
    limits: ExpandPlan,
    seeds: &[ItemId],
) -> Result<Vec<Vec<ItemId>>> {
    let mut evidence = vec![Vec::new(); seeds.len()];
    let mut seen: BTreeSet<ItemId> = seeds.iter().copied().collect();
    let mut left = limits.tokens;
    for seed in seeds {
        left = left.saturating_sub(u64::from(snapshot.state.attributes(*seed)?.tokens));
    }
    let mut queue: VecDeque<(usize, ItemId, u64)> =
        seeds.iter().copied().enumerate().map(|(at, id)| (at, id, 0)).collect();
    while let Some((seed, id, level)) = queue.pop_front() {
        if level == limits.depth {
            continue;
        }
        let layer = snapshot.state.layer_of(id)?;
        if layer == Layer::Trace {
            continue;
        }
        for source in snapshot.state.sources(id, layer)? {
            let attributes = snapshot.state.attributes(source)?;
            let cost = u64::from(attributes.tokens);
            let shown = !attributes.redacted && (attributes.active || plan.inactive);
            if !shown || plan.standing.is_ahead(&attributes) || cost > left || !seen.insert(source) {
                continue;
            }
            left -= cost;
            evidence[seed].push(source);
            queue.push_back((seed, source, level + 1));
        }
    }
    Ok(evidence)
}
