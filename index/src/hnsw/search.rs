//! Beam search over a graph.
//!
//! A walk keeps the best nodes it has met in a [`Beam`], a sorted array of fixed size with a cursor to the nearest
//! unexpanded node. An expansion collects the unvisited neighbours and compares them in one kernel call, which
//! prefetches codes; the link list of the next node is prefetched meanwhile. The walk ends when all nodes of the beam
//! are expanded (paper, algorithm 2), or when the rest is beyond its [`SearchLimit`].
//!
//! Cost: about ef expansions of at most m0 comparisons, fewer if the walk ends early. An insertion into the beam moves
//! at most as many words as it keeps.

use std::cmp::Reverse;

use super::graph::{GraphView, Level};
use super::search_limit::{DistanceBound, SearchLimit};
use super::strategy::CostBudget;
use super::twins::NodeMatcher;
use super::visited::Scratch;
use crate::quantize::Codes;
use crate::segment::id_set::Positions;

/// A distance and a node as one number that sorts by distance, then node. The lowest bit is free for a flag.
#[inline]
pub(crate) fn key(distance: i32, node: u32) -> u64 {
    (u64::from(distance as u32 ^ 0x8000_0000) << 32) | u64::from(node << 1)
}

#[inline]
pub(crate) fn node_of(key: u64) -> u32 {
    key as u32 >> 1
}

#[inline]
pub(super) fn distance_of(key: u64) -> i32 {
    ((key >> 32) as u32 ^ 0x8000_0000) as i32
}

/// The nearest nodes met so far, nearest first.
#[derive(Debug, Default)]
pub(crate) struct Beam {
    /// Keys, ascending; the lowest bit marks an expanded node.
    keys: Vec<u64>,
    limit: usize,
    /// No unexpanded node is before this index.
    cursor: usize,
    /// Determines `end` from the k-th best, if present.
    bound: Option<DistanceBound>,
    /// Nodes at or above this key are neither kept nor expanded.
    end: u64,
}

impl Beam {
    /// Empties the beam, to keep at most `limit` nodes.
    pub(crate) fn reset(&mut self, limit: usize) {
        self.keys.clear();
        self.limit = limit;
        self.cursor = 0;
        self.bound = None;
        self.end = u64::MAX;
    }

    /// Empties the beam, to keep nodes within `search_limit`.
    fn reset_to(&mut self, search_limit: SearchLimit) {
        self.reset(search_limit.limit);
        self.bound = search_limit.bound;
    }

    /// Inserts the node if it is among the best.
    #[inline]
    pub(crate) fn push(&mut self, distance: i32, node: u32) {
        let key = key(distance, node);
        if !self.takes(key) {
            return;
        }
        if self.keys.len() == self.limit {
            self.keys.pop();
        }
        let at = self.keys.partition_point(|other| *other < key);
        self.keys.insert(at, key);
        self.cursor = self.cursor.min(at);
        if let Some(bound) = self.bound.as_ref().filter(|bound| bound.depends_on(at)) {
            self.end = bound.key(&self.keys);
        }
    }

    /// The number of gathered nodes within `search_limit`.
    pub(super) fn count_within(&mut self, search_limit: &SearchLimit) -> usize {
        search_limit.bound.as_ref().map_or(self.keys.len(), |bound| bound.count(&mut self.keys))
    }

    /// Truncates gathered nodes to the best, unordered; returns the exclusive upper bound for keys added later.
    fn cut(&mut self) -> u64 {
        if self.keys.len() <= self.limit {
            return u64::MAX;
        }
        let Some(last) = self.limit.checked_sub(1) else {
            self.keys.clear();
            return 0;
        };
        let (_, bound, _) = self.keys.select_nth_unstable(last);
        let bound = *bound;
        self.keys.truncate(self.limit);
        bound
    }

    /// Appends nodes without ordering or truncating.
    pub(super) fn gather(&mut self, nodes: &[u32], distances: &[i32]) {
        self.keys.extend(nodes.iter().zip(distances).map(|(node, distance)| key(*distance, *node)));
    }

