//! The plan of a recall: every name resolved, every filter a set of items, every number in its place.
//!
//! Sets, from wide to narrow:
//! - `visible`: in scope, active, not redacted, not ahead of the reader. Stages may route through these.
//! - `admitted`: visible, and without any excluded flaw. Rows come from these, where the predicate holds.
//! - what was excluded may come back when too few rows survive (`relax`), marked with the tests it failed.

use super::containers;
use crate::model::embed;
use crate::model::item::{ItemId, Layer};
use crate::read::filter::{Filter, episode_numbers};
use crate::read::snapshot::Snapshot;
use crate::recall::score::Weights;
use crate::state::attributes::scalars::Reads;
use crate::state::attributes::{Column, ValueTest};
use crate::state::claims::ReaderConflicts;
use crate::state::extracted;
use crate::state::judge::Judge;
use crate::state::reader_position::{Reader, ReaderPosition};
use crate::state::{State, settings};
use crate::{Error, Result};
use holotype_index::bitmap::Bits;
use holotype_query::ast::{Clauses, Expand, Flaw, Recall, Returns, Scope, ScoreBase, Stage};
use holotype_query::{Channel, FlawKind, Noun, Spanned};
use std::borrow::Cow;
use std::sync::Arc;

/// Candidates a channel gathers for a stage, at least (memory model, section 5).
const MIN_POOL: u64 = 64;
/// Tokens `expand` may add when it return_columns no number.
const EXPAND_TOKENS: u64 = 1_500;
/// Rows whose text the next hop asks with too (PlugMem Table 14).
const CARRY: u64 = 3;
/// Rows that each hop keeps.
const KEEP: u64 = 4;
/// Levels `expand` goes down when it return_columns no number.
const EXPAND_DEPTH: u64 = 3;

/// A stage of the path.
#[derive(Clone)]
pub(crate) struct StagePlan {
    pub(crate) noun: Noun,
    /// Where it looks: one layer, or all of them for a stage of items.
    pub(crate) layers: Vec<StageLayer>,
    /// How many rows it contributes; unlimited under a token budget when it does not say.
    pub(crate) count: Option<u64>,
    /// Of a stage of pages or episodes how many of them are kept, with all of their traces.
    pub(crate) container_limit: Option<usize>,
    pub(crate) channels: Vec<Channel>,
    pub(crate) pool: usize,
    /// What it may route through.
    pub(crate) route: Arc<Bits>,
    /// What of that may be a row.
    pub(crate) rows: Arc<Bits>,
    /// What could be a row if nothing were excluded.
    pub(crate) relaxable: Arc<Bits>,
    /// It goes from what the stage before found to where that came from, when so many items vote for it.
    pub(crate) lift: Option<LiftPlan>,
    /// Something goes on from what it may route through.
    pub(crate) routes_on: bool,
    /// All that may be a row is a candidate, found or not: the traces of pages that are read whole.
    pub(crate) takes_all: bool,
}

impl StagePlan {
    /// True if it looks in a layer.
    pub(crate) fn is_in(&self, layer: Layer) -> bool {
        self.layers.iter().any(|part| part.layer == layer)
    }
}

/// A layer a stage looks in.
#[derive(Clone)]
pub(crate) struct StageLayer {
    pub(crate) layer: Layer,
    /// The items of the layer, where it is not the only one.
    items: Option<Bits>,
}

impl StageLayer {
    /// What of a set is of this layer.
    pub(crate) fn of<'b>(&self, set: &'b Bits) -> Cow<'b, Bits> {
        match &self.items {
            None => Cow::Borrowed(set),
            Some(items) => Cow::Owned(set.and(items)),
        }
    }
}

/// Where a lift goes.
#[derive(Clone, Copy)]
pub(crate) struct LiftPlan {
    pub(crate) noun: Noun,
    /// How many traces, pages or episodes are kept.
    pub(crate) count: usize,
    /// If a path states none, [`containers::lift`](super::containers::lift) decides.
    pub(crate) votes: Option<usize>,
}

