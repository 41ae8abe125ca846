//! A resumable walk: the nodes of a graph one by one, approximately nearest first.
//!
//! A [`ResumableWalk`] keeps the best L nodes met and not yet returned in a beam, and all others met in a heap. It
//! returns a node once all L nodes of the beam are expanded, which is when a search with ef = L would end. The best
//! node of the heap takes its place, and the walk continues. So the first L nodes are those of such a search.
//!
//! Invariants:
//! 1. No node in the heap is nearer than a node in the beam.
//! 2. Each node is met once and returned once. All nodes are reachable, so all are returned eventually.
//!
//! Cost: about one expansion per returned node, of at most m0 comparisons.

use std::cmp::Reverse;

use super::graph::{GraphView, Level};
use super::search::{Walker, distance_of, key, node_of};
use super::visited::Scratch;

/// The state of a walk is its scratch memory: `beam`, `visited`, and the rest of what was met in `frontier`.
#[derive(Debug)]
pub(crate) struct ResumableWalk<'a> {
    graph: GraphView<'a>,
    compared: u64,
}

impl<'a> ResumableWalk<'a> {
    /// Starts a walk that looks `ahead` nodes further than it gives out.
    pub(crate) fn start(walker: &Walker<'_>, graph: GraphView<'a>, ahead: usize, scratch: &mut Scratch) -> Self {
        let (near, steps) = walker.descend(&graph, scratch);
        let ground = graph.ground();
        scratch.frontier.clear();
        let compared = walker.start(&ground, &[], ahead.max(1), scratch);
        let mut walk = Self { graph, compared: steps + compared };
        scratch.nodes.clear();
        for entry in [near, graph.entry] {
            if scratch.visited.insert(entry) {
                scratch.nodes.push(entry);
            }
        }
        walk.meet(walker, scratch);
        walk
    }

    /// The next node and its distance; nothing when all were given out.
    pub(crate) fn next(&mut self, walker: &Walker<'_>, scratch: &mut Scratch) -> Option<(u32, i32)> {
        let ground = self.graph.ground();
        while let Some(node) = scratch.beam.next() {
            let Scratch { nodes, visited, .. } = scratch;
            nodes.clear();
            ground.for_each_link(node, |link| {
                if visited.insert(link) {
                    nodes.push(link);
                }
            });
            if let Some(next) = scratch.beam.peek() {
                ground.prefetch(next);
            }
            self.meet(walker, scratch);
        }
        let nearest = scratch.beam.pop_nearest()?;
        if let Some(Reverse(next)) = scratch.frontier.pop() {
            // There is room for one now.
            scratch.beam.exchange(next);
        }
        Some((node_of(nearest), distance_of(nearest)))
    }

    /// Distances computed so far.
    pub(crate) fn compared(&self) -> u64 {
        self.compared
    }

    /// Compares `scratch.nodes` and puts each where it belongs.
    fn meet(&mut self, walker: &Walker<'_>, scratch: &mut Scratch) {
        self.compared += walker.compare(&self.graph.ground(), scratch);
        for (node, distance) in scratch.nodes.iter().zip(&scratch.distances) {
            if let Some(out) = scratch.beam.exchange(key(*distance, *node)) {
                scratch.frontier.push(Reverse(out));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hnsw::build::build;
    use crate::hnsw::params::{BuildOptions, Params};
    use crate::quantize::{Codes, mix};
    use crate::spec::Metric;

    #[test]
    fn a_walk_gives_out_every_node_once_and_nearly_in_order() {
        const DIM: usize = 6;
        let codes: Vec<i8> = (0..1200 * DIM as u64).map(|i| (mix(i) % 200) as i8).collect();
        let codes = Codes::new(DIM, Metric::L2, &codes);
        let ids: Vec<u32> = (0..1200).collect();
        let params = Params { m: 6, m0: 12, ef_construction: 60, seed: 3 };
        let graph = build(codes, &ids, params, None, &BuildOptions::default()).unwrap();
        let query = [5i8, -20, 33, 70, -9, 1];
        let walker = Walker { codes, query: &query };
        let mut scratch = Scratch::default();
        // Twice in the same memory, for what the first left behind must not matter.
        for ahead in [1, 40] {
            let mut walk = ResumableWalk::start(&walker, graph.view(), ahead, &mut scratch);
            let given: Vec<(u32, i32)> = std::iter::from_fn(|| walk.next(&walker, &mut scratch)).collect();
            let mut nodes: Vec<u32> = given.iter().map(|(node, _)| *node).collect();
            nodes.sort_unstable();
            assert_eq!(nodes, ids);
            let late = given.windows(2).filter(|pair| pair[1].1 < pair[0].1).count();
            assert!(late < if ahead == 1 { 300 } else { 12 }, "ahead {ahead}: {late} out of order");
            assert!(walk.compared() >= 1200);
        }
    }
}
