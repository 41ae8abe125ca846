//! Holotype's durable bytes: the hash-chained page log, the catalog, derived segment files.

pub mod catalog;
pub mod columns;
mod error;
pub mod lock;
pub mod log;
pub mod overlay;
pub mod segment_file;
pub mod vfs;

pub use error::{Damage, Error, Result};
