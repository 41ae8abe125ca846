//! The bytes of a log's files, for replicas: which files there are, what they hold, and what grew since a commit.
//!
//! Everything before a commit is a prefix of the log: the same bytes with zeros behind them are a log that ends at that
//! commit. Only an erasure changes bytes of a prefix, and [`Log::growth`] names the records that are erased.
//!
//! 1. Bytes are read as they are in the files, without checks. The reader of a copy checks all of them.
//! 2. A record may be read while it is being erased. Pin the log ([`crate::lock::Lock::pin`]) to prevent that.

use std::ops::ControlFlow;
use std::path::Path;

use super::erasure::Erasure;
use super::fault::damage_at;
use super::floor::{FLOOR_LEN, Floor};
use super::handle::Log;
use super::position::{Checkpoint, Head, Lsn};
use super::scanner::Step;
use crate::chain::Hash;
use crate::error::{Error, Result};
use crate::recovery;
use crate::vfs::Vfs;

/// A file of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its segment number.
    pub number: u64,
    /// Its first position.
    pub first: Lsn,
    /// Its length in bytes.
    pub len: u64,
}

/// One step of a log's growth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Growth {
    /// A commit.
    Commit {
        /// The head after it.
        head: Head,
        /// Its clock, microseconds since the epoch.
        time_us: i64,
        /// The hashes of all records since the last commit, its own included: leaves of the tree over the log.
        leaves: Vec<Hash>,
        /// The records that it names to be erased: the position of each, and that after it.
        erases: Vec<(Lsn, Lsn)>,
    },
    /// The records that a commit named are erased.
    Erased {
        /// The commit.
        commit: u64,
        /// The position after the record that says so.
        end: Lsn,
    },
}

impl Log {
    /// The files that hold the log up to `end`, ascending.
    #[must_use]
    pub fn spans(&self, end: Lsn) -> Vec<Span> {
        let segments = self.table.all();
        let used = segments.iter().filter(|segment| segment.first < end.0);
        used.map(|segment| Span { number: segment.number, first: Lsn(segment.first), len: segment.len }).collect()
    }

    /// Fills `buf` with the bytes from a position on. They may belong to several files.
    ///
    /// # Errors
    /// [`Error::NoRecord`] for bytes that no file holds, [`Error::Io`], [`Error::Poisoned`].
    pub fn read_bytes(&self, from: Lsn, buf: &mut [u8]) -> Result<()> {
        self.flush()?;
        let (mut position, mut rest) = (from.0, buf);
        while !rest.is_empty() {
            let none = || Error::NoRecord { lsn: Lsn(position), why: "no segment holds it".into() };
            let segment = self.table.of(position).ok_or_else(none)?;
            let offset = position - segment.first;
            let len = segment.len.saturating_sub(offset).min(rest.len() as u64) as usize;
            if len == 0 {
                return Err(none());
            }
            let (here, behind) = rest.split_at_mut(len);
            segment.read(here, offset)?;
            (position, rest) = (position + len as u64, behind);
        }
        Ok(())
    }

    /// Calls back with everything after a commit, in order, up to the end of the log or until the callback breaks.
    /// Without a commit, from the beginning; in a log with a floor, from the floor.
    ///
    /// # Errors
    /// [`Error::CheckpointMismatch`] if `from` is not a commit of this log; [`Error::Damaged`], [`Error::Io`].
    pub fn growth(&self, from: Option<Checkpoint>, step: &mut dyn FnMut(Growth) -> ControlFlow<()>) -> Result<()> {
        let from = from.or(self.floor().map(|floor| floor.head));
        let segments = self.table.all();
        let limit = self.group.written();
        let mut scanner = recovery::enter(&self.geometry, &segments, from, limit, 0)?;
        loop {
            let grown = match scanner.step()? {
                Step::Transaction { transaction, erasures, .. } => Growth::Commit {
                    head: transaction.head,
                    time_us: transaction.time_us,
                    leaves: transaction.leaves.iter().map(|leaf| leaf.hash).collect(),
                    erases: erasures.iter().map(|erasure| self.range_of(erasure)).collect(),
                },
                Step::Redacted(commit) => Growth::Erased { commit, end: Lsn(scanner.tip().position) },
                Step::Closed | Step::Sealed | Step::Switched { .. } => continue,
                Step::Limit | Step::End => return Ok(()),
                Step::Fault(fault) => {
                    return Err(Error::Damaged(damage_at(&segments, self.geometry.page, fault)));
                }
            };
            if step(grown).is_break() {
                return Ok(());
            }
        }
    }
}

impl Log {
    /// The positions of a record that is to be erased. A long one ends with the pages that it has for itself.
    fn range_of(&self, erasure: &Erasure) -> (Lsn, Lsn) {
        let (page, len) = (self.geometry.page, erasure.stored_len());
        let alone = len > page.capacity();
        let stored = if alone { page.run_pages(len) * page.len() } else { len };
        (Lsn(erasure.position), Lsn(erasure.position + stored as u64))
    }
}

impl Floor {
    /// The bytes of the file that states this floor.
    #[must_use]
    pub fn to_bytes(&self, database: &[u8; 16]) -> Vec<u8> {
        self.encode(database).to_vec()
    }

    /// The floor that these bytes of a file state, and the id of its database; `None` for other bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<(Self, [u8; 16])> {
        let bytes: &[u8; FLOOR_LEN] = bytes.try_into().ok()?;
        Self::parse(bytes).ok()
    }
}

/// Writes the floor of a copy of a log whose files are in `dir`, durably.
///
/// # Errors
/// [`Error::Io`].
pub fn write_floor(vfs: &dyn Vfs, dir: &Path, floor: &Floor, database: &[u8; 16]) -> Result<()> {
    floor.write(vfs, dir, database)
}
