//! Scratch memory of a search, reused by later searches.
//!
//! The visited set has one bit per node, 125 KB for a million nodes, so it stays in cache. A reset clears only the bits
//! that were set.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::search::Beam;
use crate::sync::{Mutex, MutexGuard};

/// A set of nodes below a bound.
#[derive(Debug, Default)]
pub(crate) struct Visited {
    blocks: Vec<u64>,
    set: Vec<u32>,
}

impl Visited {
    /// Empties the set and makes room for nodes below `bound`.
    pub(crate) fn reset(&mut self, bound: usize) {
        for node in self.set.drain(..) {
            self.blocks[node as usize / 64] = 0;
        }
        let blocks = bound.div_ceil(64);
        if self.blocks.len() < blocks {
            self.blocks.resize(blocks, 0);
        }
    }

    /// Adds `node`; returns false if it was present.
    #[inline(always)]
    pub(crate) fn insert(&mut self, node: u32) -> bool {
        let block = &mut self.blocks[node as usize / 64];
        let bit = 1 << (node % 64);
        if *block & bit != 0 {
            return false;
        }
        *block |= bit;
        self.set.push(node);
        true
    }
}

/// Scratch memory of one search.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) visited: Visited,
    pub(crate) beam: Beam,
    /// Matches found, if not collected in the beam.
    pub(crate) found: Beam,
    /// Nodes to compare next, as indices in the current level.
    pub(crate) nodes: Vec<u32>,
    /// The same nodes as positions.
    pub(crate) positions: Vec<u32>,
    pub(crate) distances: Vec<i32>,
    /// Nodes to step over.
    pub(crate) bridges: Vec<u32>,
    pub(crate) frontier: std::collections::BinaryHeap<std::cmp::Reverse<u64>>,
}

/// Slots of a pool.
const PLACES: usize = 16;

/// A pool of scratch memory. Each thread has its own slot, as far as there are enough, so that it reuses memory that is
/// still in its core's cache. It looks in other slots before it allocates.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: [Place; PLACES],
}

/// A slot on its own pair of cache lines, which are fetched together.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Place(Mutex<Vec<Scratch>>);

impl Place {
    fn lock(&self) -> MutexGuard<'_, Vec<Scratch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot of this thread.
fn own_place() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OWN: usize = THREADS.fetch_add(1, Ordering::Relaxed) % PLACES);
    OWN.with(|own| *own)
}

impl Pool {
    /// Takes scratch memory for a resumable search; [`Pool::give_back`] returns it.
    pub(crate) fn take(&self) -> Scratch {
        let (before, from) = self.free.split_at(own_place());
        from.iter().chain(before).find_map(|place| place.lock().pop()).unwrap_or_default()
    }

    /// Returns scratch memory to the pool.
    pub(crate) fn give_back(&self, scratch: Scratch) {
        self.free[own_place()].lock().push(scratch);
    }

    /// Runs `search` with scratch memory.
    pub(crate) fn with<R>(&self, search: impl FnOnce(&mut Scratch) -> R) -> R {
        let mut scratch = self.take();
        let result = search(&mut scratch);
        self.give_back(scratch);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_set_is_empty_and_may_be_larger() {
        let mut visited = Visited::default();
        for bound in [10usize, 1000, 70] {
            visited.reset(bound);
            for node in 0..bound as u32 {
                assert!(visited.insert(node));
                assert!(!visited.insert(node));
            }
        }
    }

    #[test]
    fn a_thread_finds_what_it_gave_back_and_before_it_makes_more_what_others_did() {
        let pool = Pool::default();
        let give = |capacity: usize| {
            pool.give_back(Scratch { nodes: Vec::with_capacity(capacity), ..Scratch::default() });
        };
        give(100);
        // The memory that this thread gave back is taken second, and the third is a new one.
        let taken = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                give(200);
                [pool.take(), pool.take(), pool.take()].map(|scratch| scratch.nodes.capacity())
            });
            other.join().unwrap()
        });
        assert_eq!(taken, [200, 100, 0]);
    }
}
