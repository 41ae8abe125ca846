//! One write and one fdatasync for many commits.
//!
//! Appended bytes are buffered here until they are needed in the file: by the next sync, a flush, a reader, or an
//! append that is too long to buffer. So many small commits cost one write, and none of it happens under the writer's
//! lock.
//!
//! A caller that needs a position to be durable finds that it is, or leads a sync of everything written so far, or
//! queues while another thread leads. After its sync the leader wakes the first waiter that the sync did not cover,
//! which leads the next sync for all others in the queue, and then the waiters that it did cover. No thread is woken in
//! vain: with many writers, waking all of them to look takes longer than a sync. Waking all covered waiters is work
//! too, so each woken thread wakes half of the rest.
//!
//! 1. `durable` is always an end of the log that was written before a successful sync began; buffered bytes begin at
//!    the end of the written ones.
//! 2. After a failed write or sync, every waiting and later call fails until the log is opened again: a failed
//!    fdatasync may have dropped exactly the pages that a second one would report as written.
//! 3. Only one sync runs at a time: the system reports a failure to one caller only, and no other sync may succeed
//!    instead.
//! 4. A sync counts only if the file's path still names the file that was synced: one that was deleted or replaced
//!    beneath this process takes with it what is written to it.
//! 5. While a thread is queued, another one leads or was told to lead: no waiter is forgotten.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;

use crate::error::{Error, Result};
use crate::held_directory::check_named;
use crate::instance::Inode;
use crate::log::Lsn;
use crate::log::segment::Segment;
use crate::log_page::PageSize;
use crate::vfs::{Vfs, VfsFile};

#[derive(Debug)]
pub(crate) struct GroupCommit {
    vfs: Arc<dyn Vfs>,
    state: Mutex<State>,
    /// Locked while buffered bytes are being written, so that the next thread waits until they are. Contains the bytes
    /// being written, or written last.
    writing: Mutex<Vec<u8>>,
    /// Copies of fields of `state`, to be read without its lock.
    end: AtomicU64,
    written: AtomicU64,
    durable: AtomicU64,
}

/// The greatest number of log pages that are buffered.
const MAX_HELD_PAGES: usize = 8;

#[derive(Debug)]
struct State {
    /// The file with all bytes that are not durable; earlier files were synced when it was begun.
    file: Arc<dyn VfsFile>,
    /// The identity of the file when it was opened, where files have one.
    inode: Option<Inode>,
    path: PathBuf,
    /// The position at which the file begins.
    first: u64,
    end: u64,
    written: u64,
    durable: u64,
    /// The buffered bytes, which are the last ones before `end`.
    held: Vec<u8>,
    /// True if a thread leads or was told to lead.
    led: bool,
    line: VecDeque<Arc<Waiter>>,
    poison: Option<Arc<str>>,
}

/// A thread in the queue.
#[derive(Debug)]
struct Waiter {
    /// The position that it waits for; `None` if it waits to lead.
    target: Option<u64>,
    thread: Thread,
    call: AtomicU8,
    /// The waiters that it wakes when it is woken.
    wakes: OnceLock<Vec<Arc<Waiter>>>,
}

/// Not woken yet.
const IN_LINE: u8 = 0;
/// Its target is durable, or the log is poisoned.
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

/// Wakes all of these waiters as done, by waking the first of each half, which wakes the others of its half.
fn call_done(waiters: &[Arc<Waiter>]) {
    for half in waiters.chunks(waiters.len().div_ceil(2).max(1)) {
        if let Some((first, others)) = half.split_first() {
            let _ = first.wakes.set(others.to_vec());
            first.call(DONE);
        }
    }
}

