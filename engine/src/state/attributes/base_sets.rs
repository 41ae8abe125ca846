//! Base sets: the item sets that nearly every recall starts from.
//!
//! The first recall after a change computes them and later ones share them. If at most [`MAX_CHANGED`] items changed
//! since, the previous sets are updated for those items only, so that a recall after a small commit does not pay for
//! all changes since the last checkpoint.
//!
//! | set | items |
//! |---|---|
//! | visible | active and not redacted |
//! | failed | with status `failed` |
//! | layer | visible, in a layer |
//! | kind | visible, of a kind |
//! | eligible | visible, in a layer, not failed |
//! | lost support | recalls whose sources all went bad; those that never had one are not among them |
//!
//! Invariants:
//! 1. A cached set is valid for one store and one bound; another bound gets sets of its own.
//! 2. Every item whose attributes differ from those in the previous sets is among the recorded changes.

use super::{AttributeStore, Column, ValueTest};
use crate::Result;
use crate::model::item::{Attributes, ItemId, Kind, Layer, Status, Support};
use holotype_index::bitmap::Bits;
use std::sync::{Arc, OnceLock};

/// The base sets of one store below one bound, each computed on first use.
#[derive(Default)]
pub(crate) struct CachedSets {
    bound: u32,
    visible: OnceLock<Arc<Bits>>,
    failed: OnceLock<Arc<Bits>>,
    layers: [OnceLock<Arc<Bits>>; 3],
    kinds: [OnceLock<Arc<Bits>>; Kind::ALL.len()],
    eligible: [OnceLock<Arc<Bits>>; 3],
    lost_support: OnceLock<Arc<Bits>>,
}

/// With more changed items than this, sets are computed from the columns again.
const MAX_CHANGED: usize = 256;

/// The sets computed last, and the items changed since.
#[derive(Clone)]
pub(super) struct PreviousSets {
    sets: Arc<CachedSets>,
    changed: Vec<u32>,
}

impl PreviousSets {
    /// The sets to continue from after a change: the store's own, else the previous ones.
    pub(super) fn of(own: Option<&Arc<CachedSets>>, before: Option<&PreviousSets>) -> Option<PreviousSets> {
        match own {
            Some(sets) => Some(PreviousSets { sets: Arc::clone(sets), changed: Vec::new() }),
            None => before.cloned(),
        }
    }

    /// Adds a changed item. Returns `None` if there are too many.
    pub(super) fn with(mut self, item: u32) -> Option<PreviousSets> {
        if self.changed.last() != Some(&item) {
            self.changed.push(item);
        }
        (self.changed.len() <= MAX_CHANGED).then_some(self)
    }
}

impl AttributeStore {
    /// The base sets of the items below `bound`.
    pub(crate) fn base_sets(&self, bound: u32) -> BaseSets<'_> {
        let cached = self.derived.base_sets.get_or_init(|| Arc::new(CachedSets { bound, ..CachedSets::default() }));
        let sets = if cached.bound == bound {
            Arc::clone(cached)
        } else {
            Arc::new(CachedSets { bound, ..CachedSets::default() })
        };
        BaseSets { store: self, sets }
    }
}

/// The base sets of a store.
pub(crate) struct BaseSets<'s> {
    store: &'s AttributeStore,
    sets: Arc<CachedSets>,
}

impl BaseSets<'_> {
    /// Active items that are not redacted.
    pub(crate) fn visible(&self) -> Result<Arc<Bits>> {
        let again = |base_sets: &CachedSets| base_sets.visible.get().cloned();
        self.cached(&self.sets.visible, again, is_visible, || {
            let active = self.store.select_values(Column::Active, self.sets.bound, ValueTest::Range(1, 1))?;
            let redacted = self.store.select_values(Column::Redacted, self.sets.bound, ValueTest::Range(1, 1))?;
            Ok(if redacted.is_empty() { active } else { active.and_not(&redacted) })
        })
    }

    /// Items with status `failed`.
    pub(crate) fn failed(&self) -> Result<Arc<Bits>> {
        let failed = i64::from(Status::Failed.to_byte());
        let again = |base_sets: &CachedSets| base_sets.failed.get().cloned();
        self.cached(&self.sets.failed, again, has_failed, || {
            self.store.select_values(Column::Status, self.sets.bound, ValueTest::Range(failed, failed))
        })
    }

    /// The recalls whose sources all went bad. One that never had a source is not among them.
    pub(crate) fn lost_support(&self) -> Result<Arc<Bits>> {
        let again = |base_sets: &CachedSets| base_sets.lost_support.get().cloned();
        self.cached(&self.sets.lost_support, again, has_lost_support, || {
            let (store, bound) = (self.store, self.sets.bound);
            let unsupported = i64::from(Support::Unsupported.to_byte());
            let unsupported =
                store.select_values(Column::Support, bound, ValueTest::Range(unsupported, unsupported))?;
            let ungrounded = store.select_values(Column::Ungrounded, bound, ValueTest::Range(1, 1))?;
            Ok(unsupported.and(&store.layer(Layer::Recall, bound)?).and_not(&ungrounded))
        })
    }

    /// Visible items of a layer.
    pub(crate) fn layer(&self, layer: Layer) -> Result<Arc<Bits>> {
        let again = |base_sets: &CachedSets| base_sets.layers[layer as usize].get().cloned();
        let of_layer = |item: &Attributes| is_visible(item) && item.layer() == layer;
        self.cached(&self.sets.layers[layer as usize], again, of_layer, || {
            Ok(self.store.layer(layer, self.sets.bound)?.and(&*self.visible()?))
        })
    }

    /// Visible items of a kind.
    pub(crate) fn kind(&self, kind: Kind) -> Result<Arc<Bits>> {
        let byte = i64::from(kind.to_byte());
        let place = Kind::ALL.iter().take_while(|other| **other != kind).count();
        let again = |base_sets: &CachedSets| base_sets.kinds[place].get().cloned();
        let of_kind = |item: &Attributes| is_visible(item) && item.kind == kind;
        self.cached(&self.sets.kinds[place], again, of_kind, || {
            let of_kind = self.store.select_values(Column::Kind, self.sets.bound, ValueTest::Range(byte, byte))?;
            Ok(of_kind.and(&*self.visible()?))
        })
    }

    /// Visible items of a layer that did not fail.
    pub(crate) fn eligible(&self, layer: Layer) -> Result<Arc<Bits>> {
        let again = |base_sets: &CachedSets| base_sets.eligible[layer as usize].get().cloned();
        let is_eligible = |item: &Attributes| is_visible(item) && item.layer() == layer && !has_failed(item);
        self.cached(&self.sets.eligible[layer as usize], again, is_eligible, || {
            Ok(self.layer(layer)?.and_not(&*self.failed()?))
        })
    }

    /// The set cached in `place`: the previous set updated by testing the changed items, or the result of `make`.
    fn cached(
        &self,
        place: &OnceLock<Arc<Bits>>,
        again: impl Fn(&CachedSets) -> Option<Arc<Bits>>,
        test: impl Fn(&Attributes) -> bool,
        make: impl FnOnce() -> Result<Bits>,
    ) -> Result<Arc<Bits>> {
        if let Some(set) = place.get() {
            return Ok(Arc::clone(set));
        }
        let bound = self.sets.bound;
        let before = self.store.derived.before.as_ref().filter(|before| before.sets.bound <= bound);
        let made = match before.and_then(|before| Some((again(&before.sets)?, before))) {
            Some((set, before)) => {
                let mut blocks = set.blocks().to_vec();
                blocks.resize((bound as usize).div_ceil(64), 0);
                for id in before.changed.iter().copied().filter(|id| *id < bound) {
                    let bit = 1u64 << (id % 64);
                    let block = &mut blocks[id as usize / 64];
                    *block = if test(&self.store.get(ItemId(id))?) { *block | bit } else { *block & !bit };
                }
                Arc::new(Bits::from_blocks(blocks))
            }
            None => Arc::new(make()?),
        };
        Ok(Arc::clone(place.get_or_init(|| made)))
    }
}

