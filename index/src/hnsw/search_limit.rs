//! The search limit: a walk ends when the remaining nodes are so far away that they rarely lead to a better hit.
//!
//! Plain beam search expands all ef nodes, for easy and hard queries alike. This one ends when the nearest unexpanded
//! node is further from the query than (1 + slack) times the k-th best (adaptive beam search: Al-Jazzazi and others,
//! 2025, "Distance adaptive beam search for provably accurate graph-based nearest neighbor search"). Queries with many
//! near misses are searched more deeply than queries whose hits are clearly nearest. Nodes beyond the limit are not
//! kept either.
//!
//! The caller gives `ef`, not a slack. The slack is chosen to reach the recall of a plain beam search with that ef, on
//! text embeddings and on clustered vectors alike:
//!
//! ```text
//! slack = max(0, 0.048 ln(ef / 1.2 k))
//! ```
//!
//! Such a walk keeps up to 4 ef nodes. Distances are Euclidean: between codes under l2; under cosine, where all codes
//! are about as long as the query's, from d^2 = 2 |q|^2 - 2 q x. Distances below the rounding error of codes count as
//! equal: a walk does not end before what rounding may have moved behind the k-th best.
//!
//! Two cases use plain beam search: the dot metric, which is not a distance, and ef at or above the number of nodes,
//! which asks for an exhaustive walk.

use super::search::{distance_of, key};
use crate::quantize::STANDARD_ERRORS;
use crate::spec::Metric;

const SLACK_PER_E_FOLD: f64 = 0.048;
/// The ratio of ef to k at which the slack becomes positive.
const NO_SLACK: f64 = 1.2;
/// A limited walk keeps up to this many times ef nodes.
const ROOM: usize = 4;

/// When a walk ends, and how many nodes it keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SearchLimit {
    /// The largest number of nodes kept.
    pub(super) limit: usize,
    /// `None`: the walk ends when all kept nodes are expanded.
    pub(super) bound: Option<DistanceBound>,
}

/// The distance at which a walk ends, relative to that of the k-th best. The integer distance of two codes plus
/// `origin` is their squared Euclidean distance under l2, and half of it under cosine.
#[derive(Clone, Copy, Debug)]
pub(super) struct DistanceBound {
    k: usize,
    /// The factor on the squared distance: (1 + slack)^2.
    stretch: f64,
    origin: f64,
    /// The smallest meaningful squared distance, half of it under cosine: the rounding error of codes.
    least: f64,
    error: RoundingError,
}

/// How far rounding is likely to have moved a node behind the k-th best.
#[derive(Clone, Copy, Debug)]
enum RoundingError {
    /// A number of code steps.
    OfDistance(f64),
    /// Of the distance of codes under cosine.
    OfProduct(f64),
}

impl SearchLimit {
    /// The limit of a walk for the best `k` of `count` nodes with the recall of a beam search that keeps `ef`.
    pub(crate) fn new(metric: Metric, query: &[i8], k: usize, ef: usize, count: usize) -> Self {
        if ef >= count {
            return Self::whole(ef);
        }
        let k = k.max(1);
        let slack = SLACK_PER_E_FOLD * (ef as f64 / (NO_SLACK * k as f64)).ln();
        // Rounding moves a component of either code by at most 0.5, typically by 0.3.
        let (stretch, least) = ((1.0 + slack.max(0.0)).powi(2), query.len() as f64);
        let rounded = f64::from(STANDARD_ERRORS) * (2.0f64 / 12.0).sqrt();
        let bound = match metric {
            Metric::L2 => {
                let error = RoundingError::OfDistance(2.0 * rounded);
                DistanceBound { k, stretch, origin: 0.0, least, error }
            }
            Metric::Cosine => {
                let squared: i64 = query.iter().map(|component| i64::from(*component).pow(2)).sum();
                let error = RoundingError::OfProduct(rounded * (squared as f64).sqrt());
                DistanceBound { k, stretch, origin: squared as f64, least: least / 2.0, error }
            }
            Metric::Dot => return Self::whole(ef),
        };
        Self { limit: ef.saturating_mul(ROOM), bound: Some(bound) }
    }

    /// The same limit, keeping at least `count` nodes.
    pub(crate) fn keeping(self, count: usize) -> Self {
        Self { limit: self.limit.max(count), ..self }
    }

    /// The same limit, keeping `times` as many nodes.
    pub(crate) fn widened(self, times: usize) -> Self {
        Self { limit: self.limit.saturating_mul(times), ..self }
    }

    /// The limit of a plain beam search, which ends when all `ef` nodes are expanded.
    pub(crate) fn whole(ef: usize) -> Self {
        Self { limit: ef, bound: None }
    }
}

impl DistanceBound {
    /// Returns true if inserting a node at index `at` of the nearest changes the bound.
    #[inline]
    pub(super) fn depends_on(&self, at: usize) -> bool {
        at < self.k
    }

