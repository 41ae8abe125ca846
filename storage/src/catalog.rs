//! The rows of the database as of the last checkpoint, in one redb file.
//!
//! The catalog is derived: every row comes from the log, and the engine rebuilds a missing or damaged
//! catalog. Only checkpoints write it, one redb transaction each, together with the position of the
//! log up to which the rows are complete ([`Applied`]).
//!
//! Two redb tables, keys and values plain bytes (blocks: see `catalog/blocks.rs`):
//!
//! | table | key | value |
//! |---|---|---|
//! | `blocks` | fence | the rows up to the fence; CRC32 |
//! | `meta` | `format` | version, u32: 1; compatible, read-compatible and incompatible features, u32 each; CRC32 |
//! | `meta` | `database` | database id, 16 bytes; CRC32 |
//! | `meta` | `applied`, `previous` | position u64, commit u64, head 32 bytes, further bytes; CRC32 |
//!
//! The CRC32 (little-endian, as every integer here) is over the redb table's first letter, the
//! length of the key (u32), the key and the value, so a value under another key does not match.
//!
//! 1. A checkpoint is atomic: rows and `applied` change together.
//! 2. Every block is checked on each read of a row in it. redb does not check its pages on ordinary reads.
//! 3. A file of up to [`CatalogOptions::check_len`] bytes is checked as a whole when it is opened, which also
//!    detects missing rows. In a longer one, damage to redb's own pages may remain undetected until
//!    [`Catalog::verify`].
//! 4. redb may panic on a damaged file, as it documents. Its panics are caught and become
//!    [`Error::DamagedFile`].
//! 5. A new catalog, and a packed one, gets its name when it is complete and contains its identity.
//!
//! **Processes.** redb runs in its `SingleWriter` mode. Its price is two-phase commit, which
//! `set_quick_repair` requires anyway: with it, opening after a crash does not walk the file. The
//! writer also locks a byte of ours. A reader that finds this byte free and the file small reads the
//! file into memory, checks it and if need be repairs it there. Any other reader opens the file in
//! place, beside the writer, and relies on the checksums of blocks; if a killed writer left a large file
//! in need of repair, the reader copies that too.
//!
//! The writer never reuses a page that a reader's snapshot needs: while a snapshot lives, redb holds a shared lock on a
//! byte that identifies the transaction it reads (from 2^62 on), and before the writer reuses a freed page it tests
//! which of these bytes are locked. So a snapshot costs the writer only the pages freed since.

mod backend;
mod blocks;
mod rows;

use std::fmt::Debug;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use redb::backends::InMemoryBackend;
use redb::{
    Builder, ConcurrencyMode, Database, DatabaseError, ReadOnlyDatabase, ReadTransaction, ReadableDatabase,
    ReadableTable, TableDefinition,
};

use self::backend::{FirstError, VfsBackend, WriterByte, copy_at_rest};
use self::blocks::{Block, Stopped};
pub(crate) use self::rows::BaseRows;
pub use self::rows::CatalogSnapshot;
use self::rows::{BytesTable, Snapshot};
use crate::error::{Error, Result};
use crate::features::{Access, Features, UPGRADE_OR_REBUILD};
use crate::log::{CommitNo, Lsn};
use crate::overlay::RowKey;
use crate::vfs::{OpenMode, Vfs, VfsFile};

/// The log position of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The end of the log: the rows contain everything committed before it, and nothing after.
    pub position: Lsn,
    /// The last commit before it.
    pub commit: CommitNo,
    /// The head hash as of that commit.
    pub head: [u8; 32],
    /// Further bytes, opaque to the catalog. The engine writes random ones, which tell checkpoints apart.
    pub blob: Vec<u8>,
}

/// Options for opening a catalog.
#[derive(Clone, Debug)]
pub struct CatalogOptions {
    /// The length of redb's page cache in bytes.
    pub cache_len: usize,
    /// A file up to this length is checked as a whole when it is opened.
    pub check_len: u64,
    /// The most bytes that [`CatalogSnapshot::derived`] should keep.
    pub derived_len: u64,
}

