//! `verify`: reads and hashes stored data again and reports differences.

use super::walk::roots;
use crate::Result;
use crate::maintain::verify::{
    Pace, VerifyOptions, VerifyReport, verify_all, verify_catalog, verify_log, verify_records, verify_segments,
};
use crate::model::plural::counted;
use crate::model::pointer::Verdict;
use crate::read::answer::Table;
use crate::read::cell::Cell;
use crate::read::citations;
use crate::read::filter::Filter;
use crate::read::snapshot::{Snapshot, is_damage};
use crate::state::reader_position::ReaderPosition;
use holotype_query::plan::{Ref, Verify};

pub(super) fn run(snapshot: &Snapshot, verify: &Verify) -> Result<Table> {
    let mut report = VerifyReport { head: snapshot.state.head, ..VerifyReport::default() };
    let mut pace = Pace::new(&VerifyOptions::default());
    match verify {
        Verify::Ref(of) => return references(snapshot, of),
        Verify::Log => {
            verify_log(snapshot, &mut pace, &mut |_, _| {}, &mut report)?;
            verify_records(snapshot, &mut report)?;
        }
        Verify::Catalog => verify_catalog(snapshot, &mut pace, &mut report)?,
        Verify::Segments => verify_segments(snapshot, &mut pace, &mut report)?,
        Verify::All => report = verify_all(snapshot, &mut pace, &mut |_, _| {})?,
        Verify::Citations { text, scope } => {
            let scope =
                scope.as_ref().map(|scope| Filter::new(snapshot, &ReaderPosition::default()).scope(Some(scope)));
            return citations::validate(snapshot, text, scope.transpose()?.as_ref());
        }
    }
    let mut rows = Vec::new();
    for (what, count) in &report.checked {
        rows.push(vec![Some(Cell::text("checked")), Some(Cell::text(what.as_str())), Some(Cell::count(*count))]);
    }
    for fault in &report.faults {
        rows.push(vec![Some(Cell::text("fault")), Some(Cell::Text(fault.to_string())), None]);
    }
    let columns = ["result", "what", "count"].map(str::to_owned).to_vec();
    let mut notes: Vec<String> = report.not_checked.iter().map(|what| format!("not checked: {what}")).collect();
    notes.push(report.verdict());
    Ok(Table { verb: "verify", columns, rows, notes, failed: !report.is_clean() })
}

/// Verifies the evidence of an item, page or episode, span by span.
fn references(snapshot: &Snapshot, of: &Ref) -> Result<Table> {
    let mut rows = Vec::new();
    let mut faults = 0;
    if let Ref::Page(key) = of {
        let traces: Vec<u32> = snapshot.page_traces(key)?.iter().map(|id| id.0).collect();
        let page = snapshot.state.page_number(key)?.map(|number| snapshot.state.page(number)).transpose()?;
        let verdict = match (snapshot.hash_page(&traces), page) {
            (Ok(hash), Some(page)) if hash == page.hash => Verdict::Ok,
            _ => Verdict::Mismatch,
        };
        faults += u64::from(verdict != Verdict::Ok);
        let what = Cell::Text(format!("page {}", key));
        rows.push(vec![Some(what), None, Some(Cell::text(verdict.as_str())), None]);
    }
    for id in roots(snapshot, of)? {
        let (verdict, key) = match snapshot.key_of(id) {
            Ok(key) => (Verdict::Ok, key),
            Err(error) if is_damage(&error) => (Verdict::Mismatch, id.to_string()),
            Err(error) => return Err(error),
        };
        faults += u64::from(verdict != Verdict::Ok);
        rows.push(vec![
            Some(Cell::Text(key.clone())),
            Some(Cell::text("record")),
            Some(Cell::text(verdict.as_str())),
            None,
        ]);
        for citation in snapshot.citations(id)? {
            faults += u64::from(!matches!(citation.verdict, Verdict::Ok | Verdict::Redacted));
            let place = match citation.field.as_str() {
                "" => format!("page {}", citation.target),
                field => format!("{}.{field}[{}..{}]", citation.target, citation.start, citation.end),
            };
            let text = citation.text.map(Cell::Text);
            rows.push(vec![
                Some(Cell::Text(key.clone())),
                Some(Cell::Text(place)),
                Some(Cell::text(citation.verdict.as_str())),
                text,
            ]);
        }
    }
    let columns = ["item", "cites", "verdict", "text"].map(str::to_owned).to_vec();
    let notes = vec![if faults == 0 { "no faults".to_owned() } else { counted(faults, "faults") }];
    Ok(Table { verb: "verify", columns, rows, notes, failed: faults > 0 })
}
