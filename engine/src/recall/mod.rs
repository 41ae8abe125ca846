//! Coarse-to-fine recall (HELM Algorithm 3): plan, gather, rank, select, expand, answer.
//!
//! ```text
//! plan     names, filters and numbers                     plan
//! gather   each stage's candidates by near, words, linked  gather
//! rank     S for every candidate                           rank (weights in `score`)
//! select   union or budget, folding, relaxing              select
//! expand   evidence under the rows                         expand
//! ```
//!
//! Invariants:
//! 1. A row passes scope, predicate and every exclusion, or says which it was let back in spite of.
//! 2. Every span a row cites was read and hashed again for this answer.
//! 3. Same snapshot, same reader, same statement: same rows.

pub(crate) mod batch;
mod builder;
mod candidates;
pub mod condition;
mod containers;
mod contest;
mod covered;
mod escalate;
mod expand;
mod gather;
mod hops;
pub(crate) mod known;
pub(crate) mod names;
mod passages;
mod plan;
mod rank;
mod reach;
mod restated;
pub(crate) mod score;
mod select;
pub(crate) mod stage;
mod why;
pub(crate) mod words;

use crate::Result;
use crate::derive::repair;
use crate::model::item::{ItemId, Layer};
use crate::model::plural::counted;
use crate::read::answer::{Answer, Citation, Parts, Refresh, Role, Row, Strength};
use crate::read::snapshot::{Snapshot, is_damage};
use crate::state::attributes::scalars::Reads;
use crate::state::reader_position::{ReaderPosition, Window};
pub use builder::RecallBuilder;
use candidates::{Candidates, MatchPath};
use contest::OpenContests;
pub use escalate::{Planner, Roles, UncoveredWords};
use gather::{Gathered, StageQuery};
use holotype_index::bitmap::Bits;
use holotype_query::ast;
use passages::Logs;
pub(crate) use plan::reader_of;
use plan::{Group, Plan, StagePlan};
use rank::Scored;
use restated::Restated;
use select::{Chosen, Selection};
use std::sync::Arc;
use std::time::Instant;
pub(crate) use why::why;
use words::{WordIndexes, Words};

/// Rows that a stage looks for, at least, after the losers of contests were left out.
const MIN_ROWS: u64 = 16;

/// The steps of a recall, stage by stage, as `explain analyze` shows them.
pub(crate) type Steps = Vec<(String, String)>;

/// Runs a recall with bound parameters.
pub(crate) fn run(snapshot: &Snapshot, recall: &ast::Recall) -> Result<Answer> {
    let mut steps = Steps::new();
    run_with_steps(&snapshot.metered(), recall, &mut steps)
}

/// Runs an escalating recall with roles of the caller.
fn run_with_roles(snapshot: &Snapshot, recall: &ast::Recall, roles: Roles<'_>) -> Result<Answer> {
    if recall.clauses.escalate.is_none() {
        return Err(crate::Error::Invalid("roles need a recall that escalates".to_owned()));
    }
    let snapshot = &*snapshot.metered();
    repair::skip_damaged(&snapshot.state, || {
        let started = Instant::now();
        let snapshot = &snapshot.at(recall.clauses.as_of.as_ref())?.with_content_cache();
        escalate::run_with(snapshot, recall, roles, &mut Steps::new(), started)
    })
}

