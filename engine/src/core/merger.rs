//! The background threads that merge segments, and how fast they are.
//!
//! Two threads work beside each other: linking vectors into a graph may take seconds, and meanwhile the other keeps the
//! number of small segments down. A segment that one of them merges is marked, so that the other leaves it alone.

use crate::core::background_task::BackgroundTask;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So long after a search by vector others are expected.
const SEARCHED_LATELY: Duration = Duration::from_secs(5);
/// The time to link a vector before any was measured.
const ASSUMED_LINK: Duration = Duration::from_micros(200);

/// The state of the merges of one database.
pub(crate) struct Merger {
    /// Links vectors of segments without a graph.
    pub(crate) linking: BackgroundTask,
    /// Combines small segments of words, or of vectors without a graph.
    pub(crate) combining: BackgroundTask,
    /// The generations of the segments that are being merged.
    busy: Mutex<BTreeSet<u64>>,
    /// While above 0, no further merge begins in the background.
    pauses: AtomicUsize,
    /// The number of callers that have running merges end.
    stops: AtomicUsize,
    /// True while there is one.
    pub(crate) stopped: AtomicBool,
    /// The measured time to link a vector, in nanoseconds.
    link_ns: AtomicU64,
    /// The number of unlinked vectors when a writer began last.
    unlinked: AtomicU64,
    /// About the bytes of memory that running merges take.
    memory: AtomicU64,
    /// When the merger was made.
    started: Instant,
    /// The last search by vector, in milliseconds since then; 0 before the first.
    searched: AtomicU64,
}

/// The memory of a running merge, counted until this is dropped.
pub(crate) struct MergeMemory<'m> {
    merger: &'m Merger,
    bytes: u64,
}

impl Drop for MergeMemory<'_> {
    fn drop(&mut self) {
        self.merger.memory.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Segments marked as being merged, until this is dropped.
pub(crate) struct BusySegments<'m> {
    merger: &'m Merger,
    generations: Vec<u64>,
}

impl Drop for BusySegments<'_> {
    fn drop(&mut self) {
        let mut busy = self.merger.busy();
        for generation in &self.generations {
            busy.remove(generation);
        }
    }
}

/// Keeps merges from beginning in the background.
pub(crate) struct Pause<'m>(&'m Merger);

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.0.pauses.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Ends running merges, whose work is thrown away, and keeps others from beginning in the background.
pub(crate) struct Stop<'m> {
    merger: &'m Merger,
    _pause: Pause<'m>,
}

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        if self.merger.stops.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.merger.stopped.store(false, Ordering::Release);
        }
    }
}

impl Default for Merger {
    fn default() -> Self {
        Merger {
            linking: BackgroundTask::new("holotype-link"),
            combining: BackgroundTask::new("holotype-merge"),
            busy: Mutex::default(),
            pauses: AtomicUsize::new(0),
            stops: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            link_ns: AtomicU64::new(ASSUMED_LINK.as_nanos() as u64),
            unlinked: AtomicU64::new(0),
            memory: AtomicU64::new(0),
            started: Instant::now(),
            searched: AtomicU64::new(0),
        }
    }
}

impl Merger {
    /// Chooses segments under a lock, so that no two threads choose the same one, and marks them. `choose` gets the
    /// generations that are taken, and returns its choice with the generations in it.
    pub(crate) fn choose<T>(
        &self,
        choose: impl FnOnce(&BTreeSet<u64>) -> Option<(T, Vec<u64>)>,
    ) -> Option<(T, BusySegments<'_>)> {
        let mut busy = self.busy();
        let (chosen, generations) = choose(&busy)?;
        busy.extend(&generations);
        Some((chosen, BusySegments { merger: self, generations }))
    }

    /// Lets no further merge begin in the background until the guard is dropped.
    pub(crate) fn pause(&self) -> Pause<'_> {
        self.pauses.fetch_add(1, Ordering::AcqRel);
        Pause(self)
    }

    /// Has running merges end until the guard is dropped.
    pub(crate) fn stop(&self) -> Stop<'_> {
        let pause = self.pause();
        self.stops.fetch_add(1, Ordering::AcqRel);
        self.stopped.store(true, Ordering::Release);
        Stop { merger: self, _pause: pause }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.pauses.load(Ordering::Acquire) > 0
    }

    /// Takes note of how long linking so many vectors took.
    pub(crate) fn record_linking(&self, took: Duration, vectors: usize) {
        let each = took.as_nanos() / vectors.max(1) as u128;
        self.link_ns.store(u64::try_from(each).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The time that linking a vector took last.
    pub(crate) fn link_time(&self) -> Duration {
        Duration::from_nanos(self.link_ns.load(Ordering::Relaxed))
    }

    /// Takes note of how many vectors are unlinked; returns how many more that are than the last time.
    pub(crate) fn note_unlinked(&self, unlinked: u64) -> u64 {
        unlinked.saturating_sub(self.unlinked.swap(unlinked, Ordering::Relaxed))
    }

    /// Takes note of a search by vector.
    pub(crate) fn note_search(&self) {
        self.searched.store(self.milliseconds().max(1), Ordering::Relaxed);
    }

    /// True if there was a search by vector in the last [`SEARCHED_LATELY`].
    pub(crate) fn was_searched_lately(&self) -> bool {
        let searched = self.searched.load(Ordering::Relaxed);
        searched > 0 && u128::from(self.milliseconds().saturating_sub(searched)) < SEARCHED_LATELY.as_millis()
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Counts the memory of a merge that runs.
    pub(crate) fn takes(&self, bytes: u64) -> MergeMemory<'_> {
        self.memory.fetch_add(bytes, Ordering::Relaxed);
        MergeMemory { merger: self, bytes }
    }

    /// About the bytes of memory that running merges take.
    pub(crate) fn memory(&self) -> u64 {
        self.memory.load(Ordering::Relaxed)
    }

    fn busy(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_late_once_the_time_has_passed() {
        let mut merger = Merger::default();
        assert!(!merger.was_searched_lately(), "nobody searched");
        merger.note_search();
        assert!(merger.was_searched_lately());
        // As though the merger had been made, and searched at once, so long ago.
        merger.started -= SEARCHED_LATELY + Duration::from_secs(1);
        merger.searched = AtomicU64::new(1);
        assert!(!merger.was_searched_lately());
    }
}
