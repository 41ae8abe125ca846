//! Batched hashes of the records of a page or a transaction.
//!
//! Callers that need many hashes add all records first. Records up to [`MAX_BATCHED_LEN`] are hashed in parallel lanes,
//! a longer one is hashed alone, and an erased one states its hash.

use crate::chain::{self, Hash};
use crate::hash_batch::{HashBatch, MAX_BATCHED_LEN};
use crate::record::SALT_LEN;

/// Hashes by the offset of their records.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordHashes {
    /// Offsets, ascending.
    offsets: Vec<usize>,
    hashes: Vec<Hash>,
    batch: HashBatch,
    /// The indices of the records that are in the batch.
    batched: Vec<usize>,
    /// The index after the last one found: usually the next one wanted.
    next: usize,
}

impl RecordHashes {
    /// Removes all records.
    pub(crate) fn clear(&mut self) {
        self.offsets.clear();
        self.hashes.clear();
        self.batch.clear();
        self.batched.clear();
        self.next = 0;
    }

    /// Adds a record whose offset is above those of all others.
    pub(crate) fn push(&mut self, offset: usize, header: &[u8; 8], salt: &[u8; SALT_LEN], payload: &[u8]) {
        if payload.len() < MAX_BATCHED_LEN {
            self.batched.push(self.hashes.len());
            self.batch.push(chain::record_input(header, salt, payload));
            self.push_hash(offset, Hash::default());
        } else {
            self.push_hash(offset, chain::record_hash(header, salt, payload));
        }
    }

    /// Adds a record whose hash is known.
    pub(crate) fn push_hash(&mut self, offset: usize, hash: Hash) {
        self.offsets.push(offset);
        self.hashes.push(hash);
    }

    /// Computes the hashes and returns them in order.
    pub(crate) fn make(&mut self) -> &[Hash] {
        for (&at, hash) in self.batched.iter().zip(self.batch.run()) {
            if let Some(place) = self.hashes.get_mut(at) {
                *place = *hash;
            }
        }
        &self.hashes
    }

    /// The hash of the record at an offset, if it was computed.
    pub(crate) fn find(&mut self, offset: usize) -> Option<Hash> {
        let at = match self.offsets.get(self.next) {
            Some(next) if *next == offset => self.next,
            _ => self.offsets.binary_search(&offset).ok()?,
        };
        self.next = at + 1;
        self.hashes.get(at).copied()
    }
}
