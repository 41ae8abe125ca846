//! All file access goes through one trait, so that the real file system ([`OsVfs`]) and a simulated one that crashes,
//! fills up, fails and flips bits ([`SimVfs`]) run the same code above it.
//!
//! Every implementation guarantees the following, which one conformance suite tests (`tests/it/vfs_conformance.rs`):
//!
//! 1. `read_at` and `write_at` transfer all bytes or fail: interrupted and short calls are continued below the trait.
//!    After a failed write any part of the range may have been written.
//! 2. Nothing is durable before a sync: `sync` for a file's bytes and length, `sync_dir` for its name. The
//!    exceptions are [`Vfs::create_dir`] and [`Vfs::rename_dir`], which return only when their change is durable.
//! 3. `rename` replaces its target atomically: opening the target gives the old file or the new one.
//! 4. A removed file stays readable through existing handles and mappings.
//! 5. Locks belong to the handle that took them, conflict with every other handle in this or another process, and end
//!    with the handle. They are advisory and may lie past the end of the file.
//! 6. A [`Mapping`] starts on a 64-byte boundary. Only files that are never written or shortened again may be mapped;
//!    where another program does so nevertheless, lost pages read as zeros and [`Mapping::is_cut`] says so. Files that
//!    are still written may have a [`LiveMap`], whose bytes are only copied out.
//! 7. `open` and `map` refuse a symbolic link as the last component of a path. Directories above may be links;
//!    [`refuse_symlink`] checks those inside a database.

mod io_retry;
mod os;
mod sim;

use std::fmt::Debug;
use std::io;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use crate::instance::Inode;
pub use os::{OsVfs, UmaskVfs, cut_count, cut_files, map_large_allocations, open_file_limit, return_freed_memory};
pub use sim::{Crash, CrashStates, Failure, Operation, Replay, SimVfs};

/// The alignment of a mapping's first byte, on which layouts of mapped files rely.
pub const MAPPING_ALIGNMENT: usize = 64;

/// The mode of opening a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpenMode {
    /// An existing file, for reading; writes to it are errors.
    Read,
    /// An existing file, for reading and writing.
    ReadWrite,
    /// A new file, for reading and writing. It is an error if it exists.
    CreateNew,
}

/// The kind of a byte-range lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// Any number of handles may hold it at once.
    Shared,
    /// Only one handle may hold it.
    Exclusive,
}

/// A file system.
pub trait Vfs: Send + Sync + Debug + 'static {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// `NotFound` if the file (or its directory) is missing, `AlreadyExists` for [`OpenMode::CreateNew`] if it exists.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>>;

    /// Creates a directory and its missing parents, and returns once they are durable. Returns true if this call
    /// created the directory itself.
    ///
    /// # Errors
    /// Any error of the file system.
    fn create_dir(&self, path: &Path) -> io::Result<bool>;

    /// Renames a file atomically, replacing any file at `to`.
    ///
    /// # Errors
    /// `NotFound` if `from` is missing.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Renames a directory with its content atomically to an unused path, and returns once that is durable. No file in
    /// it may be open for writing.
    ///
    /// # Errors
    /// `NotFound` if `from` is missing, `AlreadyExists` if `to` exists.
    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes the name of a file.
    ///
    /// # Errors
    /// `NotFound` if it is missing.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotFound` if it is missing, `DirectoryNotEmpty` if it is not empty.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// The names of the files, without directories, in `dir`, ascending.
    ///
    /// # Errors
    /// `NotFound` if the directory is missing.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Makes created, renamed and removed names in `dir` durable.
    ///
    /// # Errors
    /// Any of the file system. A failed sync must not be retried and trusted.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Maps a whole file for reading; an empty file gives an empty mapping.
    ///
    /// # Errors
    /// `NotFound` if the file is missing.
    fn map(&self, path: &Path) -> io::Result<Mapping>;

    /// Maps a file of at least one byte that may be written meanwhile, but not shortened.
    ///
    /// # Errors
    /// `NotFound` if the file is missing.
    fn map_live(&self, path: &Path) -> io::Result<Arc<dyn LiveMap>> {
        Ok(Arc::new(ReadLive(self.open(path, OpenMode::Read)?)))
    }

    /// True if `path` is a symbolic link, to any target.
    ///
    /// # Errors
    /// `NotFound` if the path is missing.
    fn is_symlink(&self, path: &Path) -> io::Result<bool>;

    /// True if `path` is known to be on a network file system, where locks and syncs cannot be trusted.
    ///
    /// # Errors
    /// `NotFound` if the path is missing.
    fn is_network(&self, path: &Path) -> io::Result<bool>;

    /// The identity of the file that `path` names now; `None` where files have none.
    ///
    /// # Errors
    /// `NotFound` if the path is missing.
    fn identify(&self, _path: &Path) -> io::Result<Option<Inode>> {
        Ok(None)
    }

    /// The path, not relative to a directory of the process that may change.
    ///
    /// # Errors
    /// Of the file system, when the present directory is not known.
    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    /// Opens a directory, to be locked as a whole; `None` where directories cannot be locked.
    ///
    /// # Errors
    /// `NotFound` if the directory is missing.
    fn open_dir(&self, _dir: &Path) -> io::Result<Option<Arc<dyn VfsDir>>> {
        Ok(None)
    }
}

