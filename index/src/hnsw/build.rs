//! Builds a graph, or adds nodes to one.
//!
//! Nodes are linked highest level first, so the entry point exists from the start and never changes while threads work.
//! (Only the first node added to an existing graph may become the new entry point, and it is added alone.) A thread
//! finds the neighbours of a node on all its levels (paper, algorithm 1), then links it from level 0 upwards: a walk
//! that meets the node on a level can already descend through it.
//!
//! Link lists are arrays of atomics, written under the lock of their node and read without a lock. A reader may see a
//! list that is being rewritten. It then misses a neighbour at most, since each entry is always valid. One thread links
//! nodes in a fixed order, so equal input gives an equal graph.
//!
//! At level 0 a list has room for a quarter more than m0 during the build, so it is pruned once in m0/4 additions
//! instead of at each. The end of the build prunes it to m0.
//!
//! Cost: a node compares about ef_construction * m0 / 2 codes to find its neighbours, and as many again to diversify
//! their lists.

use std::sync::PoisonError;

use super::connect::connect;
use super::graph::{Graph, GraphView, Level, LevelView};
use super::neighbours::{NeighbourSource, SMALLER_BEAM, TOGETHER};
use super::params::{BuildOptions, Params, Progress};
use super::search::Walker;
use super::select::{Candidate, select_neighbors};
use super::twins::Twins;
use super::visited::Scratch;
use crate::error::Result;
use crate::quantize::Codes;
use crate::segment::layout::NO_LINK;
use crate::sync::{AtomicBool, AtomicU32, AtomicUsize, Mutex, MutexGuard, Ordering, spawn_scoped, thread};

/// The number of nodes that one thread links before others join, so that those find neighbours.
const ALONE: usize = if cfg!(feature = "shuttle") { 8 } else { 256 };

/// Nodes per work item of a thread.
const BATCH: usize = if cfg!(feature = "shuttle") { 2 } else { 32 };

/// The nodes of a graph under construction.
#[derive(Clone, Copy)]
pub(crate) struct Nodes<'a> {
    pub(crate) codes: Codes<'a>,
    pub(crate) ids: &'a [u32],
    pub(crate) twins: &'a Twins,
    /// Exact neighbours of new nodes, if they are found faster than by walks.
    pub(crate) neighbours: Option<&'a NeighbourSource<'a>>,
}

/// Nodes that are linked last, and a callback that uses the graph without them.
pub(crate) struct HoldOut<'a> {
    /// Ascending; all of them on level 0 only, without twins.
    pub(crate) positions: &'a [u32],
    pub(crate) without: &'a mut dyn FnMut(&GraphView<'_>) -> Result<()>,
}

/// Builds the graph over some nodes.
///
/// # Errors
/// [`Error::Cancelled`](crate::Error::Cancelled), and errors of the callback of `held`.
pub(crate) fn build(
    nodes: &Nodes<'_>,
    params: Params,
    held: Option<HoldOut<'_>>,
    options: &BuildOptions<'_>,
) -> Result<Graph> {
    let mut build = Build::new(nodes, params);
    build.grow_all(|_| true, held, options)?;
    Ok(build.finish())
}

/// A graph that nodes are added to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Base<'a> {
    pub(crate) graph: GraphView<'a>,
    /// The position of each of its nodes in the new graph, or [`NO_LINK`] if the node is dropped.
    pub(crate) kept: &'a [u32],
}

