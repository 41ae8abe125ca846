//! Escalation (TierMem Algorithm 1): summaries first, raw pages where the router says so.
//!
//! ```text
//! Z = first tier                                   `first`
//! ANSWER or ESCALATE                               `signals`, the router
//! E = pages linked to Z                            unless `without links`
//! q = the question; at most T rounds:
//!   pool = pool + pages linked to the summaries nearest to q + best pages for q by keywords
//!   X = the best k pages of the pool that E lacks, ranked against the original question; protected ones first
//!   E = E + X; F = F + facts of X                  the integrator, if there is one
//!   end if X is empty, or the planner, which sees F and what is uncovered, has no search that was not issued before
//! rows = Z, then the traces of E in order of S
//! ```
//!
//! Under a token budget and `auto`, only traces that promise their tokens are rows ([`reading`]); `always` reads as
//! much as the budget holds.
//!
//! [`reading`]: crate::memory::router::reading
//!
//! A page ranks as `l_sim * (best similarity of its traces) + l_words * (its BM25 over the best page's)`. A summary
//! whose similarity to q reaches `protect` keeps its pages from the ranking (B.7). Under `always` the rows of Z only
//! seed.
//!
//! Invariants:
//! 1. No command runs twice, and each round but the last adds a page; so the loop ends.
//! 2. A token budget holds for all rows with the spans that rows of the first tier cite, each trace paid for once.
//! 3. Same snapshot, reader, statement and roles: same rows.

mod first;
mod pages;
mod planner;
mod search;
mod signals;

use super::answerable;
use super::context::{Context, Steps};
use super::group::Frames;
use super::offers::Offers;
use super::passages::Logs;
use super::plan::Plan;
use super::rows::{Found, answer, strength};
use super::runner::gather_and_rank;
use super::select::{self, Selection};
use super::words::WordIndexes;
use crate::memory::router::{Action, Router, Signals};
use crate::model::item::{ItemId, Layer, Origin};
use crate::model::plural::counted;
use crate::read::answer::{Answer, Row};
use crate::read::escalation::{Escalation, Hits, PageHit, Routing};
use crate::read::snapshot::Snapshot;
use crate::state::pages::write_line;
use crate::state::settings;
use crate::{Error, Result};
use first::FirstTier;
use holotype_index::bitmap::Bits;
use holotype_query::plan::{Escalate, Recall};
use holotype_query::{EscalateMode, Noun};
pub use planner::{Integrator, PageRanker, PlanView, Planner, UncoveredWords};
use search::{Evidence, Search};
use signals::InView;
use std::sync::Arc;
use std::time::Instant;

/// Pages a round selects when the statement does not say (k).
const PAGES: u64 = 5;
/// Rounds when the statement does not say (T of Algorithm 1).
const ROUNDS: u64 = 3;
/// Similarity of a summary from which its pages are protected, when the statement does not say.
const PROTECT: f32 = 0.8;

/// The deciders of an escalation.
#[derive(Clone, Copy)]
pub struct Roles<'r> {
    /// Decides whether the first tier suffices.
    pub router: &'r dyn Router,
    /// Decides what the next round searches.
    pub planner: &'r dyn Planner,
    /// Draws facts from the pages of each round, if there is one.
    pub integrator: Option<&'r dyn Integrator>,
    /// Puts the pages of each round in order, if there is one.
    pub ranker: Option<&'r dyn PageRanker>,
}