    /// The number of `keys` within the bound set by their k-th best. Reorders `keys`.
    pub(super) fn count(&self, keys: &mut [u64]) -> usize {
        if keys.len() < self.k {
            return keys.len();
        }
        let end = self.stretched(*keys.select_nth_unstable(self.k - 1).1);
        keys.iter().filter(|key| **key < end).count()
    }

    /// The exclusive upper bound of keys, given the nearest `keys`.
    pub(super) fn key(&self, keys: &[u64]) -> u64 {
        keys.get(self.k - 1).map_or(u64::MAX, |kth| self.stretched(*kth))
    }

    /// The exclusive upper bound of keys, given the key of the k-th best.
    fn stretched(&self, kth: u64) -> u64 {
        let squared = (f64::from(distance_of(kth)) + self.origin).max(self.least);
        let moved = match self.error {
            RoundingError::OfDistance(steps) => (squared.sqrt() + steps).powi(2),
            RoundingError::OfProduct(error) => squared + error,
        };
        let furthest = (squared * self.stretch).max(moved) - self.origin;
        let furthest = furthest.ceil().min(f64::from(i32::MAX - 1)) as i32;
        key(furthest + 1, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than any ef.
    const COUNT: usize = usize::MAX;

    /// Four standard errors of two rounded components.
    const ROUNDED: f64 = 4.0 * 0.408_248_290_463_863;

    /// The furthest distance that is let in, when the k-th best has that one.
    fn furthest(search_limit: &SearchLimit, kth: i32) -> i32 {
        let (bound, mut keys) = (search_limit.bound.unwrap(), vec![key(kth - 5, 1); 9]);
        assert_eq!(bound.key(&keys), u64::MAX);
        keys.push(key(kth, 2));
        distance_of(bound.key(&keys)) - 1
    }

    #[test]
    fn the_bound_is_a_distance_further_by_the_slack() {
        let query = [100i8, -20, 30];
        // No slack for ef = k, but what rounding may have moved; 0.048 ln(8 / 1.2) for eight times as many.
        let plain = SearchLimit::new(Metric::L2, &query, 10, 10, COUNT);
        assert_eq!(furthest(&plain, 10_000), (100.0 + 2.0 * ROUNDED).powi(2).ceil() as i32);
        let wide = SearchLimit::new(Metric::L2, &query, 10, 80, COUNT);
        let slack: f64 = 0.048 * (8.0f64 / 1.2).ln();
        assert_eq!(furthest(&wide, 10_000), ((1.0 + slack).powi(2) * 10_000.0).ceil() as i32);
        // Half the squared distance is |q|^2 - q x.
        let squared = 100 * 100 + 20 * 20 + 30 * 30;
        let cosine = SearchLimit::new(Metric::Cosine, &query, 10, 80, COUNT);
        assert_eq!(furthest(&cosine, 10_000 - squared), ((1.0 + slack).powi(2) * 10_000.0).ceil() as i32 - squared);
    }

    #[test]
    fn as_many_are_counted_as_lie_below_the_bound_of_them_all() {
        let bound = SearchLimit::new(Metric::L2, &[100, -20, 30], 10, 80, COUNT).bound.unwrap();
        let mut keys: Vec<u64> = (0..300).map(|node| key(10_000 + node * 77 % 300 * 9, node as u32)).collect();
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        let end = bound.key(&sorted);
        let below = sorted.iter().filter(|key| **key < end).count();
        assert!((11..300).contains(&below));
        assert_eq!(bound.count(&mut keys), below);
        assert_eq!(bound.count(&mut keys[..9]), 9);
    }

    #[test]
    fn what_rounding_may_have_moved_is_let_in() {
        let query = [10i8; 384];
        assert_eq!(
            furthest(&SearchLimit::new(Metric::L2, &query, 10, 10, COUNT), 0),
            (384f64.sqrt() + 2.0 * ROUNDED).powi(2).ceil() as i32
        );
        let squared = 384 * 100;
        let moved = (192.0 + ROUNDED * f64::from(squared).sqrt()).ceil() as i32;
        assert_eq!(furthest(&SearchLimit::new(Metric::Cosine, &query, 10, 10, COUNT), -squared), moved - squared);
    }

    #[test]
    fn no_distance_overflows() {
        let query = [127i8; 8];
        for metric in [Metric::L2, Metric::Cosine] {
            let search_limit = SearchLimit::new(metric, &query, 10, COUNT - 1, COUNT);
            assert_eq!(furthest(&search_limit, i32::MAX - 1), i32::MAX - 1, "{metric:?}");
        }
        // More than the query's own: longer codes than it.
        assert!(furthest(&SearchLimit::new(Metric::Cosine, &query, 10, 64, COUNT), i32::MIN + 5) < 0);
    }

    #[test]
    fn a_dot_product_has_no_bound_nor_has_a_walk_that_may_keep_all() {
        for (metric, count) in [(Metric::Dot, COUNT), (Metric::L2, 64), (Metric::Cosine, 20)] {
            let search_limit = SearchLimit::new(metric, &[1, 2, 3], 10, 64, count);
            assert!(search_limit.limit == 64 && search_limit.bound.is_none());
        }
    }
}