/// Builds the graph over some nodes, where those of `base` keep their links.
///
/// # Errors
/// [`Error::Cancelled`](crate::Error::Cancelled), and errors of the callback of `held`.
pub(crate) fn extend(
    nodes: &Nodes<'_>,
    base: &Base<'_>,
    params: Params,
    held: Option<HoldOut<'_>>,
    options: &BuildOptions<'_>,
) -> Result<Graph> {
    let mut build = Build::new(nodes, params);
    let back = held.as_ref().map_or(&[][..], |held| held.positions);
    // Held-out nodes are removed from the base graph and added as new nodes.
    let mut kept = leaders_kept(base, nodes.twins);
    for position in &mut kept {
        if back.binary_search(position).is_ok() {
            *position = NO_LINK;
        }
    }
    let mut old = vec![false; nodes.ids.len()];
    for position in kept.iter().filter(|position| **position != NO_LINK) {
        old[*position as usize] = true;
    }
    build.adopt(&Base { graph: base.graph, kept: &kept });
    build.grow_all(|position| !old[position as usize], held, options)?;
    Ok(build.finish())
}

/// The node that takes the place of each node of `base`, or [`NO_LINK`] if there is none. The links of a leader that is
/// dropped are those of its first twin that is kept. A node that lost its twins to another scale of codes is not one of
/// them: it is linked anew.
fn leaders_kept(base: &Base<'_>, twins: &Twins) -> Vec<u32> {
    let leader = |position: u32| if position == NO_LINK { NO_LINK } else { twins.leader(position) };
    let mut kept: Vec<u32> = base.kept.iter().map(|position| leader(*position)).collect();
    for (old, twin) in base.graph.twins.pairs() {
        let heir = kept[twin as usize];
        if kept[old as usize] == NO_LINK {
            kept[old as usize] = heir;
        }
    }
    // The list of a twin is none.
    base.graph.twins.pairs().for_each(|(_, twin)| kept[twin as usize] = NO_LINK);
    kept
}

/// A level under construction.
#[derive(Debug)]
struct LevelBuilder {
    /// Positions by index, ascending; empty at level 0, where they are equal.
    positions: Vec<u32>,
    /// The index in the level below; empty at level 0.
    down: Vec<u32>,
    /// Capacity of each list.
    width: usize,
    /// Length to which lists are pruned.
    keep: usize,
    links: Vec<AtomicU32>,
    locks: Vec<Mutex<()>>,
}

impl LevelBuilder {
    fn new(count: usize, width: usize, keep: usize) -> Self {
        Self {
            positions: Vec::new(),
            down: Vec::new(),
            width,
            keep,
            links: (0..count * width).map(|_| AtomicU32::new(NO_LINK)).collect(),
            locks: (0..count).map(|_| Mutex::new(())).collect(),
        }
    }

    fn list(&self, index: u32) -> &[AtomicU32] {
        &self.links[index as usize * self.width..][..self.width]
    }

    fn write(&self, index: u32, links: impl Iterator<Item = u32>) {
        let filled = links.chain(std::iter::repeat(NO_LINK));
        for (slot, link) in self.list(index).iter().zip(filled) {
            slot.store(link, Ordering::Relaxed);
        }
    }

    fn index_of(&self, position: u32) -> u32 {
        if self.positions.is_empty() {
            return position;
        }
        let found = self.positions.binary_search(&position);
        found.expect("a node is on every level up to its own") as u32
    }
}

impl Level for LevelBuilder {
    #[inline]
    fn len(&self) -> usize {
        self.locks.len()
    }

    #[inline]
    fn position(&self, index: u32) -> u32 {
        self.positions.get(index as usize).copied().unwrap_or(index)
    }

    #[inline]
    fn for_each_link(&self, index: u32, mut visit: impl FnMut(u32)) {
        for slot in self.list(index) {
            let link = slot.load(Ordering::Relaxed);
            if link == NO_LINK {
                break;
            }
            visit(link);
        }
    }

    #[inline]
    fn prefetch(&self, index: u32) {
        crate::prefetch::prefetch(self.list(index));
    }
}

/// Scratch memory of a thread.
#[derive(Debug, Default)]
struct Workspace {
    scratch: Scratch,
    candidates: Vec<Candidate>,
    /// The selected neighbours on each level.
    chosen: Vec<Vec<Candidate>>,
    positions: Vec<u32>,
    distances: Vec<i32>,
    selected: Vec<Candidate>,
}

