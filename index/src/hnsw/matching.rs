//! Walks over the nodes that match a filter, stepping over the others.
//!
//! Such a walk starts from a sample of all matches, so some start near the nearest matches wherever these are. The
//! query may be far from all matches: then the nearest are outliers of their neighbourhood, few links lead to them, and
//! a walk from few starting points would miss some.
//!
//! The sample also predicts the cost of the walk. If many samples are about as near as the best one, the walk would
//! expand nearly all matches, and a scan is as fast and exact. If few are, the walk ends within its [`SearchLimit`].

use super::graph::{GraphView, Level, LevelView};
use super::search::Walker;
use super::search_limit::SearchLimit;
use super::strategy::{
    LINK_PROBES, LINKS_PER_MATCHING_LINK, MATCHES_PER_SAMPLE, MAX_BRIDGES, MAX_SAMPLES, SAMPLES_PER_NEAR_MATCH,
};
use super::twins::NodeMatcher;
use super::visited::Scratch;
use crate::bitmap::Bits;
use crate::segment::id_set::{IdSet, Positions};

/// The nodes that match a filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatchSet<'a> {
    pub(crate) members: IdSet<'a>,
    pub(crate) filter: &'a Bits,
    pub(crate) matcher: NodeMatcher<'a>,
    /// Their number.
    pub(crate) count: u64,
}

impl<'a> MatchSet<'a> {
    /// Their positions, ascending.
    pub(crate) fn positions(&self) -> Positions<'a> {
        self.members.positions(self.filter)
    }

    /// True if enough links of a few matches lead to other matches.
    fn are_linked(&self, graph: &GraphView<'_>, ground: &LevelView<'_>) -> bool {
        let firsts = self.members.firsts(self.filter, LINK_PROBES);
        let few: Vec<u32> = firsts.map(|position| graph.leader(position)).collect();
        few.iter().for_each(|node| ground.prefetch(*node));
        let (mut links, mut matching) = (0, 0);
        for node in few {
            ground.for_each_link(node, |link| {
                links += 1;
                matching += u32::from(self.matcher.matches(link));
            });
        }
        matching * LINKS_PER_MATCHING_LINK >= links
    }

    /// Collects an evenly spread sample of matches.
    fn sample(&self, sample: &mut Vec<u32>) {
        let step = self.count.div_ceil(MAX_SAMPLES).max(MATCHES_PER_SAMPLE);
        let wanted = (self.count / step) as usize;
        sample.clear();
        sample.extend(self.members.firsts(self.filter, wanted));
        // Runs of consecutive matches yield few samples.
        if sample.len() * 2 < wanted {
            self.positions().every(step as usize, sample);
        }
    }
}

impl Walker<'_> {
    /// Finds the best matches within `search_limit`, into `found`: compares a sample, and walks from the best samples.
    /// Returns the number of comparisons, and whether it walked. Without `always` it does not walk if matches are not
    /// linked to each other, or if too many samples are about as near as the best.
    pub(crate) fn search_matching(
        &self,
        graph: &GraphView<'_>,
        matches: &MatchSet<'_>,
        search_limit: SearchLimit,
        always: bool,
        scratch: &mut Scratch,
    ) -> (u64, bool) {
        let ground = graph.ground();
        let linked = matches.are_linked(graph, &ground);
        if !always && !linked {
            return (0, false);
        }
        matches.sample(&mut scratch.nodes);
        if !graph.twins.is_empty() {
            scratch.nodes.iter_mut().for_each(|node| *node = graph.leader(*node));
            scratch.nodes.sort_unstable();
            scratch.nodes.dedup();
        }
        let mut compared = self.compare(&ground, scratch);
        scratch.beam.reset(search_limit.limit);
        scratch.beam.gather(&scratch.nodes, &scratch.distances);
        if !always && scratch.beam.count_within(&search_limit) * SAMPLES_PER_NEAR_MATCH > scratch.nodes.len() {
            return (compared, false);
        }
        scratch.beam.settle();
        scratch.visited.reset(ground.len());
        for node in &scratch.nodes {
            scratch.visited.insert(*node);
        }
        let step_over = StepOver { ground, matcher: matches.matcher, linked };
        compared += self.walk_matching(&step_over, compared, scratch);
        scratch.beam.confine(search_limit);
        compared += self.walk_matching(&step_over, u64::MAX, scratch);
        std::mem::swap(&mut scratch.found, &mut scratch.beam);
        (compared, true)
    }

    /// Walks over matches until all kept nodes are expanded or `most` were compared.
    fn walk_matching(&self, step_over: &StepOver<'_>, most: u64, scratch: &mut Scratch) -> u64 {
        let mut compared = 0;
        while compared < most
            && let Some(node) = scratch.beam.next()
        {
            step_over.collect(node, scratch);
            if let Some(next) = scratch.beam.peek() {
                step_over.ground.prefetch(next);
            }
            compared += self.offer(&step_over.ground, scratch);
        }
        compared
    }
}

/// Finds matching nodes near a match.
struct StepOver<'a> {
    ground: LevelView<'a>,
    matcher: NodeMatcher<'a>,
    /// True if matches are linked to each other.
    linked: bool,
}

impl StepOver<'_> {
    /// Collects the unvisited matches among the neighbours of `node`, then among the neighbours of its non-matching
    /// neighbours, until there are as many as two link lists hold. If that yields few, it steps over two or more nodes.
    /// If matches are linked to each other, visited matches count too, because stepping over other nodes is then
    /// unnecessary.
    fn collect(&self, node: u32, scratch: &mut Scratch) {
        let Self { ground, matcher, linked } = self;
        let Scratch { nodes, visited, bridges, .. } = scratch;
        nodes.clear();
        bridges.clear();
        // The number of matches visited before.
        let mut visited_matches = 0;
        ground.for_each_link(node, |link| {
            if !matcher.matches(link) {
                bridges.push(link);
            } else if visited.insert(link) {
                nodes.push(link);
            } else {
                visited_matches += 1;
            }
        });
        let (enough, few) = (ground.width() * 2, ground.width() / 4);
        let near = bridges.len();
        let mut at = 0;
        while let Some(bridge) = bridges.get(at).copied() {
            let count = nodes.len() + if *linked { visited_matches } else { 0 };
            if count >= enough || (at >= near && count >= few) {
                return;
            }
            at += 1;
            if !visited.insert(bridge) {
                continue;
            }
            if let Some(next) = bridges.get(at + 1) {
                ground.prefetch(*next);
            }
            ground.for_each_link(bridge, |link| {
                if !matcher.matches(link) {
                    if bridges.len() < MAX_BRIDGES {
                        bridges.push(link);
                    }
                } else if visited.insert(link) {
                    nodes.push(link);
                } else {
                    visited_matches += 1;
                }
            });
        }
    }
}