    /// Orders and truncates the gathered nodes.
    pub(super) fn settle(&mut self) {
        self.cut();
        self.keys.sort_unstable();
    }

    /// From now on, keeps and expands only nodes within `search_limit`.
    pub(super) fn confine(&mut self, search_limit: SearchLimit) {
        self.bound = search_limit.bound;
        self.end = self.bound.as_ref().map_or(u64::MAX, |bound| bound.key(&self.keys));
    }

    /// Marks the nearest unexpanded node as expanded and returns it. `None` if it is beyond the end.
    #[inline]
    pub(super) fn next(&mut self) -> Option<u32> {
        while let Some(key) = self.keys.get_mut(self.cursor) {
            self.cursor += 1;
            if *key & 1 == 0 {
                if *key >= self.end {
                    return None;
                }
                *key |= 1;
                return Some(node_of(*key));
            }
        }
        None
    }

    /// The node that [`Beam::next`] will probably return.
    #[inline]
    pub(super) fn peek(&self) -> Option<u32> {
        self.to_come().next()
    }

    /// The unexpanded nodes, nearest first.
    #[inline]
    fn to_come(&self) -> impl Iterator<Item = u32> + '_ {
        let rest = self.keys.get(self.cursor..).unwrap_or_default();
        rest.iter().filter(|key| **key & 1 == 0).map(|key| node_of(*key))
    }

    /// True if a node with that key would be kept.
    #[inline]
    fn takes(&self, key: u64) -> bool {
        key < self.end && (self.keys.len() < self.limit || self.keys.last().is_some_and(|last| key < *last))
    }

    /// True if it keeps as many nodes as it may.
    pub(crate) fn is_full(&self) -> bool {
        self.keys.len() >= self.limit
    }

    /// Replaces each node by `leader` of it, keeping each once.
    pub(crate) fn keep_leaders(&mut self, leader: impl Fn(u32) -> u32) {
        self.keys.iter_mut().for_each(|kept| *kept = key(distance_of(*kept), leader(node_of(*kept))));
        self.keys.sort_unstable();
        self.keys.dedup();
    }

    /// The nodes with their distances, nearest first.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (u32, i32)> + '_ {
        self.keys.iter().map(|key| (node_of(*key), distance_of(*key)))
    }
}

/// A query code and the codes it is compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walker<'a> {
    pub(crate) codes: Codes<'a>,
    pub(crate) query: &'a [i8],
}

