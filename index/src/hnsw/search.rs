//! Walks over a graph.
//!
//! A walk keeps the best nodes it has met in a [`Beam`]: a sorted array of fixed size, where the nearest node that was
//! not expanded yet is found by a cursor. An expansion collects the neighbours not met before and compares them in one
//! kernel call, which fetches codes ahead of itself; the link list of the next node is fetched meanwhile. The walk ends
//! when every node of the beam is expanded (paper, algorithm 2), or when those that are not lie beyond its [`Reach`].
//!
//! Cost: about ef expansions of at most m0 comparisons, hardly ever more and mostly fewer where the walk ends early; an
//! insertion into the beam moves as many words as it keeps.

use std::cmp::Reverse;

use super::filter::{Matcher, Patience, Positions};
use super::graph::{GraphView, Level, LevelView};
use super::reach::{Bound, Reach};
use super::visited::Scratch;
use crate::quantize::Codes;

/// A distance and a node as one number that sorts by distance, then node. The lowest bit is left free.
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

/// The best nodes met, nearest first.
#[derive(Debug, Default)]
pub(crate) struct Beam {
    /// Keys, ascending; the lowest bit says that the node is expanded.
    keys: Vec<u64>,
    limit: usize,
    /// The first node that is not expanded.
    cursor: usize,
    /// What moves `end` as better ones are met, if anything does.
    bound: Option<Bound>,
    /// Nothing at or above this key is kept or expanded.
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

    /// Empties the beam, to keep what is within `reach`.
    fn reset_within(&mut self, reach: Reach) {
        self.reset(reach.limit);
        self.bound = reach.bound;
    }

    /// Keeps the node if it is among the best.
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

    /// How many of what was gathered are within `reach`.
    pub(super) fn count_within(&mut self, reach: &Reach) -> usize {
        reach.bound.as_ref().map_or(self.keys.len(), |bound| bound.count(&mut self.keys))
    }

    /// Leaves only the best of what was gathered, in no order; returns the key that others must lie below to be kept.
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

    /// Adds a node by its key; returns the key that this puts out of the beam, which may be the same one.
    #[inline]
    pub(super) fn exchange(&mut self, key: u64) -> Option<u64> {
        let mut out = None;
        if self.keys.len() == self.limit {
            if self.keys.last().is_none_or(|last| key >= *last) {
                return Some(key);
            }
            out = self.keys.pop();
        }
        let at = self.keys.partition_point(|other| *other < key);
        self.keys.insert(at, key);
        self.cursor = self.cursor.min(at);
        out
    }

    /// Gathers nodes without a look at what is kept.
    pub(super) fn gather(&mut self, nodes: &[u32], distances: &[i32]) {
        self.keys.extend(nodes.iter().zip(distances).map(|(node, distance)| key(*distance, *node)));
    }

    /// Ends the gathering: keeps the best, in order.
    pub(super) fn settle(&mut self) {
        self.cut();
        self.keys.sort_unstable();
    }

    /// From now on, nothing is kept or expanded that is not within `reach`.
    pub(super) fn confine(&mut self, reach: Reach) {
        self.bound = reach.bound;
        self.end = self.bound.as_ref().map_or(u64::MAX, |bound| bound.key(&self.keys));
    }

    /// Takes the nearest node out.
    pub(super) fn pop_nearest(&mut self) -> Option<u64> {
        let first = *self.keys.first()?;
        self.keys.remove(0);
        self.cursor = self.cursor.saturating_sub(1);
        Some(first)
    }

    /// The nearest node that is not expanded yet; it now counts as expanded. None where it lies beyond the end.
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

    /// What [`Beam::next`] will most likely return.
    #[inline]
    pub(super) fn peek(&self) -> Option<u32> {
        self.to_come().next()
    }

    /// The nodes that are not expanded yet, nearest first.
    #[inline]
    fn to_come(&self) -> impl Iterator<Item = u32> + '_ {
        let rest = self.keys.get(self.cursor..).unwrap_or_default();
        rest.iter().filter(|key| **key & 1 == 0).map(|key| node_of(*key))
    }

    /// Whether a node with that key would be kept.
    #[inline]
    fn takes(&self, key: u64) -> bool {
        key < self.end && (self.keys.len() < self.limit || self.keys.last().is_some_and(|last| key < *last))
    }

    /// The nodes with their distances, nearest first.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (u32, i32)> + '_ {
        self.keys.iter().map(|key| (node_of(*key), distance_of(*key)))
    }
}

/// The code of a query and the codes it is compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walker<'a> {
    pub(crate) codes: Codes<'a>,
    pub(crate) query: &'a [i8],
}

