//! The flaws that keep items out of the rows of a recall.

use super::Exclusion;
use crate::Result;
use crate::read::filter::{Filter, window};
use holotype_index::bitmap::Bits;
use holotype_query::FlawKind;
use holotype_query::ast::{Clauses, Flaw};
use std::sync::Arc;

/// True if `include` names a flaw.
pub(super) fn includes(clauses: &Clauses, kind: FlawKind) -> bool {
    clauses.include.iter().flat_map(|flaws| &flaws.node).any(|flaw| flaw.node.kind == kind)
}

/// The exclusions of a recall: failed and foreign-version items unless included, and the flaws that it names.
pub(super) fn of(filter: &Filter<'_>, clauses: &Clauses) -> Result<Vec<Exclusion>> {
    let mut exclusions = Vec::new();
    let mut exclude = |name, items: Arc<Bits>| {
        if !items.is_empty() {
            exclusions.push(Exclusion { name, items });
        }
    };
    let state = &filter.snapshot.state;
    let excluded: Vec<&Flaw> =
        clauses.exclude.iter().flat_map(|flaws| flaws.node.iter().map(|flaw| &flaw.node)).collect();
    let names_stale_version = excluded.iter().any(|flaw| flaw.kind == FlawKind::Stale);
    if !includes(clauses, FlawKind::Failed) && !excluded.iter().any(|flaw| flaw.kind == FlawKind::Failed) {
        exclude("failed", state.attributes.base_sets(state.bound()).failed()?);
    }
    if !includes(clauses, FlawKind::Stale) && !names_stale_version {
        exclude("version", Arc::new(filter.foreign()?));
    }
    let unsupported = excluded.iter().any(|flaw| flaw.kind == FlawKind::Unsupported);
    if !includes(clauses, FlawKind::Unsupported) && !unsupported {
        exclude(FlawKind::Unsupported.as_str(), state.attributes.base_sets(state.bound()).lost_support()?);
    }
    for flaw in excluded {
        exclude(flaw.kind.as_str(), Arc::new(filter.flaw(flaw)?));
        let without_version = flaw.kind == FlawKind::Stale && !window(state, flaw)?.version;
        if without_version && !includes(clauses, FlawKind::Stale) {
            exclude("version", Arc::new(filter.foreign()?));
        }
    }
    Ok(exclusions)
}
