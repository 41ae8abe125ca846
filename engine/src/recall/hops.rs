//! Routed recall: hops over concepts (PlugMem 3.2 and C.3).
//!
//! A group `(concepts -> facts) up to n hops` walks from rows to the concepts they mention, and on to what else
//! mentions them. Ranking what a hop finds against the first question would put it behind what the question finds at
//! once, so a hop has an order of its own, and keeps rows in it:
//!
//! ```text
//! S'(x)    = S(x) + votes(C),   C the concepts that x mentions and the question names
//! hop(x)   = S'(x) + l_sim * cos(unit(q + r / 2), x) + 2 l votes(C),   r the row that leads to x through concepts C
//! votes(C) = sqrt(sum over c in C of 1 / degree(c))
//! ```
//!
//! A fact is a sentence out of its context: its similarity and its words are the mean of its own and those of the trace
//! it rests on. Rows that rest on one trace say one thing: of the places for rows each source takes one first.
//! What mentions a concept that the question names, and leads on to another, begins the walk: it routes first, and two
//! of the first question's places are its own, however little else it shares with the question. What it leads to comes
//! first in its hop.
//!
//! Invariants: only the `carry` best rows of a hop route; of `limit` rows each hop that ran keeps `keep`, at most
//! `limit / (hops + 1)`, and the first question the others; of what the question finds, no more are rows than the
//! stages in front of the group keep.

use super::candidates::{Candidates, MatchPath};
use super::context::Context;
use super::gather::{self, Gathered, StageQuery};
use super::names::{self, Named};
use super::plan::{Group, Plan};
use super::rank::Scored;
use super::reach::{Reach, Said, is_theme_link, rarity};
use super::runner::StageRunner;
use super::words::Words;
use crate::Result;
use crate::derive::repair;
use crate::model::item::{ItemId, Layer};
use crate::model::plural::counted;
use crate::read::controller::{CoverageController, HopController, HopDecision, HopView};
use crate::read::snapshot::Snapshot;
use crate::records::tables;
use holotype_index::bitmap::Bits;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The weight of a link beside the terms of S.
const LINK: f32 = 2.0;
/// The share of a carried row in the vector of a hop.
const CARRIED: f32 = 0.5;
/// Rows that are shared out among hops where a recall states no limit.
const ROWS: u64 = 10;
/// Items that the links of a hop lead to: the rarest concepts are followed first, and a concept that the question names
/// finds nothing by itself if it is in more places.
const MOST_LINKED: usize = 256;
/// Candidates whose scores take in the traces that they rest on, and findings of a hop that are ranked: at least so
/// many, or so many times the rows of the answer.
const RANKED: usize = 64;
const RANKED_PER_ROW: usize = 4;
/// A trace with more facts than this is no context that its facts share.
const MAX_SIBLINGS: usize = 16;
/// Places of the first question that go to what mentions a concept it names, and leads on.
const RESERVED: usize = 2;
/// The share of a link's weight that is left where the question names concepts and the row mentions none of them.
const BESIDE: f32 = 0.5;
/// Concepts of a row that are followed, where the path states no number.
const CONCEPTS: usize = 8;

/// True if a group walks from rows over themes to rows, which this module does.
pub(super) fn is_routed(plan: &Plan, group: &Group) -> bool {
    let Some([themes, rows]) = plan.stages.get(group.from..group.to) else { return false };
    let is_plain = |at: usize| plan.stages[at].lift.is_none() && plan.stages[at].container_limit.is_none();
    let rows_layer = rows.layers.first().map(|part| part.layer);
    (group.from..group.to).all(is_plain)
        && themes.layers.iter().all(|part| part.layer == Layer::Theme)
        && rows.layers.len() == 1
        && rows_layer.is_some_and(|layer| layer != Layer::Theme)
}

