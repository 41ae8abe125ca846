//! Options for creating and opening a log.

use super::position::Lsn;

/// Options for creating a log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The database's id.
    pub database: [u8; 16],
    /// Log page size in bytes, a power of two from 4 KiB to 1 MiB. It cannot be changed later.
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
    /// Segments double in length up to 1 MiB, then up to a sixteenth of the log before them, and up to this many bytes;
    /// only a long record makes a longer segment.
    pub max_segment_len: u64,
    /// The greatest length of a transaction's records in bytes.
    pub max_transaction_bytes: u64,
}

impl Default for LogLimits {
    /// Segments of 64 MiB, transactions of 64 MiB.
    fn default() -> Self {
        Self { max_segment_len: 64 << 20, max_transaction_bytes: 64 << 20 }
    }
}

/// Options for opening a log.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// The database to which the log must belong, if known.
    pub database: Option<[u8; 16]>,
    /// Change nothing: no recovery, no appends. Reading ends at damage, which the report contains.
    pub read_only: bool,
    /// A position known to have been durable, from the lock's status block or the catalog: a log that ends before it is
    /// damaged. A read-only log ends there, or at a later position that the log itself proves durable. `Lsn(0)` means
    /// unknown.
    pub durable_hint: Option<Lsn>,
    /// No writer has the log open, so no commit can be undone: a read-only log is read to its end, regardless of the
    /// hint.
    pub alone: bool,
    /// The log was closed at the hint and no writer has started since: if it ends there, nothing is after it, and
    /// opening need not search for it.
    pub closed_hint: bool,
    /// The turn was given back at the hint with everything before it synced, and no handle died with it since. If the
    /// log ends there, opening has nothing to sync: a crash of the system may have left an old status block, but then
    /// all that can be read was on the disk.
    pub given_back: bool,
    /// Other handles append to the log, too, in turns ([`crate::turn`]): no segment is prepared ahead of its use.
    pub shared: bool,
    /// Limits while it is open.
    pub limits: LogLimits,
}
