//! The flaws that keep items out of the rows of a recall.

use super::Exclusion;
use crate::Result;
use crate::model::item::Status;
use crate::read::filter::{Filter, window};
use holotype_index::bitmap::Bits;
use holotype_query::plan::{Clauses, Predicate, Test};
use holotype_query::{AttributeId, FlawKind, Op, Value};
use std::sync::Arc;

/// True if `include` names a flaw.
pub(super) fn includes(clauses: &Clauses, kind: FlawKind) -> bool {
    clauses.include.iter().any(|flaw| flaw.kind == kind)
}

/// True if failed items are asked for, by `include failed` or by `where failed`.
pub(super) fn asks_for_failed(clauses: &Clauses) -> bool {
    includes(clauses, FlawKind::Failed) || clauses.filter.as_ref().is_some_and(demands_failed)
}

/// True if a condition holds for failed items only.
fn demands_failed(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::And(all) => all.iter().any(demands_failed),
        Predicate::Or(any) => any.iter().all(demands_failed),
        Predicate::Not(_) => false,
        Predicate::Test(test) => match &**test {
            Test::Flaw(flaw) => flaw.kind == FlawKind::Failed,
            Test::Compare { name, op: Op::Eq, value } => {
                let value = match value {
                    Value::Text(text) => Some(text.as_str()),
                    Value::Word(word) => word.word(),
                    _ => None,
                };
                name.attribute() == Some(AttributeId::Status) && value == Some(Status::Failed.as_str())
            }
            _ => false,
        },
    }
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
    let excluded = &clauses.exclude;
    let names_stale_version = excluded.iter().any(|flaw| flaw.kind == FlawKind::Stale);
    if !asks_for_failed(clauses) && !excluded.iter().any(|flaw| flaw.kind == FlawKind::Failed) {
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