impl<'r> Roles<'r> {
    /// A router and a planner, without integrator and ranker.
    pub fn new(router: &'r dyn Router, planner: &'r dyn Planner) -> Roles<'r> {
        Roles { router, planner, integrator: None, ranker: None }
    }

    /// With an integrator.
    pub fn integrator(self, integrator: &'r dyn Integrator) -> Roles<'r> {
        Roles { integrator: Some(integrator), ..self }
    }

    /// With a ranker of pages.
    pub fn ranker(self, ranker: &'r dyn PageRanker) -> Roles<'r> {
        Roles { ranker: Some(ranker), ..self }
    }
}

/// Runs a recall with the clause `escalate`, the router of the database and the built-in planner.
pub(super) fn run(snapshot: &Snapshot, recall: &Recall, steps: &mut Steps, started: Instant) -> Result<Answer> {
    let router = settings::router(&snapshot.state)?;
    run_with(snapshot, recall, Roles::new(&router, &UncoveredWords), steps, started)
}

/// Runs a recall with the clause `escalate`.
pub(super) fn run_with(
    snapshot: &Snapshot,
    recall: &Recall,
    roles: Roles<'_>,
    steps: &mut Steps,
    started: Instant,
) -> Result<Answer> {
    let default = Escalate::default();
    let asked = recall.clauses.escalate.as_ref().unwrap_or(&default);
    if let Some(noun) = asked.noun.filter(|noun| *noun != Noun::Pages) {
        return Err(Error::Invalid(format!("escalate goes to pages, not to {noun}: write `escalate to pages n`")));
    }
    let indexes = WordIndexes::of(snapshot)?;
    let first_plan = Plan::new(snapshot, &first::statement(recall)?)?;
    let mut plan = Plan::new(snapshot, &first::raw_statement(recall)?)?;
    let words = indexes.ask(plan.text.as_deref())?;
    let sets = only_traces(&mut plan);
    let logs = Logs::new(snapshot, &plan);
    let context = Context { snapshot, plan: &plan, words: &words, logs: &logs };
    let mut ranked = gather_and_rank(&context, false, steps)?;
    let raw = ranked.stages.pop().unwrap_or_default();
    let mut first = first::find(snapshot, &first_plan, &words, (&raw, plan.budget), steps)?;
    let in_view = InView::new(snapshot, &plan, &first, &raw)?;
    let signals = signals::signals(snapshot, &plan, &words, &first, &in_view)?;
    let routing = route(&plan, &first, roles.router, asked, signals);
    let router_micros = micros(started);
    let sufficiency = routing.sufficiency.unwrap_or(0.0);
    steps.push(("router".to_owned(), format!("{}, {sufficiency:.2}", routing.decided.as_str())));
    let mut evidence = Evidence::default();
    if routing.action == Action::Escalate {
        let search = Search::new(snapshot, &plan, (&indexes, &words), asked, roles)?;
        evidence = search.run(&first, &raw, steps)?;
    }
    let hits = hits(snapshot, &first)?;
    let always = asked.mode == Some(EscalateMode::Always);
    let (mut selection, of_first) = match routing.action {
        Action::Answer => cut(&plan, first, steps),
        Action::Escalate => {
            if always {
                first.drop_rows();
            }
            let mut read = evidence.traces();
            if let Some(budget) = plan.budget.filter(|_| !always) {
                read = read.and(&in_view.worth(budget.saturating_sub(first.tokens)));
            }
            restrict(&mut plan, sets, &read, &first);
            raw_rows(snapshot, &mut plan, &words, first, steps)?
        }
    };
    let strength = strength(&words, &selection.rows)?;
    let doubt = answerable::doubt(snapshot, &plan, &indexes, &selection)?;
    selection.notes.extend(doubt.iter().cloned());
    let found = Found { selection, strength, complete: false, answerable: doubt.is_none() };
    let mut answer = answer(snapshot, &plan, found, started)?;
    answer.rounds = u32::try_from(evidence.rounds.len()).unwrap_or(u32::MAX);
    answer.route = first_plan.stages.iter().map(|stage| stage.noun.to_string()).collect();
    answer.route.extend((routing.action == Action::Escalate).then(|| "pages".to_owned()));
    let record = Record { routing, evidence, hits, of_first, router_micros };
    answer.escalation = Some(Box::new(record.escalation(snapshot, &answer.rows)?));
    answer.micros = micros(started);
    Ok(answer)
}

/// The course of an escalation, beside its rows.
struct Record {
    routing: Routing,
    evidence: Evidence,
    hits: Hits,
    /// Tokens of the rows of the first tier that are in the answer, with the traces they cite.
    of_first: u64,
    router_micros: u64,
}

impl Record {
    fn escalation(self, snapshot: &Snapshot, rows: &[Row]) -> Result<Escalation> {
        let of_traces = rows.iter().filter(|row| row.layer == Layer::Trace).map(|row| u64::from(row.tokens));
        Ok(Escalation {
            pages: page_hits(snapshot, &self.evidence, rows)?,
            tokens: of_traces.sum::<u64>() + if rows.is_empty() { 0 } else { self.of_first },
            facts: self.evidence.facts,
            failures: self.evidence.failures,
            rounds: self.evidence.rounds,
            router: self.routing,
            first_tokens: self.of_first,
            hits: self.hits,
            router_micros: self.router_micros,
        })
    }
}

fn micros(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// Asks the router, and applies the mode of the statement.
fn route(plan: &Plan, first: &FirstTier, router: &dyn Router, asked: &Escalate, signals: Signals) -> Routing {
    let texts: Vec<&str> = first.selection.rows.iter().map(|row| row.content.text()).collect();
    let question = plan.text.as_deref().unwrap_or_default();
    let (decided, failure) = match router.decide(question, &texts, &signals) {
        Ok(action) => (action, None),
        Err(why) => (Action::Escalate, Some(why)),
    };
    let action = match asked.mode {
        None | Some(EscalateMode::Auto) => decided,
        Some(EscalateMode::Always) => Action::Escalate,
        Some(EscalateMode::Never) => Action::Answer,
    };
    Routing { action, decided, sufficiency: router.sufficiency(&signals), signals, failure }
}

/// The possible rows of the stage of traces, before any page is selected.
struct TraceSets {
    rows: Arc<Bits>,
    relaxable: Arc<Bits>,
}

/// Lets only the stage of traces give rows.
fn only_traces(plan: &mut Plan) -> TraceSets {
    let last = plan.stages.len().saturating_sub(1);
    for stage in plan.stages.iter_mut().take(last) {
        (stage.rows, stage.relaxable) = (Arc::default(), Arc::default());
    }
    let stage = &plan.stages[last];
    TraceSets { rows: Arc::clone(&stage.rows), relaxable: Arc::clone(&stage.relaxable) }
}

/// Lets only traces of these pages give rows, without those that the first tier cites already.
fn restrict(plan: &mut Plan, sets: TraceSets, traces: &Bits, first: &FirstTier) {
    let held: Bits = first.traces().into_iter().map(|id| id.0).collect();
    let wanted = traces.and_not(&held);
    if let Some(stage) = plan.stages.last_mut() {
        stage.rows = Arc::new(sets.rows.and(&wanted));
        stage.relaxable = Arc::new(sets.relaxable.and(&wanted));
        stage.pool = stage.pool.max(usize::try_from(wanted.count()).unwrap_or(usize::MAX));
        stage.count = None;
        stage.takes_all = true;
    }
}

/// The rows of the first tier within the limit of the statement, and their tokens.
fn cut(plan: &Plan, mut first: FirstTier, steps: &mut Steps) -> (Selection, u64) {
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let rows = &mut first.selection.rows;
    rows.truncate(plan.limit.map_or(usize::MAX, |limit| size(limit.saturating_add(plan.skip))));
    rows.drain(..size(plan.skip).min(rows.len()));
    steps.push(("first tier".to_owned(), counted(rows.len() as u64, "rows")));
    (first.selection, first.tokens)
}

/// The rows of the first tier, then the traces of the selected pages; and the tokens of
/// the first tier.
fn raw_rows(
    snapshot: &Snapshot,
    plan: &mut Plan,
    words: &super::Words<'_>,
    first: FirstTier,
    steps: &mut Steps,
) -> Result<(Selection, u64)> {
    let mut before = first.selection;
    let spent = first.tokens;
    let (limit, skip) = (plan.limit, std::mem::take(&mut plan.skip));
    let wanted = limit.map(|limit| limit.saturating_add(skip));
    plan.limit = wanted.map(|wanted| wanted.saturating_sub(before.rows.len() as u64));
    plan.budget = plan.budget.map(|budget| budget.saturating_sub(spent));
    let logs = Logs::new(snapshot, plan);
    let context = Context { snapshot, plan, words, logs: &logs };
    let ranked = gather_and_rank(&context, false, steps)?;
    let of_pages = select::select(snapshot, plan, Offers::new(plan, ranked.stages), &Frames::default())?;
    before.rows.extend(of_pages.rows);
    before.damaged.extend(of_pages.damaged);
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    before.rows.truncate(wanted.map_or(usize::MAX, size));
    before.rows.drain(..size(skip).min(before.rows.len()));
    (plan.limit, plan.skip) = (limit, skip);
    Ok((before, spent))
}

/// Rows of the first tier by origin.
fn hits(snapshot: &Snapshot, first: &FirstTier) -> Result<Hits> {
    let mut hits = Hits::default();
    for row in &first.selection.rows {
        let count = match snapshot.state.attributes(row.id())?.origin {
            Origin::Original => &mut hits.original,
            Origin::LinkedFact => &mut hits.linked_fact,
            Origin::Refined => &mut hits.refined,
        };
        *count += 1;
    }
    Ok(hits)
}

/// The selected pages with the lines of their rows.
fn page_hits(snapshot: &Snapshot, evidence: &Evidence, rows: &[Row]) -> Result<Vec<PageHit>> {
    let shown: std::collections::BTreeSet<ItemId> = rows.iter().map(|row| row.item).collect();
    let mut pages = Vec::with_capacity(evidence.selected.len());
    for page in &evidence.selected {
        let (mut text, mut lines) = (String::new(), 0);
        for trace in page.traces.iter().map(|trace| ItemId(*trace)).filter(|trace| shown.contains(trace)) {
            write_line(&snapshot.content(trace)?.record, &mut text);
            lines += 1;
        }
        pages.push(PageHit {
            page: page.id.name(snapshot)?,
            score: page.score,
            protected: page.protected,
            round: page.round,
            text,
            whole: lines == page.id.len(snapshot)?,
        });
    }
    pages.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.page.cmp(&b.page)));
    Ok(pages)
}
