//! Reading the log of a database whose beginning was cut off: what was told again of it comes first.
//!
//! [`crate::retain`] tells the records again that made the state as of the commit from which on history is kept: each in a
//! record of its own ([`KeptRecord`]), so that an item is read where its record stands, and behind those of a commit what the
//! commit was ([`BeforeRecord`]). Taken out of their wrapping they are the transactions they came from, but for what nobody
//! asks for any more; applied in order, and then the log from that commit on, they give the state that the whole log gave.
//!
//! Where they stand in the log they change nothing but the places of items: a state that holds what they tell reads it there
//! from then on.

use crate::files::Files;
use crate::proof::tree;
use crate::record::{BeforeRecord, KeptRecord, Record, RestatedRecord, SubtreesRecord, Told};
use crate::state::State;
use crate::{Error, Result, tables};
use holotype_storage::log::{CommitNo, Floor, Head, Log, Lsn, OpenOptions, Transaction, Transactions};
use holotype_storage::{FLAG_REDACTED, Record as Stored};
use std::sync::Arc;

/// All transactions of a log: first those that were told again, then those that stand as they were written.
pub(crate) fn transactions(log: &Log) -> Result<impl Iterator<Item = Result<Transaction>> + use<>> {
    let told_again = log.floor().map(|floor| Retold::new(log, &floor)).transpose()?;
    let as_written = log.scan(Lsn(0))?.map(|transaction| transaction.map_err(Error::from));
    Ok(told_again.into_iter().flatten().chain(as_written))
}

/// What was told again in the log in a directory, where its beginning was cut off: read before the log is opened.
pub(crate) struct Base {
    log: Log,
    floor: Floor,
}

impl Base {
    /// Nothing when the log's beginning is there.
    pub(crate) fn open(files: &Files) -> Result<Option<Base>> {
        let Some(floor) = Log::floor_in(files.vfs.as_ref(), &files.log_dir())? else { return Ok(None) };
        let hint = Some(floor.until.position);
        let options = OpenOptions { read_only: true, durable_hint: hint, ..OpenOptions::default() };
        let ignore = &mut |_| Ok::<(), Error>(());
        let (log, report) = Log::open(Arc::clone(&files.vfs), &files.log_dir(), Some(floor.until), &options, ignore)?;
        match report.damage {
            Some(damage) => Err(holotype_storage::Error::Damaged(damage).into()),
            None => Ok(Some(Base { log, floor })),
        }
    }

    /// The transactions.
    pub(crate) fn transactions(&self) -> Result<impl Iterator<Item = Result<Transaction>> + use<>> {
        Retold::new(&self.log, &self.floor)
    }

    /// Puts the rows of the tree that no record is left for into a state, with how far they go.
    pub(crate) fn put_tree(&self, state: &mut State) -> Result<()> {
        for transaction in between(&self.log, &self.floor)? {
            for record in &transaction?.records {
                if let Some(Told { record: Record::Subtrees(SubtreesRecord { rows }), .. }) = Record::told(record)? {
                    rows.into_iter().for_each(|row| state.rows.put(tables::TREE, row.key, row.value));
                }
            }
        }
        tree::put_extent(state, self.floor.records, self.floor.leaves)
    }

    /// The log as far as what was told again goes.
    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// The commit from which on the log stands as it was written.
    pub(crate) fn head(&self) -> Head {
        self.floor.head
    }
}

/// The transactions that hold what was told again.
fn between(log: &Log, floor: &Floor) -> Result<impl Iterator<Item = Result<Transaction>> + use<>> {
    let last = floor.until.commit;
    let of_log = log.scan(floor.from.position)?.map(|transaction| transaction.map_err(Error::from));
    Ok(of_log.take_while(move |it| it.as_ref().map_or(true, |transaction| transaction.number <= last)))
}

/// Takes what was told again out of its wrapping.
struct Retold {
    log: Transactions,
    until: CommitNo,
    /// The transaction at hand, of which so many records are taken.
    wrapped: std::vec::IntoIter<Stored>,
    /// What stood in the transaction whose end is not met yet.
    records: Vec<Stored>,
    done: bool,
}

impl Retold {
    fn new(log: &Log, floor: &Floor) -> Result<Retold> {
        let log = log.scan(floor.from.position)?;
        let wrapped = Vec::new().into_iter();
        Ok(Retold { log, until: floor.until.commit, wrapped, records: Vec::new(), done: false })
    }

    fn next_transaction(&mut self) -> Result<Option<Transaction>> {
        loop {
            for stored in self.wrapped.by_ref() {
                match Record::told(&stored)?.map(|told| told.record) {
                    Some(Record::Kept(kept)) => self.records.push(unwrapped(kept, stored.lsn)?),
                    Some(Record::Before(before)) => {
                        return Ok(Some(ended(&before, std::mem::take(&mut self.records))));
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

impl Iterator for Retold {
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

/// The record that stands in a wrapping at `lsn`, as reading the log in order gives it.
pub(crate) fn unwrapped(kept: KeptRecord, lsn: Lsn) -> Result<Stored> {
    let KeptRecord { erased, kind, payload } = kept;
    let plain = Stored { lsn, kind, flags: 0, payload, hash: Default::default(), instead: None };
    if !erased {
        return Ok(plain);
    }
    let restated = RestatedRecord { lsn: lsn.0, erased, kind, payload: plain.payload };
    let restated = Record::Restated(restated);
    let payload = restated.encode()?;
    Ok(Stored { kind: restated.kind(), flags: FLAG_REDACTED, payload, instead: Some(lsn), ..plain })
}

/// The transaction of these records.
pub(crate) fn ended(before: &BeforeRecord, records: Vec<Stored>) -> Transaction {
    let number = CommitNo(before.number);
    let head = Head { position: Lsn(before.position), commit: number, hash: before.hash };
    Transaction { number, time_us: before.time, records, leaves: Vec::new(), head }
}