/// Describes the plan of a recall without running it.
pub(crate) fn explain(snapshot: &Snapshot, recall: &ast::Recall) -> Result<Steps> {
    let snapshot = &snapshot.at(recall.clauses.as_of.as_ref())?;
    let plan = Plan::new(snapshot, recall)?;
    let mut steps = Steps::new();
    let asked = match (&plan.text, &plan.vector) {
        (Some(_), Some(_)) => "text and vector",
        (Some(_), None) => "text",
        (None, Some(_)) => "vector",
        (None, None) => "nothing",
    };
    steps.push(("query".to_owned(), asked.to_owned()));
    steps.push(("reader".to_owned(), describe_reader(&plan.reader_position)));
    steps.push((
        "visible".to_owned(),
        format!("{} of {}", plan.visible.count(), counted(u64::from(snapshot.len()), "items")),
    ));
    for exclusion in &plan.exclusions {
        steps.push((format!("exclude {}", exclusion.name), counted(exclusion.items.count(), "items")));
    }
    if plan.excludes_conflicted {
        steps.push(("exclude conflicted".to_owned(), "decided for each candidate".to_owned()));
    }
    for stage in &plan.stages {
        let channels: Vec<&str> = stage.channels.iter().map(|channel| channel.as_str()).collect();
        let count = match (stage.count, stage.container_limit) {
            (Some(count), _) => count.to_string(),
            (None, Some(most)) if most < usize::MAX => format!("all of the best {most}"),
            (None, _) => "as many as fit".to_owned(),
        };
        steps.push((
            stage.noun.to_string(),
            format!(
                "by {}, pool {}, rows {count}; {} routable, {} eligible as rows",
                channels.join(", "),
                stage.pool,
                stage.route.count(),
                stage.rows.count()
            ),
        ));
    }
    let w = &plan.weights;
    let mut weights = format!(
        "similarity {}, words {}, recency {}, status {}, source {}, utility {}, context {}, conflict {}",
        w.similarity, w.words, w.recency, w.status, w.source, w.utility, w.context, w.conflict
    );
    if w.return_score != 0.0 {
        weights.push_str(&format!(", return_score {}", w.return_score));
    }
    steps.push(("score".to_owned(), weights));
    Ok(steps)
}

fn describe_reader(reader_position: &ReaderPosition) -> String {
    let reader = &reader_position.reader;
    let mut parts = Vec::new();
    parts.extend(reader.episode.as_ref().map(|episode| format!("episode {episode}")));
    parts.extend(reader.step.map(|step| format!("step {step}")));
    parts.extend(reader.time.map(|time| format!("time {}", crate::model::time::format(time))));
    parts.extend(reader.version.as_ref().map(|version| format!("version {version}")));
    if parts.is_empty() { "unspecified".to_owned() } else { parts.join(", ") }
}

/// Runs a recall and appends its steps.
pub(crate) fn run_with_steps(snapshot: &Snapshot, recall: &ast::Recall, steps: &mut Steps) -> Result<Answer> {
    let before = steps.len();
    repair::skip_damaged(&snapshot.state, || {
        steps.truncate(before);
        run_once(snapshot, recall, steps)
    })
}

fn run_once(snapshot: &Snapshot, recall: &ast::Recall, steps: &mut Steps) -> Result<Answer> {
    let started = Instant::now();
    let snapshot = &snapshot.at(recall.clauses.as_of.as_ref())?.with_content_cache();
    if recall.clauses.escalate.is_some() {
        return escalate::run(snapshot, recall, steps, started);
    }
    run_plan(snapshot, &Plan::new(snapshot, recall)?, steps, started)
}

/// Runs a plan on the snapshot that it was made for.
fn run_plan(snapshot: &Snapshot, plan: &Plan, steps: &mut Steps, started: Instant) -> Result<Answer> {
    let mut contests = OpenContests::default();
    let indexes = WordIndexes::of(snapshot)?;
    let words = indexes.ask(plan.text.as_deref());
    let logs = Logs::new(snapshot, plan);
    let context = Context { snapshot, plan, words: &words, logs: &logs };
    let Ranked { mut stages, complete, losers, mut restated } = gather_and_rank(&context, false, &mut contests, steps)?;
    let mut survivors: usize = stages.iter().map(Vec::len).sum();
    if (survivors as u64) < plan.relax_below && plan.excludes_anything() {
        // Excluded items rank after all valid ones: each exclusion costs l_status of their S.
        let relaxed = gather_and_rank(&context, true, &mut contests, steps)?;
        (stages, restated) = (relaxed.stages, relaxed.restated);
        survivors = stages.iter().map(Vec::len).sum();
        steps.push(("relax".to_owned(), format!("{survivors} candidates including excluded ones")));
    }
    let missing = covered::missing_names(snapshot, plan, &indexes)?;
    let mut selection = select::select(snapshot, plan, stages, &restated)?;
    if !missing.is_empty() {
        selection.notes.push(covered::note(&missing));
        selection.rows.clear();
    }
    let contested = contests.bring(snapshot, plan, &mut selection)?;
    let strength = strength(&words, &selection.rows)?;
    answer(snapshot, plan, Found { selection, strength, contested, complete, losers }, started)
}

