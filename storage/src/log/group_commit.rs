//! One fdatasync for many commits.
//!
//! Whoever needs a position to be durable either finds that it is, or leads a sync of everything written so far, or waits
//! for the leader and looks again. Those that arrive while a sync runs therefore share the next one.
//!
//! 1. `durable` only ever holds an end of the log that was written before a sync began that then succeeded.
//! 2. After a failed write or sync nothing is believed any more: every waiting and later call fails until the log is
//!    opened again. A failed fdatasync may have dropped the very pages a second one would report as written.
//! 3. Only one sync runs at a time: a failure is reported to one caller only, and no other sync may succeed in its place.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::log::Lsn;
use crate::vfs::VfsFile;

#[derive(Debug)]
pub(crate) struct GroupCommit {
    state: Mutex<State>,
    changed: Condvar,
    /// Copies of what `state` holds, to be read without it.
    written: AtomicU64,
    durable: AtomicU64,
}

#[derive(Debug)]
struct State {
    /// The file that holds whatever is not durable; those before it were synced when it was begun.
    file: Arc<dyn VfsFile>,
    path: PathBuf,
    written: u64,
    durable: u64,
    syncing: bool,
    /// How many wait to hear of a change: telling nobody is a system call too, and a lone writer would make one a commit.
    waiting: usize,
    poison: Option<Arc<str>>,
}

impl GroupCommit {
    /// Everything up to `end`, in `file` and those before it, is durable.
    pub(crate) fn new(file: Arc<dyn VfsFile>, path: PathBuf, end: u64) -> Self {
        let state = State { file, path, written: end, durable: end, syncing: false, waiting: 0, poison: None };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            written: AtomicU64::new(end),
            durable: AtomicU64::new(end),
        }
    }

    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Everything up to `end` has been written, the last of it to `file`.
    pub(crate) fn publish(&self, file: &Arc<dyn VfsFile>, path: &Path, end: u64) {
        let mut state = self.state();
        if !Arc::ptr_eq(&state.file, file) {
            state.file = Arc::clone(file);
            path.clone_into(&mut state.path);
        }
        state.written = end;
        self.written.store(end, Ordering::Release);
    }

    /// Another process has made everything up to `end` durable, the last of it in `file`.
    pub(crate) fn follow(&self, file: &Arc<dyn VfsFile>, path: &Path, end: u64) {
        let mut state = self.state();
        if end > state.durable {
            state.file = Arc::clone(file);
            path.clone_into(&mut state.path);
            (state.written, state.durable) = (end, end);
            self.written.store(end, Ordering::Release);
            self.durable.store(end, Ordering::Release);
        }
    }

    /// Returns once everything up to `target` is durable.
    pub(crate) fn sync_to(&self, target: u64) -> Result<()> {
        if self.durable() >= target {
            return Ok(());
        }
        let mut state = self.state();
        loop {
            if state.durable >= target {
                return Ok(());
            }
            state.check()?;
            if target > state.written {
                let why = format!("cannot be synced: the log ends at {}", state.written);
                return Err(Error::NoRecord { lsn: Lsn(target), why });
            }
            state = if state.syncing { self.wait(state) } else { self.lead(state)? };
        }
    }

    /// Syncs a file whose last bytes are written but not published, before another one is begun.
    pub(crate) fn sync_file(&self, file: &Arc<dyn VfsFile>, path: &Path) -> Result<()> {
        let mut state = self.state();
        while state.syncing {
            state = self.wait(state);
        }
        state.check()?;
        state.syncing = true;
        drop(state);
        let synced = file.sync();
        let mut state = self.state();
        state.syncing = false;
        let result = synced.map_err(|error| state.poison(format!("{}: cannot sync: {error}", path.display())));
        self.tell(&state);
        result
    }

    /// A write failed: what is in the files is not known any more.
    pub(crate) fn poison(&self, why: &Error) -> Error {
        let mut state = self.state();
        let error = state.poison(why.to_string());
        self.tell(&state);
        error
    }

    /// The failure that stopped the log, if one has.
    pub(crate) fn check(&self) -> Result<()> {
        self.state().check()
    }

    fn lead<'a>(&'a self, mut state: MutexGuard<'a, State>) -> Result<MutexGuard<'a, State>> {
        let (file, end) = (Arc::clone(&state.file), state.written);
        state.syncing = true;
        drop(state);
        let synced = file.sync();
        let mut state = self.state();
        state.syncing = false;
        let result = match synced {
            Ok(()) => {
                state.durable = state.durable.max(end);
                self.durable.store(state.durable, Ordering::Release);
                Ok(())
            }
            Err(error) => {
                let why = format!("{}: cannot sync: {error}", state.path.display());
                Err(state.poison(why))
            }
        };
        self.tell(&state);
        result.map(|()| state)
    }

    fn wait<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.waiting += 1;
        let mut state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }

    /// Wakes those that wait, if there are any.
    fn tell(&self, state: &State) {
        if state.waiting > 0 {
            self.changed.notify_all();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is consistent at every point where a panic could leave it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn check(&self) -> Result<()> {
        match &self.poison {
            Some(why) => Err(Error::Poisoned { why: Arc::clone(why) }),
            None => Ok(()),
        }
    }

    /// The first failure is the one that is told.
    fn poison(&mut self, why: String) -> Error {
        let why = self.poison.get_or_insert_with(|| why.into());
        Error::Poisoned { why: Arc::clone(why) }
    }
}