/// Stages that are walked again and again (PlugMem 3.2).
#[derive(Clone, Copy)]
pub(crate) struct Group {
    /// The first stage, and the one after the last.
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) hops: u64,
    /// How many rows hand their text to the next hop's query.
    pub(crate) carry: usize,
    /// How many rows of the answer each hop keeps, at most.
    pub(crate) keep: u64,
}

/// A flaw that keeps rows out.
pub(crate) struct Exclusion {
    pub(crate) name: &'static str,
    pub(crate) items: Arc<Bits>,
}

/// Evidence to be added under the rows.
#[derive(Clone, Copy)]
pub(crate) struct ExpandPlan {
    /// The only sort of evidence that is describe_reader, or what of its page or episode each trace brings along.
    pub(crate) to: Option<Noun>,
    pub(crate) depth: u64,
    pub(crate) tokens: u64,
}

pub(crate) struct Plan {
    pub(crate) text: Option<String>,
    pub(crate) vector: Option<Vec<f32>>,
    pub(crate) reader_position: ReaderPosition,
    pub(crate) weights: Weights,
    pub(crate) visible: Arc<Bits>,
    /// What the predicate holds for of that, where there is one.
    pub(crate) wanted: Option<Bits>,
    /// How contests of claims end for the reader.
    reader_conflicts: Arc<ReaderConflicts>,
    /// Any claim was ever made.
    has_claims: bool,
    /// Decides contests under `rules = 2`.
    pub(crate) judge: Option<Judge>,
    /// Items that lost the claims the question is about are no rows.
    pub(crate) excludes_conflicted: bool,
    /// What of that is a trace, and what a recall.
    pub(crate) traces: Arc<Bits>,
    pub(crate) recalls: Arc<Bits>,
    /// What is inactive was asked for.
    pub(crate) inactive: bool,
    pub(crate) exclusions: Vec<Exclusion>,
    pub(crate) stages: Vec<StagePlan>,
    pub(crate) groups: Vec<Group>,
    /// A recall lends its similarity and words to the traces it cites, when the path leads from recalls to traces.
    pub(crate) inherit_from_citing: bool,
    pub(crate) relax_below: u64,
    pub(crate) limit: Option<u64>,
    pub(crate) skip: u64,
    pub(crate) budget: Option<u64>,
    pub(crate) abstain_below: Option<f32>,
    pub(crate) expand: Option<ExpandPlan>,
    pub(crate) returns: Option<Vec<String>>,
    /// Cosine above which a row restates a better one.
    pub(crate) fold: f32,
    pub(crate) notes: Vec<String>,
}

