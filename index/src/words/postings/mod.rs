//! Posting lists: the documents that contain a term, with its frequency in each.
//!
//! A document is identified by its position in its part of the index (its *local id*). A term frequency is in
//! sixteenths, so that pieces of a document can have different weights. Lists are cut into blocks of 128 postings. In a
//! block every posting is
//!
//! | bytes | field |
//! |---|---|
//! | 1 to 5 | LEB128 of `gap * 2 + once`, where `gap` is the local id less the one before it, less one |
//! | 0 to 5 | LEB128 of the frequency; absent when `once` is 1, which means one occurrence of weight one (16) |
//!
//! and the first gap of a block counts from the last posting of the block before (from -1 in the first). A [`Block`]
//! has the offset of a block's bytes, its last local id, and the values that bound its scores under any statistics: its
//! largest frequency and its shortest document. A top-k search skips blocks by these bounds
//! (`words::scoring::max_score`).
//!
//! Invariants, all checked while decoding:
//! 1. Local ids ascend and are below the number of documents; frequencies are at least 1 and fit in 32 bits.
//! 2. A block's postings use exactly its bytes; its last local id is the one in its entry. A list of one block has no
//!    entry.

pub(crate) mod doc_lengths;
pub(crate) mod encoded;
pub(crate) mod posting_builder;

use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// A little-endian 32-bit integer as stored.
pub(crate) type StoredU32 = [u8; 4];

/// Bytes of an entry of the term directory of a segment, besides the key.
pub(crate) const TERM_LEN: usize = 20;

/// Postings per block.
pub(crate) const BLOCK_LEN: usize = 128;
/// The maximum length of a posting in bytes.
pub(crate) const MAX_POSTING_LEN: usize = 10;
/// The frequency of one occurrence at weight 1.
pub(crate) const ONCE: u32 = 16;

/// One document with a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Posting {
    /// The document's position in its segment or tail.
    pub(crate) local: u32,
    /// The term frequency in sixteenths.
    pub(crate) frequency: u32,
}

/// The position of a block and the bounds of its scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    /// Its byte offset from the start of the list.
    pub(crate) offset: u32,
    /// The last local id in it.
    pub(crate) last_local: u32,
    /// The largest frequency in it.
    pub(crate) max_frequency: u32,
    /// The length of the shortest document in it, in sixteenths.
    pub(crate) min_len: u32,
}

/// A block entry as stored.
pub(crate) const BLOCK_ENTRY_LEN: usize = 16;

