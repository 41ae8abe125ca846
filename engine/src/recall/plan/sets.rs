//! The sets that every stage of a recall starts from.

use super::{Exclusion, StageLayer, exclusions};
use crate::Result;
use crate::model::item::Layer;
use crate::read::filter::Filter;
use crate::state::attributes::{Column, ValueTest};
use holotype_index::bitmap::Bits;
use holotype_query::plan::{Clauses, Scope};
use holotype_query::{FlawKind, Noun};
use std::sync::Arc;

/// The items in scope that the reader may see.
pub(super) struct Sets {
    pub(super) visible: Arc<Bits>,
    /// Items in scope that are dated after the last commit, where the statement gives no position.
    pub(super) later: u64,
    /// Everything active and not redacted is visible, so the cached sets serve.
    base_sets: bool,
}

impl Sets {
    pub(super) fn new(filter: &Filter<'_>, scope: Option<&Scope>, clauses: &Clauses) -> Result<Sets> {
        let state = &filter.snapshot.state;
        let bound = state.bound();
        let inactive = exclusions::includes(clauses, FlawKind::Inactive);
        if matches!(scope, None | Some(Scope::All)) && !inactive && filter.ahead()?.is_empty() {
            return Ok(Sets { visible: state.attributes.base_sets(bound).visible()?, later: 0, base_sets: true });
        }
        let within = |column, low, high| state.attributes.select_values(column, bound, ValueTest::Range(low, high));
        let mut visible = filter.scope(scope)?;
        if matches!(scope, Some(Scope::Episodes(_) | Scope::Pages(_))) {
            // A theme of no episode (a concept, an intent) routes into every one.
            let somewhere = within(Column::Episode, 0, i64::MAX)?;
            visible = visible.or(&state.attributes.layer(Layer::Theme, bound)?.and_not(&somewhere));
        }
        if inactive {
            visible = visible.and_not(&within(Column::Redacted, 1, 1)?);
        } else {
            visible = visible.and(&*state.attributes.base_sets(bound).visible()?);
        }
        let ahead = filter.ahead()?;
        let later = if clauses.reader.is_none() { visible.and(ahead).count() } else { 0 };
        Ok(Sets { visible: Arc::new(visible.and_not(ahead)), later, base_sets: false })
    }

    /// The visible items of a noun.
    pub(super) fn of(&self, filter: &Filter<'_>, noun: Noun) -> Result<Arc<Bits>> {
        let state = &filter.snapshot.state;
        let base_sets = state.attributes.base_sets(state.bound());
        match (noun.kind(), noun.layer()) {
            (Some(kind), _) if self.base_sets => base_sets.kind(kind.into()),
            (None, Some(layer)) if self.base_sets => base_sets.layer(layer.into()),
            _ => Ok(Arc::new(filter.noun(noun)?.and(&self.visible))),
        }
    }

    /// The items that no exclusion keeps out.
    pub(super) fn admitted(
        &self,
        filter: &Filter<'_>,
        relaxable: &Arc<Bits>,
        layers: &[StageLayer],
        exclusions: &[Exclusion],
    ) -> Result<Arc<Bits>> {
        let state = &filter.snapshot.state;
        let base_sets = state.attributes.base_sets(state.bound());
        if self.base_sets
            && let ([Exclusion { items, .. }], [StageLayer { layer, .. }]) = (exclusions, layers)
            && Arc::ptr_eq(items, &base_sets.failed()?)
            && Arc::ptr_eq(relaxable, &base_sets.layer(*layer)?)
        {
            return base_sets.eligible(*layer);
        }
        let mut admitted = Arc::clone(relaxable);
        for exclusion in exclusions {
            admitted = Arc::new(admitted.and_not(&exclusion.items));
        }
        Ok(admitted)
    }
}
