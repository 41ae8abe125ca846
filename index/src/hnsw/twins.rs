//! Twins: vectors with equal codes, of which one is a node of the graph and lists the others.
//!
//! A walk cannot tell equal codes apart. As nodes they would fill the link lists of each other, and thousands of them
//! would be an island: a walk that enters it keeps as many of them as it may keep, and meets nothing else. So the first
//! of them, the *leader*, has all links. A walk meets the leader, and its twins join the hits when it is rescored. Most
//! twins are texts that were written again, whose exact vectors are equal, too: of them only as many are scored as can
//! be hits.
//!
//! Invariants:
//! 1. A leader is the first position of its code, and is no twin.
//! 2. Only a leader has links, but that the list of a twin on level 0 holds its leader; no link leads to a twin.
//! 3. Pairs are sorted by leader, then by the other word. In that word, [`DIFFERS`] is set if the exact vector of the
//!    twin is another than that of the leader, so that these follow the others.
//!
//! Cost: a hash and a comparison by vector when a graph is built, 8 bytes by twin in the file, and a search among the
//! pairs for each candidate that is rescored, where there are any.

use std::hash::{BuildHasher, Hasher};

use crate::error::{Error, Result};
use crate::quantize::Codes;
use crate::rows::RowsView;
use crate::segment::id_set::Matcher;

/// A leader, and a twin of it with [`DIFFERS`] if its exact vector is another.
pub(crate) type Pair = [u32; 2];

/// Set in the second word of a pair if the two exact vectors differ. No position is as large.
const DIFFERS: u32 = 1 << 31;

fn twin_of(pair: &Pair) -> u32 {
    pair[1] & !DIFFERS
}

/// The twins of a graph under construction.
#[derive(Clone, Debug)]
pub(crate) struct Twins {
    pairs: Vec<Pair>,
    /// The leader of each position; empty if there are no twins.
    leaders: Vec<u32>,
}

impl Twins {
    /// None at all.
    #[cfg(test)]
    pub(crate) const NONE: Self = Self { pairs: Vec::new(), leaders: Vec::new() };

    /// The twins among coded vectors.
    pub(crate) fn find(codes: &Codes<'_>, rows: &RowsView<'_>) -> Self {
        let hasher = foldhash::fast::FixedState::default();
        let hash = |position: u32| {
            let mut hasher = hasher.build_hasher();
            hasher.write(bytemuck::cast_slice(codes.code(position)));
            hasher.finish()
        };
        let mut hashes: Vec<(u64, u32)> = (0..codes.len() as u32).map(|at| (hash(at), at)).collect();
        hashes.sort_unstable();
        let mut pairs = Vec::new();
        for run in hashes.chunk_by(|a, b| a.0 == b.0) {
            let (leader, code) = (run[0].1, codes.code(run[0].1));
            // Other codes with an equal hash stay nodes.
            let equal = run[1..].iter().map(|(_, at)| *at).filter(|at| codes.code(*at) == code);
            pairs.extend(equal.map(|at| [leader, if is_same(rows, leader, at) { at } else { at | DIFFERS }]));
        }
        pairs.sort_unstable();
        let mut leaders = Vec::new();
        if !pairs.is_empty() {
            leaders.extend(0..codes.len() as u32);
            pairs.iter().for_each(|pair| leaders[twin_of(pair) as usize] = pair[0]);
        }
        Self { pairs, leaders }
    }

    /// The leader of a position: itself, unless it is a twin.
    #[inline]
    pub(crate) fn leader(&self, position: u32) -> u32 {
        self.leaders.get(position as usize).copied().unwrap_or(position)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Each leader with one of its twins.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.pairs.iter().map(|pair| (pair[0], twin_of(pair)))
    }

    pub(crate) fn into_pairs(self) -> Vec<Pair> {
        self.pairs
    }

    pub(crate) fn view(&self) -> TwinsView<'_> {
        TwinsView { pairs: &self.pairs }
    }
}

/// True if two vectors have the same bytes. A damaged one is like none.
fn is_same(rows: &RowsView<'_>, a: u32, b: u32) -> bool {
    let encoded = |at: u32| rows.slice(at as usize, at as usize + 1).encoded();
    let (Some(a), Some(b)) = (encoded(a), encoded(b)) else {
        return false;
    };
    a.bytes == b.bytes && a.scales == b.scales
}

/// The twins of a finished graph.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TwinsView<'a> {
    pairs: &'a [Pair],
}

/// The twins of one leader, each kind ascending.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TwinsOf<'a> {
    /// Those whose exact vectors equal the leader's.
    same: &'a [Pair],
    others: &'a [Pair],
}

impl<'a> TwinsView<'a> {
    /// Takes `pairs` of a graph of `count` nodes.
    ///
    /// # Errors
    /// [`Error::Corrupt`] unless they are sorted, within the graph, and no twin is a leader.
    pub(crate) fn check(pairs: &'a [Pair], count: usize) -> Result<Self> {
        let bad = |at: usize, what: &str| Err(Error::corrupt("TWIN", at * 8, what));
        let this = Self { pairs };
        for (at, pair) in pairs.iter().enumerate() {
            if at > 0 && pairs[at - 1] >= *pair {
                return bad(at, "the pairs do not ascend");
            }
            if pair[0] >= twin_of(pair) || twin_of(pair) as usize >= count {
                return bad(at, "a twin does not follow its leader within the segment");
            }
            if !this.of(twin_of(pair)).is_empty() {
                return bad(at, "a twin has twins");
            }
        }
        Ok(this)
    }

