//! The LOCK file of a database that is not open: whether it grew, and whether it is still the same directory.
//!
//! A program that watches thousands of databases cannot open each to learn that nothing happened. LOCK names the
//! durable position of the log and the random number of the directory ([`crate::lock`]), so one small read tells both.
//! No lock is taken.

use std::io;
use std::path::Path;

use crate::error::{Error, Result};
use crate::instance;
use crate::lock::read_status;
use crate::log::Lsn;
use crate::vfs::{OpenMode, Vfs};

/// Content of a LOCK file that changes with its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The log is known synced up to here; 0 if the file does not tell.
    pub durable: Lsn,
    /// The random number of the directory; `None` if no writer has opened it where it is.
    pub instance: Option<[u8; 16]>,
}

impl Standing {
    /// Reads the LOCK file at `path`; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn read(vfs: &dyn Vfs, path: &Path) -> Result<Option<Self>> {
        let file = match vfs.open(path, OpenMode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(path, "open")(error)),
        };
        let read = || Ok((read_status(&*file)?, instance::stated(&*file)?));
        let (status, instance) = read().map_err(Error::io(path, "read"))?;
        Ok(Some(Self { durable: status.map_or(Lsn(0), |status| status.durable), instance }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::Lock;
    use crate::vfs::OsVfs;

    #[test]
    fn it_is_what_the_writer_states_and_nothing_without_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        assert_eq!(Standing::read(&OsVfs, &path).unwrap(), None);
        let mut lock = Lock::writer(&OsVfs, &path).unwrap();
        lock.belongs_to([7; 16]).unwrap();
        lock.set_durable(Lsn(4096)).unwrap();
        let standing = Standing::read(&OsVfs, &path).unwrap().unwrap();
        assert_eq!(standing.durable, Lsn(4096));
        assert_eq!(standing.instance, lock.instance().map(|instance| instance.number));
        std::fs::write(&path, b"no lock").unwrap();
        let standing = Standing::read(&OsVfs, &path).unwrap();
        assert_eq!(standing, Some(Standing { durable: Lsn(0), instance: None }));
    }
}
