//! Back-pressure: what is written but not yet settled is bounded, and writers are held back before a bound is passed.
//!
//! | limit | what counts towards it | what brings it down |
//! |---|---|---|
//! | `memory_limit` | the catalog's cache, changes and new texts and vectors since the last checkpoint | a checkpoint |
//! | `max_tail_bytes` | log that no checkpoint holds: what an opening after a crash has to read | a checkpoint |
//! | `max_unsealed_vectors` | vectors in no segment, which are searched one by one | a checkpoint |
//! | `max_live_segments` | segments of the layer that has the most | the merge in a checkpoint |
//! | `snapshot_max_age` | the age of the oldest snapshot that is held | letting it go |
//!
//! At three quarters of a limit a transaction begins a little later, the more so the fuller it is; at the limit it waits for
//! what brings it down, and after `write_timeout` it is refused with [`Error::Busy`], which changes nothing: it may be tried
//! again. A transaction that has begun is never held back.

use crate::database::{Inner, Writer};
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How full a limit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LimitUse {
    /// The option's name.
    pub(crate) limit: &'static str,
    /// How much of it is used: bytes, vectors, segments or microseconds.
    pub(crate) used: u64,
    /// How much there may be; nothing when it is not limited.
    pub(crate) max: Option<u64>,
}

impl LimitUse {
    /// The share that is used, in thousandths.
    fn per_mille(&self) -> u64 {
        match self.max {
            Some(max) => (u128::from(self.used) * 1_000 / u128::from(max.max(1))).try_into().unwrap_or(u64::MAX),
            None => 0,
        }
    }
}

/// From this share on writers are slowed, in thousandths.
const SLOWED_FROM: u64 = 750;
/// How long a writer is held up just below a limit.
const LONGEST_DELAY: Duration = Duration::from_millis(5);
/// What a changed row takes beside its bytes, and a changed item, about.
pub(crate) const ROW_BYTES: u64 = 112;
pub(crate) const ITEM_BYTES: u64 = 256;

/// Where writers wait, and who holds snapshots.
#[derive(Default)]
pub(crate) struct Gate {
    inside: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Default)]
struct Inside {
    /// Counts what may have let a limit down.
    progress: u64,
    /// When each snapshot that is held was taken, and its number.
    snapshots: BTreeSet<(i64, u64)>,
    next: u64,
}

/// Held by a snapshot for as long as it is there.
pub(crate) struct Held {
    gate: Arc<Gate>,
    taken: (i64, u64),
}

impl Drop for Held {
    fn drop(&mut self) {
        self.gate.inside().snapshots.remove(&self.taken);
        self.gate.note_progress();
    }
}

impl Gate {
    /// Notes that a snapshot was taken.
    pub(crate) fn hold(self: &Arc<Self>, now: i64) -> Held {
        let mut inside = self.inside();
        let taken = (now, inside.next);
        inside.next += 1;
        inside.snapshots.insert(taken);
        Held { gate: Arc::clone(self), taken }
    }

    /// When the oldest snapshot that is held was taken.
    pub(crate) fn oldest_snapshot(&self) -> Option<i64> {
        self.inside().snapshots.first().map(|(time, _)| *time)
    }

    /// Wakes those that wait: something has been brought down.
    pub(crate) fn note_progress(&self) {
        self.inside().progress += 1;
        self.changed.notify_all();
    }

    fn progress(&self) -> u64 {
        self.inside().progress
    }

