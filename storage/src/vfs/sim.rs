//! A file system in memory that crashes, fails, fills up and flips bits, for tests of everything above [`Vfs`].
//!
//! # Fault model
//!
//! - A file has a *cached* content, which every read sees, and a *durable* one, which survives a crash. The uncovered
//!   operations, those after the last sync, are the difference. `write_at` adds one for the bytes and, if it extends
//!   the file, another for the length; `set_len` adds one for the length.
//! - Names are separate from content: creating, renaming and removing add an operation to the directory, and only
//!   `sync_dir` covers those. Syncing a file does not make its name durable. Directories are durable at once, as
//!   [`Vfs::create_dir`] guarantees.
//! - **Crash**: each uncovered write is kept, lost, or torn: its first, middle or last 512-byte sector is lost and the
//!   rest kept. A sector never holds a mixture. Writes persist in any order, across files too. Length changes of one
//!   file persist in order, as in a journalled file system: a prefix of them. Bytes of a kept write past the final
//!   length are gone; bytes below it that no kept write covers are zeros. Each uncovered name operation is kept or lost
//!   on its own; a rename is never half done. A file without a durable name is gone. Locks and handles end.
//! - **Failing calls**: every call of the traits is counted, from 0. Call N, or N and all after it, fails as requested:
//!   - `EIO` and `ENOSPC`: a failing `write_at` has written the first half of its bytes. A failing `sync` loses the
//!     file's uncovered operations for good, and a failing `sync_dir` those of the directory, while reads and look-ups
//!     still show them, as on Linux after a write-back error. Other failing calls have no effect.
//!   - `EINTR`: the call was interrupted before it did anything. It is repeated below the trait, by the loops the real
//!     file system uses; the repetition counts as a call. Only interruptions without end come out as an error.
//!   - A short read or write moves half of what was asked, and is continued the same way.
//! - **Full disk**: with a quota, growing past it writes what fits and is `StorageFull`.
//! - **Bit flips** hit cached and durable content alike. **Read-only**: everything that would change something is
//!   refused.
//! - Not modelled: metadata (times, permissions); links; several processes.
//!
//! The states that a crash may leave are enumerated: all combinations of fates of up to 12 uncovered operations; for
//! more of them, or past a limit set by the caller, samples from a seed. Contents are shared copy-on-write by pages, so
//! a state costs only its differences, and [`SimVfs::fingerprint`] distinguishes states without hashing unchanged
//! pages.
//! Every changing call is recorded, so that [`SimVfs::replay`] can return to each point of a finished run and crash
//! there.
//!
//! An auditor checks the order of changes in every run (the rules are in `sim/audit.rs`). A change that breaks a
//! rule fails the run when the disk is next inspected or dropped, unless [`SimVfs::objections`] takes the objection.

mod audit;
mod content;
mod crash;
mod disk;
mod history;
mod names;

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

pub use self::crash::{Crash, CrashStates};
pub use self::history::Replay;

use self::crash::Fates;
use self::disk::{Disk, is_same, parent_of};
use self::history::{Change, Tagger};
use super::io_retry::{read_whole, repeated, write_whole};
use super::{LockKind, Mapping, OpenMode, Vfs, VfsFile, symlink_refused};

/// A simulated disk; clones are the same disk.
#[derive(Clone, Debug)]
pub struct SimVfs {
    shared: Arc<Shared>,
}

/// One recorded change: see [`SimVfs::history`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A directory and its missing parents were created.
    CreateDir(Arc<Path>),
    /// A directory was removed; like its creation, that is durable at once.
    RemoveDir(Arc<Path>),
    /// A directory was renamed with its content; that is durable at once.
    RenameDir(Arc<Path>, Arc<Path>),
    /// A file was created with this name.
    Create(Arc<Path>),
    /// Bytes were written to the file that had this name when it was opened.
    Write {
        /// The name the file was opened under.
        path: Arc<Path>,
        /// Their offset in the file.
        offset: u64,
        /// The bytes.
        bytes: Arc<[u8]>,
    },
    /// A file was truncated or extended.
    SetLen {
        /// The name the file was opened under.
        path: Arc<Path>,
        /// Its new length.
        len: u64,
    },
    /// A file's content and length were made durable.
    Sync(Arc<Path>),
    /// A sync failed: changes that were not durable never will be.
    FailedSync(Arc<Path>),
    /// A file was renamed.
    Rename(Arc<Path>, Arc<Path>),
    /// A name was removed.
    Remove(Arc<Path>),
    /// A directory's names were made durable.
    SyncDir(Arc<Path>),
    /// A sync of a directory failed: the names that were not durable never will be.
    FailedSyncDir(Arc<Path>),
}

