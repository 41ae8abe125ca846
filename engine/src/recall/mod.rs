//! Coarse-to-fine recall (HELM Algorithm 3): plan, gather, rank, select, expand, answer.
//!
//! ```text
//! plan     names, filters and numbers                        plan
//! gather   each stage's candidates by near, words, linked     gather, runner
//! rank     S for every candidate                              rank (weights in `score`)
//! refine   the order by what the question names               refine
//! group    candidates of one frame, led by what holds now     group (rules in `memory::frames`)
//! select   rows and lines, by count or by budget              select, lines
//! read     evidence read and hashed, expanded on request      rows, expand
//! ```
//!
//! Invariants:
//! 1. A row passes scope, predicate and every exclusion, or says which it was let back in spite of.
//! 2. Every span a row cites was read and hashed again for this answer.
//! 3. Same snapshot, same reader, same statement: same rows.

mod answerable;
pub(crate) mod batch;
mod builder;
mod candidates;
pub mod condition;
mod container;
mod containers;
mod context;
mod dates;
mod escalate;
mod expand;
mod explain;
mod gather;
mod group;
mod hops;
pub(crate) mod known;
mod left_out;
mod lines;
pub(crate) mod names;
mod offers;
mod passages;
mod plan;
mod rank;
mod reach;
mod refine;
mod rows;
mod runner;
pub(crate) mod score;
mod select;
pub(crate) mod stage;
mod texts;
mod why;
pub(crate) mod words;

use crate::Result;
use crate::derive::repair;
use crate::memory::frames::Asked;
use crate::read::answer::Answer;
use crate::read::snapshot::Snapshot;
pub use builder::RecallBuilder;
use context::Context;
pub(crate) use context::Steps;
pub use escalate::{Integrator, PageRanker, PlanView, Planner, Roles, UncoveredWords};
pub(crate) use explain::{describe_reader, explain};
use group::{Frames, Grouper};
use holotype_query::plan::Recall;
use offers::Offers;
use passages::Logs;
use plan::Plan;
pub(crate) use plan::reader_of;
use rank::Scored;
use rows::Found;
use runner::gather_and_rank;
use select::Selection;
use std::time::Instant;
use texts::Weights;
pub(crate) use why::why;
use words::{WordIndexes, Words};

/// Runs a recall with bound parameters.
pub(crate) fn run(snapshot: &Snapshot, recall: &Recall) -> Result<Answer> {
    let mut steps = Steps::new();
    run_with_steps(&snapshot.metered(), recall, &mut steps)
}

/// Runs an escalating recall with roles of the caller.
pub(crate) fn run_with_roles(snapshot: &Snapshot, recall: &Recall, roles: Roles<'_>) -> Result<Answer> {
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

/// Runs a recall and appends its steps.
pub(crate) fn run_with_steps(snapshot: &Snapshot, recall: &Recall, steps: &mut Steps) -> Result<Answer> {
    let before = steps.len();
    repair::skip_damaged(&snapshot.state, || {
        steps.truncate(before);
        run_once(snapshot, recall, steps)
    })
}

fn run_once(snapshot: &Snapshot, recall: &Recall, steps: &mut Steps) -> Result<Answer> {
    let started = Instant::now();
    let snapshot = &snapshot.at(recall.clauses.as_of.as_ref())?.with_content_cache();
    if recall.clauses.escalate.is_some() {
        return escalate::run(snapshot, recall, steps, started);
    }
    run_plan(snapshot, &Plan::new(snapshot, recall)?, steps, started)
}

/// Runs a plan on the snapshot that it was made for: gather and rank, refine, group, select, read.
fn run_plan(snapshot: &Snapshot, plan: &Plan, steps: &mut Steps, started: Instant) -> Result<Answer> {
    let indexes = WordIndexes::of(snapshot)?;
    let words = indexes.ask(plan.text.as_deref())?;
    let logs = Logs::new(snapshot, plan);
    let context = Context { snapshot, plan, words: &words, logs: &logs };
    let mut ranked = gather_and_rank(&context, false, steps)?;
    let survivors: usize = ranked.stages.iter().map(Vec::len).sum();
    if (survivors as u64) < plan.relax_below && plan.excludes_anything() {
        // Excluded items rank after all valid ones: each exclusion costs l_status of their S.
        ranked = gather_and_rank(&context, true, steps)?;
        let survivors: usize = ranked.stages.iter().map(Vec::len).sum();
        steps.push(("relax".to_owned(), format!("{survivors} candidates including excluded ones")));
    }
    let complete = ranked.complete;
    let mut selection = arrange(snapshot, plan, &indexes, ranked.stages)?;
    let doubt = answerable::doubt(snapshot, plan, &indexes, &selection)?;
    selection.notes.extend(doubt.iter().cloned());
    selection.notes.extend(left_out::note(snapshot, plan, &words, &selection)?);
    let strength = rows::strength(&words, &selection.rows)?;
    rows::answer(snapshot, plan, Found { selection, strength, complete, answerable: doubt.is_none() }, started)
}

/// The rows of ranked candidates: refined by what the question names, grouped by frame, selected.
fn arrange(snapshot: &Snapshot, plan: &Plan, indexes: &WordIndexes, stages: Vec<Vec<Scored>>) -> Result<Selection> {
    let mut offers = Offers::new(plan, stages);
    let asked = Asked::new(plan.text.as_deref().unwrap_or_default());
    if plan.groups_frames || (plan.weights.groups && plan.groups.is_empty()) {
        refine::refine(snapshot, plan, &asked, &mut offers)?;
    }
    let frames = match plan.groups_frames {
        true => {
            let weights = Weights::new(indexes, &asked);
            let grouper = Grouper { snapshot, plan, indexes, asked: &asked, weights: &weights };
            grouper.group(offers.best(group::GROUPED))?
        }
        false => Frames::default(),
    };
    select::select(snapshot, plan, offers, &frames)
}