impl Plan {
    /// Plans a recall whose parameters are bound.
    pub(crate) fn new(snapshot: &Snapshot, recall: &Recall) -> Result<Plan> {
        let clauses = &recall.clauses;
        let mut notes = Vec::new();
        let (text, vector) = query_of(snapshot, recall, &mut notes)?;
        let scope = clauses.scope.as_ref().map(|scope| &scope.node);
        let reader_position = reader_position(snapshot, clauses)?;
        let filter = Filter::new(snapshot, &reader_position);
        let sets = Sets::new(&filter, scope, clauses)?;
        let rules = snapshot.state.rules()?;
        let weights = Weights::of(&snapshot.state, clauses.score.as_ref().map(|score| &score.node))?;
        let exclusions = exclusions(&filter, clauses, rules)?;
        let judges = rules >= extracted::RULES;
        let named = |flaws: &Option<Spanned<Vec<Spanned<Flaw>>>>| {
            flaws.iter().flat_map(|flaws| &flaws.node).any(|flaw| flaw.node.kind == FlawKind::Conflicted)
        };
        let by_profile = weights.excludes_conflicted && !named(&clauses.include);
        let excludes_conflicted = judges && (named(&clauses.exclude) || by_profile);
        let judge = judges.then(|| Judge::new(&snapshot.state, &reader_position, text.as_deref())).transpose()?;
        let wanted = match &clauses.filter {
            Some(predicate) => Some(filter.evaluate(&predicate.node, &sets.visible)?),
            None => None,
        };
        let budget = clauses.budget.as_ref().map(|budget| *budget.node.tokens.node.bound());
        let limit = clauses.limit.as_ref().map(|limit| *limit.node.count.node.bound());
        let skip =
            clauses.limit.as_ref().and_then(|limit| limit.node.skip.as_ref()).map_or(0, |skip| *skip.node.bound());
        let rows = budget.is_none().then(|| limit.unwrap_or(0).saturating_add(skip));
        let (stages, groups) = stages(&filter, clauses, rows)?;
        let mut plans = Vec::with_capacity(stages.len());
        let last = stages.len() - 1;
        for (index, stage) in stages.into_iter().enumerate() {
            let layers = layers(&filter, stage.noun)?;
            let is_container_stage = matches!(stage.noun, Noun::Pages | Noun::Episodes);
            let mut route = sets.of(&filter, if is_container_stage { Noun::Traces } else { stage.noun })?;
            if is_container_stage && stage.lift.is_none() {
                route = Arc::new(containers::route(snapshot, stage.noun, stage.only.as_ref(), &route)?);
            } else if let Some(only) = &stage.only {
                route = Arc::new(filter.evaluate(only, &route)?);
            }
            let mut relaxable = match &wanted {
                Some(wanted) => Arc::new(route.and(wanted)),
                None => Arc::clone(&route),
            };
            if index != last {
                // Themes, pages and episodes route; they give rows only where the path ends with them.
                for part in layers.iter().filter(|part| is_container_stage || part.layer == Layer::Theme) {
                    relaxable = match &part.items {
                        Some(items) => Arc::new(relaxable.and_not(items)),
                        None => Arc::default(),
                    };
                }
            }
            let admitted = sets.admitted(&filter, &relaxable, &layers, &exclusions)?;
            plans.push(StagePlan {
                noun: stage.noun,
                layers,
                count: stage.count,
                container_limit: stage.container_limit,
                channels: stage.channels,
                pool: stage.pool,
                route,
                rows: admitted,
                relaxable,
                lift: stage.lift,
                takes_all: false,
                routes_on: index != last || !groups.is_empty() || is_container_stage,
            });
        }
        let recalls_at = plans.iter().position(|stage| stage.is_in(Layer::Recall));
        let inherit_from_citing = recalls_at.is_some_and(|at| {
            plans[at..].iter().any(|stage| stage.is_in(Layer::Trace) && stage.channels.contains(&Channel::Linked))
        });
        Ok(Plan {
            text,
            vector,
            weights,
            traces: sets.of(&filter, Noun::Traces)?,
            recalls: sets.of(&filter, Noun::Recalls)?,
            visible: sets.visible,
            wanted,
            reader_conflicts: Arc::clone(filter.reader_conflicts()?),
            has_claims: snapshot.state.meta.claims > 0,
            judge,
            excludes_conflicted,
            inactive: includes(clauses, FlawKind::Inactive),
            exclusions,
            stages: plans,
            groups,
            inherit_from_citing,
            relax_below: clauses.relax.as_ref().map_or(u64::from(rules < 2), |relax| *relax.node.below.node.bound()),
            limit,
            skip,
            budget,
            abstain_below: clauses.abstain.as_ref().map(|abstain| *abstain.node.below.node.bound() as f32),
            expand: clauses.expand.as_ref().map(|expand| expand_plan(&expand.node)),
            returns: clauses.returns.as_ref().and_then(|returns| return_columns(&returns.node)),
            fold: fold(snapshot, clauses)?,
            notes,
            reader_position,
        })
    }

    /// Makes it the plan of another recall with the same clauses: what they select does not depend on the query.
    pub(crate) fn ask(&mut self, snapshot: &Snapshot, recall: &Recall) -> Result<()> {
        self.notes.clear();
        (self.text, self.vector) = query_of(snapshot, recall, &mut self.notes)?;
        Ok(())
    }

    /// What is read of each candidate.
    pub(crate) fn reads(&self) -> Reads {
        Reads { tokens: self.budget.is_some(), conflict: self.has_claims, ..self.weights.reads() }
    }

