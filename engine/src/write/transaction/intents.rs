//! The intent of a subgoal (PlugMem C.2): intents of one meaning are one item.
//!
//! Cost: one search by vector among the intents committed before, and one comparison with each intent that the
//! transaction wrote itself.

use super::Transaction;
use crate::Result;
use crate::memory::structure::{Roles, cosine};
use crate::model::item::{ItemId, Kind, Layer};
use crate::model::space::Space;
use crate::read::nearest;
use crate::read::snapshot::Snapshot;
use crate::state::attributes::{Column, ValueTest};
use crate::write::draft::NewRecall;
use holotype_index::bitmap::Bits;
use std::sync::Arc;

/// Intents near a new one that are looked at.
const NEAR_INTENTS: usize = 16;
/// A cosine with a stored vector differs by less than this from that with the vector before it was encoded.
const ROUNDED: f32 = 0.02;

/// The intents that a transaction knows of.
#[derive(Default)]
pub(super) struct KnownIntents {
    /// Those that were committed before it, once it asked for them.
    committed: Option<Arc<Bits>>,
    /// Those that it wrote, with their vectors.
    own: Vec<(ItemId, Vec<f32>)>,
}

impl Transaction<'_> {
    /// The intent of a subgoal: the nearest known one above [`Roles::same_intent`], merged with it, or a new one.
    pub(super) fn intent(&mut self, subgoal: &str, vector: Option<Vec<f32>>, roles: &Roles<'_>) -> Result<ItemId> {
        if let Some(vector) = &vector
            && let Some(known) = self.nearest_intent(vector, roles.same_intent)?
        {
            let text = self.content(known)?.text().to_owned();
            let merged = roles.intents.merge(&text, subgoal)?;
            return if merged == text { Ok(known) } else { self.merge_intent(known, &merged, roles) };
        }
        let mut intent = NewRecall::new(Kind::Intent, subgoal).ungrounded();
        intent.vector.clone_from(&vector);
        let intent = self.remember(intent)?;
        self.intents.own.extend(vector.map(|vector| (intent, vector)));
        Ok(intent)
    }

    /// The active intent nearest to a vector, if its cosine is above `least`.
    fn nearest_intent(&mut self, vector: &[f32], least: f32) -> Result<Option<ItemId>> {
        let mut known = self.near_committed(vector)?;
        let own = self.intents.own.iter().filter(|(_, own)| cosine(own, vector) > least - ROUNDED);
        known.extend(own.map(|(intent, _)| *intent));
        let mut near: Vec<(f32, ItemId)> = Vec::new();
        for known in known {
            // Numbers of items that were not written in the end may be those of others now.
            if self.is_intent(known)? {
                near.push((cosine(&self.vector_of(known)?.unwrap_or_default(), vector), known));
            }
        }
        let best = near.into_iter().max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        Ok(best.filter(|(similarity, _)| *similarity > least).map(|(_, known)| known))
    }

    /// The committed intents nearest to a vector.
    fn near_committed(&mut self, vector: &[f32]) -> Result<Vec<ItemId>> {
        self.encode_vector(Some(vector))?;
        let state = Arc::clone(&self.writer.state);
        let intents = match &self.intents.committed {
            Some(known) => Arc::clone(known),
            None => {
                let kind = i64::from(Kind::Intent.to_byte());
                let of_kind =
                    state.attributes.select_values(Column::Kind, state.bound(), ValueTest::Range(kind, kind))?;
                let eligible = state.attributes.base_sets(state.bound()).eligible(Layer::Theme)?;
                Arc::clone(self.intents.committed.insert(Arc::new(eligible.and(&of_kind))))
            }
        };
        if intents.is_empty() {
            return Ok(Vec::new());
        }
        let snapshot = Snapshot::new(Arc::clone(self.core), state, self.reader());
        let found = nearest::search(&snapshot, Layer::Theme, vector, NEAR_INTENTS, &intents)?.unwrap_or_default();
        Ok(found.hits.into_iter().map(|hit| ItemId(hit.id)).collect())
    }

    fn is_intent(&self, id: ItemId) -> Result<bool> {
        if id.0 >= self.state.bound() {
            return Ok(false);
        }
        let attributes = self.state.attributes(id)?;
        Ok(attributes.active && !attributes.redacted && attributes.kind == Kind::Intent)
    }

    fn vector_of(&self, id: ItemId) -> Result<Option<Vec<f32>>> {
        let Some(space) = &self.state.meta.space else { return Ok(None) };
        let space = Space::try_from(space.as_ref())?;
        self.stored_vector(id)?.map(|bytes| space.decode(&bytes)).transpose()
    }

    /// Replaces an intent by one with another text and a vector of its own; what solved the old one solves the new one.
    fn merge_intent(&mut self, old: ItemId, text: &str, roles: &Roles<'_>) -> Result<ItemId> {
        let key = self.names()?.key_of(old)?;
        let mut merged = NewRecall::new(Kind::Intent, text).ungrounded();
        merged.vector = self.embedded(text, roles)?;
        let vector = merged.vector.clone();
        let new = self.update(&key, merged)?;
        self.unite_links(old, new)?;
        self.intents.own.extend(vector.map(|vector| (new, vector)));
        Ok(new)
    }
}
