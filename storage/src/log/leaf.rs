//! A leaf of the tree over all records.

use super::position::Lsn;
use crate::chain::Hash;

/// A record's hash and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The record.
    pub lsn: Lsn,
    /// A position after it where reading may go on.
    pub end: Lsn,
    /// Its hash `r`.
    pub hash: Hash,
}
