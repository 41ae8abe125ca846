//! Gathering: what each stage finds through its channels, and how.
//!
//! Channels only find candidates (`near`: vectors, `words`: BM25, `linked`: along edges from the stage before); the order
//! of rows is S. A stage hands everything it may route through to the next one.

use super::candidates::{Candidates, Found};
use super::plan::{Plan, StagePlan};
use super::words::Words;
use crate::Result;
use crate::edge::Edge;
use crate::item::{ItemId, Kind, Layer};
use crate::nearest;
use crate::snapshot::Snapshot;
use holotype_index::bitmap::Bits;
use holotype_index::words::Scorer;
use holotype_query::Channel;
use std::collections::{BTreeSet, HashMap};

/// Below this share of what may be routed through, rows are looked for by themselves.
const FEW_ROWS: f64 = 0.35;

/// Standard deviations of how many rows there are among so many.
const CHANCE: f64 = 2.5;

/// What is asked of a stage: the question, and from the second hop on what the hops before found.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) text: Option<String>,
    pub(crate) vector: Option<Vec<f32>>,
}

/// What a stage found, and what was done to find it.
pub(crate) struct Gathered {
    /// What the next stage may be reached from, if there is one.
    pub(crate) routed: Candidates,
    /// What may be rows.
    pub(crate) rows: Candidates,
    pub(crate) steps: Vec<String>,
    /// Every item that could be a row was looked at.
    pub(crate) complete: bool,
}

/// Gathers the candidates of a stage, reached from what the one before may route through.
pub(crate) fn gather(
    snapshot: &Snapshot,
    plan: &Plan,
    asked: &Asked,
    words: &Words<'_>,
    stage: &StagePlan,
    before: &Candidates,
    relaxed: bool,
) -> Result<Gathered> {
    let rows_filter = if relaxed { &stage.relaxable } else { &stage.rows };
    let mut steps = Vec::new();
    let (mut routed, mut rows) = (Candidates::default(), Candidates::default());
    let mut mark = |found: Both, channel: Found| {
        if stage.leads_on {
            routed.mark(&found.routed, &channel);
        }
        rows.mark(&found.rows, &channel);
    };
    let mut linked_to = Candidates::default();
    for channel in &stage.channels {
        match channel {
            Channel::Near => {
                for part in &stage.layers {
                    let find = |filter: &Bits, most| near(snapshot, asked, part.layer, filter, most, &mut steps);
                    let found = both(&part.of(&stage.route), &part.of(rows_filter), stage.pool, find)?;
                    mark(found, Found::near());
                }
            }
            Channel::Words => {
                for part in &stage.layers {
                    let words = words.of(part.layer)?;
                    let find = |filter: &Bits, most| by_words(snapshot, words, filter, most, &mut steps);
                    let found = both(&part.of(&stage.route), &part.of(rows_filter), stage.pool, find)?;
                    mark(found, Found::by_words());
                }
            }
            Channel::Linked => {
                linked_to = linked(snapshot, plan, stage, before)?;
                steps.push(format!("linked: {} from {} items", linked_to.len(), before.len()));
            }
        }
    }
    rows.add(linked_to.filtered(|id| rows_filter.contains(id)));
    if stage.leads_on {
        routed.add(linked_to);
    }
    let complete = rows.len() as u64 == rows_filter.count();
    Ok(Gathered { routed, rows, steps, complete })
}

/// What a channel found, best first: what may be routed through, and what of that may be rows.
struct Both {
    routed: Vec<u32>,
    rows: Vec<u32>,
}

/// The pool of a channel that finds the best of a filter. Unless few of what may be routed through may be rows, one search that
/// goes further finds both.
fn both(
    route: &Bits,
    may_be_rows: &Bits,
    pool: usize,
    mut find: impl FnMut(&Bits, usize) -> Result<Vec<u32>>,
) -> Result<Both> {
    let (all, may) = (route.count(), may_be_rows.count());
    if may == all {
        let routed = find(route, pool)?;
        return Ok(Both { rows: routed.clone(), routed });
    }
    let share = may as f64 / all as f64;
    if share >= FEW_ROWS {
        // As many as hold the pool where rows are spread evenly, and some more for chance; where they are not, the rows
        // are looked for by themselves.
        let further = (pool as f64 + CHANCE * (pool as f64 * (1.0 - share)).sqrt()) / share + 1.0;
        let further = further as usize;
        let mut routed = find(route, further)?;
        let rows: Vec<u32> = routed.iter().copied().filter(|id| may_be_rows.contains(*id)).take(pool).collect();
        let is_all = rows.len() == pool || routed.len() < further;
        routed.truncate(pool);
        return Ok(Both { routed, rows: if is_all { rows } else { find(may_be_rows, pool)? } });
    }
    Ok(Both { routed: find(route, pool)?, rows: find(may_be_rows, pool)? })
}

/// The nearest vectors among those of the filter.
fn near(
    snapshot: &Snapshot,
    asked: &Asked,
    layer: Layer,
    filter: &Bits,
    most: usize,
    steps: &mut Vec<String>,
) -> Result<Vec<u32>> {
    let (Some(vector), false) = (&asked.vector, filter.is_empty()) else { return Ok(Vec::new()) };
    let Some(found) = nearest::search(snapshot, layer, vector, most, filter)? else { return Ok(Vec::new()) };
    for part in &found.parts {
        steps.push(format!(
            "near: {} ({} of {} match, {} compared)",
            part.strategy.name(),
            part.matching,
            part.count,
            part.compared
        ));
    }
    Ok(found.hits.into_iter().map(|hit| hit.id).collect())
}