impl Block {
    /// Its four fields in order, little-endian.
    pub(crate) fn encode(&self) -> [u8; BLOCK_ENTRY_LEN] {
        let mut bytes = [0; BLOCK_ENTRY_LEN];
        let fields = [self.offset, self.last_local, self.max_frequency, self.min_len];
        for (place, field) in bytes.chunks_exact_mut(4).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    /// The reverse of [`Block::encode`].
    pub(crate) fn decode(bytes: &[u8; BLOCK_ENTRY_LEN]) -> Self {
        let field = |i: usize| u32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
        Self { offset: field(0), last_local: field(4), max_frequency: field(8), min_len: field(12) }
    }
}

/// Encodes a posting whose document is `gap` past the smallest possible one.
#[inline]
pub(crate) fn put_posting(gap: u32, frequency: u32, mut put: impl FnMut(u8)) {
    let once = frequency == ONCE;
    put_varint(u64::from(gap) << 1 | u64::from(once), &mut put);
    if !once {
        put_varint(u64::from(frequency), &mut put);
    }
}

/// Calls `see` with the postings of an encoded list until it returns false.
pub(crate) fn each_posting(mut bytes: &[u8], mut see: impl FnMut(Posting) -> bool) {
    let mut next = 0;
    while let Some(head) = take_varint(&mut bytes) {
        let frequency = if head & 1 == 1 { Some(u64::from(ONCE)) } else { take_varint(&mut bytes) };
        let posting = Posting { local: next + (head >> 1) as u32, frequency: frequency.unwrap_or(0) as u32 };
        next = posting.local + 1;
        if !see(posting) {
            return;
        }
    }
}

/// Decodes the `count` postings of one block and adds them to `block`.
///
/// They are in `first..=last`; `offset` is that of the bytes in their section, for errors.
fn decode_block(
    bytes: &[u8],
    count: usize,
    first: u32,
    last: u32,
    offset: usize,
    block: &mut Vec<Posting>,
) -> Result<()> {
    block.reserve(count);
    decode_each(bytes, count, first, last, offset, |posting, _| block.push(posting))
}

/// Decodes `count` postings like [`decode_block`], and calls back with each posting and its end.
#[inline]
pub(crate) fn decode_each(
    bytes: &[u8],
    count: usize,
    first: u32,
    last: u32,
    offset: usize,
    mut see: impl FnMut(Posting, usize),
) -> Result<()> {
    let mut rest = bytes;
    let mut next = u64::from(first);
    for _ in 0..count {
        let at = rest.len();
        let fault = |what| fault(offset + bytes.len() - at, what);
        let head = take_varint(&mut rest).ok_or_else(|| fault("a posting is cut short"))?;
        let mut frequency = u64::from(ONCE);
        if head & 1 == 0 {
            frequency = take_varint(&mut rest).ok_or_else(|| fault("a frequency is cut short"))?;
        }
        let local = next + (head >> 1);
        next = local + 1;
        match (u32::try_from(local), u32::try_from(frequency)) {
            (Ok(local), Ok(frequency)) if local <= last && frequency > 0 => {
                see(Posting { local, frequency }, bytes.len() - rest.len());
            }
            _ => return Err(fault("a posting is outside its block")),
        }
    }
    if rest.is_empty() {
        return Ok(());
    }
    Err(fault(offset + bytes.len() - rest.len(), "a block is longer than its postings"))
}

/// Lists of up to this many blocks are decoded once per query, which reads them twice: for the top documents, then for
/// the term frequencies of result rows.
const SHORT: usize = 32;

/// A posting list in a segment, or copied from a tail.
#[derive(Debug)]
pub(crate) enum List<'a> {
    /// In a segment.
    StoredList(StoredList<'a>),
    /// A short list in a segment, decoded on first use.
    InlineWord(StoredList<'a>, OnceCell<Vec<Posting>>),
    /// In memory, ascending.
    Memory(Vec<Posting>),
}

impl<'a> From<StoredList<'a>> for List<'a> {
    fn from(stored: StoredList<'a>) -> Self {
        if stored.block_count() <= SHORT { Self::InlineWord(stored, OnceCell::new()) } else { Self::StoredList(stored) }
    }
}

/// A posting list in a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredList<'a> {
    /// Its bytes.
    pub(crate) bytes: &'a [u8],
    /// Their offset in the section.
    pub(crate) offset: usize,
    /// Its block entries; none for a single block.
    pub(crate) blocks: &'a [[u8; BLOCK_ENTRY_LEN]],
    /// The number of postings, at least one.
    pub(crate) count: u32,
    /// The number of documents of the segment.
    pub(crate) documents: u32,
    /// Set when the bytes turn out to be damaged.
    pub(crate) damaged: &'a AtomicBool,
}

impl StoredList<'_> {
    /// Its size in the segment in bytes, including its term and dictionary entry.
    pub(crate) fn stored_len(&self, key: &[u8]) -> usize {
        self.bytes.len() + self.blocks.as_flattened().len() + key.len() + TERM_LEN
    }
}

impl<'a> StoredList<'a> {
    fn block_count(&self) -> usize {
        (self.count as usize).div_ceil(BLOCK_LEN)
    }

    /// The smallest local id that block `i` may start with.
    fn first_of(&self, i: usize) -> u32 {
        let before = i.checked_sub(1).and_then(|before| self.blocks.get(before));
        before.map_or(0, |entry| Block::decode(entry).last_local.saturating_add(1))
    }