impl Default for CatalogOptions {
    fn default() -> Self {
        Self { cache_len: 32 << 20, check_len: 16 << 20, derived_len: 64 << 20 }
    }
}

/// An open catalog.
pub struct Catalog {
    place: Place,
    file: Arc<dyn VfsFile>,
    redb: Redb,
    derived_len: u64,
    /// The bytes of the blocks that this handle wrote.
    written: AtomicU64,
}

impl Catalog {
    /// Creates an empty catalog, which replaces any file at `path`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create(vfs: &dyn Vfs, path: &Path, database: [u8; 16], options: &CatalogOptions) -> Result<Self> {
        let catalog = Self::begin(vfs, path, database, options)?;
        catalog.put_in_place(vfs)?;
        Ok(catalog)
    }

    /// Creates an empty catalog under a temporary name. The file at `path` remains until [`Catalog::put_in_place`].
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn begin(vfs: &dyn Vfs, path: &Path, database: [u8; 16], options: &CatalogOptions) -> Result<Self> {
        let catalog = Self::open_writer(path, new_file(vfs, path)?, options)?;
        catalog.write(|transaction| {
            let mut meta = transaction.open_table(META)?;
            transaction.open_table(BLOCKS)?;
            put_meta(&mut meta, META_FORMAT, &encode_format(0))?;
            put_meta(&mut meta, META_DATABASE, &database)?;
            Ok(())
        })?;
        Ok(catalog)
    }

    /// Sets the incompatible features of the catalog: programs that do not know them refuse it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn set_incompatible(&self, features: u32) -> Result<()> {
        self.write(|transaction| {
            put_meta(&mut transaction.open_table(META)?, META_FORMAT, &encode_format(features))?;
            Ok(())
        })
    }

    /// Gives a catalog from [`Catalog::begin`] its name, replacing any file of that name.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn put_in_place(&self, vfs: &dyn Vfs) -> Result<()> {
        put_in_place(vfs, &self.place.path)
    }

    /// Removes a catalog for `path` that was begun but never put in place, if there is one.
    pub fn discard(vfs: &dyn Vfs, path: &Path) {
        // Best effort: the next `begin` removes it.
        let _ = vfs.remove(&crate::segment_file::temporary_name(path));
    }

    /// Creates a catalog of these rows under a temporary name, in a file of minimal length. See
    /// [`Catalog::put_in_place`].
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn begin_with<'r>(
        vfs: &dyn Vfs,
        path: &Path,
        database: [u8; 16],
        options: &CatalogOptions,
        rows: impl IntoIterator<Item = (&'r RowKey, &'r [u8])>,
        applied: &Applied,
    ) -> Result<Self> {
        let catalog = Self::begin(vfs, path, database, options)?;
        catalog.checkpoint(rows.into_iter().map(|(key, value)| (key.clone(), Some(value))), applied)?;
        // redb allocates ahead and truncates the file when it closes it.
        drop(catalog);
        let temporary = crate::segment_file::temporary_name(path);
        let file = vfs.open(&temporary, OpenMode::ReadWrite).map_err(Error::io(&temporary, "open"))?;
        Self::open_writer(path, file, options)
    }

    /// True if packing is worth its cost: this handle wrote a quarter of the file or more.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn is_pack_due(&self) -> Result<bool> {
        let len = self.file_len()?;
        Ok(len >= LEAST_TO_PACK && self.written.load(Ordering::Relaxed) >= len / 4)
    }

    /// Replaces the file by a copy without free pages: redb reuses pages that a checkpoint replaced, but a file that
    /// grew stays as long as its last page demands. This catalog goes on with the old file; open the new one after it.
    ///
    /// # Errors
    /// [`Error::DamagedFile`], [`Error::Io`].
    pub fn pack(&self, vfs: &dyn Vfs) -> Result<()> {
        let path = &self.place.path;
        let (blocks, meta) = self.tables()?;
        // Rows come in their order, so pages behind the last are not needed again.
        let options = CatalogOptions { cache_len: PACK_CACHE_LEN, ..CatalogOptions::default() };
        let packed = Self::open_writer(path, new_file(vfs, path)?, &options)?;
        packed.write(|transaction| {
            let mut to = transaction.open_table(META)?;
            for entry in meta.iter()? {
                let (key, stored) = entry?;
                to.insert(key.value(), stored.value())?;
            }
            let mut to = transaction.open_table(BLOCKS)?;
            for block in blocks.iter()? {
                let (fence, stored) = block?;
                if Block::open(BLOCKS_DOMAIN, fence.value(), stored.value()).is_none() {
                    return Err(Stopped::Damaged(fence.value().first().copied().unwrap_or_default()));
                }
                to.insert(fence.value(), stored.value())?;
            }
            Ok(())
        })?;
        // Closing cuts the file; it gets its name after that.
        drop(packed);
        put_in_place(vfs, path)
    }

    /// Opens a catalog: for writing, by one process at a time; or for reading, with or without a writer beside it. A
    /// reader changes nothing, not even to repair. A reader that may have copied the file must open the catalog again
    /// to see later checkpoints of a writer. Snapshots may outlive their catalog.
    ///
    /// # Errors
    /// [`Error::MissingFile`] or [`Error::DamagedFile`], after which [`Catalog::create`] makes a new
    /// one; [`Error::NewerFormat`], [`Error::WrongDatabase`], [`Error::Held`], [`Error::Io`].
    pub fn open(
        vfs: &dyn Vfs,
        path: &Path,
        database: [u8; 16],
        options: &CatalogOptions,
        access: Access,
    ) -> Result<Self> {
        let mode = if access == Access::Write { OpenMode::ReadWrite } else { OpenMode::Read };
        let file = vfs.open(path, mode).map_err(Error::derived_io(path, "open"))?;
        let catalog = match access {
            Access::Write => Self::open_writer(path, file, options)?,
            Access::Read => Self::open_reader(path, file, options)?,
        };
        catalog.check_identity(database, access)?;
        Ok(catalog)
    }

    /// The position of the log up to which the rows are complete; `None` before the first checkpoint.
    ///
    /// # Errors
    /// [`Error::DamagedFile`], [`Error::Io`].
    pub fn applied(&self) -> Result<Option<Applied>> {
        self.applied_under(META_APPLIED)
    }

    /// The position of the checkpoint before the last.
    ///
    /// # Errors
    /// [`Error::DamagedFile`], [`Error::Io`].
    pub fn previous(&self) -> Result<Option<Applied>> {
        self.applied_under(META_PREVIOUS)
    }

    /// Writes changed rows (`None`: deleted) and the new position in one durable transaction.
    ///
    /// # Errors
    /// [`Error::Io`], after which the catalog must be opened again; the old rows remain.
    /// [`Error::DamagedFile`] if rows in the same blocks as the changed ones are damaged.
    /// [`Error::ReadOnly`] for a catalog opened for reading.
    pub fn checkpoint<V: AsRef<[u8]>>(
        &self,
        changes: impl IntoIterator<Item = (RowKey, Option<V>)>,
        applied: &Applied,
    ) -> Result<()> {
        let changes = blocks::in_order(changes);
        self.write(|transaction| {
            let written = blocks::merge(&mut transaction.open_table(BLOCKS)?, BLOCKS_DOMAIN, &changes)?;
            self.written.fetch_add(written, Ordering::Relaxed);
            let mut meta = transaction.open_table(META)?;
            // Copied undecoded; only the checksum is computed again, since it covers the key.
            let last = meta
                .get(META_APPLIED)?
                .and_then(|stored| strip_crc(META_DOMAIN, META_APPLIED, stored.value()).map(<[u8]>::to_vec));
            if let Some(last) = last {
                put_meta(&mut meta, META_PREVIOUS, &last)?;
            }
            put_meta(&mut meta, META_APPLIED, &encode_applied(applied))?;
            Ok(())
        })
    }

    /// The present rows and their position; later checkpoints do not change them.
    ///
    /// # Errors
    /// [`Error::DamagedFile`], [`Error::Io`].
    pub fn snapshot(&self) -> Result<CatalogSnapshot> {
        let (blocks, meta) = self.tables()?;
        let applied = self.decode_meta(META_APPLIED, self.meta_in(&meta, META_APPLIED)?)?;
        Ok(CatalogSnapshot::new(Snapshot {
            place: self.place.clone(),
            file: Arc::clone(&self.file),
            blocks,
            applied,
            _keep: self.redb.keep(),
            derived: OnceLock::new(),
            derived_len: self.derived_len,
        }))
    }

    /// Reads and checks every row. Returns their number.
    ///
    /// # Errors
    /// [`Error::DamagedFile`] for the first fault.
    pub fn verify(&self) -> Result<u64> {
        self.previous()?;
        self.snapshot()?.verify(&mut |_| Ok(()))
    }

    /// The length of the file in bytes.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn file_len(&self) -> Result<u64> {
        self.file.len().map_err(Error::io(&self.place.path, "measure"))
    }

    /// Both tables in one transaction: a writer in another process may be writing a checkpoint.
    fn tables(&self) -> Result<(BytesTable, BytesTable)> {
        self.place.guard(|| {
            let transaction = self.redb.begin_read()?;
            Ok((transaction.open_table(BLOCKS)?, transaction.open_table(META)?))
        })
    }

    fn open_writer(path: &Path, file: Arc<dyn VfsFile>, options: &CatalogOptions) -> Result<Self> {
        let Some(writer) = WriterByte::take(&file).map_err(Error::io(path, "lock"))? else {
            return Err(Error::Held { path: path.to_owned(), pid: 0, command: String::new() });
        };
        let len = file.len().map_err(Error::io(path, "measure"))?;
        let mut builder = builder(options);
        builder.set_check_integrity_on_open(len > 0 && len <= options.check_len);
        let place = Place::new(path);
        let backend = VfsBackend::new(Arc::clone(&file), place.first_error.clone());
        let database = place.guard(|| Ok(builder.create_with_backend(backend)?))?;
        let redb = Redb::Writer(Arc::new(Writing { database, _byte: writer }));
        Ok(Self { place, file, redb, derived_len: options.derived_len, written: AtomicU64::new(0) })
    }

    fn open_reader(path: &Path, file: Arc<dyn VfsFile>, options: &CatalogOptions) -> Result<Self> {
        let place = Place::new(path);
        let copy = |limit| copy_at_rest(&*file, limit).map_err(Error::io(path, "read"));
        let redb = match copy(options.check_len)? {
            Some(copied) => open_copy(&place, copied, options, true)?,
            None => match open_in_place(&place, &file, options)? {
                Some(redb) => redb,
                // A killed writer left the file in need of repair, and no other writer has opened it. However
                // large it is, a copy costs less than reading the log from its beginning.
                None => match copy(u64::MAX)? {
                    Some(copied) => open_copy(&place, copied, options, false)?,
                    None => return Err(Error::Held { path: path.to_owned(), pid: 0, command: String::new() }),
                },
            },
        };
        Ok(Self { place, file, redb, derived_len: options.derived_len, written: AtomicU64::new(0) })
    }

    fn check_identity(&self, expected: [u8; 16], access: Access) -> Result<()> {
        let damaged = |what: &str| Error::damaged_file(&self.place.path, what);
        let format = self.meta(META_FORMAT)?.ok_or_else(|| damaged("it has no format version"))?;
        let (format, features) = decode_format(&format).ok_or_else(|| damaged("its format version is cut short"))?;
        if format > FORMAT {
            let what = format!("catalog format {format}, while {FORMAT} is the newest known; {UPGRADE_OR_REBUILD}");
            return Err(Error::NewerFormat { path: self.place.path.clone(), what });
        }
        features.check_derived(&self.place.path, access)?;
        let found = self.meta(META_DATABASE)?.ok_or_else(|| damaged("it has no database id"))?;
        let found = found.try_into().map_err(|_| damaged("its database id does not have 16 bytes"))?;
        if found != expected {
            return Err(Error::WrongDatabase { path: self.place.path.clone(), expected, found });
        }
        Ok(())
    }

    fn applied_under(&self, key: &'static [u8]) -> Result<Option<Applied>> {
        self.decode_meta(key, self.meta(key)?)
    }

    fn decode_meta(&self, key: &'static [u8], bytes: Option<Vec<u8>>) -> Result<Option<Applied>> {
        let Some(bytes) = bytes else {
            return Ok(None);
        };
        let cut = || Error::damaged_file(&self.place.path, format!("{} is cut short", key.escape_ascii()));
        decode_applied(&bytes).map(Some).ok_or_else(cut)
    }

    fn meta(&self, key: &'static [u8]) -> Result<Option<Vec<u8>>> {
        let table = self.place.guard(|| Ok(self.redb.begin_read()?.open_table(META)?))?;
        self.meta_in(&table, key)
    }

    fn meta_in(&self, table: &BytesTable, key: &'static [u8]) -> Result<Option<Vec<u8>>> {
        let stored = self.place.guard(|| Ok(table.get(key)?.map(|stored| stored.value().to_vec())))?;
        let Some(stored) = stored else {
            return Ok(None);
        };
        match strip_crc(META_DOMAIN, key, &stored) {
            Some(value) => Ok(Some(value.to_vec())),
            None => Err(Error::damaged_file(
                &self.place.path,
                format!("the checksum of {} does not match", key.escape_ascii()),
            )),
        }
    }

    /// Runs `change` in a durable transaction, which is rolled back on failure.
    fn write(&self, change: impl FnOnce(&redb::WriteTransaction) -> Result<(), Stopped>) -> Result<()> {
        let Redb::Writer(writing) = &self.redb else {
            return Err(Error::ReadOnly);
        };
        self.place.guard(|| {
            let mut transaction = writing.database.begin_write()?;
            transaction.set_quick_repair(true);
            match change(&transaction) {
                Ok(()) => Ok(Ok(transaction.commit()?)),
                Err(Stopped::Redb(error)) => Err(error),
                Err(Stopped::Damaged(table)) => Ok(Err(rows::damaged_rows(&self.place.path, table))),
            }
        })?
    }
}

