//! Bulk load: a new database is filled beside its place, and gets its name when all derived data exist.
//!
//! The load writes to the directory `NAME.loading`, an ordinary database that only this handle has open. Its
//! transactions need no sync of their own, its checkpoints are large, and its merges use all processors.
//! [`BulkLoad::finish`] ends the merges, syncs, and renames the directory to NAME: one step of the file system.
//!
//! 1. Before the rename nothing has the name: no reader, no `as of` and no backup sees a part of the load.
//! 2. A crash or a kill leaves `NAME.loading` with a whole prefix of the transactions; starting the same load again
//!    continues there. What that prefix is, `BulkLoad::database` tells by its head and its keys. An import skips lines
//!    that are there ([`import`](crate::interchange::import)).
//! 3. After the rename the database is durable and has no merge due.
//!
//! A database that has a name is not loaded in bulk: its readers would need batches that they do not see.

use crate::core::files::Files;
use crate::core::handle::Holotype;
use crate::options::Options;
use crate::{Error, Result};
use holotype_storage::vfs::{OpenMode, OsVfs, Vfs};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A checkpoint is due after this share of the memory limit, in bytes of log.
const CHECKPOINT_SHARE: u64 = 8;
/// Records of a checkpoint at most: their vectors wait in memory.
const CHECKPOINT_RECORDS: u64 = 40_000;

/// A database that is being loaded and has no name yet.
///
/// Dropping it keeps what was loaded, and the next [`Holotype::bulk_load`] of the same path continues.
#[derive(Debug)]
pub struct BulkLoad {
    database: Holotype,
    place: Files,
    dest: PathBuf,
    options: Options,
    resumed: bool,
}

impl Holotype {
    /// Starts loading a new database at an unused path, or continues a load that was interrupted.
    ///
    /// # Errors
    /// [`Error::Exists`] if something has the name; [`Error::Storage`] if another process is loading it; of the file
    /// system.
    pub fn bulk_load(path: impl AsRef<Path>, options: Options) -> Result<BulkLoad> {
        Holotype::bulk_load_on(Arc::new(OsVfs), path, options)
    }

    /// [`Holotype::bulk_load`] on a given file system.
    ///
    /// # Errors
    /// As [`Holotype::bulk_load`].
    pub fn bulk_load_on(vfs: Arc<dyn Vfs>, path: impl AsRef<Path>, options: Options) -> Result<BulkLoad> {
        let dest = path.as_ref().to_owned();
        if vfs.list(&dest).is_ok() || vfs.open(&dest, OpenMode::Read).is_ok() {
            return Err(Error::Exists { path: dest });
        }
        let place = Files::new(Arc::clone(&vfs), &loading_path(&dest));
        let resumed = place.exists()?;
        let database = if resumed {
            let database = Holotype::open_on(vfs, &place.dir, while_loading(&options))?;
            if database.head().commit.0 == 0 {
                // The crash came before the commit that creation ends with.
                database.set_up(&options)?;
            }
            database
        } else {
            Holotype::create_on(vfs, &place.dir, while_loading(&options))?
        };
        Ok(BulkLoad { database, place, dest, options, resumed })
    }
}

impl BulkLoad {
    /// The database that is loaded: write to it with [`Durability::None`](crate::Durability::None), which is fastest
    /// and loses nothing that a finished load has. It and its snapshots must be dropped before [`BulkLoad::finish`].
    pub fn database(&self) -> &Holotype {
        &self.database
    }

    /// True if this continues a load that was interrupted.
    pub fn is_resumed(&self) -> bool {
        self.resumed
    }

    /// The directory of the unfinished load.
    pub fn place(&self) -> &Path {
        &self.place.dir
    }

    /// Builds all derived data, makes everything durable, gives the database its name, and opens it.
    ///
    /// # Errors
    /// [`Error::Exists`] if something got the name meanwhile; of the file system. The load is kept then, and can be
    /// continued.
    pub fn finish(self) -> Result<Holotype> {
        let BulkLoad { database, place, dest, options, .. } = self;
        database.checkpoint()?;
        database.close()?;
        place.vfs.rename_dir(&place.dir, &dest).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => Error::Exists { path: dest.clone() },
            _ => Error::File { path: dest.clone(), source },
        })?;
        Holotype::open_on(Arc::clone(&place.vfs), &dest, options)
    }

    /// Removes what was loaded.
    ///
    /// # Errors
    /// Of the file system.
    pub fn discard(self) -> Result<()> {
        let BulkLoad { database, place, .. } = self;
        drop(database);
        place.remove_all()
    }
}

/// The directory in which a database is loaded.
fn loading_path(dest: &Path) -> PathBuf {
    let mut name = dest.file_name().unwrap_or_default().to_owned();
    name.push(".loading");
    dest.with_file_name(name)
}

/// The options while nobody reads: large checkpoints within the memory limit, merges on all processors.
fn while_loading(options: &Options) -> Options {
    let checkpoint_bytes = (options.memory_limit / CHECKPOINT_SHARE).max(options.checkpoint_bytes);
    Options {
        exclusive: true,
        read_only: false,
        checkpoint_bytes,
        checkpoint_records: options.checkpoint_records.max(CHECKPOINT_RECORDS),
        max_tail_bytes: options.max_tail_bytes.max(2 * checkpoint_bytes),
        background_threads: std::thread::available_parallelism().map_or(1, Into::into).max(options.background_threads),
        ..options.clone()
    }
}
