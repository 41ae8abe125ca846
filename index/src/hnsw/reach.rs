//! Where a walk ends: nodes so far beyond the k-th best that hardly any path leads from them to a better one.
//!
//! A walk that keeps ef nodes expands all of them, for an easy question as for a hard one. This one ends as soon as the
//! nearest node that is left lies further from the query than (1 + slack) times the k-th best (adaptive beam search: Al-Jazzazi
//! and others, 2025, "Distance adaptive beam search for provably accurate graph-based nearest neighbor search"), so that a
//! question with many near misses is looked into more deeply than one whose answers stand alone. Nodes further away are not
//! kept either.
//!
//! The caller says `ef` and not a slack: what it stands for is the recall of a walk that keeps so many and ends no earlier.
//! For real text embeddings and for clustered vectors alike, that recall is reached with
//!
//! ```text
//! slack = 0.048 ln(ef / 1.2 k)        nothing where that is below nothing
//! ```
//!
//! where four times as many nodes as ef are kept at most. The distance is the Euclidean one: between codes under L2; under
//! cosine, where codes are all about as long as the query's, from d^2 = 2 |q|^2 - 2 q x. Nearer than rounding moves them,
//! codes do not differ.
//!
//! A walk keeps ef nodes and expands them all under a dot product, which says nothing of distances, and where ef is as many as
//! there are nodes: who asks for that wants nothing missed.

use super::search::{distance_of, key};
use crate::spec::Metric;

const SLACK_PER_E_FOLD: f64 = 0.048;
/// What is kept for each of k without any slack.
const NO_SLACK: f64 = 1.2;
/// How many times ef a walk keeps that may end earlier.
const ROOM: usize = 4;

/// How far a walk goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// How many nodes are kept at most.
    pub(super) limit: usize,
    /// Nothing where it ends once all that are kept are expanded.
    pub(super) bound: Option<Bound>,
}

/// Where a walk ends, as the k-th best has it. The integer distance of two codes plus `origin` is the square of how far apart
/// they lie under L2, and half of it under cosine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    k: usize,
    /// The factor of that square.
    stretch: f64,
    origin: f64,
    /// Nothing counts as nearer: the square, or half of it, like the above.
    least: f64,
}

impl Reach {
    /// Of a walk over `count` nodes with the code `query` that looks for the best `k` as one does that keeps `ef`.
    pub(crate) fn new(metric: Metric, query: &[i8], k: usize, ef: usize, count: usize) -> Self {
        if ef >= count {
            return Self::whole(ef);
        }
        let k = k.max(1);
        let slack = SLACK_PER_E_FOLD * (ef as f64 / (NO_SLACK * k as f64)).ln();
        // Rounding moves a component of either code by half a unit at most, and by 0.3 as a rule.
        let (stretch, least) = ((1.0 + slack.max(0.0)).powi(2), query.len() as f64);
        let bound = match metric {
            Metric::L2 => Bound { k, stretch, origin: 0.0, least },
            Metric::Cosine => {
                let squared: i64 = query.iter().map(|component| i64::from(*component).pow(2)).sum();
                Bound { k, stretch, origin: squared as f64, least: least / 2.0 }
            }
            Metric::Dot => return Self::whole(ef),
        };
        Self { limit: ef.saturating_mul(ROOM), bound: Some(bound) }
    }

    /// The same of a walk that may keep `count` nodes, if that is more.
    pub(crate) fn keeping(self, count: usize) -> Self {
        Self { limit: self.limit.max(count), ..self }
    }

    /// Of a walk that keeps `ef` nodes and ends once all of them are expanded.
    pub(crate) fn whole(ef: usize) -> Self {
        Self { limit: ef, bound: None }
    }
}

impl Bound {
    /// Whether the node that comes to stand at `at` among the nearest moves it.
    #[inline]
    pub(super) fn depends_on(&self, at: usize) -> bool {
        at < self.k
    }