/// An open directory.
pub trait VfsDir: Send + Sync + Debug {
    /// Locks the directory exclusively, unless another handle has it locked. Returns true if it did.
    ///
    /// # Errors
    /// Any error of the file system.
    fn try_lock(&self) -> io::Result<bool>;

    /// Ends this handle's lock.
    ///
    /// # Errors
    /// Any error of the file system.
    fn unlock(&self) -> io::Result<()>;

    /// The identity of the file that `path` names now, as [`Vfs::identify`].
    ///
    /// # Errors
    /// `NotFound` if the path is missing.
    fn identify(&self, path: &Path) -> io::Result<Option<Inode>>;
}

/// Refuses a directory inside a database that is a symbolic link, through which files elsewhere would be written and
/// removed. A missing directory is accepted.
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

/// An open file. Every method takes `&self`: offsets are arguments, never state.
#[allow(clippy::len_without_is_empty)]
pub trait VfsFile: Send + Sync + Debug {
    /// Fills `buf` from `offset`.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends first.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`. A gap after the former end is filled with zeros.
    ///
    /// # Errors
    /// Any of the file system, `StorageFull` among them.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// The length in bytes.
    ///
    /// # Errors
    /// Any error of the file system.
    fn len(&self) -> io::Result<u64>;

    /// The identity of the file in its file system, which a copy does not have; `None` where there is none.
    ///
    /// # Errors
    /// Any error of the file system.
    fn inode(&self) -> io::Result<Option<Inode>> {
        Ok(None)
    }

    /// Truncates the file or extends it with zeros.
    ///
    /// # Errors
    /// Any error of the file system.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes content and length durable (`fdatasync`).
    ///
    /// # Errors
    /// Any error of the file system. Bytes that were not durable may then be lost although reads still show them: never
    /// retry a failed sync and trust the second.
    fn sync(&self) -> io::Result<()>;

    /// Locks `range` unless another handle's lock conflicts. Returns true if it did. An end of `u64::MAX` means no end.
    ///
    /// # Errors
    /// `Unsupported` if the system has no byte-range locks.
    fn try_lock(&self, range: Range<u64>, kind: LockKind) -> io::Result<bool>;

    /// Locks `range`, waiting for conflicting locks to end.
    ///
    /// # Errors
    /// `Unsupported` if the system has no byte-range locks.
    fn lock(&self, range: Range<u64>, kind: LockKind) -> io::Result<()>;

    /// Releases this handle's lock of exactly this range.
    ///
    /// # Errors
    /// Any error of the file system.
    fn unlock(&self, range: Range<u64>) -> io::Result<()>;

    /// True if another handle's lock conflicts with an exclusive lock of `range`.
    ///
    /// # Errors
    /// `Unsupported` if the system has no byte-range locks.
    fn is_locked(&self, range: Range<u64>) -> io::Result<bool>;
}

/// A map of a file that may be written meanwhile.
pub trait LiveMap: Send + Sync + Debug {
    /// Copies the bytes at `offset`. False if the file has no such bytes, or they cannot be read. A write to them
    /// beside the call may be seen in part.
    fn copy(&self, offset: u64, out: &mut [u8]) -> bool;

    /// Announces that bytes will be copied soon.
    fn prefetch(&self, _offset: u64, _len: usize) {}
}

/// A file that is read where it cannot be mapped.
#[derive(Debug)]
struct ReadLive(Arc<dyn VfsFile>);

impl LiveMap for ReadLive {
    fn copy(&self, offset: u64, out: &mut [u8]) -> bool {
        self.0.read_at(out, offset).is_ok()
    }
}

/// The bytes of a whole immutable file; clones share them.
#[derive(Clone)]
pub struct Mapping {
    inner: Inner,
}

#[derive(Clone)]
enum Inner {
    Mapped(Arc<os::MappedFile>),
    /// Bytes in memory; the content begins at `start`, where it is aligned.
    Owned {
        bytes: Arc<Vec<u8>>,
        start: usize,
    },
}

impl Mapping {
    /// A mapping of bytes in memory, for tests and for files that are not written yet.
    #[must_use]
    pub fn from_bytes(content: &[u8]) -> Self {
        // The vector never reallocates after this line, so the padding keeps the content aligned.
        let mut bytes = Vec::<u8>::with_capacity(content.len() + MAPPING_ALIGNMENT);
        let start = bytes.as_ptr().align_offset(MAPPING_ALIGNMENT);
        bytes.resize(start, 0);
        bytes.extend_from_slice(content);
        Self { inner: Inner::Owned { bytes: Arc::new(bytes), start } }
    }

    /// Asks the system to read these bytes ahead, without waiting for them. A caller that will read several places
    /// requests all of them first. The system may ignore the request.
    pub fn will_need(&self, range: Range<usize>) {
        if let Inner::Mapped(file) = &self.inner
            && !range.is_empty()
        {
            file.will_need(range);
        }
    }

    /// True if bytes of the file could not be read any more and count as zeros, because another program cut the file or
    /// its disk failed.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        match &self.inner {
            Inner::Mapped(file) => file.is_cut(),
            Inner::Owned { .. } => false,
        }
    }

    /// Releases the memory of these bytes in this process, for a caller that does not need them again soon. Their
    /// content is unchanged: the next read loads them from the system's cache or the file. No effect on a mapping of
    /// bytes in memory.
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
