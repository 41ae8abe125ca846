//! The hashes of the records of a page, or of a transaction, made together.
//!
//! Who needs the hashes of many records asks for all of them first and looks each up by where its record begins. A record that
//! was erased states its hash, and one longer than [`MAX_BATCHED_LEN`] is hashed alone: both are missing here.

use crate::chain::{self, Hash, TAG_RECORD};
use crate::hash_batch::{HashBatch, MAX_BATCHED_LEN};

/// Hashes by the offset of their records.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordHashes {
    /// Offsets, ascending.
    offsets: Vec<usize>,
    /// The one after the record that was looked up last: mostly the one that comes next.
    next: usize,
    batch: HashBatch,
}

impl RecordHashes {
    /// Forgets all records.
    pub(crate) fn clear(&mut self) {
        self.offsets.clear();
        self.next = 0;
        self.batch.clear();
    }

    /// Adds a record behind those there are.
    pub(crate) fn push(&mut self, offset: usize, header: &[u8; 8], salt: &[u8], payload: &[u8]) {
        if payload.len() <= MAX_BATCHED_LEN - chain::RECORD_PREFIX_LEN {
            self.offsets.push(offset);
            self.batch.push(&[&[TAG_RECORD], header, salt, payload]);
        }
    }

    /// Makes the hashes.
    pub(crate) fn make(&mut self) {
        self.batch.run();
    }

    /// The hash of the record at an offset, if it was made.
    pub(crate) fn find(&mut self, offset: usize) -> Option<Hash> {
        let at = match self.offsets.get(self.next) {
            Some(next) if *next == offset => self.next,
            _ => self.offsets.binary_search(&offset).ok()?,
        };
        self.next = at + 1;
        self.batch.hashes().get(at).copied()
    }
}
