//! Gathering: the candidates of a stage, found through its channels.
//!
//! Channels (`near`: vectors, `words`: BM25, `linked`: edges from the previous stage) only find candidates; the order
//! of rows is S. A stage passes everything it may route through to the next one.

use super::candidates::{Candidates, MatchPath};
use super::context::Context;
use super::plan::{Plan, StagePlan};
use crate::Result;
use crate::model::edge::Edge;
use crate::model::item::{ItemId, Kind, Layer};
use crate::model::plural::counted;
use crate::read::nearest;
use crate::read::snapshot::Snapshot;
use crate::records::tables;
use holotype_index::bitmap::Bits;
use holotype_index::words::Scorer;
use holotype_query::Channel;
use std::collections::{BTreeSet, HashMap};

/// Below this share of eligible rows among routable items, rows are searched separately.
const SPARSE_SHARE: f64 = 0.35;

/// Safety margin of the enlarged search, in standard deviations of the number of rows in it.
const SPREAD_SIGMAS: f64 = 2.5;

/// The query of a stage; from the second hop on it includes the rows found before.
#[derive(Debug, Clone)]
pub(crate) struct StageQuery {
    pub(crate) text: Option<String>,
    pub(crate) vector: Option<Vec<f32>>,
}

/// The candidates of a stage, and the steps for `explain`.
pub(crate) struct Gathered {
    /// Candidates that the next stage may start from.
    pub(crate) routed: Candidates,
    /// Candidates that may become rows.
    pub(crate) rows: Candidates,
    pub(crate) steps: Vec<String>,
    /// Every possible row is a candidate.
    pub(crate) complete: bool,
}

/// Gathers the candidates of a stage, starting from those of the previous one.
pub(crate) fn gather(
    context: &Context<'_, '_>,
    stage: &StagePlan,
    asked: &StageQuery,
    before: &Candidates,
    relaxed: bool,
) -> Result<Gathered> {
    let Context { snapshot, plan, words, .. } = *context;
    let rows_filter = if relaxed { &stage.relaxable } else { &stage.rows };
    let mut steps = Vec::new();
    let (mut routed, mut rows) = (Candidates::default(), Candidates::default());
    let mut add_hits = |found: ChannelHits, channel: MatchPath| {
        if stage.routes_on {
            routed.add_hits(&found.routed, &channel);
        }
        rows.add_hits(&found.rows, &channel);
    };
    let mut linked_to = Candidates::default();
    for channel in &stage.channels {
        match channel {
            Channel::Near => {
                for part in &stage.layers {
                    let find = |filter: &Bits, most| near(snapshot, asked, part.layer, filter, most, &mut steps);
                    let sets = (part.of(&stage.route), part.of(rows_filter));
                    let found = search_channel((&sets.0, &sets.1), stage, false, find)?;
                    add_hits(found, MatchPath::near());
                }
            }
            Channel::Words => {
                for part in &stage.layers {
                    let words = words.of(part.layer)?;
                    let find = |filter: &Bits, most| by_words(snapshot, words, filter, most, &mut steps);
                    let sets = (part.of(&stage.route), part.of(rows_filter));
                    let found = search_channel((&sets.0, &sets.1), stage, true, find)?;
                    add_hits(found, MatchPath::words());
                }
            }
            Channel::Linked => {
                linked_to = linked(snapshot, plan, stage, before)?;
                steps.push(format!("linked: {} from {}", linked_to.len(), counted(before.len() as u64, "items")));
            }
        }
    }
    rows.add(linked_to.filtered(|id| rows_filter.contains(id)));
    if stage.routes_on {
        routed.add(linked_to);
    }
    let complete = rows.len() as u64 == rows_filter.count();
    Ok(Gathered { routed, rows, steps, complete })
}

/// The hits of a channel, best first: those to route through, and those that may become rows.
struct ChannelHits {
    routed: Vec<u32>,
    rows: Vec<u32>,
}

/// Runs a channel for the items to route through and those that may be rows. If enough of the routable items may be
/// rows, one enlarged search finds both. Where nothing is routed on, an exact search looks for rows alone: it finds the
/// same ones.
fn search_channel(
    (route, may_be_rows): (&Bits, &Bits),
    stage: &StagePlan,
    is_exact: bool,
    mut find: impl FnMut(&Bits, usize) -> Result<Vec<u32>>,
) -> Result<ChannelHits> {
    let pool = stage.pool;
    if !stage.routes_on && is_exact {
        return Ok(ChannelHits { routed: Vec::new(), rows: find(may_be_rows, pool)? });
    }
    if route.count() == may_be_rows.count() {
        let routed = find(route, pool)?;
        return Ok(ChannelHits { rows: routed.clone(), routed });
    }
    if let Some(further) = widened_pool(route, may_be_rows, pool) {
        // If the search still finds too few rows, they are searched separately.
        let mut routed = find(route, further)?;
        let rows: Vec<u32> = routed.iter().copied().filter(|id| may_be_rows.contains(*id)).take(pool).collect();
        let is_all = rows.len() == pool || routed.len() < further;
        routed.truncate(pool);
        return Ok(ChannelHits { routed, rows: if is_all { rows } else { find(may_be_rows, pool)? } });
    }
    let routed = if stage.routes_on { find(route, pool)? } else { Vec::new() };
    Ok(ChannelHits { routed, rows: find(may_be_rows, pool)? })
}

