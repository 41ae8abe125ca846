//! The plan of a recall: every name resolved, every filter a set of items, every number in its place.
//!
//! Sets, from wide to narrow:
//! - `visible`: in scope, active, not redacted, not later than the reader. Stages may route through these.
//! - `relaxable`: visible, and the predicate holds. Rows come from these if too few are left (`relax`), with the tests
//!   they failed.
//! - `rows`: relaxable, and without any excluded flaw.
//!
//! [`Plan::new`] makes the sets of the whole recall once ([`Context`]), then the sets of each stage from them.

mod exclusions;
mod query;
mod sets;
mod stages;

pub(crate) use query::embed_text;

use crate::Result;
use crate::model::hashing::HashingEmbedder;
use crate::model::item::{ItemId, Layer};
use crate::read::filter::{Filter, episode_numbers};
use crate::read::item_view::heading;
use crate::read::snapshot::Snapshot;
use crate::recall::score::Weights;
use crate::state::attributes::scalars::Reads;
use crate::state::reader_position::{Reader, ReaderPosition};
use crate::state::settings;
use holotype_index::bitmap::Bits;
use holotype_query::plan::{Clauses, Expand, Predicate, Recall, Returns, Scope};
use holotype_query::{Channel, FlawKind, Lines, Noun};

use sets::Sets;
use std::borrow::Cow;
use std::sync::Arc;

/// Candidates a channel gathers for a stage, at least (memory model, section 5).
const MIN_POOL: u64 = 64;
/// Tokens that `expand` may add if it states no number.
const EXPAND_TOKENS: u64 = 1_500;
/// Rows whose text joins the query of the next hop (PlugMem Table 14).
const CARRY: u64 = 3;
/// Rows that each hop keeps.
const KEEP: u64 = 4;
/// Levels that `expand` goes down if it states no number.
const EXPAND_DEPTH: u64 = 3;

/// A stage of the path.
#[derive(Clone)]
pub(crate) struct StagePlan {
    pub(crate) noun: Noun,
    /// The layers it searches: one, or all of them for a stage of items.
    pub(crate) layers: Vec<StageLayer>,
    /// The number of rows it contributes; by default unlimited under a token budget.
    pub(crate) count: Option<u64>,
    /// The number of pages or episodes that a stage of them keeps, with all of their traces.
    pub(crate) container_limit: Option<usize>,
    pub(crate) channels: Vec<Channel>,
    pub(crate) pool: usize,
    /// The items it may route through.
    pub(crate) route: Arc<Bits>,
    /// The items that may be rows.
    pub(crate) rows: Arc<Bits>,
    /// The items that could be rows if no flaw were excluded.
    pub(crate) relaxable: Arc<Bits>,
    /// It goes from the items of the stage before to their origin, given enough votes.
    pub(crate) lift: Option<LiftPlan>,
    /// A later step continues from the items it may route through.
    pub(crate) routes_on: bool,
    /// Every item that may be a row is a candidate, found or not: the traces of pages that are read whole.
    pub(crate) takes_all: bool,
}

impl StagePlan {
    /// True if it searches a layer.
    pub(crate) fn is_in(&self, layer: Layer) -> bool {
        self.layers.iter().any(|part| part.layer == layer)
    }
}

/// A layer that a stage searches.
#[derive(Clone)]
pub(crate) struct StageLayer {
    pub(crate) layer: Layer,
    /// The items of the layer, unless it is the only one.
    items: Option<Bits>,
}

impl StageLayer {
    /// The part of a set in this layer.
    pub(crate) fn of<'b>(&self, set: &'b Bits) -> Cow<'b, Bits> {
        match &self.items {
            None => Cow::Borrowed(set),
            Some(items) => Cow::Owned(set.and(items)),
        }
    }
}

/// The target of a lift.
#[derive(Clone, Copy)]
pub(crate) struct LiftPlan {
    pub(crate) noun: Noun,
    /// The number of traces, pages or episodes to keep.
    pub(crate) count: usize,
    /// If a path states none, [`containers::lift`](super::containers::lift) decides.
    pub(crate) votes: Option<usize>,
}