    /// The item that won over a claim of this one, as far as the reader can see; `known` is what won in the end.
    pub(crate) fn conflict_of(&self, state: &State, id: ItemId, known: Option<u32>) -> Result<Option<ItemId>> {
        match &self.judge {
            Some(judge) => judge.conflict(state, id),
            None => Ok(self.reader_conflicts.of(id, known)),
        }
    }

    /// The return_columns of the exclusions that keep an item out.
    pub(crate) fn flaws_of(&self, state: &State, id: ItemId) -> Result<Vec<&'static str>> {
        let flawed = self.exclusions.iter().filter(|exclusion| exclusion.items.contains(id.0));
        let mut flaws: Vec<&'static str> = flawed.map(|exclusion| exclusion.name).collect();
        if let Some(judge) = self.judge.as_ref().filter(|_| self.excludes_conflicted)
            && judge.loss(state, id)?.is_some()
        {
            flaws.push(FlawKind::Conflicted.as_str());
        }
        Ok(flaws)
    }

    /// Something is excluded that could come back.
    pub(crate) fn excludes_anything(&self) -> bool {
        self.excludes_conflicted || !self.exclusions.is_empty()
    }
}

/// Cosine above which a row restates a better one. Folding belongs to the profiles: a score of named weights alone
/// (plain similarity, say) folds nothing.
fn fold(snapshot: &Snapshot, clauses: &Clauses) -> Result<f32> {
    match clauses.score.as_ref().map(|score| &score.node.base) {
        Some(ScoreBase::Zero) => Ok(1.0),
        _ => settings::fold(&snapshot.state),
    }
}

/// The words and the vector a recall asks with. A text without a vector is embed_text when the database's space is that
/// of the built-in embedder.
fn query_of(
    snapshot: &Snapshot,
    recall: &Recall,
    notes: &mut Vec<String>,
) -> Result<(Option<String>, Option<Vec<f32>>)> {
    let query = &recall.query;
    let space = snapshot.space()?;
    let mut text = query.words().map(str::to_owned);
    let mut vector = query.vector().map(|vector| vector.components.clone());
    if let Some(like) = &query.like {
        let id = snapshot.resolve_item(like.node.bound())?;
        text = Some(snapshot.content(id)?.text().to_owned());
        vector = snapshot.vector(id)?;
    }
    match (&space, &vector) {
        (Some(space), Some(vector)) => space.check_vector(vector)?,
        (None, Some(_)) => {
            return Err(Error::Vector(
                "the database has no embedding space; create one with a space to search by vector".to_owned(),
            ));
        }
        (Some(space), None) => {
            let embedder =
                embed::HashingEmbedder::from_name(&space.model).filter(|embedder| embedder.dim() == space.dim);
            match (embedder, &text) {
                (Some(embedder), Some(text)) => vector = embedder.embed(text),
                (None, Some(_)) => {
                    notes.push("No query vector given: keyword and link search only.".to_owned());
                }
                _ => {}
            }
        }
        (None, None) => {}
    }
    Ok((text, vector))
}

/// The vector of a text, in a database of the built-in embedder's space.
pub(crate) fn embed_text(snapshot: &Snapshot, text: &str) -> Result<Option<Vec<f32>>> {
    let Some(space) = snapshot.space()? else { return Ok(None) };
    let embedder = embed::HashingEmbedder::from_name(&space.model).filter(|embedder| embedder.dim() == space.dim);
    Ok(embedder.and_then(|embedder| embedder.embed(text)))
}

/// Where the reader of a statement stands.
pub(crate) fn reader_position(snapshot: &Snapshot, clauses: &Clauses) -> Result<ReaderPosition> {
    let episodes = match clauses.scope.as_ref().map(|scope| &scope.node) {
        Some(Scope::Episodes(ids)) => Some(episode_numbers(&snapshot.state, ids)?),
        _ => None,
    };
    let given = clauses.reader.as_ref().map(|reader| reader_of(&reader.node)).unwrap_or_default();
    ReaderPosition::find(&snapshot.state, episodes.as_deref(), &given, snapshot.core.now())
}