    /// The block that would contain `local`, searched from block `from` on.
    fn block_of(&self, local: u32, from: usize) -> Option<usize> {
        let rest = self.blocks.get(from..).unwrap_or_default();
        let i = from + rest.partition_point(|entry| Block::decode(entry).last_local < local);
        (i < self.block_count()).then_some(i)
    }

    fn decode(&self, i: usize, block: &mut Vec<Posting>) -> Result<()> {
        self.decode_checked(i, block).inspect_err(|_| self.damaged.store(true, Ordering::Relaxed))
    }

    fn decode_checked(&self, i: usize, block: &mut Vec<Posting>) -> Result<()> {
        let start = self.blocks.get(i).map_or(0, |entry| Block::decode(entry).offset as usize);
        let end = self.blocks.get(i + 1).map_or(self.bytes.len(), |entry| Block::decode(entry).offset as usize);
        let offset = self.offset + start;
        let bytes = self.bytes.get(start..end).ok_or_else(|| fault(offset, "a block is outside its list"))?;
        let count = (self.count as usize).saturating_sub(i * BLOCK_LEN).min(BLOCK_LEN);
        let entry = self.blocks.get(i).map(|entry| Block::decode(entry).last_local);
        let last = entry.unwrap_or(self.documents.saturating_sub(1));
        decode_block(bytes, count, self.first_of(i), last, offset, block)?;
        match (entry, block.last()) {
            (Some(entry), Some(found)) if entry != found.local => {
                Err(fault(offset, "a block does not end with the document its entry names"))
            }
            _ => Ok(()),
        }
    }
}

impl List<'_> {
    /// The stored list, unless it is in memory.
    fn stored(&self) -> Option<&StoredList<'_>> {
        match self {
            List::StoredList(stored) | List::InlineWord(stored, _) => Some(stored),
            List::Memory(_) => None,
        }
    }

    /// All postings of a list that is kept decoded.
    fn whole(&self) -> Result<Option<&[Posting]>> {
        match self {
            List::StoredList(_) => Ok(None),
            List::Memory(postings) => Ok(Some(postings)),
            List::InlineWord(stored, whole) => {
                if let Some(whole) = whole.get() {
                    return Ok(Some(whole));
                }
                let mut postings = Vec::with_capacity(stored.block_count() * BLOCK_LEN);
                (0..stored.block_count()).try_for_each(|i| stored.decode(i, &mut postings))?;
                Ok(Some(whole.get_or_init(|| postings)))
            }
        }
    }

    /// The number of blocks. A list in memory has the same block length.
    pub(crate) fn block_count(&self) -> usize {
        match self {
            List::StoredList(stored) | List::InlineWord(stored, _) => stored.block_count(),
            List::Memory(postings) => postings.len().div_ceil(BLOCK_LEN),
        }
    }

    /// An upper bound of the documents in block `i`, exact if the list has block entries.
    pub(crate) fn last_of(&self, i: usize) -> u32 {
        match self {
            List::StoredList(stored) | List::InlineWord(stored, _) => match stored.blocks.get(i) {
                Some(entry) => Block::decode(entry).last_local,
                None => stored.documents.saturating_sub(1),
            },
            List::Memory(postings) => {
                let last = postings.get(((i + 1) * BLOCK_LEN).min(postings.len()).saturating_sub(1));
                last.map_or(0, |posting| posting.local)
            }
        }
    }

    /// The largest frequency in block `i` and the length of its shortest document, if the list has block entries.
    pub(crate) fn block_max(&self, i: usize) -> Option<(u32, u32)> {
        let entry = Block::decode(self.stored()?.blocks.get(i)?);
        Some((entry.max_frequency, entry.min_len))
    }

    /// The postings of block `i`, decoded into `spare` if necessary.
    pub(crate) fn block<'s>(&'s self, i: usize, spare: &'s mut Vec<Posting>) -> Result<&'s [Posting]> {
        if let Some(whole) = self.whole()? {
            return Ok(whole.chunks(BLOCK_LEN).nth(i).unwrap_or_default());
        }
        spare.clear();
        self.stored().map_or(Ok(()), |stored| stored.decode(i, spare))?;
        Ok(spare)
    }

    /// The number of postings below `bound`.
    pub(crate) fn count_below(&self, bound: u32) -> Result<u32> {
        if let Some(stored) = self.stored().filter(|stored| bound >= stored.documents) {
            return Ok(stored.count);
        }
        if let Some(whole) = self.whole()? {
            return Ok(whole.partition_point(|posting| posting.local < bound) as u32);
        }
        let Some((stored, i)) = self.stored().and_then(|stored| Some((stored, stored.block_of(bound, 0)?))) else {
            return Ok(self.stored().map_or(0, |stored| stored.count));
        };
        let mut block = Vec::with_capacity(BLOCK_LEN);
        stored.decode(i, &mut block)?;
        let here = block.partition_point(|posting| posting.local < bound);
        Ok((i * BLOCK_LEN + here) as u32)
    }

    /// Calls back with the postings below `bound`, ascending.
    pub(crate) fn each(&self, bound: u32, see: &mut impl FnMut(Posting)) -> Result<()> {
        let mut spare = Vec::with_capacity(BLOCK_LEN);
        for i in 0..self.block_count() {
            let below = self.block(i, &mut spare)?.iter().take_while(|posting| posting.local < bound);
            below.for_each(|posting| see(*posting));
            if self.last_of(i) >= bound {
                break;
            }
        }
        Ok(())
    }
}