impl Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog").field("path", &self.place.path).finish_non_exhaustive()
    }
}

const BLOCKS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("blocks");
const META: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("meta");
const BLOCKS_DOMAIN: u8 = b'b';
const META_DOMAIN: u8 = b'm';
const META_FORMAT: &[u8] = b"format";
const META_DATABASE: &[u8] = b"database";
const META_APPLIED: &[u8] = b"applied";
const META_PREVIOUS: &[u8] = b"previous";
const FORMAT: u32 = 1;
const FORMAT_LEN: usize = 16;

/// A shorter file is not packed: what it would save is not worth the syncs.
const LEAST_TO_PACK: u64 = 512 << 10;

/// The page cache of the copy while it is written.
const PACK_CACHE_LEN: usize = 1 << 20;

const CRC_LEN: usize = 4;

fn put_in_place(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    vfs.rename(&crate::segment_file::temporary_name(path), path).map_err(Error::io(path, "rename"))?;
    let directory = path.parent().unwrap_or(Path::new(""));
    vfs.sync_dir(directory).map_err(Error::io(directory, "sync"))
}

/// A new file under the temporary name, in place of one that was never put in place.
fn new_file(vfs: &dyn Vfs, path: &Path) -> Result<Arc<dyn VfsFile>> {
    let temporary = crate::segment_file::temporary_name(path);
    match vfs.remove(&temporary) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Error::io(&temporary, "remove")(source)),
        _ => vfs.open(&temporary, OpenMode::CreateNew).map_err(Error::io(&temporary, "create")),
    }
}

