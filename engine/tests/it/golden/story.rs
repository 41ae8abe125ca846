//! The content of a golden database, in terms that later versions can still use.

use holotype::answer::Output;
use holotype::query::Params;
use holotype::{Edge, ItemId, Result, Snapshot};
use std::fmt::Write;

/// Further statements, whose answers must not depend on when the database was created.
const STATEMENTS: [&str; 6] = [
    "find claims order by name, value return name, value, item, won",
    "find receipts return receipt, statement, rows, commit",
    "find events order by commit return commit, op, item, because",
    "history of 't1' return attribute, value, because",
    "find pages return key, episode",
    "find items as of commit 2 return key, status",
];

/// Every item: key, kind, fields, citations, links; the space; and what statements give.
pub(crate) fn tell(snapshot: &Snapshot) -> Result<String> {
    let mut told =
        format!("commit {}, space {:?}\n", snapshot.commit(), snapshot.space()?.map(|space| space.to_string()));
    for id in (0..snapshot.len()).map(ItemId) {
        let item = snapshot.item(id)?;
        let attributes = &item.attributes;
        let _ = writeln!(
            told,
            "{id} {} {} status {:?} support {:?} redacted {}",
            item.key, attributes.kind, attributes.status, attributes.support, attributes.redacted
        );
        for name in item.content.field_names() {
            let _ = writeln!(told, "  {name} = {:?}", item.content.field_text(name));
        }
        let _ = writeln!(told, "  vector {:?}", snapshot.vector(id)?);
        for citation in snapshot.citations(id)? {
            let (target, verdict) = (&citation.target, citation.verdict);
            let _ = writeln!(
                told,
                "  cites {target} {}[{}..{}] {verdict} {:?}",
                citation.field, citation.start, citation.end, citation.text
            );
        }
        for edge in [Edge::Cites, Edge::DerivedFrom, Edge::Sibling] {
            let far = snapshot.linked(id, edge)?;
            if !far.is_empty() {
                let _ = writeln!(told, "  {edge} {far:?}");
            }
        }
    }
    for statement in STATEMENTS {
        let _ = writeln!(told, "{statement}");
        for output in snapshot.query(statement, &Params::new())? {
            let Output::Table(table) = output else { continue };
            for row in table.rows {
                let cells = row.iter().map(|cell| cell.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string));
                let _ = writeln!(told, "  {}", cells.collect::<Vec<_>>().join(" | "));
            }
        }
    }
    Ok(told)
}