/// The concepts an item mentions that the question names.
#[derive(Default)]
struct Mention {
    /// Their votes together.
    weight: f32,
    concepts: Vec<ItemId>,
    /// One of them is in few enough places to find the item by.
    is_found: bool,
}

/// The concepts that the question of a routed recall names, with their mentions.
pub(super) struct Routing {
    named: Vec<Named>,
    compares: bool,
    mentions: HashMap<u32, Mention>,
    /// The BM25 that the words of traces are divided by: that of the best trace seen first.
    best_of_sources: Cell<Option<f32>>,
}

impl Routing {
    /// Looks up what the question names; `None` for a path without a routed group.
    pub(super) fn of(snapshot: &Snapshot, plan: &Plan, words: &Words<'_>) -> Result<Option<Routing>> {
        if !plan.groups.iter().any(|group| is_routed(plan, group)) {
            return Ok(None);
        }
        let named = names::named(snapshot, plan, words)?;
        let with_traces = plan.stages.iter().any(|stage| stage.is_in(Layer::Trace));
        let mut mentions: HashMap<u32, Mention> = HashMap::new();
        let mut add = |id: ItemId, weight: f32, concept: ItemId, is_found: bool| {
            let known = mentions.entry(id.0).or_default();
            known.is_found |= is_found;
            if known.concepts.last() != Some(&concept) {
                known.weight = votes(known.weight, weight);
                known.concepts.push(concept);
            }
        };
        for Named { concept, .. } in &named {
            let Reach { recalls, sources } = Reach::of(snapshot, plan, *concept)?;
            let weight = rarity(sources);
            let is_crowded = recalls.len() > MOST_LINKED;
            for recall in recalls.into_iter().filter(|recall| plan.recalls.contains(recall.0)) {
                add(recall, weight, *concept, !is_crowded);
                if with_traces {
                    gather::grounding_traces(snapshot, plan, recall)?
                        .into_iter()
                        .for_each(|trace| add(trace, weight, *concept, !is_crowded));
                }
            }
        }
        let compares = plan.text.as_deref().is_some_and(|text| names::compares(text, &named));
        Ok(Some(Routing { named, compares, mentions, best_of_sources: Cell::new(None) }))
    }

    /// The mentions of named concepts, as candidates of a stage.
    pub(super) fn candidates(&self, filter: &Bits) -> Candidates {
        let found = self.mentions.iter().filter(|(id, mention)| mention.is_found && filter.contains(**id));
        found.map(|(id, mention)| (*id, MatchPath::linked(mention.concepts.clone()))).collect()
    }