    /// `pairs` that were checked before.
    pub(crate) fn new(pairs: &'a [Pair]) -> Self {
        Self { pairs }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Each leader with one of its twins.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + 'a {
        self.pairs.iter().map(|pair| (pair[0], twin_of(pair)))
    }

    /// The twins of the node at `leader`.
    #[inline]
    pub(crate) fn of(&self, leader: u32) -> TwinsOf<'a> {
        if self.pairs.is_empty() {
            return TwinsOf { same: &[], others: &[] };
        }
        let start = self.pairs.partition_point(|pair| pair[0] < leader);
        let rest = &self.pairs[start..];
        if rest.first().is_none_or(|pair| pair[0] != leader) {
            return TwinsOf { same: &[], others: &[] };
        }
        let own = &rest[..rest.partition_point(|pair| pair[0] == leader)];
        let (same, others) = own.split_at(own.partition_point(|pair| pair[1] < DIFFERS));
        TwinsOf { same, others }
    }
}

impl<'a> TwinsOf<'a> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.same.is_empty() && self.others.is_empty()
    }

    /// True if the vector at `position` is one of them.
    pub(crate) fn contains(&self, position: u32) -> bool {
        [self.same, self.others].iter().any(|part| part.binary_search_by_key(&position, twin_of).is_ok())
    }

    /// Their positions.
    pub(crate) fn positions(&self) -> impl Iterator<Item = u32> + 'a {
        self.same.iter().chain(self.others).map(twin_of)
    }

    /// Those of the same vector as the leader, the newest first.
    pub(crate) fn same_newest_first(&self) -> impl Iterator<Item = u32> + 'a {
        self.same.iter().rev().map(twin_of)
    }

    /// Those of other vectors than the leader.
    pub(crate) fn others(&self) -> impl Iterator<Item = u32> + 'a {
        self.others.iter().map(twin_of)
    }
}

/// Tests whether a node matches a filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeMatcher<'a> {
    pub(crate) matcher: Matcher<'a>,
    pub(crate) twins: TwinsView<'a>,
}

impl NodeMatcher<'_> {
    /// Returns true if the vector of a node or that of one of its twins matches.
    #[inline]
    pub(crate) fn matches(&self, node: u32) -> bool {
        self.matcher.matches(node) || self.twins.of(node).positions().any(|twin| self.matcher.matches(twin))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rows::Rows;
    use crate::spec::{Encoding, Metric, VectorSpec};

    proptest! {
        #[test]
        fn each_position_has_the_first_of_its_code_as_leader(
            vectors in proptest::collection::vec((0i8..3, 0i8..2, 0u8..2), 1..60),
        ) {
            let spec = VectorSpec::new(2, Metric::L2, Encoding::F32).unwrap();
            let (mut rows, mut codes) = (Rows::new(spec), Vec::new());
            for (id, (x, y, exact)) in (0..).zip(&vectors) {
                rows.push(id, &[f32::from(*x), f32::from(*y) + f32::from(*exact) * 0.1]).unwrap();
                codes.extend([*x, *y]);
            }
            let twins = Twins::find(&Codes::new(2, Metric::L2, &codes), &rows.view());
            let code = |at: usize| (vectors[at].0, vectors[at].1);
            let view = TwinsView::check(&twins.pairs, vectors.len()).unwrap();
            for at in 0..vectors.len() {
                let leader = (0..vectors.len()).find(|other| code(*other) == code(at)).unwrap();
                prop_assert_eq!(twins.leader(at as u32) as usize, leader);
                let class = |is_same: bool| -> Vec<u32> {
                    let later = at + 1..if leader == at { vectors.len() } else { at + 1 };
                    let own = later.filter(|other| code(*other) == code(at));
                    own.filter(|other| (vectors[*other] == vectors[at]) == is_same).map(|other| other as u32).collect()
                };
                let of = view.of(at as u32);
                prop_assert_eq!(of.others().collect::<Vec<_>>(), class(false));
                let mut same: Vec<u32> = of.same_newest_first().collect();
                same.reverse();
                prop_assert_eq!(&same, &class(true));
                prop_assert!(of.positions().all(|twin| of.contains(twin)) && !of.contains(at as u32));
            }
        }
    }

    #[test]
    fn pairs_that_cannot_be_are_refused() {
        assert!(TwinsView::check(&[[0, 2], [0, 3 | DIFFERS], [1, 4]], 5).is_ok());
        for pairs in [&[[0, 5]][..], &[[2, 2]], &[[3, 1]], &[[0, 2], [0, 2]], &[[1, 2], [0, 3]], &[[0, 1], [1, 2]]] {
            assert!(TwinsView::check(pairs, 5).is_err(), "{pairs:?}");
        }
    }
}
