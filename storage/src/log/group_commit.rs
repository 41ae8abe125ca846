//! One write and one fdatasync for many commits.
//!
//! What is appended is held here, in memory, until somebody needs it in the file: the next sync, a flush, a reader, or
//! what is too long to be held. So many small commits cost one write, and none of it is done under the writer's lock.
//!
//! Whoever needs a position to be durable either finds that it is, or leads a sync of everything written so far, or
//! stands in line while another one leads. The leader wakes those that its sync covered, and before them the first that
//! it did not: that one leads the next sync, which all the others in line share. Nobody is woken for nothing: with many
//! writers, waking them all to look takes longer than a sync. Even those that are done are many for one to wake, so
//! each wakes half of those that are left.
//!
//! 1. `durable` only ever holds an end of the log that was written before a sync began that then succeeded; what is
//!    held begins where what is written ends.
//! 2. After a failed write or sync nothing is believed any more: every waiting and later call fails until the log is
//!    opened again. A failed fdatasync may have dropped the very pages a second one would report as written.
//! 3. Only one sync runs at a time: a failure is reported to one caller only, and no other sync may succeed in its
//!    place.
//! 4. While anybody stands in line, somebody leads or was told to: nobody is forgotten.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;

use crate::error::{Error, Result};
use crate::log::Lsn;
use crate::log::segment::Segment;
use crate::log_page::PageSize;
use crate::vfs::VfsFile;

#[derive(Debug)]
pub(crate) struct GroupCommit {
    state: Mutex<State>,
    /// Taken by whoever writes what is held, so that the next one waits until it is written; the buffer holds what
    /// is written, or was last.
    writing: Mutex<Vec<u8>>,
    /// Copies of what `state` holds, to be read without it.
    end: AtomicU64,
    written: AtomicU64,
    durable: AtomicU64,
}

/// What is held is no more than so many log pages. So what nobody needs in the file waits no longer.
const MAX_HELD_PAGES: usize = 8;

#[derive(Debug)]
struct State {
    /// The file that holds whatever is not durable; those before it were synced when it was begun.
    file: Arc<dyn VfsFile>,
    path: PathBuf,
    /// The position at which the file begins.
    first: u64,
    end: u64,
    written: u64,
    durable: u64,
    /// Appended and not taken to be written yet: the last bytes before `end`.
    held: Vec<u8>,
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
    /// Everything up to `end`, in `file` of `segment` and those before it, is durable.
    pub(crate) fn new(file: Arc<dyn VfsFile>, segment: &Segment, end: u64) -> Self {
        let state = State {
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
        Self { state: Mutex::new(state), writing: Mutex::default(), end, written, durable }
    }

    /// Where the log ends.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// Up to where the log is in its files, which is up to its end unless writing fails: what is held is written first.
    pub(crate) fn written(&self) -> u64 {
        self.written_past(self.end().saturating_sub(1))
    }

    /// The same; what is held may stay so where the position is written already.
    pub(crate) fn written_past(&self, position: u64) -> u64 {
        if position >= self.written.load(Ordering::Acquire) {
            // A failure is told to whoever writes or syncs next.
            let _ = self.write_held();
        }
        self.written.load(Ordering::Acquire)
    }

    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Everything up to `end` has been written, the last of it to `file` of `segment`. Nothing is held.
    pub(crate) fn publish(&self, file: &Arc<dyn VfsFile>, segment: &Segment, end: u64) {
        let mut state = self.state();
        state.go_on_in(file, segment);
        (state.end, state.written) = (end, end);
        self.end.store(end, Ordering::Release);
        self.written.store(end, Ordering::Release);
    }

    /// True if so many bytes more may be held, in a log of such pages. From half a page on holding them would only copy
    /// them.
    pub(crate) fn may_hold(&self, len: usize, page: PageSize) -> bool {
        let held = self.end().saturating_sub(self.written.load(Ordering::Acquire));
        len <= page.len() / 2 && held + len as u64 <= MAX_HELD_PAGES as u64 * page.bytes()
    }

    /// Holds what comes next in the file.
    pub(crate) fn hold(&self, bytes: &[u8]) {
        let mut state = self.state();
        state.held.extend_from_slice(bytes);
        state.end += bytes.len() as u64;
        self.end.store(state.end, Ordering::Release);
    }

    /// Writes what is held. Returns once everything that was appended before the call is written.
    pub(crate) fn write_held(&self) -> Result<()> {
        // Whatever happened to the one who had it, what it was to write is out of `held`.
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

    /// Another process has made everything up to `end` durable, the last of it in `file`.
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

    /// Writes and syncs everything appended so far, by the one who leads.
    fn sync_written(&self, target: u64) -> Result<()> {
        // It may have been a while since it came.
        self.state().check_target(target)?;
        self.write_held()?;
        let state = self.state();
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

/// What is held stays in the log, as if it had been written when it was appended.
impl Drop for GroupCommit {
    fn drop(&mut self) {
        let _ = self.write_held();
    }
}

impl State {
    fn go_on_in(&mut self, file: &Arc<dyn VfsFile>, segment: &Segment) {
        if !Arc::ptr_eq(&self.file, file) {
            self.file = Arc::clone(file);
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

    /// True if a sync can make everything up to there durable.
    fn check_target(&self, target: u64) -> Result<()> {
        self.check()?;
        if target > self.end {
            let why = format!("cannot be synced: the log ends at {}", self.end);
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
