//! What a search has met, and the memory it works in, kept from search to search.
//!
//! One bit a node: 125 KB for a million, so it stays near the core. It is cleared by undoing what was set, which costs
//! no more than setting it did.

use std::sync::PoisonError;

use super::search::Beam;
use crate::sync::{Mutex, MutexGuard};

/// A set of nodes, all below a bound.
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

    /// Adds `node`; false when it was there already.
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

/// The memory of one search.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) visited: Visited,
    pub(crate) beam: Beam,
    /// Matches found, where they are not the beam itself.
    pub(crate) found: Beam,
    /// Nodes to be compared next, as indices in the level at work.
    pub(crate) nodes: Vec<u32>,
    /// The same nodes as positions.
    pub(crate) positions: Vec<u32>,
    pub(crate) distances: Vec<i32>,
    /// Nodes to step over.
    pub(crate) bridges: Vec<u32>,
    pub(crate) frontier: std::collections::BinaryHeap<std::cmp::Reverse<u64>>,
}

/// Scratch memory that searches take and give back.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: Mutex<Vec<Scratch>>,
}

impl Pool {
    /// Scratch memory, for a search that lasts; [`Pool::give_back`] keeps it for the next.
    pub(crate) fn take(&self) -> Scratch {
        self.lock().pop().unwrap_or_default()
    }

    /// Takes scratch memory back.
    pub(crate) fn give_back(&self, scratch: Scratch) {
        self.lock().push(scratch);
    }

    /// Runs `search` with scratch memory of its own.
    pub(crate) fn with<R>(&self, search: impl FnOnce(&mut Scratch) -> R) -> R {
        let mut scratch = self.take();
        let result = search(&mut scratch);
        self.give_back(scratch);
        result
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Scratch>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
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
}
