//! Sets of item ids: [`RoaringBitmap`] for storage and transfer, [`Bits`] for membership tests.
//!
//! A search tests its filter once per candidate, which costs 11 to 35 ns with a roaring bitmap. So a filter becomes
//! [`Bits`] before a search: one bit per id up to the largest, with known cardinality, because the search strategy
//! depends on it. Ids are dense, so the size is an eighth of a byte per item of the database.
//!
//! Invariants:
//! 1. `count` is the number of set bits.
//! 2. The last block is not zero, so equal sets have equal representations.
//! 3. Ids past the last block are absent; testing them is not an error.

pub use roaring::RoaringBitmap;

use crate::distance::kernels;

const BLOCK_BITS: u32 = u64::BITS;

/// An immutable set of ids as a plain bit vector of known cardinality.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    blocks: Vec<u64>,
    count: u64,
}

impl Bits {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every id below `bound`.
    pub fn full(bound: u32) -> Self {
        let whole = (bound / BLOCK_BITS) as usize;
        let mut blocks = vec![u64::MAX; whole];
        let rest = bound % BLOCK_BITS;
        if rest > 0 {
            blocks.push((1 << rest) - 1);
        }
        Self { blocks, count: u64::from(bound) }
    }

    /// The number of ids in the set.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// True if the set holds no id.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// True if `id` is in the set.
    #[inline]
    pub fn contains(&self, id: u32) -> bool {
        match self.blocks.get((id / BLOCK_BITS) as usize) {
            Some(block) => block >> (id % BLOCK_BITS) & 1 == 1,
            None => false,
        }
    }

    /// The ids in both sets.
    pub fn and(&self, other: &Bits) -> Bits {
        Self::from_blocks(self.blocks.iter().zip(&other.blocks).map(|(a, b)| a & b).collect())
    }

    /// The ids of this set that are not in `other`.
    pub fn and_not(&self, other: &Bits) -> Bits {
        let theirs = other.blocks.iter().copied().chain(std::iter::repeat(0));
        Self::from_blocks(self.blocks.iter().zip(theirs).map(|(a, b)| a & !b).collect())
    }

    /// The ids of either set.
    pub fn or(&self, other: &Bits) -> Bits {
        let (long, short) = if self.blocks.len() >= other.blocks.len() { (self, other) } else { (other, self) };
        let theirs = short.blocks.iter().copied().chain(std::iter::repeat(0));
        Self::from_blocks(long.blocks.iter().zip(theirs).map(|(a, b)| a | b).collect())
    }

    /// The ids below `bound`.
    pub fn below(&self, bound: u32) -> Bits {
        let whole = (bound / BLOCK_BITS) as usize;
        let mut blocks = self.blocks.get(..whole).unwrap_or(&self.blocks).to_vec();
        if let Some(block) = self.blocks.get(whole) {
            blocks.push(block & ((1u64 << (bound % BLOCK_BITS)) - 1));
        }
        Self::from_blocks(blocks)
    }

    /// The bit vector: id i is bit i % 64 of block i / 64.
    #[inline]
    pub fn blocks(&self) -> &[u64] {
        &self.blocks
    }

    /// The number of ids in both sets, without building the intersection.
    pub fn and_count(&self, other: &Bits) -> u64 {
        kernels().and_count(&self.blocks, &other.blocks)
    }

    /// The number of ids of the set in `range`.
    pub fn count_in(&self, range: std::ops::Range<u32>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let at = |bound: u32| (bound / BLOCK_BITS) as usize;
        // The ids in the bound's block that are below it.
        let part = |bound: u32| {
            let block = self.blocks.get(at(bound)).copied().unwrap_or(0);
            u64::from((block & ((1u64 << (bound % BLOCK_BITS)) - 1)).count_ones())
        };
        let end = at(range.end).min(self.blocks.len());
        let whole = self.blocks.get(at(range.start)..end).unwrap_or_default();
        (kernels().and_count(whole, whole) + part(range.end)).saturating_sub(part(range.start))
    }

    /// The number of runs of 64 `blocks` ids, counted from 0, that have an id of the set.
    pub fn runs(&self, blocks: usize) -> u64 {
        let runs = self.blocks.chunks(blocks.max(1));
        runs.filter(|run| run.iter().any(|block| *block != 0)).count() as u64
    }

