//! The real file system: positioned reads and writes, `fdatasync`, byte-range locks, memory maps.
//!
//! - Interrupted calls are repeated and short ones continued (see `io_retry`).
//! - Byte-range locks are those of redb's file backend (open-file-description locks on Linux and Apple systems, so that
//!   two handles in one process exclude each other and closing one does not end the other's; `LockFileEx` on Windows).
//! - Neither `open` nor `map` follows a symbolic link in the last component of a path, or waits for the other end of a
//!   pipe: a user who may write to a database directory cannot make this process overwrite a file elsewhere, or hang.
//! - New files have mode 0600 and new directories 0700: memories are private. [`UmaskVfs`] leaves the modes to the
//!   umask.
//! - A mapped file that another program cuts does not end the process ([`bus_error`]).
//! - The `unsafe` blocks of this crate map a file, copy from a map, release mapped pages and freed memory, and handle
//!   the signal of a cut file.
#![allow(unsafe_code)]

mod bus_error;
mod freed_memory;
mod live_map;

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::ops::{Bound, Deref, Range};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use memmap2::{Advice, Mmap, MmapOptions, UncheckedAdvice};
use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

pub use self::bus_error::{cut_count, cut_files};
pub use self::freed_memory::{map_large_allocations, return_freed_memory};

use self::bus_error::Watched;
use self::live_map::MappedLiveFile;
use super::io_retry::{read_whole, repeated, write_whole};
use super::{Inode, LiveMap, LockKind, Mapping, OpenMode, Vfs, VfsDir, VfsFile};

/// The files that this process may have open, at most; `None` without a limit.
#[must_use]
pub fn open_file_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

/// The operating system's files. Only the user may access files that it creates.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsVfs;

/// The operating system's files. The process's umask determines who may access files that it creates.
#[derive(Clone, Copy, Debug, Default)]
pub struct UmaskVfs;

/// The modes of new files and directories, before the umask applies.
#[derive(Clone, Copy, Debug)]
struct Modes {
    file: u32,
    dir: u32,
}

const PRIVATE: Modes = Modes { file: 0o600, dir: 0o700 };
const BY_UMASK: Modes = Modes { file: 0o666, dir: 0o777 };

impl Modes {
    fn open(self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        let mut options = OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => {}
            OpenMode::ReadWrite => {
                options.write(true);
            }
            OpenMode::CreateNew => {
                options.write(true).create_new(true);
            }
        }
        options.mode(self.file);
        let file = open_no_follow(&mut options, path)?;
        let locks = FileBackend::new(file.try_clone()?).map_err(io::Error::other)?;
        Ok(Arc::new(OsFile { file, locks }))
    }

    fn create_dir(self, path: &Path) -> io::Result<bool> {
        let path = or_current(path);
        if path.is_dir() {
            return Ok(false);
        }
        // A root has no parent, but it is a directory.
        let parent = path.parent().unwrap_or(Path::new(""));
        self.create_dir(parent)?;
        let created = match DirBuilder::new().mode(self.dir).create(path) {
            // Another process created it meanwhile.
            Err(_) if path.is_dir() => false,
            other => other.map(|()| true)?,
        };
        OsVfs.sync_dir(parent)?;
        Ok(created)
    }
}