/// The writer's database. It stays open until its last snapshot is dropped, even after another catalog replaced it.
struct Writing {
    /// Dropped before the byte, so that a free byte means that no one writes the file.
    database: Database,
    _byte: WriterByte,
}

/// A redb database.
enum Redb {
    /// The writer's.
    Writer(Arc<Writing>),
    /// A reader's copy in memory.
    Copy(Arc<Database>),
    /// A reader's, beside a writer. Its snapshots do not need it.
    Reader(ReadOnlyDatabase),
}

impl Redb {
    fn begin_read(&self) -> Result<ReadTransaction, redb::Error> {
        Ok(match self {
            Self::Writer(writing) => writing.database.begin_read()?,
            Self::Copy(database) => database.begin_read()?,
            Self::Reader(database) => database.begin_read()?,
        })
    }

    fn keep(&self) -> Option<Arc<dyn Send + Sync>> {
        match self {
            Self::Writer(writing) => Some(Arc::clone(writing) as _),
            Self::Copy(database) => Some(Arc::clone(database) as _),
            Self::Reader(_) => None,
        }
    }
}

/// Opens a copy in memory, which redb may repair.
fn open_copy(place: &Place, copied: InMemoryBackend, options: &CatalogOptions, check: bool) -> Result<Redb> {
    let mut builder = builder(options);
    builder.set_concurrency_mode(ConcurrencyMode::ExclusiveWriter);
    builder.set_check_integrity_on_open(check);
    place.guard(|| Ok(Redb::Copy(Arc::new(builder.create_with_backend(copied)?))))
}

