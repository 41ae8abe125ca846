//! Walks over the nodes that a filter lets through, stepping over the others.
//!
//! Such a walk starts from a sample of the matches, so that wherever the nearest of them are, some are near. The query
//! may lie far away from all of them: the nearest are then the outliers of their own surroundings, to which few links lead, and a
//! walk from few places would miss some.
//!
//! The sample also says what it would cost to walk. Where many of it lie about as near as the best, a walk would have to expand
//! all that do; to compare all matches takes no longer, and misses nothing. Where few do, the walk compares as many again at
//! any rate, and then ends within its [`Reach`].

use super::filter::{Matcher, Members, Positions};
use super::graph::{GraphView, Level, LevelView};
use super::reach::Reach;
use super::search::Walker;
use super::visited::Scratch;
use crate::bitmap::Bits;

/// One match in so many is compared before a walk.
const SAMPLED: u64 = 16;

/// No more are.
const SAMPLE: u64 = 4096;

/// One in so many of the sample is within reach, at most, where a walk is quicker than comparing all.
const WITHIN: usize = 24;

/// Matches that are asked whether they hang together.
const ASKED: usize = 32;

/// As many links as one in so many lead from matches to matches where a walk need not step over much else.
const TOGETHER: u32 = 4;

/// Nodes that do not match which are stepped over from one that does.
const MAX_BRIDGES: usize = 128;

/// The nodes that match a filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matches<'a> {
    pub(crate) members: Members<'a>,
    pub(crate) filter: &'a Bits,
    pub(crate) matcher: Matcher<'a>,
    /// How many they are.
    pub(crate) count: u64,
}

impl<'a> Matches<'a> {
    /// All of them, ascending.
    pub(crate) fn positions(&self) -> Positions<'a> {
        self.members.positions(self.filter)
    }

    /// Whether enough of the links of a few of them lead to others.
    fn hang_together(&self, ground: &LevelView<'_>) -> bool {
        let few: Vec<u32> = self.members.firsts(self.filter, ASKED).collect();
        few.iter().for_each(|node| ground.prefetch(*node));
        let (mut links, mut matching) = (0, 0);
        for node in few {
            ground.for_each_link(node, |link| {
                links += 1;
                matching += u32::from(self.matcher.matches(link));
            });
        }
        matching * TOGETHER >= links
    }

    /// Some of them, from all over, into `sample`.
    fn sample(&self, sample: &mut Vec<u32>) {
        let step = self.count.div_ceil(SAMPLE).max(SAMPLED);
        let wanted = (self.count / step) as usize;
        sample.clear();
        sample.extend(self.members.firsts(self.filter, wanted));
        // Where they lie close to each other, that gives few.
        if sample.len() * 2 < wanted {
            self.positions().every(step as usize, sample);
        }
    }
}

impl Walker<'_> {
    /// The best of the matches within `reach`, into `found`: compares a sample of them, and walks from the best of that.
    /// Returns beside the number of those compared whether it did: unless told to do it `anyway`, it does not where the
    /// matches do not hang together or too many of the sample are about as near as the best.
    pub(crate) fn search_matching(
        &self,
        graph: &GraphView<'_>,
        matches: &Matches<'_>,
        reach: Reach,
        anyway: bool,
        scratch: &mut Scratch,
    ) -> (u64, bool) {
        let ground = graph.ground();
        let together = matches.hang_together(&ground);
        if !anyway && !together {
            return (0, false);
        }
        matches.sample(&mut scratch.nodes);
        let mut compared = self.compare(&ground, scratch);
        scratch.beam.reset(reach.limit);
        scratch.beam.gather(&scratch.nodes, &scratch.distances);
        if !anyway && scratch.beam.count_within(&reach) * WITHIN > scratch.nodes.len() {
            return (compared, false);
        }
        scratch.beam.settle();
        scratch.visited.reset(ground.len());
        for node in &scratch.nodes {
            scratch.visited.insert(*node);
        }
        let step_over = StepOver { ground, matcher: matches.matcher, together };
        compared += self.walk_matching(&step_over, compared, scratch);
        scratch.beam.confine(reach);
        compared += self.walk_matching(&step_over, u64::MAX, scratch);
        std::mem::swap(&mut scratch.found, &mut scratch.beam);
        (compared, true)
    }

    /// Walks on over matches until all that are kept are expanded, or `most` were compared.
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

/// The way from a match to others.
struct StepOver<'a> {
    ground: LevelView<'a>,
    matcher: Matcher<'a>,
    /// Whether most matches have others beside them.
    together: bool,
}

impl StepOver<'_> {
    /// Collects the matching nodes next to `node` that were not met before, and, until there are as many as two link lists
    /// hold, those next to its neighbours that do not match. Where that gives hardly any, it steps over two and more. Where
    /// matches hang together, those met before count too: there is no need to look for others behind what does not match.
    fn collect(&self, node: u32, scratch: &mut Scratch) {
        let Self { ground, matcher, together } = self;
        let Scratch { nodes, visited, bridges, .. } = scratch;
        nodes.clear();
        bridges.clear();
        // How many of the matching nodes were met before.
        let mut old = 0;
        ground.for_each_link(node, |link| {
            if !matcher.matches(link) {
                bridges.push(link);
            } else if visited.insert(link) {
                nodes.push(link);
            } else {
                old += 1;
            }
        });
        let (enough, few) = (ground.width() * 2, ground.width() / 4);
        let near = bridges.len();
        let mut at = 0;
        while let Some(bridge) = bridges.get(at).copied() {
            let count = nodes.len() + if *together { old } else { 0 };
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
                    old += 1;
                }
            });
        }
    }
}