    /// S' of ranked candidates, best first; of those that may become rows, where their number is limited.
    pub(super) fn adjusted(
        &self,
        snapshot: &Snapshot,
        plan: &Plan,
        words: &Words<'_>,
        mut rows: Vec<Scored>,
        most: usize,
    ) -> Result<Vec<Scored>> {
        for row in &mut rows {
            if let Some(mention) = self.mentions.get(&row.id.0) {
                row.parts.words += plan.weights.words * mention.weight;
                row.score = row.parts.sum();
            }
        }
        if rows.len() > most {
            rows.sort_by(Scored::best_first);
            // As many of those that mention what the question names have a place of their own.
            let (mut named, mut others) = (0, 0);
            rows.retain(|row| {
                let is_found = self.mentions.get(&row.id.0).is_some_and(|mention| mention.is_found);
                let places = if is_found { &mut named } else { &mut others };
                *places += 1;
                *places <= most
            });
        }
        let recalls: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].scalars.layer == Layer::Recall).collect();
        let ids: Vec<u32> = recalls.iter().map(|at| rows[*at].id.0).collect();
        let sources = Sources::of(snapshot, plan, &ids)?;
        let similar = match &plan.vector {
            Some(query) => repair::scores(snapshot, Layer::Trace, query, &sources.all)?,
            None => vec![None; sources.all.len()],
        };
        let own = match &plan.vector {
            Some(query) => repair::scores(snapshot, Layer::Recall, query, &ids)?,
            None => vec![None; ids.len()],
        };
        let shares = self.word_shares(words, &sources.all)?;
        for (index, at) in recalls.into_iter().enumerate() {
            let (row, places) = (&mut rows[at], sources.places(index));
            if let Some(similarity) = best(places, |place| similar[place]) {
                // A fact without a vector has that of what it rests on.
                let similarity = own[index].map_or(similarity, |own| mean(own, similarity));
                row.parts.similarity = plan.weights.similarity * similarity;
            }
            if let Some(share) = best(places, |place| shares.get(place).copied()) {
                let named = plan.weights.words * self.mentions.get(&row.id.0).map_or(0.0, |mention| mention.weight);
                row.parts.words = named + mean(row.parts.words - named, plan.weights.words * share);
            }
            row.score = row.parts.sum();
        }
        rows.sort_by(Scored::best_first);
        Ok(rows)
    }

    /// The words of traces as shares of the best.
    fn word_shares(&self, words: &Words<'_>, traces: &[u32]) -> Result<Vec<f32>> {
        let Some(scorer) = words.of(Layer::Trace)?.filter(|_| !traces.is_empty()) else { return Ok(Vec::new()) };
        let scores = scorer.scores(traces)?;
        let most = self.best_of_sources.get().unwrap_or_else(|| scores.iter().copied().fold(0.0, f32::max));
        self.best_of_sources.set(Some(most));
        Ok(scores.into_iter().map(|score| if most > 0.0 { score / most } else { 0.0 }).collect())
    }
}

/// Of the candidates of a stage with this count, those that are ranked to the end.
pub(super) fn most_ranked(plan: &Plan, count: Option<u64>) -> usize {
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let Some(limit) = plan.limit.filter(|_| plan.budget.is_none()) else { return usize::MAX };
    let rows = size(limit.saturating_add(plan.skip)).max(count.map_or(usize::MAX, size));
    rows.saturating_mul(RANKED_PER_ROW).max(RANKED)
}

/// The votes of several tags (PlugMem C.3): each adds to the others, the rarest most.
fn votes(so_far: f32, weight: f32) -> f32 {
    so_far.hypot(weight)
}

fn mean(a: f32, b: f32) -> f32 {
    (a + b) / 2.0
}

fn best(places: &[usize], value: impl Fn(usize) -> Option<f32>) -> Option<f32> {
    places.iter().filter_map(|place| value(*place)).reduce(f32::max)
}

/// The visible traces that recalls rest on.
struct Sources {
    places: Vec<Vec<usize>>,
    /// Ascending and unique.
    all: Vec<u32>,
}

impl Sources {
    fn of(snapshot: &Snapshot, plan: &Plan, recalls: &[u32]) -> Result<Sources> {
        let mut each = Vec::with_capacity(recalls.len());
        for recall in recalls {
            each.push(gather::grounding_traces(snapshot, plan, ItemId(*recall))?);
        }
        let mut all: Vec<u32> = each.iter().flatten().map(|trace| trace.0).collect();
        all.sort_unstable();
        all.dedup();
        let places =
            each.into_iter().map(|traces| traces.iter().filter_map(|t| all.binary_search(&t.0).ok()).collect());
        Ok(Sources { places: places.collect(), all })
    }

    fn places(&self, index: usize) -> &[usize] {
        self.places.get(index).map_or(&[], Vec::as_slice)
    }
}

/// The findings of a hop, for the stage that ranks it.
#[derive(Clone, Default)]
pub(super) struct HopFound {
    linked: Candidates,
    beside: Candidates,
    steps: Vec<String>,
}

impl HopFound {
    /// As what a stage gathers.
    pub(super) fn gathered(&self, filter: &Bits) -> Gathered {
        let mut rows = self.linked.clone();
        rows.add(self.beside.clone());
        let rows = rows.filtered(|id| filter.contains(id));
        Gathered { routed: self.linked.clone(), rows, steps: self.steps.clone(), complete: false }
    }
}

