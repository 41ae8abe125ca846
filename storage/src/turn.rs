//! Turns: several handles, in any processes, append to one log, one after the other.
//!
//! A handle of [`Lock::shared`] has the database open beside others. It appends only while it has the *turn*: a byte
//! of LOCK that it takes before a transaction and gives back when everything under it is as durable as was asked for.
//! Locks belong to an open file, so two handles of one process exclude each other like two processes, and the system
//! drops the locks of a process that dies.
//!
//! | byte of LOCK | held by |
//! |---|---|
//! | writer | an exclusive handle exclusively; handles that take turns share it |
//! | turn | the handle that may append |
//! | maintenance | the handle that may change derived files |
//! | line, 8 bytes | handles that wait for the turn, in order of arrival |
//!
//! 1. **No handle starves.** A handle that finds another in line takes the last place and moves up. It takes the next
//!    place before it leaves its own, so none overtakes. The handle that gave the turn back may take it past the line
//!    until its share of time ends, which begins when it comes up in line; then it joins behind all who wait. Turns one
//!    after another of one handle need no catching up, which costs more than a commit. When more wait than there are
//!    places, entering the line is a race.
//! 2. **The turn comes before maintenance.** Who has the turn may wait for maintenance; who has maintenance never waits
//!    for the turn.
//! 3. **A holder that dies is noticed.** The status block says busy from before the first byte of a turn until after
//!    its last. A handle that takes the turn and finds busy recovers the log first.
//! 4. The status block is a hint. It is written only under the turn, and it never decides where the log ends.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{sleep, yield_now};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::held_directory::HeldDirectory;
use crate::lock::{
    Lock, OWNER, Owner, PIN_BYTE, Status, WRITER_BYTE, check_local, command, encode, encode_owner, held, holder,
    open_or_create,
};
use crate::log::Lsn;
use crate::vfs::{LockKind, Vfs, VfsFile};

const TURN_BYTE: Range<u64> = PIN_BYTE.end..PIN_BYTE.end + 1;
const MAINTENANCE_BYTE: Range<u64> = TURN_BYTE.end..TURN_BYTE.end + 1;
const LINE: Range<u64> = MAINTENANCE_BYTE.end..MAINTENANCE_BYTE.end + 8;

/// Attempts to take a byte before the first pause.
const EAGER: u32 = 8;
/// The pause between attempts of the first in line, and of the others.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LINE_PAUSE: Duration = Duration::from_micros(500);

/// The time for which a handle takes the turn again although others wait.
const SHARE: Duration = Duration::from_millis(5);

/// Attempts to give a byte back.
const UNLOCK_ATTEMPTS: u32 = 3;

impl Lock {
    /// Opens LOCK beside other handles that take turns, and waits for the first turn: opening needs it. Creates the
    /// file at `path` if there is none.
    ///
    /// # Errors
    /// [`Error::Held`] if a handle has the database open exclusively; [`Error::TurnHeld`] after `timeout`;
    /// [`Error::NetworkFileSystem`]; [`Error::Io`].
    pub fn shared(vfs: &dyn Vfs, path: &Path, timeout: Duration) -> Result<Self> {
        check_local(vfs, path)?;
        let file = open_or_create(vfs, path)?;
        if !file.try_lock(WRITER_BYTE, LockKind::Shared).map_err(Error::io(path, "lock"))? {
            return Err(held(path, &*file));
        }
        let directory = HeldDirectory::open(vfs, path, &*file)?;
        let mut lock = Self {
            path: path.to_owned(),
            file: Some(file),
            written: Some(Mutex::new(Status::of_this_process(None))),
            found: None,
            directory,
            byte: WRITER_BYTE,
            number: random_number(path)?,
            share: Mutex::default(),
            database: None,
            instance: None,
            released: AtomicBool::new(false),
            process: std::process::id(),
        };
        lock.found = lock.take_turn(timeout)?;
        Ok(lock)
    }

