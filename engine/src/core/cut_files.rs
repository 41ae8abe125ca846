//! Answers do not come from mapped files that another program cuts meanwhile.
//!
//! The storage layer reads lost pages of such a file as zeros and counts them. A statement that ran across that fails.
//! From the next one on the file counts as damaged: segments of vectors and words are skipped with a note and made again
//! from the log, and columns are an error until the database is opened again, which makes them again.

use crate::core::Core;
use crate::{Error, Result};
use holotype_storage::vfs;

impl Core {
    /// Runs what reads derived files, and fails if one of them was cut meanwhile.
    pub(crate) fn unless_cut<T>(&self, read: impl FnOnce() -> Result<T>) -> Result<T> {
        let before = vfs::cut_count();
        let done = read()?;
        if vfs::cut_count() == before {
            return Ok(done);
        }
        match vfs::cut_files().into_iter().find(|path| path.starts_with(&self.files.dir)) {
            Some(path) => {
                let what = "another program cut it while it was read".to_owned();
                Err(Error::Storage(holotype_storage::Error::DamagedFile { path, what }))
            }
            // A file of another database in this process.
            None => Ok(done),
        }
    }
}
