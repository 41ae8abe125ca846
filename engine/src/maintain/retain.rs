//! Retaining history only from one commit on: live records are appended again, and older log files are removed.
//!
//! The present state does not change: numbers, keys, links, statuses and positions stay, and live items keep their
//! evidence verbatim. Only the past is removed: `as of` an earlier commit is [`Error::BeforeHistory`], and so are
//! proofs that need removed records. An item is *live* if it is active, or changed since that commit, or if a live item
//! cites it, derives from it or, for a theme, has it as a child. Other items are forgotten as by [`crate::Forget`], so
//! that their numbers and keys stay and their text is only in the archive.
//!
//! In this order:
//!
//! 1. The segments to be removed are copied to the archive, if one is given.
//! 2. Items that are not live are forgotten.
//! 3. All records that determine the state as of the commit are appended again ([`crate::derive::retained_log`]), in
//!    transactions of a few megabytes, between which others may write; also the hashes of subtrees whose records will
//!    be removed. Then a checkpoint is written.
//! 4. The file `log/floor` is written: from now on the log begins at the commit. This step takes effect atomically;
//!    retained records that no floor names are ignored.
//! 5. The segments before the floor are removed. After a crash the next opening does that.
//!
//! Cost: a pass over the log up to the commit, and a write of all live records, for the space of the removed segments.

use crate::core::handle::Holotype;
use crate::derive::checkpoint;
use crate::derive::retained_log;
use crate::model::edge::Edge;
use crate::model::item::ItemId;
use crate::options::Durability;
use crate::records::record::{Record, RetainedCommitRecord, RetainedRecord, SubtreesRecord};
use crate::state::State;
use crate::state::history::Subject;
use crate::state::record_tree;
use crate::write::forget::Forget;
use crate::{Error, Result};
use holotype_storage::lock::Lock;
use holotype_storage::log::{Head, Lsn, Transaction};
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// The approximate number of bytes that one transaction appends.
const PART_LEN: u64 = 4 << 20;
/// A log of so many bytes is written again even where no file of it goes: that costs little, and the history ends.
const SHORT_LOG: u64 = 256 << 10;
/// The number of rows of the tree in one record.
const ROWS_AT_ONCE: usize = 1024;

/// The result of a retention.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetainReport {
    /// The first commit of the retained history.
    pub since: u64,
    /// Records appended again.
    pub records: u64,
    /// Items that were not live and were forgotten.
    pub left: u64,
    /// Segment files removed.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes copied to the archive.
    pub archived: u64,
}

impl Holotype {
    /// Retains history from commit `since` on, and all live items. Copies the log files to be removed to an archive
    /// first, if one is given. Others may read and write meanwhile. Where no file can be removed and nothing is to be
    /// forgotten, nothing is done, unless the log is shorter than 256 KiB: the report then has no records, and history
    /// stays whole.
    ///
    /// # Errors
    /// [`Error::FutureCommit`], [`Error::BeforeHistory`]; [`Error::Cancelled`] when something was forgotten meanwhile:
    /// retain again; of the file system.
    pub fn retain(&self, since: u64, archive: Option<&Path>) -> Result<RetainReport> {
        let core = &self.core;
        if core.options.read_only {
            return Err(Error::ReadOnly);
        }
        core.lock.check_process()?;
        let _turn = core.retaining.lock().unwrap_or_else(PoisonError::into_inner);
        let mut report = RetainReport { since, ..RetainReport::default() };
        core.refuse_within_transaction()?;
        let _pinned = core.pin_turn()?;
        if core.options.takes_turns() {
            drop(core.lock_newest()?);
        }
        let state = core.published.load_full();
        if since > state.meta.commit {
            return Err(Error::FutureCommit { commit: since, newest: state.meta.commit });
        }
        self.check_history(since)?;
        if since == self.history_since() {
            return Ok(report);
        }
        checkpoint::run(core)?;
        let state = core.published.load_full();
        let head = self.head_of(&state, since)?;
        let records = core.log.records_before(head.position)?;
        let leaves = record_tree::extent_before(&state, records)?;
        let vfs = core.files.vfs.as_ref();
        let left = state.not_live(since)?;
        let is_short = core.log.end().0 <= SHORT_LOG;
        if left.is_empty() && !is_short && !core.log.may_retire(leaves.1, head)? {
            // To append everything again would only make the log longer.
            return Ok(report);
        }
        if let Some(dir) = archive {
            core.files.refuse_within(dir)?;
            report.archived = core.log.archive(vfs, dir, leaves.1, head)?;
        }
        if !left.is_empty() {
            self.forget(&left, &Forget::because(format!("not live at commit {since}, from which on history is kept")))?;
            report.left = left.len() as u64;
        }
        let from = core.log.head();
        report.records = self.append_retained(since, &state, leaves.0)?;
        let until = core.log.head();
        checkpoint::run(core)?;
        let unpinned = Lock::unpinned(vfs, &core.files.lock())?;
        let retired = core.log.retire(leaves, head, from, until)?;
        drop(unpinned);
        core.forget_past();
        (report.segments, report.bytes) = (retired.segments, retired.bytes);
        Ok(report)
    }

    /// The last commit that is older than a time in microseconds: to retain since it removes what was changed or erased
    /// before. At least the first commit of the history.
    ///
    /// # Errors
    /// When the catalog cannot be read.
    pub fn commit_older_than(&self, age_us: u64) -> Result<u64> {
        let before = self.core.now().saturating_sub_unsigned(age_us);
        let state = self.core.published.load_full();
        Ok(state.commit_at(before)?.max(self.history_since()))
    }

