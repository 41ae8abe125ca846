//! All file access goes through one trait, so that the real file system ([`OsVfs`]) and a simulated one that crashes,
//! fills up, fails and flips bits ([`SimVfs`]) run the same code above it.
//!
//! What every implementation promises (one conformance suite, `tests/it/vfs_conformance.rs`, holds them to it):
//!
//! 1. `read_at` and `write_at` are all or error: interrupted and short calls are continued below the trait. After a
//!    failed write any part of the range may have been written.
//! 2. Nothing is durable before a sync: `sync` for a file's bytes and length, `sync_dir` for its name. The
//!    exceptions are [`Vfs::create_dir`] and [`Vfs::rename_dir`], which return only after what they did is durable.
//! 3. `rename` replaces its target in one step: whoever opens the target sees the old file or the new one.
//! 4. A removed file stays readable through handles and mappings made before.
//! 5. Locks belong to the handle that took them, conflict with every other handle in this or another process, and end
//!    with the handle. They are advisory and may lie past the end of the file.
//! 6. A [`Mapping`] starts on a 64-byte boundary. Only files that are never written or shortened again may be mapped.
//! 7. `open` and `map` refuse a symbolic link as the last component of a path. Directories above may be links;
//!    [`refuse_symlink`] checks those inside a database.

mod io_retry;
mod os;
mod sim;

use std::fmt::Debug;
use std::io;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

pub use os::{OsVfs, UmaskVfs};
pub use sim::{Crash, CrashStates, Failure, Operation, Replay, SimVfs};

/// The alignment of a mapping's first byte, and so of everything laid out in a mapped file.
pub const MAPPING_ALIGNMENT: usize = 64;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpenMode {
    /// An existing file, for reading; writes to it are errors.
    Read,
    /// An existing file, for reading and writing.
    ReadWrite,
    /// A file that must not exist yet, for reading and writing.
    CreateNew,
}

/// True if a byte-range lock tolerates others of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// Held by any number of handles at once.
    Shared,
    /// Held by one handle alone.
    Exclusive,
}

/// A file system.
pub trait Vfs: Send + Sync + Debug + 'static {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// `NotFound` without the file (or its directory), `AlreadyExists` for [`OpenMode::CreateNew`] with it.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>>;

    /// Creates a directory and those above it, and returns once they are durable; what exists is left as it is. Returns
    /// whether it was this call, and no other, that created the directory.
    ///
    /// # Errors
    /// Any of the file system.
    fn create_dir(&self, path: &Path) -> io::Result<bool>;

    /// Moves a file, replacing what `to` named before, in one step.
    ///
    /// # Errors
    /// `NotFound` without `from`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Moves a directory with everything in it to a path where nothing is, in one step, and returns once that is
    /// durable. No file in it may be open for writing.
    ///
    /// # Errors
    /// `NotFound` without `from`, `AlreadyExists` if something is at `to`.
    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes the name of a file.
    ///
    /// # Errors
    /// `NotFound` without it.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory that nothing is in.
    ///
    /// # Errors
    /// `NotFound` without it, `DirectoryNotEmpty` with something in it.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// The names of the files (not the directories) in `dir`, ascending.
    ///
    /// # Errors
    /// `NotFound` without the directory.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Makes the names created, moved and removed in `dir` durable.
    ///
    /// # Errors
    /// Any of the file system. A failed sync must not be retried and believed.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Maps a whole file for reading; an empty file gives an empty mapping.
    ///
    /// # Errors
    /// `NotFound` without the file.
    fn map(&self, path: &Path) -> io::Result<Mapping>;

    /// True if `path` names a symbolic link, wherever that leads.
    ///
    /// # Errors
    /// `NotFound` without the path.
    fn is_symlink(&self, path: &Path) -> io::Result<bool>;

    /// True if `path` is known to be on a network file system, where locks and syncs cannot be trusted.
    ///
    /// # Errors
    /// `NotFound` without the path.
    fn is_network(&self, path: &Path) -> io::Result<bool>;
}

