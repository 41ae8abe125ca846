//! Running statements: parse, check, bind, then one function a verb.
//!
//! A script is one transaction: if any of its statements writes, all of them run inside a transaction and see what came
//! before them; a failing statement undoes everything. A script that only reads runs on a snapshot.

mod count;
mod explain;
mod find;
mod history;
mod listing;
mod show;
mod verify;
mod walk;
mod write;

use crate::answer::{Output, Table};
use crate::cell::Cell;
use crate::database::Holotype;
use crate::options::Durability;
use crate::snapshot::Snapshot;
use crate::transaction::Transaction;
use crate::{Error, Result, recall};
use holotype_query::ast::{Script, Statement};
use holotype_query::{Params, bind, check, parse};

impl Holotype {
    /// Runs a script with its parameters and returns what each statement gave. A script that writes is one transaction,
    /// committed with `sync`.
    ///
    /// # Errors
    /// [`Error::Query`] with every mistake of the script before anything runs; otherwise of the first statement that fails,
    /// and then nothing was written.
    pub fn query(&self, script: &str, params: &Params) -> Result<Vec<Output>> {
        let snapshot = self.snapshot();
        let script = prepare(&snapshot, script, params)?;
        if !script.iter().any(writes) {
            return script.iter().map(|statement| read(&snapshot, statement)).collect();
        }
        let mut transaction = self.begin()?;
        let outputs =
            script.iter().map(|statement| in_transaction(&mut transaction, statement)).collect::<Result<Vec<_>>>()?;
        transaction.commit(Durability::Sync)?;
        Ok(outputs)
    }
}

impl Snapshot {
    /// Runs a script of reading statements on this snapshot.
    ///
    /// # Errors
    /// As [`Holotype::query`]; [`Error::ReadOnly`] for a statement that writes.
    pub fn query(&self, script: &str, params: &Params) -> Result<Vec<Output>> {
        let script = prepare(self, script, params)?;
        script.iter().map(|statement| read(self, statement)).collect()
    }
}

/// Parses, checks and binds a script against the database.
fn prepare(snapshot: &Snapshot, source: &str, params: &Params) -> Result<Vec<Statement>> {
    let dimension = snapshot.space()?.map(|space| space.dim);
    let script: Script = parse(source).map_err(Error::Query)?;
    check(&script, Some(params), dimension).map_err(Error::Query)?;
    let bound = script.statements.iter().map(|statement| bind(&statement.node, params).map_err(Error::Query));
    bound.collect()
}

fn writes(statement: &Statement) -> bool {
    match statement {
        Statement::Explain(explain) => explain.statement.node.is_write(),
        statement => statement.is_write(),
    }
}

/// Runs a statement that reads.
pub(crate) fn read(snapshot: &Snapshot, statement: &Statement) -> Result<Output> {
    match statement {
        Statement::Recall(recall) => Ok(Output::Answer(Box::new(recall::run(snapshot, recall)?))),
        Statement::Find(find) => find::run(snapshot, find).map(Output::Table),
        Statement::Count(count) => count::run(snapshot, count).map(Output::Table),
        Statement::Walk(walk) => walk::run(snapshot, walk).map(Output::Table),
        Statement::History(history) => history::run(snapshot, history).map(Output::Table),
        Statement::Verify(verify) => verify::run(snapshot, verify).map(Output::Table),
        Statement::Show(target) => show::run(snapshot, target.node).map(Output::Table),
        Statement::Explain(explain) => explain::run(snapshot, explain).map(Output::Table),
        statement if statement.is_write() => Err(Error::ReadOnly),
        statement => Err(Error::NotYet { what: statement.verb().to_owned() }),
    }
}

/// Runs a statement of a script that writes.
fn in_transaction(transaction: &mut Transaction<'_>, statement: &Statement) -> Result<Output> {
    match statement {
        Statement::Explain(explain) if explain.statement.node.is_write() => {
            explain::dry_run(transaction, explain).map(Output::Table)
        }
        statement if statement.is_write() => write::run(transaction, statement).map(Output::Table),
        statement => read(&transaction.snapshot()?, statement),
    }
}

/// A table of one row.
fn single(verb: &'static str, columns: &[&str], row: Vec<Option<Cell>>) -> Table {
    Table {
        verb,
        columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        rows: vec![row],
        ..Table::default()
    }
}
