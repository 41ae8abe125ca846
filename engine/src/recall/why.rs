//! `why` and `why not`: which tests put an item into the answer of a recall or kept it out (memory model, section 8).
//!
//! Reports every test of the recall in order with its result: scope, activity, the reader, the predicate, each
//! exclusion, the stages and their channels, the rank, and the selection.

use super::context::Context;
use super::passages::Logs;
use super::plan::{Plan, StagePlan};
use super::rows::damaged;
use super::runner::gather_and_rank;
use super::select::Selection;
use super::words::WordIndexes;
use super::{answerable, arrange};
use crate::Result;
use crate::derive::repair::skip_damaged;
use crate::model::item::ItemId;
use crate::read::answer::{Parts, Table};
use crate::read::cell::Cell;
use crate::read::snapshot::Snapshot;
use holotype_query::plan::Why;

/// One row per test (name, passed, detail), and the first reason against the item as a phrase.
struct Findings {
    rows: Vec<Vec<Option<Cell>>>,
    kept_out: Option<String>,
}

impl Findings {
    fn add(&mut self, test: &str, passed: bool, detail: String, otherwise: impl FnOnce() -> String) {
        if !passed && self.kept_out.is_none() {
            self.kept_out = Some(otherwise());
        }
        self.rows.push(vec![Some(Cell::text(test)), Some(Cell::Bool(passed)), Some(Cell::Text(detail))]);
    }
}

/// Answers `why [not] ITEM in recall …`.
pub(crate) fn why(snapshot: &Snapshot, why: &Why) -> Result<Table> {
    skip_damaged(&snapshot.state, || why_once(snapshot, why))
}

fn why_once(snapshot: &Snapshot, why: &Why) -> Result<Table> {
    let snapshot = &snapshot.at(why.recall.clauses.as_of.as_ref())?;
    let id = snapshot.resolve_item(&why.item)?;
    let plan = Plan::new(snapshot, &why.recall)?;
    let mut findings = Findings { rows: Vec::new(), kept_out: None };
    visible(snapshot, &plan, id, &mut findings)?;
    let on_way: Vec<&StagePlan> = plan.stages.iter().filter(|stage| stage.route.contains(id.0)).collect();
    if plan.visible.contains(id.0) {
        let kind = snapshot.state.attributes.kind(id)?;
        let stages: Vec<String> = on_way.iter().map(|stage| stage.noun.to_string()).collect();
        let none = || format!("the path has no stage for a {kind}");
        findings.add("a stage of the path", !on_way.is_empty(), stages.join(", "), none);
        let may = on_way.iter().any(|stage| stage.relaxable.contains(id.0));
        let wanted = why.recall.clauses.filter.as_ref().map(ToString::to_string);
        let holds = plan.wanted.as_ref().is_none_or(|wanted| wanted.contains(id.0));
        if let Some(wanted) = &wanted {
            findings.add("where", holds, wanted.clone(), || format!("it does not match `{wanted}`"));
        }
        if holds && !on_way.is_empty() {
            let only_routes = || format!("its stage ({}) only routes to the next one", stages.join(", "));
            findings.add("gives rows", may, String::new(), only_routes);
        }
    }
    for exclusion in &plan.exclusions {
        let flaw = || match exclusion.name {
            "failed" => "status failed".to_owned(),
            "version" => "version mismatch with the reader".to_owned(),
            name => name.to_owned(),
        };
        let passed = !exclusion.items.contains(id.0);
        findings.add(&format!("not {}", exclusion.name), passed, String::new(), flaw);
    }
    let place = ranked(snapshot, &plan, id, &mut findings)?;
    let key = snapshot.key_of(id)?;
    let verdict = match (place, findings.kept_out) {
        (Some(place), None) => format!("{key} is in the answer: {place}"),
        (Some(place), Some(flaw)) => format!("{key} is in the answer: {place}, included despite: {flaw}"),
        (None, reason) => format!("{key} is not in the answer: {}", reason.unwrap_or_default()),
    };
    let columns = ["test", "passed", "detail"].map(str::to_owned).to_vec();
    let notes = [vec![verdict], damaged(snapshot, &plan)].concat();
    Ok(Table { verb: "why", columns, rows: findings.rows, notes, failed: false })
}

