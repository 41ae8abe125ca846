//! Base sets: the item sets that nearly every recall starts from.
//!
//! The first recall after a change computes them and later ones share them. It goes on from the sets of an earlier
//! version of the store, updated for the items that changed since, so that a recall while others write does not pay for
//! all changes since the last checkpoint. Sets of a version may be made when later versions exist already, as a
//! reader's snapshot is older than the state that is written, so a version refers to the place of the sets of those
//! before it, full or not.
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
//! 2. Every item whose facts differ from those in the sets of an earlier version is among the changes recorded since,
//!    or not below the bound of those sets.
//! 3. A place belongs to one version: a store that shares its place does not change without taking a new one.
//!
//! Cost: a bit vector for each set, and the facts of the changed items, which all sets share.

use super::{AttributeStore, Column, ValueTest};
use crate::Result;
use crate::model::item::{Attributes, ItemId, Kind, Layer, Status, Support};
use holotype_index::bitmap::Bits;
use std::ops::Range;
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
const MAX_CHANGED: usize = 4096;

/// So many of the last versions may get sets that later ones go on from: a question asks of one of the newest.
const RECENT: usize = 16;

/// The facts of an item that decide in which sets it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) kind: Kind,
    pub(super) has_failed: bool,
    pub(super) is_visible: bool,
    pub(super) is_unsupported: bool,
    pub(super) is_ungrounded: bool,
}

impl From<&Attributes> for Facts {
    fn from(item: &Attributes) -> Self {
        Facts {
            kind: item.kind,
            has_failed: item.status == Some(Status::Failed),
            is_visible: item.active && !item.redacted,
            is_unsupported: item.support == Support::Unsupported,
            is_ungrounded: item.ungrounded,
        }
    }
}

/// The place of the sets of one version of a store.
pub(super) type Place = Arc<OnceLock<Arc<CachedSets>>>;

/// The places of the sets of earlier versions, and the items changed since.
#[derive(Clone, Default)]
pub(super) struct EarlierSets {
    /// Oldest first, each with the index in `changed` of the first change after it.
    versions: Vec<(Place, usize)>,
    /// Runs of changed items, in the order of the changes.
    changed: Vec<Range<u32>>,
    /// The items of these runs.
    count: usize,
}

/// A set of an earlier version.
struct EarlierSet {
    set: Arc<Bits>,
    bound: u32,
    /// The index of the first change after it.
    from: usize,
}

impl EarlierSets {
    /// Those of the version that follows the one whose sets are at `place`.
    pub(super) fn after(&self, place: &Place) -> EarlierSets {
        let mut next = self.clone();
        next.versions.push((Arc::clone(place), next.changed.len()));
        // Nobody asks of versions much before, but the last one that somebody asked of stays.
        let old = next.versions.len().saturating_sub(RECENT);
        let asked = next.versions[..old].iter().rposition(|(place, _)| place.get().is_some());
        let kept = asked.map(|asked| next.versions[asked].clone());
        next.versions.splice(..old, kept);
        next.forget_unneeded();
        next
    }

    /// Adds a changed item.
    pub(super) fn add(&mut self, item: u32) {
        let (Some((_, from)), Some(after)) = (self.versions.last(), item.checked_add(1)) else { return };
        match self.changed[*from..].last_mut() {
            Some(run) if run.contains(&item) => return,
            Some(run) if run.end == item => run.end = after,
            _ => self.changed.push(item..after),
        }
        self.count += 1;
        if self.count > MAX_CHANGED {
            self.forget_unneeded();
        }
    }

    /// Forgets versions with too many changes since, and changes before all versions.
    fn forget_unneeded(&mut self) {
        let runs_before = |versions: &[(Place, usize)], all: usize| versions.first().map_or(all, |(_, from)| *from);
        let of = |runs: &[Range<u32>]| runs.iter().map(ExactSizeIterator::len).sum::<usize>();
        let (mut first, mut start) = (0, runs_before(&self.versions, self.changed.len()));
        self.count -= of(&self.changed[..start]);
        while self.count > MAX_CHANGED {
            first += 1;
            let next = runs_before(&self.versions[first..], self.changed.len());
            self.count -= of(&self.changed[start..next]);
            start = next;
        }
        self.versions.drain(..first);
        self.changed.drain(..start);
        self.versions.iter_mut().for_each(|(_, from)| *from -= start);
    }

