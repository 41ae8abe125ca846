//! One encoded posting list: its bytes and its block entries.
//!
//! Documents are delta-encoded, and block boundaries leave no trace in the bytes. So concatenating lists changes only
//! the first posting of each; the rest is copied after validation.

use std::sync::atomic::Ordering;

use crate::error::Result;
use crate::words::postings::StoredU32;
use crate::words::postings::{BLOCK_LEN, Block, Posting, StoredList, decode_each, put_posting};

/// A list whose posting count is known in advance.
#[derive(Debug, Default)]
pub(crate) struct EncodedList {
    count: u32,
    bytes: Vec<u8>,
    /// The smallest document that the next posting may have.
    least: u32,
    blocks: Blocks,
}

/// The block entries; none for a list of one block.
#[derive(Debug, Default)]
struct Blocks {
    /// Remaining postings, of a list with block entries.
    left: u32,
    /// Remaining postings of the current block.
    room: usize,
    at_hand: Block,
    entries: Vec<Block>,
}

impl EncodedList {
    /// The number of postings.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its block entries.
    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks.entries
    }

    /// Starts another list of `count` postings.
    pub(crate) fn begin(&mut self, count: u32) {
        self.count = count;
        self.bytes.clear();
        self.least = 0;
        self.blocks.begin(count);
    }

    /// Encodes these postings, which ascend, for documents of these lengths.
    pub(crate) fn set(&mut self, postings: &[Posting], doc_lengths: &[StoredU32]) {
        self.begin(postings.len() as u32);
        self.bytes.reserve(postings.len());
        for posting in postings {
            put_posting(posting.local - self.least, posting.frequency, |byte| self.bytes.push(byte));
            self.least = posting.local + 1;
            if self.blocks.left > 0 {
                self.blocks.add(*posting, self.bytes.len(), doc_lengths);
            }
        }
    }

    /// Sets the list to bytes that `encode` appends; it returns the number of postings.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the bytes do not match that number.
    pub(crate) fn set_encoded(
        &mut self,
        doc_lengths: &[StoredU32],
        encode: impl FnOnce(&mut Vec<u8>) -> u32,
    ) -> Result<()> {
        self.bytes.clear();
        self.count = encode(&mut self.bytes);
        self.blocks.begin(self.count);
        if self.blocks.left > 0 {
            let last = (doc_lengths.len() as u32).saturating_sub(1);
            let Self { count, bytes, blocks, .. } = self;
            decode_each(bytes, *count as usize, 0, last, 0, |posting, end| blocks.add(posting, end, doc_lengths))?;
        }
        Ok(())
    }

    /// Appends a whole list, adding an offset to its documents.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) for damage, which the segment records.
    pub(crate) fn append(&mut self, list: &StoredList<'_>, shift: u32, doc_lengths: &[StoredU32]) -> Result<()> {
        let Self { bytes, least, blocks, .. } = self;
        // The end of the first posting: in the appended list and in this one.
        let mut ends = None;
        let mut last = 0;
        let last_local = list.documents.saturating_sub(1);
        decode_each(
            list.bytes,
            list.count as usize,
            0,
            last_local,
            list.offset,
            |Posting { local, frequency }, end| {
                last = local + shift;
                let (theirs, ours) = *ends.get_or_insert_with(|| {
                    put_posting(last - *least, frequency, |byte| bytes.push(byte));
                    (end, bytes.len())
                });
                if blocks.left > 0 {
                    blocks.add(Posting { local: last, frequency }, ours + (end - theirs), doc_lengths);
                }
            },
        )
        .inspect_err(|_| list.damaged.store(true, Ordering::Relaxed))?;
        if let Some((first_end, _)) = ends {
            bytes.extend_from_slice(list.bytes.get(first_end..).unwrap_or_default());
            *least = last + 1;
        }
        Ok(())
    }
}

impl Blocks {
    fn begin(&mut self, count: u32) {
        self.left = if count as usize > BLOCK_LEN { count } else { 0 };
        self.entries.clear();
        self.open(0);
    }

