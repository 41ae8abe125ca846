//! `induce`: the facts drawn from traces by the built-in extractor, one row each, with their concepts.
//!
//! Invariant: a trace that a fact rests on already is passed over, so that a second `induce` writes nothing.

use super::selected::selected;
use crate::memory::structure::Roles;
use crate::model::item::{ItemId, Kind};
use crate::model::plural::counted;
use crate::read::answer::Table;
use crate::read::cell::Cell;
use crate::read::snapshot::Snapshot;
use crate::state::reader_position::Reader;
use crate::write::transaction::Transaction;
use crate::{Error, Result};
use holotype_query::{Layer, plan};

pub(super) fn run(transaction: &mut Transaction<'_>, induce: &plan::Induce) -> Result<Table> {
    if induce.noun.layer() != Some(Layer::Trace) {
        let noun = induce.noun;
        return Err(Error::Invalid(format!("induce takes traces, turns, calls or observations, not {noun}")));
    }
    let snapshot = transaction.snapshot()?;
    let (_, traces) = selected(&snapshot, induce.noun, &induce.selection, &Reader::default())?;
    let (mut made, mut passed) = (Vec::new(), 0);
    let mut concepts = Vec::new();
    for trace in traces.iter().map(ItemId) {
        snapshot.tick()?;
        let attributes = snapshot.state.attributes(trace)?;
        if !attributes.active || attributes.redacted {
            continue;
        }
        if has_fact(&snapshot, trace)? {
            passed += 1;
            continue;
        }
        let created = transaction.induce(trace, &Roles::default())?;
        made.extend(created.facts.into_iter().map(|fact| (fact, trace)));
        concepts.extend(created.concepts);
    }
    concepts.sort_unstable();
    concepts.dedup();
    let names = transaction.names()?;
    let mut rows = Vec::with_capacity(made.len());
    for (fact, trace) in made {
        let text = transaction.content(fact)?.text().to_owned();
        rows.push([names.key_of(fact)?, names.key_of(trace)?, text].map(|cell| Some(Cell::Text(cell))).to_vec());
    }
    let columns = ["key", "from", "text"].map(str::to_owned).to_vec();
    let mut notes = vec![format!("they mention {}", counted(concepts.len() as u64, "concepts"))];
    if passed > 0 {
        notes.push(format!("{} passed over: facts rest on them already", counted(passed, "traces")));
    }
    Ok(Table { verb: "induce", columns, rows, notes, ..Table::default() })
}

/// True if an active fact rests on a trace.
fn has_fact(snapshot: &Snapshot, trace: ItemId) -> Result<bool> {
    for dependent in snapshot.state.dependents(trace)? {
        let attributes = snapshot.state.attributes(dependent)?;
        if attributes.kind == Kind::Fact && attributes.active {
            return Ok(true);
        }
    }
    Ok(false)
}
