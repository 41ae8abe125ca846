//! All that the public face says of a database, as text: what two databases, or one before and after, are compared by.

use holotype::answer::Output;
use holotype::query::Params;
use holotype::{Edge, Error, Holotype, ItemId, Snapshot};
use std::fmt::Write;

/// Every item with its attributes, content, citations, edges and vector; the listings; and the head's commit.
///
/// Left out are numbers that say where something stands rather than what it is (log positions).
pub(crate) fn everything(snapshot: &Snapshot) -> Result<String, Error> {
    let mut all = String::new();
    for id in (0..snapshot.len()).map(ItemId) {
        let item = snapshot.item(id)?;
        let mut attributes = item.attributes.clone();
        attributes.lsn = 0;
        line(&mut all, format!("{id} {} {attributes:?}", item.key));
        assert_eq!(snapshot.get(&item.key)?.map(|found| found.id), Some(id), "{}", item.key);
        for name in item.content.field_names() {
            line(&mut all, format!("  {name} = {:?}", item.content.field_text(name)));
        }
        line(&mut all, format!("  by {:?} with {:?}", item.content.speaker(), item.content.tool()));
        line(&mut all, format!("  vector {:?}", snapshot.vector(id)?));
        for citation in snapshot.citations(id)? {
            line(&mut all, format!("  cites {citation:?}"));
        }
        for edge in Edge::ALL {
            let (out, back) = (snapshot.linked(id, *edge)?, snapshot.linking(id, *edge)?);
            if !(out.is_empty() && back.is_empty()) {
                line(&mut all, format!("  {edge} out {out:?} back {back:?}"));
            }
        }
    }
    for listing in ["show episodes", "show pages", "show settings", "find claims", "find edges", "find items return *"]
    {
        line(&mut all, answers(snapshot, listing, &Params::new())?);
    }
    line(&mut all, format!("commit {}, space {:?}", snapshot.commit(), snapshot.space()?));
    Ok(all)
}

/// The answers of statements, without durations.
pub(crate) fn answers(snapshot: &Snapshot, script: &str, params: &Params) -> Result<String, Error> {
    let mut all = String::new();
    for output in snapshot.query(script, params)? {
        match output {
            Output::Answer(mut answer) => {
                answer.micros = 0;
                line(&mut all, format!("{answer:#?}"));
            }
            Output::Table(table) => line(&mut all, format!("{table:?}")),
            other => line(&mut all, format!("{other:?}")),
        }
    }
    Ok(all)
}

/// The findings of `verify`; an error of verifying is a finding too.
#[allow(dead_code, reason = "not every test asks for them")]
pub(crate) fn faults(database: &Holotype) -> Vec<String> {
    match database.verify(&mut |_, _| {}) {
        Ok(report) => report.faults.iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    }
}

fn line(all: &mut String, text: String) {
    let _ = writeln!(all, "{text}");
}