/// The reader a clause `at` gives.
pub(crate) fn reader_of(clause: &holotype_query::ast::Reader) -> Reader {
    Reader {
        episode: None,
        step: clause.step.as_ref().map(|step| *step.node.bound()),
        time: clause.time.as_ref().map(|time| time.node.bound().micros),
        version: clause.version.as_ref().map(|version| version.node.bound().clone()),
    }
}

/// What is in scope and may be seen by the reader.
struct Sets {
    visible: Arc<Bits>,
    /// All that is active and not redacted is visible, so the sets at hand serve.
    base_sets: bool,
}

impl Sets {
    fn new(filter: &Filter<'_>, scope: Option<&Scope>, clauses: &Clauses) -> Result<Sets> {
        let state = &filter.snapshot.state;
        let bound = state.bound();
        let inactive = includes(clauses, FlawKind::Inactive);
        if matches!(scope, None | Some(Scope::All)) && !inactive && filter.reader_position.episode.is_none() {
            return Ok(Sets { visible: state.attributes.base_sets(bound).visible()?, base_sets: true });
        }
        let within = |column, low, high| state.attributes.select_values(column, bound, ValueTest::Range(low, high));
        let mut visible = filter.scope(scope)?;
        if matches!(scope, Some(Scope::Episodes(_) | Scope::Pages(_))) {
            // What belongs to no episode (a concept, an intent) routes into every one.
            let somewhere = within(Column::Episode, 0, i64::MAX)?;
            visible = visible.or(&state.attributes.layer(Layer::Theme, bound)?.and_not(&somewhere));
        }
        if inactive {
            visible = visible.and_not(&within(Column::Redacted, 1, 1)?);
        } else {
            visible = visible.and(&*state.attributes.base_sets(bound).visible()?);
        }
        let visible = visible.and_not(filter.ahead()?);
        Ok(Sets { visible: Arc::new(visible), base_sets: false })
    }

    /// What is visible of a noun.
    fn of(&self, filter: &Filter<'_>, noun: Noun) -> Result<Arc<Bits>> {
        let layer = match noun {
            Noun::Themes => Layer::Theme,
            Noun::Recalls => Layer::Recall,
            Noun::Traces => Layer::Trace,
            noun => return Ok(Arc::new(filter.noun(noun)?.and(&self.visible))),
        };
        let state = &filter.snapshot.state;
        if self.base_sets {
            return state.attributes.base_sets(state.bound()).layer(layer);
        }
        Ok(Arc::new(filter.noun(noun)?.and(&self.visible)))
    }

    /// What no exclusion keeps out.
    fn admitted(
        &self,
        filter: &Filter<'_>,
        relaxable: &Arc<Bits>,
        layers: &[StageLayer],
        exclusions: &[Exclusion],
    ) -> Result<Arc<Bits>> {
        let state = &filter.snapshot.state;
        let base_sets = state.attributes.base_sets(state.bound());
        if self.base_sets
            && let ([Exclusion { items, .. }], [StageLayer { layer, .. }]) = (exclusions, layers)
            && Arc::ptr_eq(items, &base_sets.failed()?)
            && Arc::ptr_eq(relaxable, &base_sets.layer(*layer)?)
        {
            return base_sets.eligible(*layer);
        }
        let mut admitted = Arc::clone(relaxable);
        for exclusion in exclusions {
            admitted = Arc::new(admitted.and_not(&exclusion.items));
        }
        Ok(admitted)
    }
}

/// True if a flaw is let in by name.
fn includes(clauses: &Clauses, kind: FlawKind) -> bool {
    clauses.include.iter().flat_map(|flaws| &flaws.node).any(|flaw| flaw.node.kind == kind)
}