/// The kind of a simulated failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// `EIO`.
    Io,
    /// `ENOSPC`.
    NoSpace,
    /// `EINTR`: the call had no effect and is repeated.
    Interrupted,
    /// A read or write moves half of the requested bytes and is continued.
    Short,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Signalled when a lock ends.
    unlocked: Condvar,
}

#[derive(Debug, Default)]
struct State {
    disk: Disk,
    /// The disk before the first change; `None` until then.
    origin: Option<Disk>,
    history: Vec<Change>,
    tagger: Option<Tagger>,
    calls: u64,
    failure: Option<PlannedFailure>,
    quota: Option<u64>,
    read_only: bool,
    network: bool,
    symlinks: BTreeSet<PathBuf>,
    next_handle: u64,
    locks: Vec<HeldLock>,
    /// The auditor's objections.
    objections: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct PlannedFailure {
    at: u64,
    for_ever: bool,
    kind: Failure,
}

#[derive(Debug)]
struct HeldLock {
    file: usize,
    handle: u64,
    range: Range<u64>,
    kind: LockKind,
}

impl SimVfs {
    /// An empty disk with one directory, `/`.
    #[must_use]
    pub fn new() -> Self {
        Self::with_disk(Disk::default())
    }

    fn with_disk(disk: Disk) -> Self {
        let state = State { disk, ..State::default() };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), unlocked: Condvar::new() }) }
    }

    /// A new disk in a state that a crash at this moment may leave. This disk is unaffected.
    #[must_use]
    pub fn crash(&self, crash: Crash) -> Self {
        Self::with_disk(self.audited().disk.crashed(&mut Fates::new(crash)))
    }

    /// An iterator over the states that a crash at this moment may leave: every combination of fates if at most 12
    /// operations are uncovered and at most `limit` combinations exist; else `limit` samples from `seed`, beginning
    /// with everything lost and everything kept. A state may occur more than once: see [`SimVfs::fingerprint`].
    #[must_use]
    pub fn crash_states(&self, limit: u64, seed: u64) -> CrashStates {
        CrashStates::new(self.audited().disk.clone(), limit, seed)
    }

    /// Up to `limit` different states of [`SimVfs::crash_states`].
    #[must_use]
    pub fn crashes(&self, limit: usize, seed: u64) -> Vec<Self> {
        let mut seen = HashSet::new();
        self.crash_states(limit as u64, seed).filter(|state| seen.insert(state.fingerprint())).collect()
    }

    /// A hash of all names and contents, as reads see them: equal for equal disks, and almost never for different ones.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.state().disk.fingerprint()
    }

    /// Takes the auditor's objections: changes that were made before a prerequisite was durable.
    #[must_use]
    pub fn objections(&self) -> Vec<String> {
        std::mem::take(&mut self.state().objections)
    }

    /// The number of trait calls so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Makes call number `at` (see [`SimVfs::calls`]) fail, or it and every later one.
    pub fn fail_at(&self, at: u64, kind: Failure, for_ever: bool) {
        self.state().failure = Some(PlannedFailure { at, for_ever, kind });
    }

    /// Ends what [`SimVfs::fail_at`] began.
    pub fn heal(&self) {
        self.state().failure = None;
    }

    /// Bounds the sum of all file lengths, or lifts the bound.
    pub fn set_quota(&self, quota: Option<u64>) {
        self.state().quota = quota;
    }

    /// Sets whether the disk is on a network file system.
    pub fn set_network(&self, network: bool) {
        self.state().network = network;
    }

    /// Makes this name of a file or directory a symbolic link: `open` and `map` refuse it from now on.
    pub fn make_symlink(&self, path: &Path) {
        self.state().symlinks.insert(path.to_owned());
    }

    /// Refuses all changes, or allows them again.
    pub fn set_read_only(&self, read_only: bool) {
        self.state().read_only = read_only;
    }

    /// The sum of all file lengths.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.state().disk.used_bytes()
    }

    /// The names of all files, ascending.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        self.state().disk.names.iter().map(|(path, _)| path.to_owned()).collect()
    }

    /// A file's content as reads see it.
    ///
    /// # Errors
    /// `NotFound` without the file.
    pub fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        let state = self.state();
        let file = state.disk.file_named(path)?;
        Ok(state.disk.files[file].cached.to_vec())
    }

    /// Replaces a file's content, cached and durable, to simulate damage. Creates the file if it is missing.
    pub fn replace(&self, path: &Path, content: &[u8]) {
        self.state().disk.replace(path, content);
    }

    /// Flips the bits of `mask` in the byte at `offset`, cached and durable.
    ///
    /// # Errors
    /// `NotFound` without the file, `UnexpectedEof` past its end.
    pub fn flip(&self, path: &Path, offset: u64, mask: u8) -> io::Result<()> {
        let mut state = self.state();
        let file = state.disk.file_named(path)?;
        let at = usize::try_from(offset).map_err(io::Error::other)?;
        match state.disk.files[file].flip(at, mask) {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The state, for a test that is about to use it. Panics if the auditor has objections.
    fn audited(&self) -> MutexGuard<'_, State> {
        let mut state = self.state();
        let objections = std::mem::take(&mut state.objections);
        if !objections.is_empty() && !std::thread::panicking() {
            drop(state);
            panic!("changes out of order: {objections:#?}");
        }
        state
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panicking test must not hide its own message behind a poisoned lock.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !state.objections.is_empty() && !std::thread::panicking() {
            panic!("changes out of order: {:#?}", state.objections);
        }
    }
}

