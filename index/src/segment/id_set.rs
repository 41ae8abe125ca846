//! The ids of a segment as a set: a bit vector with ranks, which maps ids to positions and intersects with filters.
//!
//! A position is the rank of an id among the segment's ids. A filter is a bit vector over the same ids ([`Bits`]), so
//! matches are counted and listed 64 ids at a time, and all counts are exact. A segment of consecutive ids stores no
//! bits.

use crate::bitmap::Bits;
use crate::distance::kernels;
use crate::rows::RowsView;

/// The ids of a segment as a set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdSet<'a> {
    first: u32,
    last: u32,
    /// `None` if the ids are consecutive.
    set: Option<Ranked<'a>>,
}

/// A set, with the number of ids before each of its blocks, from the block of the first id on.
#[derive(Clone, Copy, Debug)]
struct Ranked<'a> {
    blocks: &'a [u64],
    below: &'a [u32],
}

/// A set of ids that are not consecutive, as in section `MEMB`.
#[derive(Debug)]
pub(crate) struct IdSetBits {
    blocks: Vec<u64>,
    below: Vec<u32>,
}

impl IdSetBits {
    /// The set of `ids`, which ascend; `None` if they are consecutive or empty.
    pub(crate) fn of(ids: &[u32]) -> Option<Self> {
        let (first, last) = (*ids.first()?, *ids.last()?);
        if (last - first) as usize + 1 == ids.len() {
            return None;
        }
        let mut blocks = vec![0u64; block_count(first, last)];
        for id in ids {
            blocks[(id / 64 - first / 64) as usize] |= 1 << (id % 64);
        }
        let below = ranks(&blocks).collect();
        Some(Self { blocks, below })
    }

    /// A view of the set, whose least and greatest ids are given.
    pub(crate) fn view(&self, first: u32, last: u32) -> IdSet<'_> {
        IdSet { first, last, set: Some(Ranked { blocks: &self.blocks, below: &self.below }) }
    }

    /// The bytes of section `MEMB`.
    pub(crate) fn encode(&self) -> Vec<u8> {
        [bytemuck::cast_slice(&self.blocks), bytemuck::cast_slice::<_, u8>(&self.below)].concat()
    }
}

/// The number of blocks from the one of the first id to that of the last.
fn block_count(first: u32, last: u32) -> usize {
    (last / 64).saturating_sub(first / 64) as usize + 1
}

/// The number of ids before each block.
fn ranks(blocks: &[u64]) -> impl Iterator<Item = u32> + '_ {
    blocks.iter().scan(0, |count, block| {
        let below = *count;
        *count += block.count_ones();
        Some(below)
    })
}

impl<'a> IdSet<'a> {
    /// All ids from the first to the last.
    pub(crate) fn dense(first: u32, last: u32) -> Self {
        Self { first, last, set: None }
    }

    /// Decodes the set in `bytes`, whose least and greatest ids are given.
    ///
    /// # Errors
    /// The byte offset and a description of the damage.
    pub(crate) fn decode(first: u32, last: u32, bytes: &'a [u8]) -> Result<Self, (usize, String)> {
        let expected = block_count(first, last);
        let (blocks, below) = bytes.split_at_checked(expected * 8).unwrap_or((&[], &[]));
        let (blocks, below) = (bytemuck::try_cast_slice(blocks), bytemuck::try_cast_slice(below));
        match (blocks, below) {
            (Ok(blocks), Ok(below)) if below.len() == expected => {
                Ok(Self { first, last, set: Some(Ranked { blocks, below }) })
            }
            _ => Err((0, format!("{} bytes for {expected} blocks", bytes.len()))),
        }
    }

    /// Checks that it has `count` ids and that the first and the last are the smallest and the greatest.
    ///
    /// # Errors
    /// The byte offset in section `MEMB` and a description of the damage.
    pub(crate) fn check(&self, count: usize) -> Result<(), (usize, String)> {
        let Some(Ranked { blocks, below }) = self.set else {
            return Ok(());
        };
        if let Some(at) = ranks(blocks).zip(below).position(|(rank, below)| rank != *below) {
            return Err(((blocks.len() * 2 + at) * 4, "a rank does not match the ids before it".to_owned()));
        }
        let found: u64 = blocks.iter().map(|block| u64::from(block.count_ones())).sum();
        if found != count as u64 {
            return Err((0, format!("{found} ids, not {count}")));
        }
        let least = blocks.first().map_or(64, |block| block.trailing_zeros());
        let greatest = blocks.last().map_or(64, |block| block.leading_zeros());
        if (least, greatest) != (self.first % 64, 63 - self.last % 64) {
            return Err((0, "the first or the last id does not match the header".to_owned()));
        }
        Ok(())
    }

