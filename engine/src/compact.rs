//! Space and seals: derived files made smaller, the open log page closed.

use crate::database::Holotype;
use crate::rederive::rederive;
use crate::{Error, Result};

/// What compacting gained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactReport {
    /// The bytes of catalog and derived files before.
    pub before: u64,
    /// And after.
    pub after: u64,
}

impl Holotype {
    /// Makes one segment of each layer's vectors and one of its words, and writes the catalog anew without what it no longer
    /// needs. The log is only read. Writers wait meanwhile, readers do not.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; of the disk, and then everything is as it was.
    pub fn compact(&self) -> Result<CompactReport> {
        let inner = &self.inner;
        if inner.options.read_only {
            return Err(Error::ReadOnly);
        }
        let before = inner.files.derived_len()?;
        let mut writer = inner.lock_writer();
        if let Some(detail) = &writer.poisoned {
            return Err(Error::Poisoned { detail: detail.clone() });
        }
        let state = std::sync::Arc::clone(&writer.state);
        let fresh = rederive(inner, &mut writer, &state, true)?;
        inner.replace(&mut writer, fresh);
        drop(writer);
        inner.publish();
        Ok(CompactReport { before, after: inner.files.derived_len()? })
    }

    /// Seals the open log page, so that the chain of pages covers everything committed, and syncs.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; of the disk.
    pub fn seal(&self) -> Result<()> {
        if self.inner.options.read_only {
            return Err(Error::ReadOnly);
        }
        self.inner.log.seal()?;
        self.inner.note_durable()
    }
}