impl Default for SimVfs {
    fn default() -> Self {
        Self::new()
    }
}

impl SimVfs {
    /// Makes one counted trait call on the state, and repeats it while it is interrupted.
    fn call<T>(&self, mut call: impl FnMut(&mut State) -> io::Result<T>) -> io::Result<T> {
        repeated(|| {
            let mut state = self.state();
            state.count()?;
            call(&mut state)
        })
    }
}

impl Vfs for SimVfs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        self.call(|state| {
            if mode != OpenMode::CreateNew {
                state.refuse_symlink(path)?;
            }
            let file = match (mode, state.disk.file_named(path)) {
                (OpenMode::CreateNew, Ok(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
                (OpenMode::CreateNew, Err(_)) => {
                    state.writable()?;
                    state.disk.directory(parent_of(path))?;
                    let file = state.disk.files.len();
                    state.record(file, Operation::Create(path.into()));
                    file
                }
                (_, Err(missing)) => return Err(missing),
                (OpenMode::Read, Ok(file)) => file,
                (OpenMode::ReadWrite, Ok(file)) => {
                    state.writable()?;
                    file
                }
            };
            state.next_handle += 1;
            let handle = state.next_handle;
            let file = SimFile { vfs: self.clone(), file, handle, path: path.into(), mode };
            Ok(Arc::new(file) as Arc<dyn VfsFile>)
        })
    }

    fn create_dir(&self, path: &Path) -> io::Result<bool> {
        self.call(|state| {
            if state.disk.directory(path).is_ok() {
                return Ok(false);
            }
            state.writable()?;
            if path.ancestors().any(|above| state.disk.file_named(above).is_ok()) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            state.record(0, Operation::CreateDir(path.into()));
            Ok(true)
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(|state| {
            state.writable()?;
            let file = state.disk.file_named(from)?;
            state.disk.directory(parent_of(to))?;
            state.record(file, Operation::Rename(from.into(), to.into()));
            Ok(())
        })
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(|state| {
            state.writable()?;
            state.disk.directory(from)?;
            state.disk.directory(parent_of(to))?;
            if state.disk.directory(to).is_ok() || state.disk.file_named(to).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            state.record(0, Operation::RenameDir(from.into(), to.into()));
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call(|state| {
            state.writable()?;
            let file = state.disk.file_named(path)?;
            state.record(file, Operation::Remove(path.into()));
            Ok(())
        })
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.call(|state| {
            state.writable()?;
            state.disk.directory(path)?;
            let within = |other: &Path| other != path && other.starts_with(path);
            let directories = state.disk.directories.iter().map(|other| &**other);
            if state.disk.names.iter().map(|(path, _)| path).chain(directories).any(within) {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            state.record(0, Operation::RemoveDir(path.into()));
            Ok(())
        })
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.call(|state| {
            state.disk.directory(dir)?;
            let names = state.disk.names.iter().map(|(path, _)| path).filter(|path| is_same(parent_of(path), dir));
            Ok(names.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
        })
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        repeated(|| {
            let mut state = self.state();
            match state.count() {
                Ok(()) => {
                    state.disk.directory(dir)?;
                    state.record(0, Operation::SyncDir(dir.into()));
                    Ok(())
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
                Err(error) => {
                    state.record(0, Operation::FailedSyncDir(dir.into()));
                    Err(error)
                }
            }
        })
    }

    fn map(&self, path: &Path) -> io::Result<Mapping> {
        self.call(|state| {
            state.refuse_symlink(path)?;
            let file = state.disk.file_named(path)?;
            Ok(Mapping::from_bytes(&state.disk.files[file].cached.to_vec()))
        })
    }

    fn is_symlink(&self, path: &Path) -> io::Result<bool> {
        self.call(|state| Ok(state.symlinks.contains(path)))
    }

    fn is_network(&self, path: &Path) -> io::Result<bool> {
        self.call(|state| {
            state.disk.directory(path).or_else(|_| state.disk.file_named(path).map(drop))?;
            Ok(state.network)
        })
    }
}

#[derive(Debug)]
struct SimFile {
    vfs: SimVfs,
    file: usize,
    handle: u64,
    path: Arc<Path>,
    mode: OpenMode,
}

impl SimFile {
    fn writable(&self, state: &State) -> io::Result<()> {
        state.writable()?;
        match self.mode {
            OpenMode::Read => Err(io::ErrorKind::PermissionDenied.into()),
            OpenMode::ReadWrite | OpenMode::CreateNew => Ok(()),
        }
    }

    fn conflicts(&self, state: &State, range: &Range<u64>, kind: LockKind) -> bool {
        state.locks.iter().any(|held| {
            held.file == self.file
                && held.handle != self.handle
                && held.range.start < range.end
                && range.start < held.range.end
                && (held.kind == LockKind::Exclusive || kind == LockKind::Exclusive)
        })
    }

    fn hold(&self, state: &mut State, range: Range<u64>, kind: LockKind) {
        state.locks.retain(|held| held.handle != self.handle || held.range != range);
        state.locks.push(HeldLock { file: self.file, handle: self.handle, range, kind });
    }
}

impl VfsFile for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        // An empty call counts too.
        if buf.is_empty() {
            return self.vfs.call(|_| Ok(()));
        }
        read_whole(buf, offset, |buf, offset| {
            let mut state = self.vfs.state();
            let len = match state.count_moving() {
                Moving::All => buf.len(),
                Moving::Half => buf.len().div_ceil(2),
                Moving::Failed(error) => return Err(error),
            };
            Ok(state.disk.files[self.file].cached.read(offset, &mut buf[..len]))
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if bytes.is_empty() {
            return self.vfs.call(|state| self.writable(state));
        }
        write_whole(bytes, offset, |bytes, offset| {
            let mut state = self.vfs.state();
            let moving = state.count_moving();
            self.writable(&state)?;
            let (mut len, mut outcome) = match moving {
                Moving::All => (bytes.len(), Ok(())),
                Moving::Half => (bytes.len().div_ceil(2), Ok(())),
                Moving::Failed(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
                Moving::Failed(error) => (bytes.len() / 2, Err(error)),
            };
            let room = state.room(self.file).saturating_sub(offset);
            if len as u64 > room {
                len = room as usize;
                outcome = Err(io::ErrorKind::StorageFull.into());
            }
            if len > 0 {
                let bytes = bytes[..len].into();
                state.record(self.file, Operation::Write { path: Arc::clone(&self.path), offset, bytes });
            }
            outcome.map(|()| len)
        })
    }

    fn len(&self) -> io::Result<u64> {
        self.vfs.call(|state| Ok(state.disk.files[self.file].cached.len() as u64))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.vfs.call(|state| {
            self.writable(state)?;
            if len > state.room(self.file) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            state.record(self.file, Operation::SetLen { path: Arc::clone(&self.path), len });
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        repeated(|| {
            let mut state = self.vfs.state();
            let outcome = state.count();
            let path = Arc::clone(&self.path);
            let operation = match &outcome {
                Ok(()) => Operation::Sync(path),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return outcome,
                Err(_) => Operation::FailedSync(path),
            };
            state.record(self.file, operation);
            outcome
        })
    }

    fn try_lock(&self, range: Range<u64>, kind: LockKind) -> io::Result<bool> {
        self.vfs.call(|state| {
            let free = !self.conflicts(state, &range, kind);
            if free {
                self.hold(state, range.clone(), kind);
            }
            Ok(free)
        })
    }

    fn lock(&self, range: Range<u64>, kind: LockKind) -> io::Result<()> {
        self.vfs.call(|_| Ok(()))?;
        let mut state = self.vfs.state();
        while self.conflicts(&state, &range, kind) {
            state = self.vfs.shared.unlocked.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        self.hold(&mut state, range, kind);
        Ok(())
    }

    /// Takes effect even if the call fails: no system keeps a lock that its owner gave up, and a process that waited
    /// for one of its own locks would wait for ever.
    fn unlock(&self, range: Range<u64>) -> io::Result<()> {
        self.vfs.state().locks.retain(|held| held.handle != self.handle || held.range != range);
        self.vfs.shared.unlocked.notify_all();
        self.vfs.call(|_| Ok(()))
    }

    fn is_locked(&self, range: Range<u64>) -> io::Result<bool> {
        self.vfs.call(|state| Ok(self.conflicts(state, &range, LockKind::Exclusive)))
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.vfs.state().locks.retain(|held| held.handle != self.handle);
        self.vfs.shared.unlocked.notify_all();
    }
}

/// The outcome of a call that moves bytes.
enum Moving {
    All,
    Half,
    Failed(io::Error),
}

impl State {
    fn refuse_symlink(&self, path: &Path) -> io::Result<()> {
        if self.symlinks.contains(path) { Err(symlink_refused()) } else { Ok(()) }
    }

    /// Counts a call, and fails it if a failure is planned for it.
    fn count(&mut self) -> io::Result<()> {
        match self.count_moving() {
            Moving::All | Moving::Half => Ok(()),
            Moving::Failed(error) => Err(error),
        }
    }

    fn count_moving(&mut self) -> Moving {
        let number = self.calls;
        self.calls += 1;
        match self.failure {
            Some(plan) if number >= plan.at && (plan.for_ever || number == plan.at) => match plan.kind {
                Failure::Io => Moving::Failed(io::Error::other("simulated input/output error")),
                Failure::NoSpace => Moving::Failed(io::ErrorKind::StorageFull.into()),
                Failure::Interrupted => Moving::Failed(io::ErrorKind::Interrupted.into()),
                Failure::Short => Moving::Half,
            },
            _ => Moving::All,
        }
    }

    fn writable(&self) -> io::Result<()> {
        if self.read_only { Err(io::ErrorKind::ReadOnlyFilesystem.into()) } else { Ok(()) }
    }

    /// The length to which this file may grow.
    fn room(&self, file: usize) -> u64 {
        let Some(quota) = self.quota else {
            return u64::MAX;
        };
        let own = self.disk.files[file].cached.len() as u64;
        let others = self.disk.used_bytes() - if self.disk.is_named(file) { own } else { 0 };
        quota.saturating_sub(others).max(own)
    }

    fn record(&mut self, file: usize, operation: Operation) {
        if self.origin.is_none() {
            self.origin = Some(self.disk.clone());
        }
        self.objections.extend(audit::objection(&self.disk, file, &operation));
        self.disk.apply(file, &operation);
        let tag = self.tagger.as_ref().map_or(0, |tagger| tagger.tag(&operation));
        let call = self.calls.saturating_sub(1);
        self.history.push(Change { file, tag, call, operation });
    }
}
