//! `show`: statistics and settings of the database.

use super::graph;
use super::listing::{rows, table};
use crate::Result;
use crate::maintain::stats;
use crate::model::pointer::hex;
use crate::read::answer::Table;
use crate::read::cell::Cell;
use crate::read::container_rows::page_state;
use crate::read::page::DuePage;
use crate::read::snapshot::Snapshot;
use crate::state::embedder;
use crate::state::settings::{self, SETTINGS};
use holotype_query::plan::{Listing, Thing};
use holotype_query::{Noun, ShowTarget};

pub(super) fn run(snapshot: &Snapshot, target: ShowTarget) -> Result<Table> {
    let listing = Listing::default();
    let list = |noun| -> Result<Table> {
        Ok(table("show", Thing::Noun(noun), &listing, rows(snapshot, Thing::Noun(noun), &listing)?))
    };
    match target {
        ShowTarget::Episodes => list(Noun::Episodes),
        ShowTarget::Pages => list(Noun::Pages),
        ShowTarget::Due => due(snapshot),
        ShowTarget::Segments => stats::segments(snapshot),
        ShowTarget::Settings => all_settings(snapshot),
        ShowTarget::Stats => Ok(snapshot.stats()?.to_table()),
        ShowTarget::Graph => graph::run(snapshot),
        ShowTarget::Head => {
            let head = snapshot.state.head;
            let names = ["position", "commit", "hash"].map(str::to_owned).to_vec();
            let row = vec![
                Some(Cell::count(head.position.0)),
                Some(Cell::count(head.commit.0)),
                Some(Cell::Text(hex(&head.hash))),
            ];
            Ok(Table { verb: "show", columns: names, rows: vec![row], ..Table::default() })
        }
    }
}

/// A page with its text.
pub(super) fn page(snapshot: &Snapshot, key: &str) -> Result<Table> {
    let page = snapshot.page(key)?;
    let state = page_state(page.summarised).as_str();
    let row = vec![
        Some(Cell::Text(page.key)),
        Some(Cell::Text(page.episode)),
        Some(Cell::text(state)),
        Some(Cell::count(page.tokens)),
        Some(Cell::text(page.verdict.as_str())),
        Some(Cell::Text(page.text)),
    ];
    let columns = ["page", "episode", "state", "tokens", "verdict", "text"].map(str::to_owned).to_vec();
    Ok(Table { verb: "show", columns, rows: vec![row], ..Table::default() })
}

/// The pages that are due for a summary.
fn due(snapshot: &Snapshot) -> Result<Table> {
    let row = |due: DuePage| {
        vec![
            due.key.map(Cell::Text),
            Some(Cell::Text(due.episode)),
            Some(Cell::count(due.traces)),
            Some(Cell::count(due.tokens)),
            Some(Cell::text(due.because.as_str())),
        ]
    };
    let columns = ["page", "episode", "traces", "tokens", "because"].map(str::to_owned).to_vec();
    Ok(Table { verb: "show", columns, rows: snapshot.pages_due()?.into_iter().map(row).collect(), ..Table::default() })
}

fn all_settings(snapshot: &Snapshot) -> Result<Table> {
    let mut rows = Vec::new();
    for (name, default) in SETTINGS {
        let value = settings::value(&snapshot.state, name)?;
        rows.push(vec![Some(Cell::text(*name)), Some(Cell::Text(value)), Some(Cell::text(*default))]);
    }
    let fingerprint = snapshot.state.setting(embedder::FINGERPRINT)?;
    let fingerprint = fingerprint.map(|value| (embedder::FINGERPRINT.to_owned(), value));
    let declared = settings::declarations(&snapshot.state)?;
    for (name, value) in settings::prompts(&snapshot.state)?.into_iter().chain(fingerprint).chain(declared) {
        rows.push(vec![Some(Cell::Text(name)), Some(Cell::Text(value)), Some(Cell::text(""))]);
    }
    Ok(Table {
        verb: "show",
        columns: ["setting", "value", "default"].map(str::to_owned).to_vec(),
        rows,
        ..Table::default()
    })
}
