//! How a log is created and opened.

use super::position::Lsn;

/// How a log is created.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The database's id.
    pub database: [u8; 16],
    /// Log page size in bytes, a power of two from 4 KiB to 1 MiB; fixed from then on.
    pub page_size: u32,
    /// The length of the first segment file in bytes; rounded up to whole pages, at least 4.
    pub first_segment_len: u64,
    /// Limits while it is open.
    pub limits: LogLimits,
}

impl LogOptions {
    /// The defaults: pages of 32 KiB, the first segment of 256 KiB.
    #[must_use]
    pub fn new(database: [u8; 16]) -> Self {
        Self { database, page_size: 32 << 10, first_segment_len: 256 << 10, limits: LogLimits::default() }
    }
}

/// Limits of an open log.
#[derive(Clone, Debug)]
pub struct LogLimits {
    /// Segments double up to this length in bytes; only a record that needs more makes a longer one.
    pub max_segment_len: u64,
    /// The most bytes one transaction's records may take.
    pub max_transaction_bytes: u64,
}

impl Default for LogLimits {
    /// Segments of 64 MiB, transactions of 64 MiB.
    fn default() -> Self {
        Self { max_segment_len: 64 << 20, max_transaction_bytes: 64 << 20 }
    }
}

/// How a log is opened.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// The database the log must belong to, where that is known.
    pub database: Option<[u8; 16]>,
    /// Change nothing: no recovery, no appending. Damage ends what is read and is told in the report.
    pub read_only: bool,
    /// A position known to have been durable, from the lock's status block or the catalog: its loss is damage. A
    /// read-only log ends there, or where a later commit that the log holds proves it durable. `Lsn(0)` says nothing.
    pub durable_hint: Option<Lsn>,
    /// No writer has the log open, so nobody takes back a commit that is not durable yet: a read-only log goes on to
    /// its end, whatever the hint says.
    pub alone: bool,
    /// The log was closed where the hint says and nobody has begun to write since: if it ends there, nothing is behind
    /// it, and nobody need look.
    pub closed_hint: bool,
    /// Limits while it is open.
    pub limits: LogLimits,
}