/// The candidates that the stages of a plan found.
struct Ranked {
    /// The candidates of each stage, best first.
    stages: Vec<Vec<Scored>>,
    /// True if they include every possible row.
    complete: bool,
    /// The number of candidates that lost the claims in question.
    losers: u64,
    restated: Restated,
}

/// Runs the stages of a plan; with `relaxed`, excluded items are candidates too.
fn gather_and_rank(
    context: &Context<'_, '_>,
    relaxed: bool,
    contests: &mut OpenContests,
    steps: &mut Steps,
) -> Result<Ranked> {
    let plan = context.plan;
    let mut runner = StageRunner::new(context, relaxed, contests, steps)?;
    let first = StageQuery { text: plan.text.clone(), vector: plan.vector.clone() };
    let mut at = 0;
    while at < plan.stages.len() {
        match plan.groups.iter().find(|group| group.from == at) {
            None => {
                runner.stage(at, &first)?;
                at += 1;
            }
            Some(group) => {
                match hops::is_routed(plan, group) {
                    true => hops::walk(&mut runner, *group, &first)?,
                    false => runner.repeat(group, &first)?,
                }
                at = group.to;
            }
        }
    }
    let StageRunner { ranked: stages, complete, losers, restated, .. } = runner;
    Ok(Ranked { stages, complete, losers: losers.count(), restated })
}

/// The query of the next hop: the original text followed by the texts of the best rows.
fn carried_query(snapshot: &Snapshot, first: &StageQuery, best: &[ItemId], carry: usize) -> Result<StageQuery> {
    let mut text = first.text.clone().unwrap_or_default();
    for id in best.iter().take(carry) {
        text.push('\n');
        text.push_str(snapshot.content(*id)?.text());
    }
    let vector = plan::embed_text(snapshot, &text)?.or_else(|| first.vector.clone());
    Ok(StageQuery { text: Some(text), vector })
}

/// The parts of a recall that its steps share.
#[derive(Clone, Copy)]
struct Context<'r, 'w> {
    snapshot: &'r Snapshot,
    plan: &'r Plan,
    words: &'r Words<'w>,
    logs: &'r Logs<'r>,
}

/// Runs the stages of a plan in order and passes candidates on.
struct StageRunner<'r, 'w> {
    context: Context<'r, 'w>,
    contests: &'r mut OpenContests,
    steps: &'r mut Steps,
    /// The routable candidates of the last stage, and the best of its rows.
    before: Candidates,
    best: Vec<ItemId>,
    /// The candidates of each stage, best first.
    ranked: Vec<Vec<Scored>>,
    complete: bool,
    relaxed: bool,
    /// The words of the current hop, which include texts of earlier rows.
    hop: Option<Words<'w>>,
    /// Candidates that lost the claims in question.
    losers: Bits,
    restated: Restated,
    /// The concepts that the question names, for a path with a routed group, and the findings of a hop of it.
    routing: Option<hops::Routing>,
    found: Option<hops::HopFound>,
}

impl<'r, 'w> StageRunner<'r, 'w> {
    fn new(
        context: &Context<'r, 'w>,
        relaxed: bool,
        contests: &'r mut OpenContests,
        steps: &'r mut Steps,
    ) -> Result<StageRunner<'r, 'w>> {
        Ok(StageRunner {
            context: *context,
            contests,
            steps,
            before: Candidates::default(),
            best: Vec::new(),
            ranked: vec![Vec::new(); context.plan.stages.len()],
            complete: true,
            relaxed,
            hop: None,
            losers: Bits::new(),
            restated: Restated::default(),
            routing: hops::Routing::of(context.snapshot, context.plan, context.words)?,
            found: None,
        })
    }

    /// Walks a group hop by hop; each hop asks with the texts of the best rows too (PlugMem 3.2).
    fn repeat(&mut self, group: &Group, first: &StageQuery) -> Result<()> {
        let Context { snapshot, words, .. } = self.context;
        let mut asked = first.clone();
        for hop in 1..=group.hops {
            let known: usize = self.ranked.iter().map(Vec::len).sum();
            for at in group.from..group.to {
                self.stage(at, &asked)?;
            }
            let found = self.ranked.iter().map(Vec::len).sum::<usize>() - known;
            self.steps.push((format!("hop {hop}"), counted(found as u64, "new candidates")));
            if found == 0 {
                break;
            }
            asked = carried_query(snapshot, first, &self.best, group.carry)?;
            self.hop = asked.text.as_deref().map(|text| words.ask(text));
        }
        self.hop = None;
        Ok(())
    }