    /// The ids, ascending.
    pub fn iter(&self) -> Iter<'_> {
        Iter { blocks: &self.blocks, at: 0, left: self.blocks.first().copied().unwrap_or(0) }
    }

    /// The same set in its compact form.
    pub fn to_roaring(&self) -> RoaringBitmap {
        let mut set = RoaringBitmap::new();
        for id in self.iter() {
            set.insert(id);
        }
        set
    }

    /// The bytes the set occupies.
    pub fn byte_len(&self) -> usize {
        self.blocks.len() * size_of::<u64>()
    }

    /// The set whose id `i` is bit `i % 64` of block `i / 64`.
    pub fn from_blocks(mut blocks: Vec<u64>) -> Self {
        let used = blocks.iter().rposition(|block| *block != 0).map_or(0, |last| last + 1);
        blocks.truncate(used);
        let count = kernels().and_count(&blocks, &blocks);
        Self { blocks, count }
    }
}

/// From ids in any order; a repeated id counts once.
impl FromIterator<u32> for Bits {
    fn from_iter<I: IntoIterator<Item = u32>>(ids: I) -> Self {
        let mut blocks: Vec<u64> = Vec::new();
        for id in ids {
            let block = (id / BLOCK_BITS) as usize;
            if block >= blocks.len() {
                blocks.resize(block + 1, 0);
            }
            blocks[block] |= 1 << (id % BLOCK_BITS);
        }
        Self::from_blocks(blocks)
    }
}

impl From<&RoaringBitmap> for Bits {
    fn from(set: &RoaringBitmap) -> Self {
        let Some(max) = set.max() else {
            return Self::new();
        };
        let mut blocks = vec![0u64; (max / BLOCK_BITS) as usize + 1];
        for id in set {
            blocks[(id / BLOCK_BITS) as usize] |= 1 << (id % BLOCK_BITS);
        }
        Self { blocks, count: set.len() }
    }
}

impl<'a> IntoIterator for &'a Bits {
    type Item = u32;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// The ids of a [`Bits`], ascending.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    blocks: &'a [u64],
    at: usize,
    left: u64,
}

impl Iterator for Iter<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while self.left == 0 {
            self.at += 1;
            self.left = *self.blocks.get(self.at)?;
        }
        let bit = self.left.trailing_zeros();
        self.left &= self.left - 1;
        Some(self.at as u32 * BLOCK_BITS + bit)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn bits(ids: &BTreeSet<u32>) -> Bits {
        ids.iter().copied().collect()
    }

    fn small_set() -> impl Strategy<Value = BTreeSet<u32>> {
        proptest::collection::btree_set(0u32..700, 0..120)
    }

    #[test]
    fn the_empty_set_holds_nothing() {
        let empty = Bits::new();
        assert_eq!(
            (empty.count(), empty.is_empty(), empty.contains(0), empty.contains(u32::MAX)),
            (0, true, false, false)
        );
        assert_eq!(empty.iter().next(), None);
        assert_eq!(Bits::from(&RoaringBitmap::new()), empty);
        assert_eq!(Bits::full(0), empty);
    }

    #[test]
    fn runs_with_an_id_are_counted() {
        let bits = bits(&[0, 63, 64, 130, 700].into());
        assert_eq!([1, 2, 3, 100].map(|blocks| bits.runs(blocks)), [4, 3, 2, 1]);
        assert_eq!((Bits::new().runs(4), bits.runs(0)), (0, 4));
    }

    #[test]
    fn full_holds_exactly_the_ids_below_its_bound() {
        for bound in [1, 63, 64, 65, 128, 1000] {
            let full = Bits::full(bound);
            assert_eq!(full.count(), u64::from(bound));
            assert!(full.iter().eq(0..bound));
            assert!(full.contains(bound - 1) && !full.contains(bound));
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_sorted_set(a in small_set(), b in small_set(), bound in 0u32..800, end in 0u32..800) {
            let (x, y) = (bits(&a), bits(&b));
            prop_assert_eq!(x.count(), a.len() as u64);
            prop_assert!(x.iter().eq(a.iter().copied()));
            prop_assert!((0..800).all(|id| x.contains(id) == a.contains(&id)));
            prop_assert_eq!(x.and(&y), bits(&(&a & &b)));
            prop_assert_eq!(x.and_count(&y), (&a & &b).len() as u64);
            prop_assert_eq!(x.and_not(&y), bits(&(&a - &b)));
            prop_assert_eq!(x.or(&y), bits(&(&a | &b)));
            prop_assert_eq!(x.below(bound), bits(&a.range(..bound).copied().collect()));
            prop_assert_eq!(x.count_in(bound..end), a.iter().filter(|id| (bound..end).contains(id)).count() as u64);
            let roaring: RoaringBitmap = a.iter().copied().collect();
            prop_assert_eq!(&Bits::from(&roaring), &x);
            prop_assert_eq!(x.to_roaring(), roaring);
        }
    }
}
