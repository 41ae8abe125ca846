//! Holotype's durable bytes: the hash-chained page log, the catalog, derived segment files.

pub mod catalog;
mod chain;
pub mod codec;
pub mod columns;
mod error;
#[cfg(test)]
mod format_doc;
pub mod lock;
pub mod log;
mod log_page;
pub mod overlay;
mod record;
mod recovery;
pub mod segment_file;
mod verify;
pub mod vfs;

pub use chain::Hash;
pub use error::{Damage, Error, Result};
pub use log_page::{MAX_PAGE_SIZE, MIN_PAGE_SIZE};
pub use record::{FIRST_RESERVED_KIND, FLAG_REDACTED, MAX_PAYLOAD, NewRecord, Record};
pub use recovery::{RecoveryReport, UnsyncedTail};
pub use verify::VerifyReport;
