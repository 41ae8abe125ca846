//! One posting list as it is laid down in a segment: its bytes and the entries of its blocks.
//!
//! The bytes say of a document how far it is from the one before, and of all blocks but the first nothing else. So of lists
//! that follow one another only the first posting of each changes when they become one; the rest is copied, once it is
//! found to be sound.

use std::sync::atomic::Ordering;

use super::postings::{BLOCK_LEN, Block, Posting, Stored, decode_each, put_posting};
use super::segment::Number;
use crate::error::Result;

/// A list of which it is known how many postings it gets.
#[derive(Debug, Default)]
pub(super) struct Encoded {
    count: u32,
    bytes: Vec<u8>,
    /// The least document that the next posting could be of.
    least: u32,
    blocks: Blocks,
}

/// The entries of the blocks; none for a list of one block.
#[derive(Debug, Default)]
struct Blocks {
    /// How many postings are still to come, of a list that has entries.
    left: u32,
    /// How many of those come into the block at hand.
    room: usize,
    at_hand: Block,
    entries: Vec<Block>,
}

impl Encoded {
    /// How many postings it has in all.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Its bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The entries of its blocks.
    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks.entries
    }

    /// Begins another list, of so many postings.
    pub(super) fn begin(&mut self, count: u32) {
        self.count = count;
        self.bytes.clear();
        self.least = 0;
        self.blocks.begin(count);
    }

    /// The list of these postings, which ascend, in documents of these lengths.
    pub(super) fn set(&mut self, postings: &[Posting], lens: &[Number]) {
        self.begin(postings.len() as u32);
        self.bytes.reserve(postings.len());
        for posting in postings {
            put_posting(posting.local - self.least, posting.frequency, |byte| self.bytes.push(byte));
            self.least = posting.local + 1;
            if self.blocks.left > 0 {
                self.blocks.add(*posting, self.bytes.len(), lens);
            }
        }
    }

    /// A list that `encode` appends to no bytes; it says how many postings that are.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) when they are not.
    pub(super) fn set_encoded(&mut self, lens: &[Number], encode: impl FnOnce(&mut Vec<u8>) -> u32) -> Result<()> {
        self.bytes.clear();
        self.count = encode(&mut self.bytes);
        self.blocks.begin(self.count);
        if self.blocks.left > 0 {
            let last = (lens.len() as u32).saturating_sub(1);
            let Self { count, bytes, blocks, .. } = self;
            decode_each(bytes, *count as usize, 0, last, 0, |posting, end| blocks.add(posting, end, lens))?;
        }
        Ok(())
    }

    /// Appends a whole list, whose documents come that much later in this one.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) for damage, which is noted.
    pub(super) fn append(&mut self, list: &Stored<'_>, shift: u32, lens: &[Number]) -> Result<()> {
        let Self { bytes, least, blocks, .. } = self;
        // Where the first posting ends: in the list and in this one.
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
                    blocks.add(Posting { local: last, frequency }, ours + (end - theirs), lens);
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
    fn add(&mut self, Posting { local, frequency }: Posting, end: usize, lens: &[Number]) {
        let len = lens.get(local as usize).map_or(0, |len| u32::from_le_bytes(*len));
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

    fn lens(count: u32) -> Vec<Number> {
        (0..count).map(|local| (local % 100 + 7).to_le_bytes()).collect()
    }

    fn listed(frequencies: &std::collections::BTreeMap<u32, u32>) -> Vec<Posting> {
        frequencies.iter().map(|(local, frequency)| Posting { local: *local, frequency: *frequency }).collect()
    }

    proptest! {
        /// However the postings come, the list is the same, byte for byte and entry for entry.
        #[test]
        fn lists_put_together_are_the_list_of_all(
            lists in proptest::collection::vec(
                proptest::collection::btree_map(0_u32..400, 14_u32..18, 1..300), 1..4),
        ) {
            let damaged = AtomicBool::new(false);
            let lens = lens(400 * lists.len() as u32);
            let (mut whole, mut joined, mut again) = (Encoded::default(), Encoded::default(), Encoded::default());
            let mut all = Vec::new();
            let mut parts = Vec::new();
            for (i, list) in (0_u32..).zip(&lists) {
                let postings = listed(list);
                all.extend(postings.iter().map(|posting| Posting { local: posting.local + 400 * i, ..*posting }));
                let mut part = Encoded::default();
                part.set(&postings, &lens);
                parts.push(part);
            }
            whole.set(&all, &lens);
            joined.begin(all.len() as u32);
            for (i, part) in (0_u32..).zip(&parts) {
                let (bytes, count) = (part.bytes(), part.count());
                let stored = Stored { bytes, offset: 0, blocks: &[], count, documents: 400, damaged: &damaged };
                joined.append(&stored, 400 * i, &lens).unwrap();
                let cut = Stored { bytes: &bytes[..bytes.len() - 1], ..stored };
                prop_assert!(Encoded::default().append(&cut, 0, &lens).is_err());
            }
            prop_assert!(damaged.load(Ordering::Relaxed));
            again.set_encoded(&lens, |bytes| {
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
