//! redb's access to a file through [`VfsFile`], and the lock bytes that order writers and copying readers.
//!
//! [`VfsBackend`] forwards redb's calls to a [`VfsFile`]. Beside redb's own lock bytes there are two
//! more, which show a reader that no one writes the file:
//!
//! 1. A writer locks [`WRITER_BYTE`], then waits until [`COPY_BYTE`] is free, then writes.
//! 2. A reader locks [`COPY_BYTE`] shared, then tests [`WRITER_BYTE`], and copies if it is free.
//!
//! So if a reader copies while a writer begins, at least one of them sees the other.

use std::io;
use std::ops::{Bound, Range};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use redb::backends::InMemoryBackend;
use redb::{BackendError, StorageBackend};

use crate::vfs::{LockKind, VfsFile};

/// Locked by the writer. Both bytes are far past any content and below redb's own lock bytes,
/// which begin at 2^62.
const WRITER_BYTE: Range<u64> = 1 << 61..(1 << 61) + 1;

/// Locked by readers while they copy the file; a writer waits for it once before it writes.
const COPY_BYTE: Range<u64> = WRITER_BYTE.end..WRITER_BYTE.end + 1;

/// A lock on the writer's byte. It ends when dropped.
pub(super) struct WriterByte {
    file: Arc<dyn VfsFile>,
}

impl WriterByte {
    /// Locks the byte unless another writer has it, and waits for readers that copy the file.
    pub(super) fn take(file: &Arc<dyn VfsFile>) -> io::Result<Option<Self>> {
        if !file.try_lock(WRITER_BYTE, LockKind::Exclusive)? {
            return Ok(None);
        }
        let taken = Self { file: Arc::clone(file) };
        file.lock(COPY_BYTE, LockKind::Exclusive)?;
        file.unlock(COPY_BYTE)?;
        Ok(Some(taken))
    }
}

impl Drop for WriterByte {
    fn drop(&mut self) {
        // The lock ends with the handle at the latest.
        let _ = self.file.unlock(WRITER_BYTE);
    }
}

/// A copy of the file in memory, if no writer has it and it is no longer than `limit`.
pub(super) fn copy_at_rest(file: &dyn VfsFile, limit: u64) -> io::Result<Option<InMemoryBackend>> {
    let len = file.len()?;
    if len > limit || !file.try_lock(COPY_BYTE, LockKind::Shared)? {
        return Ok(None);
    }
    // In this order: a writer locks its byte before it waits for this one.
    let copied = match file.is_locked(WRITER_BYTE) {
        Ok(true) => Ok(None),
        Ok(false) => copy(file, len).map(Some),
        Err(error) => Err(error),
    };
    file.unlock(COPY_BYTE)?;
    copied
}

fn copy(file: &dyn VfsFile, len: u64) -> io::Result<InMemoryBackend> {
    const STEP: u64 = 1 << 20;
    let backend = InMemoryBackend::new();
    backend.set_len(len)?;
    let mut chunk = vec![0; STEP.min(len) as usize];
    for offset in (0..len).step_by(STEP as usize) {
        let chunk = &mut chunk[..STEP.min(len - offset) as usize];
        file.read_at(chunk, offset)?;
        backend.write(offset, chunk)?;
    }
    Ok(backend)
}

/// The first error of a file. redb refuses every call after it, and then says no more than that there was one.
#[derive(Clone, Debug, Default)]
pub(super) struct FirstError(Arc<OnceLock<(io::ErrorKind, String)>>);

impl FirstError {
    fn note<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result {
            self.0.get_or_init(|| (error.kind(), error.to_string()));
        }
        result
    }

    /// The error of a call that redb refused because of the first one, with its kind.
    pub(super) fn again(&self) -> io::Error {
        match self.0.get() {
            Some((kind, what)) => {
                io::Error::new(*kind, format!("an earlier access failed: {what}; open the database again"))
            }
            None => io::Error::other("an earlier access failed; open the database again"),
        }
    }
}

/// A storage backend of redb on a [`VfsFile`].
#[derive(Debug)]
pub(super) struct VfsBackend {
    file: Arc<dyn VfsFile>,
    first_error: FirstError,
    /// The ranges to unlock on closing.
    held: Mutex<Vec<Range<u64>>>,
}

impl VfsBackend {
    pub(super) fn new(file: Arc<dyn VfsFile>, first_error: FirstError) -> Self {
        Self { file, first_error, held: Mutex::new(Vec::new()) }
    }