    /// Gathers and ranks the candidates of a stage.
    fn stage(&mut self, at: usize, asked: &StageQuery) -> Result<()> {
        let Context { snapshot, plan, .. } = self.context;
        let mut stage = plan.stages[at].clone();
        let enough = enough_rows(&stage).min(stage.pool as u64) as usize;
        let mut round = 0;
        let gathered = loop {
            if !self.relaxed && !self.losers.is_empty() {
                stage.rows = Arc::new(stage.rows.and_not(&self.losers));
            }
            let mut gathered = self.candidates(&stage, asked)?;
            let Some(judge) = plan.judge.as_ref().filter(|_| plan.excludes_conflicted && !self.relaxed) else {
                break gathered;
            };
            let losers = judge.losers(&snapshot.state, gathered.rows.ids())?.and(&stage.rows);
            self.losers = self.losers.or(&losers);
            gathered.rows = gathered.rows.filtered(|id| !losers.contains(id));
            // The rest of a pool holds the best rows. If little is left, gather again without the losers.
            if losers.is_empty() || gathered.complete || gathered.rows.len() >= enough {
                break gathered;
            }
            // In a contest that fills several pools all that lost are left out at once.
            if round > 0 {
                self.losers = self.losers.or(&judge.losers_beside(&snapshot.state, &losers)?.and(&stage.rows));
            }
            round += 1;
        };
        self.rank(at, gathered)
    }

    /// The candidates of a stage, with their neighbours and rivals.
    fn candidates(&mut self, stage: &StagePlan, asked: &StageQuery) -> Result<Gathered> {
        let Context { snapshot, plan, words: first_words, logs } = self.context;
        let words = self.hop.as_ref().unwrap_or(first_words);
        let filter = if self.relaxed { &stage.relaxable } else { &stage.rows };
        if let Some(found) = &self.found {
            return Ok(found.gathered(filter));
        }
        let mut gathered = match stage.lift {
            Some(lift) => containers::lift(&self.context, stage, lift, &self.best, self.relaxed)?,
            None => gather::gather(&Context { words, ..self.context }, stage, asked, &self.before, self.relaxed)?,
        };
        if stage.takes_all {
            gathered.rows.add(containers::on_pages(snapshot, filter)?);
        }
        if let Some(routing) = &self.routing {
            gathered.rows.add(routing.candidates(filter));
        }
        if let Some(most) = stage.container_limit {
            gathered = containers::group(&self.context, stage, most, gathered, self.relaxed)?;
        }
        if stage.is_in(Layer::Trace) && plan.weights.context > 0.0 {
            add_log_neighbours(logs, filter, &mut gathered.rows)?;
        }
        if snapshot.state.meta.claims > 0 && plan.judge.is_none() {
            self.contests.join(snapshot, plan, filter, None, &mut gathered.rows)?;
        }
        Ok(gathered)
    }

    /// The candidates of a stage with S, best first.
    fn scored(&self, stage: &StagePlan, candidates: Candidates) -> Result<Vec<Scored>> {
        let Context { snapshot, plan, words, .. } = self.context;
        let rows = rank::rank(&self.context, stage, candidates)?;
        match &self.routing {
            Some(routing) => {
                let most = hops::most_ranked(plan, stage.count);
                routing.adjusted(snapshot, plan, words, rows, most)
            }
            None => Ok(rows),
        }
    }

