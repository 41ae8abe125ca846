//! The turn of a database that several handles write to: who in this process uses it.
//!
//! The turn ([`holotype_storage::turn`]) belongs to the handle, and its threads share it: the first transaction takes
//! it, those that begin meanwhile join, and the last one to be durable gives it back. An exclusive handle has no turns.
//!
//! 1. The turn is entered before the writer's lock is taken, so nobody waits for another process with that lock.
//! 2. After [`LONGEST`], while another process waits, nobody joins until the turn was given back. Steps within a larger
//!    operation join in any case ([`Core::pin_turn`]), or they would wait for themselves.
//! 3. The thread that takes the turn notes what is to be caught up with; the note stays until a thread has caught up.

use crate::core::Core;
use crate::{Error, Result};
use holotype_storage::lock::Status;
use holotype_storage::log::Lsn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time for which transactions of one process join a turn that another process waits for.
const LONGEST: Duration = Duration::from_millis(50);

/// Changes by others since this handle last had the turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Since {
    /// Nothing.
    #[default]
    Nothing,
    /// Others may have appended; the log was durable up to here when they gave the turn back.
    Appended(Lsn),
    /// The holder before died or failed with the turn: the log must be recovered.
    Died(Lsn),
}

/// The turn of one handle.
#[derive(Default)]
pub(crate) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
    /// A failure under this turn left work that only a recovery finishes.
    failed: AtomicBool,
    /// The number of jobs of this handle that change derived files. Above 0, this handle has the maintenance byte.
    pub(crate) maintainers: Mutex<u32>,
}

#[derive(Default)]
struct State {
    /// Transactions and other users of the turn. Above 0, this handle has the turn.
    users: u32,
    /// Those of the users within which others join.
    pinned: u32,
    /// A thread waits for the turn.
    taking: bool,
    /// When the turn was taken.
    taken: Option<Instant>,
    since: Since,
}

/// A use of the turn, until this is dropped.
pub(crate) struct TurnGuard<'c> {
    core: &'c Core,
    pinned: bool,
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        self.core.leave_turn(self.pinned);
    }
}

impl Turns {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes to catch up with.
    pub(crate) fn since(&self) -> Since {
        self.state().since
    }

    /// Notes that everything was caught up with.
    pub(crate) fn caught_up(&self) {
        self.state().since = Since::Nothing;
    }

    /// Has the next holder recover the log.
    pub(crate) fn note_failure(&self) {
        self.failed.store(true, Ordering::Release);
    }
}

impl Core {
    /// Uses the turn: takes it, or joins those of this handle that have it. `None` for an exclusive handle.
    ///
    /// # Errors
    /// [`holotype_storage::Error::TurnHeld`] at the deadline, or after `write_timeout` without one; errors of the file
    /// system.
    pub(crate) fn enter_turn(&self, deadline: Option<Instant>) -> Result<Option<TurnGuard<'_>>> {
        self.use_turn(false, deadline)
    }

    /// The same for an operation of several transactions: until it ends, whatever this handle does joins it.
    pub(crate) fn pin_turn(&self) -> Result<Option<TurnGuard<'_>>> {
        self.use_turn(true, None)
    }

    fn use_turn(&self, pinned: bool, deadline: Option<Instant>) -> Result<Option<TurnGuard<'_>>> {
        if !self.options.takes_turns() {
            return Ok(None);
        }
        let deadline = deadline.unwrap_or_else(|| Instant::now() + self.options.write_timeout);
        let mut state = self.turns.state();
        loop {
            if state.users > 0 && self.may_join(&state)? {
                break;
            }
            if state.users == 0 && !state.taking {
                state.taking = true;
                drop(state);
                let taken = self.lock.take_turn(deadline.saturating_duration_since(Instant::now()));
                state = self.turns.state();
                state.taking = false;
                self.turns.changed.notify_all();
                state.note(&taken?, self);
                break;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let pid = std::process::id();
                return Err(Error::Storage(holotype_storage::Error::TurnHeld {
                    path: self.files.lock(),
                    pid,
                    command: String::new(),
                }));
            }
            state = self.turns.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.users += 1;
        state.pinned += u32::from(pinned);
        Ok(Some(TurnGuard { core: self, pinned }))
    }

    fn may_join(&self, state: &State) -> Result<bool> {
        let is_long = state.pinned == 0 && state.taken.is_some_and(|taken| taken.elapsed() >= LONGEST);
        Ok(!is_long || !self.lock.is_awaited()?)
    }

    fn leave_turn(&self, pinned: bool) {
        if self.lock.check_process().is_err() {
            // The turn is the parent's.
            return;
        }
        let mut state = self.turns.state();
        state.users -= 1;
        state.pinned -= u32::from(pinned);
        if state.users > 0 {
            return;
        }
        match self.log.flush() {
            Ok(()) if !self.turns.failed.load(Ordering::Acquire) => {
                self.lock.give_turn(self.log.durable(), self.log.end());
            }
            _ => self.lock.abandon_turn(),
        }
        self.turns.changed.notify_all();
    }
}

impl State {
    /// Notes what the status block says of the time since this handle last had the turn.
    fn note(&mut self, found: &Option<Status>, core: &Core) {
        self.taken = Some(Instant::now());
        let Some(found) = found else {
            self.since = Since::Died(Lsn(0));
            return;
        };
        let is_as_left = core.lock.is_own(found) && found.end == core.log.end();
        let since = match found {
            Status { busy: true, .. } => Since::Died(found.durable),
            // The block may be an old one.
            _ if is_as_left && core.log.is_blank_behind().unwrap_or(false) => Since::Nothing,
            _ => Since::Appended(found.durable),
        };
        // An earlier note stays until somebody has caught up.
        if since != Since::Nothing && !matches!(self.since, Since::Died(_)) {
            self.since = since;
        }
    }
}
