//! The signal that a newer state is published, for threads that wait for changes.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Wakes waiting threads when a newer state is published.
#[derive(Default)]
pub(crate) struct Changed {
    /// The number of waiting threads. Locked between a waiter's look at the published state and its sleep, so that no
    /// signal is lost.
    waiting: Mutex<u32>,
    signal: Condvar,
}

impl Changed {
    /// Wakes every waiting thread. The published state is the newer one already.
    pub(crate) fn notify(&self) {
        // A signal is a system call, and most commits have nobody waiting.
        if *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) > 0 {
            self.signal.notify_all();
        }
    }

    /// Sleeps until the next signal, or for `time`; not at all if `is_changed` holds now.
    pub(crate) fn wait_unless(&self, is_changed: impl FnOnce() -> bool, time: Duration) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_changed() {
            *waiting += 1;
            waiting = self.signal.wait_timeout(waiting, time).unwrap_or_else(PoisonError::into_inner).0;
            *waiting -= 1;
        }
    }
}
