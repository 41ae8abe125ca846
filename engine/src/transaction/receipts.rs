//! Answers that leave something behind: receipts, and reads that are audited.

use super::Transaction;
use crate::answer::Answer;
use crate::limits::Limits;
use crate::record::Record;
use crate::{Result, recall, receipt};
use holotype_query::ast::Recall;

impl Transaction<'_> {
    /// Answers a recall and keeps a receipt of it. What the transaction wrote before is part of the answer, so the receipt is
    /// as of this transaction.
    pub(crate) fn recall_with_receipt(&mut self, asked: &Recall, limits: &Limits) -> Result<Answer> {
        let is_alone = self.records.iter().all(|record| matches!(record, Record::Receipt(_) | Record::Read(_)));
        let snapshot = self.snapshot()?.with_limits(limits);
        let mut answer = recall::run(&snapshot.metered(), asked)?;
        if !is_alone && asked.clauses.as_of.is_none() {
            answer.commit = self.number();
        }
        let number = self.state.meta.receipts;
        self.push(Record::Receipt(receipt::receipt(number, asked, &answer)))?;
        answer.receipt = Some(receipt::id(number));
        Ok(answer)
    }

    /// Notes in the log that something was read.
    pub(crate) fn audit(&mut self, answer: &Answer) -> Result<()> {
        self.push(Record::Read(receipt::read(answer)))
    }
}
