//! The log that is replicated, as the protocol sees it.

use std::ops::ControlFlow;

use holotype_storage::log::{Floor, Growth, Head, Lsn, Span};

use crate::error::Result;

/// A log that grows.
pub trait Source {
    /// The database's id.
    fn database(&self) -> [u8; 16];

    /// The log page size in bytes.
    fn page_size(&self) -> u32;

    /// The beginning of the log, if it was truncated.
    fn floor(&self) -> Option<Floor>;

    /// Tells whether the log contains a commit.
    ///
    /// # Errors
    /// Those of the log.
    fn contains(&self, head: Head) -> Result<bool>;

    /// The files of the log up to a position.
    fn spans(&self, end: Lsn) -> Vec<Span>;

    /// The end of everything durable.
    fn end(&self) -> Lsn;

    /// Everything durable after a commit, in order, until the callback breaks.
    ///
    /// # Errors
    /// Those of the log.
    fn growth(&self, from: Option<Head>, step: &mut dyn FnMut(Growth) -> ControlFlow<()>) -> Result<()>;

    /// The bytes between two positions; none of their records is being erased meanwhile.
    ///
    /// # Errors
    /// Those of the log.
    fn read(&self, first: u64, end: u64) -> Result<Vec<u8>>;
}

/// The copy of a log that a follower extends.
pub trait Sink {
    /// Prepares the files that a manifest names.
    ///
    /// # Errors
    /// Those of the files.
    fn prepare(&mut self, manifest: &crate::manifest::Manifest) -> Result<()>;

    /// Writes bytes of the log from a position on.
    ///
    /// # Errors
    /// Those of the files.
    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<()>;

    /// Proves that the bytes are the log up to the manifest's head, and shows it to readers.
    ///
    /// # Errors
    /// Those of the log.
    fn show(&mut self, manifest: &crate::manifest::Manifest) -> Result<()>;
}