/// Stages that are walked repeatedly (PlugMem 3.2).
#[derive(Clone, Copy)]
pub(crate) struct Group {
    /// The first stage, and the one after the last.
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) hops: u64,
    /// The number of rows whose text joins the query of the next hop.
    pub(crate) carry: usize,
    /// The largest number of rows of the answer that each hop keeps.
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
    /// The only sort of evidence to show; or pages or episodes, whose traces each trace brings along.
    pub(crate) to: Option<Noun>,
    pub(crate) depth: u64,
    pub(crate) tokens: u64,
}

/// The sets of a whole recall, from which the sets of its stages are made.
struct Context<'p> {
    filter: &'p Filter<'p>,
    clauses: &'p Clauses,
    sets: Sets,
    exclusions: Vec<Exclusion>,
    /// The visible items for which the predicate holds, if there is one.
    wanted: Option<Bits>,
}

impl<'p> Context<'p> {
    fn new(filter: &'p Filter<'p>, clauses: &'p Clauses) -> Result<Context<'p>> {
        let sets = Sets::new(filter, clauses.scope.as_ref(), clauses)?;
        let exclusions = exclusions::of(filter, clauses)?;
        let evaluate = |predicate: &Predicate| filter.evaluate(predicate, &sets.visible);
        let wanted = clauses.filter.as_ref().map(evaluate).transpose()?;
        Ok(Context { filter, clauses, sets, exclusions, wanted })
    }
}

/// The bounds of an answer.
struct AnswerSize {
    limit: Option<u64>,
    skip: u64,
    budget: Option<u64>,
}

impl AnswerSize {
    fn of(clauses: &Clauses) -> AnswerSize {
        AnswerSize { limit: clauses.limit, skip: clauses.skip, budget: clauses.budget }
    }

    /// Rows that a stage without a number should find at least; `None` under a token budget, which lifts all counts.
    fn stage_rows(&self) -> Option<u64> {
        self.budget.is_none().then(|| self.limit.unwrap_or(0).saturating_add(self.skip))
    }
}

pub(crate) struct Plan {
    pub(crate) text: Option<String>,
    pub(crate) vector: Option<Vec<f32>>,
    pub(crate) reader_position: ReaderPosition,
    pub(crate) weights: Weights,
    pub(crate) visible: Arc<Bits>,
    /// Items in scope that are dated after the last commit, where the statement gives no position.
    pub(crate) later: u64,
    /// The visible items for which the predicate holds, if there is one.
    pub(crate) wanted: Option<Bits>,
    /// The visible traces, and the visible recalls.
    pub(crate) traces: Arc<Bits>,
    pub(crate) recalls: Arc<Bits>,
    /// Inactive items are included.
    pub(crate) inactive: bool,
    pub(crate) exclusions: Vec<Exclusion>,
    pub(crate) stages: Vec<StagePlan>,
    pub(crate) groups: Vec<Group>,
    /// Traces inherit similarity and words of the recalls that cite them: the path leads from recalls to traces.
    pub(crate) inherit_from_citing: bool,
    pub(crate) relax_below: u64,
    pub(crate) limit: Option<u64>,
    pub(crate) skip: u64,
    pub(crate) budget: Option<u64>,
    /// A question that is not answerable gives no rows; with a number, neither does weaker evidence.
    pub(crate) abstain: Option<Option<f32>>,
    pub(crate) expand: Option<ExpandPlan>,
    pub(crate) returns: Option<Vec<String>>,
    /// Candidates of one frame are one row.
    pub(crate) groups_frames: bool,
    /// The cosines that a newer statement may lack to lead its frame: with one difference, and with several. None are
    /// needed where vectors come from words.
    pub(crate) frame_margins: (f32, f32),
    pub(crate) notes: Vec<String>,
}

impl Plan {
    /// Plans a recall whose parameters are bound: the query, the reader, the sets, then the stages.
    pub(crate) fn new(snapshot: &Snapshot, recall: &Recall) -> Result<Plan> {
        let clauses = &recall.clauses;
        let mut notes = Vec::new();
        let (text, vector) = query::of(snapshot, recall, &mut notes)?;
        let reader_position = reader_position(snapshot, clauses)?;
        let filter = Filter::new(snapshot, &reader_position);
        let mut weights = Weights::of(&snapshot.state, clauses.score.as_ref())?;
        if weights.groups && clauses.score.is_none() && exclusions::asks_for_failed(clauses) {
            weights.ignore_failure();
        }
        let context = Context::new(&filter, clauses)?;
        let size = AnswerSize::of(clauses);
        let (stages, groups) = context.stages(size.stage_rows())?;
        Ok(Plan {
            text,
            vector,
            groups_frames: match clauses.lines {
                Some(lines) => lines == Lines::All,
                // The rows of a routed path have places of their own.
                None => weights.groups && groups.is_empty(),
            },
            weights,
            traces: context.sets.of(&filter, Noun::Traces)?,
            recalls: context.sets.of(&filter, Noun::Recalls)?,
            later: context.sets.later,
            visible: context.sets.visible,
            wanted: context.wanted,
            inactive: exclusions::includes(clauses, FlawKind::Inactive),
            exclusions: context.exclusions,
            inherit_from_citing: inherits_from_citing(&stages),
            stages,
            groups,
            relax_below: clauses.relax_below.unwrap_or(0),
            limit: size.limit,
            skip: size.skip,
            budget: size.budget,
            abstain: clauses.abstain.as_ref().map(|abstain| abstain.below.map(|below| below as f32)),
            expand: clauses.expand.as_ref().map(expand_plan),
            returns: clauses.returns.as_ref().and_then(return_columns),
            frame_margins: frame_margins(snapshot)?,
            notes,
            reader_position,
        })
    }

