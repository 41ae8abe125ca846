//! The signal that a newer state is published, for threads that wait for changes.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Wakes waiting threads when a newer state is published.
#[derive(Default)]
pub(crate) struct Changed {
    /// Held between the waiter's look at the published state and its sleep, so that no signal is lost.
    waiting: Mutex<()>,
    signal: Condvar,
}

impl Changed {
    /// Wakes every waiting thread. The published state is the newer one already.
    pub(crate) fn notify(&self) {
        drop(self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        self.signal.notify_all();
    }

    /// Sleeps until the next signal, or for `time`; not at all if `is_changed` holds now.
    pub(crate) fn wait_unless(&self, is_changed: impl FnOnce() -> bool, time: Duration) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_changed() {
            drop(self.signal.wait_timeout(waiting, time).unwrap_or_else(PoisonError::into_inner));
        }
    }
}