struct Build<'a> {
    codes: Codes<'a>,
    twins: &'a Twins,
    neighbours: Option<&'a NeighbourSource<'a>>,
    /// True for each node that has its links; kept for neighbour lists only.
    linked: Vec<AtomicBool>,
    params: Params,
    /// The level of each node.
    tops: Vec<u8>,
    levels: Vec<LevelBuilder>,
    /// The entry point and its level, once there is one.
    entry: Option<(u32, usize)>,
}

impl<'a> Build<'a> {
    fn new(nodes: &Nodes<'a>, params: Params) -> Self {
        let Nodes { codes, ids, twins, neighbours } = *nodes;
        let top = |(position, id)| if twins.leader(position) == position { params.level(id) as u8 } else { 0 };
        let tops: Vec<u8> = (0..).zip(ids.iter().copied()).map(top).collect();
        let top = tops.iter().copied().max().unwrap_or(0);
        let mut levels = vec![LevelBuilder::new(ids.len(), params.m0 + params.m0 / 4, params.m0)];
        for level in 1..=top {
            let on_level = |position: &u32| tops[*position as usize] >= level;
            let positions: Vec<u32> = (0..ids.len() as u32).filter(on_level).collect();
            let below = &levels[levels.len() - 1];
            let mut level_builder = LevelBuilder::new(positions.len(), params.m, params.m);
            level_builder.down = positions.iter().map(|position| below.index_of(*position)).collect();
            level_builder.positions = positions;
            levels.push(level_builder);
        }
        let linked = neighbours.iter().flat_map(|_| ids).map(|_| AtomicBool::new(false)).collect();
        Self { codes, twins, neighbours, linked, params, tops, levels, entry: None }
    }

    fn top(&self, position: u32) -> usize {
        usize::from(self.tops[position as usize])
    }

    /// The given nodes, highest level first.
    fn by_level(&self, positions: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut order: Vec<u32> = positions.collect();
        order.sort_by_key(|position| std::cmp::Reverse(self.top(*position)));
        order
    }

    /// Links the `new` nodes, held-out nodes last.
    fn grow_all(
        &mut self,
        new: impl Fn(u32) -> bool,
        held: Option<HoldOut<'_>>,
        options: &BuildOptions<'_>,
    ) -> Result<()> {
        let back = held.as_ref().map_or(&[][..], |held| held.positions);
        let is_node = |at: &u32| self.twins.leader(*at) == *at && back.binary_search(at).is_err();
        let first = (0..self.tops.len() as u32).filter(|at| new(*at) && is_node(at));
        let order = self.by_level(first);
        let total = order.len() + back.len();
        self.grow(&order, 0, total, options)?;
        let Some(held) = held else {
            return Ok(());
        };
        (held.without)(&self.pruned().view())?;
        self.grow(held.positions, order.len(), total, options)
    }

