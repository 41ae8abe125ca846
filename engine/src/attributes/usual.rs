//! The sets that nearly every recall begins with, made at the first one after a change and shared by those that follow.
//! Where few items changed since they were made last, they are those sets with the changed items asked again, so that a
//! recall after a small commit does not pay for all that changed since the last checkpoint.
//!
//! | set | items |
//! |---|---|
//! | visible | active and not redacted |
//! | failed | of status `failed` |
//! | layer | visible, of a layer |
//! | sound | visible, of a layer, not failed |
//!
//! Invariants:
//! 1. A set is that of the store it hangs on, below the bound it was asked with; another bound is answered anew.
//! 2. An item whose attributes are others than in the sets before is among those noted since.

use super::{AttributeStore, Column, Wanted};
use crate::Result;
use crate::item::{Attributes, ItemId, Layer, Status};
use holotype_index::bitmap::Bits;
use std::sync::{Arc, OnceLock};

/// The sets of one store below one bound, each made when it is first asked for.
#[derive(Default)]
pub(crate) struct Usual {
    bound: u32,
    visible: OnceLock<Arc<Bits>>,
    failed: OnceLock<Arc<Bits>>,
    layers: [OnceLock<Arc<Bits>>; 3],
    sound: [OnceLock<Arc<Bits>>; 3],
}

/// More changed items than this, and sets are made anew.
const MOST_CHANGED: usize = 256;

/// The sets that were made last, and the items that changed since.
#[derive(Clone)]
pub(super) struct Before {
    sets: Arc<Usual>,
    changed: Vec<u32>,
}

impl Before {
    /// What a change of a store finds: the store's own sets, or those before if it has none.
    pub(super) fn of(own: Option<&Arc<Usual>>, before: Option<&Before>) -> Option<Before> {
        match own {
            Some(sets) => Some(Before { sets: Arc::clone(sets), changed: Vec::new() }),
            None => before.cloned(),
        }
    }

    /// The same with one more item changed; nothing when they are too many.
    pub(super) fn with(mut self, item: u32) -> Option<Before> {
        if self.changed.last() != Some(&item) {
            self.changed.push(item);
        }
        (self.changed.len() <= MOST_CHANGED).then_some(self)
    }
}

impl AttributeStore {
    /// The usual sets of the items below `bound`.
    pub(crate) fn usual(&self, bound: u32) -> UsualSets<'_> {
        let kept = self.derived.usual.get_or_init(|| Arc::new(Usual { bound, ..Usual::default() }));
        let sets = if kept.bound == bound { Arc::clone(kept) } else { Arc::new(Usual { bound, ..Usual::default() }) };
        UsualSets { store: self, sets }
    }
}

/// The usual sets of a store.
pub(crate) struct UsualSets<'s> {
    store: &'s AttributeStore,
    sets: Arc<Usual>,
}

impl UsualSets<'_> {
    /// What is active and not redacted.
    pub(crate) fn visible(&self) -> Result<Arc<Bits>> {
        let again = |usual: &Usual| usual.visible.get().cloned();
        self.kept(&self.sets.visible, again, is_visible, || {
            let active = self.store.select_wanted(Column::Active, self.sets.bound, Wanted::Within(1, 1))?;
            let redacted = self.store.select_wanted(Column::Redacted, self.sets.bound, Wanted::Within(1, 1))?;
            Ok(if redacted.is_empty() { active } else { active.and_not(&redacted) })
        })
    }

    /// What failed.
    pub(crate) fn failed(&self) -> Result<Arc<Bits>> {
        let failed = i64::from(Status::Failed.to_byte());
        let again = |usual: &Usual| usual.failed.get().cloned();
        self.kept(&self.sets.failed, again, has_failed, || {
            self.store.select_wanted(Column::Status, self.sets.bound, Wanted::Within(failed, failed))
        })
    }

    /// What is visible of a layer.
    pub(crate) fn layer(&self, layer: Layer) -> Result<Arc<Bits>> {
        let again = |usual: &Usual| usual.layers[layer as usize].get().cloned();
        let of_layer = |item: &Attributes| is_visible(item) && item.layer() == layer;
        self.kept(&self.sets.layers[layer as usize], again, of_layer, || {
            Ok(self.store.layer(layer, self.sets.bound)?.and(&*self.visible()?))
        })
    }

    /// What is visible of a layer and did not fail.
    pub(crate) fn sound(&self, layer: Layer) -> Result<Arc<Bits>> {
        let again = |usual: &Usual| usual.sound[layer as usize].get().cloned();
        let is_sound = |item: &Attributes| is_visible(item) && item.layer() == layer && !has_failed(item);
        self.kept(&self.sets.sound[layer as usize], again, is_sound, || {
            Ok(self.layer(layer)?.and_not(&*self.failed()?))
        })
    }

    /// The set kept at `place`: the one before with the changed items asked `test`, or what `make` makes.
    fn kept(
        &self,
        place: &OnceLock<Arc<Bits>>,
        again: impl Fn(&Usual) -> Option<Arc<Bits>>,
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

fn has_failed(item: &Attributes) -> bool {
    item.status == Some(Status::Failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Kind;
    use proptest::prelude::*;

    /// A change of a store: an item's attributes, the sets asked for, a copy that is gone on with, a transaction taken back,
    /// a checkpoint's freezing or its failing.
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
        attributes
    }

    /// The sets as they are kept, and as they are without those before.
    fn sets(store: &AttributeStore, bound: u32) -> Vec<Arc<Bits>> {
        let usual = store.usual(bound);
        let mut all = vec![usual.visible().unwrap(), usual.failed().unwrap()];
        for layer in Layer::ALL {
            all.extend([usual.layer(*layer).unwrap(), usual.sound(*layer).unwrap()]);
        }
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
                    Step::Freeze if store.frozen.is_empty() => store.freeze(),
                    Step::Freeze => {}
                    Step::Unfreeze => store.unfreeze(),
                }
            }
        }
    }
}
