//! What a search finds, and the best k of it.
//!
//! The order is total, so that equal searches give equal answers: the larger score first, then the larger id, which is
//! the newer item.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// An item that a search found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The item.
    pub id: u32,
    /// Its score; larger is better.
    pub score: f32,
}

impl Hit {
    /// Orders the better hit first.
    pub fn best_first(&self, other: &Hit) -> Ordering {
        other.score.total_cmp(&self.score).then(other.id.cmp(&self.id))
    }
}

/// Keeps the best `k` of the hits it is shown, in memory for `k`.
#[derive(Clone, Debug)]
pub struct TopHits {
    k: usize,
    worst_first: BinaryHeap<Kept>,
}

#[derive(Clone, Debug, PartialEq)]
struct Kept(Hit);

impl Eq for Kept {}

impl Ord for Kept {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.best_first(&other.0)
    }
}

impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl TopHits {
    /// Keeps `k` hits.
    pub fn new(k: usize) -> Self {
        Self { k, worst_first: BinaryHeap::new() }
    }

    /// Whether `hit` would be kept.
    #[inline]
    pub fn admits(&self, hit: Hit) -> bool {
        self.worst_first.len() < self.k || self.worst_first.peek().is_some_and(|worst| hit.best_first(&worst.0).is_lt())
    }

    /// Keeps `hit` if it is among the best.
    #[inline]
    pub fn push(&mut self, hit: Hit) {
        if !self.admits(hit) {
            return;
        }
        if self.worst_first.len() == self.k {
            self.worst_first.pop();
        }
        self.worst_first.push(Kept(hit));
    }

    /// The score that a hit has to reach, once there are `k`.
    pub fn threshold(&self) -> Option<f32> {
        if self.worst_first.len() < self.k { None } else { self.worst_first.peek().map(|worst| worst.0.score) }
    }

    /// The hits, best first.
    pub fn into_sorted(self) -> Vec<Hit> {
        self.worst_first.into_sorted_vec().into_iter().map(|kept| kept.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn none_of_none() {
        let mut none = TopHits::new(0);
        none.push(Hit { id: 1, score: 1.0 });
        assert_eq!(none.threshold(), None);
        assert_eq!(none.into_sorted(), []);
    }

    proptest! {
        #[test]
        fn the_best_k_are_the_head_of_the_sorted_list(
            scores in proptest::collection::vec(0u8..6, 0..40),
            k in 0usize..50,
        ) {
            let hits = scores.iter().zip(0u32..).map(|(&score, id)| Hit { id, score: f32::from(score) });
            let mut all: Vec<Hit> = hits.collect();
            let mut top = TopHits::new(k);
            all.iter().for_each(|&hit| top.push(hit));
            all.sort_by(Hit::best_first);
            all.truncate(k);
            prop_assert_eq!(top.threshold(), if k > 0 && all.len() == k { all.last().map(|hit| hit.score) } else { None });
            prop_assert_eq!(top.into_sorted(), all);
        }
    }
}