    /// Links the nodes of `order`, highest level first. `before` of `total` nodes are linked already.
    fn grow(&mut self, order: &[u32], before: usize, total: usize, options: &BuildOptions<'_>) -> Result<()> {
        let Some((first, rest)) = order.split_first() else {
            return Ok(());
        };
        let mut work = Workspace::default();
        self.insert(*first, &[], &mut work);
        if self.entry.is_none_or(|(_, level)| level < self.top(*first)) {
            self.entry = Some((*first, self.top(*first)));
        }
        let done = AtomicUsize::new(before);
        let report = |count: usize| {
            let done = done.fetch_add(count, Ordering::Relaxed) + count;
            if let Some(progress) = options.progress {
                progress(Progress { done, total });
            }
        };
        report(1);
        let alone = if options.threads > 1 { ALONE.min(rest.len()) } else { rest.len() };
        let (alone, together) = rest.split_at(alone);
        let size = if self.neighbours.is_some() { TOGETHER } else { BATCH };
        for batch in alone.chunks(size) {
            options.check_cancelled()?;
            self.insert_batch(batch, &mut work)?;
            report(batch.len());
        }
        if together.is_empty() {
            return Ok(());
        }
        let next = AtomicUsize::new(0);
        let this = &*self;
        let worker = || -> Result<()> {
            let mut work = Workspace::default();
            loop {
                let start = next.fetch_add(size, Ordering::Relaxed);
                let Some(rest) = together.get(start..).filter(|rest| !rest.is_empty()) else {
                    return Ok(());
                };
                options.check_cancelled()?;
                let batch = &rest[..size.min(rest.len())];
                this.insert_batch(batch, &mut work)?;
                report(batch.len());
            }
        };
        thread::scope(|scope| {
            let start = |_| spawn_scoped(scope, worker);
            let workers: Vec<_> = (1..options.threads).filter_map(start).collect();
            // This thread works, too: all of the work where no other could start.
            let own = worker();
            let others = workers.into_iter().map(|worker| worker.join());
            let mut others = others.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            own.and(others.try_for_each(|result| result))
        })
    }

    /// Links some nodes, with their exact neighbours if there is a source of them.
    fn insert_batch(&self, batch: &[u32], work: &mut Workspace) -> Result<()> {
        let lists = self.neighbours.map_or(Ok(Vec::new()), |source| source.lists(batch))?;
        let lists = lists.iter().map(Vec::as_slice).chain(std::iter::repeat(&[][..]));
        batch.iter().zip(lists).for_each(|(position, near)| self.insert(*position, near, work));
        Ok(())
    }

    /// Links one node on all its levels. `exact` are its nearest neighbours, linked or not; empty if they are unknown.
    fn insert(&self, position: u32, exact: &[u32], work: &mut Workspace) {
        let Some((entry, entry_level)) = self.entry else {
            self.note_linked(position);
            return;
        };
        let walker = Walker { codes: self.codes, query: self.codes.code(position) };
        let top = self.top(position);
        let mut near = self.levels[entry_level].index_of(entry);
        for level in (top + 1..=entry_level).rev() {
            let level_builder = &self.levels[level];
            near = level_builder.down[walker.greedy(level_builder, near, &mut work.scratch).0 as usize];
        }
        let top = top.min(entry_level);
        work.chosen.resize(work.chosen.len().max(top + 1), Vec::new());
        for level in (0..=top).rev() {
            let level_builder = &self.levels[level];
            let ef = match exact {
                [] => self.params.ef_construction,
                _ => (self.params.ef_construction / SMALLER_BEAM).max(self.params.m0),
            };
            walker.start(level_builder, &[near], ef, &mut work.scratch);
            walker.walk(level_builder, &mut work.scratch);
            let found = work.scratch.beam.nodes().map(|(index, distance)| Candidate {
                index,
                position: level_builder.position(index),
                distance,
            });
            work.candidates.clear();
            work.candidates.extend(found.filter(|found| found.position != position));
            if level == 0 && !exact.is_empty() {
                self.add_exact(position, exact, work);
            }
            select_neighbors(&self.codes, &work.candidates, level_builder.keep, &mut work.chosen[level]);
            let nearest = work.candidates.first().map_or(near, |nearest| nearest.index);
            if level > 0 {
                near = level_builder.down[nearest as usize];
            }
        }
        for level in 0..=top {
            let chosen = std::mem::take(&mut work.chosen[level]);
            self.link(level, position, &chosen, work);
            work.chosen[level] = chosen;
        }
        self.note_linked(position);
    }

    fn note_linked(&self, position: u32) {
        if let Some(linked) = self.linked.get(position as usize) {
            linked.store(true, Ordering::Relaxed);
        }
    }

