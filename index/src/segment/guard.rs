//! Lazy checksums: blocks of large sections are verified when they are first read.
//!
//! Opening a segment must not read all of it, and no answer may come from damaged bytes. So section `SUMS` holds a
//! CRC32 of every 4 KiB of the sections that grow with the segment, and a reader touches the blocks it reads. If a
//! checksum fails, the guard records the damage; the search continues over arbitrary bytes, which all readers tolerate,
//! and fails at its end.
//!
//! An unverified block may not be in memory either. A reader that needs several blocks announces them first
//! ([`CheckedSection::fetch`]), so the disk reads them in parallel.
//!
//! Each search also verifies a few more blocks than it touches. After some hundreds or thousands of searches all blocks
//! are verified, and touching costs nothing.
//!
//! Invariants:
//! 1. A set bit means that its block was intact: its checksum matched, every link was within the segment, every id
//!    matched the id set.
//! 2. If [`CheckedSection::touch`] returns false, the bytes are not used as indices, and [`Guard::damage`] returns the
//!    error.

use std::ops::{Range, RangeInclusive};

use holotype_storage::segment_file::SegmentFile;

use super::layout::NO_LINK;
use crate::error::{Error, Result};
use crate::segment::id_set::IdSet;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// Bytes per checksum.
pub(crate) const BLOCK_LEN: usize = 4096;

/// Blocks that a search verifies beyond those it touches.
const AHEAD: usize = 16;

/// Sentinel: no damaged block.
const NONE: usize = usize::MAX;

/// The block checksums of a section, as stored in `SUMS`.
pub(crate) fn sums(section: &[u8]) -> impl Iterator<Item = u32> {
    section.chunks(BLOCK_LEN).map(crc32fast::hash)
}

/// The number of blocks in a section of `len` bytes.
pub(crate) fn block_count(len: usize) -> usize {
    len.div_ceil(BLOCK_LEN)
}

/// Which blocks of a section have been verified.
#[derive(Debug)]
pub(crate) struct Guard {
    name: &'static str,
    /// The section's first checksum in `SUMS`.
    first: usize,
    checked: Vec<AtomicU64>,
    /// Blocks already requested from the system. Each is requested once; a requested block may never be touched.
    asked: Vec<AtomicU64>,
    left: AtomicUsize,
    /// The next block to verify ahead.
    next: AtomicUsize,
    damaged: AtomicUsize,
}

impl Guard {
    /// A guard for a section of `len` bytes whose checksums start at `first` in `SUMS`.
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