    /// True for a handle that takes turns with others.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.number != 0
    }

    /// True if the status says that this handle had the last turn and gave it back.
    #[must_use]
    pub fn is_own(&self, status: &Status) -> bool {
        status.holder == self.number && !status.busy
    }

    /// Waits for the turn; returns the status block as the handle before left it, `None` if there was none. Its `busy`
    /// says that this handle died. One thread of a handle at a time may call this, and only without the turn.
    ///
    /// # Errors
    /// [`Error::TurnHeld`] after `timeout`; [`Error::Io`], after which this handle does not have the turn.
    pub fn take_turn(&self, timeout: Duration) -> Result<Option<Status>> {
        let file = self.shared_file()?;
        let deadline = Instant::now() + timeout;
        let mut share = self.share.lock().unwrap_or_else(PoisonError::into_inner);
        let in_share = share.is_some_and(|ends| Instant::now() < ends);
        if !in_share || !self.try_take(file, TURN_BYTE)? {
            let someone_waits = file.is_locked(LINE).map_err(Error::io(&self.path, "examine"))?;
            if someone_waits || !self.try_take(file, TURN_BYTE)? {
                self.wait_in_line(file, deadline)?;
            }
            *share = Some(Instant::now() + SHARE);
        }
        drop(share);
        if let Err(error) = self.hold_directory(deadline) {
            self.release(file, TURN_BYTE);
            return Err(error);
        }
        let begun = self.begin_turn(file);
        if begun.is_err() {
            self.release_turn(file);
        }
        begun
    }

    /// Locks the directory too: a handle that has another LOCK file, because this one was deleted, waits for it.
    fn hold_directory(&self, deadline: Instant) -> Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        directory.check()?;
        let mut tries = 0;
        while !directory.try_lock()? {
            if Instant::now() >= deadline {
                return Err(Error::TurnHeld { path: self.path.clone(), pid: 0, command: String::new() });
            }
            tries += 1;
            if tries <= EAGER { yield_now() } else { sleep(FIRST_PAUSE) }
        }
        // Only now can nobody write with another LOCK file.
        directory.check().inspect_err(|_| directory.unlock())
    }

    fn release_turn(&self, file: &Arc<dyn VfsFile>) {
        if let Some(directory) = &self.directory {
            directory.unlock();
        }
        self.release(file, TURN_BYTE);
    }

    fn wait_in_line(&self, file: &Arc<dyn VfsFile>, deadline: Instant) -> Result<()> {
        let mut place: Option<Place<'_>> = None;
        for at in LINE.rev() {
            self.wait_for(file, at..at + 1, LINE_PAUSE, deadline)?;
            // Only now is the place behind given up.
            place = Some(Place { file, at });
        }
        let taken = self.wait_for(file, TURN_BYTE, FIRST_PAUSE, deadline);
        drop(place);
        taken
    }

    fn wait_for(&self, file: &Arc<dyn VfsFile>, byte: Range<u64>, pause: Duration, deadline: Instant) -> Result<()> {
        let mut tries = 0;
        while !self.try_take(file, byte.clone())? {
            if Instant::now() >= deadline {
                let (pid, command) = holder(&**file);
                return Err(Error::TurnHeld { path: self.path.clone(), pid, command });
            }
            tries += 1;
            if tries <= EAGER { yield_now() } else { sleep(pause) }
        }
        Ok(())
    }

    /// Writes that a turn of this handle begins.
    fn begin_turn(&self, file: &Arc<dyn VfsFile>) -> Result<Option<Status>> {
        let found = self.own_status(&**file)?;
        let end = found.map_or(Lsn(0), |found| found.end);
        let next = Status { busy: true, end, holder: self.number, ..Status::of_this_process(found) };
        let mut written = self.written()?;
        file.write_at(&encode(&next), 0).map_err(Error::io(&self.path, "write"))?;
        if let Some(database) = self.database.filter(|_| found.is_none_or(|found| found.holder != self.number)) {
            let owner = encode_owner(&Owner { database, command: command() });
            file.write_at(&owner, OWNER).map_err(Error::io(&self.path, "write"))?;
        }
        if found.is_none_or(|found| found.closed) {
            // Before anything else is written: see the status's `closed`.
            file.sync().map_err(Error::io(&self.path, "sync"))?;
        }
        *written = next;
        Ok(found)
    }

    /// Gives the turn back. Everything appended must be in its files; `durable` of it is synced, and `end` is its end.
    /// After a failure the next holder recovers the log.
    pub fn give_turn(&self, durable: Lsn, end: Lsn) {
        let (Ok(file), Ok(mut written)) = (self.shared_file(), self.written()) else { return };
        // A closed log stays closed until somebody takes the turn.
        let next = Status { durable: durable.max(written.durable), busy: false, end, ..*written };
        let _ = file.write_at(&encode(&next), 0);
        *written = next;
        self.release_turn(file);
    }

    /// Gives the turn back without a word, so that the next holder recovers the log.
    pub fn abandon_turn(&self) {
        if let (Ok(file), Ok(mut written)) = (self.shared_file(), self.written()) {
            written.busy = false;
            self.release_turn(file);
        }
    }

    /// True if another handle waits for the turn.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn is_awaited(&self) -> Result<bool> {
        self.shared_file()?.is_locked(LINE).map_err(Error::io(&self.path, "examine"))
    }

    /// Takes the maintenance byte, unless another handle has it.
    ///
    /// # Errors
    /// [`Error::Replaced`]; [`Error::Io`].
    pub fn try_maintenance(&self) -> Result<bool> {
        self.check_in_place()?;
        self.try_take(self.shared_file()?, MAINTENANCE_BYTE)
    }

    /// Gives the maintenance byte back.
    pub fn end_maintenance(&self) {
        if let Ok(file) = self.shared_file() {
            self.release(file, MAINTENANCE_BYTE);
        }
    }

    fn try_take(&self, file: &Arc<dyn VfsFile>, byte: Range<u64>) -> Result<bool> {
        file.try_lock(byte, LockKind::Exclusive).map_err(Error::io(&self.path, "lock"))
    }

    fn release(&self, file: &Arc<dyn VfsFile>, byte: Range<u64>) {
        unlock(file, byte);
    }

    fn shared_file(&self) -> Result<&Arc<dyn VfsFile>> {
        self.check_process()?;
        if self.is_released() {
            return Err(Error::Closed);
        }
        self.file.as_ref().filter(|_| self.is_shared()).ok_or(Error::ReadOnly)
    }

    fn written(&self) -> Result<MutexGuard<'_, Status>> {
        let written = self.written.as_ref().ok_or(Error::ReadOnly)?;
        Ok(written.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A place in line, until this is dropped.
struct Place<'f> {
    file: &'f Arc<dyn VfsFile>,
    at: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        unlock(self.file, self.at..self.at + 1);
    }
}