    /// Adds the linked ones of a node's exact neighbours to its candidates on level 0, where positions are indexes.
    fn add_exact(&self, position: u32, exact: &[u32], work: &mut Workspace) {
        let leaders = exact.iter().map(|at| self.twins.leader(*at));
        let linked = leaders.filter(|at| *at != position && self.linked[*at as usize].load(Ordering::Relaxed));
        self.gather(&self.levels[0], position, linked, work);
        work.candidates.dedup_by_key(|candidate| candidate.index);
    }

    /// Links a node to its selected neighbours, and these to it.
    fn link(&self, level: usize, position: u32, chosen: &[Candidate], work: &mut Workspace) {
        let level_builder = &self.levels[level];
        let index = level_builder.index_of(position);
        {
            let _held = lock(&level_builder.locks[index as usize]);
            level_builder.write(index, chosen.iter().map(|other| other.index));
        }
        for other in chosen {
            let back = Candidate { index, position, distance: other.distance };
            self.add_link(level_builder, other, back, work);
        }
    }

    /// Adds a link to the list of `node`, pruning a full list.
    fn add_link(&self, level_builder: &LevelBuilder, node: &Candidate, new: Candidate, work: &mut Workspace) {
        let _held = lock(&level_builder.locks[node.index as usize]);
        let list = level_builder.list(node.index);
        let free = list.iter().position(|slot| slot.load(Ordering::Relaxed) == NO_LINK);
        if let Some(free) = free {
            list[free].store(new.index, Ordering::Relaxed);
            return;
        }
        let links = list.iter().map(|slot| slot.load(Ordering::Relaxed));
        work.candidates.clear();
        work.candidates.push(new);
        self.gather(level_builder, node.position, links, work);
        select_neighbors(&self.codes, &work.candidates, level_builder.keep, &mut work.selected);
        level_builder.write(node.index, work.selected.iter().map(|kept| kept.index));
    }

    /// Adds `links` to the candidates of the node at `position` and sorts them.
    fn gather(
        &self,
        level_builder: &LevelBuilder,
        position: u32,
        links: impl Iterator<Item = u32>,
        work: &mut Workspace,
    ) {
        let known = work.candidates.len();
        work.candidates.extend(links.map(|index| Candidate {
            index,
            position: level_builder.position(index),
            distance: 0,
        }));
        let new = &mut work.candidates[known..];
        work.positions.clear();
        work.positions.extend(new.iter().map(|candidate| candidate.position));
        self.codes.distances(self.codes.code(position), &work.positions, &mut work.distances);
        for (candidate, distance) in new.iter_mut().zip(&work.distances) {
            candidate.distance = *distance;
        }
        work.candidates.sort_unstable_by_key(|candidate| (candidate.distance, candidate.index));
    }

    /// Takes over the nodes and links of `base`. A node that loses a neighbour gets that one's neighbours to choose
    /// from instead.
    fn adopt(&mut self, base: &Base<'_>) {
        let mut work = Workspace::default();
        for level in 0..=base.graph.top() {
            let Some(level_builder) = self.levels.get(level) else {
                break;
            };
            let old = base.graph.level(level);
            for index in 0..old.len() as u32 {
                let position = base.kept[old.position(index) as usize];
                // Of two nodes that are one now, the later one gives its links.
                if position != NO_LINK && level <= self.top(position) {
                    self.note_linked(position);
                    self.adopt_node((level, level_builder), old, base.kept, index, position, &mut work);
                }
            }
        }
        let kept_level = |position: u32| (position, self.top(position));
        let entry = base.kept[base.graph.entry as usize];
        self.entry = if entry == NO_LINK || self.top(entry) < base.graph.top() {
            let kept = base.kept.iter().filter(|position| **position != NO_LINK);
            kept.map(|position| kept_level(*position)).max_by_key(|(_, level)| *level)
        } else {
            Some(kept_level(entry))
        };
    }

