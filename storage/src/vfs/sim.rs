//! A file system in memory that crashes, fails, fills up and flips bits, to run everything above [`Vfs`] against.
//!
//! # Fault model
//!
//! - A file is a *cached* content, which every read sees, and a *durable* one, which is what a crash leaves. Between them
//!   stand the operations that no sync has covered. `write_at` leaves one for the bytes and, where it grows the file,
//!   another for the length; `set_len` leaves one for the length.
//! - Names are separate from content: creating, moving and removing leave an operation in the directory, and only
//!   `sync_dir` covers those. Syncing a file does not make its name durable. Directories are durable at once, as
//!   [`Vfs::create_dir`] promises.
//! - **Crash**: each uncovered write is kept, lost, or torn: its first, middle or last 512-byte sector is lost and the rest
//!   kept. A sector never holds a mixture. Writes persist in any order, across files too. Length changes of one file
//!   persist in order, as in a journalled file system: a prefix of them. Bytes of a kept write past the final length are
//!   gone; bytes below it that no kept write covers are zeros. Each uncovered name operation is kept or lost on its own; a
//!   rename is never half done. A file no durable name leads to is gone. Locks and handles end.
//! - **Failing calls**: every call of the traits counts, from 0. Call N, or N and all after it, fails as asked. A failing
//!   `write_at` has written the first half of its bytes (a short write). A failing `sync` loses the file's uncovered
//!   operations for good, while reads go on showing them: what Linux does after a write-back error. Other failing calls
//!   have done nothing.
//! - **Full disk**: with a quota, growing past it writes what fits and is `StorageFull`.
//! - **Bit flips** hit cached and durable content alike. **Read-only**: everything that would change something is refused.
//! - Not modelled: torn sectors, reordering within a directory operation, metadata (times, permissions), links.
//!
//! Contents are shared copy-on-write, so a copy of a whole disk costs little; every changing call is recorded, so that
//! [`SimVfs::replay`] can stand at each point of a finished run and crash there.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{Hash, Hasher};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::{LockKind, Mapping, OpenMode, Vfs, VfsFile};

/// What a disk writes in one piece.
const SECTOR_LEN: u64 = 512;

/// A simulated disk; clones are the same disk.
#[derive(Clone, Debug)]
pub struct SimVfs {
    shared: Arc<Shared>,
}

/// One recorded change, as [`SimVfs::history`] tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A directory and those above it were made.
    CreateDir(PathBuf),
    /// A file came to be under this name.
    Create(PathBuf),
    /// Bytes were written to the file that had this name when it was opened.
    Write {
        /// The name the file was opened under.
        path: PathBuf,
        /// Where they went.
        offset: u64,
        /// The bytes.
        bytes: Arc<[u8]>,
    },
    /// A file was cut or grown.
    SetLen {
        /// The name the file was opened under.
        path: PathBuf,
        /// Its new length.
        len: u64,
    },
    /// A file's content and length were made durable.
    Sync(PathBuf),
    /// A sync failed: what was not durable never will be.
    FailedSync(PathBuf),
    /// A file was moved.
    Rename(PathBuf, PathBuf),
    /// A name was removed.
    Remove(PathBuf),
    /// A directory's names were made durable.
    SyncDir(PathBuf),
}

/// How a failing call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// `EIO`.
    Io,
    /// `ENOSPC`.
    NoSpace,
}

/// What becomes of the operations no sync has covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// All are lost.
    Lose,
    /// All are kept.
    Keep,
    /// Each meets a fate of its own, drawn from this seed.
    Seeded(u64),
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Told when a lock ends.
    unlocked: Condvar,
}