/// A link of a hop: from a row of the frontier, through a concept.
#[derive(Clone, Copy)]
struct Link {
    row: usize,
    weight: f32,
    concept: ItemId,
    /// It goes on from a beginning of the walk, through a concept that the question does not name.
    is_onward: bool,
}

/// For each row that leads to an item, the votes of the concepts through which it does.
fn votes_by_row(links: Option<&Vec<Link>>) -> Vec<(usize, f32)> {
    let mut links: Vec<&Link> = links.into_iter().flatten().collect();
    links.sort_unstable_by_key(|link| (link.row, link.concept));
    links.dedup_by_key(|link| (link.row, link.concept));
    let rows = links.chunk_by(|a, b| a.row == b.row);
    rows.filter_map(|of_row| Some((of_row.first()?.row, of_row.iter().fold(0.0, |sum, link| votes(sum, link.weight)))))
        .collect()
}

/// One walk of a routed group.
struct Walk<'w> {
    snapshot: &'w Snapshot,
    plan: &'w Plan,
    group: Group,
    rows: usize,
    keep: usize,
    /// By item, what stands for its source: one of the traces it rests on.
    sources: HashMap<ItemId, ItemId>,
    /// The sources of rows that mention what the question names.
    named: HashSet<ItemId>,
    /// The concepts that the question names, and the rows that the walk begins with.
    concepts: HashSet<ItemId>,
    begins: Vec<ItemId>,
    /// The reach of concepts, kept for the question.
    reaches: HashMap<ItemId, Rc<Reach>>,
}

/// Walks a routed group and gives each row its place.
pub(super) fn walk(runner: &mut StageRunner<'_, '_>, group: Group, first: &StageQuery) -> Result<()> {
    let Context { snapshot, plan, .. } = runner.context;
    let rows = plan.limit.map_or(ROWS, |limit| limit.saturating_add(plan.skip));
    let keep = group.keep.min(rows / group.hops.saturating_add(1));
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let sources = HashMap::new();
    let (named, begins) = (HashSet::new(), Vec::new());
    let concepts = runner.routing.iter().flat_map(|routing| &routing.named).map(|named| named.concept).collect();
    let (rows, keep, reaches) = (size(rows), size(keep), HashMap::new());
    let mut walk = Walk { snapshot, plan, group, rows, keep, sources, named, concepts, begins, reaches };
    if group.from == 0 {
        runner.stage(group.to - 1, first)?;
    }
    let (named, compares) =
        runner.routing.as_ref().map_or((0, false), |routing| (routing.named.len(), routing.compares));
    let seeds = walk.seeds(runner);
    let mut known: HashSet<ItemId> = seeds.iter().take(walk.rows).copied().collect();
    walk.begin(runner, &seeds)?;
    let mut routable = walk.fill(&seeds, walk.rows, walk.begins.clone())?;
    let mut new = routable.len();
    let mut kept: Vec<Vec<ItemId>> = Vec::new();
    let built_in = CoverageController;
    let controller: &dyn HopController = snapshot.hop_controller().unwrap_or(&built_in);
    for hop in 1..=group.hops {
        let (rows, carry) = (routable.as_slice(), group.carry);
        let question = plan.text.as_deref().unwrap_or_default();
        let view = HopView { question, hop, rows, carry, new, named, compares, snapshot };
        let frontier = match controller.decide(&view).unwrap_or(HopDecision::Enough) {
            HopDecision::Continue => rows.iter().take(carry).copied().collect(),
            HopDecision::Focus(rows) => rows,
            HopDecision::Enough => {
                runner.steps.push((format!("hop {hop}"), "not made: enough was found".to_owned()));
                break;
            }
        };
        let mut links = walk.links(&frontier)?;
        walk.keep_best(&mut links, &frontier)?;
        runner.found = Some(walk.found(&links, &frontier, &seeds));
        runner.stage(group.to - 1, first)?;
        runner.found = None;
        let order = walk.order(runner, &links, &frontier)?;
        new = order.iter().take(walk.keep).filter(|id| known.insert(**id)).count();
        runner.steps.push((format!("hop {hop}"), counted(new as u64, "new candidates")));
        routable = walk.fill(&order, walk.rows, Vec::new())?;
        kept.push(order);
    }
    walk.place(runner, kept)
}