/// Opens a file for reading in place; `None` if it needs a repair first.
fn open_in_place(place: &Place, file: &Arc<dyn VfsFile>, options: &CatalogOptions) -> Result<Option<Redb>> {
    let backend = VfsBackend::new(Arc::clone(file), place.first_error.clone());
    place.guard(|| match builder(options).open_read_only_with_backend(backend) {
        Err(DatabaseError::RepairAborted) => Ok(None),
        opened => Ok(Some(Redb::Reader(opened?))),
    })
}

fn builder(options: &CatalogOptions) -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(options.cache_len);
    builder.set_concurrency_mode(ConcurrencyMode::SingleWriter);
    builder
}

/// The path of a catalog's file, and the first error of the file.
#[derive(Clone)]
struct Place {
    path: PathBuf,
    first_error: FirstError,
}

impl Place {
    fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), first_error: FirstError::default() }
    }

    /// Converts redb's errors and panics to errors of this crate; redb may panic on a damaged file.
    fn guard<T>(&self, call: impl FnOnce() -> Result<T, redb::Error>) -> Result<T> {
        // Unwind safe: the state that the call leaves is not used again, since after an error the catalog is reopened.
        match catch_unwind(AssertUnwindSafe(call)) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(redb::Error::PreviousIo)) => Err(from_redb(&self.path, self.first_error.again().into())),
            Ok(Err(error)) => Err(from_redb(&self.path, error)),
            Err(_) => Err(Error::damaged_file(&self.path, "redb cannot read it")),
        }
    }
}

