//! Gathering: what each stage finds through its channels, and how.
//!
//! Channels only find candidates (`near`: vectors, `words`: BM25, `linked`: along edges from the stage before); the order
//! of rows is S. A stage hands everything it may route through to the next one.

use super::plan::{LiftPlan, Plan, StagePlan};
use crate::Result;
use crate::attributes::Column;
use crate::edge::Edge;
use crate::item::{ItemId, Kind, Layer};
use crate::snapshot::Snapshot;
use holotype_index::SearchOptions;
use holotype_index::bitmap::Bits;
use holotype_query::{Channel, Noun};
use std::collections::BTreeMap;

/// How many candidates a graph walk keeps.
const EF: usize = 64;

/// How a candidate was found: the channels, and the items it was linked from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    pub(crate) near: bool,
    pub(crate) words: bool,
    pub(crate) linked_from: Vec<ItemId>,
    /// Rows whose claims it contests: it was brought back as the other side.
    pub(crate) contests: Vec<ItemId>,
}

/// The candidates of one stage, by id.
pub(crate) type Candidates = BTreeMap<u32, Found>;

/// What is asked of a stage: the question, and from the second hop on what the hops before found.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) text: Option<String>,
    pub(crate) vector: Option<Vec<f32>>,
}

/// What a stage found, and what was done to find it.
pub(crate) struct Gathered {
    /// What the next stage may be reached from.
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
    stage: &StagePlan,
    before: &Candidates,
    relaxed: bool,
) -> Result<Gathered> {
    let rows_filter = if relaxed { &stage.relaxable } else { &stage.rows };
    let mut steps = Vec::new();
    let mut routed = Candidates::new();
    let mut rows = Candidates::new();
    let same = rows_filter == &stage.route;
    for channel in &stage.channels {
        match channel {
            Channel::Near => {
                let found = near(snapshot, asked, stage, &stage.route, &mut steps)?;
                let of_rows = if same { found.clone() } else { near(snapshot, asked, stage, rows_filter, &mut steps)? };
                mark(&mut routed, found, |found| found.near = true);
                mark(&mut rows, of_rows, |found| found.near = true);
            }
            Channel::Words => {
                let found = words(snapshot, asked, stage, &stage.route, &mut steps)?;
                let of_rows =
                    if same { found.clone() } else { words(snapshot, asked, stage, rows_filter, &mut steps)? };
                mark(&mut routed, found, |found| found.words = true);
                mark(&mut rows, of_rows, |found| found.words = true);
            }
            Channel::Linked => {
                let linked = linked(snapshot, plan, stage, before)?;
                steps.push(format!("linked: {} from {} items", linked.len(), before.len()));
                for (id, from) in linked {
                    if rows_filter.contains(id) {
                        rows.entry(id).or_default().linked_from.clone_from(&from);
                    }
                    routed.entry(id).or_default().linked_from = from;
                }
            }
        }
    }
    let complete = rows.len() as u64 == rows_filter.count();
    Ok(Gathered { routed, rows, steps, complete })
}

fn mark(candidates: &mut Candidates, ids: Vec<u32>, set: impl Fn(&mut Found)) {
    for id in ids {
        set(candidates.entry(id).or_default());
    }
}