/// The best by words among those of the filter.
fn by_words(
    snapshot: &Snapshot,
    words: Option<&Scorer<'_>>,
    filter: &Bits,
    most: usize,
    steps: &mut Vec<String>,
) -> Result<Vec<u32>> {
    let (Some(words), false) = (words, filter.is_empty()) else { return Ok(Vec::new()) };
    snapshot.tick()?;
    let hits = words.top(Some(filter), most)?;
    steps.push(format!("words: {} of {} matching", hits.len(), filter.count()));
    Ok(hits.into_iter().map(|hit| hit.id).collect())
}

/// What the items of the stage before are linked to, of this stage's kind. The best of them are followed first, until the
/// pool is full; under a token budget, which lifts counts, all are. A stage of traces after pages, episodes or a lift looks
/// among theirs.
fn linked(snapshot: &Snapshot, plan: &Plan, stage: &StagePlan, before: &Candidates) -> Result<Candidates> {
    let mut sources: Vec<_> = before.iter().collect();
    sources.sort_unstable_by_key(|(id, how)| (how.rank.unwrap_or(u32::MAX), *id));
    let most = if plan.budget.is_some() { usize::MAX } else { stage.pool };
    let mut reached: HashMap<u32, Reached> = HashMap::new();
    let mut beside = Vec::new();
    let routes: Vec<_> = stage.layers.iter().map(|part| (part.layer, part.of(&stage.route))).collect();
    for (rank, (id, how)) in (0..).zip(sources) {
        let from = ItemId(id);
        for (layer, route) in &routes {
            let neighbours = if reached.len() < most { neighbours(snapshot, plan, from, *layer)? } else { Vec::new() };
            for to in neighbours.into_iter().filter(|to| route.contains(to.0)) {
                let reached = reached.entry(to.0).or_insert_with(|| Reached { rank, from: Vec::new() });
                if !reached.from.contains(&from) {
                    reached.from.push(from);
                }
            }
            if *layer == Layer::Trace && how.is_of_place() && route.contains(id) {
                beside.push((id, Found::beside(how).ranked(rank)));
            }
        }
    }
    let linked = reached.into_iter().map(|(id, Reached { rank, mut from })| {
        from.sort_unstable();
        (id, Found::linked(from).ranked(rank))
    });
    Ok(linked.chain(beside).collect())
}

/// What links led to: the place of the best item they led from, and all of those items.
struct Reached {
    rank: u32,
    from: Vec<ItemId>,
}

/// What an item leads to in a layer: a theme to its recalls, a recall to the traces it rests on (through other recalls, if
/// need be), and back.
pub(super) fn neighbours(snapshot: &Snapshot, plan: &Plan, from: ItemId, to: Layer) -> Result<Vec<ItemId>> {
    snapshot.tick()?;
    let state = &snapshot.state;
    let kind = state.attributes.kind(from)?;
    let ends_in =
        |edge| -> Result<Vec<ItemId>> { Ok(state.edges_in(from, Some(edge))?.iter().map(|end| end.far).collect()) };
    match (kind.layer(), to) {
        (Layer::Theme, Layer::Recall) => {
            let mut found = ends_in(Edge::Parent)?;
            match kind {
                Kind::Concept => found.extend(ends_in(Edge::Mentions)?),
                Kind::Intent => found.extend(ends_in(Edge::Solves)?),
                _ => {}
            }
            Ok(found)
        }
        (Layer::Recall, Layer::Theme) => {
            let ends = state.edges_out(from, None)?;
            let routes = |edge| matches!(edge, Edge::Parent | Edge::Mentions | Edge::Solves);
            Ok(ends.iter().filter(|end| routes(end.edge)).map(|end| end.far).collect())
        }
        (Layer::Theme, Layer::Trace) => {
            let mut found = Vec::new();
            for recall in neighbours(snapshot, plan, from, Layer::Recall)? {
                if plan.recalls.contains(recall.0) {
                    found.extend(grounds(snapshot, plan, recall)?);
                }
            }
            Ok(found)
        }
        (Layer::Recall, Layer::Trace) => grounds(snapshot, plan, from),
        (Layer::Recall, Layer::Recall) => {
            let mut found: Vec<ItemId> = state.sources(from, Layer::Recall)?;
            found.extend(state.dependents(from)?);
            found.extend(snapshot.linked(from, Edge::Sibling)?);
            Ok(found)
        }
        (Layer::Trace, Layer::Recall) => state.dependents(from),
        _ => Ok(Vec::new()),
    }
}

/// The traces a recall rests on, through visible recalls in between.
fn grounds(snapshot: &Snapshot, plan: &Plan, recall: ItemId) -> Result<Vec<ItemId>> {
    let mut traces = Vec::new();
    let mut queue = Vec::new();
    let mut seen = BTreeSet::new();
    let mut next = Some(recall);
    while let Some(recall) = next {
        for source in snapshot.state.sources(recall, Layer::Recall)? {
            if plan.traces.contains(source.0) {
                traces.push(source);
            } else if plan.visible.contains(source.0) && seen.insert(source) {
                queue.push(source);
            }
        }
        next = queue.pop();
    }
    traces.sort_unstable();
    traces.dedup();
    Ok(traces)
}