    /// Ranks the candidates of a stage and keeps them.
    fn rank(&mut self, at: usize, gathered: Gathered) -> Result<()> {
        let Context { snapshot, plan, .. } = self.context;
        let stage = &plan.stages[at];
        self.complete &= gathered.complete;
        for step in gathered.steps {
            self.steps.push((stage.noun.to_string(), step));
        }
        let mut candidates = gathered.rows;
        let filter = match self.relaxed {
            true => Arc::clone(&stage.relaxable),
            false if self.losers.is_empty() => Arc::clone(&stage.rows),
            false => Arc::new(stage.rows.and_not(&self.losers)),
        };
        self.restated.join(&self.context, &filter, &mut candidates)?;
        let mut rows = self.scored(stage, candidates.clone())?;
        if let Some(judge) = &plan.judge {
            // Only what may become a row brings the other side of its contests along.
            let reach = usize::try_from(enough_rows(stage)).unwrap_or(usize::MAX);
            let first: Vec<ItemId> = rows.iter().take(reach).map(|scored| scored.id).collect();
            let known = candidates.len();
            self.contests.join(snapshot, plan, &filter, Some(&first), &mut candidates)?;
            if plan.excludes_conflicted && !self.relaxed && candidates.len() > known {
                let losers = judge.losers(&snapshot.state, candidates.ids())?;
                candidates = candidates.filtered(|id| !losers.contains(id));
            }
            if candidates.len() > known {
                self.restated.join(&self.context, &filter, &mut candidates)?;
                rows = self.scored(stage, candidates)?;
            }
            self.restated.inherit(&mut rows);
        }
        self.contests.note(&rows);
        self.steps.push((stage.noun.to_string(), counted(rows.len() as u64, "candidates ranked")));
        let count = stage.count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
        self.best = rows.iter().take(count).map(|scored| scored.id).collect();
        if self.best.is_empty() {
            self.best = gathered.routed.ids().map(ItemId).collect();
        }
        self.before = gathered.routed;
        let ranked = &mut self.ranked[at];
        if ranked.is_empty() {
            *ranked = rows;
        } else {
            // A later hop adds new candidates; known ones keep their earlier rank.
            let known: std::collections::HashSet<ItemId> = ranked.iter().map(|scored| scored.id).collect();
            ranked.extend(rows.into_iter().filter(|scored| !known.contains(&scored.id)));
            ranked.sort_by(Scored::best_first);
        }
        Ok(())
    }
}

/// The number of rows at the front of a stage's order that decide its contribution.
fn enough_rows(stage: &StagePlan) -> u64 {
    stage.count.map_or(u64::MAX, |count| count.saturating_mul(2).max(MIN_ROWS))
}

/// Adds the log neighbours of candidates, because an answer is found next to its question. Used with a context
/// weight.
fn add_log_neighbours(logs: &Logs<'_>, filter: &Bits, rows: &mut Candidates) -> Result<()> {
    let mut new = Vec::new();
    for id in rows.ids().filter(|id| filter.contains(*id)) {
        let Some(log) = logs.of(id)? else { continue };
        for at in id.saturating_sub(2)..=id.saturating_add(2) {
            if filter.contains(at) && rows.get(at).is_none() && logs.of(at)? == Some(log) {
                new.push((at, MatchPath::default()));
            }
        }
    }
    rows.add(new.into_iter().collect());
    Ok(())
}

/// The findings of a recall, from which its answer is made.
struct Found {
    selection: Selection,
    strength: Strength,
    contested: Vec<String>,
    complete: bool,
    /// The number of candidates that lost the claims in question.
    losers: u64,
}

fn answer(snapshot: &Snapshot, plan: &Plan, found: Found, started: Instant) -> Result<Answer> {
    let Found { selection, strength, contested, complete, losers } = found;
    let mut notes = plan.notes.clone();
    notes.extend(selection.notes.iter().cloned());
    for (id, what) in &selection.damaged {
        notes.push(format!("item {id} omitted because its stored bytes are damaged: {what}"));
    }
    let damaged = damaged(snapshot, plan);
    let complete = complete && damaged.is_empty();
    notes.extend(damaged);
    let relaxed = selection.rows.iter().filter(|row| !row.scored.relaxed.is_empty()).count();
    if relaxed > 0 {
        let valid = (selection.rows.len() - relaxed) as u64;
        let passed = if valid == 0 { "No row".to_owned() } else { format!("Only {}", counted(valid, "rows")) };
        let excluded = counted(relaxed as u64, "excluded rows");
        notes.push(format!("{passed} passed all filters; showing {excluded} with the reasons."));
    }
    let evidence_of_best = selection
        .rows
        .iter()
        .map(|row| row.scored.parts.similarity.max(row.scored.parts.words.min(1.0) * strength.terms));
    let covered = match plan.abstain_below {
        Some(least) => evidence_of_best.fold(0.0, f32::max) >= least,
        // A question about names that nothing in scope has leaves no row.
        None => !plan.weights.abstains || !selection.rows.is_empty(),
    };
    let excluded = excluded(plan, losers);
    let refresh = if covered { refresh(snapshot, plan, selection.rows.first())? } else { None };
    let mut rows = Vec::new();
    if covered {
        let seeds: Vec<ItemId> = selection.rows.iter().map(|row| row.scored.id).collect();
        let evidence = match plan.expand {
            Some(limits) => expand::expand(snapshot, plan, limits, &seeds)?,
            None => vec![Vec::new(); seeds.len()],
        };
        for (chosen, evidence) in selection.rows.into_iter().zip(evidence) {
            rows.push(row(snapshot, plan, &chosen, Role::Hit)?);
            for id in evidence {
                rows.extend(evidence_row(snapshot, plan, id, &mut notes)?);
            }
        }
    }
    Ok(Answer {
        commit: snapshot.commit(),
        at: plan.reader_position.reader.clone(),
        covered,
        strength,
        certificate: if complete { "exact" } else { "limited" },
        contested,
        route: plan.stages.iter().map(|stage| stage.noun.to_string()).collect(),
        excluded,
        refresh,
        rounds: 0,
        escalation: None,
        notes,
        returns: plan.returns.clone(),
        receipt: None,
        rows,
        micros: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
    })
}