/// Refuses a directory inside a database that is a symbolic link: files would be written and removed elsewhere. A
/// directory that does not exist passes.
///
/// # Errors
/// `InvalidInput` for a symbolic link; any of the file system.
pub fn refuse_symlink(vfs: &dyn Vfs, dir: &Path) -> io::Result<()> {
    match vfs.is_symlink(dir) {
        Ok(true) => Err(symlink_refused()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn symlink_refused() -> io::Error {
    let what = "this is a symbolic link, which a database may not contain; move what it points to here";
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// An open file. Every method takes `&self`: positions are arguments, never state.
#[allow(clippy::len_without_is_empty)]
pub trait VfsFile: Send + Sync + Debug {
    /// Fills `buf` from `offset`.
    ///
    /// # Errors
    /// `UnexpectedEof` when the file ends first.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`, growing the file with zeros up to there if need be.
    ///
    /// # Errors
    /// Any of the file system, `StorageFull` among them.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// The length in bytes.
    ///
    /// # Errors
    /// Any of the file system.
    fn len(&self) -> io::Result<u64>;

    /// Cuts the file or grows it with zeros.
    ///
    /// # Errors
    /// Any of the file system.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes content and length durable (`fdatasync`).
    ///
    /// # Errors
    /// Any of the file system. What was not yet durable may then be lost although reads still show it: never retry a
    /// failed sync and believe the second.
    fn sync(&self) -> io::Result<()>;

    /// Locks `range` if no other handle's lock conflicts, and says whether it did. An end of `u64::MAX` means without
    /// end.
    ///
    /// # Errors
    /// `Unsupported` where the system has no byte-range locks.
    fn try_lock(&self, range: Range<u64>, kind: LockKind) -> io::Result<bool>;

    /// Locks `range`, waiting for conflicting locks to end.
    ///
    /// # Errors
    /// `Unsupported` where the system has no byte-range locks.
    fn lock(&self, range: Range<u64>, kind: LockKind) -> io::Result<()>;

    /// Ends the lock this handle took over exactly this range.
    ///
    /// # Errors
    /// Any of the file system.
    fn unlock(&self, range: Range<u64>) -> io::Result<()>;

    /// True if another handle's lock would refuse an exclusive lock of `range`.
    ///
    /// # Errors
    /// `Unsupported` where the system has no byte-range locks.
    fn is_locked(&self, range: Range<u64>) -> io::Result<bool>;
}

/// The bytes of a whole immutable file; clones share them.
#[derive(Clone)]
pub struct Mapping {
    inner: Inner,
}

#[derive(Clone)]
enum Inner {
    Mapped(Arc<os::MappedFile>),
    /// Bytes in memory; `start` moves the first one to the promised alignment.
    Owned {
        bytes: Arc<Vec<u8>>,
        start: usize,
    },
}

impl Mapping {
    /// Bytes in memory that behave as a mapped file's, for tests and for files built but not yet written.
    #[must_use]
    pub fn from_bytes(content: &[u8]) -> Self {
        // The vector never reallocates after this line, so the padding that aligns it now aligns it for good.
        let mut bytes = Vec::<u8>::with_capacity(content.len() + MAPPING_ALIGNMENT);
        let start = bytes.as_ptr().align_offset(MAPPING_ALIGNMENT);
        bytes.resize(start, 0);
        bytes.extend_from_slice(content);
        Self { inner: Inner::Owned { bytes: Arc::new(bytes), start } }
    }

    /// Has the system read these bytes from the disk, without waiting for them: who will touch several places soon asks
    /// for all of them first. It may know better, and where it cannot be told nothing happens.
    pub fn will_need(&self, range: Range<usize>) {
        if let Inner::Mapped(file) = &self.inner
            && !range.is_empty()
        {
            file.will_need(range);
        }
    }

    /// Gives back the memory that these bytes take in this process: who has read them from end to end and will not soon
    /// again says so. They stay what they are, and whoever reads them next has them from the file, or from where the
    /// system keeps what it read of it. Bytes in memory stay there.
    pub fn advise_dont_need(&self, range: Range<usize>) {
        if let Inner::Mapped(file) = &self.inner
            && !range.is_empty()
        {
            file.advise_dont_need(range);
        }
    }

    fn from_mapped(mapped: os::MappedFile) -> Self {
        Self { inner: Inner::Mapped(Arc::new(mapped)) }
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.inner {
            Inner::Mapped(mapped) => mapped,
            Inner::Owned { bytes, start } => &bytes[*start..],
        }
    }
}

impl Debug for Mapping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mapping").field("len", &self.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_from_bytes_are_aligned_and_whole() {
        for len in [0, 1, 63, 64, 65, 4097] {
            let content: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let mapping = Mapping::from_bytes(&content);
            assert_eq!(&*mapping, content);
            assert_eq!(mapping.as_ptr().align_offset(MAPPING_ALIGNMENT), 0);
            assert_eq!(&*mapping.clone(), content);
        }
    }
}
