//! Large sections are checked block by block, when a block is first read.
//!
//! Opening a segment must not read all of it, and no answer may come from bytes that are not those that were written. So
//! section `SUMS` holds a CRC32 of every 4 KiB of the sections that grow with the segment, and whoever reads such
//! a section touches the blocks first. A block that fails is remembered: the search goes on over bytes that may mean
//! anything, which every reader stands, and is refused at its end.
//!
//! A block that is not checked yet may not be in memory either. Who will read several places says so first
//! ([`Guarded::fetch`]), and the disk reads them at once instead of one after the other.
//!
//! Each search also checks a few blocks more than it touches, so that after some hundreds or thousands everything is
//! checked and nothing is asked any more.
//!
//! Invariants:
//! 1. A set bit says that its block was found as it should be: its checksum, every link within the segment, every id the one
//!    that has its place.
//! 2. Where [`Guarded::touch`] says no, the bytes are not used as places to look at, and [`Guard::damage`] says so.

use std::ops::{Range, RangeInclusive};

use holotype_storage::segment_file::SegmentFile;

use super::layout::NO_LINK;
use crate::error::{Error, Result};
use crate::hnsw::filter::Members;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// Bytes that one checksum covers.
pub(crate) const BLOCK_LEN: usize = 4096;

/// Blocks that a search checks for those to come.
const AHEAD: usize = 16;

/// No block.
const NONE: usize = usize::MAX;

/// The checksums of a section's blocks, as `SUMS` holds them.
pub(crate) fn sums(section: &[u8]) -> impl Iterator<Item = u32> {
    section.chunks(BLOCK_LEN).map(crc32fast::hash)
}

/// How many blocks a section of that length has.
pub(crate) fn block_count(len: usize) -> usize {
    len.div_ceil(BLOCK_LEN)
}

/// Which blocks of a section were checked.
#[derive(Debug)]
pub(crate) struct Guard {
    name: &'static str,
    /// The section's first checksum in `SUMS`.
    first: usize,
    checked: Vec<AtomicU64>,
    /// What the system was asked to read. It is asked once: what is fetched ahead is not always read, and so not checked.
    asked: Vec<AtomicU64>,
    left: AtomicUsize,
    /// What is checked for those to come next.
    next: AtomicUsize,
    damaged: AtomicUsize,
}

