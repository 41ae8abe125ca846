//! Reading a log whose beginning `retain` removed: the retained records come first.
//!
//! [`crate::maintain::retain`] appends the records that made the state as of the first kept commit again, each inside a
//! [`RetainedRecord`], and after those of a commit a [`RetainedCommitRecord`] with its number, clock and head.
//! Unwrapped they are the original transactions, less what is no longer needed. Applied in order, followed by the log
//! from the kept commit on, they give the state that the whole log gave.
//!
//! In log order, a retained record changes only the location of its item: a state that holds the item reads it from
//! there.

use crate::core::files::Files;
use crate::records::record::{
    EffectiveRecord, Record, ReplacementRecord, RetainedCommitRecord, RetainedRecord, SubtreesRecord,
};
use crate::records::tables;
use crate::state::State;
use crate::state::record_tree;
use crate::{Error, Result};
use holotype_storage::log::{CommitNo, Floor, Head, Log, Lsn, OpenOptions, Transaction, Transactions};
use holotype_storage::{FLAG_REDACTED, Record as Stored};
use std::sync::Arc;

/// All transactions of a log: the retained ones, then those behind them.
pub(crate) fn transactions(log: &Log) -> Result<impl Iterator<Item = Result<Transaction>> + use<>> {
    let retained = log.floor().map(|floor| RetainedTransactions::new(log, &floor)).transpose()?;
    let as_written = log.scan(Lsn(0))?.map(|transaction| transaction.map_err(Error::from));
    Ok(retained.into_iter().flatten().chain(as_written))
}

/// The retained part of a log whose beginning was removed. It is read before the log is opened.
pub(crate) struct RetainedBase {
    log: Log,
    floor: Floor,
}

impl RetainedBase {
    /// `None` if the log is complete.
    pub(crate) fn open(files: &Files) -> Result<Option<RetainedBase>> {
        let Some(floor) = Log::floor_in(files.vfs.as_ref(), &files.log_dir())? else { return Ok(None) };
        let hint = Some(floor.until.position);
        let options = OpenOptions { read_only: true, durable_hint: hint, ..OpenOptions::default() };
        let ignore = &mut |_| Ok::<(), Error>(());
        let (log, report) = Log::open(Arc::clone(&files.vfs), &files.log_dir(), Some(floor.until), &options, ignore)?;
        match report.damage {
            Some(damage) => Err(holotype_storage::Error::Damaged(damage).into()),
            None => Ok(Some(RetainedBase { log, floor })),
        }
    }

    /// The retained transactions.
    pub(crate) fn transactions(&self) -> Result<impl Iterator<Item = Result<Transaction>> + use<>> {
        RetainedTransactions::new(&self.log, &self.floor)
    }

    /// Adds the rows of the record tree over removed records to a state, with their extent.
    pub(crate) fn put_tree(&self, state: &mut State) -> Result<()> {
        for transaction in between(&self.log, &self.floor)? {
            for record in &transaction?.records {
                if let Some(EffectiveRecord { record: Record::Subtrees(SubtreesRecord { rows }), .. }) =
                    Record::effective(record)?
                {
                    rows.into_iter().for_each(|row| state.rows.put(tables::TREE, row.key, row.value));
                }
            }
        }
        record_tree::put_extent(state, self.floor.records, self.floor.leaves)
    }

    /// The log up to the end of its retained records.
    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// The head where the retained records end and the original log continues.
    pub(crate) fn head(&self) -> Head {
        self.floor.head
    }
}

/// The transactions that carry retained records.
fn between(log: &Log, floor: &Floor) -> Result<impl Iterator<Item = Result<Transaction>> + use<>> {
    let last = floor.until.commit;
    let of_log = log.scan(floor.from.position)?.map(|transaction| transaction.map_err(Error::from));
    Ok(of_log.take_while(move |it| it.as_ref().map_or(true, |transaction| transaction.number <= last)))
}

/// Unwraps retained records into their original transactions.
struct RetainedTransactions {
    log: Transactions,
    until: CommitNo,
    /// The records of the present carrier transaction that are still wrapped.
    wrapped: std::vec::IntoIter<Stored>,
    /// The unwrapped records of the transaction that is not complete yet.
    records: Vec<Stored>,
    done: bool,
}

impl RetainedTransactions {
    fn new(log: &Log, floor: &Floor) -> Result<RetainedTransactions> {
        let log = log.scan(floor.from.position)?;
        let wrapped = Vec::new().into_iter();
        Ok(RetainedTransactions { log, until: floor.until.commit, wrapped, records: Vec::new(), done: false })
    }

    fn next_transaction(&mut self) -> Result<Option<Transaction>> {
        loop {
            for stored in self.wrapped.by_ref() {
                match Record::effective(&stored)?.map(|told| told.record) {
                    Some(Record::Retained(kept)) => self.records.push(unwrap_retained(kept, stored.lsn)?),
                    Some(Record::RetainedCommit(before)) => {
                        return Ok(Some(retained_transaction(&before, std::mem::take(&mut self.records))));
                    }
                    _ => {}
                }
            }
            match self.log.next().transpose()?.filter(|transaction| transaction.number <= self.until) {
                Some(transaction) => self.wrapped = transaction.records.into_iter(),
                None => return Ok(None),
            }
        }
    }
}

impl Iterator for RetainedTransactions {
    type Item = Result<Transaction>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.next_transaction().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}

/// The record that a retained record at `lsn` carries, as a scan of the original log would give it.
pub(crate) fn unwrap_retained(kept: RetainedRecord, lsn: Lsn) -> Result<Stored> {
    let RetainedRecord { erased, kind, payload } = kept;
    let plain = Stored { lsn, kind, flags: 0, payload, hash: Default::default(), replacement: None };
    if !erased {
        return Ok(plain);
    }
    let restated = ReplacementRecord { lsn: lsn.0, erased, kind, payload: plain.payload };
    let restated = Record::Replacement(restated);
    let payload = restated.encode()?;
    Ok(Stored { kind: restated.kind(), flags: FLAG_REDACTED, payload, replacement: Some(lsn), ..plain })
}

/// The original transaction of these records.
pub(crate) fn retained_transaction(before: &RetainedCommitRecord, records: Vec<Stored>) -> Transaction {
    let number = CommitNo(before.number);
    let head = Head { position: Lsn(before.position), commit: number, hash: before.hash };
    Transaction { number, time_us: before.time, records, leaves: Vec::new(), head }
}
