//! Running statements: parse, check, bind, then one function per verb.
//!
//! A script is one transaction: if any of its statements writes, all of them run in a transaction and see the effects
//! of earlier ones; a failing statement rolls everything back. A script without writes runs on a snapshot.

pub(crate) mod audit;
mod conflicts;
pub(crate) mod consolidate;
mod count;
mod decay;
pub(crate) mod difference;
mod events;
mod explain;
mod find;
mod forget;
mod graph;
mod history;
mod induce;
pub(crate) mod learn;
mod listing;
mod mark;
mod merge;
pub(crate) mod prepared;
pub(crate) mod prune;
mod reflect;
pub(crate) mod replay;
mod rollouts;
pub(crate) mod routing;
pub(crate) mod rows;
mod selected;
mod show;
pub(crate) mod story;
pub(crate) mod typed_queries;
mod verify;
mod walk;
mod write;

pub(crate) use selected::{in_episode, selected};

use crate::core::handle::Holotype;
use crate::options::Durability;
use crate::read::answer::{Answer, Output, Table};
use crate::read::cell::Cell;
use crate::read::controller::HopController;
use crate::read::limits::{Limits, refill_memory};
use crate::read::snapshot::Snapshot;
use crate::recall::batch::{TOGETHER, run_together};
use crate::recall::{RecallBuilder, Roles};
use crate::state::settings;
use crate::statements::prepared::Prepared;
use crate::statements::rows::Items;
use crate::write::transaction::Transaction;
use crate::{Error, Result, recall};
use holotype_query::Params;
use holotype_query::plan::{Recall, Statement};
use std::sync::Arc;

impl Holotype {
    /// Runs a script with its parameters and returns what each statement gave. A script that writes is one transaction,
    /// committed with `sync`.
    ///
    /// # Errors
    /// [`Error::Query`] with every mistake of the script before anything runs; otherwise of the first statement that
    /// fails, and then nothing was written.
    pub fn query(&self, script: &str, params: &Params) -> Result<Vec<Output>> {
        self.run(&Prepared::parsed(script)?, params)
    }

    /// Runs a script with limits for each of its statements, as [`Holotype::run_within`] does.
    ///
    /// # Errors
    /// As [`Holotype::run_within`].
    pub fn query_within(&self, script: &str, params: &Params, limits: &Limits) -> Result<Vec<Output>> {
        self.run_within(&Prepared::parsed(script)?, params, limits)
    }

    /// Runs a prepared script, as [`Holotype::query`] does.
    ///
    /// # Errors
    /// As [`Holotype::query`].
    pub fn run(&self, prepared: &Prepared, params: &Params) -> Result<Vec<Output>> {
        self.run_within(prepared, params, &Limits::none())
    }

    /// Runs a prepared script with limits for each of its statements. One that passes a limit or is cancelled undoes
    /// the whole script.
    ///
    /// # Errors
    /// As [`Holotype::query`]; [`Error::Limit`], [`Error::Cancelled`].
    pub fn run_within(&self, prepared: &Prepared, params: &Params, limits: &Limits) -> Result<Vec<Output>> {
        self.core.lock.check_process()?;
        let snapshot = self.snapshot().with_limits(limits);
        let script = prepared.bind(&snapshot, params)?;
        if !script.iter().any(Statement::needs_transaction) {
            let outputs: Vec<Output> =
                script.iter().map(|statement| read(&snapshot, statement)).collect::<Result<_>>()?;
            self.audit(&snapshot, &outputs)?;
            return Ok(self.with_notes_of_opening(outputs));
        }
        let mut transaction = self.begin()?;
        let outputs = run_all(&mut transaction, &script, limits)?;
        if settings::value(transaction.state()?, "audit")? == "reads" {
            for answer in answers(&outputs) {
                if answer.receipt.is_none() {
                    transaction.audit(answer)?;
                }
                transaction.keep_route(answer)?;
            }
        }
        transaction.commit(Durability::Sync)?;
        Ok(outputs)
    }
}

impl Transaction<'_> {
    /// Runs a prepared script in this transaction, with limits for each of its statements. It sees the effects of what
    /// the transaction wrote before, and commits nothing.
    ///
    /// # Errors
    /// As [`Holotype::run_within`]; then the transaction is as it was before the script.
    pub fn run_within(&mut self, prepared: &Prepared, params: &Params, limits: &Limits) -> Result<Vec<Output>> {
        let script = prepared.bind(&self.names()?, params)?;
        self.atomically(|transaction| run_all(transaction, &script, limits))
    }
}