/// The lead of a sync. Dropping it passes the lead on.
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
    /// A group commit for a log in which everything up to `end`, in `file` of `segment`, is durable.
    pub(crate) fn new(file: Arc<dyn VfsFile>, segment: &Segment, end: u64) -> Self {
        let vfs = Arc::clone(segment.files().vfs());
        let state = State {
            inode: file.inode().ok().flatten(),
            file,
            path: segment.path.clone(),
            first: segment.first,
            end,
            written: end,
            durable: end,
            held: Vec::new(),
            led: false,
            line: VecDeque::new(),
            poison: None,
        };
        let [end, written, durable] = [end; 3].map(AtomicU64::new);
        Self { vfs, state: Mutex::new(state), writing: Mutex::default(), end, written, durable }
    }

    /// The end of the log.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// The position up to which the log is in its files. Writes the buffered bytes first, so this is the end of the log
    /// unless the write fails.
    pub(crate) fn written(&self) -> u64 {
        self.written_past(self.end().saturating_sub(1))
    }

    /// The same, without a write if the position is already in the files.
    pub(crate) fn written_past(&self, position: u64) -> u64 {
        if position >= self.written.load(Ordering::Acquire) {
            // The next write or sync reports a failure.
            let _ = self.write_held();
        }
        self.written.load(Ordering::Acquire)
    }

    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Records that everything up to `end` was written, the last of it to `file` of `segment`. Nothing may be buffered.
    pub(crate) fn publish(&self, file: &Arc<dyn VfsFile>, segment: &Segment, end: u64) {
        let mut state = self.state();
        state.go_on_in(file, segment);
        (state.end, state.written) = (end, end);
        self.end.store(end, Ordering::Release);
        self.written.store(end, Ordering::Release);
    }

    /// True if this many more bytes may be buffered. From half a page on, buffering would only add a copy.
    pub(crate) fn may_hold(&self, len: usize, page: PageSize) -> bool {
        let held = self.end().saturating_sub(self.written.load(Ordering::Acquire));
        len <= page.len() / 2 && held + len as u64 <= MAX_HELD_PAGES as u64 * page.bytes()
    }

    /// Buffers the next bytes of the file.
    pub(crate) fn hold(&self, bytes: &[u8]) {
        let mut state = self.state();
        state.held.extend_from_slice(bytes);
        state.end += bytes.len() as u64;
        self.end.store(state.end, Ordering::Release);
    }

    /// Writes the buffered bytes. Returns once everything appended before the call is written.
    pub(crate) fn write_held(&self) -> Result<()> {
        // After a panic of another writer, the bytes that it took are no longer in `held`.
        let mut bytes = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.clear();
        let mut state = self.state();
        state.check()?;
        if state.held.is_empty() {
            return Ok(());
        }
        std::mem::swap(&mut *bytes, &mut state.held);
        let (file, offset, end) = (Arc::clone(&state.file), state.written - state.first, state.end);
        drop(state);
        let written = file.write_at(&bytes, offset);
        let mut state = self.state();
        match written {
            Ok(()) => {
                state.written = end;
                self.written.store(end, Ordering::Release);
                Ok(())
            }
            Err(error) => {
                let failed = Error::io(&state.path, "write")(error);
                Err(state.poison(failed.to_string()))
            }
        }
    }

    /// Records that another process made everything up to `end` durable, the last of it in `file`.
    pub(crate) fn follow(&self, file: &Arc<dyn VfsFile>, segment: &Segment, end: u64) {
        let mut state = self.state();
        if end > state.durable {
            state.go_on_in(file, segment);
            (state.end, state.written, state.durable) = (end, end, end);
            self.end.store(end, Ordering::Release);
            self.written.store(end, Ordering::Release);
            self.durable.store(end, Ordering::Release);
        }
    }

    /// Records that another handle appended up to `end`, the last of it in `file`, and synced up to `durable`. Nothing
    /// may be buffered.
    pub(crate) fn go_on_at(&self, file: &Arc<dyn VfsFile>, segment: &Segment, end: u64, durable: u64) {
        let mut state = self.state();
        state.go_on_in(file, segment);
        (state.end, state.written, state.durable) = (end, end, durable.max(state.durable));
        self.end.store(end, Ordering::Release);
        self.written.store(end, Ordering::Release);
        self.durable.store(state.durable, Ordering::Release);
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

    /// Writes and syncs everything appended so far. Only the leader calls this.
    fn sync_written(&self, target: u64) -> Result<()> {
        // The log may have been poisoned while this thread was queued.
        self.state().check_target(target)?;
        self.write_held()?;
        let state = self.state();
        let (file, end, inode, path) = (Arc::clone(&state.file), state.written, state.inode, state.path.clone());
        drop(state);
        let synced = file.sync();
        if let Some(Err(error)) = inode.map(|inode| check_named(self.vfs.identify(&path), inode, &path)) {
            return Err(self.poison(&error));
        }
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

    /// Syncs a file whose last bytes are written but not published, before the next file is begun.
    pub(crate) fn sync_file(&self, file: &Arc<dyn VfsFile>, path: &Path) -> Result<()> {
        loop {
            let Some(_lead) = self.lead(self.state(), None) else { continue };
            self.check()?;
            let synced = file.sync();
            let failed = |error| self.state().poison(format!("{}: cannot sync: {error}", path.display()));
            return synced.map_err(failed);
        }
    }

    /// Poisons the log after a failed write: the content of the files is no longer known.
    pub(crate) fn poison(&self, why: &Error) -> Error {
        let mut state = self.state();
        state.poison(why.to_string())
    }

    /// The failure that stopped the log, if one has.
    pub(crate) fn check(&self) -> Result<()> {
        self.state().check()
    }

    /// Waits until this thread leads, its target is durable, or the log is poisoned.
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

/// Writes the buffered bytes, so that dropping an open log loses none of them.
impl Drop for GroupCommit {
    fn drop(&mut self) {
        let _ = self.write_held();
    }
}

impl State {
    fn go_on_in(&mut self, file: &Arc<dyn VfsFile>, segment: &Segment) {
        if !Arc::ptr_eq(&self.file, file) {
            self.file = Arc::clone(file);
            self.inode = file.inode().ok().flatten();
            segment.path.clone_into(&mut self.path);
            self.first = segment.first;
        }
    }

    fn check(&self) -> Result<()> {
        match &self.poison {
            Some(why) => Err(Error::Poisoned { why: Arc::clone(why) }),
            None => Ok(()),
        }
    }

    /// Checks that a sync can make everything up to `target` durable.
    fn check_target(&self, target: u64) -> Result<()> {
        self.check()?;
        if target > self.end {
            let why = format!("cannot be synced: the log ends at {}", self.end);
            return Err(Error::NoRecord { lsn: Lsn(target), why });
        }
        Ok(())
    }

    /// Only the first failure is recorded.
    fn poison(&mut self, why: String) -> Error {
        let why = self.poison.get_or_insert_with(|| why.into());
        Error::Poisoned { why: Arc::clone(why) }
    }
}