impl Walk<'_> {
    /// All rows so far, best first, each once.
    fn seeds(&self, runner: &StageRunner<'_, '_>) -> Vec<ItemId> {
        let mut all: Vec<&Scored> = runner.ranked[..self.group.to].iter().flatten().collect();
        all.sort_by(|a, b| a.best_first(b));
        let mut seen = HashSet::new();
        all.into_iter().map(|scored| scored.id).filter(|id| seen.insert(*id)).collect()
    }

    /// The rows that the stages in front of the group keep together.
    fn kept_in_front(&self) -> usize {
        let front = self.plan.stages[..self.group.from].iter().filter(|stage| !stage.is_in(Layer::Theme));
        let counts =
            front.map(|stage| stage.count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX)));
        counts.reduce(usize::saturating_add).unwrap_or(usize::MAX)
    }

    /// Begins with the best rows that mention a concept the question names, and lead on to another.
    fn begin(&mut self, runner: &StageRunner<'_, '_>, seeds: &[ItemId]) -> Result<()> {
        let Some(routing) = &runner.routing else { return Ok(()) };
        for row in seeds.iter().filter(|row| routing.mentions.contains_key(&row.0)) {
            let source = self.source(*row)?;
            if self.named.insert(source) && self.begins.len() < RESERVED.min(self.rows) && self.leads_on(*row)? {
                self.begins.push(*row);
            }
        }
        Ok(())
    }

    /// True if a row mentions a concept that the question does not name, and that another source mentions.
    fn leads_on(&mut self, row: ItemId) -> Result<bool> {
        let themes = &self.plan.stages[self.group.from].route;
        let said = self.said(row)?;
        for concept in said.concepts.iter().filter(|concept| themes.contains(concept.0)) {
            if !self.concepts.contains(concept) && said.is_beyond(&self.reach(*concept)?.recalls) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The reach of a concept.
    fn reach(&mut self, concept: ItemId) -> Result<Rc<Reach>> {
        if let Some(known) = self.reaches.get(&concept) {
            return Ok(Rc::clone(known));
        }
        let reach = Rc::new(Reach::of(self.snapshot, self.plan, concept)?);
        self.reaches.insert(concept, Rc::clone(&reach));
        Ok(reach)
    }

    /// The item that stands for the source of another.
    fn source(&mut self, id: ItemId) -> Result<ItemId> {
        if let Some(known) = self.sources.get(&id) {
            return Ok(*known);
        }
        let source = match self.snapshot.state.layer_of(id)? {
            Layer::Recall => gather::source_of(self.snapshot, self.plan, id)?,
            _ => id,
        };
        self.sources.insert(id, source);
        Ok(source)
    }

    /// Fills places in an order: first with one item of each source, then with the others.
    fn fill(&mut self, order: &[ItemId], places: usize, mut filled: Vec<ItemId>) -> Result<Vec<ItemId>> {
        let mut sources = HashSet::new();
        for id in &filled {
            sources.insert(self.source(*id)?);
        }
        let mut others = Vec::new();
        for id in order {
            if filled.len() >= places {
                return Ok(filled);
            }
            if filled.contains(id) {
                continue;
            }
            let is_new = sources.insert(self.source(*id)?);
            if is_new { filled.push(*id) } else { others.push(*id) }
        }
        let free = places.saturating_sub(filled.len());
        filled.extend(others.into_iter().take(free));
        Ok(filled)
    }

    /// The items that the rows of a frontier lead to, and through which concept.
    fn links(&mut self, frontier: &[ItemId]) -> Result<HashMap<u32, Vec<Link>>> {
        let (themes, rows) = (&self.plan.stages[self.group.from], &self.plan.stages[self.group.to - 1]);
        let most = themes.count.map_or(CONCEPTS, |count| usize::try_from(count).unwrap_or(usize::MAX));
        let mut followed: Vec<(usize, Link)> = Vec::new();
        for (row, from) in frontier.iter().enumerate() {
            let is_beside = !self.named.is_empty() && !self.named.contains(self.sources.get(from).unwrap_or(from));
            let share = if is_beside { BESIDE } else { 1.0 };
            let mut concepts = Vec::new();
            let said = self.said(*from)?;
            for concept in said.concepts.iter().copied().filter(|concept| themes.route.contains(concept.0)) {
                let reach = self.reach(concept)?;
                concepts.extend(said.is_beyond(&reach.recalls).then_some((reach.sources, concept)));
            }
            // The rarest first.
            concepts.sort_unstable();
            for (degree, concept) in concepts.into_iter().take(most) {
                let is_onward = self.begins.contains(from) && !self.concepts.contains(&concept);
                followed.push((degree, Link { row, weight: share * rarity(degree), concept, is_onward }));
            }
        }
        // The rarest lead somewhere; what is in many places is followed while there is room.
        followed.sort_by_key(|(degree, link)| (*degree, link.row, link.concept));
        let mut links: HashMap<u32, Vec<Link>> = HashMap::new();
        for (degree, link) in followed {
            let reach = self.reach(link.concept)?;
            let reached = if rows.is_in(Layer::Trace) { degree } else { reach.recalls.len() };
            if links.len() + reached > MOST_LINKED && !links.is_empty() {
                break;
            }
            for recall in &reach.recalls {
                let reached = match rows.is_in(Layer::Trace) {
                    true => gather::grounding_traces(self.snapshot, self.plan, *recall)?,
                    false => vec![*recall],
                };
                for id in reached.into_iter().filter(|id| rows.route.contains(id.0)) {
                    links.entry(id.0).or_default().push(link);
                }
            }
        }
        Ok(links)
    }

    /// Keeps the items that begin with the best links, and are nearest to the vector of the hop.
    fn keep_best(&self, links: &mut HashMap<u32, Vec<Link>>, frontier: &[ItemId]) -> Result<()> {
        let most = self.rows.saturating_mul(RANKED_PER_ROW).max(RANKED);
        if links.len() <= most {
            return Ok(());
        }
        let mut ids: Vec<u32> = links.keys().copied().collect();
        ids.sort_unstable();
        let layer = self.plan.stages[self.group.to - 1].layers[0].layer;
        let similar = match self.vector(frontier)? {
            Some(vector) => repair::scores(self.snapshot, layer, &vector, &ids)?,
            None => vec![None; ids.len()],
        };
        let mut scores = Vec::with_capacity(ids.len());
        for (id, similar) in ids.into_iter().zip(similar) {
            let of_item = links.get(&id);
            let is_onward = of_item.is_some_and(|links| links.iter().any(|link| link.is_onward));
            let voted = votes_by_row(of_item).into_iter().map(|(_, votes)| votes).fold(0.0, f32::max);
            scores.push((is_onward, LINK * voted + similar.unwrap_or(0.0), id));
        }
        scores.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
        for (.., id) in scores.into_iter().skip(most) {
            links.remove(&id);
        }
        Ok(())
    }

    /// The recalls of a row's source, and the concepts of the row and of what is its context.
    fn said(&self, row: ItemId) -> Result<Said> {
        let state = &self.snapshot.state;
        let layer = state.layer_of(row)?;
        let traces = match layer {
            Layer::Recall => gather::grounding_traces(self.snapshot, self.plan, row)?,
            _ => vec![row],
        };
        let (mut recalls, mut context) = (vec![row], vec![row]);
        for trace in traces {
            let mut of_trace = state.dependents(trace)?;
            of_trace.retain(|recall| self.plan.recalls.contains(recall.0));
            if of_trace.len() <= MAX_SIBLINGS || layer == Layer::Trace {
                context.extend_from_slice(&of_trace);
            }
            recalls.append(&mut of_trace);
        }
        recalls.sort_unstable();
        let mut concepts = Vec::new();
        for recall in context {
            let ends = state.ends(tables::EDGE_OUT, recall)?;
            concepts.extend(ends.filter(|end| is_theme_link(end.edge)).map(|end| end.far));
        }
        concepts.sort_unstable();
        concepts.dedup();
        Ok(Said { recalls, concepts })
    }

    /// The candidates of a hop: what links lead to, and the best rows so far, beside which shares of words mean the
    /// same in every hop.
    ///
    /// A hop does not search by vector and by words again: of what it finds only what is linked has a place in its
    /// order, and what is near the first question stands among the first rows already.
    fn found(&self, links: &HashMap<u32, Vec<Link>>, frontier: &[ItemId], seeds: &[ItemId]) -> HopFound {
        let beside = seeds.iter().take(self.rows).map(|id| (id.0, MatchPath::default())).collect();
        let linked = links.iter().map(|(id, links)| {
            let mut from: Vec<ItemId> = links.iter().map(|link| link.concept).collect();
            from.sort_unstable();
            from.dedup();
            (*id, MatchPath::linked(from))
        });
        let linked: Candidates = linked.collect();
        let steps = vec![format!("linked: {} from {}", linked.len(), counted(frontier.len() as u64, "rows"))];
        HopFound { linked, beside, steps }
    }

    /// The unit sum of the query's vector and a share of those of rows.
    fn vector(&self, rows: &[ItemId]) -> Result<Option<Vec<f32>>> {
        let Some(query) = &self.plan.vector else { return Ok(None) };
        let mut sum = unit(query.clone());
        for row in rows {
            let layer = self.snapshot.state.layer_of(*row)?;
            let source = gather::grounding_traces(self.snapshot, self.plan, *row)?.first().copied();
            // A fact stands for the trace it rests on.
            let (layer, row) = match source.filter(|_| layer == Layer::Recall) {
                Some(trace) => (Layer::Trace, trace),
                None => (layer, *row),
            };
            if let Some(vector) = repair::vector(self.snapshot, layer, row)? {
                let share = CARRIED / rows.len() as f32;
                sum.iter_mut().zip(unit(vector)).for_each(|(sum, part)| *sum += share * part);
            }
        }
        Ok(Some(unit(sum)))
    }

    /// The findings of a hop in its own order, best first, without the rows that led to them.
    fn order(
        &self,
        runner: &StageRunner<'_, '_>,
        links: &HashMap<u32, Vec<Link>>,
        frontier: &[ItemId],
    ) -> Result<Vec<ItemId>> {
        let ranked = &runner.ranked[self.group.to - 1];
        let mut scores: Vec<(bool, f32, ItemId)> = Vec::new();
        let mut of_row = Vec::with_capacity(frontier.len());
        for row in frontier {
            of_row.push(self.vector(&[*row])?);
        }
        let weights = &self.plan.weights;
        let link_weight = LINK * weights.similarity.max(weights.words);
        let linked: Vec<&Scored> = ranked.iter().filter(|scored| links.contains_key(&scored.id.0)).collect();
        let ids: Vec<u32> = linked.iter().map(|scored| scored.id.0).collect();
        let mut similar = Vec::with_capacity(of_row.len());
        let is_recall = self.plan.stages[self.group.to - 1].layers[0].layer == Layer::Recall;
        let sources = Sources::of(self.snapshot, self.plan, if is_recall { &ids } else { &[] })?;
        for vector in &of_row {
            similar.push(match vector {
                Some(vector) => self.similarities(vector, &ids, &sources)?,
                None => vec![0.0; ids.len()],
            });
        }
        for (at, scored) in linked.into_iter().enumerate() {
            let of_row = |(row, votes): (usize, f32)| link_weight * votes + weights.similarity * similar[row][at];
            let best = votes_by_row(links.get(&scored.id.0)).into_iter().map(of_row).reduce(f32::max);
            let is_behind = if scored.relaxed.is_empty() { 0.0 } else { weights.status };
            let is_onward = links.get(&scored.id.0).is_some_and(|links| links.iter().any(|link| link.is_onward));
            scores.push((is_onward, scored.score + best.unwrap_or(0.0) - is_behind, scored.id));
        }
        scores.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
        Ok(scores.into_iter().map(|(.., id)| id).filter(|id| !frontier.contains(id)).collect())
    }

    /// The similarity of items to a vector; for recalls the mean of their own and their source's.
    fn similarities(&self, vector: &[f32], ids: &[u32], sources: &Sources) -> Result<Vec<f32>> {
        let layer = self.plan.stages[self.group.to - 1].layers[0].layer;
        let own = repair::scores(self.snapshot, layer, vector, ids)?;
        if layer != Layer::Recall {
            return Ok(own.into_iter().map(|score| score.unwrap_or(0.0)).collect());
        }
        let of_sources = repair::scores(self.snapshot, Layer::Trace, vector, &sources.all)?;
        let blend = |(index, own): (usize, Option<f32>)| {
            let source = best(sources.places(index), |place| of_sources[place]);
            match (own, source) {
                (Some(own), Some(source)) => mean(own, source),
                (own, source) => own.or(source).unwrap_or(0.0),
            }
        };
        Ok(own.into_iter().enumerate().map(blend).collect())
    }

    /// Gives the rows their places: the first question's, then those of each hop, then all others.
    fn place(&mut self, runner: &mut StageRunner<'_, '_>, kept: Vec<Vec<ItemId>>) -> Result<()> {
        let seeds = self.seeds(runner);
        let mut places = self.rows.saturating_sub(self.keep.saturating_mul(kept.len()));
        let most = self.kept_in_front();
        let is_bounded = most < places;
        places = places.min(most);
        let mut begins = std::mem::take(&mut self.begins);
        begins.truncate(if kept.is_empty() { 0 } else { places });
        let mut filled = self.fill(&seeds, places, begins)?;
        let mut ends = vec![filled.len()];
        for order in &kept {
            places = filled.len().saturating_add(self.keep);
            filled = self.fill(order, places, filled)?;
            ends.push(filled.len());
        }
        if is_bounded {
            for order in &kept {
                filled = self.fill(order, self.rows, filled)?;
            }
        } else {
            filled = self.fill(&seeds, self.rows, filled)?;
        }
        ends.push(filled.len());
        let part = |at: usize| ends.iter().filter(|end| **end <= at).count() as u32;
        let place: HashMap<ItemId, u32> = filled.iter().enumerate().map(|(at, id)| (*id, part(at))).collect();
        for ranked in &mut runner.ranked[..self.group.to] {
            ranked.retain(|scored| !is_bounded || place.contains_key(&scored.id));
            for scored in ranked.iter_mut() {
                scored.place = place.get(&scored.id).copied().unwrap_or(ends.len() as u32);
            }
            ranked.sort_by(Scored::best_first);
        }
        Ok(())
    }
}

/// The vector scaled to length 1.
fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let len = vector.iter().map(|part| part * part).sum::<f32>().sqrt();
    if len > 0.0 {
        vector.iter_mut().for_each(|part| *part /= len);
    }
    vector
}
