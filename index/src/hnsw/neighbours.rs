//! Exact neighbour lists for a build: the nearest vectors of a batch of nodes, by comparison with all vectors.
//!
//! A walk through the growing graph finds most of a node's near neighbours. A device that compares all vectors faster
//! than a walk visits a few thousand finds every one of them. The build then walks with a smaller beam, which keeps the
//! links that lead out of a cluster, and selects links among both.
//!
//! Invariants:
//!
//! 1. A list holds the positions that are nearest by exact score, so that it does not depend on the device.
//! 2. A batch that the device left to the CPU is the last one: comparing all pairs there takes longer than walks.
//!
//! Cost: one comparison of a node with each vector of the segment, in batches of [`TOGETHER`] nodes.

use super::calibrate::Coded;
use crate::error::Result;
use crate::hit::TopHits;
use crate::rows::ExactQuery;
use crate::scorer::{Batch, BatchBounds, BatchQuery, BatchScorer, PartId};
use crate::sync::{AtomicBool, Ordering};

/// Nodes whose lists are made in one pass.
pub(crate) const TOGETHER: usize = 512;

/// A beam this many times smaller suffices beside exact lists.
pub(crate) const SMALLER_BEAM: usize = 4;

/// The vectors of a segment under construction, and the scorer that compares them.
pub(crate) struct NeighbourSource<'a> {
    coded: Coded<'a>,
    scorer: &'a dyn BatchScorer,
    part: PartId,
    /// The length of a list.
    count: usize,
    /// The device has failed.
    ended: AtomicBool,
}

/// The lists of a batch of nodes, in its order.
pub(crate) type NeighbourLists = Vec<Vec<u32>>;

impl<'a> NeighbourSource<'a> {
    /// A source of lists of `count` neighbours; `None` if walks find them faster than the scorer.
    pub(crate) fn of(coded: Coded<'a>, scorer: &'a dyn BatchScorer, count: usize) -> Option<Self> {
        let (spec, len) = (coded.rows.spec(), coded.rows.len());
        let source = || Self { coded, scorer, part: PartId::next(), count, ended: AtomicBool::new(false) };
        scorer.makes_neighbour_lists(spec, len).then(source)
    }

    /// The positions nearest to each node, best first, without the node itself; no lists after a failure of the device.
    ///
    /// # Errors
    /// Those of the scorer.
    pub(crate) fn lists(&self, nodes: &[u32]) -> Result<NeighbourLists> {
        if self.ended.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        let rows = self.coded.rows;
        let mut vector = vec![0.0; rows.spec().dim];
        let mut queries = Vec::with_capacity(nodes.len());
        for node in nodes {
            rows.decode(*node as usize, &mut vector);
            queries.push(ExactQuery::new(rows.spec(), &vector)?);
        }
        let batched: Vec<BatchQuery<'_>> = queries
            .iter()
            .map(|exact| BatchQuery { exact, bounds: BatchBounds::Known(Box::new(self.coded.bounds(exact))) })
            .collect();
        // One more, because a node is its own nearest neighbour.
        let k = self.count + 1;
        let mut tops = vec![TopHits::new(k); nodes.len()];
        let batch = Batch { part: self.part, rows, matching: None, queries: &batched, k };
        if !self.scorer.scan(&batch, &mut tops)? {
            self.ended.store(true, Ordering::Relaxed);
        }
        let position = |id: u32| rows.position(id).map(|at| at as u32);
        let list = |(node, top): (&u32, TopHits)| -> Vec<u32> {
            let near = top.into_sorted().into_iter().filter_map(|hit| position(hit.id));
            near.filter(|at| at != node).take(self.count).collect()
        };
        Ok(nodes.iter().zip(tops).map(list).collect())
    }
}
