//! The scalar terms of a governed score, and the order in which items are visited.
//!
//! ```text
//! f(item) = classes[class] + recency * g(now - time) + utility_weight * utility
//! g(age)  = 2 ^ (-age / half_life);  a negative age counts as 0, and g is 0 for items without a time
//! ```
//!
//! A *class* is a combination of low-cardinality attributes: a status with a source. Within its class, items are sorted
//! newest first; 256 items form a *block* with zone maps, and 32 blocks of a class form a *group* with its own. So f is
//! bounded for each block and group without reading it, for all weights and signs.
//!
//! Cost: 20 bytes per item, and one sort when the order is built. Bounding a group costs one exponential.

use std::cmp::Reverse;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::prefetch::prefetch;

/// Items in a block.
pub(super) const BLOCK: usize = 256;

/// Blocks in a group.
const GROUP: usize = 32;

/// Stands for an absent time.
const NO_TIME: i64 = i64::MIN;

/// Stands for an absent item.
const NO_CLASS: u16 = u16::MAX;

/// What an item has besides its vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scalars {
    /// Which of [`GovernedWeights::classes`] it gets; below `u16::MAX`.
    pub class: u16,
    /// When, in any unit; an item without has no recency.
    pub time: Option<i64>,
    /// Its utility, finite.
    pub utility: f32,
}

/// The weights of a governed score.
#[derive(Clone, Debug, PartialEq)]
pub struct GovernedWeights {
    /// Of the similarity.
    pub similarity: f32,
    /// The term of each class.
    pub classes: Vec<f32>,
    /// Of recency.
    pub recency: f32,
    /// The age at which recency is a half, above 0, in the unit of the times.
    pub half_life: f64,
    /// Where the reader stands; without, nothing is recent.
    pub now: Option<i64>,
    /// Of utility.
    pub utility: f32,
}

impl GovernedWeights {
    /// True if they are finite, and the half-life above 0.
    ///
    /// # Errors
    /// [`Error::Weight`].
    pub fn check(&self) -> Result<()> {
        let named = [("similarity", self.similarity), ("recency", self.recency), ("utility", self.utility)];
        let classes = self.classes.iter().map(|class| ("a class", *class));
        if let Some((what, value)) = named.into_iter().chain(classes).find(|(_, value)| !value.is_finite()) {
            return Err(Error::Weight { what, value: f64::from(value) });
        }
        if !(self.half_life.is_finite() && self.half_life > 0.0) {
            return Err(Error::Weight { what: "the half-life", value: self.half_life });
        }
        Ok(())
    }

    fn recency_at(&self, time: i64) -> f32 {
        match self.now {
            Some(now) if time != NO_TIME => {
                let age = now.saturating_sub(time).max(0) as f64;
                (-age / self.half_life).exp2() as f32
            }
            _ => 0.0,
        }
    }

    #[inline]
    fn sum(&self, class: u16, time: i64, utility: f32) -> f32 {
        let class = self.classes.get(usize::from(class)).copied().unwrap_or(0.0);
        class + self.recency * self.recency_at(time) + self.utility * utility
    }
}

/// The scalars of items, by id and in the order they are visited.
#[derive(Clone, Debug, Default)]
pub struct ScalarOrder {
    /// By id.
    items: Vec<Item>,
    /// By class, newest first.
    ids: Vec<u32>,
    blocks: Vec<Block>,
    groups: Vec<Group>,
}

/// What is kept of an item's [`Scalars`], side by side: whoever looks an item up waits for one line of memory.
#[derive(Clone, Copy, Debug)]
struct Item {
    time: i64,
    utility: f32,
    class: u16,
}

const NO_ITEM: Item = Item { time: NO_TIME, utility: 0.0, class: NO_CLASS };

/// Items that follow each other in the order of the visits.
#[derive(Clone, Debug)]
pub(super) struct Block {
    items: Range<u32>,
    extremes: Extremes,
}

/// Blocks that follow each other.
#[derive(Clone, Debug)]
pub(super) struct Group {
    blocks: Range<u32>,
    extremes: Extremes,
}

/// Between what the items of one class lie.
#[derive(Clone, Copy, Debug)]
struct Extremes {
    class: u16,
    newest: i64,
    oldest: i64,
    utility: (f32, f32),
}

