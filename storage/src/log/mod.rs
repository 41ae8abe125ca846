//! The log: append-only transactions of records in segment files, hash-chained and recoverable.
//!
//! The log is the database; everything else in its directory can be rebuilt from it. A position ([`Lsn`]) is the offset
//! of a byte of the log, counted through all segment files from 0. Records are opaque here: a type, which the engine
//! defines, and a payload.
//!
//! ```text
//! record            one record, its checksum and hash                      crate::record
//! log_page          records in a page that a footer seals                  crate::log_page
//! segment           a file of pages
//! commit            the records that end a transaction and the log
//! chain             the inputs of all hashes                               crate::chain
//!
//! prepare           creates segment files before they are needed
//! draft             a transaction being built
//! writer            lays transactions out and writes them
//! group_commit      makes many commits durable by one fdatasync
//! reader, scanner   read one record; read and check all
//! payload_end       the end of a record's payload, through a map
//! open_files        the last used of the files
//! redaction         erasing records permanently
//! floor             the beginning of a truncated log
//! copy              a copy up to a commit, beside a writer
//! raw               the bytes of the files, for replicas
//! salvage           whatever can be read of a damaged log
//! recovery          opening: damage, unsynced tails, repairs               crate::recovery
//! follow            following the appends of another process
//! take_over         appending behind the appends of another process
//! leaves            records' hashes in order, for the tree over them       crate::proof
//! verify            full verification                                      crate::verify
//! ```
//!
//! 1. A transaction is in the log if its commit record is, which is written after all its records: in one write, within
//!    a segment.
//! 2. Transactions for which [`Log::sync_to`] returned survive any crash. Of later ones, a prefix of whole transactions
//!    survives.
//! 3. Bytes before [`Log::end`] are never rewritten, except to erase a record ([`Log::append_redaction`]).

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
mod payload_end;
mod position;
pub(crate) mod prepare;
mod raw;
pub(crate) mod reader;
mod redaction;
mod salvage;
pub(crate) mod scanner;
pub(crate) mod segment;
mod take_over;
pub(crate) mod tip;
mod transaction;
mod unit;
pub(crate) mod writer;

pub use draft::{Draft, Prepared};
pub use erasure::{Erase, Redaction};
pub use floor::{Floor, Retired};
pub use handle::{Log, Transactions};
pub use leaf::Leaf;
pub use leaves::{Leaves, StoredRecord};
pub use options::{LogLimits, LogOptions, OpenOptions};
pub use payload_end::{PayloadEnds, Place};
pub use position::{Checkpoint, CommitNo, Head, Lsn};
pub use raw::{Growth, Span, write_floor};
pub use reader::Payload;
pub use salvage::{SalvageReport, Salvaged, Unreadable};
pub use segment::{is_log_file_name, is_quarantine_name};
pub use take_over::Until;
pub use transaction::Transaction;
pub use writer::Appended;

pub(crate) use fault::damage_at;
pub(crate) use reader::SegmentTable;
