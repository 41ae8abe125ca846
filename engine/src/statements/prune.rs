//! `prune`: what was retired, one row for each item, with the reason.

pub(crate) mod budget;
pub(crate) mod redundant;

use self::budget::{Exceeded, Prune, reason};
use crate::model::plural::counted;
use crate::read::answer::Table;
use crate::read::cell::Cell;
use crate::write::transaction::Transaction;
use crate::{Error, Result};
use holotype_query::plan;

pub(super) fn run(transaction: &mut Transaction<'_>, statement: &plan::Prune) -> Result<Table> {
    let mut prune = Prune::new().among(statement.selection.clone());
    for target in &statement.targets {
        prune = match target.keep {
            Some(keep) => prune.to(target.noun, keep),
            None => prune.all(target.noun),
        };
    }
    if let Some(above) = statement.redundant {
        if !(0.0..=1.0).contains(&above) {
            return Err(Error::Invalid(format!("redundant above {above}: expected a cosine from 0 to 1")));
        }
        prune = prune.redundant_above(above as f32);
    }
    let report = transaction.prune(&prune)?;
    let snapshot = transaction.names()?;
    let mut rows = Vec::with_capacity(report.pruned.len());
    for pruned in &report.pruned {
        rows.push(vec![
            Some(Cell::Integer(i64::from(pruned.item.0))),
            Some(Cell::Text(snapshot.key_of(pruned.item)?)),
            Some(Cell::text(pruned.layer.as_str())),
            Some(Cell::Text(reason(&snapshot, pruned.reason)?)),
        ]);
    }
    let exceeded = |Exceeded { noun, budget, remaining }: &Exceeded| {
        format!("{noun}: {} remain over the budget of {budget}; active items rest on them", remaining - budget)
    };
    let mut notes =
        vec![format!("{} retired; `as of` an earlier commit shows them", counted(rows.len() as u64, "items"))];
    notes.extend(report.exceeded.iter().map(exceeded));
    let columns = ["item", "key", "layer", "because"].map(str::to_owned).to_vec();
    Ok(Table { verb: "prune", columns, rows, notes, ..Table::default() })
}