fn is_visible(item: &Attributes) -> bool {
    item.active && !item.redacted
}

fn has_lost_support(item: &Attributes) -> bool {
    item.layer() == Layer::Recall && item.support == Support::Unsupported && !item.ungrounded
}

fn has_failed(item: &Attributes) -> bool {
    item.status == Some(Status::Failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A random change of a store.
    #[derive(Debug, Clone)]
    enum Step {
        Set(u32, u8),
        Add(u8),
        Ask,
        Copy,
        TakeBack(Vec<(u32, u8)>),
        Freeze,
        Unfreeze,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (any::<u32>(), any::<u8>()).prop_map(|(id, look)| Step::Set(id, look)),
            6 => any::<u8>().prop_map(Step::Add),
            4 => Just(Step::Ask),
            2 => Just(Step::Copy),
            2 => proptest::collection::vec((any::<u32>(), any::<u8>()), 1..4).prop_map(Step::TakeBack),
            1 => Just(Step::Freeze),
            1 => Just(Step::Unfreeze),
        ]
    }

    fn looking(look: u8) -> Attributes {
        let kind = [Kind::Turn, Kind::Fact, Kind::Concept][usize::from(look % 3)];
        let mut attributes = Attributes::new(kind);
        attributes.active = look & 4 == 0;
        attributes.redacted = look & 8 != 0;
        attributes.status = (look & 16 != 0).then_some(Status::Failed);
        attributes.support = if look & 32 != 0 { Support::Unsupported } else { Support::Supported };
        attributes.ungrounded = look & 64 != 0;
        attributes
    }

    /// All base sets of a store.
    fn sets(store: &AttributeStore, bound: u32) -> Vec<Arc<Bits>> {
        let base_sets = store.base_sets(bound);
        let mut all =
            vec![base_sets.visible().unwrap(), base_sets.failed().unwrap(), base_sets.lost_support().unwrap()];
        for layer in Layer::ALL {
            all.extend([base_sets.layer(*layer).unwrap(), base_sets.eligible(*layer).unwrap()]);
        }
        all.extend(Kind::ALL.iter().map(|kind| base_sets.kind(*kind).unwrap()));
        all
    }

    proptest! {
        #[test]
        fn sets_that_go_on_from_those_before_are_those_made_anew(steps in proptest::collection::vec(step(), 1..60)) {
            let (mut store, mut bound) = (AttributeStore::default(), 0u32);
            for step in steps {
                match step {
                    Step::Set(id, look) if bound > 0 => store.set(ItemId(id % bound), looking(look)),
                    Step::Set(..) => {}
                    Step::Add(look) => {
                        store.set(ItemId(bound), looking(look));
                        bound += 1;
                    }
                    Step::Ask => {
                        let copy = AttributeStore { derived: Arc::default(), ..store.clone() };
                        prop_assert_eq!(sets(&store, bound), sets(&copy, bound));
                    }
                    Step::Copy => store = store.clone(),
                    Step::TakeBack(changes) => {
                        let before = store.savepoint();
                        for (id, look) in changes {
                            store.set(ItemId(id % (bound + 1)), looking(look));
                        }
                        store.roll_back(before);
                    }
                    Step::Freeze if store.changes.frozen().is_empty() => store.freeze(),
                    Step::Freeze => {}
                    Step::Unfreeze => store.unfreeze(),
                }
            }
        }
    }
}