    /// The position of `id`, if present.
    #[inline]
    pub(crate) fn position(&self, id: u32) -> Option<u32> {
        match &self.set {
            None => (self.first..=self.last).contains(&id).then(|| id - self.first),
            Some(set) => {
                let at = (id / 64).checked_sub(self.first / 64)? as usize;
                let block = set.blocks.get(at)?;
                let bit = 1u64 << (id % 64);
                (block & bit != 0).then(|| set.below[at] + (block & (bit - 1)).count_ones())
            }
        }
    }

    /// The ids, ascending.
    pub(crate) fn ids(self) -> impl Iterator<Item = u32> + 'a {
        let (first, last) = (self.first as usize / 64, self.last as usize / 64);
        (first..=last).flat_map(move |at| Ones(self.block(at)).map(move |bit| at as u32 * 64 + bit))
    }

    /// The number of ids in `filter`.
    pub(crate) fn count(&self, filter: &Bits) -> u64 {
        match &self.set {
            Some(set) => {
                let filter = filter.blocks().get(self.first as usize / 64..).unwrap_or_default();
                kernels().and_count(set.blocks, filter)
            }
            None => filter.count_in(self.first..self.last.saturating_add(1)),
        }
    }

    /// The positions of the ids in `filter`, ascending.
    pub(crate) fn positions(self, filter: &'a Bits) -> Positions<'a> {
        let next = self.first as usize / 64;
        Positions { members: self, filter, next, listed: Vec::new(), given: 0 }
    }

    /// For each of `parts` runs of ids, the position of its first id in `filter`, if there is one.
    pub(crate) fn firsts(self, filter: &'a Bits, parts: usize) -> impl Iterator<Item = u32> + 'a {
        let (first, last) = (self.first as usize / 64, self.last as usize / 64);
        let end = filter.blocks().len().min(last + 1);
        let part = end.saturating_sub(first).div_ceil(parts.max(1)).max(1);
        (first..end).step_by(part).filter_map(move |from| {
            (from..end.min(from + part)).find_map(|at| {
                let (members, both) = (self.block(at), self.block(at) & filter.blocks()[at]);
                let bit = Ones(both).next()?;
                Some(self.below(at) + (members & ((1 << bit) - 1)).count_ones())
            })
        })
    }

    /// The members in the block of 64 ids at that index.
    #[inline]
    fn block(&self, at: usize) -> u64 {
        let (first, last) = (self.first as usize / 64, self.last as usize / 64);
        match &self.set {
            Some(set) => set.blocks.get(at.wrapping_sub(first)).copied().unwrap_or(0),
            None => {
                let from = if at == first { self.first % 64 } else { 0 };
                let to = if at == last { self.last % 64 } else { 63 };
                (u64::MAX << from) & (u64::MAX >> (63 - to))
            }
        }
    }

    /// The number of members before the block at that index, counted from the block of the first id.
    fn below(&self, at: usize) -> u32 {
        match &self.set {
            Some(set) => set.below[at - self.first as usize / 64],
            None => (at as u32 * 64).saturating_sub(self.first),
        }
    }

    /// A matcher that tests positions against `filter`; `rows` are the segment's.
    pub(crate) fn matcher(&self, rows: &RowsView<'a>, filter: &'a Bits) -> Matcher<'a> {
        Matcher { filter, rows: self.set.is_some().then_some(*rows), first: self.first }
    }
}

/// The set bits of a block, lowest first.
struct Ones(u64);

impl Iterator for Ones {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let bit = (self.0 != 0).then(|| self.0.trailing_zeros())?;
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

/// The number of blocks whose positions are listed at a time.
const LISTED_BLOCKS: usize = 32;

/// The least number of positions that are listed at a time, while any are left.
const LISTED: usize = 512;

/// The positions of a set's ids that match a filter, ascending: one by one, or some hundreds at a time.
#[derive(Debug)]
pub(crate) struct Positions<'a> {
    members: IdSet<'a>,
    filter: &'a Bits,
    /// The block that is listed next.
    next: usize,
    /// The listed positions, and how many of them the iterator has returned.
    listed: Vec<u32>,
    given: usize,
}

impl Positions<'_> {
    /// Lists the next positions in `out`, some hundreds if available; returns false if none are left.
    pub(crate) fn list(&mut self, out: &mut Vec<u32>) -> bool {
        out.clear();
        let end = self.members.last as usize / 64 + 1;
        let filter = self.filter.blocks();
        while out.len() < LISTED && self.next < end.min(filter.len()) {
            let count = LISTED_BLOCKS.min(end - self.next);
            let members: [u64; LISTED_BLOCKS] = std::array::from_fn(|at| self.members.block(self.next + at));
            kernels().and_ranks(&members[..count], &filter[self.next..], self.members.below(self.next), out);
            self.next += count;
        }
        !out.is_empty()
    }

    /// Lists every `step`-th of the remaining positions in `every`.
    pub(crate) fn every(mut self, step: usize, every: &mut Vec<u32>) {
        every.clear();
        let (mut listed, mut skipped) = (Vec::new(), 0);
        while self.list(&mut listed) {
            every.extend(listed.iter().skip(skipped).step_by(step));
            // The number of positions to skip before the next one is taken.
            skipped = (skipped + (step - listed.len() % step)) % step;
        }
    }
}