    /// The set of the newest version that has it, of those below a bound.
    fn newest(&self, bound: u32, set: impl Fn(&CachedSets) -> Option<Arc<Bits>>) -> Option<EarlierSet> {
        self.versions.iter().rev().find_map(|(place, from)| {
            let sets = place.get().filter(|sets| sets.bound <= bound)?;
            Some(EarlierSet { set: set(sets)?, bound: sets.bound, from: *from })
        })
    }
}

/// The facts of the items that changed since an earlier version.
pub(super) struct ChangedFacts {
    /// The index of the first change.
    from: usize,
    /// All items between these are included, changed or not.
    range: Range<u32>,
    facts: Vec<(u32, Facts)>,
}

impl ChangedFacts {
    /// Those since the version of `earlier`, of the items below `bound`.
    fn of(store: &AttributeStore, earlier: &EarlierSet, bound: u32) -> Result<ChangedFacts> {
        let range = earlier.bound..bound;
        let mut runs = store.derived.earlier.changed.get(earlier.from..).unwrap_or_default().to_vec();
        runs.push(range.clone());
        runs.sort_unstable_by_key(|run| run.start);
        let (mut facts, mut next) = (Vec::new(), 0);
        for run in runs {
            for id in run.start.max(next)..run.end.min(bound) {
                facts.push((id, store.facts(ItemId(id))?));
            }
            next = next.max(run.end);
        }
        Ok(ChangedFacts { from: earlier.from, range, facts })
    }

    /// True if they include all changes since that version, below `bound`.
    fn cover(&self, earlier: &EarlierSet, bound: u32) -> bool {
        self.from <= earlier.from && self.range.start <= earlier.bound && self.range.end >= bound
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
        self.cached(
            &self.sets.visible,
            again,
            |item| item.is_visible,
            || {
                let active = self.store.select_values(Column::Active, self.sets.bound, ValueTest::Range(1, 1))?;
                let redacted = self.store.select_values(Column::Redacted, self.sets.bound, ValueTest::Range(1, 1))?;
                Ok(if redacted.is_empty() { active } else { active.and_not(&redacted) })
            },
        )
    }

    /// Items with status `failed`.
    pub(crate) fn failed(&self) -> Result<Arc<Bits>> {
        let failed = i64::from(Status::Failed.to_byte());
        let again = |base_sets: &CachedSets| base_sets.failed.get().cloned();
        self.cached(
            &self.sets.failed,
            again,
            |item| item.has_failed,
            || self.store.select_values(Column::Status, self.sets.bound, ValueTest::Range(failed, failed)),
        )
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
        let of_layer = |item: &Facts| item.is_visible && item.kind.layer() == layer;
        self.cached(&self.sets.layers[layer as usize], again, of_layer, || {
            Ok(self.store.layer(layer, self.sets.bound)?.and(&*self.visible()?))
        })
    }

    /// Visible items of a kind.
    pub(crate) fn kind(&self, kind: Kind) -> Result<Arc<Bits>> {
        let byte = i64::from(kind.to_byte());
        let place = Kind::ALL.iter().take_while(|other| **other != kind).count();
        let again = |base_sets: &CachedSets| base_sets.kinds[place].get().cloned();
        let of_kind = |item: &Facts| item.is_visible && item.kind == kind;
        self.cached(&self.sets.kinds[place], again, of_kind, || {
            let of_kind = self.store.select_values(Column::Kind, self.sets.bound, ValueTest::Range(byte, byte))?;
            Ok(of_kind.and(&*self.visible()?))
        })
    }

    /// Visible items of a layer that did not fail.
    pub(crate) fn eligible(&self, layer: Layer) -> Result<Arc<Bits>> {
        let again = |base_sets: &CachedSets| base_sets.eligible[layer as usize].get().cloned();
        let is_eligible = |item: &Facts| item.is_visible && item.kind.layer() == layer && !item.has_failed;
        self.cached(&self.sets.eligible[layer as usize], again, is_eligible, || {
            Ok(self.layer(layer)?.and_not(&*self.failed()?))
        })
    }

    /// The set cached in `place`: that of an earlier version with the changed items tested again, or the result of
    /// `make`.
    fn cached(
        &self,
        place: &OnceLock<Arc<Bits>>,
        again: impl Fn(&CachedSets) -> Option<Arc<Bits>>,
        test: impl Fn(&Facts) -> bool,
        make: impl FnOnce() -> Result<Bits>,
    ) -> Result<Arc<Bits>> {
        if let Some(set) = place.get() {
            return Ok(Arc::clone(set));
        }
        let made = match self.store.derived.earlier.newest(self.sets.bound, again) {
            Some(earlier) => self.go_on(&earlier, test)?,
            None => make()?,
        };
        Ok(Arc::clone(place.get_or_init(|| Arc::new(made))))
    }