fn from_redb(path: &Path, error: redb::Error) -> Error {
    match error {
        redb::Error::Io(source) if source.kind() == io::ErrorKind::UnexpectedEof => {
            Error::damaged_file(path, "it is cut short")
        }
        // The second kind means an offset that no file can have.
        redb::Error::Io(source)
            if matches!(source.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) =>
        {
            Error::damaged_file(path, source.to_string())
        }
        redb::Error::Io(source) => Error::io(path, "access")(source),
        redb::Error::DatabaseAlreadyOpen => Error::Held { path: path.to_owned(), pid: 0, command: String::new() },
        redb::Error::UpgradeRequired(version) => {
            let what = format!("redb file format {version}; {UPGRADE_OR_REBUILD}");
            Error::NewerFormat { path: path.to_owned(), what }
        }
        redb::Error::Unsupported => Error::io(path, "lock")(io::ErrorKind::Unsupported.into()),
        other => Error::damaged_file(path, other.to_string()),
    }
}

/// Version and features. This program sets only incompatible ones.
fn encode_format(incompatible: u32) -> [u8; FORMAT_LEN] {
    let mut bytes = [0; FORMAT_LEN];
    bytes[..4].copy_from_slice(&FORMAT.to_le_bytes());
    bytes[12..].copy_from_slice(&incompatible.to_le_bytes());
    bytes
}