impl Holotype {
    /// Runs scripts in order, each as [`Holotype::query_within`] does, and faster where consecutive ones only read and
    /// search by vector under one filter. Such scripts may read one snapshot. The outcomes are in the order of the
    /// scripts, and one that fails stops no other.
    ///
    /// Limits hold for each statement alone. The time of a pass that several share counts to none of them.
    pub fn query_batch(&self, scripts: &[(&str, &Params)], limits: &Limits) -> Vec<Result<Vec<Output>>> {
        let reads = |source: &str| match Prepared::parsed(source) {
            Ok(prepared) => !prepared.writes(),
            Err(_) => false,
        };
        let mut outcomes = Vec::with_capacity(scripts.len());
        while let Some((source, params)) = scripts.get(outcomes.len()) {
            let rest = &scripts[outcomes.len()..];
            let together = rest.iter().take(TOGETHER).take_while(|(source, _)| reads(source)).count();
            match together {
                0 | 1 => outcomes.push(self.query_within(source, params, limits)),
                count => outcomes.extend(self.read_together(&rest[..count], limits)),
            }
        }
        outcomes
    }

    /// Runs scripts that only read on one snapshot.
    fn read_together(&self, scripts: &[(&str, &Params)], limits: &Limits) -> Vec<Result<Vec<Output>>> {
        let snapshot = self.snapshot().with_limits(limits);
        let bind = |(source, params): &(&str, &Params)| Prepared::parsed(source)?.bind(&snapshot, params);
        let bound: Vec<Result<Vec<Statement>>> = scripts.iter().map(bind).collect();
        let recalls: Vec<&Recall> = bound
            .iter()
            .flatten()
            .flatten()
            .filter_map(|statement| match statement {
                Statement::Recall(recall) => Some(recall.as_ref()),
                _ => None,
            })
            .collect();
        let mut answers = run_together(&snapshot, &recalls).into_iter();
        let mut run = |script: Vec<Statement>| {
            // Each recall has an answer, also behind a statement that fails.
            let mut outcomes = Vec::with_capacity(script.len());
            for statement in &script {
                let answer = if matches!(statement, Statement::Recall(_)) { answers.next() } else { None };
                outcomes.push(match answer {
                    Some(answer) => answer.map(|answer| Output::Answer(Box::new(answer))),
                    None => read(&snapshot, statement),
                });
            }
            let outputs: Vec<Output> = outcomes.into_iter().collect::<Result<_>>()?;
            self.audit(&snapshot, &outputs)?;
            Ok(self.with_notes_of_opening(outputs))
        };
        bound.into_iter().map(|script| script.and_then(&mut run)).collect()
    }

    /// True if the setting `audit` has every answer logged, so that questions need a database open for writing.
    ///
    /// # Errors
    /// When the setting cannot be read.
    pub fn audits_reads(&self) -> Result<bool> {
        Ok(settings::value(&self.snapshot().state, "audit")? == "reads")
    }

    /// Adds to each output what opening found wrong, since an answer may lack what was lost.
    fn with_notes_of_opening(&self, mut outputs: Vec<Output>) -> Vec<Output> {
        let notes = self.core.report.faults();
        for output in &mut outputs {
            let told = match output {
                Output::Answer(answer) => &mut answer.notes,
                Output::Table(table) => &mut table.notes,
            };
            told.extend(notes.iter().cloned());
        }
        outputs
    }

    /// Logs a read of every answer if the setting `audit` asks for it.
    fn audit(&self, snapshot: &Snapshot, outputs: &[Output]) -> Result<()> {
        // An answer that might have been is no read.
        let answers: Vec<&Answer> = answers(outputs).filter(|answer| answer.without.is_empty()).collect();
        if answers.is_empty() || settings::value(&snapshot.state, "audit")? != "reads" {
            return Ok(());
        }
        self.log_reads(&answers)
    }

    /// Answers a recall of one of this database's snapshots and, with the setting `audit = reads`, logs the read and
    /// how it was routed (TierMem B.8), as a statement does. One that asks for a receipt leaves it.
    /// [`RecallBuilder::run`] alone writes nothing. `replay` of what a model routed asks the router of the database,
    /// and tells the differences.
    ///
    /// ```
    /// use holotype::query::{EscalateMode, Params};
    /// use holotype::{Holotype, Options};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let database = Holotype::create(dir.path().join("memory.holo"), Options::default())?;
    /// database.query("set audit = reads; record turn 'The ferry leaves at nine.' in episode 'e'", &Params::new())?;
    /// let snapshot = database.snapshot();
    /// database.ask(snapshot.recall("When does the ferry leave?").escalate(EscalateMode::Auto), None)?;
    /// assert_eq!(database.snapshot().routes()?.len(), 1);
    /// # Ok::<(), holotype::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`RecallBuilder::run`], or [`RecallBuilder::run_with`] with roles; [`Error::Unaudited`] if the read cannot be
    /// logged because the database is open read-only.
    pub fn ask(&self, recall: RecallBuilder<'_>, roles: Option<Roles<'_>>) -> Result<Answer> {
        let is_audited = self.audits_reads()?;
        if recall.wants_receipt() {
            let mut transaction = self.begin()?;
            let answer = transaction.recall_with(&recall.plan()?, roles)?;
            if is_audited {
                transaction.keep_route(&answer)?;
            }
            transaction.commit(Durability::Sync)?;
            return Ok(answer);
        }
        let answer = match roles {
            Some(roles) => recall.run_with(roles)?,
            None => recall.run()?,
        };
        if is_audited {
            self.log_reads(&[&answer])?;
        }
        Ok(answer)
    }

