//! The log: append-only transactions of records in segment files, hash-chained and recoverable.
//!
//! The log is the database; everything else in its directory can be made from it. A position ([`Lsn`]) is a byte of the
//! log, counted through all segment files from 0. Records are opaque here: a type, which is the engine's business, and
//! a payload.
//!
//! ```text
//! record            one record, its checksum and hash                      crate::record
//! log_page          records side by side in a page, sealed by a footer     crate::log_page
//! segment           a file of pages
//! commit            the records that end a transaction and the log
//! chain             what all the hashes are over                           crate::chain
//!
//! prepare           makes segment files before they are needed
//! draft             a transaction as it is written down
//! writer            lays transactions out and writes them
//! group_commit      makes many commits durable by one fdatasync
//! reader, scanner   read one record; read and check all
//! open_files        the last used of the files
//! redaction         erasing records for good
//! floor             where a log begins whose beginning was cut off
//! copy              a copy up to a commit, while others write
//! salvage           whatever can be read of a damaged log
//! recovery          what opening finds and does                            crate::recovery
//! follow            going on where another process appends
//! leaves            records' hashes in order, for the tree over them       crate::proof
//! verify            every check there is, over the whole log               crate::verify
//! ```
//!
//! 1. A transaction is in the log if its commit record is, and that is written after all its records: one write for all
//!    of them, within a segment.
//! 2. What [`Log::sync_to`] returned for survives any crash. What it has not returned for survives as a prefix of whole
//!    transactions.
//! 3. Bytes before [`Log::end`] are never written again, but to erase a record ([`Log::append_redaction`]).

pub(crate) mod commit;
mod copy;
mod draft;
pub(crate) mod erasure;
pub(crate) mod fault;
pub(crate) mod floor;
mod follow;
pub(crate) mod group_commit;
mod handle;
mod leaf;
mod leaves;
pub(crate) mod open_files;
mod options;
mod position;
pub(crate) mod prepare;
pub(crate) mod reader;
mod redaction;
mod salvage;
pub(crate) mod scanner;
pub(crate) mod segment;
pub(crate) mod tip;
mod transaction;
mod unit;
mod unit_hashes;
pub(crate) mod writer;

pub use draft::{Draft, Prepared};
pub use erasure::{Erase, Redaction};
pub use floor::{Floor, Retired};
pub use handle::{Log, Transactions};
pub use leaf::Leaf;
pub use leaves::{Leaves, StoredRecord};
pub use options::{LogLimits, LogOptions, OpenOptions};
pub use position::{Checkpoint, CommitNo, Head, Lsn};
pub use reader::Payload;
pub use salvage::{SalvageReport, Salvaged, Unreadable};
pub use segment::{is_log_file_name, is_quarantine_name};
pub use transaction::Transaction;
pub use writer::Appended;

pub(crate) use fault::damage_at;
pub(crate) use reader::SegmentTable;