impl Walker<'_> {
    /// Compares `scratch.nodes`, indices in `level`, into `scratch.distances`; returns how many that were.
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

    /// Begins a walk that keeps `ef` nodes, from `entries`.
    pub(crate) fn start<L: Level>(&self, level: &L, entries: &[u32], ef: usize, scratch: &mut Scratch) -> u64 {
        scratch.beam.reset(ef);
        self.enter(level, entries, scratch)
    }

    /// Begins a walk with an empty beam, from `entries`.
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

    /// Walks on until every node of the beam is expanded. Started again after the beam was given more room or more
    /// nodes, it goes on from there.
    pub(crate) fn walk<L: Level>(&self, level: &L, scratch: &mut Scratch) -> u64 {
        let mut compared = 0;
        while let Some(node) = scratch.beam.next() {
            let Scratch { nodes, visited, .. } = scratch;
            nodes.clear();
            level.for_each_link(node, |link| {
                if visited.insert(link) {
                    nodes.push(link);
                }
            });
            if let Some(next) = scratch.beam.peek() {
                level.prefetch(next);
            }
            compared += self.offer(level, scratch);
        }
        compared
    }

    /// As [`Walker::walk`], two nodes at a time: what both lead to comes from memory at once. The second would hardly ever
    /// have been left out, for it is the next nearest.
    fn walk_in_pairs(&self, ground: &LevelView<'_>, scratch: &mut Scratch) -> u64 {
        let mut compared = 0;
        while let Some(first) = scratch.beam.next() {
            let second = scratch.beam.next();
            let Scratch { nodes, visited, .. } = scratch;
            nodes.clear();
            for node in [Some(first), second].into_iter().flatten() {
                ground.for_each_link(node, |link| {
                    if visited.insert(link) {
                        nodes.push(link);
                    }
                });
            }
            scratch.beam.to_come().take(2).for_each(|next| ground.prefetch(next));
            compared += self.offer(ground, scratch);
        }
        compared
    }

    /// Goes to a node of `level` that none of its neighbours is nearer than.
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

    /// Goes down from the entry point to a node of level 0 near the query.
    pub(crate) fn descend(&self, graph: &GraphView<'_>, scratch: &mut Scratch) -> (u32, u64) {
        let mut compared = 0;
        let top = graph.level(graph.top());
        // A graph that was checked has its entry point on the highest level.
        let mut node = top.index_of(graph.entry).unwrap_or(0);
        for level in (1..=graph.top()).rev() {
            let view = graph.level(level);
            let (nearest, steps) = self.greedy(&view, node, scratch);
            compared += steps;
            node = view.down(nearest);
        }
        (node, compared)
    }

    /// The best nodes within `reach`, into the beam.
    pub(crate) fn search(&self, graph: &GraphView<'_>, reach: Reach, scratch: &mut Scratch) -> u64 {
        let (near, steps) = self.descend(graph, scratch);
        let ground = graph.ground();
        scratch.beam.reset_within(reach);
        // From the entry point every node can be reached; the node near the query only makes it quick.
        let compared = self.enter(&ground, &[near, graph.entry], scratch);
        steps + compared + self.walk_in_pairs(&ground, scratch)
    }

    /// The best of the nodes that match within `reach`, into `found`: walks from `near` over all nodes until none is left to
    /// expand that is nearer than the worst match kept, and within reach of the best. Returns beside the number of those compared
    /// whether that was before `patience` ended.
    pub(crate) fn search_collecting(
        &self,
        graph: &GraphView<'_>,
        matcher: &Matcher<'_>,
        near: u32,
        reach: Reach,
        patience: Patience,
        scratch: &mut Scratch,
    ) -> (u64, bool) {
        let ground = graph.ground();
        let mut compared = self.start(&ground, &[near, graph.entry], 0, scratch);
        scratch.found.reset_within(reach);
        scratch.frontier.clear();
        let (mut met, mut expanded) = (Met::default(), 0);
        collect(matcher, scratch, &mut met);
        while let Some(Reverse(nearest)) = scratch.frontier.pop() {
            if !scratch.found.takes(nearest) {
                break;
            }
            if patience.ends(expanded, || met.share()) {
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

    /// The best `ef` of the nodes at positions `matching`, into `found`, by comparing all of them. They are put in order at the
    /// end: of thousands, most that would be let in on the way are put out again.
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

/// How many nodes were met, near enough to matter, and how many of them match.
#[derive(Clone, Copy, Default)]
struct Met {
    count: u32,
    matching: u32,
}

impl Met {
    fn share(self) -> f64 {
        f64::from(self.matching) / f64::from(self.count)
    }
}

/// Puts the nodes just compared on the frontier, and those that match into `found`.
fn collect(matcher: &Matcher<'_>, scratch: &mut Scratch, met: &mut Met) {
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
