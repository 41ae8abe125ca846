//! The end of the log with everything needed to append to it.

use super::commit::{Close, Commit};
use super::{CommitNo, Head, Lsn};
use crate::chain::{self, Frontier, Hash};

/// The state of the log after some record, which a scan computes and the writer extends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tip {
    /// The position after the last byte.
    pub(crate) position: u64,
    /// The chain before the page that contains `position`.
    pub(crate) chain: Hash,
    /// The records of that page so far.
    pub(crate) open: Frontier,
    /// The number of records in the log so far.
    pub(crate) records: u64,
    /// The number of the last commit, 0 before the first.
    pub(crate) commit: u64,
    /// Its clock, the smallest there is before the first.
    pub(crate) time_us: i64,
    /// The head it states, zero before the first.
    pub(crate) head: Hash,
    /// The end of that commit.
    pub(crate) commit_end: u64,
    /// The greatest position that a commit or close record states as durable.
    pub(crate) synced: u64,
    /// True if the last record is a close record.
    pub(crate) closed: bool,
}

impl Tip {
    /// The tip before the first record, which will be at `position`.
    pub(crate) fn genesis(database: &[u8; 16], position: u64) -> Self {
        Self {
            position,
            chain: chain::genesis(database),
            open: Frontier::default(),
            records: 0,
            commit: 0,
            time_us: i64::MIN,
            head: Hash::default(),
            commit_end: position,
            synced: 0,
            closed: false,
        }
    }

    /// The head that a commit record with these fields must state at this position.
    pub(crate) fn head_of(&self, commit: &Commit) -> Hash {
        chain::head(&self.chain, &self.open.root(), &commit.stated())
    }

    /// The number of records before the open page.
    pub(crate) fn first_of_page(&self) -> u64 {
        self.records.wrapping_sub(self.open.count())
    }

    /// Adds a record of this stored length.
    pub(crate) fn push(&mut self, r: Hash, stored_len: usize) {
        self.open.push(r);
        self.records = self.records.wrapping_add(1);
        self.position += stored_len as u64;
        self.closed = false;
    }

    /// Notes that the record just pushed was this commit.
    pub(crate) fn committed(&mut self, commit: &Commit) {
        self.commit = commit.number;
        self.time_us = commit.time_us;
        self.head = commit.head;
        self.commit_end = self.position;
        self.synced = self.synced.max(commit.synced);
    }

    /// Notes that the record just pushed was this close record.
    pub(crate) fn closed(&mut self, close: &Close) {
        self.synced = self.synced.max(close.synced);
        self.closed = true;
    }

    /// Notes that the open page was sealed with this chain; the next page begins at `end`.
    pub(crate) fn sealed(&mut self, end: u64, chain: Hash) {
        self.chain = chain;
        self.open.clear();
        self.position = end;
    }

    pub(crate) fn public_head(&self) -> Head {
        Head { position: Lsn(self.commit_end), commit: CommitNo(self.commit), hash: self.head }
    }
}