impl ScalarOrder {
    /// Orders `items`, given by ascending ids.
    ///
    /// # Errors
    /// [`Error::IdOrder`], or [`Error::Weight`] for a utility that is not finite.
    pub fn new(items: impl IntoIterator<Item = (u32, Scalars)>) -> Result<Self> {
        let mut order = Self::default();
        for (id, item) in items {
            if let Some(previous) = order.ids.last().copied().filter(|last| *last >= id) {
                return Err(Error::IdOrder { previous, next: id });
            }
            if !item.utility.is_finite() {
                return Err(Error::Weight { what: "a utility", value: f64::from(item.utility) });
            }
            let class = item.class.min(NO_CLASS - 1);
            order.items.resize(id as usize, NO_ITEM);
            order.items.push(Item { time: item.time.unwrap_or(NO_TIME), utility: item.utility, class });
            order.ids.push(id);
        }
        let Self { items, ids, .. } = &mut order;
        ids.sort_unstable_by_key(|id| {
            let item = &items[*id as usize];
            (item.class, Reverse(item.time), Reverse(*id))
        });
        order.cut();
        Ok(order)
    }

    fn cut(&mut self) {
        let mut start = 0;
        while start < self.ids.len() {
            let limit = (start + BLOCK).min(self.ids.len());
            let item = |id: &u32| &self.items[*id as usize];
            let class = item(&self.ids[start]).class;
            let end = start + self.ids[start..limit].partition_point(|id| item(id).class == class);
            let extremes = self.ids[start..end].iter().map(|id| Extremes::of(item(id))).reduce(Extremes::and);
            self.blocks.extend(extremes.map(|extremes| Block { items: start as u32..end as u32, extremes }));
            start = end;
        }
        let mut start = 0;
        for blocks in self.blocks.chunk_by(|a, b| a.extremes.class == b.extremes.class) {
            for blocks in blocks.chunks(GROUP) {
                let end = start + blocks.len() as u32;
                let extremes = blocks.iter().map(|block| block.extremes).reduce(Extremes::and);
                self.groups.extend(extremes.map(|extremes| Group { blocks: start..end, extremes }));
                start = end;
            }
        }
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The scalar terms of an item; those of class 0 without time and utility for an unknown one.
    #[inline]
    pub fn terms(&self, id: u32, weights: &GovernedWeights) -> f32 {
        match self.items.get(id as usize) {
            Some(item) => weights.sum(item.class, item.time, item.utility),
            None => weights.sum(0, NO_TIME, 0.0),
        }
    }

    /// Says that the terms of an item will be asked for soon.
    #[inline]
    pub(super) fn prefetch(&self, id: u32) {
        if let Some(item) = self.items.get(id as usize) {
            prefetch(std::slice::from_ref(item));
        }
    }

    /// True if it holds that item.
    #[inline]
    pub fn contains(&self, id: u32) -> bool {
        self.items.get(id as usize).is_some_and(|item| item.class != NO_CLASS)
    }

    /// How many of `ids`, which ascend, it holds.
    pub(super) fn count_among(&self, ids: &[u32]) -> usize {
        // Where every id is an item, as usual, nothing is looked up.
        match ids.last() {
            Some(last) if self.ids.len() == self.items.len() && (*last as usize) < self.ids.len() => ids.len(),
            _ => ids.iter().filter(|id| self.contains(**id)).count(),
        }
    }

    /// Every id, in the order of the visits.
    pub(super) fn ids(&self) -> &[u32] {
        &self.ids
    }

    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }

    pub(super) fn blocks_of(&self, group: &Group) -> &[Block] {
        &self.blocks[group.blocks.start as usize..group.blocks.end as usize]
    }

    pub(super) fn ids_of(&self, block: &Block) -> &[u32] {
        &self.ids[block.items.start as usize..block.items.end as usize]
    }
}

impl Block {
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// No item of the block has more than this.
    pub(super) fn bound(&self, weights: &GovernedWeights) -> f32 {
        self.extremes.bound(weights)
    }
}

impl Group {
    /// No block of the group has a higher bound than this.
    pub(super) fn bound(&self, weights: &GovernedWeights) -> f32 {
        self.extremes.bound(weights)
    }
}

impl Extremes {
    fn of(item: &Item) -> Self {
        let Item { time, utility, class } = *item;
        Self { class, newest: time, oldest: time, utility: (utility, utility) }
    }