impl Guard {
    /// For a section of `len` bytes whose checksums begin at `first` in `SUMS`.
    pub(crate) fn new(name: &'static str, first: usize, len: usize) -> Self {
        let count = block_count(len);
        let none = || (0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Self {
            name,
            first,
            checked: none(),
            asked: none(),
            left: AtomicUsize::new(count),
            next: AtomicUsize::new(0),
            damaged: AtomicUsize::new(NONE),
        }
    }

    /// Whether nothing is left to check.
    pub(crate) fn is_done(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    /// The guarded section.
    pub(crate) fn over<'a>(&'a self, bytes: &'a [u8], sums: &'a [u32], holds: Holds<'a>) -> Guarded<'a> {
        Guarded { guard: self, bytes, sums, holds, file: None }
    }

    /// Remembers that the block is damaged.
    fn refuse(&self, block: usize) {
        // The first that was met stays.
        let _ = self.damaged.compare_exchange(NONE, block, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Whether a block that was touched is not as it should be.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with the first such block that was met.
    pub(crate) fn damage(&self) -> Result<()> {
        match self.damaged.load(Ordering::Relaxed) {
            NONE => Ok(()),
            block => Err(Error::corrupt(self.name, block * BLOCK_LEN, "the block is not as it was written")),
        }
    }
}

/// What the bytes of a section must be besides those that were written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Holds<'a> {
    /// Anything.
    Bytes,
    /// Links to so many nodes.
    Links(u32),
    /// The ids of these, in order.
    Ids(Members<'a>),
}

/// A section that is checked as it is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guarded<'a> {
    guard: &'a Guard,
    bytes: &'a [u8],
    sums: &'a [u32],
    holds: Holds<'a>,
    /// Where the bytes come from, by the section's tag.
    file: Option<(&'a SegmentFile, [u8; 4])>,
}

/// The blocks that `len` bytes from `start` on lie in.
#[inline]
fn blocks(start: usize, len: usize) -> RangeInclusive<usize> {
    start / BLOCK_LEN..=(start + len).saturating_sub(1) / BLOCK_LEN
}

/// Whether the bit of the block is set.
#[inline]
fn has(bits: &[AtomicU64], block: usize) -> bool {
    bits.get(block / 64).is_some_and(|word| word.load(Ordering::Acquire) >> (block % 64) & 1 == 1)
}

impl<'a> Guarded<'a> {
    /// The same, of a file.
    pub(crate) fn in_file(self, file: &'a SegmentFile, tag: [u8; 4]) -> Self {
        Self { file: Some((file, tag)), ..self }
    }

    /// Whether the `len` bytes from `start` on are as they should be.
    #[inline]
    pub(crate) fn touch(&self, start: usize, len: usize) -> bool {
        blocks(start, len).all(|block| self.is_checked(block)) || self.check_all_of(start, len)
    }

    #[cold]
    fn check_all_of(&self, start: usize, len: usize) -> bool {
        self.fetch(start, len);
        blocks(start, len).all(|block| self.is_checked(block) || self.check(block))
    }

    /// Says that the `len` bytes from `start` on will be touched soon.
    #[inline]
    pub(crate) fn fetch(&self, start: usize, len: usize) {
        if blocks(start, len).any(|block| !self.is_checked(block) && self.asks(block)) {
            self.will_need(start..start + len);
        }
    }

    /// Has the system read the blocks of these bytes, and no more than those.
    #[cold]
    fn will_need(&self, bytes: Range<usize>) {
        if let Some((file, tag)) = self.file {
            file.will_need(tag, bytes.start / BLOCK_LEN * BLOCK_LEN..bytes.end.next_multiple_of(BLOCK_LEN));
        }
    }

    /// Remembers that the byte at `at` says what cannot be.
    #[cold]
    pub(crate) fn refuse(&self, at: usize) {
        self.guard.refuse(at / BLOCK_LEN);
    }

    /// Checks all that is left.
    pub(crate) fn touch_all(&self) -> bool {
        self.guard.is_done() || self.bytes.is_empty() || self.touch(0, self.bytes.len())
    }

    /// Checks a few blocks more, if any are left. Once none are, searches write nothing that others read.
    pub(crate) fn advance(&self) {
        let count = block_count(self.bytes.len());
        if self.guard.next.load(Ordering::Relaxed) >= count {
            return;
        }
        let start = self.guard.next.fetch_add(AHEAD, Ordering::Relaxed).min(count);
        let end = (start + AHEAD).min(count);
        self.will_need(start * BLOCK_LEN..end * BLOCK_LEN);
        for block in start..end {
            if !self.is_checked(block) {
                self.check(block);
            }
        }
    }

    #[inline]
    fn is_checked(&self, block: usize) -> bool {
        has(&self.guard.checked, block)
    }

    /// Whether the system was not asked for the block before; it counts as asked now.
    #[cold]
    fn asks(&self, block: usize) -> bool {
        let (asked, bit) = (&self.guard.asked, 1 << (block % 64));
        !has(asked, block) && asked.get(block / 64).is_some_and(|word| word.fetch_or(bit, Ordering::Relaxed) & bit == 0)
    }

    #[cold]
    fn check(&self, block: usize) -> bool {
        let start = block * BLOCK_LEN;
        let bytes = self.bytes.get(start..(start + BLOCK_LEN).min(self.bytes.len()));
        let sum = self.sums.get(self.guard.first + block);
        let fine =
            bytes.zip(sum).is_some_and(|(bytes, sum)| crc32fast::hash(bytes) == *sum && self.is_sound(start, bytes));
        if !fine {
            self.guard.refuse(block);
            return false;
        }
        let bit = 1u64 << (block % 64);
        if let Some(word) = self.guard.checked.get(block / 64)
            && word.fetch_or(bit, Ordering::Release) & bit == 0
        {
            self.guard.left.fetch_sub(1, Ordering::Release);
        }
        true
    }

    /// Whether a block that begins at `start` holds what it should.
    fn is_sound(&self, start: usize, bytes: &[u8]) -> bool {
        let (words, rest) = bytes.as_chunks::<4>();
        match self.holds {
            Holds::Bytes => true,
            Holds::Links(count) => {
                // One more than a link is at most the count, and 0 for none. Nothing stops early, so many are compared at once.
                let next = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes).wrapping_add(1);
                const { assert!(NO_LINK.wrapping_add(1) == 0) };
                rest.is_empty() && words.iter().map(next).fold(0, u32::max) <= count
            }
            Holds::Ids(members) => {
                let mut ids = (start as u32 / 4..).zip(words.iter().map(|bytes| u32::from_le_bytes(*bytes)));
                rest.is_empty() && ids.all(|(position, id)| members.position(id) == Some(position))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hnsw::filter::MemberWords;

    #[test]
    fn a_flipped_bit_is_met_where_it_is_and_nowhere_else() {
        let bytes: Vec<u8> = (0..3 * BLOCK_LEN + 100).map(|i| (i % 251) as u8).collect();
        let mut all = vec![7; 2];
        all.extend(sums(&bytes));
        let mut flipped = bytes.clone();
        flipped[BLOCK_LEN * 2 + 5] ^= 1;
        let guard = Guard::new("VECS", 2, bytes.len());
        let section = guard.over(&flipped, &all, Holds::Bytes);
        assert!(section.touch(10, 20) && section.touch(BLOCK_LEN - 1, 2));
        assert!(guard.damage().is_ok());
        assert!(!section.touch(BLOCK_LEN * 2 - 1, 2));
        assert!(matches!(guard.damage(), Err(Error::Corrupt { offset: 8192, .. })));
        assert!(section.touch(bytes.len() - 1, 1) && !section.touch_all() && !guard.is_done());
        assert!(!section.asks(0), "what was read was asked for");
        let guard = Guard::new("VECS", 2, bytes.len());
        let section = guard.over(&bytes, &all, Holds::Bytes);
        assert!(section.asks(1) && !section.asks(1), "once");
        section.advance();
        assert!(guard.is_done() && guard.damage().is_ok() && section.touch_all());
        let cut = Guard::new("VECS", 2, bytes.len());
        assert!(!cut.over(&bytes, &all[..4], Holds::Bytes).touch_all(), "a missing checksum is none");
    }

    #[test]
    fn links_that_lead_nowhere_are_damage_even_with_a_good_checksum() {
        for (link, fine) in [(9u32, true), (NO_LINK, true), (10, false)] {
            let mut bytes = vec![0; 2 * BLOCK_LEN];
            bytes[BLOCK_LEN + 8..][..4].copy_from_slice(&link.to_le_bytes());
            let all: Vec<u32> = sums(&bytes).collect();
            let guard = Guard::new("LNK0", 0, bytes.len());
            assert_eq!(guard.over(&bytes, &all, Holds::Links(10)).touch(BLOCK_LEN, 4), fine);
        }
    }

    #[test]
    fn ids_that_are_not_those_of_their_places_are_damage_even_with_a_good_checksum() {
        let ids: Vec<u32> = (0..1500).map(|i| i * 3 + 7).collect();
        let words = MemberWords::of(&ids).unwrap();
        let members = words.view(ids[0], ids[1499]);
        for (at, id, fine) in [(0, 7, true), (3, 17, false), (1400, 7, false), (1499, u32::MAX, false)] {
            let mut ids = ids.clone();
            ids[at] = id;
            let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
            let all: Vec<u32> = sums(&bytes).collect();
            let guard = Guard::new("IDS ", 0, bytes.len());
            assert_eq!(guard.over(&bytes, &all, Holds::Ids(members)).touch(at * 4, 4), fine, "{id} at {at}");
            assert_eq!(guard.damage().is_ok(), fine);
        }
    }
}