/// The number of routable items that one search for both sets finds; `None` if the sets are searched separately.
pub(super) fn widened_pool(route: &Bits, may_be_rows: &Bits, pool: usize) -> Option<usize> {
    let (all, may) = (route.count(), may_be_rows.count());
    if may == all {
        return Some(pool);
    }
    // Expects the rows to be spread evenly, plus a margin.
    let share = may as f64 / all as f64;
    let further = (pool as f64 + SPREAD_SIGMAS * (pool as f64 * (1.0 - share)).sqrt()) / share + 1.0;
    (share >= SPARSE_SHARE).then_some(further as usize)
}

/// The nearest vectors in the filter.
fn near(
    snapshot: &Snapshot,
    asked: &StageQuery,
    layer: Layer,
    filter: &Bits,
    most: usize,
    steps: &mut Vec<String>,
) -> Result<Vec<u32>> {
    let (Some(vector), false) = (&asked.vector, filter.is_empty()) else { return Ok(Vec::new()) };
    let Some(found) = nearest::search(snapshot, layer, vector, most, filter)? else { return Ok(Vec::new()) };
    for part in &found.parts {
        steps.push(format!(
            "near: {}{} ({} of {} match, {} compared)",
            part.strategy.name(),
            if part.on_device { " on the accelerator" } else { "" },
            part.matching,
            part.count,
            part.compared
        ));
    }
    Ok(found.hits.into_iter().map(|hit| hit.id).collect())
}

/// The best matches by words in the filter.
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

/// The items of this stage linked to those of the previous one. Follows the best first until the pool is full; under
/// a token budget, which removes counts, follows all. A stage of traces after pages, episodes or a lift also includes
/// their traces.
fn linked(snapshot: &Snapshot, plan: &Plan, stage: &StagePlan, before: &Candidates) -> Result<Candidates> {
    let mut sources: Vec<_> = before.iter().collect();
    sources.sort_unstable_by_key(|(id, how)| (how.rank.unwrap_or(u32::MAX), *id));
    let most = if plan.budget.is_some() { usize::MAX } else { stage.pool };
    let mut reached: HashMap<u32, LinkHit> = HashMap::new();
    let mut beside = Vec::new();
    let routes: Vec<_> = stage.layers.iter().map(|part| (part.layer, part.of(&stage.route))).collect();
    for (rank, (id, how)) in (0..).zip(sources) {
        let from = ItemId(id);
        for (layer, route) in &routes {
            let neighbours = if reached.len() < most { neighbours(snapshot, plan, from, *layer)? } else { Vec::new() };
            for to in neighbours.into_iter().filter(|to| route.contains(to.0)) {
                let reached = reached.entry(to.0).or_insert_with(|| LinkHit { rank, from: Vec::new() });
                if !reached.from.contains(&from) {
                    reached.from.push(from);
                }
            }
            if *layer == Layer::Trace && how.is_in_container() && route.contains(id) {
                beside.push((id, MatchPath::beside(how).ranked(rank)));
            }
        }
    }
    let linked = reached.into_iter().map(|(id, LinkHit { rank, mut from })| {
        from.sort_unstable();
        (id, MatchPath::linked(from).ranked(rank))
    });
    Ok(linked.chain(beside).collect())
}

/// An item reached by links: the rank of the best item that led to it, and all items that did.
struct LinkHit {
    rank: u32,
    from: Vec<ItemId>,
}

/// The neighbours of an item in a layer: the recalls of a theme, the traces a recall rests on (through other recalls
/// if necessary), and the reverse.
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
                    found.extend(grounding_traces(snapshot, plan, recall)?);
                }
            }
            Ok(found)
        }
        (Layer::Recall, Layer::Trace) => grounding_traces(snapshot, plan, from),
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

/// The item that stands for the source of a recall: the first of the traces it rests on, or itself.
pub(super) fn source_of(snapshot: &Snapshot, plan: &Plan, recall: ItemId) -> Result<ItemId> {
    Ok(grounding_traces(snapshot, plan, recall)?.first().copied().unwrap_or(recall))
}

/// The traces a recall rests on, directly or through visible recalls.
pub(super) fn grounding_traces(snapshot: &Snapshot, plan: &Plan, recall: ItemId) -> Result<Vec<ItemId>> {
    let mut traces = Vec::new();
    let mut queue = Vec::new();
    let mut seen = BTreeSet::new();
    let mut next = Some(recall);
    while let Some(recall) = next {
        let sources = snapshot.state.ends(tables::EDGE_OUT, recall)?.filter(|end| end.edge.is_lineage());
        for source in sources.map(|end| end.far) {
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
