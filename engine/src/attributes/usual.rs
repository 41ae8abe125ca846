//! The sets that nearly every recall begins with, made at the first one after a change and shared by those that follow.
//!
//! | set | items |
//! |---|---|
//! | visible | active and not redacted |
//! | failed | of status `failed` |
//! | layer | visible, of a layer |
//! | sound | visible, of a layer, not failed |
//!
//! Invariant: a set is that of the store it hangs on, below the bound it was asked with; another bound is answered anew.

use super::{AttributeStore, Column, Wanted};
use crate::Result;
use crate::item::{Layer, Status};
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
        kept(&self.sets.visible, || {
            let active = self.store.select_wanted(Column::Active, self.sets.bound, Wanted::Within(1, 1))?;
            let redacted = self.store.select_wanted(Column::Redacted, self.sets.bound, Wanted::Within(1, 1))?;
            Ok(if redacted.is_empty() { active } else { active.and_not(&redacted) })
        })
    }

    /// What failed.
    pub(crate) fn failed(&self) -> Result<Arc<Bits>> {
        let failed = i64::from(Status::Failed.to_byte());
        kept(&self.sets.failed, || {
            self.store.select_wanted(Column::Status, self.sets.bound, Wanted::Within(failed, failed))
        })
    }

    /// What is visible of a layer.
    pub(crate) fn layer(&self, layer: Layer) -> Result<Arc<Bits>> {
        kept(&self.sets.layers[layer as usize], || Ok(self.store.layer(layer, self.sets.bound)?.and(&*self.visible()?)))
    }

    /// What is visible of a layer and did not fail.
    pub(crate) fn sound(&self, layer: Layer) -> Result<Arc<Bits>> {
        let (of_layer, failed) = (self.layer(layer)?, self.failed()?);
        kept(&self.sets.sound[layer as usize], || Ok(of_layer.and_not(&failed)))
    }
}

fn kept(place: &OnceLock<Arc<Bits>>, make: impl FnOnce() -> Result<Bits>) -> Result<Arc<Bits>> {
    if let Some(set) = place.get() {
        return Ok(Arc::clone(set));
    }
    let made = Arc::new(make()?);
    Ok(Arc::clone(place.get_or_init(|| made)))
}