    /// The set of an earlier version with the changed items tested again.
    fn go_on(&self, earlier: &EarlierSet, test: impl Fn(&Facts) -> bool) -> Result<Bits> {
        let (known, bound) = (&self.store.derived.facts, self.sets.bound);
        let changed = match known.get().filter(|known| known.cover(earlier, bound)) {
            Some(known) => Arc::clone(known),
            None => {
                let made = Arc::new(ChangedFacts::of(self.store, earlier, bound)?);
                // If there are others already, they stay.
                let _ = known.set(Arc::clone(&made));
                made
            }
        };
        let mut blocks = Vec::with_capacity((bound as usize).div_ceil(64));
        blocks.extend_from_slice(earlier.set.blocks());
        blocks.resize((bound as usize).div_ceil(64), 0);
        for (id, facts) in changed.facts.iter().filter(|(id, _)| *id < bound) {
            let bit = 1u64 << (id % 64);
            let block = &mut blocks[*id as usize / 64];
            *block = if test(facts) { *block | bit } else { *block & !bit };
        }
        Ok(Bits::from_blocks(blocks))
    }
}

fn has_lost_support(item: &Facts) -> bool {
    item.kind.layer() == Layer::Recall && item.is_unsupported && !item.is_ungrounded
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
        /// Keeps a version.
        Keep,
        /// Asks of a version that was kept.
        AskKept(u8),
        /// Continues with a version that was kept.
        GoBack(u8),
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
            3 => Just(Step::Keep),
            3 => any::<u8>().prop_map(Step::AskKept),
            2 => any::<u8>().prop_map(Step::GoBack),
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

    /// Asks a store, and a copy of it that knows no earlier sets.
    fn asked(store: &AttributeStore, bound: u32) -> [Vec<Arc<Bits>>; 2] {
        let copy = AttributeStore { derived: Arc::default(), ..store.clone() };
        [sets(store, bound), sets(&copy, bound)]
    }

    #[test]
    fn sets_go_on_from_a_version_that_is_asked_when_later_ones_exist() {
        let mut store = AttributeStore::default();
        let mut versions = Vec::new();
        for version in 0..3 * RECENT as u32 {
            for id in version * 20..version * 20 + 20 {
                store.set(ItemId(id), looking((id * 7) as u8));
            }
            versions.push((store.clone(), (version + 1) * 20));
            // A reader asks of a version after the next ones were written, now and then.
            if version % 5 == 4 {
                let (asked_of, bound) = &versions[version as usize - 3];
                sets(asked_of, *bound);
                let (newest, bound) = &versions[version as usize];
                let earlier = newest.derived.earlier.newest(*bound, |sets| sets.visible.get().cloned());
                assert_eq!(earlier.map(|earlier| earlier.bound), Some((version - 2) * 20));
                let [found, expected] = asked(newest, *bound);
                assert_eq!(found, expected);
            }
        }
        // More changes than are recorded.
        for id in 0..2 * MAX_CHANGED as u32 {
            store.set(ItemId(id), looking((id * 5) as u8));
        }
        assert!(store.derived.earlier.versions.is_empty() && store.derived.earlier.changed.is_empty());
        let [found, expected] = asked(&store, 2 * MAX_CHANGED as u32);
        assert_eq!(found, expected);
    }

    proptest! {
        #[test]
        fn sets_that_go_on_from_those_before_are_those_made_anew(steps in proptest::collection::vec(step(), 1..60)) {
            let (mut store, mut bound) = (AttributeStore::default(), 0u32);
            let mut kept: Vec<(AttributeStore, u32)> = Vec::new();
            for step in steps {
                match step {
                    Step::Set(id, look) if bound > 0 => store.set(ItemId(id % bound), looking(look)),
                    Step::Set(..) => {}
                    Step::Add(look) => {
                        store.set(ItemId(bound), looking(look));
                        bound += 1;
                    }
                    Step::Ask => {
                        let [found, expected] = asked(&store, bound);
                        prop_assert_eq!(found, expected);
                    }
                    Step::Keep => kept.push((store.clone(), bound)),
                    Step::AskKept(at) if !kept.is_empty() => {
                        let (store, bound) = &kept[usize::from(at) % kept.len()];
                        let [found, expected] = asked(store, *bound);
                        prop_assert_eq!(found, expected);
                    }
                    Step::GoBack(at) if !kept.is_empty() => {
                        (store, bound) = kept.swap_remove(usize::from(at) % kept.len());
                    }
                    Step::AskKept(_) | Step::GoBack(_) => {}
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
