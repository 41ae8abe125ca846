//! Databases that were restored as of an earlier commit.
//!
//! The file `RESTORED` holds the line `commit N`. Such a database opens read-only, because its log goes on elsewhere
//! from there, and shows the state as of that commit. Its log may end later: it keeps erasures that came after.

use crate::core::files::Files;
use crate::core::handle::Holotype;
use crate::read::snapshot::Snapshot;
use crate::{Error, Result};
use holotype_storage::vfs::OpenMode;
use std::io;
use std::sync::Arc;

/// The file that says that a database follows a replica.
const FOLLOWS: &str = "FOLLOWS";

/// More than the file ever has.
const MAX_LEN: u64 = 64;

/// The commit whose state a database shows that was restored as of it; `None` for any other database.
pub(crate) fn commit(files: &Files) -> Result<Option<u64>> {
    let path = files.restored();
    let failed = |source| Error::File { path: path.clone(), source };
    let file = match files.vfs.open(&path, OpenMode::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    let mut bytes = vec![0; file.len().map_err(failed)?.min(MAX_LEN) as usize];
    file.read_at(&mut bytes, 0).map_err(failed)?;
    let commit =
        std::str::from_utf8(&bytes).ok().and_then(|text| text.trim_end().strip_prefix("commit ")?.parse().ok());
    let what = || format!("{}: expected a line \"commit N\"; restore the database again", path.display());
    commit.map(Some).ok_or_else(|| Error::Corrupt { what: what() })
}

/// Refuses to write to a database that follows a replica: its log is the replica's.
pub(crate) fn refuse_follower(files: &Files) -> Result<()> {
    let path = files.dir.join(FOLLOWS);
    match files.vfs.open(&path, OpenMode::Read) {
        Ok(_) => Err(Error::Follows { path: files.dir.clone() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(Error::File { path, source }),
    }
}

impl Snapshot {
    /// True if the log was replayed in memory, so that no derived file exists.
    pub(crate) fn is_replayed(&self) -> bool {
        self.core.options.read_only && self.state.rows.base().is_none()
    }

    /// The view of the newest state in a database that shows readers an earlier one; else the same view.
    pub(crate) fn of_newest(&self) -> Snapshot {
        if !self.core.options.read_only || !matches!(commit(&self.core.files), Ok(Some(_))) {
            return self.clone();
        }
        let newest = Arc::clone(&self.core.lock_writer().state);
        self.with_state(newest)
    }
}

impl Holotype {
    /// Shows readers the state after an earlier commit.
    pub(crate) fn show_past(&self, commit: u64) -> Result<()> {
        let core = &self.core;
        let newest = core.published.load_full();
        if commit < newest.meta.commit {
            core.published.store(core.past(&newest, commit)?);
        }
        Ok(())
    }

    /// The commit as of which the database was restored; `None` for a database that was not.
    ///
    /// # Errors
    /// When the file that says so cannot be read.
    pub fn restored_as_of(&self) -> Result<Option<u64>> {
        commit(&self.core.files)
    }
}