    /// Waits until there is progress since `seen`, or for so long.
    fn wait(&self, seen: u64, longest: Duration) {
        let inside = self.inside();
        let stands_still = |inside: &mut Inside| inside.progress == seen;
        drop(self.changed.wait_timeout_while(inside, longest, stands_still).unwrap_or_else(PoisonError::into_inner));
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// How full each limit is.
    pub(crate) fn limits(&self, writer: &Writer) -> [LimitUse; 5] {
        let (options, state) = (&self.options, &writer.state);
        let mut memory = options.cache_len() as u64 + state.attributes.changed_count() as u64 * ITEM_BYTES;
        for overlay in [state.rows.active(), state.rows.frozen()] {
            memory += overlay.content_len() as u64 + overlay.count() as u64 * ROW_BYTES;
        }
        let (mut unsealed, mut segments) = (0, 0);
        for layer in &state.layers {
            memory += layer.words.tails.iter().map(|tail| tail.byte_len() as u64).sum::<u64>();
            segments = segments.max(layer.words.segments.len());
            if let Some(vectors) = &layer.vectors {
                unsealed += vectors.tail.len() as u64;
                memory += (vectors.tail.len() * vectors.tail.spec().dim * size_of::<f32>()) as u64;
                segments = segments.max(vectors.segments.len());
            }
        }
        let age = self.gate.oldest_snapshot().map_or(0, |taken| self.now().saturating_sub(taken).max(0).unsigned_abs());
        let max_age = options.snapshot_max_age.map(|age| u64::try_from(age.as_micros()).unwrap_or(u64::MAX));
        let limit = |limit, used, max| LimitUse { limit, used, max };
        [
            limit("memory_limit", memory, Some(options.memory_limit)),
            limit("max_tail_bytes", writer.tail_bytes + writer.frozen_bytes, Some(options.max_tail_bytes)),
            limit("max_unsealed_vectors", unsealed, Some(options.max_unsealed_vectors)),
            limit("max_live_segments", segments as u64, Some(options.max_live_segments)),
            limit("snapshot_max_age", age, max_age),
        ]
    }

    /// The writer's lock, once the limits let a transaction begin.
    pub(crate) fn admit(self: &Arc<Self>) -> Result<MutexGuard<'_, Writer>> {
        let mut deadline = None;
        let mut slowed = false;
        loop {
            let seen = self.gate.progress();
            let writer = self.lock_writer();
            if let Some(detail) = &writer.poisoned {
                return Err(Error::Poisoned { detail: detail.clone() });
            }
            let limits = self.limits(&writer);
            let Some(fullest) = limits.into_iter().max_by_key(LimitUse::per_mille) else { return Ok(writer) };
            let full = fullest.per_mille();
            if full < SLOWED_FROM || (full < 1_000 && slowed) {
                return Ok(writer);
            }
            let due = writer.tail_records > 0 && !writer.checkpoint_running;
            drop(writer);
            if due {
                self.checkpointer.start(self);
            }
            if full < 1_000 {
                slowed = true;
                self.gate.wait(seen, delay(full));
                continue;
            }
            let now = Instant::now();
            let deadline = *deadline.get_or_insert(now + self.options.write_timeout);
            if now >= deadline {
                let LimitUse { limit, used, max } = fullest;
                return Err(Error::Busy { limit, used, max: max.unwrap_or(u64::MAX) });
            }
            self.gate.wait(seen, deadline - now);
        }
    }
}

/// How long a writer is held up where a limit is used so far, in thousandths. It grows with the square: what is far from the
/// limit is mostly brought down in time.
fn delay(full: u64) -> Duration {
    let (share, whole) = (full.saturating_sub(SLOWED_FROM) as u32, (1_000 - SLOWED_FROM) as u32);
    LONGEST_DELAY * share.min(whole).pow(2) / whole.pow(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_snapshot_is_the_one_that_is_held_longest() {
        let gate = Arc::new(Gate::default());
        assert_eq!(gate.oldest_snapshot(), None);
        let (first, second) = (gate.hold(5), gate.hold(5));
        let third = gate.hold(9);
        drop(first);
        assert_eq!(gate.oldest_snapshot(), Some(5));
        let seen = gate.progress();
        drop(second);
        assert_eq!(gate.oldest_snapshot(), Some(9));
        // There was progress: this returns, or the test hangs.
        gate.wait(seen, Duration::from_secs(3_600));
        drop(third);
        assert_eq!(gate.oldest_snapshot(), None);
    }

    #[test]
    fn a_delay_grows_from_nothing_to_the_longest() {
        let delays: Vec<Duration> = (700..=1_100).map(delay).collect();
        assert!(delays.is_sorted());
        assert_eq!((delay(750), delay(875), delay(1_000)), (Duration::ZERO, LONGEST_DELAY / 4, LONGEST_DELAY));
        assert_eq!(delay(u64::MAX), LONGEST_DELAY);
    }

    #[test]
    fn a_share_is_counted_in_thousandths() {
        let of = |used, max| LimitUse { limit: "l", used, max }.per_mille();
        assert_eq!((of(3, Some(4)), of(4, Some(4)), of(u64::MAX, Some(1)), of(9, None)), (750, 1_000, u64::MAX, 0));
        assert_eq!(of(1, Some(0)), 1_000);
    }
}