impl Vfs for OsVfs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        PRIVATE.open(path, mode)
    }

    fn create_dir(&self, path: &Path) -> io::Result<bool> {
        PRIVATE.create_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        repeated(|| std::fs::rename(from, to))
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        // A rename would replace an empty directory of someone else.
        match std::fs::symlink_metadata(to) {
            Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) => {}
        }
        repeated(|| std::fs::rename(from, to))?;
        let parent = |path: &Path| path.parent().unwrap_or(Path::new("")).to_owned();
        self.sync_dir(&parent(to))?;
        if parent(from) == parent(to) { Ok(()) } else { self.sync_dir(&parent(from)) }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        repeated(|| std::fs::remove_file(path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        repeated(|| std::fs::remove_dir(path))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(or_current(dir))? {
            let entry = entry?;
            // None of our files has a name that is not UTF-8.
            if let (false, Ok(name)) = (entry.file_type()?.is_dir(), entry.file_name().into_string()) {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = repeated(|| File::open(or_current(dir)))?;
        repeated(|| dir.sync_all())
    }

    fn map(&self, path: &Path) -> io::Result<Mapping> {
        let file = open_no_follow(OpenOptions::new().read(true), path)?;
        let len = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        // The system refuses to map an empty file.
        if len == 0 {
            return Ok(Mapping::from_bytes(&[]));
        }
        // A page fault in a mapping may read megabytes around the page, depending on the system's read-ahead. Opening
        // a file needs only its head, so a small read brings that into the cache first.
        let mut head = [0; 4096];
        repeated(|| file.read_at(&mut head[..len.min(4096)], 0))?;
        // SAFETY: the mapping is read-only and exactly as long as the file. The callers of `map` uphold its contract:
        // only immutable derived files are mapped, files that are written under another name, renamed into place, and
        // from then on only ever removed, never written or shortened; and the file that a merge still writes, which
        // grows behind the mapping, and of whose mapped bytes none is written while the mapping is there.
        let map = unsafe { MmapOptions::new().len(len).map(&file)? };
        let watched = Watched::new(path, map.as_ptr() as usize, len);
        Ok(Mapping::from_mapped(MappedFile { watched, map }))
    }

    fn map_live(&self, path: &Path) -> io::Result<Arc<dyn LiveMap>> {
        Ok(Arc::new(MappedLiveFile::open(path)?))
    }

    fn is_symlink(&self, path: &Path) -> io::Result<bool> {
        Ok(std::fs::symlink_metadata(path)?.is_symlink())
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn is_network(&self, path: &Path) -> io::Result<bool> {
        // The magic numbers of statfs(2): NFS, SMB, CIFS, SMB2, AFS, Coda, NCP, Ceph, 9p.
        const NETWORK: [u32; 9] =
            [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x5346_414f, 0x7375_7245, 0x564c, 0x00c3_6400, 0x0102_1997];
        // The type is as wide as a machine word, but the magic numbers all have 32 bits.
        let kind = rustix::fs::statfs(path)?.f_type as u32;
        Ok(NETWORK.contains(&kind))
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn is_network(&self, path: &Path) -> io::Result<bool> {
        path.metadata().map(|_| false)
    }

    fn identify(&self, path: &Path) -> io::Result<Option<Inode>> {
        Ok(Some(inode(&std::fs::symlink_metadata(path)?)))
    }

    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        std::path::absolute(path)
    }

    fn open_dir(&self, dir: &Path) -> io::Result<Option<Arc<dyn VfsDir>>> {
        Ok(Some(Arc::new(OsDir(repeated(|| File::open(or_current(dir)))?))))
    }
}

impl Vfs for UmaskVfs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        BY_UMASK.open(path, mode)
    }

    fn create_dir(&self, path: &Path) -> io::Result<bool> {
        BY_UMASK.create_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsVfs.rename(from, to)
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsVfs.rename_dir(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        OsVfs.remove(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        OsVfs.remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        OsVfs.list(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        OsVfs.sync_dir(dir)
    }

    fn map(&self, path: &Path) -> io::Result<Mapping> {
        OsVfs.map(path)
    }

    fn map_live(&self, path: &Path) -> io::Result<Arc<dyn LiveMap>> {
        OsVfs.map_live(path)
    }

    fn is_symlink(&self, path: &Path) -> io::Result<bool> {
        OsVfs.is_symlink(path)
    }

    fn is_network(&self, path: &Path) -> io::Result<bool> {
        OsVfs.is_network(path)
    }

    fn identify(&self, path: &Path) -> io::Result<Option<Inode>> {
        OsVfs.identify(path)
    }

    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        OsVfs.absolute(path)
    }

    fn open_dir(&self, dir: &Path) -> io::Result<Option<Arc<dyn VfsDir>>> {
        OsVfs.open_dir(dir)
    }
}

/// A directory, locked by `flock`: the lock is of the directory itself, whatever files are deleted or replaced in it.
#[derive(Debug)]
struct OsDir(File);

impl VfsDir for OsDir {
    fn try_lock(&self) -> io::Result<bool> {
        loop {
            match flock(&self.0, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(true),
                Err(Errno::WOULDBLOCK) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn unlock(&self) -> io::Result<()> {
        Ok(flock(&self.0, FlockOperation::Unlock)?)
    }

    fn identify(&self, path: &Path) -> io::Result<Option<Inode>> {
        OsVfs.identify(path)
    }
}

fn inode(found: &Metadata) -> Inode {
    let since_1970 = found.created().ok().and_then(|created| created.duration_since(UNIX_EPOCH).ok());
    let created_us = since_1970.and_then(|time| i64::try_from(time.as_micros()).ok()).unwrap_or(0);
    Inode { number: found.ino(), created_us }
}

/// Opens a file that is not behind a symbolic link, without waiting for the other end of a pipe.
fn open_no_follow(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
    repeated(|| options.open(path)).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::LOOP | Errno::MLINK) => super::symlink_refused(),
        _ => error,
    })
}

/// A mapped file of at least one byte. It starts at a page boundary, which satisfies the guaranteed alignment.
pub(super) struct MappedFile {
    /// Declared first, so dropped first: see invariant 2 of [`bus_error`].
    watched: Watched,
    map: Mmap,
}

impl MappedFile {
    pub(super) fn is_cut(&self) -> bool {
        self.watched.is_cut()
    }

    pub(super) fn will_need(&self, range: Range<usize>) {
        let range = self.within(range);
        let _ = self.map.advise_range(Advice::WillNeed, range.start, range.len());
    }

    pub(super) fn advise_dont_need(&self, range: Range<usize>) {
        let range = self.within(range);
        // SAFETY: this must not change the content of memory. A shared mapping reloads released pages from the file,
        // and the file never changes, which the callers of `map` uphold; zeros that replaced a lost page stay zeros.
        let _ = unsafe { self.map.unchecked_advise_range(UncheckedAdvice::DontNeed, range.start, range.len()) };
    }

    fn within(&self, range: Range<usize>) -> Range<usize> {
        range.start.min(self.map.len())..range.end.min(self.map.len())
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

#[derive(Debug)]
struct OsFile {
    file: File,
    /// A second descriptor of the same open file: its locks belong to this handle and end when both are closed.
    locks: FileBackend,
}

impl VfsFile for OsFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        read_whole(buf, offset, |buf, offset| self.file.read_at(buf, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        write_whole(bytes, offset, |bytes, offset| self.file.write_at(bytes, offset))
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn inode(&self) -> io::Result<Option<Inode>> {
        Ok(Some(inode(&self.file.metadata()?)))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        repeated(|| self.file.set_len(len))
    }

    fn sync(&self) -> io::Result<()> {
        repeated(|| self.file.sync_data())
    }

    fn try_lock(&self, range: Range<u64>, kind: LockKind) -> io::Result<bool> {
        let (start, end) = bounds(&range);
        repeated(|| match kind {
            LockKind::Shared => self.locks.try_lock_shared_range(start, end).map_err(lock_error),
            LockKind::Exclusive => self.locks.try_lock_range(start, end).map_err(lock_error),
        })
    }

    fn lock(&self, range: Range<u64>, kind: LockKind) -> io::Result<()> {
        let (start, end) = bounds(&range);
        repeated(|| match kind {
            LockKind::Shared => self.locks.lock_shared_range(start, end).map_err(lock_error),
            LockKind::Exclusive => self.locks.lock_range(start, end).map_err(lock_error),
        })
    }

    fn unlock(&self, range: Range<u64>) -> io::Result<()> {
        let (start, end) = bounds(&range);
        repeated(|| self.locks.unlock_range(start, end).map_err(lock_error))
    }

    fn is_locked(&self, range: Range<u64>) -> io::Result<bool> {
        let (start, end) = bounds(&range);
        self.locks.query_lock_range(start, end).map_err(lock_error)
    }
}

/// The current directory for an empty path, which is the parent of a bare file name.
fn or_current(dir: &Path) -> &Path {
    if dir.as_os_str().is_empty() { Path::new(".") } else { dir }
}

/// A lock range for the backend, always the same bounds for the same range, since the backend compares them.
fn bounds(range: &Range<u64>) -> (Bound<u64>, Bound<u64>) {
    let end = match range.end {
        u64::MAX => Bound::Unbounded,
        end => Bound::Included(end.saturating_sub(1)),
    };
    (Bound::Included(range.start), end)
}

fn lock_error(error: BackendError) -> io::Error {
    match error {
        BackendError::Io(error) => error,
        other => io::Error::new(io::ErrorKind::Unsupported, other.to_string()),
    }
}