/// Looks up documents in a list, in ascending order.
///
/// Decodes each block once, and resumes the search within a block.
#[derive(Debug)]
pub(crate) struct Cursor<'l> {
    list: &'l List<'l>,
    /// The current block; equals the block count at the end.
    next: usize,
    /// Its last document.
    last: Option<u32>,
    block: Vec<Posting>,
    /// Postings of the block before the last look-up.
    passed: usize,
}

impl<'l> Cursor<'l> {
    /// Looks in `list`.
    pub(crate) fn new(list: &'l List<'l>) -> Self {
        Self { list, next: 0, last: None, block: Vec::new(), passed: 0 }
    }

    /// The frequency of the term in document `local`, in sixteenths; 0 if absent. Calls must have ascending `local`.
    pub(crate) fn frequency(&mut self, local: u32) -> Result<u32> {
        let postings = match self.list {
            List::StoredList(stored) => {
                if self.last.is_none_or(|last| last < local) {
                    let Some(i) = stored.block_of(local, self.next) else {
                        return Ok(0);
                    };
                    (self.last, self.passed, self.next) = (None, 0, i);
                    self.block.clear();
                    stored.decode(i, &mut self.block)?;
                    self.last = Some(self.list.last_of(i));
                }
                &self.block
            }
            kept => kept.whole()?.unwrap_or_default(),
        };
        // Galloping search for the range that would contain it.
        let (mut low, mut step) = (self.passed, 1);
        while postings.get(low + step).is_some_and(|posting| posting.local < local) {
            low += step;
            step *= 2;
        }
        let stretch = postings.get(low..(low + step + 1).min(postings.len())).unwrap_or_default();
        self.passed = low + stretch.partition_point(|posting| posting.local < local);
        Ok(postings.get(self.passed).map_or(0, |posting| if posting.local == local { posting.frequency } else { 0 }))
    }
}

fn fault(offset: usize, what: &str) -> Error {
    Error::corrupt("POST", offset, what)
}

#[inline]
fn put_varint(mut value: u64, put: &mut impl FnMut(u8)) {
    while value >= 0x80 {
        put(value as u8 | 0x80);
        value >>= 7;
    }
    put(value as u8);
}

/// At most five bytes, enough for 33 bits.
///
/// With eight bytes available, decoding has no branch on the length, which would be unpredictable.
#[inline(always)]
fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let Some(word) = bytes.first_chunk() else { return take_last_varint(bytes) };
    let word = u64::from_le_bytes(*word);
    let ends = !word & 0x80_8080_8080;
    let len = ends.trailing_zeros() as usize / 8 + 1;
    let (_, rest) = bytes.split_at_checked(len).filter(|_| ends != 0)?;
    *bytes = rest;
    // All bits up to the first terminating byte.
    let word = word & (ends ^ (ends - 1));
    let bits = |byte: u32| word >> byte & (0x7f << (7 * byte));
    Some(bits(0) | bits(1) | bits(2) | bits(3) | bits(4))
}

