//! `consolidate`: what was made, changed or lost, one row for each item.

pub(crate) mod resolve;

use self::resolve::Consolidate;
use crate::Result;
use crate::model::plural::counted;
use crate::read::answer::Table;
use crate::read::cell::Cell;
use crate::write::transaction::Transaction;
use holotype_query::plan;

pub(super) fn run(transaction: &mut Transaction<'_>, statement: &plan::Consolidate) -> Result<Table> {
    let mut consolidate = Consolidate::new(statement.noun).among(statement.selection.clone());
    if let Some(tau) = statement.tau {
        consolidate = consolidate.tau(tau as f32);
    }
    if let Some(into) = statement.into {
        consolidate = consolidate.into(into.as_str().parse()?);
    }
    let report = transaction.consolidate(&consolidate)?;
    let snapshot = transaction.names()?;
    let mut rows = Vec::with_capacity(report.done.len());
    for one in &report.done {
        rows.push(vec![
            Some(Cell::text(one.op.as_str())),
            Some(Cell::Integer(i64::from(one.item.0))),
            Some(Cell::Text(snapshot.key_of(one.item)?)),
            Some(Cell::text(one.claim.as_str())),
            Some(Cell::text(one.value.as_str())).filter(|_| !one.value.is_empty()),
        ]);
    }
    let mut notes = Vec::new();
    if report.unchanged > 0 {
        notes.push(format!("{} unchanged", counted(report.unchanged, "claims")));
    }
    if report.over_limit > 0 {
        let claims = counted(report.over_limit, "claims");
        notes.push(format!("{claims} left: setting `consolidate.limit` holds for each episode and call"));
    }
    if report.only_failed > 0 {
        notes.push(format!("{} left: only failed traces make them", counted(report.only_failed, "claims")));
    }
    let columns = ["op", "item", "key", "claim", "value"].map(str::to_owned).to_vec();
    Ok(Table { verb: "consolidate", columns, rows, notes, ..Table::default() })
}
