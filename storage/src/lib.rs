//! Holotype's durable bytes: the hash-chained page log, the catalog and derived segment files.
//!
//! The log is the database ([`log`]): append-only transactions of opaque records, checksummed, hash-chained and
//! recovered after a crash. Everything else is derived from it and may be deleted: the [`catalog`] of rows as of a
//! checkpoint with the [`overlay`] of later changes, [`columns`] of scalars, and the frame of every other derived file
//! ([`segment_file`]). [`proof`] proves to others that a record is in the log. All file access goes through [`vfs`], so
//! everything also runs on a simulated disk that crashes. The crate knows nothing of items, vectors or words: the
//! engine gives records and rows their meaning.
//!
//! `docs/format.md` describes every byte.

pub mod buffered_hasher;
mod buffered_map;
pub mod catalog;
mod chain;
pub mod codec;
pub mod columns;
pub mod damage_note;
mod error;
pub mod features;
#[cfg(test)]
mod format_doc;
mod held_directory;
pub mod instance;
pub mod layered;
pub mod lock;
pub mod log;
mod log_page;
pub mod memory_reserve;
pub mod overlay;
pub mod priority;
pub mod proof;
mod record;
mod recovery;
pub mod segment_file;
mod small_bytes;
pub mod standing;
pub mod turn;
pub mod verified;
mod verify;
pub mod vfs;
mod zeros;

pub use buffered_map::{BufferedMap, Entries};
pub use chain::Hash;
pub use error::{Damage, Error, Result};
pub use log_page::{MAX_PAGE_SIZE, MIN_PAGE_SIZE};
pub use memory_reserve::MemoryReserve;
pub use record::{FIRST_RESERVED_KIND, FLAG_REDACTED, MAX_PAYLOAD, NewRecord, Record};
pub use recovery::{RecoveryReport, UnsyncedTail};
pub use small_bytes::SmallBytes;
pub use verify::{SoundSegment, VerifyReport};