    fn adopt_node(
        &self,
        (level, level_builder): (usize, &LevelBuilder),
        old: LevelView<'_>,
        kept: &[u32],
        old_index: u32,
        position: u32,
        work: &mut Workspace,
    ) {
        let index = level_builder.index_of(position);
        let new_index = |old_index: &u32| {
            let position = kept[old.position(*old_index) as usize];
            let is_there = position != NO_LINK && level <= self.top(position);
            is_there.then(|| level_builder.index_of(position))
        };
        let links = old.links(old_index);
        let mut reachable: Vec<u32> = links.iter().filter_map(new_index).collect();
        // Nodes that became one leave a link to itself, or two to one other.
        let is_sound =
            || (0..reachable.len()).all(|at| reachable[at] != index && !reachable[..at].contains(&reachable[at]));
        if reachable.len() == links.len() && (self.twins.is_empty() || is_sound()) {
            level_builder.write(index, reachable.into_iter());
            return;
        }
        let lost = links.iter().filter(|link| new_index(link).is_none());
        let beyond = lost.flat_map(|link| old.links(*link).iter().filter_map(new_index));
        reachable.extend(beyond);
        reachable.retain(|other| *other != index);
        reachable.sort_unstable();
        reachable.dedup();
        work.candidates.clear();
        self.gather(level_builder, position, reachable.into_iter(), work);
        select_neighbors(&self.codes, &work.candidates, level_builder.keep, &mut work.selected);
        level_builder.write(index, work.selected.iter().map(|kept| kept.index));
    }

    /// Prunes all lists to their final length and attaches unreachable nodes.
    fn finish(self) -> Graph {
        let mut graph = self.pruned();
        connect(&mut graph, self.codes, &mut Scratch::default());
        graph
    }

    /// The current graph, with all lists pruned to their final length.
    fn pruned(&self) -> Graph {
        let (entry, top) = self.entry.unwrap_or((0, 0));
        let mut work = Workspace::default();
        let mut graph = Graph::new(self.params.m, self.params.m0, entry, Vec::new());
        for (level, level_builder) in self.levels.iter().enumerate().take(top + 1) {
            let mut links = self.final_links(level_builder, &mut work);
            if level == 0 {
                self.twins.pairs().for_each(|(leader, twin)| links[twin as usize * level_builder.keep] = leader);
                graph.links = links;
                graph.twins = self.twins.clone().into_pairs();
            } else {
                graph.push_level(&level_builder.positions, &level_builder.down, &links);
            }
        }
        graph
    }

    fn final_links(&self, level_builder: &LevelBuilder, work: &mut Workspace) -> Vec<u32> {
        let mut links = Vec::with_capacity(level_builder.len() * level_builder.keep);
        for index in 0..level_builder.len() as u32 {
            let list = level_builder.list(index).iter().map(|slot| slot.load(Ordering::Relaxed));
            let start = links.len();
            links.extend(list.take_while(|link| *link != NO_LINK));
            if links.len() - start > level_builder.keep {
                work.candidates.clear();
                let list: Vec<u32> = links.drain(start..).collect();
                self.gather(level_builder, level_builder.position(index), list.into_iter(), work);
                select_neighbors(&self.codes, &work.candidates, level_builder.keep, &mut work.selected);
                links.extend(work.selected.iter().map(|kept| kept.index));
                level_builder.write(index, links[start..].iter().copied());
            }
            links.resize(start + level_builder.keep, NO_LINK);
        }
        links
    }
}

