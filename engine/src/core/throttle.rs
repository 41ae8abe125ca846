//! Backpressure: bounds the work that checkpoints have not absorbed yet, by delaying writers.
//!
//! | limit | counts | relieved by |
//! |---|---|---|
//! | `memory_limit` | caches, running merges; changes, new texts and vectors since the last checkpoint | a checkpoint |
//! | `max_tail_bytes` | log after the last checkpoint, which an opening after a crash has to replay | a checkpoint |
//! | `max_unsealed_vectors` | vectors outside segments, which every search scans | a checkpoint |
//! | `max_live_segments` | segments that may grow, of the layer with the most | a merge |
//! | `snapshot_max_age` | age of the oldest live snapshot | dropping the snapshot |
//!
//! From three quarters of a limit on, the start of a transaction is delayed, the more the fuller the limit. At the
//! limit it waits for relief. After `write_timeout` it fails with [`Error::Busy`]; nothing has changed and the caller
//! may try again. A transaction that has begun is never delayed.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The fill level of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LimitUse {
    /// The option's name.
    pub(crate) limit: &'static str,
    /// The used amount: bytes, vectors, segments or microseconds.
    pub(crate) used: u64,
    /// The maximum; `None` if unlimited.
    pub(crate) max: Option<u64>,
}

impl LimitUse {
    /// The used share in thousandths.
    pub(crate) fn per_mille(&self) -> u64 {
        match self.max {
            Some(max) => (u128::from(self.used) * 1_000 / u128::from(max.max(1))).try_into().unwrap_or(u64::MAX),
            None => 0,
        }
    }
}

/// Tracks live snapshots and wakes delayed writers.
#[derive(Default)]
pub(crate) struct WriteThrottle {
    state: Mutex<ThrottleState>,
    changed: Condvar,
}

#[derive(Default)]
struct ThrottleState {
    /// Incremented whenever a limit may have been relieved.
    progress: u64,
    /// The creation time and number of each live snapshot.
    snapshots: BTreeSet<(i64, u64)>,
    next: u64,
}

/// Registers a live snapshot until it is dropped.
pub(crate) struct SnapshotGuard {
    throttle: Arc<WriteThrottle>,
    taken: (i64, u64),
}

impl Drop for SnapshotGuard {
    fn drop(&mut self) {
        self.throttle.state().snapshots.remove(&self.taken);
        self.throttle.signal_progress();
    }
}

impl WriteThrottle {
    /// Registers a snapshot taken at `now`.
    pub(crate) fn register_snapshot(self: &Arc<Self>, now: i64) -> SnapshotGuard {
        let mut state = self.state();
        let taken = (now, state.next);
        state.next += 1;
        state.snapshots.insert(taken);
        SnapshotGuard { throttle: Arc::clone(self), taken }
    }

    /// The creation time of the oldest live snapshot.
    pub(crate) fn oldest_snapshot(&self) -> Option<i64> {
        self.state().snapshots.first().map(|(time, _)| *time)
    }

    /// Wakes delayed writers after a limit may have been relieved.
    pub(crate) fn signal_progress(&self) {
        self.state().progress += 1;
        self.changed.notify_all();
    }

    pub(crate) fn progress(&self) -> u64 {
        self.state().progress
    }

    /// Waits for progress since `seen`, at most for `longest`.
    pub(crate) fn wait(&self, seen: u64, longest: Duration) {
        let state = self.state();
        let stands_still = |state: &mut ThrottleState| state.progress == seen;
        drop(self.changed.wait_timeout_while(state, longest, stands_still).unwrap_or_else(PoisonError::into_inner));
    }

    fn state(&self) -> MutexGuard<'_, ThrottleState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_snapshot_is_the_one_that_is_held_longest() {
        let throttle = Arc::new(WriteThrottle::default());
        assert_eq!(throttle.oldest_snapshot(), None);
        let (first, second) = (throttle.register_snapshot(5), throttle.register_snapshot(5));
        let third = throttle.register_snapshot(9);
        drop(first);
        assert_eq!(throttle.oldest_snapshot(), Some(5));
        let seen = throttle.progress();
        drop(second);
        assert_eq!(throttle.oldest_snapshot(), Some(9));
        // There was progress, so this returns at once. Without it the test would hang.
        throttle.wait(seen, Duration::from_secs(3_600));
        drop(third);
        assert_eq!(throttle.oldest_snapshot(), None);
    }

    #[test]
    fn a_share_is_counted_in_thousandths() {
        let of = |used, max| LimitUse { limit: "l", used, max }.per_mille();
        assert_eq!((of(3, Some(4)), of(4, Some(4)), of(u64::MAX, Some(1)), of(9, None)), (750, 1_000, u64::MAX, 0));
        assert_eq!(of(1, Some(0)), 1_000);
    }
}