/// What keeps rows out: failed and foreign-version items unless included, and what is excluded by name.
fn exclusions(filter: &Filter<'_>, clauses: &Clauses, rules: u8) -> Result<Vec<Exclusion>> {
    let mut exclusions = Vec::new();
    let mut exclude = |name, items: Arc<Bits>| {
        if !items.is_empty() {
            exclusions.push(Exclusion { name, items });
        }
    };
    let state = &filter.snapshot.state;
    let excluded: Vec<&Flaw> =
        clauses.exclude.iter().flat_map(|flaws| flaws.node.iter().map(|flaw| &flaw.node)).collect();
    let names_stale_version = excluded.iter().any(|flaw| flaw.kind == FlawKind::Stale);
    if !includes(clauses, FlawKind::Failed) && !excluded.iter().any(|flaw| flaw.kind == FlawKind::Failed) {
        exclude("failed", state.attributes.base_sets(state.bound()).failed()?);
    }
    if !includes(clauses, FlawKind::Stale) && !names_stale_version {
        exclude("version", Arc::new(filter.foreign()?));
    }
    let unsupported = excluded.iter().any(|flaw| flaw.kind == FlawKind::Unsupported);
    if rules >= 2 && !includes(clauses, FlawKind::Unsupported) && !unsupported {
        exclude(FlawKind::Unsupported.as_str(), state.attributes.base_sets(state.bound()).lost_support()?);
    }
    for flaw in excluded {
        if rules >= 2 && flaw.kind == FlawKind::Conflicted {
            continue;
        }
        exclude(flaw.kind.as_str(), Arc::new(filter.flaw(flaw)?));
        let without_version = flaw.kind == FlawKind::Stale && !crate::read::filter::window(state, flaw)?.version;
        if without_version && !includes(clauses, FlawKind::Stale) {
            exclude("version", Arc::new(filter.foreign()?));
        }
    }
    Ok(exclusions)
}

/// A stage before its sets are made.
struct StageDraft {
    noun: Noun,
    count: Option<u64>,
    container_limit: Option<usize>,
    channels: Vec<Channel>,
    pool: usize,
    only: Option<holotype_query::ast::Predicate>,
    lift: Option<LiftPlan>,
}

/// The stages a recall return_columns, or the default path: themes 3, recalls 5, traces 5 (HELM Algorithm 3). A limit
/// above that raises what a stage that return_columns no number gives; `rows` is `None` under a token budget, which
/// inherit_from_citing it altogether.
fn stages(filter: &Filter<'_>, clauses: &Clauses, rows: Option<u64>) -> Result<(Vec<StageDraft>, Vec<Group>)> {
    let default_count = |least: u64| rows.map(|rows| rows.max(least));
    let pool = |count: Option<u64>| {
        usize::try_from(count.map_or(MIN_POOL, |count| MIN_POOL.max(count.saturating_mul(10)))).unwrap_or(usize::MAX)
    };
    let draft = |noun, count: Option<u64>, first: bool| StageDraft {
        noun,
        count,
        container_limit: None,
        channels: if first {
            vec![Channel::Near, Channel::Words]
        } else {
            vec![Channel::Linked, Channel::Near, Channel::Words]
        },
        pool: pool(count).min(filter.snapshot.state.bound() as usize + 1),
        only: None,
        lift: None,
    };
    let Some(path) = &clauses.path else {
        let themes = rows.map(|_| 3);
        let drafts = vec![
            draft(Noun::Themes, themes, true),
            draft(Noun::Recalls, default_count(5), false),
            draft(Noun::Traces, default_count(5), false),
        ];
        return Ok((drafts, Vec::new()));
    };
    let mut drafts = Vec::new();
    let number =
        |number: &Option<Spanned<holotype_query::Arg<u64>>>| number.as_ref().map(|number| *number.node.bound());
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let mut groups = Vec::new();
    for stage in flat(&path.node, &mut groups)? {
        let index = drafts.len();
        let gather = match stage {
            Stage::Gather(gather) => gather,
            Stage::Lift(lift) => {
                let noun = lift.noun.node;
                let is_container_stage = matches!(noun, Noun::Pages | Noun::Episodes);
                let count = number(&lift.count);
                // All traces of the container_limit that are kept are rows.
                let mut stage = draft(noun, count.or(default_count(5)).filter(|_| !is_container_stage), false);
                let votes = number(&lift.votes).map(size);
                stage.lift = Some(LiftPlan { noun, count: count.map_or(usize::MAX, size), votes });
                drafts.push(stage);
                continue;
            }
            Stage::Hops(_) => continue,
        };
        let count = number(&gather.count).or(default_count(5));
        let mut stage = draft(gather.noun.node, count, index == 0);
        if matches!(gather.noun.node, Noun::Pages | Noun::Episodes) {
            stage.container_limit = Some(count.map_or(usize::MAX, size));
            stage.count = None;
        }
        if index > 0 && gather.channels.is_empty() {
            stage.channels = vec![Channel::Linked, Channel::Near];
        }
        if !gather.channels.is_empty() {
            stage.channels = gather.channels.iter().map(|channel| channel.node).collect();
        }
        if let Some(pool) = number(&gather.pool) {
            stage.pool = usize::try_from(pool).unwrap_or(usize::MAX).min(filter.snapshot.state.bound() as usize + 1);
        }
        stage.only = gather.only.as_ref().map(|only| only.node.clone());
        drafts.push(stage);
    }
    if drafts.is_empty() {
        return Err(Error::Invalid("a path needs at least one stage".to_owned()));
    }
    Ok((drafts, groups))
}