/// Gives a byte back. One failure must not keep others waiting for as long as this handle lives; after several the
/// byte is free once the file is closed.
fn unlock(file: &Arc<dyn VfsFile>, byte: Range<u64>) {
    for _ in 0..UNLOCK_ATTEMPTS {
        if file.unlock(byte.clone()).is_ok() {
            return;
        }
    }
}

/// A number by which a handle knows its own turns.
fn random_number(path: &Path) -> Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::io(path, "draw a random number for")(std::io::Error::other(error)))?;
    Ok(u64::from_le_bytes(bytes).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::{OsVfs, SimVfs};
    use std::sync::atomic::{AtomicUsize, Ordering};

    const SOON: Duration = Duration::from_secs(60);

    fn shared(vfs: &dyn Vfs, path: &Path) -> Lock {
        Lock::shared(vfs, path, SOON).unwrap()
    }

    #[test]
    fn one_handle_at_a_time_has_the_turn() {
        let (sim, path) = (SimVfs::new(), Path::new("/LOCK"));
        let one = shared(&sim, path);
        let refused = Lock::shared(&sim, path, Duration::ZERO);
        assert!(matches!(refused, Err(Error::TurnHeld { pid, .. }) if pid == std::process::id()));
        one.give_turn(Lsn(10), Lsn(20));
        let other = shared(&sim, path);
        let found = other.found().unwrap();
        assert_eq!((found.durable, found.end, found.busy), (Lsn(10), Lsn(20), false));
        assert!(one.is_own(&found) && !other.is_own(&found));
        assert!(matches!(one.take_turn(Duration::ZERO), Err(Error::TurnHeld { .. })));
        other.give_turn(Lsn(20), Lsn(20));
        assert!(!one.is_own(&one.take_turn(SOON).unwrap().unwrap()));
    }

    #[test]
    fn a_handle_that_dies_with_the_turn_leaves_busy() {
        let (sim, path) = (SimVfs::new(), Path::new("/LOCK"));
        let one = shared(&sim, path);
        one.set_durable(Lsn(30)).unwrap();
        drop(one);
        let other = shared(&sim, path);
        let found = other.found().unwrap();
        assert_eq!((found.durable, found.busy), (Lsn(30), true));
        other.abandon_turn();
        assert!(shared(&sim, path).found().unwrap().busy);
    }

    #[test]
    fn only_the_holder_of_the_turn_writes_the_status() {
        let (sim, path) = (SimVfs::new(), Path::new("/LOCK"));
        let one = shared(&sim, path);
        one.give_turn(Lsn(10), Lsn(10));
        let other = shared(&sim, path);
        one.set_durable(Lsn(40)).unwrap();
        one.set_closed(Lsn(40)).unwrap();
        let status = other.status().unwrap().unwrap();
        assert_eq!((status.durable, status.closed, status.busy), (Lsn(10), false, true));
    }

    #[test]
    fn exclusive_and_shared_handles_refuse_each_other() {
        let (sim, path) = (SimVfs::new(), Path::new("/LOCK"));
        let one = Lock::writer(&sim, path).unwrap();
        assert!(matches!(Lock::shared(&sim, path, SOON), Err(Error::Held { .. })));
        drop(one);
        let one = shared(&sim, path);
        assert!(matches!(Lock::writer(&sim, path), Err(Error::Held { .. })));
        assert!(!one.has_other_writer().unwrap());
        one.give_turn(Lsn(0), Lsn(0));
        let _other = shared(&sim, path);
        assert!(one.has_other_writer().unwrap());
    }

    #[test]
    fn maintenance_is_one_handles_and_independent_of_turns() {
        let (sim, path) = (SimVfs::new(), Path::new("/LOCK"));
        let one = shared(&sim, path);
        assert!(one.try_maintenance().unwrap());
        one.give_turn(Lsn(0), Lsn(0));
        let other = shared(&sim, path);
        assert!(!other.try_maintenance().unwrap());
        one.end_maintenance();
        assert!(other.try_maintenance().unwrap());
    }

    fn end_share(lock: &Lock) {
        *lock.share.lock().unwrap() = None;
    }

    #[test]
    fn a_handle_passes_the_line_until_its_share_of_time_ends() {
        let (sim, path) = (SimVfs::new(), Path::new("/LOCK"));
        let one = shared(&sim, path);
        one.give_turn(Lsn(0), Lsn(0));
        let waiting = sim.open(path, crate::vfs::OpenMode::ReadWrite).unwrap();
        assert!(waiting.try_lock(LINE, LockKind::Exclusive).unwrap());
        *one.share.lock().unwrap() = Some(Instant::now() + SOON);
        one.take_turn(Duration::ZERO).unwrap();
        one.give_turn(Lsn(0), Lsn(0));
        end_share(&one);
        assert!(matches!(one.take_turn(Duration::ZERO), Err(Error::TurnHeld { .. })));
        waiting.unlock(LINE).unwrap();
        one.take_turn(Duration::ZERO).unwrap();
        assert!(one.share.lock().unwrap().is_some(), "another share begins");
    }

    /// A handle whose share has ended waits behind each of the others: between two of its turns, all that stood in line
    /// had theirs.
    #[test]
    fn nobody_overtakes_in_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let first = shared(&OsVfs, &path);
        let order = Mutex::new(Vec::new());
        let arrived = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for number in 0..4 {
                let (path, order, arrived) = (&path, &order, &arrived);
                while arrived.load(Ordering::SeqCst) < number || (number > 0 && !first.is_awaited().unwrap()) {
                    yield_now();
                }
                if number > 0 {
                    // The one before has moved up to its place when the place behind is free and its own is not.
                    let place = LINE.start + number as u64 - 1;
                    while !first.file.as_ref().unwrap().is_locked(place..place + 1).unwrap() {
                        yield_now();
                    }
                }
                scope.spawn(move || {
                    arrived.fetch_add(1, Ordering::SeqCst);
                    let lock = shared(&OsVfs, path);
                    order.lock().unwrap().push(number);
                    lock.give_turn(Lsn(0), Lsn(0));
                });
            }
            while !first.file.as_ref().unwrap().is_locked(LINE.start + 3..LINE.start + 4).unwrap() {
                yield_now();
            }
            first.give_turn(Lsn(0), Lsn(0));
            end_share(&first);
            first.take_turn(SOON).unwrap();
            order.lock().unwrap().push(9);
        });
        assert_eq!(order.into_inner().unwrap(), [0, 1, 2, 3, 9]);
    }
}
