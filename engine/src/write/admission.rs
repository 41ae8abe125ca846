//! Admission control: near a limit, writers are delayed; at the limit they wait, and fail after `write_timeout`.
//!
//! Linking vectors into graphs takes longer than committing them, and until they are linked every search scans them. A
//! commit never waits for a merge, but where scanning them takes long ([`Pacing`]) a writer is delayed by part of the
//! time that linking its last vectors will take: the more wait, the greater the part. From a second number on it is the
//! whole, so that they grow no more; beyond, they become fewer. While nobody searches, more may wait.

use crate::core::throttle::LimitUse;
use crate::core::writer_lock::WriterGuard;
use crate::core::{Core, Writer};
use crate::derive::{checkpoint, merge};
use crate::state::layers::LayerVectors;
use crate::{Error, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The share of a limit, in thousandths, from which writers are delayed.
const SLOWED_FROM: u64 = 750;
/// Comparisons of codes that a search makes to scan a layer's unlinked vectors: from so many on writers are paced, and
/// from so many on they write no faster than vectors are linked.
#[derive(Clone, Copy)]
struct Pacing {
    from: u64,
    fully: u64,
}
/// A scan rules so many vectors out by their signs in the time of one comparison of codes, or in less.
const BY_SIGNS: usize = 3;
/// Scanning so many 8-bit codes of 384 dimensions takes one to three milliseconds.
const WHILE_SEARCHED: Pacing = Pacing { from: 64 << 10, fully: 128 << 10 };
/// The first search after a load scans them in some ten milliseconds.
const WHILE_NOT_SEARCHED: Pacing = Pacing { from: 256 << 10, fully: 512 << 10 };
/// A writer is paced by this much at most.
const LONGEST_PACE: Duration = Duration::from_millis(100);
/// The delay of a writer just below a limit.
const LONGEST_DELAY: Duration = Duration::from_millis(5);

impl Core {
    /// The use of each limit.
    pub(crate) fn limits(&self, writer: &Writer) -> [LimitUse; 5] {
        let (options, state) = (&self.options, &writer.state);
        let memory: u64 = self.memory_parts(state).iter().map(|part| part.used).sum();
        let (mut unsealed, mut segments) = (0, 0);
        for layer in &state.layers {
            segments = segments.max(layer.words.segments.len());
            if let Some(vectors) = &layer.vectors {
                unsealed += vectors.tail.len() as u64;
                segments = segments.max(merge::live_count(self, vectors));
            }
        }
        let age =
            self.throttle.oldest_snapshot().map_or(0, |taken| self.now().saturating_sub(taken).max(0).unsigned_abs());
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

    /// Waits until the limits admit a transaction, at most until `deadline`; returns the writer's lock.
    pub(crate) fn admit(self: &Arc<Self>, deadline: Option<Instant>) -> Result<WriterGuard<'_, Writer>> {
        let until = |at: Instant| deadline.map_or(at, |deadline| at.min(deadline));
        let mut last = None;
        let (mut slowed, mut paced) = (false, false);
        loop {
            let seen = self.throttle.progress();
            let writer = self.lock_writer_until(deadline)?;
            if let Some(detail) = &writer.poisoned {
                return Err(Error::Poisoned { detail: detail.clone() });
            }
            if !std::mem::replace(&mut paced, true)
                && let Some(pace) = self.pace(&writer)
            {
                drop(writer);
                let now = Instant::now();
                self.throttle.wait(seen, until(now + pace).saturating_duration_since(now));
                continue;
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
                checkpoint::start(self);
            } else if fullest.limit == "max_live_segments" {
                // Without new records no checkpoint follows that would request them.
                merge::start(self);
            }
            if full < 1_000 {
                slowed = true;
                let now = Instant::now();
                self.throttle.wait(seen, until(now + delay(full)).saturating_duration_since(now));
                continue;
            }
            let now = Instant::now();
            let last = *last.get_or_insert(until(now + self.options.write_timeout));
            if now >= last {
                let LimitUse { limit, used, max } = fullest;
                return Err(Error::Busy { limit, used, max: max.unwrap_or(u64::MAX) });
            }
            self.throttle.wait(seen, last - now);
        }
    }

    /// The delay of the next writer because of unlinked vectors, if any.
    fn pace(&self, writer: &Writer) -> Option<Duration> {
        // The comparisons that a search of the layer makes, and the vectors.
        let unlinked = |vectors: &LayerVectors| {
            let (mut scanned, mut unlinked) = (vectors.tail.len(), vectors.tail.len());
            for segment in vectors.segments.iter().filter(|segment| !segment.has_graph()) {
                scanned += segment.len() / if segment.has_signs() { BY_SIGNS } else { 1 };
                unlinked += segment.len();
            }
            (scanned as u64, unlinked as u64)
        };
        let layers = writer.state.layers.iter().filter_map(|layer| layer.vectors.as_ref());
        let (scanned, unlinked) = layers.map(unlinked).max()?;
        let new = self.merger.note_unlinked(unlinked);
        let pacing = if self.merger.was_searched_lately() { WHILE_SEARCHED } else { WHILE_NOT_SEARCHED };
        (scanned > pacing.from && new > 0).then(|| pacing.delay(scanned, new, self.merger.link_time()))
    }
}

impl Pacing {
    /// The delay for `new` vectors, each of which takes `link_time` to link, while a search makes so many comparisons.
    fn delay(self, scanned: u64, new: u64, link_time: Duration) -> Duration {
        let part = scanned.saturating_sub(self.from) as f64 / (self.fully - self.from) as f64;
        LONGEST_PACE.min(Duration::from_secs_f64((link_time.as_secs_f64() * new as f64 * part).min(1.0)))
    }
}

/// The delay at a use of `full` thousandths of a limit. It grows quadratically, because a checkpoint usually brings the
/// use down before the limit.
fn delay(full: u64) -> Duration {
    let (share, whole) = (full.saturating_sub(SLOWED_FROM) as u32, (1_000 - SLOWED_FROM) as u32);
    LONGEST_DELAY * share.min(whole).pow(2) / whole.pow(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_are_paced_by_what_linking_their_vectors_takes() {
        let each = Duration::from_micros(100);
        for pacing in [WHILE_SEARCHED, WHILE_NOT_SEARCHED] {
            let (Pacing { from, fully }, paced) = (pacing, |scanned| pacing.delay(scanned, 100, each));
            assert_eq!(paced(from), Duration::ZERO);
            assert_eq!(paced(from.midpoint(fully)), each * 50);
            assert_eq!(paced(fully), each * 100);
            assert_eq!(paced(2 * fully - from), each * 200);
            assert_eq!(pacing.delay(u64::MAX, u64::MAX, each), LONGEST_PACE);
        }
    }

    #[test]
    fn a_delay_grows_from_nothing_to_the_longest() {
        let delays: Vec<Duration> = (700..=1_100).map(delay).collect();
        assert!(delays.is_sorted());
        assert_eq!((delay(750), delay(875), delay(1_000)), (Duration::ZERO, LONGEST_DELAY / 4, LONGEST_DELAY));
        assert_eq!(delay(u64::MAX), LONGEST_DELAY);
    }
}
