//! `why` and `why not`: what brought an item into the answer of a recall, or kept it out (memory model, section 8).
//!
//! Every test the recall puts an item to, in order, with what came of it: scope, activity, the reader, the predicate, each
//! exclusion, the stages and their channels, its rank, and what selection did with it.

use super::contest::OpenContests;
use super::plan::Plan;
use super::{gather_and_rank, select};
use crate::Result;
use crate::answer::Table;
use crate::cell::Cell;
use crate::item::ItemId;
use crate::snapshot::Snapshot;
use holotype_query::ast::Why;

/// Rows of a test, whether the item passed it, and the detail.
struct Findings {
    rows: Vec<Vec<Option<Cell>>>,
    kept_out: Option<String>,
}

impl Findings {
    fn add(&mut self, test: &str, passed: bool, detail: String) {
        if !passed && self.kept_out.is_none() {
            self.kept_out = Some(if detail.is_empty() { test.to_owned() } else { format!("{test}: {detail}") });
        }
        self.rows.push(vec![Some(Cell::text(test)), Some(Cell::Bool(passed)), Some(Cell::Text(detail))]);
    }
}

/// Answers `why [not] ITEM in recall …`.
pub(crate) fn why(snapshot: &Snapshot, why: &Why) -> Result<Table> {
    let snapshot = &snapshot.at(why.recall.clauses.as_of.as_ref())?;
    let id = snapshot.resolve_item(why.item.node.bound())?;
    let plan = Plan::new(snapshot, &why.recall)?;
    let mut findings = Findings { rows: Vec::new(), kept_out: None };
    visible(snapshot, &plan, id, &mut findings)?;
    let of_layer: Vec<_> = plan.stages.iter().filter(|stage| stage.route.contains(id.0)).collect();
    let stages: Vec<String> = of_layer.iter().map(|stage| stage.noun.to_string()).collect();
    if plan.visible.contains(id.0) {
        findings.add("a stage of the path", !of_layer.is_empty(), stages.join(", "));
        let may = of_layer.iter().any(|stage| stage.relaxable.contains(id.0));
        findings.add("where", of_layer.is_empty() || may, "the predicate, and that themes only route".to_owned());
    }
    for exclusion in &plan.exclusions {
        findings.add(&format!("not {}", exclusion.name), !exclusion.items.contains(id.0), String::new());
    }
    let in_answer = ranked(snapshot, &plan, id, &mut findings)?;
    let key = snapshot.key_of(id)?;
    let verdict = match (in_answer, findings.kept_out) {
        (true, _) => format!("{key} is in the answer"),
        (false, Some(reason)) => format!("{key} is not in the answer: {reason}"),
        (false, None) => format!("{key} is not in the answer"),
    };
    let columns = ["test", "passed", "detail"].map(str::to_owned).to_vec();
    Ok(Table { verb: "why", columns, rows: findings.rows, notes: vec![verdict], failed: false })
}

fn visible(snapshot: &Snapshot, plan: &Plan, id: ItemId, findings: &mut Findings) -> Result<()> {
    let attributes = snapshot.state.attributes(id)?;
    findings.add("active", attributes.active || plan.inactive, String::new());
    findings.add("not forgotten", !attributes.redacted, String::new());
    let ahead = plan.standing.is_ahead(&attributes);
    findings.add("not ahead of the reader", !ahead, super::shown(&plan.standing));
    let hidden = ahead || attributes.redacted || !(attributes.active || plan.inactive);
    findings.add("in scope", hidden || plan.visible.contains(id.0), String::new());
    Ok(())
}

/// Where the item was ranked, and whether selection took it.
fn ranked(snapshot: &Snapshot, plan: &Plan, id: ItemId, findings: &mut Findings) -> Result<bool> {
    let mut contests = OpenContests::default();
    let mut steps = Vec::new();
    let (mut stages, _) = gather_and_rank(snapshot, plan, false, &mut contests, &mut steps)?;
    let survivors: usize = stages.iter().map(Vec::len).sum();
    if (survivors as u64) < plan.relax_below && !plan.exclusions.is_empty() {
        stages = gather_and_rank(snapshot, plan, true, &mut contests, &mut steps)?.0;
    }
    let mut place = None;
    for (stage, ranked) in plan.stages.iter().zip(&stages) {
        if let Some(at) = ranked.iter().position(|scored| scored.id == id) {
            let scored = &ranked[at];
            let channels = [(scored.found.near, "near"), (scored.found.words, "words")];
            let mut found: Vec<&str> = channels.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
            if !scored.found.linked_from.is_empty() {
                found.push("linked");
            }
            let (score, of) = (scored.score(), ranked.len());
            place = Some(at);
            let detail = format!("{} {} of {of}, S {score:.3}, found by {}", stage.noun, at + 1, found.join(", "));
            findings.add("candidate", true, detail);
            let p = &scored.parts;
            let parts = format!(
                "similarity {:.3}, words {:.3}, recency {:.3}, status {:.3}, source {:.3}, utility {:.3}, conflict {:.3}, relaxed {:.3}",
                p.similarity, p.words, p.recency, p.status, p.source, p.utility, p.conflict, p.relaxed
            );
            findings.add("score", true, parts);
        }
    }
    if place.is_none() {
        findings.add("candidate", false, "no channel of its stages found it within its pool".to_owned());
    }
    let mut selection = select::select(snapshot, plan, stages)?;
    contests.bring(snapshot, plan, &mut selection)?;
    if let Some(at) = selection.rows.iter().position(|row| row.scored.id == id) {
        findings.add("selected", true, format!("row {} of {}", at + 1, selection.rows.len()));
        return Ok(true);
    }
    if let Some(better) = selection.rows.iter().find(|row| row.folded.contains(&id)) {
        findings.add(
            "selected",
            false,
            format!("folded into {}, which says the same", snapshot.key_of(better.scored.id)?),
        );
    } else if place.is_some() {
        let last =
            selection.rows.last().map_or(String::new(), |row| format!(", the last row has {:.3}", row.scored.score()));
        let bound = match (plan.budget, plan.limit) {
            (Some(budget), _) => format!("the budget of {budget} tokens was spent on better rows{last}"),
            (None, Some(limit)) => format!("the limit of {limit} rows or its stage's count was reached{last}"),
            (None, None) => format!("its stage's count was reached by better rows{last}"),
        };
        findings.add("selected", false, bound);
    }
    Ok(false)
}