    /// How many of `keys` lie about as near as the k-th best of them. They are put in another order.
    pub(super) fn count(&self, keys: &mut [u64]) -> usize {
        if keys.len() < self.k {
            return keys.len();
        }
        let end = self.stretched(*keys.select_nth_unstable(self.k - 1).1);
        keys.iter().filter(|key| **key < end).count()
    }

    /// The key that nodes must lie below, where `keys` are the nearest.
    pub(super) fn key(&self, keys: &[u64]) -> u64 {
        keys.get(self.k - 1).map_or(u64::MAX, |kth| self.stretched(*kth))
    }

    /// The key that nodes must lie below, where the k-th best has this one.
    fn stretched(&self, kth: u64) -> u64 {
        let squared = (f64::from(distance_of(kth)) + self.origin).max(self.least);
        let furthest = (squared * self.stretch - self.origin).ceil().min(f64::from(i32::MAX - 1)) as i32;
        key(furthest + 1, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than any ef.
    const COUNT: usize = usize::MAX;

    /// The furthest distance that is let in, when the k-th best has that one.
    fn furthest(reach: &Reach, kth: i32) -> i32 {
        let (bound, mut keys) = (reach.bound.unwrap(), vec![key(kth - 5, 1); 9]);
        assert_eq!(bound.key(&keys), u64::MAX);
        keys.push(key(kth, 2));
        distance_of(bound.key(&keys)) - 1
    }

    #[test]
    fn the_bound_is_a_distance_further_by_the_slack() {
        let query = [100i8, -20, 30];
        // No slack for ef = k; 0.048 ln(8 / 1.2) for eight times as many.
        let plain = Reach::new(Metric::L2, &query, 10, 10, COUNT);
        assert_eq!(furthest(&plain, 10_000), 10_000);
        let wide = Reach::new(Metric::L2, &query, 10, 80, COUNT);
        let slack: f64 = 0.048 * (8.0f64 / 1.2).ln();
        assert_eq!(furthest(&wide, 10_000), ((1.0 + slack).powi(2) * 10_000.0).ceil() as i32);
        // Half the squared distance is |q|^2 - q x.
        let squared = 100 * 100 + 20 * 20 + 30 * 30;
        let cosine = Reach::new(Metric::Cosine, &query, 10, 80, COUNT);
        assert_eq!(furthest(&cosine, 10_000 - squared), ((1.0 + slack).powi(2) * 10_000.0).ceil() as i32 - squared);
    }

    #[test]
    fn as_many_are_counted_as_lie_below_the_bound_of_them_all() {
        let bound = Reach::new(Metric::L2, &[100, -20, 30], 10, 80, COUNT).bound.unwrap();
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
        assert_eq!(furthest(&Reach::new(Metric::L2, &query, 10, 10, COUNT), 0), 384);
        let squared = 384 * 100;
        assert_eq!(furthest(&Reach::new(Metric::Cosine, &query, 10, 10, COUNT), -squared), 192 - squared);
    }

    #[test]
    fn no_distance_overflows() {
        let query = [127i8; 8];
        for metric in [Metric::L2, Metric::Cosine] {
            let reach = Reach::new(metric, &query, 10, COUNT - 1, COUNT);
            assert_eq!(furthest(&reach, i32::MAX - 1), i32::MAX - 1, "{metric:?}");
        }
        // More than the query's own: longer codes than it.
        assert!(furthest(&Reach::new(Metric::Cosine, &query, 10, 64, COUNT), i32::MIN + 5) < 0);
    }

    #[test]
    fn a_dot_product_has_no_bound_nor_has_a_walk_that_may_keep_all() {
        for (metric, count) in [(Metric::Dot, COUNT), (Metric::L2, 64), (Metric::Cosine, 20)] {
            let reach = Reach::new(metric, &[1, 2, 3], 10, 64, count);
            assert!(reach.limit == 64 && reach.bound.is_none());
        }
    }
}
