//! `learn`: what was done with a finding, in one row.

pub(crate) mod finding;

use self::finding::Learn;
use super::write::{pointer, text, vector};
use crate::Result;
use crate::model::pointer::Target;
use crate::read::answer::Table;
use crate::read::cell::Cell;
use crate::write::transaction::Transaction;
use holotype_query::{ItemRef, plan};

pub(super) fn run(transaction: &mut Transaction<'_>, statement: &plan::Learn) -> Result<Table> {
    let passage = &statement.text;
    let mut learn = Learn::new(passage.text.clone());
    learn.vector = vector(transaction, passage)?;
    for from in &statement.from {
        learn = learn.from(pointer(from)?);
    }
    for claim in &statement.claims {
        let (name, value) = (&claim.name, text("a claim", &claim.value)?);
        learn = if claim.global { learn.global_claim(name, value) } else { learn.claim(name, value) };
    }
    if statement.add_only {
        learn = learn.add_only();
    }
    if let Some(item) = &statement.update_of {
        learn = learn.update_of(match item {
            ItemRef::Key(key) => Target::Key(key.clone()),
            ItemRef::Id(number) => Target::Item(crate::ItemId(u32::try_from(*number).unwrap_or(u32::MAX))),
        });
    }
    let learned = transaction.learn_by_words(&learn)?;
    let names = transaction.names()?;
    let key = learned.item.map(|item| names.key_of(item)).transpose()?;
    let replaced = learned.replaced.map(|item| names.key_of(item)).transpose()?;
    Ok(Table {
        verb: "learn",
        columns: ["op", "key", "replaced", "pointers"].map(str::to_owned).to_vec(),
        rows: vec![vec![
            Some(Cell::text(learned.op.as_str())),
            key.map(Cell::Text),
            replaced.map(Cell::Text),
            Some(Cell::count(learned.pointers)),
        ]],
        notes: learned.notes,
        ..Table::default()
    })
}