impl Walker<'_> {
    /// Computes the distances of `scratch.nodes` (indices in `level`) into `scratch.distances`; returns their number.
    #[inline]
    pub(super) fn compare<L: Level>(&self, level: &L, scratch: &mut Scratch) -> u64 {
        scratch.positions.clear();
        let positions = scratch.nodes.iter().map(|node| level.position(*node));
        scratch.positions.extend(positions);
        self.codes.distances(self.query, &scratch.positions, &mut scratch.distances);
        scratch.nodes.len() as u64
    }

    /// Compares `scratch.nodes` and offers them to the beam.
    #[inline]
    pub(super) fn offer<L: Level>(&self, level: &L, scratch: &mut Scratch) -> u64 {
        let compared = self.compare(level, scratch);
        for (node, distance) in scratch.nodes.iter().zip(&scratch.distances) {
            scratch.beam.push(*distance, *node);
        }
        compared
    }

    /// Starts a walk that keeps `ef` nodes, from `entries`.
    pub(crate) fn start<L: Level>(&self, level: &L, entries: &[u32], ef: usize, scratch: &mut Scratch) -> u64 {
        scratch.beam.reset(ef);
        self.enter(level, entries, scratch)
    }

    /// Starts a walk with an empty beam, from `entries`.
    fn enter<L: Level>(&self, level: &L, entries: &[u32], scratch: &mut Scratch) -> u64 {
        scratch.visited.reset(level.len());
        scratch.nodes.clear();
        for entry in entries {
            if scratch.visited.insert(*entry) {
                scratch.nodes.push(*entry);
            }
        }
        self.offer(level, scratch)
    }

    /// Walks until all nodes of the beam are expanded. Two nodes are expanded at a time, so that the memory accesses of
    /// both overlap. The second is the next nearest, which would almost always be expanded anyway.
    pub(crate) fn walk<L: Level>(&self, level: &L, scratch: &mut Scratch) -> u64 {
        let mut compared = 0;
        while let Some(first) = scratch.beam.next() {
            let second = scratch.beam.next();
            let Scratch { nodes, visited, .. } = scratch;
            nodes.clear();
            for node in [Some(first), second].into_iter().flatten() {
                level.for_each_link(node, |link| {
                    if visited.insert(link) {
                        nodes.push(link);
                    }
                });
            }
            scratch.beam.to_come().take(2).for_each(|next| level.prefetch(next));
            compared += self.offer(level, scratch);
        }
        compared
    }

    /// Descends greedily to a node of `level` that is nearer than all its neighbours.
    pub(crate) fn greedy<L: Level>(&self, level: &L, from: u32, scratch: &mut Scratch) -> (u32, u64) {
        scratch.nodes.clear();
        scratch.nodes.push(from);
        let mut compared = self.compare(level, scratch);
        let mut best = (scratch.distances[0], from);
        loop {
            scratch.nodes.clear();
            let nodes = &mut scratch.nodes;
            level.for_each_link(best.1, |link| nodes.push(link));
            compared += self.compare(level, scratch);
            let met = scratch.distances.iter().copied().zip(scratch.nodes.iter().copied());
            match met.min() {
                Some(nearest) if nearest < best => best = nearest,
                _ => return (best.1, compared),
            }
        }
    }

    /// Descends from the entry point to a node of level 0 near the query.
    pub(crate) fn descend(&self, graph: &GraphView<'_>, scratch: &mut Scratch) -> (u32, u64) {
        let mut compared = 0;
        let top = graph.level(graph.top());
        // A checked graph has its entry point on the highest level.
        let mut node = top.index_of(graph.entry).unwrap_or(0);
        for level in (1..=graph.top()).rev() {
            let view = graph.level(level);
            let (nearest, steps) = self.greedy(&view, node, scratch);
            compared += steps;
            node = view.down(nearest);
        }
        (node, compared)
    }

    /// Finds the best nodes within `search_limit`, into the beam.
    pub(crate) fn search(&self, graph: &GraphView<'_>, search_limit: SearchLimit, scratch: &mut Scratch) -> u64 {
        let (near, steps) = self.descend(graph, scratch);
        let ground = graph.ground();
        scratch.beam.reset_to(search_limit);
        // Every node is reachable from the entry point; the node near the query makes the walk fast.
        let compared = self.enter(&ground, &[near, graph.entry], scratch);
        steps + compared + self.walk(&ground, scratch)
    }

    /// Finds the best matching nodes within `search_limit`, into `found`. Walks from `near` over all nodes until no
    /// unexpanded node is nearer than the worst match kept. Returns the number of comparisons, and whether the walk
    /// finished within `budget`.
    pub(crate) fn search_collecting(
        &self,
        graph: &GraphView<'_>,
        matcher: &NodeMatcher<'_>,
        near: u32,
        search_limit: SearchLimit,
        budget: CostBudget,
        scratch: &mut Scratch,
    ) -> (u64, bool) {
        let ground = graph.ground();
        let mut compared = self.start(&ground, &[near, graph.entry], 0, scratch);
        scratch.found.reset_to(search_limit);
        scratch.frontier.clear();
        let (mut met, mut expanded) = (MatchRate::default(), 0);
        collect(matcher, scratch, &mut met);
        while let Some(Reverse(nearest)) = scratch.frontier.pop() {
            if !scratch.found.takes(nearest) {
                break;
            }
            if budget.is_exhausted(expanded, || met.share()) {
                return (compared, false);
            }
            expanded += 1;
            let Scratch { nodes, visited, .. } = scratch;
            nodes.clear();
            ground.for_each_link(node_of(nearest), |link| {
                if visited.insert(link) {
                    nodes.push(link);
                }
            });
            if let Some(Reverse(next)) = scratch.frontier.peek() {
                ground.prefetch(node_of(*next));
            }
            compared += self.compare(&ground, scratch);
            collect(matcher, scratch, &mut met);
        }
        (compared, true)
    }

    /// Finds the best `ef` of the nodes at positions `matching`, into `found`, by comparing all of them. Sorts once at
    /// the end: most nodes that enter early are displaced later.
    pub(crate) fn scan(&self, mut matching: Positions<'_>, ef: usize, scratch: &mut Scratch) -> u64 {
        let Scratch { found, positions, distances, .. } = scratch;
        found.reset(ef);
        let (mut compared, mut bound) = (0, u64::MAX);
        while matching.list(positions) {
            self.codes.distances(self.query, positions, distances);
            compared += positions.len() as u64;
            for (position, distance) in positions.iter().zip(&*distances) {
                let key = key(*distance, *position);
                if key < bound {
                    found.keys.push(key);
                }
            }
            if found.keys.len() >= 2 * ef {
                bound = found.cut();
            }
        }
        found.settle();
        compared
    }
}