    fn and(self, other: Self) -> Self {
        Self {
            class: self.class,
            newest: self.newest.max(other.newest),
            oldest: self.oldest.min(other.oldest),
            utility: (self.utility.0.min(other.utility.0), self.utility.1.max(other.utility.1)),
        }
    }

    fn bound(&self, weights: &GovernedWeights) -> f32 {
        let time = if weights.recency >= 0.0 { self.newest } else { self.oldest };
        let utility = if weights.utility >= 0.0 { self.utility.1 } else { self.utility.0 };
        let bound = weights.sum(self.class, time, utility);
        // Rounding may favour an item over the extreme of its block, by a few of the last places.
        bound + (bound.abs() + 1.0) * 1e-6
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn items() -> impl Strategy<Value = Vec<Scalars>> {
        let item = (0u16..4, proptest::option::of(-2_000i64..2_000), -2.0f32..2.0);
        proptest::collection::vec(item.prop_map(|(class, time, utility)| Scalars { class, time, utility }), 0..900)
    }

    fn weights() -> impl Strategy<Value = GovernedWeights> {
        let now = proptest::option::of(-1_000i64..3_000);
        (proptest::collection::vec(-3.0f32..3.0, 4), -2.0f32..2.0, 1.0f64..900.0, now, -2.0f32..2.0).prop_map(
            |(classes, recency, half_life, now, utility)| GovernedWeights {
                similarity: 1.0,
                classes,
                recency,
                half_life,
                now,
                utility,
            },
        )
    }

    proptest! {
        #[test]
        fn every_item_is_in_one_block_and_within_its_bound((items, weights) in (items(), weights())) {
            let order = ScalarOrder::new((0..).map(|i| i * 3).zip(items.iter().copied())).unwrap();
            prop_assert!(ids_within_bounds(&order, &weights).into_iter().eq((0..items.len() as u32).map(|i| i * 3)));
        }
    }

    /// Every id in the blocks of the groups, ascending.
    fn ids_within_bounds(order: &ScalarOrder, weights: &GovernedWeights) -> Vec<u32> {
        let mut ids = Vec::new();
        for group in order.groups() {
            assert!(group.blocks.len() <= GROUP);
            for block in order.blocks_of(group) {
                let bound = block.bound(weights);
                assert!(block.len() <= BLOCK && bound <= group.bound(weights));
                for id in order.ids_of(block) {
                    assert!(order.terms(*id, weights) <= bound);
                    ids.push(*id);
                }
            }
        }
        ids.sort_unstable();
        ids
    }

    #[test]
    fn a_class_of_many_blocks_is_cut_into_groups() {
        let random = |id| crate::quantize::mix(id);
        let items = (0..40_000u32).map(|id| {
            let (time, utility) = (random(u64::from(id)) % 10_000, random(u64::from(id) + 1_000_000) % 100);
            let class = u16::from(id % 5 == 0);
            (id, Scalars { class, time: Some(time as i64), utility: utility as f32 / 100.0 })
        });
        let order = ScalarOrder::new(items).unwrap();
        assert_eq!((order.groups().len(), order.blocks.len()), (5, 125 + 32));
        for (recency, utility) in [(1.0, 0.5), (-1.0, -0.5)] {
            let weights = GovernedWeights {
                similarity: 1.0,
                classes: vec![0.0, -0.5],
                recency,
                half_life: 3_000.0,
                now: Some(9_000),
                utility,
            };
            assert!(ids_within_bounds(&order, &weights).into_iter().eq(0..40_000));
        }
    }

    #[test]
    fn what_is_not_finite_or_out_of_order_is_refused() {
        let item = Scalars { class: 0, time: None, utility: 0.0 };
        assert!(ScalarOrder::new([(1, item), (1, item)]).is_err());
        assert!(ScalarOrder::new([(1, Scalars { utility: f32::NAN, ..item })]).is_err());
        let fine = GovernedWeights {
            similarity: 1.0,
            classes: vec![0.0],
            recency: 1.0,
            half_life: 1.0,
            now: None,
            utility: 0.0,
        };
        assert!(fine.check().is_ok());
        assert!(GovernedWeights { half_life: 0.0, ..fine.clone() }.check().is_err());
        assert!(GovernedWeights { classes: vec![f32::INFINITY], ..fine.clone() }.check().is_err());
        assert!(GovernedWeights { similarity: f32::NAN, ..fine }.check().is_err());
    }
}