    fn try_lock(&self, range: Range<u64>, kind: LockKind) -> Result<bool, BackendError> {
        let locked = self.file.try_lock(range.clone(), kind)?;
        if locked {
            self.held().push(range);
        }
        Ok(locked)
    }

    fn lock(&self, range: Range<u64>, kind: LockKind) -> Result<(), BackendError> {
        self.file.lock(range.clone(), kind)?;
        self.held().push(range);
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, Vec<Range<u64>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StorageBackend for VfsBackend {
    fn len(&self) -> io::Result<u64> {
        self.first_error.note(self.file.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.first_error.note(self.file.read_at(out, offset))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.first_error.note(self.file.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.first_error.note(self.file.sync())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.first_error.note(self.file.write_at(data, offset))
    }

    fn close(&self) -> io::Result<()> {
        std::mem::take(&mut *self.held()).into_iter().try_for_each(|range| self.file.unlock(range))
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.try_lock(lock_range(start, end), LockKind::Exclusive)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.try_lock(lock_range(start, end), LockKind::Shared)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.lock(lock_range(start, end), LockKind::Exclusive)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.lock(lock_range(start, end), LockKind::Shared)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        let range = lock_range(start, end);
        self.held().retain(|held| *held != range);
        Ok(self.file.unlock(range)?)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        Ok(self.file.is_locked(lock_range(start, end))?)
    }
}

fn lock_range(start: Bound<u64>, end: Bound<u64>) -> Range<u64> {
    let start = match start {
        Bound::Unbounded => 0,
        Bound::Included(start) => start,
        Bound::Excluded(start) => start.saturating_add(1),
    };
    let end = match end {
        Bound::Unbounded => u64::MAX,
        Bound::Included(end) => end.saturating_add(1),
        Bound::Excluded(end) => end,
    };
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::{OpenMode, SimVfs, Vfs};
    use std::path::Path;

    fn at(byte: u64) -> (Bound<u64>, Bound<u64>) {
        (Bound::Included(byte), Bound::Included(byte))
    }

    #[test]
    fn the_writers_byte_is_one_writers_until_it_lets_go() {
        let sim = SimVfs::new();
        drop(sim.open(Path::new("/file"), OpenMode::CreateNew).unwrap());
        let [one, other] = [(); 2].map(|()| sim.open(Path::new("/file"), OpenMode::ReadWrite).unwrap());
        let taken = WriterByte::take(&one).unwrap().unwrap();
        assert!(WriterByte::take(&other).unwrap().is_none());
        assert!(!other.is_locked(0..1 << 61).unwrap(), "nothing that holds content");
        drop(taken);
        assert!(WriterByte::take(&other).unwrap().is_some(), "though the file is still open");
    }

    #[test]
    fn locks_are_the_files_and_end_with_closing() {
        let sim = SimVfs::new();
        drop(sim.open(Path::new("/file"), OpenMode::CreateNew).unwrap());
        let open =
            || VfsBackend::new(sim.open(Path::new("/file"), OpenMode::ReadWrite).unwrap(), FirstError::default());
        let (one, other) = (open(), open());
        let sees = |byte| {
            let (start, end) = at(byte);
            let held = other.query_lock_range(start, end).unwrap();
            let shared = other.try_lock_shared_range(start, end).unwrap();
            if shared {
                other.unlock_range(start, end).unwrap();
            }
            (held, shared)
        };
        for (byte, lock) in
            [(5, VfsBackend::lock_range as fn(&VfsBackend, _, _) -> _), (6, VfsBackend::lock_shared_range)]
        {
            lock(&one, at(byte).0, at(byte).1).unwrap();
        }
        for (byte, try_lock) in
            [(7, VfsBackend::try_lock_range as fn(&VfsBackend, _, _) -> _), (8, VfsBackend::try_lock_shared_range)]
        {
            assert!(try_lock(&one, at(byte).0, at(byte).1).unwrap());
        }
        let (free, shared, exclusive) = ((false, true), (true, true), (true, false));
        assert_eq!([4, 5, 6, 7, 8, 9].map(sees), [free, exclusive, shared, exclusive, shared, free]);
        assert!(!other.try_lock_range(at(8).0, at(8).1).unwrap());
        one.unlock_range(at(6).0, at(6).1).unwrap();
        assert_eq!([5, 6, 7, 8].map(sees), [exclusive, free, exclusive, shared]);
        one.close().unwrap();
        assert_eq!([5, 6, 7, 8].map(sees), [free; 4]);
    }
}
