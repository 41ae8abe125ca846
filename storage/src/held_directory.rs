//! The directory of a database, as its writers hold it.
//!
//! LOCK can be deleted ("a stale lock file"), or the whole folder replaced by a copy, beneath a process that writes.
//! Its locks are then on a file that no other process finds, and the next one to open the database would write beside
//! it.
//!
//! 1. Who writes has the directory locked: a second writer with another LOCK file waits or is refused.
//! 2. Who begins to write looks whether LOCK's path still names the file that it locked. If not, it stops: others may
//!    write to the file that is there now, or the folder there may be another state of the database.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::instance::Inode;
use crate::vfs::{Vfs, VfsDir, VfsFile};

/// The directory around a LOCK file that this handle has open.
#[derive(Debug)]
pub(crate) struct HeldDirectory {
    lock: PathBuf,
    /// LOCK as it was opened.
    inode: Inode,
    dir: Arc<dyn VfsDir>,
}

impl HeldDirectory {
    /// The directory of the LOCK file at `path`, which is open as `file`; `None` where directories cannot be locked.
    pub(crate) fn open(vfs: &dyn Vfs, path: &Path, file: &dyn VfsFile) -> Result<Option<Self>> {
        let parent = path.parent().unwrap_or(Path::new(""));
        let dir = vfs.open_dir(parent).map_err(Error::io(parent, "open"))?;
        let inode = file.inode().map_err(Error::io(path, "identify"))?;
        Ok(dir.zip(inode).map(|(dir, inode)| Self { lock: path.to_owned(), inode, dir }))
    }

    /// Locks the directory, unless another handle has it locked.
    pub(crate) fn try_lock(&self) -> Result<bool> {
        self.dir.try_lock().map_err(Error::io(&self.lock, "lock the directory of"))
    }

    /// Ends the lock. If that fails, it ends with this handle.
    pub(crate) fn unlock(&self) {
        let _ = self.dir.unlock();
    }

    /// Fails if LOCK was deleted or replaced.
    pub(crate) fn check(&self) -> Result<()> {
        check_named(self.dir.identify(&self.lock), self.inode, &self.lock)
    }
}

/// Fails unless `path` still names the file that was opened as `opened`.
pub(crate) fn check_named(named: io::Result<Option<Inode>>, opened: Inode, path: &Path) -> Result<()> {
    match named {
        Ok(Some(inode)) if inode != opened => Err(Error::Replaced { path: path.to_owned() }),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Error::Replaced { path: path.to_owned() }),
        Err(error) => Err(Error::io(path, "identify")(error)),
    }
}