/// The nearest vectors among those of the filter.
fn near(
    snapshot: &Snapshot,
    asked: &Asked,
    stage: &StagePlan,
    filter: &Bits,
    steps: &mut Vec<String>,
) -> Result<Vec<u32>> {
    let (Some(vector), false) = (&asked.vector, filter.is_empty()) else { return Ok(Vec::new()) };
    let Some(index) = snapshot.state.layer(stage.layer).vector_index()? else { return Ok(Vec::new()) };
    snapshot.tick()?;
    let found = index.search(
        vector,
        stage.pool,
        SearchOptions { ef: EF.max(stage.pool), filter: Some(filter), exact: false },
    )?;
    snapshot.look_at(found.parts.iter().map(|part| part.compared).sum())?;
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
fn words(
    snapshot: &Snapshot,
    asked: &Asked,
    stage: &StagePlan,
    filter: &Bits,
    steps: &mut Vec<String>,
) -> Result<Vec<u32>> {
    let (Some(text), false) = (&asked.text, filter.is_empty()) else { return Ok(Vec::new()) };
    snapshot.tick()?;
    let index = snapshot.state.layer(stage.layer).word_index(snapshot.state.bound())?;
    let hits = index.top(&index.query(text), Some(filter), stage.pool)?;
    steps.push(format!("words: {} of {} matching", hits.len(), filter.count()));
    Ok(hits.into_iter().map(|hit| hit.id).collect())
}

/// What the items of the stage before are linked to, of this stage's kind.
fn linked(
    snapshot: &Snapshot,
    plan: &Plan,
    stage: &StagePlan,
    before: &Candidates,
) -> Result<BTreeMap<u32, Vec<ItemId>>> {
    let mut reached: BTreeMap<u32, Vec<ItemId>> = BTreeMap::new();
    for from in before.keys().map(|id| ItemId(*id)) {
        for to in neighbours(snapshot, plan, from, stage.layer)? {
            if stage.route.contains(to.0) {
                let sources = reached.entry(to.0).or_default();
                if !sources.contains(&from) {
                    sources.push(from);
                }
            }
        }
    }
    Ok(reached)
}

/// What an item leads to in a layer: a theme to its recalls, a recall to the traces it rests on (through other recalls, if
/// need be), and back.
fn neighbours(snapshot: &Snapshot, plan: &Plan, from: ItemId, to: Layer) -> Result<Vec<ItemId>> {
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
        // A stage of traces after a lift looks among those it led to.
        (Layer::Trace, Layer::Trace) => Ok(vec![from]),
        _ => Ok(Vec::new()),
    }
}

/// The traces a recall rests on, through visible recalls in between.
fn grounds(snapshot: &Snapshot, plan: &Plan, recall: ItemId) -> Result<Vec<ItemId>> {
    let mut traces = Vec::new();
    let mut queue = vec![recall];
    let mut seen = std::collections::BTreeSet::from([recall]);
    while let Some(next) = queue.pop() {
        for source in snapshot.state.sources(next, Layer::Recall)? {
            if !plan.visible.contains(source.0) || !seen.insert(source) {
                continue;
            }
            if plan.traces.contains(source.0) {
                traces.push(source);
            } else {
                queue.push(source);
            }
        }
    }
    traces.sort_unstable();
    Ok(traces)
}

/// Lifts items to the traces, pages or episodes they came from (PlugMem A.1): those that enough of them vote for, most votes
/// first.
pub(crate) fn lift(
    snapshot: &Snapshot,
    plan: &Plan,
    stage: &StagePlan,
    lift: LiftPlan,
    from: &[ItemId],
    relaxed: bool,
) -> Result<Gathered> {
    let state = &snapshot.state;
    let mut votes: BTreeMap<u32, Vec<ItemId>> = BTreeMap::new();
    for id in from {
        let traces = match state.layer_of(*id)? {
            Layer::Trace => vec![*id],
            Layer::Recall | Layer::Theme => neighbours(snapshot, plan, *id, Layer::Trace)?,
        };
        for trace in traces {
            let place = match lift.noun {
                Noun::Pages => state.attributes(trace)?.page,
                Noun::Episodes => state.attributes(trace)?.episode,
                _ => Some(trace.0),
            };
            let voters = votes.entry(place.unwrap_or(u32::MAX)).or_default();
            if place.is_some() && !voters.contains(id) {
                voters.push(*id);
            }
        }
    }
    let mut places: Vec<(u32, Vec<ItemId>)> =
        votes.into_iter().filter(|(_, voters)| voters.len() >= lift.votes.max(1)).collect();
    places.sort_by_key(|(place, voters)| (std::cmp::Reverse(voters.len()), *place));
    places.truncate(lift.count);
    let steps = vec![format!("lift: {} from {} items", places.len(), from.len())];
    let rows_filter = if relaxed { &stage.relaxable } else { &stage.rows };
    let (mut routed, mut rows) = (Candidates::new(), Candidates::new());
    for (place, voters) in places {
        let traces: Vec<u32> = match lift.noun {
            Noun::Pages => state.page(place)?.traces.clone(),
            Noun::Episodes => {
                let of_episode = |of: f64| of as u32 == place;
                state.attributes.select(Column::Episode, state.bound(), &of_episode)?.iter().collect()
            }
            _ => vec![place],
        };
        for trace in traces.into_iter().filter(|trace| stage.route.contains(*trace)) {
            let found = Found { linked_from: voters.clone(), ..Found::default() };
            if rows_filter.contains(trace) {
                rows.insert(trace, found.clone());
            }
            routed.insert(trace, found);
        }
    }
    Ok(Gathered { routed, rows, steps, complete: false })
}