    /// True if all blocks are verified.
    pub(crate) fn is_done(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    /// The guarded section.
    pub(crate) fn over<'a>(&'a self, bytes: &'a [u8], sums: &'a [u32], holds: SectionKind<'a>) -> CheckedSection<'a> {
        CheckedSection { guard: self, bytes, sums, holds, file: None }
    }

    /// Records that the block is damaged.
    fn refuse(&self, block: usize) {
        // The first damaged block is the one reported.
        let _ = self.damaged.compare_exchange(NONE, block, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Fails if a touched block was damaged.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with the first such block.
    pub(crate) fn damage(&self) -> Result<()> {
        match self.damaged.load(Ordering::Relaxed) {
            NONE => Ok(()),
            block => Err(Error::corrupt(self.name, block * BLOCK_LEN, "the block is damaged")),
        }
    }
}

/// The content of a section, checked in addition to its checksums.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SectionKind<'a> {
    /// Arbitrary bytes.
    Bytes,
    /// Links to this many nodes.
    Links(u32),
    /// The ids of this set, in order.
    Ids(IdSet<'a>),
}

/// A section whose blocks are verified as they are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedSection<'a> {
    guard: &'a Guard,
    bytes: &'a [u8],
    sums: &'a [u32],
    holds: SectionKind<'a>,
    /// The file and the tag of the section, for read-ahead.
    file: Option<(&'a SegmentFile, [u8; 4])>,
}

/// The blocks that contain `len` bytes from `start`.
#[inline]
fn blocks(start: usize, len: usize) -> RangeInclusive<usize> {
    start / BLOCK_LEN..=(start + len).saturating_sub(1) / BLOCK_LEN
}

/// True if the bit of a block is set.
#[inline]
fn has(bits: &[AtomicU64], block: usize) -> bool {
    bits.get(block / 64).is_some_and(|word| word.load(Ordering::Acquire) >> (block % 64) & 1 == 1)
}

impl<'a> CheckedSection<'a> {
    /// The same with read-ahead from `file`.
    pub(crate) fn in_file(self, file: &'a SegmentFile, tag: [u8; 4]) -> Self {
        Self { file: Some((file, tag)), ..self }
    }

    /// Verifies the blocks of `len` bytes from `start`; returns whether they are intact.
    #[inline]
    pub(crate) fn touch(&self, start: usize, len: usize) -> bool {
        blocks(start, len).all(|block| self.is_checked(block)) || self.check_all_of(start, len)
    }

    #[cold]
    fn check_all_of(&self, start: usize, len: usize) -> bool {
        self.fetch(start, len);
        blocks(start, len).all(|block| self.is_checked(block) || self.check(block))
    }

    /// Announces that `len` bytes from `start` will be touched soon.
    #[inline]
    pub(crate) fn fetch(&self, start: usize, len: usize) {
        if blocks(start, len).any(|block| !self.is_checked(block) && self.asks(block)) {
            self.will_need(start..start + len);
        }
    }

    /// Asks the system to read exactly the blocks of these bytes.
    #[cold]
    fn will_need(&self, bytes: Range<usize>) {
        if let Some((file, tag)) = self.file {
            file.will_need(tag, bytes.start / BLOCK_LEN * BLOCK_LEN..bytes.end.next_multiple_of(BLOCK_LEN));
        }
    }

    /// Records damage at byte `at`, whose value is impossible.
    #[cold]
    pub(crate) fn refuse(&self, at: usize) {
        self.guard.refuse(at / BLOCK_LEN);
    }

    /// Verifies all remaining blocks.
    pub(crate) fn touch_all(&self) -> bool {
        self.guard.is_done() || self.bytes.is_empty() || self.touch(0, self.bytes.len())
    }

    /// Verifies a few more blocks. Once all are verified, searches write no shared memory.
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

    /// Marks a block as requested; returns whether it was not before.
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

    /// True if the content of the block at `start` is valid.
    fn is_sound(&self, start: usize, bytes: &[u8]) -> bool {
        let (words, rest) = bytes.as_chunks::<4>();
        match self.holds {
            SectionKind::Bytes => true,
            SectionKind::Links(count) => {
                // link + 1 is at most the count, and 0 for no link. Without an early exit the loop vectorises.
                let next = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes).wrapping_add(1);
                const { assert!(NO_LINK.wrapping_add(1) == 0) };
                rest.is_empty() && words.iter().map(next).fold(0, u32::max) <= count
            }
            SectionKind::Ids(members) => {
                let mut ids = (start as u32 / 4..).zip(words.iter().map(|bytes| u32::from_le_bytes(*bytes)));
                rest.is_empty() && ids.all(|(position, id)| members.position(id) == Some(position))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::id_set::IdSetBits;

    #[test]
    fn a_flipped_bit_is_met_where_it_is_and_nowhere_else() {
        let bytes: Vec<u8> = (0..3 * BLOCK_LEN + 100).map(|i| (i % 251) as u8).collect();
        let mut all = vec![7; 2];
        all.extend(sums(&bytes));
        let mut flipped = bytes.clone();
        flipped[BLOCK_LEN * 2 + 5] ^= 1;
        let guard = Guard::new("VECS", 2, bytes.len());
        let section = guard.over(&flipped, &all, SectionKind::Bytes);
        assert!(section.touch(10, 20) && section.touch(BLOCK_LEN - 1, 2));
        assert!(guard.damage().is_ok());
        assert!(!section.touch(BLOCK_LEN * 2 - 1, 2));
        assert!(matches!(guard.damage(), Err(Error::Corrupt { offset: 8192, .. })));
        assert!(section.touch(bytes.len() - 1, 1) && !section.touch_all() && !guard.is_done());
        assert!(!section.asks(0), "what was read was asked for");
        let guard = Guard::new("VECS", 2, bytes.len());
        let section = guard.over(&bytes, &all, SectionKind::Bytes);
        assert!(section.asks(1) && !section.asks(1), "once");
        section.advance();
        assert!(guard.is_done() && guard.damage().is_ok() && section.touch_all());
        let cut = Guard::new("VECS", 2, bytes.len());
        assert!(!cut.over(&bytes, &all[..4], SectionKind::Bytes).touch_all(), "a missing checksum is none");
    }

    #[test]
    fn links_that_lead_nowhere_are_damage_even_with_a_good_checksum() {
        for (link, fine) in [(9u32, true), (NO_LINK, true), (10, false)] {
            let mut bytes = vec![0; 2 * BLOCK_LEN];
            bytes[BLOCK_LEN + 8..][..4].copy_from_slice(&link.to_le_bytes());
            let all: Vec<u32> = sums(&bytes).collect();
            let guard = Guard::new("LNK0", 0, bytes.len());
            assert_eq!(guard.over(&bytes, &all, SectionKind::Links(10)).touch(BLOCK_LEN, 4), fine);
        }
    }

    #[test]
    fn ids_that_are_not_those_of_their_places_are_damage_even_with_a_good_checksum() {
        let ids: Vec<u32> = (0..1500).map(|i| i * 3 + 7).collect();
        let words = IdSetBits::of(&ids).unwrap();
        let members = words.view(ids[0], ids[1499]);
        for (at, id, fine) in [(0, 7, true), (3, 17, false), (1400, 7, false), (1499, u32::MAX, false)] {
            let mut ids = ids.clone();
            ids[at] = id;
            let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
            let all: Vec<u32> = sums(&bytes).collect();
            let guard = Guard::new("IDS ", 0, bytes.len());
            assert_eq!(guard.over(&bytes, &all, SectionKind::Ids(members)).touch(at * 4, 4), fine, "{id} at {at}");
            assert_eq!(guard.damage().is_ok(), fine);
        }
    }
}
