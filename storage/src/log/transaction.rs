//! A committed transaction, as read from the log.

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
    /// The leaves of all records since the previous transaction, including the log's own records and its commit record.
    pub leaves: Vec<Leaf>,
    /// The head after it, for a checkpoint.
    pub head: Head,
}