    /// Runs a script that only reads, with roles in its recalls: of those with `escalate` the router, the planner and
    /// the others, and of hops over concepts the controller. Receipts and audits are kept as [`Holotype::ask`] keeps
    /// them.
    ///
    /// # Errors
    /// As [`Snapshot::query`] and [`Holotype::ask`].
    pub fn query_with(
        &self,
        script: &str,
        params: &Params,
        limits: &Limits,
        roles: Roles<'_>,
        hops: Option<Arc<dyn HopController>>,
    ) -> Result<Vec<Output>> {
        let snapshot = self.snapshot().with_limits(limits);
        let snapshot = hops.map_or_else(|| snapshot.clone(), |hops| snapshot.with_hop_controller(hops));
        let is_audited = self.audits_reads()?;
        let mut outputs = Vec::new();
        for statement in Prepared::parsed(script)?.bind(&snapshot, params)? {
            let Statement::Recall(recall) = &statement else {
                let refused = || Error::Invalid("roles serve statements that read; this one writes".to_owned());
                outputs.push(read(&snapshot, &statement).map_err(|error| match error {
                    Error::ReadOnly => refused(),
                    error => error,
                })?);
                continue;
            };
            let roles = recall.clauses.escalate.is_some().then_some(roles);
            let answer = if recall.has_receipt() {
                let mut transaction = self.begin()?;
                let answer = transaction.recall_with(recall, roles)?;
                if is_audited {
                    transaction.keep_route(&answer)?;
                }
                transaction.commit(Durability::Sync)?;
                answer
            } else {
                let answer = match roles {
                    Some(roles) => recall::run_with_roles(&snapshot.metered(), recall, roles)?,
                    None => recall::run(&snapshot.metered(), recall)?,
                };
                if is_audited {
                    self.log_reads(&[&answer])?;
                }
                answer
            };
            outputs.push(Output::Answer(Box::new(answer)));
        }
        Ok(self.with_notes_of_opening(outputs))
    }

    /// Logs reads in a transaction of their own, without waiting for the sync.
    fn log_reads(&self, answers: &[&Answer]) -> Result<()> {
        if self.core.options.read_only {
            return Err(Error::Unaudited);
        }
        let mut transaction = self.begin()?;
        for answer in answers {
            transaction.audit(answer)?;
            transaction.keep_route(answer)?;
        }
        transaction.commit(Durability::None)?;
        Ok(())
    }
}

impl Snapshot {
    /// Runs a script of reading statements on this snapshot.
    ///
    /// # Errors
    /// As [`Holotype::query`]; [`Error::ReadOnly`] for a statement that writes.
    pub fn query(&self, script: &str, params: &Params) -> Result<Vec<Output>> {
        self.run(&Prepared::parsed(script)?, params)
    }

    /// Runs a prepared script of reading statements on this snapshot.
    ///
    /// # Errors
    /// As [`Snapshot::query`].
    pub fn run(&self, prepared: &Prepared, params: &Params) -> Result<Vec<Output>> {
        prepared.bind(self, params)?.iter().map(|statement| read(self, statement)).collect()
    }
}

/// The answers among some outputs.
fn answers(outputs: &[Output]) -> impl Iterator<Item = &Answer> {
    outputs.iter().filter_map(|output| match output {
        Output::Answer(answer) => Some(answer.as_ref()),
        Output::Table(_) => None,
    })
}

/// Runs a reading statement.
pub(crate) fn read(snapshot: &Snapshot, statement: &Statement) -> Result<Output> {
    snapshot.unless_erased(|view| {
        let view = &*view.metered();
        view.core.unless_cut(|| read_unless_cut(view, statement))
    })
}

