//! A leaf of the tree over all records.

use super::position::Lsn;
use crate::chain::Hash;

/// A record's hash and position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The record's position.
    pub lsn: Lsn,
    /// A position after it at which reading may continue.
    pub end: Lsn,
    /// Its hash `r`.
    pub hash: Hash,
}
