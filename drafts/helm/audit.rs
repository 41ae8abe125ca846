//! `audit`: the measures of what was read and written, one row each.

use crate::Result;
use crate::read::answer::Table;
use crate::read::cell::{Cell, round};
use crate::read::snapshot::Snapshot;
use holotype_query::ast::{Audit, Scope};

/// The measures of an audit as a table.
pub(super) fn run(snapshot: &Snapshot, audit: &Audit) -> Result<Table> {
    let episodes: Vec<&str> = match audit.scope.as_ref().map(|scope| &scope.node) {
        None | Some(Scope::All) => Vec::new(),
        Some(Scope::Episodes(ids)) => ids.iter().map(|id| id.node.bound().as_str()).collect(),
        Some(Scope::Pages(_)) => {
            return Err(crate::Error::Invalid("audit in page: expected episodes, or all".to_owned()));
        }
    };
    let report = snapshot.audit(&episodes, &[])?;
    let row = |measure: &crate::Measure| {
        vec![
            Some(Cell::text(measure.name.as_str())),
            measure.value.map(|value| Cell::Number(round(value))),
            Some(Cell::count(measure.of)),
        ]
    };
    let columns = ["measure", "value", "of"].map(str::to_owned).to_vec();
    Ok(Table { verb: "audit", columns, rows: report.measures.iter().map(row).collect(), notes: report.notes, failed: false })
}
