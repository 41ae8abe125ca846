//! Filters: which nodes match, how many, and what that means for the search.
//!
//! | matching | strategy |
//! |---|---|
//! | few, in number or in share | scan them |
//! | between | walk the matching nodes, stepping over the others |
//! | [`COLLECT_SHARE`] and more, the query among them | walk all nodes and collect those that match |
//!
//! The counts are exact. A filter's ids and a segment's ids are both bit vectors, so matches are counted and listed 64
//! ids at a time; the position of an id is the number of the segment's ids below it.

use crate::bitmap::Bits;

/// From this share on, walking over nodes that do not match costs less than stepping over them.
const COLLECT_SHARE: f64 = 0.2;

/// Below this share too few of a node's neighbours' neighbours match for a walk over matches to hold together.
const SCAN_SHARE: f64 = 0.008;

/// Comparing so many codes one after the other costs no more than a walk that steps over what does not match, and
/// misses nothing.
const SCAN_COUNT: u64 = 16_384;

/// The same for a query that lies away from the matches. The nearest of them are then outliers of their own
/// surroundings, to which few links lead: a walk would have to keep many times ef to find 19 in 20.
const SCAN_COUNT_AWAY: u64 = 65_536;

/// Comparing so many costs no more than any walk.
const FEW: u64 = 2048;

/// Nodes that a walk over matches starts from. They lie evenly over the matches, so that one is near wherever the
/// nearest matches are.
const SEEDS: u64 = 128;

/// How the matches of a filter are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Compare them all.
    Scan,
    /// Walk over the matching nodes.
    Matching {
        /// Whether the query lies away from them.
        away: bool,
    },
    /// Walk over all nodes.
    Collecting,
}

impl Plan {
    /// For `matching` of `count` nodes, where `ef` of them are to be kept. `away` says whether the query lies away from
    /// the matches, which takes a walk to find out.
    pub(crate) fn choose(matching: u64, count: u64, ef: usize, away: impl FnOnce() -> bool) -> Self {
        let share = matching as f64 / count as f64;
        if matching <= FEW.max(ef as u64 * 8) || share < SCAN_SHARE {
            return Self::Scan;
        }
        let away = away();
        if share >= COLLECT_SHARE && !away {
            Self::Collecting
        } else if matching <= if away { SCAN_COUNT_AWAY } else { SCAN_COUNT } {
            Self::Scan
        } else {
            Self::Matching { away }
        }
    }
}

/// The ids of a segment as a set.
#[derive(Clone, Debug)]
pub(crate) struct Members {
    first: u32,
    last: u32,
    /// `None` when they are all the ids from the first to the last.
    set: Option<Ranked>,
}

/// A set, and how many of it lie before each of its blocks.
#[derive(Clone, Debug)]
struct Ranked {
    bits: Bits,
    below: Vec<u32>,
}

impl Ranked {
    fn new(bits: Bits) -> Self {
        let mut count = 0;
        let below = bits.blocks().iter().map(|block| {
            let below = count;
            count += block.count_ones();
            below
        });
        let below = below.collect();
        Self { bits, below }
    }
}

impl Members {
    /// Of `ids`, ascending, at least one.
    pub(crate) fn new(ids: &[u32]) -> Self {
        let (first, last) = (ids.first().copied().unwrap_or(0), ids.last().copied().unwrap_or(0));
        let dense = (last - first) as usize + 1 == ids.len();
        Self { first, last, set: (!dense).then(|| Ranked::new(ids.iter().copied().collect())) }
    }

    /// The position of `id`, if it is here.
    #[inline]
    pub(crate) fn position(&self, id: u32) -> Option<u32> {
        match &self.set {
            None => (self.first..=self.last).contains(&id).then(|| id - self.first),
            Some(set) => {
                let block = set.bits.blocks().get(id as usize / 64)?;
                let bit = 1u64 << (id % 64);
                (block & bit != 0).then(|| set.below[id as usize / 64] + (block & (bit - 1)).count_ones())
            }
        }
    }

    /// How many are in `filter`.
    pub(crate) fn count(&self, filter: &Bits) -> u64 {
        match &self.set {
            Some(set) => set.bits.and_count(filter),
            None => filter.count_in(self.first..self.last.saturating_add(1)),
        }
    }

    /// The positions of those in `filter`, ascending.
    pub(crate) fn positions<'a>(&'a self, filter: &'a Bits) -> impl Iterator<Item = u32> + 'a {
        let mut below = 0;
        self.blocks(filter).flat_map(move |(_, members, both)| {
            let base = below;
            below += members.count_ones();
            Ones(both).map(move |bit| base + (members & ((1 << bit) - 1)).count_ones())
        })
    }