/// The same, byte by byte.
#[cold]
fn take_last_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in 0..5 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << (7 * shift);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::words::postings::encoded::EncodedList;

    static DAMAGED: AtomicBool = AtomicBool::new(false);

    /// A list over the encoded postings, of `documents` documents.
    fn list<'a>(bytes: &'a [u8], blocks: &'a [[u8; BLOCK_ENTRY_LEN]], count: usize) -> List<'a> {
        List::StoredList(StoredList {
            bytes,
            offset: 0,
            blocks,
            count: count as u32,
            documents: 100_000,
            damaged: &DAMAGED,
        })
    }

    #[test]
    fn the_bytes_are_pinned() {
        let mut encoded = EncodedList::default();
        let postings = [(0, 16), (1, 16), (200, 16), (201, 48), (u32::MAX - 1, u32::MAX)]
            .map(|(local, frequency)| Posting { local, frequency });
        encoded.set(&postings, &[]);
        let wanted = [1, 1, 0x8d, 0x03, 0, 48, 0xe8, 0xfc, 0xff, 0xff, 0x1f, 0xff, 0xff, 0xff, 0xff, 0x0f];
        assert_eq!(encoded.bytes(), wanted);
    }

    proptest! {
        #[test]
        fn round_trip(
            frequencies in proptest::collection::btree_map(0u32..100_000, 1u32..400, 1..700),
            probes in proptest::collection::vec(0u32..100_100, 0..20),
            bound in 0u32..100_000,
        ) {
            let list_keys: Vec<u32> = frequencies.keys().copied().collect();
            let postings: Vec<Posting> =
                frequencies.iter().map(|(&local, &frequency)| Posting { local, frequency }).collect();
            let doc_lengths: Vec<StoredU32> = (0..100_000u32).map(|local| (local % 100).to_le_bytes()).collect();
            let mut encoded = EncodedList::default();
            encoded.set(&postings, &doc_lengths);
            let blocks = encoded.blocks();
            let entries: Vec<_> = blocks.iter().map(Block::encode).collect();
            prop_assert!(entries.iter().zip(blocks).all(|(entry, block)| Block::decode(entry) == *block));
            let stored = list(encoded.bytes(), &entries, postings.len());
            let memory = List::Memory(postings.clone());
            for list in [&stored, &memory] {
                for bound in [0, 1, bound, 99_999, 100_000, u32::MAX] {
                    let below: Vec<Posting> =
                        postings.iter().copied().filter(|posting| posting.local < bound).collect();
                    prop_assert_eq!(list.count_below(bound).unwrap() as usize, below.len());
                    let mut seen = Vec::new();
                    list.each(bound, &mut |posting| seen.push(posting)).unwrap();
                    prop_assert_eq!(seen, below);
                }
                let mut cursor = Cursor::new(list);
                let asked: std::collections::BTreeSet<u32> = probes.iter().chain(&list_keys).copied().collect();
                for probe in &asked {
                    let wanted = frequencies.get(probe).copied().unwrap_or(0);
                    prop_assert_eq!(cursor.frequency(*probe).unwrap(), wanted);
                }
            }
        }

        #[test]
        fn any_bytes_are_postings_or_an_error(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            count in 0usize..130,
            first in any::<u32>(),
            last in any::<u32>(),
        ) {
            let mut block = Vec::new();
            if decode_block(&bytes, count, first, last, 0, &mut block).is_ok() {
                prop_assert_eq!(block.len(), count);
                prop_assert!(block.is_sorted_by(|a, b| a.local < b.local));
                prop_assert!(block.iter().all(|posting| posting.local <= last));
            }
        }
    }
}
