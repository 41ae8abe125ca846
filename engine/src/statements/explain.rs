//! `explain`: the plan of a statement, the steps of running it, or the effect of a write.

use super::listing::explain;
use super::{read, replay, write};
use crate::Result;
use crate::model::item::ItemId;
use crate::model::plural::counted;
use crate::read::answer::{Output, Table};
use crate::read::cell::Cell;
use crate::read::snapshot::Snapshot;
use crate::recall::{self, Steps};
use crate::write::transaction::Transaction;
use holotype_query::Noun;
use holotype_query::plan::{Explain, Statement, Thing};
use std::time::Instant;

pub(super) fn run(snapshot: &Snapshot, explain: &Explain) -> Result<Table> {
    let statement = explain.statement.as_ref();
    let steps = match (statement, explain.analyze) {
        (Statement::Recall(recall), false) => recall::explain(snapshot, recall)?,
        (Statement::Recall(recall), true) => {
            let mut steps = recall::explain(snapshot, recall)?;
            let answer = recall::run_with_steps(snapshot, recall, &mut steps)?;
            steps.push(("accelerator".to_owned(), snapshot.core.scorer.name()));
            let rows = counted(answer.rows.len() as u64, "rows");
            let done = format!("{rows}, certificate {}, {} µs", answer.certificate, answer.micros);
            steps.push(("answer".to_owned(), done));
            steps
        }
        (statement, false) => listed(snapshot, statement)?,
        (statement, true) => {
            let mut steps = listed(snapshot, statement)?;
            let started = Instant::now();
            let rows = match read(snapshot, statement)? {
                Output::Answer(answer) => answer.rows.len(),
                Output::Table(table) => table.rows.len(),
            };
            let micros = started.elapsed().as_micros();
            steps.push((statement.verb().to_owned(), format!("{}, {micros} µs", counted(rows as u64, "rows"))));
            steps
        }
    };
    Ok(to_table(steps))
}

/// The plan of a listing. Other statements are shown in canonical form.
fn listed(snapshot: &Snapshot, statement: &Statement) -> Result<Steps> {
    let mut steps = vec![(statement.verb().to_owned(), statement.to_string())];
    let of_items = match statement {
        Statement::Find(find) => Some((find.thing, &find.listing)),
        Statement::Count(count) => Some((count.thing, &count.listing)),
        _ => None,
    };
    if let Some((Thing::Noun(noun), listing)) = of_items
        && !matches!(noun, Noun::Pages | Noun::Episodes)
    {
        steps.extend(explain(snapshot, noun, listing)?);
    }
    Ok(steps)
}

/// Runs a write and rolls it back to show its effect.
pub(super) fn dry_run(transaction: &mut Transaction<'_>, explain: &Explain) -> Result<Table> {
    let takes = matches!(*explain.statement, Statement::Forget(_) | Statement::Prune(_));
    let snapshot = takes.then(|| transaction.snapshot()).transpose()?;
    let before = transaction.copy();
    let done = write::run(transaction, &explain.statement);
    let after = takes.then(|| transaction.snapshot()).transpose()?;
    transaction.restore(before);
    let mut table = done?.unwrap_or_default();
    if let (Some(before), Some(after)) = (snapshot, after) {
        let visible = |of: &Snapshot| of.state.attributes.base_sets(of.len()).visible();
        let gone: Vec<ItemId> = visible(&before)?.and_not(&*visible(&after)?).iter().map(ItemId).collect();
        if !gone.is_empty() {
            table.notes.extend(replay::note(&before, &gone)?);
        }
    }
    table.verb = "explain";
    table.notes.push("nothing was written".to_owned());
    Ok(table)
}

fn to_table(steps: Steps) -> Table {
    let rows = steps.into_iter().map(|(step, detail)| vec![Some(Cell::Text(step)), Some(Cell::Text(detail))]).collect();
    Table { verb: "explain", columns: vec!["step".to_owned(), "detail".to_owned()], rows, ..Table::default() }
}