fn visible(snapshot: &Snapshot, plan: &Plan, id: ItemId, findings: &mut Findings) -> Result<()> {
    let attributes = snapshot.state.attributes(id)?;
    findings.add("active", attributes.active || plan.inactive, String::new(), || "it is inactive".to_owned());
    findings.add("not forgotten", !attributes.redacted, String::new(), || "it was forgotten".to_owned());
    let ahead = plan.reader_position.is_ahead(&attributes);
    let reader = super::describe_reader(&plan.reader_position);
    let is_ahead = || format!("it is later than the reader ({reader})");
    findings.add("not ahead of the reader", !ahead, reader.clone(), is_ahead);
    let hidden = ahead || attributes.redacted || !(attributes.active || plan.inactive);
    let in_scope = hidden || plan.visible.contains(id.0);
    findings.add("in scope", in_scope, String::new(), || "it is out of scope".to_owned());
    Ok(())
}

/// The item's rank as a phrase if it was selected. Adds the tests of ranking and selection.
fn ranked(snapshot: &Snapshot, plan: &Plan, id: ItemId, findings: &mut Findings) -> Result<Option<String>> {
    let mut steps = Vec::new();
    let indexes = WordIndexes::of(snapshot)?;
    let words = indexes.ask(plan.text.as_deref())?;
    let context = Context { snapshot, plan, words: &words, logs: &Logs::new(snapshot, plan) };
    let mut found = gather_and_rank(&context, false, &mut steps)?;
    let survivors: usize = found.stages.iter().map(Vec::len).sum();
    if (survivors as u64) < plan.relax_below && plan.excludes_anything() {
        found = gather_and_rank(&context, true, &mut steps)?;
    }
    let mut best: Option<String> = None;
    for (stage, ranked) in plan.stages.iter().zip(&found.stages) {
        let Some(at) = ranked.iter().position(|scored| scored.id == id) else { continue };
        let scored = &ranked[at];
        let path = scored.match_path.path(snapshot)?;
        let found = if path.is_empty() { "next to a candidate".to_owned() } else { path.join(", ") };
        let place = format!("{} {} of {}", stage.noun, at + 1, ranked.len());
        let detail = format!("{place}, S {:.3}, {found}", scored.score());
        best.get_or_insert_with(|| format!("{place} with S {:.3}", scored.score()));
        findings.add("candidate", true, detail, String::new);
        findings.add("score", true, terms(&scored.parts), String::new);
    }
    if best.is_none() {
        let nobody = || "no channel found it within the pool of its stage".to_owned();
        findings.add("candidate", false, nobody(), nobody);
    }
    let selection = arrange(snapshot, plan, &indexes, found.stages)?;
    if let Some(doubt) = answerable::doubt(snapshot, plan, &indexes, &selection)? {
        let drops = plan.abstain.is_some();
        findings.add("answerable", !drops, doubt.clone(), || doubt);
        if drops {
            return Ok(None);
        }
    }
    if let Some(place) = place(snapshot, &selection, id)? {
        findings.add("selected", true, place.clone(), String::new);
        return Ok(Some(place));
    }
    let Some(best) = best else { return Ok(None) };
    let reason = match (plan.budget, plan.limit) {
        (Some(budget), _) => format!("better rows used the budget of {budget} tokens; it ranked {best}"),
        (None, Some(limit)) => {
            format!("better rows filled the limit of {limit} or the count of its stage; it ranked {best}")
        }
        (None, None) => format!("better rows filled the count of its stage; it ranked {best}"),
    };
    let last = selection.rows.last().map(|row| format!(", the last row has S {:.3}", row.scored.score()));
    let detail = format!("{reason}{}", last.unwrap_or_default());
    findings.add("selected", false, detail, || reason.clone());
    Ok(None)
}

/// The place of an item in an answer: a row, a line of a row, or folded into one.
fn place(snapshot: &Snapshot, selection: &Selection, id: ItemId) -> Result<Option<String>> {
    for (at, row) in selection.rows.iter().enumerate() {
        if row.id() == id {
            return Ok(Some(format!("row {} of {}", at + 1, selection.rows.len())));
        }
        if row.lines.iter().any(|line| line.id == id) {
            return Ok(Some(format!("a line of row {} ({})", at + 1, snapshot.key_of(row.id())?)));
        }
        if row.folded.contains(&id) {
            let key = snapshot.key_of(row.id())?;
            return Ok(Some(format!("folded into row {} ({key}), which has the same words", at + 1)));
        }
    }
    Ok(None)
}

/// The terms of a score by name.
fn terms(p: &Parts) -> String {
    let terms = [
        ("similarity", p.similarity),
        ("words", p.words),
        ("recency", p.recency),
        ("status", p.status),
        ("source", p.source),
        ("utility", p.utility),
        ("conflict", p.conflict),
        ("relaxed", p.relaxed),
    ];
    // Adding zero turns -0 into 0.
    terms.map(|(name, term)| format!("{name} {:.3}", term + 0.0)).join(", ")
}