/// The number of items that each exclusion kept from being rows, of those that stages may route through. An item that
/// lost claims counts where it stood among the candidates.
fn excluded(plan: &Plan, losers: u64) -> Vec<(&'static str, u64)> {
    if plan.judge.is_none() {
        return Vec::new();
    }
    let kept_out = |items: &Bits| {
        let of_stage = plan.stages.iter().map(|stage| stage.relaxable.and(items));
        of_stage.reduce(|all, more| all.or(&more)).map_or(0, |all| all.count())
    };
    let named = plan.exclusions.iter().map(|exclusion| (exclusion.name, kept_out(&exclusion.items)));
    let conflicted = [("conflicted", losers)];
    named.chain(conflicted).filter(|(_, count)| *count > 0).collect()
}

/// The tool to call again if the first row is stale: its own, or that of the newest trace it rests on.
fn refresh(snapshot: &Snapshot, plan: &Plan, first: Option<&Chosen>) -> Result<Option<Refresh>> {
    let state = &snapshot.state;
    let Some(first) = first.filter(|_| plan.judge.is_some()) else { return Ok(None) };
    if !plan.reader_position.is_stale(state, &first.attributes, &Window::default_of(state)?)? {
        return Ok(None);
    }
    let mut called = vec![first.attributes.clone()];
    for source in state.sources(first.scored.id, first.scored.scalars.layer)?.into_iter().rev() {
        called.push(state.attributes(source)?);
    }
    let Some((tool, step)) = called.iter().find_map(|of| Some((of.tool?, of.step))) else { return Ok(None) };
    Ok(Some(Refresh { tool: state.symbol_name(tool)?, last_step: step }))
}

/// Notes on damaged vectors and words that the query needed.
pub(super) fn damaged(snapshot: &Snapshot, plan: &Plan) -> Vec<String> {
    let remedy = match snapshot.core.options.read_only {
        true => "open the database for writing or run `holotype rebuild` to rebuild the file from the log",
        false => "the file is being rebuilt from the log",
    };
    let mut notes = Vec::new();
    for layer in Layer::ALL.iter().filter(|layer| plan.stages.iter().any(|stage| stage.is_in(**layer))) {
        let vectors = snapshot.state.damaged_vectors(*layer);
        if plan.vector.is_some() && vectors > 0 {
            notes.push(format!(
                "{} of layer {layer} in a damaged file: only the intact ones were compared; {remedy}",
                counted(vectors as u64, "vectors")
            ));
        }
        let words = snapshot.state.damaged_words(*layer);
        if plan.text.is_some() && words > 0 {
            snapshot.core.schedule_repair();
            notes.push(format!(
                "words of {} of layer {layer} in a damaged file: keyword search skipped them; {remedy}",
                counted(words, "items")
            ));
        }
    }
    notes
}