fn read_unless_cut(snapshot: &Snapshot, statement: &Statement) -> Result<Output> {
    match statement {
        Statement::Recall(recall) if recall.has_receipt() => Err(Error::ReadOnly),
        Statement::Recall(recall) => Ok(Output::Answer(Box::new(recall::run(snapshot, recall)?))),
        Statement::Why(why) => recall::why(snapshot, why).map(Output::Table),
        Statement::Replay(replay) => replay::run(snapshot, replay),
        Statement::Find(find) => find::run(snapshot, find).map(Output::Table),
        Statement::Count(count) => count::run(snapshot, count).map(Output::Table),
        Statement::Walk(walk) => walk::run(snapshot, walk).map(Output::Table),
        Statement::Conflicts(conflicts) => conflicts::run(snapshot, conflicts).map(Output::Table),
        Statement::History(history) => history::run(snapshot, history).map(Output::Table),
        Statement::Verify(verify) => verify::run(snapshot, verify).map(Output::Table),
        Statement::ShowPage(key) => show::page(snapshot, key).map(Output::Table),
        Statement::Audit(audit) => audit::run(snapshot, audit).map(Output::Table),
        Statement::ShowGraph(as_of) => graph::run(snapshot.at(Some(as_of))?.as_ref()).map(Output::Table),
        Statement::Show(target) => show::run(snapshot, *target).map(Output::Table),
        Statement::Explain(explain) => explain::run(snapshot, explain).map(Output::Table),
        _ => Err(Error::ReadOnly),
    }
}

/// The items of an item listing, to be read one by one; `None` for other statements.
pub(crate) fn find_rows(snapshot: &Snapshot, statement: &Statement) -> Result<Option<Items>> {
    match statement {
        Statement::Find(find) => find::begin(snapshot, find),
        _ => Ok(None),
    }
}

fn run_all(transaction: &mut Transaction<'_>, script: &[Statement], limits: &Limits) -> Result<Vec<Output>> {
    script.iter().map(|statement| in_transaction(transaction, statement, limits)).collect()
}

/// Runs a statement of a script that writes.
fn in_transaction(transaction: &mut Transaction<'_>, statement: &Statement, limits: &Limits) -> Result<Output> {
    refill_memory()?;
    match statement {
        Statement::Explain(explain) if explain.statement.is_write() => {
            transaction.limited(limits, |transaction| explain::dry_run(transaction, explain)).map(Output::Table)
        }
        Statement::Recall(recall) if recall.has_receipt() => {
            Ok(Output::Answer(Box::new(transaction.recall_with_receipt(recall, limits)?)))
        }
        statement => match transaction.limited(limits, |transaction| write::run(transaction, statement))? {
            Some(table) => Ok(Output::Table(table)),
            None => read(&transaction.snapshot()?.with_limits(limits), statement),
        },
    }
}

/// A table with one row.
fn single(verb: &'static str, columns: &[&str], row: Vec<Option<Cell>>) -> Table {
    Table {
        verb,
        columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        rows: vec![row],
        ..Table::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NewRecall, NewTrace, Options, Pointer};
    use holotype_storage::vfs::SimVfs;
    use std::sync::Arc;
    use std::time::Duration;

    /// `count` calls that claim prices, and a fact that cites each.
    fn database(count: usize) -> Holotype {
        let database = Holotype::create_on(Arc::new(SimVfs::new()), "/db", Options::default()).unwrap();
        let mut transaction = database.begin().unwrap();
        for number in 0..count {
            let (key, text) = (format!("t{number}"), format!("flight UA{number}: price=${number}"));
            transaction.record(NewTrace::call("e", "search", text).key(&key)).unwrap();
            let fact = NewRecall::fact(format!("UA{number} costs ${number}"));
            transaction.remember(fact.from(Pointer::to_key(&key)).key(format!("r{number}"))).unwrap();
        }
        transaction.commit(Durability::Sync).unwrap();
        database
    }

    /// The number of rows after which a statement asks whether its time is over.
    fn ticks(database: &Holotype, statement: &str) -> u64 {
        let prepared = Prepared::parsed(statement).unwrap();
        let script = prepared.bind(&database.snapshot(), &Params::new()).unwrap();
        let limits = Limits::none().time(Duration::from_secs(3_600));
        let mut transaction = database.begin().unwrap();
        let ran = transaction.limited(&limits, |transaction| {
            let snapshot = transaction.snapshot()?;
            if write::run(transaction, &script[0])?.is_none() {
                read(&snapshot, &script[0])?;
            }
            Ok(snapshot.ticks())
        });
        ran.unwrap_or_else(|error| panic!("{statement}: {error}"))
    }

    #[test]
    fn a_statement_over_four_times_the_items_asks_four_times_as_often_whether_its_time_is_over() {
        let (few, many) = (database(100), database(400));
        let mut wrong = Vec::new();
        for statement in [
            "find traces where text matches '*zzz*' return key",
            "find recalls order by time desc return key, text limit 5",
            "count traces where text matches '*zzz*'",
            "prune traces to 10",
            "prune recalls to 10 redundant above 0.95",
            "consolidate calls into fact",
            "forget calls where text matches '*price*' because 'over'",
            "merge facts",
        ] {
            let (few, many) = (ticks(&few, statement), ticks(&many, statement));
            if few < 100 || many < 3 * few || many > 6 * few {
                wrong.push(format!("{statement}: {few} and {many} ticks"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
