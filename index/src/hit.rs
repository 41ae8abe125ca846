//! Search hits and the collection of the best k.
//!
//! The order is total, so equal searches return equal answers: larger score first, then larger id, which is the newer
//! item.

use std::cmp::{Ordering, Reverse};
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

/// Keeps the best `k` of all pushed hits, in memory for `k` hits.
#[derive(Clone, Debug)]
pub struct TopHits {
    k: usize,
    /// The keys of the kept hits.
    worst_first: BinaryHeap<Reverse<u64>>,
}

/// A hit as one number, which is larger for the better one.
#[inline]
fn key(hit: Hit) -> u64 {
    u64::from(ascending(hit.score.to_bits())) << 32 | u64::from(hit.id)
}

#[inline]
fn hit(key: u64) -> Hit {
    let bits = (key >> 32) as u32;
    // The reverse of `ascending`.
    let bits = if bits >> 31 == 1 { bits ^ 1 << 31 } else { !bits };
    Hit { id: key as u32, score: f32::from_bits(bits) }
}

/// The bits of a float as a number that orders as [`f32::total_cmp`] does.
#[inline]
fn ascending(bits: u32) -> u32 {
    if bits >> 31 == 1 { !bits } else { bits ^ 1 << 31 }
}

impl TopHits {
    /// Keeps `k` hits.
    pub fn new(k: usize) -> Self {
        Self { k, worst_first: BinaryHeap::new() }
    }

    /// The number of hits that are kept.
    pub(crate) fn wanted(&self) -> usize {
        self.k
    }

    /// True if `hit` would be kept.
    #[inline]
    pub fn admits(&self, hit: Hit) -> bool {
        self.worst_first.len() < self.k || self.worst_first.peek().is_some_and(|Reverse(worst)| key(hit) > *worst)
    }

    /// Keeps `hit` if it is among the best.
    #[inline]
    pub fn push(&mut self, hit: Hit) {
        if self.worst_first.len() < self.k {
            self.worst_first.push(Reverse(key(hit)));
        } else if let Some(mut worst) = self.worst_first.peek_mut()
            && key(hit) > worst.0
        {
            *worst = Reverse(key(hit));
        }
    }

    /// The score that a hit has to reach, once there are `k`.
    pub fn threshold(&self) -> Option<f32> {
        if self.worst_first.len() < self.k { None } else { self.worst_first.peek().map(|worst| hit(worst.0).score) }
    }

    /// The hits, best first.
    pub fn into_sorted(self) -> Vec<Hit> {
        let mut keys = self.worst_first.into_vec();
        keys.sort_unstable();
        keys.into_iter().map(|Reverse(key)| hit(key)).collect()
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
        fn keys_order_as_hits_do(a in any::<u32>(), b in any::<u32>(), x in 0u32..3, y in 0u32..3) {
            let (a, b) = (Hit { id: x, score: f32::from_bits(a) }, Hit { id: y, score: f32::from_bits(b) });
            prop_assert_eq!(key(b).cmp(&key(a)), a.best_first(&b));
            prop_assert_eq!((hit(key(a)).id, hit(key(a)).score.to_bits()), (a.id, a.score.to_bits()));
        }

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
