//! The items that a rebuild does not index again, because reused segments hold them.

use crate::records::record::ItemRecord;
use holotype_index::bitmap::Bits;

/// The items of one layer that reused segments already index.
#[derive(Default)]
pub(crate) struct CoveredItems {
    pub(crate) vectors: Bits,
    pub(crate) words: Bits,
}

impl CoveredItems {
    /// Returns true if reused segments hold both the words and, if any, the vector of an item of this layer.
    pub(crate) fn covers(&self, item: &ItemRecord) -> bool {
        self.words.contains(item.id) && (item.vector.is_none() || self.vectors.contains(item.id))
    }
}
