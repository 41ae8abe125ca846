//! `explain`: the plan of a statement, what running it did, or what a write would do.

use super::{read, write};
use crate::Result;
use crate::answer::{Output, Table};
use crate::cell::Cell;
use crate::recall::{self, Steps};
use crate::snapshot::Snapshot;
use crate::transaction::Transaction;
use holotype_query::ast::{Explain, Statement};

pub(super) fn run(snapshot: &Snapshot, explain: &Explain) -> Result<Table> {
    let statement = &explain.statement.node;
    let steps = match (statement, explain.analyze) {
        (Statement::Recall(recall), false) => recall::explain(snapshot, recall)?,
        (Statement::Recall(recall), true) => {
            let mut steps = recall::explain(snapshot, recall)?;
            let answer = recall::run_with_steps(snapshot, recall, &mut steps)?;
            let done = format!("{} rows, certificate {}, {} µs", answer.rows.len(), answer.certificate, answer.micros);
            steps.push(("answer".to_owned(), done));
            steps
        }
        (statement, false) => vec![(statement.verb().to_owned(), statement.to_string())],
        (statement, true) => {
            let rows = match read(snapshot, statement)? {
                Output::Answer(answer) => answer.rows.len(),
                Output::Table(table) => table.rows.len(),
            };
            vec![(statement.verb().to_owned(), format!("{rows} rows"))]
        }
    };
    Ok(to_table(steps))
}

/// Runs a write and takes it back: what it would have done.
pub(super) fn dry_run(transaction: &mut Transaction<'_>, explain: &Explain) -> Result<Table> {
    let before = transaction.copy();
    let done = write::run(transaction, &explain.statement.node);
    transaction.return_to(before);
    let mut table = done?;
    table.verb = "explain";
    table.notes.push("nothing was written".to_owned());
    Ok(table)
}

fn to_table(steps: Steps) -> Table {
    let rows = steps.into_iter().map(|(step, detail)| vec![Some(Cell::Text(step)), Some(Cell::Text(detail))]).collect();
    Table { verb: "explain", columns: vec!["step".to_owned(), "detail".to_owned()], rows, ..Table::default() }
}
