//! The memory of an open database by its uses, which the option `memory_limit` bounds together.
//!
//! | part | at most, of `memory_limit` |
//! |---|---|
//! | catalog cache | 3/16, and `cache_bytes` |
//! | edges kept for questions ([`adjacency`](crate::state::adjacency)) | 1/8, and 64 MiB |
//! | tokens of texts kept for questions ([`frame_texts`](crate::state::frame_texts)) | 1/8, and 32 MiB |
//! | running merges | 5/16: no graph becomes larger than can be linked within it |
//! | a reserve for what is not counted: the copies that a checkpoint makes, stacks, the allocator | 1/16, always |
//! | changed rows, new words, new vectors | what the others leave: writers wait for a checkpoint |
//!
//! Vectors, codes, graphs, words and columns of derived files are mapped: their pages belong to the system, which takes
//! them back when it needs them.

use crate::Options;
use crate::core::Core;
use crate::state::State;
use holotype_storage::vfs::map_large_allocations;

/// Estimated memory overhead of a changed row and of a changed item, in bytes.
pub(crate) const ROW_BYTES: u64 = 112;
pub(crate) const ITEM_BYTES: u64 = 256;

/// Has the allocator keep less than it would where memory is little: below the default limit.
pub(crate) fn prepare_allocator(options: &Options) {
    if options.memory_limit < Options::default().memory_limit {
        map_large_allocations();
    }
}

/// The use of memory by one part of the database. Mapped files do not count: their pages are the system's.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// `catalog cache`, `edges` and `texts` that are kept for questions, `merges`, and what no checkpoint holds:
    /// `changed rows`, `new words` and `new vectors`; `reserve`, for what is not counted.
    pub part: &'static str,
    /// Bytes in use, counted or estimated. Of the cache it is the most that it takes.
    pub used: u64,
    /// The most bytes it takes; `None` for what `memory_limit` bounds together with the other parts.
    pub most: Option<u64>,
}

impl Core {
    /// The present use of each part.
    pub(crate) fn memory_parts(&self, state: &State) -> [MemoryUse; 8] {
        let options = &self.options;
        let mut changes = state.attributes.changed_count() as u64 * ITEM_BYTES;
        for overlay in [state.rows.active(), state.rows.frozen()] {
            changes += overlay.content_len() as u64 + overlay.count() as u64 * ROW_BYTES;
        }
        let (mut words, mut vectors) = (0, 0);
        for layer in &state.layers {
            words += layer.words.tails.iter().map(|tail| tail.byte_len() as u64).sum::<u64>();
            if let Some(of_layer) = &layer.vectors {
                vectors += of_layer.tail.byte_len() as u64;
            }
        }
        let part = |part, used, most| MemoryUse { part, used, most };
        let cache = options.cache_len() as u64;
        [
            part("catalog cache", cache, Some(cache)),
            part("edges", state.adjacency_bytes(), Some(options.edge_bytes())),
            part("texts", self.frame_texts.byte_len(), Some(self.frame_texts.most_bytes())),
            part("merges", self.merger.memory(), Some(options.merge_bytes())),
            part("reserve", options.memory_limit / 16, Some(options.memory_limit / 16)),
            part("changed rows", changes, None),
            part("new words", words, None),
            part("new vectors", vectors, None),
        ]
    }
}
