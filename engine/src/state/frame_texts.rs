//! The texts that recalls compared, kept between questions.
//!
//! The content of an item never changes, so that an entry is valid until the item is forgotten. Items of a transaction
//! in progress are not kept: their numbers are given again if it is dropped.

use crate::memory::frames::FrameText;
use crate::model::item::ItemId;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::Arc;

/// The share of the memory limit that texts may take, and the most bytes.
const LIMIT_SHARE: u64 = 8;
const MAX_BYTES: u64 = 32 << 20;
/// Bytes of a typical text, for the initial size of the table.
const TYPICAL_BYTES: u64 = 512;

#[derive(Debug, Clone)]
struct ByteLen;

impl Weighter<u32, Arc<FrameText>> for ByteLen {
    fn weight(&self, _: &u32, text: &Arc<FrameText>) -> u64 {
        text.byte_len() as u64
    }
}

/// Texts by item, bounded in bytes.
#[derive(Debug)]
pub(crate) struct FrameTextCache(Cache<u32, Arc<FrameText>, ByteLen>);

impl FrameTextCache {
    /// A cache for a database with this memory limit, in bytes.
    pub(crate) fn new(memory_limit: u64) -> FrameTextCache {
        let most = (memory_limit / LIMIT_SHARE).min(MAX_BYTES);
        FrameTextCache(Cache::with_weighter((most / TYPICAL_BYTES) as usize, most, ByteLen))
    }

    pub(crate) fn get(&self, id: ItemId) -> Option<Arc<FrameText>> {
        self.0.get(&id.0)
    }

    pub(crate) fn insert(&self, id: ItemId, text: Arc<FrameText>) {
        self.0.insert(id.0, text);
    }

    /// Drops all texts, because some were forgotten.
    pub(crate) fn clear(&self) {
        self.0.clear();
    }

    /// The bytes in use.
    pub(crate) fn byte_len(&self) -> u64 {
        self.0.weight()
    }

    /// The most bytes.
    pub(crate) fn most_bytes(&self) -> u64 {
        self.0.capacity()
    }
}