impl Iterator for Positions<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.given == self.listed.len() {
            let mut listed = std::mem::take(&mut self.listed);
            self.list(&mut listed);
            (self.listed, self.given) = (listed, 0);
        }
        let position = self.listed.get(self.given).copied()?;
        self.given += 1;
        Some(position)
    }
}

/// Tests whether the vector at a position matches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matcher<'a> {
    filter: &'a Bits,
    /// `None` if an id is the first id plus its position.
    rows: Option<RowsView<'a>>,
    first: u32,
}

impl Matcher<'_> {
    /// Returns true if the vector at `position` matches.
    #[inline]
    pub(crate) fn matches(&self, position: u32) -> bool {
        let id = self.rows.as_ref().map_or(self.first + position, |rows| rows.id(position as usize));
        self.filter.contains(id)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::rows::Rows;
    use crate::spec::{Encoding, Metric, VectorSpec};

    fn case() -> impl Strategy<Value = (Vec<u32>, BTreeSet<u32>)> {
        let sparse = proptest::collection::btree_set(0u32..2000, 1..300).prop_map(|ids| ids.into_iter().collect());
        let dense = (0u32..300, 1u32..300).prop_map(|(first, count)| (first..first + count).collect());
        let wanted = proptest::collection::btree_set(0u32..2000, 0..500);
        (prop_oneof![sparse, dense], wanted)
    }

    proptest! {
        #[test]
        fn counts_positions_and_matches_agree_with_the_lists((ids, wanted) in case(), step in 1usize..40) {
            let filter: Bits = wanted.iter().copied().collect();
            let words = IdSetBits::of(&ids);
            let (first, last) = (ids[0], ids[ids.len() - 1]);
            let members = words.as_ref().map_or(IdSet::dense(first, last), |words| words.view(first, last));
            prop_assert_eq!(members.check(ids.len()), Ok(()));
            prop_assert!(members.ids().eq(ids.iter().copied()));
            let want: Vec<u32> = (0..ids.len() as u32).filter(|at| wanted.contains(&ids[*at as usize])).collect();
            prop_assert_eq!(members.count(&filter), want.len() as u64);
            let place = |id: u32| ids.binary_search(&id).ok().map(|at| at as u32);
            prop_assert!((0..2100).all(|id| members.position(id) == place(id)));
            prop_assert_eq!(members.positions(&filter).collect::<Vec<_>>(), want.clone());
            let mut rows = Rows::new(VectorSpec::new(1, Metric::Dot, Encoding::F32).unwrap());
            ids.iter().for_each(|id| rows.push(*id, &[1.0]).unwrap());
            let view = rows.view();
            let matcher = members.matcher(&view, &filter);
            prop_assert!((0..ids.len() as u32).all(|at| matcher.matches(at) == want.contains(&at)));
            let mut every = Vec::new();
            members.positions(&filter).every(step, &mut every);
            prop_assert_eq!(every, want.iter().copied().step_by(step).collect::<Vec<_>>());
            let firsts: Vec<u32> = members.firsts(&filter, step).collect();
            prop_assert!(firsts.len() <= step && firsts.first() == want.first());
            prop_assert!(firsts.is_sorted_by(|a, b| a < b) && firsts.iter().all(|at| want.contains(at)));
        }
    }

    #[test]
    fn a_set_is_read_as_it_was_written_and_any_other_is_refused() {
        let ids: Vec<u32> = (0..300).map(|i| i * i % 7 + i * 7 + 130).collect();
        let (first, last) = (ids[0], ids[299]);
        // Aligned to eight bytes, like a section.
        let mut written = IdSetBits::of(&ids).unwrap().encode();
        let len = written.len();
        written.resize(len.next_multiple_of(8), 0);
        let written: Vec<u64> = written.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let bytes = bytemuck::cast_slice::<u64, u8>(&written);
        assert_eq!(len, block_count(first, last) * 12);
        assert!(IdSet::decode(first, last, &bytes[..len]).unwrap().ids().eq(ids.iter().copied()));
        assert!(IdSet::decode(first, last, &bytes[..len - 4]).is_err());
        for bit in 0..len * 8 {
            let mut other = written.clone();
            bytemuck::cast_slice_mut::<u64, u8>(&mut other)[bit / 8] ^= 1 << (bit % 8);
            let other = &bytemuck::cast_slice::<u64, u8>(&other)[..len];
            assert!(IdSet::decode(first, last, other).unwrap().check(300).is_err(), "bit {bit}");
        }
        for (first, last, count) in [(first + 1, last, 300), (first, last - 1, 300), (first, last, 299)] {
            let set = IdSet::decode(first, last, &bytes[..len]);
            assert!(set.and_then(|set| set.check(count)).is_err());
        }
    }
}