/// A panic cannot leave the guarded list invalid.
fn lock(mutex: &Mutex<()>) -> MutexGuard<'_, ()> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::spec::Metric;

    const DIM: usize = 8;

    static NONE: Twins = Twins::NONE;

    fn nodes<'a>(codes: Codes<'a>, ids: &'a [u32]) -> Nodes<'a> {
        Nodes { codes, ids, twins: &NONE, neighbours: None }
    }

    fn params() -> Params {
        Params { m: 4, m0: 8, ef_construction: 40, seed: 1 }
    }

    /// Clusters far apart, which links tend to leave unconnected.
    fn clusters(count: usize) -> Vec<i8> {
        let noise = |i: usize| ((i.wrapping_mul(2_654_435_761) >> 7) % 13) as i8 - 6;
        (0..count * DIM)
            .map(|i| {
                let centre = ((i / DIM % 10) * 31 + (i % DIM) * 77) % 200;
                (centre as i32 - 100) as i8 / 2 + noise(i)
            })
            .collect()
    }

    fn check(graph: &Graph, count: usize) {
        assert!(graph.view().unreachable().is_empty());
        super::super::graph::check_links("LNK0", &graph.links, count, graph.m0).unwrap();
        let levels = graph.view().top() as u32;
        super::super::graph::UpperLevel::check(&graph.upper, levels, count, graph.m).unwrap();
    }

    #[test]
    fn every_node_of_a_built_graph_can_be_reached() {
        for threads in [1, 3] {
            let codes = clusters(1500);
            let ids: Vec<u32> = (0..1500).collect();
            let options = BuildOptions { threads, ..BuildOptions::default() };
            let graph = build(&nodes(Codes::new(DIM, Metric::L2, &codes), &ids), params(), None, &options).unwrap();
            check(&graph, 1500);
        }
    }

    #[test]
    fn equal_vectors_and_single_ones_can_be_linked() {
        for count in [1usize, 2, 300] {
            let codes = vec![3i8; count * DIM];
            let ids: Vec<u32> = (0..count as u32).collect();
            let graph =
                build(&nodes(Codes::new(DIM, Metric::L2, &codes), &ids), params(), None, &BuildOptions::default())
                    .unwrap();
            check(&graph, count);
        }
    }

    #[test]
    fn one_thread_builds_the_same_graph_again() {
        let codes = clusters(700);
        let ids: Vec<u32> = (100..800).collect();
        let codes = Codes::new(DIM, Metric::Dot, &codes);
        let make = || build(&nodes(codes, &ids), params(), None, &BuildOptions::default()).unwrap();
        assert_eq!(make(), make());
    }

    #[test]
    fn an_extended_graph_holds_together_when_nodes_are_left_out() {
        let codes = clusters(1000);
        let old_ids: Vec<u32> = (0..600).map(|i| i * 2).collect();
        let options = BuildOptions::default();
        let old = build(&nodes(Codes::new(DIM, Metric::L2, &codes[..600 * DIM]), &old_ids), params(), None, &options)
            .unwrap();
        // Every seventh old node and the entry point are removed, and new nodes are added.
        let mut kept = Vec::new();
        let (mut new_codes, mut new_ids) = (Vec::new(), Vec::new());
        for (at, id) in old_ids.iter().enumerate() {
            if at % 7 == 0 || at == old.entry as usize {
                kept.push(NO_LINK);
                continue;
            }
            kept.push(new_ids.len() as u32);
            new_ids.push(*id);
            new_codes.extend_from_slice(&codes[at * DIM..][..DIM]);
        }
        new_ids.extend(2000..2400);
        new_codes.extend_from_slice(&codes[600 * DIM..]);
        let base = Base { graph: old.view(), kept: &kept };
        let graph =
            extend(&nodes(Codes::new(DIM, Metric::L2, &new_codes), &new_ids), &base, params(), None, &options).unwrap();
        check(&graph, new_ids.len());
    }

    #[test]
    fn a_cancelled_build_ends() {
        let codes = clusters(1000);
        let ids: Vec<u32> = (0..1000).collect();
        let cancel = std::sync::atomic::AtomicBool::new(true);
        for threads in [1, 2] {
            let options = BuildOptions { threads, cancel: Some(&cancel), ..BuildOptions::default() };
            let result = build(&nodes(Codes::new(DIM, Metric::L2, &codes), &ids), params(), None, &options);
            assert!(matches!(result, Err(Error::Cancelled)));
        }
    }
}
