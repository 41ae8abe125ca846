//! Positions, commit numbers and heads, which identify a place in the log and its history.

use std::fmt;

use crate::chain::Hash;
use crate::codec::{Decode, Encode};

/// A byte position in the log. Position 0 is the first segment's header, so no record is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a transaction, counted from 1; 0 is before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct CommitNo(pub u64);

impl fmt::Display for CommitNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A commit, whose hash covers the whole log up to it. A head that is kept outside the database detects a rollback,
/// which the chain alone cannot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
pub struct Head {
    /// The position after the commit record.
    pub position: Lsn,
    /// The commit.
    pub commit: CommitNo,
    /// The head hash that its commit record states.
    pub hash: Hash,
}

/// The commit up to which a reader has applied the log, and from which opening can continue.
pub type Checkpoint = Head;
