//! Recalls that write to the log: receipts and audited reads.

use super::Transaction;
use crate::read::answer::Answer;
use crate::read::limits::Limits;
use crate::read::snapshot::Snapshot;
use crate::records::record::Record;
use crate::write::receipt;
use crate::{RecallBuilder, Result, Roles, recall};
use holotype_query::plan::Recall;

impl Transaction<'_> {
    /// Answers a recall and stages its receipt. The answer includes earlier writes of this transaction, so the receipt
    /// is as of this transaction.
    pub(crate) fn recall_with_receipt(&mut self, asked: &Recall, limits: &Limits) -> Result<Answer> {
        self.received(asked, |snapshot| recall::run(&snapshot.with_limits(limits).metered(), asked))
    }

    /// Answers a recall, by roles where some are given, and stages its receipt.
    pub(crate) fn recall_with(&mut self, asked: &Recall, roles: Option<Roles<'_>>) -> Result<Answer> {
        self.received(asked, |snapshot| match roles {
            Some(roles) => recall::run_with_roles(&snapshot, asked, roles),
            None => recall::run(&snapshot, asked),
        })
    }

    fn received(&mut self, asked: &Recall, run: impl FnOnce(Snapshot) -> Result<Answer>) -> Result<Answer> {
        let is_alone = self.records.iter().all(|record| matches!(record, Record::Receipt(_) | Record::Read(_)));
        let mut answer = run(self.snapshot()?)?;
        if !is_alone && asked.clauses.as_of.is_none() {
            answer.commit = self.number();
        }
        let number = self.state.meta.receipts;
        self.push(Record::Receipt(receipt::receipt(number, asked, &answer)))?;
        answer.receipt = Some(receipt::id(number));
        Ok(answer)
    }

    /// Answers a recall, with a receipt if it asks for one.
    fn recall(&mut self, recall: &Recall) -> Result<Answer> {
        match recall.has_receipt() {
            true => self.recall_with_receipt(recall, &Limits::none()),
            false => recall::run(&self.snapshot()?, recall),
        }
    }

    /// Stages the audit record of a read.
    pub(crate) fn audit(&mut self, answer: &Answer) -> Result<()> {
        self.push(Record::Read(receipt::read(answer)))
    }
}

impl RecallBuilder<'_> {
    /// Answers the recall in a transaction, of which it sees the writes, and stores the receipt if one was asked for.
    ///
    /// # Errors
    /// As [`RecallBuilder::run`].
    pub fn run_in(self, transaction: &mut Transaction<'_>) -> Result<Answer> {
        let recall = self.plan()?;
        transaction.recall(&recall)
    }
}
