//! A committed transaction, as reading the log gives it.

use super::leaf::Leaf;
use super::position::{CommitNo, Head};
use crate::record::Record;

/// A committed transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its number.
    pub number: CommitNo,
    /// Its clock, microseconds since the epoch; never smaller than that of the one before.
    pub time_us: i64,
    /// Its records in order, without the commit record.
    pub records: Vec<Record>,
    /// The hashes of all records since the transaction before, the log's own and its commit record among them.
    pub leaves: Vec<Leaf>,
    /// The head after it: what to checkpoint with.
    pub head: Head,
}
