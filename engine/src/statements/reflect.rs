//! `reflect`: a fact that was added, or merged with a known one (PlugMem F, after RMM), in one row.

use super::write::{pointer, vector};
use crate::Result;
use crate::memory::structure::ReflectByWords;
use crate::model::edge::Edge;
use crate::read::answer::Table;
use crate::read::cell::Cell;
use crate::write::draft::NewRecall;
use crate::write::transaction::Transaction;
use holotype_query::plan;

/// Known facts that a new one is shown beside, where the statement states no number.
const NEAREST: u64 = 5;

pub(super) fn run(transaction: &mut Transaction<'_>, reflect: &plan::Reflect) -> Result<Table> {
    let passage = &reflect.text;
    let mut fact = NewRecall::fact(passage.text.clone());
    fact.vector = vector(transaction, passage)?;
    for from in &reflect.from {
        fact = fact.from(pointer(from)?);
    }
    let has_vector = fact.vector.is_some();
    let nearest = reflect.top.unwrap_or(NEAREST);
    let id = transaction.reflect(fact, usize::try_from(nearest).unwrap_or(usize::MAX), &ReflectByWords)?;
    let names = transaction.names()?;
    let replaced = names.state.edges_out(id, Some(Edge::Supersedes))?.first().map(|end| end.far);
    let replaced = replaced.map(|old| names.key_of(old)).transpose()?;
    let op = if replaced.is_some() { "merged" } else { "added" };
    let text = transaction.content(id)?.text().to_owned();
    let note = "the database has no embedder and the fact no vector, so that no known fact is near it";
    Ok(Table {
        verb: "reflect",
        columns: ["op", "key", "replaced", "text"].map(str::to_owned).to_vec(),
        rows: vec![vec![
            Some(Cell::text(op)),
            Some(Cell::Text(names.key_of(id)?)),
            replaced.map(Cell::Text),
            Some(Cell::Text(text)),
        ]],
        notes: (!has_vector).then(|| note.to_owned()).into_iter().collect(),
        ..Table::default()
    })
}
