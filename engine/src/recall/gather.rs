//! Gathering: what each stage finds through its channels, and how.
//!
//! Channels only find candidates (`near`: vectors, `words`: BM25, `linked`: along edges from the stage before); the order
//! of rows is S. A stage hands everything it may route through to the next one.

use super::places::Place;
use super::plan::{Plan, StagePlan};
use crate::Result;
use crate::edge::Edge;
use crate::item::{ItemId, Kind, Layer};
use crate::snapshot::Snapshot;
use holotype_index::SearchOptions;
use holotype_index::bitmap::Bits;
use holotype_query::Channel;
use std::collections::BTreeMap;

/// How many candidates a graph walk keeps.
const EF: usize = 64;

/// How a candidate was found: the channels, and the items it was linked or lifted from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    pub(crate) near: bool,
    pub(crate) words: bool,
    pub(crate) linked_from: Vec<ItemId>,
    /// The items that a lift led here from.
    pub(crate) lifted_from: Vec<ItemId>,
    /// The page or episode that it came with.
    pub(crate) place: Option<Place>,
    /// Rows whose claims it contests: it was brought back as the other side.
    pub(crate) contests: Vec<ItemId>,
}

impl Found {
    /// Whether it stands for a page, an episode or a lift, within which the next stage may look.
    fn is_of_place(&self) -> bool {
        self.place.is_some() || !self.lifted_from.is_empty()
    }

    /// How it was found, in words.
    pub(crate) fn path(&self, snapshot: &Snapshot) -> Result<Vec<String>> {
        let key = |id: &ItemId| snapshot.key_of(*id).unwrap_or_else(|_| id.to_string());
        let mut path = Vec::new();
        path.extend(self.near.then(|| "near".to_owned()));
        path.extend(self.words.then(|| "words".to_owned()));
        path.extend(self.linked_from.iter().map(|from| format!("linked from {}", key(from))));
        let place = self.place.map(|place| place.name(snapshot)).transpose()?;
        let lifted: Vec<String> = self.lifted_from.iter().map(key).collect();
        match (place, lifted.is_empty()) {
            (Some(place), true) => path.push(format!("in {place}")),
            (Some(place), false) => path.push(format!("in {place}, lifted from {}", lifted.join(", "))),
            (None, false) => path.push(format!("lifted from {}", lifted.join(", "))),
            (None, true) => {}
        }
        path.extend(self.contests.iter().map(|rival| format!("contests {}", key(rival))));
        Ok(path)
    }
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
                for (id, how) in linked {
                    if rows_filter.contains(id) {
                        join(rows.entry(id).or_default(), how.clone());
                    }
                    join(routed.entry(id).or_default(), how);
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

/// Adds to how a candidate was found that links led to it.
fn join(found: &mut Found, links: Found) {
    found.linked_from = links.linked_from;
    found.lifted_from = links.lifted_from;
    found.place = links.place;
}

/// The nearest vectors among those of the filter.
fn near(
    snapshot: &Snapshot,
    asked: &Asked,
    stage: &StagePlan,
    filter: &Bits,
    steps: &mut Vec<String>,
) -> Result<Vec<u32>> {
    let Some(vector) = &asked.vector else { return Ok(Vec::new()) };
    let mut ids = Vec::new();
    for part in &stage.layers {
        let filter = part.of(filter);
        let Some(index) = snapshot.state.layer(part.layer).vector_index()?.filter(|_| !filter.is_empty()) else {
            continue;
        };
        snapshot.tick()?;
        let options = SearchOptions { ef: EF.max(stage.pool), filter: Some(&filter), exact: false };
        let found = index.search(vector, stage.pool, options)?;
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
        ids.extend(found.hits.into_iter().map(|hit| hit.id));
    }
    Ok(ids)
}

/// The best by words among those of the filter.
fn words(
    snapshot: &Snapshot,
    asked: &Asked,
    stage: &StagePlan,
    filter: &Bits,
    steps: &mut Vec<String>,
) -> Result<Vec<u32>> {
    let Some(text) = &asked.text else { return Ok(Vec::new()) };
    let mut ids = Vec::new();
    for part in &stage.layers {
        let filter = part.of(filter);
        if filter.is_empty() {
            continue;
        }
        snapshot.tick()?;
        let index = snapshot.state.layer(part.layer).word_index(snapshot.state.bound())?;
        let hits = index.top(&index.query(text), Some(&filter), stage.pool)?;
        steps.push(format!("words: {} of {} matching", hits.len(), filter.count()));
        ids.extend(hits.into_iter().map(|hit| hit.id));
    }
    Ok(ids)
}

/// What the items of the stage before are linked to, of this stage's kind. A stage of traces after pages, episodes or a lift
/// looks among theirs.
fn linked(snapshot: &Snapshot, plan: &Plan, stage: &StagePlan, before: &Candidates) -> Result<Candidates> {
    let mut reached = Candidates::new();
    for (id, how) in before {
        let from = ItemId(*id);
        for part in &stage.layers {
            for to in neighbours(snapshot, plan, from, part.layer)? {
                if stage.route.contains(to.0) {
                    let found = reached.entry(to.0).or_default();
                    if !found.linked_from.contains(&from) {
                        found.linked_from.push(from);
                    }
                }
            }
            if part.layer == Layer::Trace && how.is_of_place() && stage.route.contains(*id) {
                let found = reached.entry(*id).or_default();
                found.lifted_from.clone_from(&how.lifted_from);
                found.place = how.place;
            }
        }
    }
    Ok(reached)
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