/// The number of nodes met that were near enough to be kept, and how many of them match.
#[derive(Clone, Copy, Default)]
struct MatchRate {
    count: u32,
    matching: u32,
}

impl MatchRate {
    fn share(self) -> f64 {
        f64::from(self.matching) / f64::from(self.count)
    }
}

/// Puts the compared nodes on the frontier, and the matching ones into `found`.
fn collect(matcher: &NodeMatcher<'_>, scratch: &mut Scratch, met: &mut MatchRate) {
    for (node, distance) in scratch.nodes.iter().zip(&scratch.distances) {
        let key = key(*distance, *node);
        if !scratch.found.takes(key) {
            continue;
        }
        scratch.frontier.push(Reverse(key));
        met.count += 1;
        if matcher.matches(*node) {
            met.matching += 1;
            scratch.found.push(*distance, *node);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Cut again and again on the way or not, what stays are the best.
        #[test]
        fn the_best_of_what_was_gathered_stay(
            keys in proptest::collection::hash_set(any::<u64>(), 0..300),
            limit in 0usize..40,
        ) {
            let mut beam = Beam::default();
            beam.reset(limit);
            let mut bound = u64::MAX;
            let mut sorted: Vec<u64> = keys.into_iter().collect();
            for some in sorted.chunks(7) {
                beam.keys.extend(some.iter().filter(|key| **key < bound));
                bound = bound.min(beam.cut());
            }
            beam.keys.sort_unstable();
            sorted.sort_unstable();
            sorted.truncate(limit);
            prop_assert_eq!(beam.keys, sorted);
        }

        #[test]
        fn a_beam_is_the_start_of_the_sorted_list(
            distances in proptest::collection::vec(any::<i32>(), 0..200),
            limit in 1usize..40,
        ) {
            let mut beam = Beam::default();
            beam.reset(limit);
            let mut all = Vec::new();
            for (node, distance) in distances.iter().enumerate() {
                beam.push(*distance, node as u32);
                all.push((*distance, node as u32));
            }
            all.sort_unstable();
            all.truncate(limit);
            prop_assert_eq!(beam.nodes().map(|(node, distance)| (distance, node)).collect::<Vec<_>>(), all.clone());
            prop_assert_eq!(beam.peek(), all.first().map(|(_, node)| *node));
            let mut expanded = Vec::new();
            while let Some(node) = beam.next() {
                expanded.push(node);
            }
            prop_assert_eq!(expanded, all.iter().map(|(_, node)| *node).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_nearer_node_is_expanded_before_those_already_in_line() {
        let mut beam = Beam::default();
        beam.reset(3);
        beam.push(5, 1);
        beam.push(7, 2);
        assert_eq!(beam.next(), Some(1));
        beam.push(-3, 3);
        assert_eq!(beam.peek(), Some(3));
        assert_eq!((beam.next(), beam.next(), beam.next()), (Some(3), Some(2), None));
        beam.push(6, 4);
        assert_eq!(beam.nodes().map(|(node, _)| node).collect::<Vec<_>>(), [3, 1, 4]);
        assert_eq!((beam.next(), beam.next()), (Some(4), None));
    }
}
