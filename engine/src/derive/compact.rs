//! Compacting derived files, and sealing the open log page.

use crate::core::handle::Holotype;
use crate::derive::rebuild_online::{Purpose, rebuild_online};
use crate::{Error, Result};

/// The sizes before and after compacting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactReport {
    /// The bytes of the catalog and the derived files before.
    pub before: u64,
    /// The bytes of the catalog and the derived files after.
    pub after: u64,
    /// True if the files were left as they were, because compacting would not have made them smaller.
    pub skipped: bool,
}

impl Holotype {
    /// Merges each layer's vectors into one segment and its words into another, and rewrites the catalog without free
    /// pages. The log is only read. Writers wait for the end; readers do not. Where the new files would not be smaller
    /// than the old ones, the old ones stay, unless one of them is damaged.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Poisoned`], and errors of the file system, which leave the old files in use.
    pub fn compact(&self) -> Result<CompactReport> {
        let core = &self.core;
        if core.options.read_only {
            return Err(Error::ReadOnly);
        }
        core.lock.check_process()?;
        core.refuse_within_transaction()?;
        let (_turn, mut writer) = core.lock_newest()?;
        let _maintenance = core.maintain_within(&mut writer)?;
        let before = core.files.derived_len()?;
        let state = std::sync::Arc::clone(&writer.state);
        let Some(fresh) = rebuild_online(core, &mut writer, &state, Purpose::Compact { before })? else {
            return Ok(CompactReport { before, after: before, skipped: true });
        };
        core.replace(&mut writer, fresh.state);
        drop(writer);
        core.publish();
        Ok(CompactReport { before, after: core.files.derived_len()?, skipped: false })
    }

    /// Closes the open log page with its hash, so that the chain of page hashes covers every commit, and syncs the log.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], and errors of the file system.
    pub fn seal(&self) -> Result<()> {
        if self.core.options.read_only {
            return Err(Error::ReadOnly);
        }
        self.core.lock.check_process()?;
        if !self.core.options.takes_turns() {
            self.core.log.seal()?;
            self.core.record_durable(self.core.published.load().head);
            return Ok(());
        }
        self.core.refuse_within_transaction()?;
        let (_turn, writer) = self.core.lock_newest()?;
        self.core.log.seal()?;
        self.core.record_durable(writer.state.head);
        drop(writer);
        Ok(())
    }
}