/// The stages of a path in a row, and which of them are groups.
fn flat<'p>(path: &'p [Spanned<Stage>], groups: &mut Vec<Group>) -> Result<Vec<&'p Stage>> {
    let mut stages = Vec::new();
    for stage in path {
        let Stage::Hops(hops) = &stage.node else {
            stages.push(&stage.node);
            continue;
        };
        let from = stages.len();
        for inner in &hops.stages {
            if matches!(inner.node, Stage::Hops(_)) {
                return Err(Error::Invalid("groups of stages cannot be nested".to_owned()));
            }
            stages.push(&inner.node);
        }
        let carry = hops.carry.as_ref().map_or(CARRY, |carry| *carry.node.bound());
        groups.push(Group {
            from,
            to: stages.len(),
            hops: *hops.up_to.node.bound(),
            carry: usize::try_from(carry).unwrap_or(usize::MAX),
            keep: hops.keep.as_ref().map_or(KEEP, |keep| *keep.node.bound()),
        });
    }
    Ok(stages)
}

/// The layers a stage of a noun looks in: pages and episodes are found by their traces.
fn layers(filter: &Filter<'_>, noun: Noun) -> Result<Vec<StageLayer>> {
    let only = |layer| Ok(vec![StageLayer { layer, items: None }]);
    match noun {
        Noun::Themes | Noun::Concepts | Noun::Intents => only(Layer::Theme),
        Noun::Recalls | Noun::Summaries | Noun::Facts | Noun::Procedures => only(Layer::Recall),
        Noun::Traces | Noun::Turns | Noun::Calls | Noun::Observations | Noun::Pages | Noun::Episodes => {
            only(Layer::Trace)
        }
        Noun::Items => {
            let of = |(layer, noun)| Ok(StageLayer { layer, items: Some(filter.noun(noun)?) });
            let all = [(Layer::Trace, Noun::Traces), (Layer::Recall, Noun::Recalls), (Layer::Theme, Noun::Themes)];
            all.into_iter().map(of).collect()
        }
    }
}

fn expand_plan(expand: &Expand) -> ExpandPlan {
    ExpandPlan {
        to: expand.noun.as_ref().map(|noun| noun.node).filter(|noun| *noun != Noun::Items),
        depth: expand.depth.as_ref().map_or(EXPAND_DEPTH, |depth| *depth.node.bound()),
        tokens: expand.within_tokens.as_ref().map_or(EXPAND_TOKENS, |tokens| *tokens.node.bound()),
    }
}

/// The columns a `return` return_columns; nothing for `*`.
pub(crate) fn return_columns(returns: &Returns) -> Option<Vec<String>> {
    match returns {
        Returns::All => None,
        Returns::Names(return_columns) => Some(return_columns.iter().map(|name| name.node.0.join(".")).collect()),
    }
}