    fn open(&mut self, offset: u32) {
        self.room = BLOCK_LEN;
        self.at_hand = Block { offset, last_local: 0, max_frequency: 0, min_len: u32::MAX };
    }

    /// Adds a posting, which ends at `end`.
    #[inline]
    fn add(&mut self, Posting { local, frequency }: Posting, end: usize, doc_lengths: &[StoredU32]) {
        let len = doc_lengths.get(local as usize).map_or(0, |len| u32::from_le_bytes(*len));
        self.at_hand.max_frequency = self.at_hand.max_frequency.max(frequency);
        self.at_hand.min_len = self.at_hand.min_len.min(len);
        self.left = self.left.saturating_sub(1);
        self.room -= 1;
        if self.room == 0 || self.left == 0 {
            self.entries.push(Block { last_local: local, ..self.at_hand });
            self.open(end as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use proptest::prelude::*;

    use super::*;

    fn doc_lengths(count: u32) -> Vec<StoredU32> {
        (0..count).map(|local| (local % 100 + 7).to_le_bytes()).collect()
    }

    fn listed(frequencies: &std::collections::BTreeMap<u32, u32>) -> Vec<Posting> {
        frequencies.iter().map(|(local, frequency)| Posting { local: *local, frequency: *frequency }).collect()
    }

    proptest! {
        /// Each way of adding postings gives the same list, byte for byte and entry for entry.
        #[test]
        fn lists_put_together_are_the_list_of_all(
            lists in proptest::collection::vec(
                proptest::collection::btree_map(0_u32..400, 14_u32..18, 1..300), 1..4),
        ) {
            let damaged = AtomicBool::new(false);
            let doc_lengths = doc_lengths(400 * lists.len() as u32);
            let [mut whole, mut joined, mut again] = [(); 3].map(|()| EncodedList::default());
            let mut all = Vec::new();
            let mut parts = Vec::new();
            for (i, list) in (0_u32..).zip(&lists) {
                let postings = listed(list);
                all.extend(postings.iter().map(|posting| Posting { local: posting.local + 400 * i, ..*posting }));
                let mut part = EncodedList::default();
                part.set(&postings, &doc_lengths);
                parts.push(part);
            }
            whole.set(&all, &doc_lengths);
            joined.begin(all.len() as u32);
            for (i, part) in (0_u32..).zip(&parts) {
                let (bytes, count) = (part.bytes(), part.count());
                let stored = StoredList { bytes, offset: 0, blocks: &[], count, documents: 400, damaged: &damaged };
                joined.append(&stored, 400 * i, &doc_lengths).unwrap();
                let cut = StoredList { bytes: &bytes[..bytes.len() - 1], ..stored };
                prop_assert!(EncodedList::default().append(&cut, 0, &doc_lengths).is_err());
            }
            prop_assert!(damaged.load(Ordering::Relaxed));
            again.set_encoded(&doc_lengths, |bytes| {
                bytes.extend_from_slice(whole.bytes());
                whole.count()
            }).unwrap();
            for other in [&joined, &again] {
                prop_assert_eq!(other.bytes(), whole.bytes());
                prop_assert_eq!(other.blocks(), whole.blocks());
                prop_assert_eq!(other.count(), whole.count());
            }
            let many = all.len() > BLOCK_LEN;
            prop_assert_eq!(whole.blocks().len(), if many { all.len().div_ceil(BLOCK_LEN) } else { 0 });
            for (block, entry) in all.chunks(BLOCK_LEN).zip(whole.blocks()) {
                prop_assert_eq!(block.last().unwrap().local, entry.last_local);
                prop_assert_eq!(block.iter().map(|posting| posting.frequency).max(), Some(entry.max_frequency));
                prop_assert_eq!(block.iter().map(|posting| posting.local % 100 + 7).min(), Some(entry.min_len));
            }
        }
    }
}