    /// Positions spread evenly over those in `filter`, of which there are `matching`.
    pub(crate) fn spread(&self, filter: &Bits, matching: u64) -> Vec<u32> {
        let mut seeds = Vec::with_capacity(SEEDS as usize);
        let (mut below, mut met, mut next) = (0, 0, 0);
        for (_, members, both) in self.blocks(filter) {
            let here = u64::from(both.count_ones());
            while next < met + here {
                let bit = Ones(both).nth((next - met) as usize).unwrap_or(0);
                seeds.push(below + (members & ((1 << bit) - 1)).count_ones());
                // At least one further, so that the list ends where there are few matches.
                next = (seeds.len() as u64 * matching / SEEDS).max(next + 1);
            }
            met += here;
            below += members.count_ones();
        }
        seeds
    }

    /// For each block of 64 ids from the first to the last: its place, the members in it, and those in `filter` too.
    fn blocks<'a>(&'a self, filter: &'a Bits) -> impl Iterator<Item = (usize, u64, u64)> + 'a {
        let (first, last) = (self.first as usize / 64, self.last as usize / 64);
        (first..=last).map(move |at| {
            let members = match &self.set {
                Some(set) => set.bits.blocks().get(at).copied().unwrap_or(0),
                None => {
                    let from = if at == first { self.first % 64 } else { 0 };
                    let to = if at == last { self.last % 64 } else { 63 };
                    (u64::MAX << from) & (u64::MAX >> (63 - to))
                }
            };
            let filter = filter.blocks().get(at).copied().unwrap_or(0);
            (at, members, members & filter)
        })
    }

    /// What asks `filter` about positions; `ids` are the segment's.
    pub(crate) fn matcher<'a>(&self, ids: &'a [u32], filter: &'a Bits) -> Matcher<'a> {
        Matcher { filter, ids: self.set.is_some().then_some(ids), first: self.first }
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

/// Says whether the vector at a position matches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matcher<'a> {
    filter: &'a Bits,
    /// `None` when the id is the first plus the position.
    ids: Option<&'a [u32]>,
    first: u32,
}

impl Matcher<'_> {
    /// Whether the vector at `position` matches.
    #[inline]
    pub(crate) fn matches(&self, position: u32) -> bool {
        let id = self.ids.map_or(self.first + position, |ids| ids[position as usize]);
        self.filter.contains(id)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn case() -> impl Strategy<Value = (Vec<u32>, BTreeSet<u32>)> {
        let sparse = proptest::collection::btree_set(0u32..2000, 1..300).prop_map(|ids| ids.into_iter().collect());
        let dense = (0u32..300, 1u32..300).prop_map(|(first, count)| (first..first + count).collect());
        let wanted = proptest::collection::btree_set(0u32..2000, 0..500);
        (prop_oneof![sparse, dense], wanted)
    }

    proptest! {
        #[test]
        fn counts_positions_and_matches_agree_with_the_lists((ids, wanted) in case()) {
            let filter: Bits = wanted.iter().copied().collect();
            let members = Members::new(&ids);
            let want: Vec<u32> = (0..ids.len() as u32).filter(|at| wanted.contains(&ids[*at as usize])).collect();
            prop_assert_eq!(members.count(&filter), want.len() as u64);
            let place = |id: u32| ids.binary_search(&id).ok().map(|at| at as u32);
            prop_assert!((0..2100).all(|id| members.position(id) == place(id)));
            prop_assert_eq!(members.positions(&filter).collect::<Vec<_>>(), want.clone());
            let matcher = members.matcher(&ids, &filter);
            prop_assert!((0..ids.len() as u32).all(|at| matcher.matches(at) == want.contains(&at)));
            let seeds = members.spread(&filter, want.len() as u64);
            prop_assert_eq!(seeds.len() as u64, SEEDS.min(want.len() as u64));
            prop_assert!(seeds.is_sorted_by(|a, b| a < b));
            prop_assert!(seeds.iter().all(|seed| want.contains(seed)));
        }
    }

    #[test]
    fn the_plan_follows_number_and_share() {
        assert_eq!(Plan::choose(1, 100_000, 64, || false), Plan::Scan);
        assert_eq!(Plan::choose(20_000, 200_000, 64, || false), Plan::Matching { away: false });
        assert_eq!(Plan::choose(50_000, 100_000, 64, || false), Plan::Collecting);
        assert_eq!(Plan::choose(10_000, 12_000, 64, || false), Plan::Collecting);
        assert_eq!(Plan::choose(10_000, 12_000, 64, || true), Plan::Scan);
        assert_eq!(Plan::choose(70_000, 100_000, 64, || true), Plan::Matching { away: true });
        assert_eq!(Plan::choose(100, 100_000, 64, || panic!("few are scanned wherever they are")), Plan::Scan);
        assert_eq!(Plan::choose(10_000, 60_000, 64, || false), Plan::Scan);
        assert_eq!(Plan::choose(20_000, 4_000_000, 64, || false), Plan::Scan);
        assert_eq!(Plan::choose(20_000, 200_000, 5_000, || false), Plan::Scan);
    }
}
