//! One fdatasync for many commits.
//!
//! Whoever needs a position to be durable either finds that it is, or leads a sync of everything written so far, or stands in
//! line while another one leads. The leader wakes those that its sync covered, and before them the first that it did not: that
//! one leads the next sync, which all the others in line share. Nobody is woken for nothing: with many writers, waking them
//! all to look takes longer than a sync. Even those that are done are many for one to wake, so each wakes half of those that
//! are left.
//!
//! 1. `durable` only ever holds an end of the log that was written before a sync began that then succeeded.
//! 2. After a failed write or sync nothing is believed any more: every waiting and later call fails until the log is
//!    opened again. A failed fdatasync may have dropped the very pages a second one would report as written.
//! 3. Only one sync runs at a time: a failure is reported to one caller only, and no other sync may succeed in its place.
//! 4. While anybody stands in line, somebody leads or was told to: nobody is forgotten.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;

use crate::error::{Error, Result};
use crate::log::Lsn;
use crate::vfs::VfsFile;

#[derive(Debug)]
pub(crate) struct GroupCommit {
    state: Mutex<State>,
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
    /// Somebody leads, or was told to.
    led: bool,
    line: VecDeque<Arc<Waiter>>,
    poison: Option<Arc<str>>,
}

/// One that stands in line.
#[derive(Debug)]
struct Waiter {
    /// What it wants to be durable; nothing when it wants to lead.
    target: Option<u64>,
    thread: Thread,
    call: AtomicU8,
    /// Those that it wakes when it is called.
    wakes: OnceLock<Vec<Arc<Waiter>>>,
}

/// Not called yet.
const IN_LINE: u8 = 0;
/// What it waits for is durable, or never will be.
const DONE: u8 = 1;
const LEADS: u8 = 2;

impl Waiter {
    fn call(&self, call: u8) {
        self.call.store(call, Ordering::Release);
        self.thread.unpark();
    }

    fn wait(&self) -> u8 {
        let call = loop {
            match self.call.load(Ordering::Acquire) {
                IN_LINE => std::thread::park(),
                call => break call,
            }
        };
        self.wakes.get().into_iter().for_each(|waiters| call_done(waiters));
        call
    }
}

/// Tells them all that they are done, by telling the first of each half, who tells the others.
fn call_done(waiters: &[Arc<Waiter>]) {
    for half in waiters.chunks(waiters.len().div_ceil(2).max(1)) {
        if let Some((first, others)) = half.split_first() {
            let _ = first.wakes.set(others.to_vec());
            first.call(DONE);
        }
    }
}

/// The lead: it ends when this goes, and the next one gets it.
struct Lead<'a>(&'a GroupCommit);

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        let (durable, poisoned) = (state.durable, state.poison.is_some());
        let is_done = |waiter: &Arc<Waiter>| waiter.target.is_some_and(|target| poisoned || target <= durable);
        let (done, line): (Vec<_>, Vec<_>) = std::mem::take(&mut state.line).into_iter().partition(is_done);
        state.line = line.into();
        let leader = state.line.pop_front();
        state.led = leader.is_some();
        drop(state);
        leader.iter().for_each(|waiter| waiter.call(LEADS));
        call_done(&done);
    }
}

impl GroupCommit {
    /// Everything up to `end`, in `file` and those before it, is durable.
    pub(crate) fn new(file: Arc<dyn VfsFile>, path: PathBuf, end: u64) -> Self {
        let line = VecDeque::new();
        let state = State { file, path, written: end, durable: end, led: false, line, poison: None };
        Self { state: Mutex::new(state), written: AtomicU64::new(end), durable: AtomicU64::new(end) }
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
        while self.durable() < target {
            let state = self.state();
            state.check_target(target)?;
            if let Some(_lead) = self.lead(state, Some(target)) {
                self.sync_written(target)?;
            }
        }
        Ok(())
    }

    /// Syncs everything written so far, by the one who leads.
    fn sync_written(&self, target: u64) -> Result<()> {
        let state = self.state();
        // It may have been a while since it came.
        state.check_target(target)?;
        let (file, end) = (Arc::clone(&state.file), state.written);
        drop(state);
        let synced = file.sync();
        let mut state = self.state();
        match synced {
            Ok(()) => {
                state.durable = state.durable.max(end);
                self.durable.store(state.durable, Ordering::Release);
                Ok(())
            }
            Err(error) => {
                let why = format!("{}: cannot sync: {error}", state.path.display());
                Err(state.poison(why))
            }
        }
    }

    /// Syncs a file whose last bytes are written but not published, before another one is begun.
    pub(crate) fn sync_file(&self, file: &Arc<dyn VfsFile>, path: &Path) -> Result<()> {
        loop {
            let Some(_lead) = self.lead(self.state(), None) else { continue };
            self.check()?;
            let synced = file.sync();
            let failed = |error| self.state().poison(format!("{}: cannot sync: {error}", path.display()));
            return synced.map_err(failed);
        }
    }

    /// A write failed: what is in the files is not known any more.
    pub(crate) fn poison(&self, why: &Error) -> Error {
        let mut state = self.state();
        state.poison(why.to_string())
    }

    /// The failure that stopped the log, if one has.
    pub(crate) fn check(&self) -> Result<()> {
        self.state().check()
    }

    /// Waits for the lead; without it, until the target is durable or the log poisoned.
    fn lead<'a>(&'a self, mut state: MutexGuard<'a, State>, target: Option<u64>) -> Option<Lead<'a>> {
        if !state.led {
            state.led = true;
            return Some(Lead(self));
        }
        let (thread, call) = (std::thread::current(), AtomicU8::new(IN_LINE));
        let waiter = Arc::new(Waiter { target, thread, call, wakes: OnceLock::new() });
        state.line.push_back(Arc::clone(&waiter));
        drop(state);
        (waiter.wait() == LEADS).then(|| Lead(self))
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

    /// Whether a sync can make everything up to there durable.
    fn check_target(&self, target: u64) -> Result<()> {
        self.check()?;
        if target > self.written {
            let why = format!("cannot be synced: the log ends at {}", self.written);
            return Err(Error::NoRecord { lsn: Lsn(target), why });
        }
        Ok(())
    }

    /// The first failure is the one that is told.
    fn poison(&mut self, why: String) -> Error {
        let why = self.poison.get_or_insert_with(|| why.into());
        Error::Poisoned { why: Arc::clone(why) }
    }
}