fn decode_format(bytes: &[u8]) -> Option<(u32, Features)> {
    let bytes: &[u8; FORMAT_LEN] = bytes.try_into().ok()?;
    let [version, compatible, read_compatible, incompatible] =
        [0, 4, 8, 12].map(|at| u32::from_le_bytes(crate::log_page::field(bytes, at)));
    Some((version, Features { compatible, read_compatible, incompatible }))
}

/// The checksum that binds a value to its key.
fn crc(domain: u8, key: &[u8], value: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[domain]);
    hasher.update(&(key.len() as u32).to_le_bytes());
    hasher.update(key);
    hasher.update(value);
    hasher.finalize()
}

/// Appends the checksum to a value.
fn append_crc(domain: u8, key: &[u8], value: &mut Vec<u8>) {
    let crc = crc(domain, key, value);
    value.extend_from_slice(&crc.to_le_bytes());
}

/// The value without its checksum, if the checksum matches.
fn strip_crc<'a>(domain: u8, key: &[u8], stored: &'a [u8]) -> Option<&'a [u8]> {
    let (value, found) = stored.split_last_chunk::<CRC_LEN>()?;
    (crc(domain, key, value) == u32::from_le_bytes(*found)).then_some(value)
}

fn put_meta(
    meta: &mut redb::Table<'_, &'static [u8], &'static [u8]>,
    key: &'static [u8],
    value: &[u8],
) -> Result<(), redb::Error> {
    let mut stored = value.to_vec();
    append_crc(META_DOMAIN, key, &mut stored);
    meta.insert(key, &*stored)?;
    Ok(())
}

const APPLIED_POSITION: usize = 0;
const APPLIED_COMMIT: usize = APPLIED_POSITION + 8;
const APPLIED_HEAD: usize = APPLIED_COMMIT + 8;
const APPLIED_BLOB: usize = APPLIED_HEAD + 32;
const _: () = assert!(APPLIED_BLOB == 48);

fn encode_applied(applied: &Applied) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(APPLIED_BLOB + applied.blob.len());
    bytes.extend_from_slice(&applied.position.0.to_le_bytes());
    bytes.extend_from_slice(&applied.commit.0.to_le_bytes());
    bytes.extend_from_slice(&applied.head);
    bytes.extend_from_slice(&applied.blob);
    bytes
}

fn decode_applied(bytes: &[u8]) -> Option<Applied> {
    let (fixed, blob) = bytes.split_first_chunk::<APPLIED_BLOB>()?;
    Some(Applied {
        position: Lsn(u64::from_le_bytes(fixed[APPLIED_POSITION..APPLIED_COMMIT].try_into().ok()?)),
        commit: CommitNo(u64::from_le_bytes(fixed[APPLIED_COMMIT..APPLIED_HEAD].try_into().ok()?)),
        head: fixed[APPLIED_HEAD..APPLIED_BLOB].try_into().ok()?,
        blob: blob.to_vec(),
    })
}