    /// The first commit of the retained history, for which `as of` answers. 0 if the log was never truncated.
    pub fn history_since(&self) -> u64 {
        self.core.log.floor().map_or(0, |floor| floor.head.commit.0)
    }

    fn check_history(&self, commit: u64) -> Result<()> {
        let since = self.history_since();
        if commit < since { Err(Error::BeforeHistory { what: format!("commit {commit}"), since }) } else { Ok(()) }
    }

    fn head_of(&self, state: &State, commit: u64) -> Result<Head> {
        let from = state.commit_row(commit)?.from;
        let transaction = self.core.log.scan(Lsn(from))?.next().transpose()?;
        let head = transaction.map(|transaction| transaction.head).filter(|head| head.commit.0 == commit);
        head.ok_or_else(|| Error::Corrupt { what: format!("no transaction {commit} stands after log position {from}") })
    }

    /// Appends again the records that determine the state as of a commit, and the rows of the tree over the first
    /// records.
    /// Returns the number of records appended, without those rows.
    fn append_retained(&self, since: u64, state: &State, records: u64) -> Result<u64> {
        let log = std::sync::Arc::clone(&self.core.log);
        let mut writer = RetainedWriter {
            database: self,
            forgets: self.core.forgets.load(Ordering::Acquire),
            part: Vec::new(),
            len: 0,
            count: 0,
        };
        for transaction in retained_log::transactions(&log)? {
            let transaction = transaction?;
            if transaction.number.0 > since {
                break;
            }
            writer.transaction(&transaction)?;
        }
        for rows in record_tree::rows_before(state, records)?.chunks(ROWS_AT_ONCE) {
            writer.put(Record::Subtrees(SubtreesRecord { rows: rows.to_vec() }), 0)?;
        }
        writer.commit(Durability::Sync)?;
        Ok(writer.count)
    }
}

/// Appends retained records, part by part.
struct RetainedWriter<'d> {
    database: &'d Holotype,
    /// The number of forget operations before the read: content that is forgotten meanwhile must not be appended.
    forgets: u64,
    part: Vec<Record>,
    len: u64,
    count: u64,
}

impl RetainedWriter<'_> {
    fn transaction(&mut self, transaction: &Transaction) -> Result<()> {
        for stored in &transaction.records {
            let Some(told) = Record::effective(stored)? else { continue };
            if let Record::Read(_)
            | Record::Replacement(_)
            | Record::Retained(_)
            | Record::RetainedCommit(_)
            | Record::Subtrees(_) = told.record
            {
                continue;
            }
            let kept = RetainedRecord { erased: told.erased, kind: told.record.kind(), payload: told.record.encode()? };
            let len = kept.payload.len() as u64;
            self.count += 1;
            self.put(Record::Retained(kept), len)?;
        }
        let Head { position, commit, hash } = transaction.head;
        let before = RetainedCommitRecord { number: commit.0, time: transaction.time_us, position: position.0, hash };
        self.put(Record::RetainedCommit(before), 0)
    }

    fn put(&mut self, record: Record, len: u64) -> Result<()> {
        // The overhead of a record.
        const FRAME_LEN: u64 = 80;
        let limit = PART_LEN.min(self.database.core.options.max_transaction_bytes / 2);
        if self.len > 0 && self.len + len + FRAME_LEN > limit {
            self.commit(Durability::Flush)?;
        }
        self.part.push(record);
        self.len += len + FRAME_LEN;
        Ok(())
    }

    fn commit(&mut self, durability: Durability) -> Result<()> {
        let mut transaction = self.database.begin()?;
        if self.database.core.forgets.load(Ordering::Acquire) != self.forgets {
            return Err(Error::Cancelled("something was forgotten meanwhile; retain again"));
        }
        for record in self.part.drain(..) {
            transaction.push(record)?;
        }
        self.len = 0;
        transaction.commit(durability)?;
        Ok(())
    }
}

impl State {
    /// The items with content that are not live, for changes since a commit.
    fn not_live(&self, since: u64) -> Result<Vec<ItemId>> {
        let count = self.bound() as usize;
        let mut live = vec![false; count];
        let mut gone = vec![false; count];
        let mut queue = Vec::new();
        for (id, (live, gone)) in (0..self.bound()).zip(live.iter_mut().zip(&mut gone)) {
            let attributes = self.attributes(ItemId(id))?;
            *gone = attributes.redacted;
            *live = attributes.active
                || attributes.commit > since
                || self.changed_in(Subject::Item, id)?.last().is_some_and(|commit| *commit > since);
            if *live {
                queue.push(ItemId(id));
            }
        }
        while let Some(id) = queue.pop() {
            let below = self.edges_out(id, None)?.into_iter().filter(|end| end.edge.is_lineage());
            let children = self.edges_in(id, Some(Edge::Parent))?;
            for end in below.chain(children) {
                if let Some(live) = live.get_mut(end.far.0 as usize)
                    && !std::mem::replace(live, true)
                {
                    queue.push(end.far);
                }
            }
        }
        let left = (0..self.bound()).zip(live.iter().zip(&gone)).filter(|(_, (live, gone))| !**live && !**gone);
        Ok(left.map(|(id, _)| ItemId(id)).collect())
    }
}