    /// Makes it the plan of another recall with the same clauses: their sets do not depend on the query.
    pub(crate) fn ask(&mut self, snapshot: &Snapshot, recall: &Recall) -> Result<()> {
        self.notes.clear();
        (self.text, self.vector) = query::of(snapshot, recall, &mut self.notes)?;
        Ok(())
    }

    /// The attributes to read of each candidate.
    pub(crate) fn reads(&self) -> Reads {
        Reads { tokens: self.budget.is_some(), ..self.weights.reads() }
    }

    /// The names of the exclusions that keep an item out.
    pub(crate) fn flaws_of(&self, id: ItemId) -> Vec<&'static str> {
        let flawed = self.exclusions.iter().filter(|exclusion| exclusion.items.contains(id.0));
        flawed.map(|exclusion| exclusion.name).collect()
    }

    /// True if excluded items could come back.
    pub(crate) fn excludes_anything(&self) -> bool {
        !self.exclusions.is_empty()
    }
}

/// The cosines that a newer statement may lack to lead its frame.
fn frame_margins(snapshot: &Snapshot) -> Result<(f32, f32)> {
    let by_words =
        snapshot.state.meta.space.as_ref().is_some_and(|space| HashingEmbedder::from_name(&space.model).is_some());
    if by_words { Ok((f32::INFINITY, f32::INFINITY)) } else { settings::frame_margins(&snapshot.state) }
}

/// The position of the reader of a statement.
pub(crate) fn reader_position(snapshot: &Snapshot, clauses: &Clauses) -> Result<ReaderPosition> {
    let episodes = match &clauses.scope {
        Some(Scope::Episodes(ids)) => Some(episode_numbers(&snapshot.state, ids)?),
        _ => None,
    };
    let given = clauses.reader.as_ref().map(reader_of).unwrap_or_default();
    ReaderPosition::find(&snapshot.state, episodes.as_deref(), &given, snapshot.core.now())
}

/// The reader that a clause `at` states.
pub(crate) fn reader_of(clause: &holotype_query::plan::Reader) -> Reader {
    Reader {
        episode: None,
        step: clause.step,
        time: clause.time.map(|time| time.micros),
        version: clause.version.clone(),
    }
}

/// True if the path leads from recalls to the traces they cite.
fn inherits_from_citing(stages: &[StagePlan]) -> bool {
    let after_recalls = stages.iter().skip_while(|stage| !stage.is_in(Layer::Recall));
    after_recalls.into_iter().any(|stage| stage.is_in(Layer::Trace) && stage.channels.contains(&Channel::Linked))
}

fn expand_plan(expand: &Expand) -> ExpandPlan {
    ExpandPlan {
        to: expand.noun.filter(|noun| *noun != Noun::Items),
        depth: expand.depth.unwrap_or(EXPAND_DEPTH),
        tokens: expand.within_tokens.unwrap_or(EXPAND_TOKENS),
    }
}

/// The columns that a `return` names; none for `*`.
fn return_columns(returns: &Returns) -> Option<Vec<String>> {
    match returns {
        Returns::All => None,
        Returns::Names(names) => Some(names.iter().map(heading).collect()),
    }
}