/// The strength of the evidence: the best score, its lead, and the share of the query's terms in the rows.
fn strength(words: &Words<'_>, rows: &[Chosen]) -> Result<Strength> {
    let top = rows.first().map_or(0.0, |row| row.scored.score());
    let gap = rows.get(1).map_or(0.0, |second| top - second.scored.score());
    let mut terms = 0.0f32;
    for layer in Layer::ALL {
        let of_layer = rows.iter().filter(|row| row.scored.scalars.layer == *layer);
        let ids: Vec<u32> = of_layer.map(|row| row.scored.id.0).collect();
        if let (Some(scorer), false) = (words.of(*layer)?, ids.is_empty()) {
            terms = terms.max(scorer.joint_coverage(&ids)?);
        }
    }
    Ok(Strength { top, gap, terms })
}

/// A row of the answer; its evidence is read and hashed again.
fn row(snapshot: &Snapshot, plan: &Plan, chosen: &Chosen, role: Role) -> Result<Row> {
    let Scored { id, parts, match_path, relaxed, .. } = &chosen.scored;
    let attributes = &chosen.attributes;
    let state = &snapshot.state;
    let symbol = |number: Option<u32>| number.map(|number| state.symbol_name(number)).transpose();
    let key = |id: &ItemId| snapshot.key_of(*id).unwrap_or_else(|_| id.to_string());
    let mut path = match_path.path(snapshot)?;
    let citing_recalls = rank::citing_recalls(snapshot, plan, &chosen.scored)?;
    let others = citing_recalls.iter().filter(|recall| !match_path.linked_from().contains(recall));
    path.extend(others.map(|recall| format!("cited by {}", key(recall))));
    if path.is_empty() {
        path.push("next to a candidate".to_owned());
    }
    Ok(Row {
        item: *id,
        key: snapshot.key_of(*id)?,
        layer: attributes.layer(),
        kind: attributes.kind,
        text: chosen.content.text().to_owned(),
        score: parts.sum(),
        parts: *parts,
        status: attributes.status,
        source: attributes.source,
        speaker: symbol(attributes.speaker)?,
        tool: symbol(attributes.tool)?,
        episode: attributes
            .episode
            .map(|episode| state.episode_id(episode))
            .transpose()?
            .map(|id| id.as_ref().to_owned()),
        step: attributes.step,
        time: attributes.time,
        version: symbol(attributes.version)?,
        stale: plan.reader_position.is_stale(state, attributes, &Window::default_of(state)?)?,
        quarantined: snapshot.core.options.detector.instructs(chosen.content.text(), attributes.source),
        conflict: attributes.conflict.map(ItemId),
        conflict_key: attributes.conflict.map(|winner| key(&ItemId(winner))),
        support: attributes.support,
        trust: attributes.trust(),
        relaxed: relaxed.clone(),
        path,
        folded: chosen.folded.iter().map(key).collect(),
        tokens: attributes.tokens,
        citations: citations(snapshot, chosen)?,
        role,
    })
}

/// The evidence of a row; for a trace that is the trace itself.
fn citations(snapshot: &Snapshot, chosen: &Chosen) -> Result<Vec<Citation>> {
    match chosen.scored.scalars.layer {
        Layer::Trace => Ok(vec![snapshot.own_citation(chosen.scored.id, &chosen.attributes, &chosen.content)?]),
        Layer::Recall | Layer::Theme => snapshot.citations(chosen.scored.id),
    }
}

/// A row added by `expand`; `None` and a note if its bytes cannot be read as written.
fn evidence_row(snapshot: &Snapshot, plan: &Plan, id: ItemId, notes: &mut Vec<String>) -> Result<Option<Row>> {
    let state = &snapshot.state;
    let scalars = state.attributes.scalars(id, state.layer_of(id)?, Reads::ALL)?;
    let content = match snapshot.content(id) {
        Ok(content) => content,
        Err(error) if is_damage(&error) => {
            notes.push(format!("evidence {id} omitted because its stored bytes are damaged: {error}"));
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let relaxed = plan.flaws_of(state, id)?;
    let match_path = MatchPath::default();
    let scored = Scored { id, scalars, parts: Parts::default(), score: 0.0, place: 0, match_path, relaxed };
    let mut row = row(snapshot, plan, &Chosen::new(snapshot, plan, scored, content)?, Role::Evidence)?;
    row.path = vec!["evidence".to_owned()];
    Ok(Some(row))
}
