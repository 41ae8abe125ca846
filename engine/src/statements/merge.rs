//! `merge`: one row for each item that was made, and for each that was retired, with the reason.

use super::listing::{items, reader_position};
use super::write::vector;
use crate::memory::structure::{MergeByWords, Relation};
use crate::read::answer::Table;
use crate::read::cell::Cell;
use crate::write::transaction::Transaction;
use crate::write::transaction::merge::{MOST_MERGES, Merge, MergeOptions};
use crate::{Error, Result};
use holotype_query::plan::{self, Listing};
use holotype_query::{Layer, MergeKind};

pub(super) fn run(transaction: &mut Transaction<'_>, statement: &plan::Merge) -> Result<Table> {
    let merged = match statement {
        plan::Merge::Candidates { noun, selection, tau, top } => {
            if noun.layer() != Some(Layer::Recall) {
                return Err(Error::Invalid(format!(
                    "merge takes recalls, facts, summaries or procedures, not {}",
                    noun
                )));
            }
            let snapshot = transaction.snapshot()?;
            let (scope, filter) = (selection.scope.clone(), selection.filter.clone());
            let listing = Listing { scope, filter, ..Listing::default() };
            let among: Vec<_> =
                items(&snapshot, &reader_position(&snapshot, &listing)?, *noun, &listing, None)?.iter().collect();
            let defaults = MergeOptions::default();
            let options = MergeOptions {
                tau: tau.map_or(defaults.tau, |tau| tau as f32),
                top: top.map_or(defaults.top, |top| usize::try_from(top).unwrap_or(usize::MAX)),
            };
            transaction.merge(&among, &MergeByWords, options)?
        }
        plan::Merge::Items { items, into, kind } => {
            let names = transaction.names()?;
            let of = items.iter().map(|item| names.resolve_item(item)).collect::<Result<Vec<_>>>()?;
            let relation = match kind {
                MergeKind::Update => Relation::Update,
                MergeKind::Topic => Relation::Topic,
                MergeKind::Stitch => Relation::Stitch,
            };
            let vector = vector(transaction, into)?;
            vec![transaction.merge_items(&of, &into.text, relation, vector)?]
        }
    };
    table(transaction, &merged)
}

fn table(transaction: &mut Transaction<'_>, merged: &[Merge]) -> Result<Table> {
    let names = transaction.names()?;
    let mut rows = Vec::new();
    for merge in merged {
        let keys = merge.of.iter().map(|id| names.key_of(*id)).collect::<Result<Vec<_>>>()?;
        let key = names.key_of(merge.merged)?;
        let mut row = |key: &str, change: &str, because: String| {
            rows.push(vec![Some(Cell::text(key)), Some(Cell::text(change)), Some(Cell::Text(because))]);
        };
        row(&key, "made", format!("{} of {}", merge.relation.as_str(), keys.join(", ")));
        for of in keys.iter().filter(|_| merge.relation.retires()) {
            row(of, "retired", format!("merged into {key}"));
        }
    }
    let columns = ["key", "change", "because"].map(str::to_owned).to_vec();
    let merges: usize = merged.iter().map(|merge| merge.of.len().saturating_sub(1)).sum();
    let note = format!("{MOST_MERGES} merges were made, which is the most of one call; run it again for more");
    let notes = (merges >= MOST_MERGES).then_some(note).into_iter().collect();
    Ok(Table { verb: "merge", columns, rows, notes, ..Table::default() })
}
