//! Claims stated again (profile `default`): of traces that state one value, the newest is the answer. It inherits the
//! similarity and the words of the older ones, which are folded into it unless source or status ranks them higher.

use super::Context;
use super::candidates::{Candidates, MatchPath};
use super::rank::Scored;
use crate::Result;
use crate::model::item::{ItemId, Layer};
use holotype_index::bitmap::Bits;
use std::collections::HashMap;

/// Candidates whose value a newer trace states again, with that trace.
#[derive(Default)]
pub(super) struct Restated(HashMap<ItemId, ItemId>);

impl Restated {
    /// Adds the newest traces that state what candidates state, where they may be rows.
    pub(super) fn join(&mut self, context: &Context<'_, '_>, filter: &Bits, candidates: &mut Candidates) -> Result<()> {
        let Context { snapshot, plan, .. } = *context;
        let Some(judge) = plan.judge.as_ref().filter(|_| plan.answers_by_claims) else { return Ok(()) };
        let mut newest: Vec<(u32, MatchPath)> = Vec::new();
        for id in candidates.ids() {
            let id = ItemId(id);
            if snapshot.state.layer_of(id)? != Layer::Trace {
                continue;
            }
            let by = judge.restated_by(&snapshot.state, id)?.filter(|by| filter.contains(by.0));
            // An item that lost the claims in question is no row.
            if let Some(by) = by
                && judge.loss(&snapshot.state, by)?.is_none()
            {
                self.0.insert(id, by);
                let is_new = candidates.get(by.0).is_none();
                newest.extend(candidates.get(id.0).filter(|_| is_new).map(|path| (by.0, path.clone())));
            }
        }
        candidates.add(newest.into_iter().collect());
        Ok(())
    }

    /// The newest trace that states what this one states.
    pub(super) fn by(&self, id: ItemId) -> Option<ItemId> {
        self.0.get(&id).copied()
    }

    /// Has the newest traces inherit the match scores of those they state again, and sorts.
    pub(super) fn inherit(&self, rows: &mut [Scored]) {
        if self.0.is_empty() {
            return;
        }
        let mut inherited: HashMap<ItemId, (f32, f32)> = HashMap::new();
        for row in rows.iter() {
            if let Some(by) = self.by(row.id) {
                let (similarity, words) = inherited.entry(by).or_insert((f32::MIN, f32::MIN));
                (*similarity, *words) = (similarity.max(row.parts.similarity), words.max(row.parts.words));
            }
        }
        for row in rows.iter_mut() {
            if let Some((similarity, words)) = inherited.get(&row.id) {
                row.parts.similarity = row.parts.similarity.max(*similarity);
                row.parts.words = row.parts.words.max(*words);
                row.score = row.parts.sum();
            }
        }
        rows.sort_by(Scored::best_first);
        // At one score and one time the order of numbers would put the older before the newer.
        for at in 0..rows.len() {
            let Some(by) = self.by(rows[at].id) else { continue };
            let equal = rows[at..].iter().take_while(|row| row.score == rows[at].score);
            if let Some(newer) = equal.map(|row| row.id).position(|id| id == by) {
                rows[at..=at + newer].rotate_right(1);
            }
        }
    }
}