#[derive(Debug, Default)]
struct State {
    disk: Disk,
    history: Vec<(usize, Operation)>,
    calls: u64,
    failure: Option<PlannedFailure>,
    quota: Option<u64>,
    read_only: bool,
    next_handle: u64,
    locks: Vec<HeldLock>,
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
        let state = State {
            disk,
            ..State::default()
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                unlocked: Condvar::new(),
            }),
        }
    }

    /// A new disk in the state a crash at this moment leaves this one in. This one goes on as if nothing had happened.
    #[must_use]
    pub fn crash(&self, crash: Crash) -> Self {
        Self::with_disk(self.state().disk.crashed(&mut Fates::new(crash)))
    }

    /// Up to `limit` different states a crash at this moment may leave: every one there is if they are not more than
    /// `limit`, else everything lost, everything kept, and samples from `seed`.
    #[must_use]
    pub fn crashes(&self, limit: usize, seed: u64) -> Vec<Self> {
        let disk = self.state().disk.clone();
        let mut seen = HashSet::new();
        let mut states = Vec::new();
        let mut note = |crashed: Disk| {
            if states.len() < limit && seen.insert(crashed.fingerprint()) {
                states.push(Self::with_disk(crashed));
            }
        };
        let choices = disk
            .fate_counts()
            .iter()
            .try_fold(1_usize, |all, &count| all.checked_mul(count));
        match choices {
            Some(choices) if choices <= limit.max(1) => {
                for choice in 0..choices {
                    note(disk.crashed(&mut Fates::Enumerated(choice)));
                }
            }
            _ => {
                note(disk.crashed(&mut Fates::new(Crash::Lose)));
                note(disk.crashed(&mut Fates::new(Crash::Keep)));
                for sample in 0..limit as u64 {
                    note(disk.crashed(&mut Fates::Random(SplitMix(
                        seed ^ sample.wrapping_mul(0x9e37_79b9),
                    ))));
                }
            }
        }
        states
    }

    /// Every change made so far, in order.
    #[must_use]
    pub fn history(&self) -> Vec<Operation> {
        self.state()
            .history
            .iter()
            .map(|(_, operation)| operation.clone())
            .collect()
    }

    /// Stands at each point of this disk's history in turn, from its empty beginning. Only for a disk that began empty.
    #[must_use]
    pub fn replay(&self) -> Replay {
        let history = self.state().history.clone();
        Replay {
            disk: Disk::default(),
            history: history.into_iter(),
            started: false,
        }
    }

    /// How many calls of the traits were made so far.
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
        self.state().disk.names.keys().cloned().collect()
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

    /// Replaces a file's content, cached and durable, making the file where it is missing: damage from outside.
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
        let file = &mut state.disk.files[file];
        let at = usize::try_from(offset).map_err(io::Error::other)?;
        *Arc::make_mut(&mut file.cached)
            .get_mut(at)
            .ok_or(io::ErrorKind::UnexpectedEof)? ^= mask;
        if let Some(byte) = Arc::make_mut(&mut file.durable).get_mut(at) {
            *byte ^= mask;
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panicking test must not hide its own message behind a poisoned lock.
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for SimVfs {
    fn default() -> Self {
        Self::new()
    }
}

/// The points of a run, from [`SimVfs::replay`]: the empty disk, then the disk after each change.
#[derive(Debug)]
pub struct Replay {
    disk: Disk,
    history: std::vec::IntoIter<(usize, Operation)>,
    started: bool,
}

impl Iterator for Replay {
    type Item = SimVfs;

    fn next(&mut self) -> Option<SimVfs> {
        if self.started {
            let (file, operation) = self.history.next()?;
            self.disk.apply(file, &operation);
        }
        self.started = true;
        Some(SimVfs::with_disk(self.disk.clone()))
    }
}

impl Vfs for SimVfs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        let mut state = self.state();
        state.call()?;
        let file = match (mode, state.disk.file_named(path)) {
            (OpenMode::CreateNew, Ok(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
            (OpenMode::CreateNew, Err(_)) => {
                state.writable()?;
                state.disk.directory(parent_of(path))?;
                let file = state.disk.files.len();
                state.record(file, Operation::Create(path.to_owned()));
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
        Ok(Arc::new(SimFile {
            vfs: self.clone(),
            file,
            handle,
            path: path.to_owned(),
            mode,
        }))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call()?;
        if state.disk.directory(path).is_ok() {
            return Ok(());
        }
        state.writable()?;
        state.record(0, Operation::CreateDir(path.to_owned()));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call()?;
        state.writable()?;
        let file = state.disk.file_named(from)?;
        state.disk.directory(parent_of(to))?;
        state.record(file, Operation::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call()?;
        state.writable()?;
        let file = state.disk.file_named(path)?;
        state.record(file, Operation::Remove(path.to_owned()));
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut state = self.state();
        state.call()?;
        state.disk.directory(dir)?;
        let names = state
            .disk
            .names
            .keys()
            .filter(|path| parent_of(path) == dir);
        Ok(names
            .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
            .collect())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call()?;
        state.disk.directory(dir)?;
        state.record(0, Operation::SyncDir(dir.to_owned()));
        Ok(())
    }

    fn map(&self, path: &Path) -> io::Result<Mapping> {
        let mut state = self.state();
        state.call()?;
        let file = state.disk.file_named(path)?;
        Ok(Mapping::from_bytes(&state.disk.files[file].cached))
    }

    fn is_network(&self, path: &Path) -> io::Result<bool> {
        let mut state = self.state();
        state.call()?;
        state
            .disk
            .directory(path)
            .or_else(|_| state.disk.file_named(path).map(drop))?;
        Ok(false)
    }
}

#[derive(Debug)]
struct SimFile {
    vfs: SimVfs,
    file: usize,
    handle: u64,
    path: PathBuf,
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
        state
            .locks
            .retain(|held| held.handle != self.handle || held.range != range);
        state.locks.push(HeldLock {
            file: self.file,
            handle: self.handle,
            range,
            kind,
        });
    }
}

impl VfsFile for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let mut state = self.vfs.state();
        state.call()?;
        let content = &state.disk.files[self.file].cached;
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let end = start
            .checked_add(buf.len())
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buf.copy_from_slice(
            content
                .get(start..end)
                .ok_or(io::ErrorKind::UnexpectedEof)?,
        );
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.vfs.state();
        let injected = state.call();
        self.writable(&state)?;
        let mut writable = bytes.len();
        let mut outcome = Ok(());
        if let Err(error) = injected {
            writable /= 2;
            outcome = Err(error);
        }
        let room = state.room(self.file).saturating_sub(offset);
        if (writable as u64) > room {
            writable = room as usize;
            outcome = Err(io::ErrorKind::StorageFull.into());
        }
        if writable > 0 {
            let bytes = bytes[..writable].into();
            state.record(
                self.file,
                Operation::Write {
                    path: self.path.clone(),
                    offset,
                    bytes,
                },
            );
        }
        outcome
    }

    fn len(&self) -> io::Result<u64> {
        let mut state = self.vfs.state();
        state.call()?;
        Ok(state.disk.files[self.file].cached.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.vfs.state();
        state.call()?;
        self.writable(&state)?;
        if len > state.room(self.file) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.record(
            self.file,
            Operation::SetLen {
                path: self.path.clone(),
                len,
            },
        );
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.vfs.state();
        let outcome = state.call();
        let path = self.path.clone();
        let operation = if outcome.is_ok() {
            Operation::Sync(path)
        } else {
            Operation::FailedSync(path)
        };
        state.record(self.file, operation);
        outcome
    }

    fn try_lock(&self, range: Range<u64>, kind: LockKind) -> io::Result<bool> {
        let mut state = self.vfs.state();
        state.call()?;
        if self.conflicts(&state, &range, kind) {
            return Ok(false);
        }
        self.hold(&mut state, range, kind);
        Ok(true)
    }

    fn lock(&self, range: Range<u64>, kind: LockKind) -> io::Result<()> {
        let mut state = self.vfs.state();
        state.call()?;
        while self.conflicts(&state, &range, kind) {
            state = self
                .vfs
                .shared
                .unlocked
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        self.hold(&mut state, range, kind);
        Ok(())
    }

    fn unlock(&self, range: Range<u64>) -> io::Result<()> {
        let mut state = self.vfs.state();
        state.call()?;
        state
            .locks
            .retain(|held| held.handle != self.handle || held.range != range);
        self.vfs.shared.unlocked.notify_all();
        Ok(())
    }

    fn is_locked(&self, range: Range<u64>) -> io::Result<bool> {
        let mut state = self.vfs.state();
        state.call()?;
        Ok(self.conflicts(&state, &range, LockKind::Exclusive))
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.vfs
            .state()
            .locks
            .retain(|held| held.handle != self.handle);
        self.vfs.shared.unlocked.notify_all();
    }
}

impl State {
    /// Counts a call, and fails it if it was planned to.
    fn call(&mut self) -> io::Result<()> {
        let number = self.calls;
        self.calls += 1;
        match self.failure {
            Some(plan) if number == plan.at || (plan.for_ever && number > plan.at) => {
                Err(match plan.kind {
                    Failure::Io => io::Error::other("simulated input/output error"),
                    Failure::NoSpace => io::ErrorKind::StorageFull.into(),
                })
            }
            _ => Ok(()),
        }
    }

    fn writable(&self) -> io::Result<()> {
        if self.read_only {
            Err(io::ErrorKind::ReadOnlyFilesystem.into())
        } else {
            Ok(())
        }
    }

    /// The length this file may grow to.
    fn room(&self, file: usize) -> u64 {
        let Some(quota) = self.quota else {
            return u64::MAX;
        };
        let own = self.disk.files[file].cached.len() as u64;
        let others = self.disk.used_bytes() - if self.disk.is_named(file) { own } else { 0 };
        quota.saturating_sub(others).max(own)
    }

    fn record(&mut self, file: usize, operation: Operation) {
        self.disk.apply(file, &operation);
        self.history.push((file, operation));
    }
}

/// The files and names of a disk, and what of them is durable: everything a crash decides over.
#[derive(Clone, Debug)]
struct Disk {
    /// Files by number; they are never taken out, so that handles of removed files keep working.
    files: Vec<File>,
    directories: BTreeSet<PathBuf>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    pending_names: Vec<PendingName>,
}

#[derive(Clone, Debug, Default)]
struct File {
    cached: Arc<Vec<u8>>,
    durable: Arc<Vec<u8>>,
    pending: Vec<Pending>,
}

#[derive(Clone, Debug)]
enum Pending {
    Bytes { offset: u64, bytes: Arc<[u8]> },
    Length(u64),
}

/// An uncovered change of a directory: names that end, and a name that begins.
#[derive(Clone, Debug)]
struct PendingName {
    directory: PathBuf,
    ends: Option<(PathBuf, usize)>,
    begins: Option<(PathBuf, usize)>,
}

impl Default for Disk {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            directories: BTreeSet::from([PathBuf::from("/")]),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            pending_names: Vec::new(),
        }
    }
}

impl Disk {
    fn file_named(&self, path: &Path) -> io::Result<usize> {
        self.names
            .get(path)
            .copied()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn directory(&self, path: &Path) -> io::Result<()> {
        let exists = path.as_os_str().is_empty() || self.directories.contains(path);
        if exists {
            Ok(())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    fn is_named(&self, file: usize) -> bool {
        self.names.values().any(|&named| named == file)
    }

    fn used_bytes(&self) -> u64 {
        self.names
            .values()
            .map(|&file| self.files[file].cached.len() as u64)
            .sum()
    }

    fn replace(&mut self, path: &Path, content: &[u8]) {
        let content = Arc::new(content.to_vec());
        let file = File {
            cached: Arc::clone(&content),
            durable: content,
            pending: Vec::new(),
        };
        self.files.push(file);
        self.names.insert(path.to_owned(), self.files.len() - 1);
        self.durable_names
            .insert(path.to_owned(), self.files.len() - 1);
    }

    /// Carries out a change; `file` is the one it is about, and for a new file the next free number.
    fn apply(&mut self, file: usize, operation: &Operation) {
        match operation {
            Operation::CreateDir(path) => {
                self.directories
                    .extend(path.ancestors().map(Path::to_owned));
            }
            Operation::Create(path) => {
                self.files.push(File::default());
                self.names.insert(path.clone(), file);
                self.note_name(path, None, Some((path.clone(), file)));
            }
            Operation::Write { offset, bytes, .. } => self.files[file].write(*offset, bytes),
            Operation::SetLen { len, .. } => self.files[file].set_len(*len),
            Operation::Sync(_) => {
                let File {
                    durable, pending, ..
                } = &mut self.files[file];
                // In place: a copy of the whole file for every sync would make long runs quadratic.
                persist(
                    Arc::make_mut(durable),
                    pending,
                    &mut Fates::new(Crash::Keep),
                );
                pending.clear();
            }
            Operation::FailedSync(_) => self.files[file].pending.clear(),
            Operation::Rename(from, to) => {
                self.names.remove(from);
                self.names.insert(to.clone(), file);
                self.note_name(to, Some((from.clone(), file)), Some((to.clone(), file)));
            }
            Operation::Remove(path) => {
                self.names.remove(path);
                self.note_name(path, Some((path.clone(), file)), None);
            }
            Operation::SyncDir(directory) => {
                let (covered, pending) = std::mem::take(&mut self.pending_names)
                    .into_iter()
                    .partition(|name| name.directory == *directory);
                self.pending_names = pending;
                for name in covered {
                    name.persist(&mut self.durable_names);
                }
            }
        }
    }

    fn note_name(
        &mut self,
        path: &Path,
        ends: Option<(PathBuf, usize)>,
        begins: Option<(PathBuf, usize)>,
    ) {
        let directory = parent_of(path).to_owned();
        self.pending_names.push(PendingName {
            directory,
            ends,
            begins,
        });
    }

    /// What is left when each uncovered operation has met its fate.
    fn crashed(&self, fates: &mut Fates) -> Self {
        let mut names = self.durable_names.clone();
        for name in &self.pending_names {
            if fates.draw(2) != LOST {
                name.persist(&mut names);
            }
        }
        let contents: Vec<Arc<Vec<u8>>> = self
            .files
            .iter()
            .map(|file| match file.pending.is_empty() {
                true => Arc::clone(&file.durable),
                false => {
                    let mut content = file.durable.to_vec();
                    persist(&mut content, &file.pending, fates);
                    Arc::new(content)
                }
            })
            .collect();
        let mut left = Self {
            directories: self.directories.clone(),
            ..Self::default()
        };
        for (path, file) in names {
            let content = Arc::clone(&contents[file]);
            left.files.push(File {
                cached: Arc::clone(&content),
                durable: content,
                pending: Vec::new(),
            });
            left.names.insert(path, left.files.len() - 1);
        }
        left.durable_names = left.names.clone();
        left
    }

    /// How many fates each uncovered operation may meet, in the order [`Disk::crashed`] draws them.
    fn fate_counts(&self) -> Vec<usize> {
        let names = self.pending_names.iter().map(|_| 2);
        names
            .chain(self.files.iter().flat_map(File::fate_counts))
            .collect()
    }

    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (path, &file) in &self.names {
            (path, &self.files[file].cached).hash(&mut hasher);
        }
        hasher.finish()
    }
}

impl PendingName {
    fn persist(&self, names: &mut BTreeMap<PathBuf, usize>) {
        if let Some((path, file)) = &self.ends
            && names.get(path) == Some(file)
        {
            names.remove(path);
        }
        if let Some((path, file)) = &self.begins {
            names.insert(path.clone(), *file);
        }
    }
}

impl File {
    fn write(&mut self, offset: u64, bytes: &Arc<[u8]>) {
        let end = offset as usize + bytes.len();
        let cached = Arc::make_mut(&mut self.cached);
        if end > cached.len() {
            cached.resize(end, 0);
            self.pending.push(Pending::Length(end as u64));
        }
        cached[offset as usize..end].copy_from_slice(bytes);
        self.pending.push(Pending::Bytes {
            offset,
            bytes: Arc::clone(bytes),
        });
    }

    fn set_len(&mut self, len: u64) {
        Arc::make_mut(&mut self.cached).resize(len as usize, 0);
        self.pending.push(Pending::Length(len));
    }

    fn fate_counts(&self) -> impl Iterator<Item = usize> {
        self.pending.iter().map(Pending::fate_count)
    }
}

impl Pending {
    fn fate_count(&self) -> usize {
        match self {
            Self::Length(_) => 2,
            Self::Bytes { offset, bytes } => match sectors(*offset, bytes.len()) {
                1 => 2,
                2 => 4,
                _ => 5,
            },
        }
    }
}

/// Carries over to `content` what its fate leaves of each operation.
fn persist(content: &mut Vec<u8>, pending: &[Pending], fates: &mut Fates) {
    let mut len = content.len();
    let mut lengths_persist = true;
    for operation in pending {
        let fate = fates.draw(operation.fate_count());
        match operation {
            Pending::Length(new) => {
                lengths_persist &= fate != LOST;
                if lengths_persist {
                    let new = *new as usize;
                    // What lies past a cut is zeros should the file grow again; what was written past the end of a file
                    // that is still to grow stays.
                    if new < len {
                        content.truncate(new);
                    }
                    len = new;
                }
            }
            Pending::Bytes { offset, bytes } => {
                for (start, sector) in kept_sectors(*offset, bytes, fate) {
                    let end = start + sector.len();
                    if end > content.len() {
                        content.resize(end, 0);
                    }
                    content[start..end].copy_from_slice(sector);
                }
            }
        }
    }
    content.resize(len, 0);
}

/// The fates an operation may meet: lost, kept, or kept without its last, first or middle sector.
const LOST: usize = 0;
const KEPT: usize = 1;
const WITHOUT_LAST: usize = 2;
const WITHOUT_FIRST: usize = 3;

/// How many sectors a write touches.
fn sectors(offset: u64, len: usize) -> u64 {
    (offset + len as u64).div_ceil(SECTOR_LEN) - offset / SECTOR_LEN
}

/// The pieces of a write, cut at sector boundaries, that its fate leaves, with where they go.
fn kept_sectors(offset: u64, bytes: &[u8], fate: usize) -> Vec<(usize, &[u8])> {
    let count = sectors(offset, bytes.len());
    let first_sector = offset / SECTOR_LEN;
    let missing = match fate {
        LOST => return Vec::new(),
        KEPT => None,
        WITHOUT_LAST => Some(count - 1),
        WITHOUT_FIRST => Some(0),
        _ => Some(count / 2),
    };
    let end = offset + bytes.len() as u64;
    let pieces = (0..count)
        .filter(|&sector| Some(sector) != missing)
        .map(|sector| {
            let from = ((first_sector + sector) * SECTOR_LEN).max(offset);
            let to = ((first_sector + sector + 1) * SECTOR_LEN).min(end);
            (
                from as usize,
                &bytes[(from - offset) as usize..(to - offset) as usize],
            )
        });
    pieces.collect()
}

/// Where fates come from.
#[derive(Debug)]
enum Fates {
    Always(usize),
    Random(SplitMix),
    /// A number whose digits, in the mixed radix of the operations' counts, are the fates.
    Enumerated(usize),
}

impl Fates {
    fn new(crash: Crash) -> Self {
        match crash {
            Crash::Lose => Self::Always(LOST),
            Crash::Keep => Self::Always(KEPT),
            Crash::Seeded(seed) => Self::Random(SplitMix(seed)),
        }
    }

    fn draw(&mut self, count: usize) -> usize {
        match self {
            Self::Always(fate) => *fate,
            Self::Random(random) => (random.next() % count as u64) as usize,
            Self::Enumerated(rest) => {
                let fate = *rest % count;
                *rest /= count;
                fate
            }
        }
    }
}

/// Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
#[derive(Debug)]
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// The directory that holds `path`.
fn parent_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}
