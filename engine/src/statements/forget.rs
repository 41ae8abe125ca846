//! `forget`: resolves its targets and reports what was erased.

use super::listing::{items, reader_position, rows};
use super::walk::{episode_number, roots};
use crate::Result;
use crate::model::item::{Inherited, ItemId};
use crate::model::plural::counted;
use crate::read::answer::Table;
use crate::read::cell::Cell;
use crate::read::snapshot::Snapshot;
use crate::state::attributes::Column;
use crate::write::forget::{Forget, ForgetReport};
use crate::write::transaction::Transaction;
use holotype_query::plan::{self, ForgetTarget, Listing, Ref, Selection, Thing};
use holotype_query::{AttributeId, Noun};

/// The items to forget, and the episodes whose tasks are forgotten too.
#[derive(Default)]
struct Named {
    items: Vec<ItemId>,
    episodes: Vec<String>,
}

pub(super) fn run(transaction: &mut Transaction<'_>, statement: &plan::Forget) -> Result<Table> {
    let snapshot = transaction.snapshot()?;
    let mut named = Named::default();
    match &statement.target {
        ForgetTarget::Refs(refs) => {
            for target in refs {
                match target {
                    Ref::Episode(id) => named.episode(&snapshot, id)?,
                    target => named.items.extend(roots(&snapshot, target)?),
                }
            }
        }
        ForgetTarget::Selected { noun, selection } => named.select(&snapshot, *noun, selection)?,
    }
    let mut forget = Forget::because(statement.because.clone());
    if statement.cascade {
        forget = forget.cascade();
    }
    for episode in &named.episodes {
        forget = forget.task_of(episode.clone());
    }
    Ok(table(&transaction.forget(&named.items, &forget)?))
}

impl Named {
    /// Forgetting an episode affects the traces recorded in it, not items that inherit it.
    fn episode(&mut self, snapshot: &Snapshot, id: &str) -> Result<()> {
        let number = episode_number(snapshot, id)?;
        let state = &snapshot.state;
        let of_episode = state.attributes.select(Column::Episode, snapshot.len(), &|of| of as u32 == number)?;
        for id in of_episode.iter().map(ItemId) {
            if state.attributes(id)?.inherited & Inherited::EPISODE == 0 {
                self.items.push(id);
            }
        }
        self.episodes.push(id.to_owned());
        Ok(())
    }

    fn select(&mut self, snapshot: &Snapshot, noun: Noun, selection: &Selection) -> Result<()> {
        let listing =
            Listing { scope: selection.scope.clone(), filter: selection.filter.clone(), ..Listing::default() };
        let (thing, name) = match noun {
            Noun::Pages => (Thing::Noun(noun), AttributeId::Key),
            Noun::Episodes => (Thing::Noun(noun), AttributeId::Episode),
            noun => {
                let reader_position = reader_position(snapshot, &listing)?;
                self.items.extend(items(snapshot, &reader_position, noun, &listing, None)?.iter());
                return Ok(());
            }
        };
        for row in rows(snapshot, thing, &listing)? {
            match row.get(&name) {
                Some(Cell::Text(id)) if noun == Noun::Episodes => self.episode(snapshot, id)?,
                Some(Cell::Text(key)) => self.items.extend(snapshot.page_traces(key)?),
                _ => {}
            }
        }
        Ok(())
    }
}

fn table(report: &ForgetReport) -> Table {
    let of = |what: &'static str, keys: &[String]| -> Vec<Vec<Option<Cell>>> {
        keys.iter().map(|key| vec![Some(Cell::text(what)), Some(Cell::text(key.as_str()))]).collect()
    };
    let mut rows = of("forgotten", &report.items);
    rows.extend(of("rests on it", &report.derived));
    rows.extend(of("page", &report.pages));
    let mut notes = vec![format!(
        "{} of the log erased, {} among them",
        counted(report.records, "records"),
        counted(report.claims, "claims")
    )];
    if report.receipts > 0 {
        let questions = if report.cascade { ", and what was asked" } else { "; what was asked stays" };
        notes.push(format!("{} lost the hashes of what was shown{questions}", counted(report.receipts, "receipts")));
    }
    if !report.derived.is_empty() {
        notes.push("what rests on it was left; `cascade` forgets it too".to_owned());
    }
    match (report.reasons, report.cascade) {
        (0, _) => {}
        (count, true) => notes.push(format!("{} given with marks erased", counted(count, "reasons"))),
        (count, false) => {
            notes.push(format!("{} given with marks left; `cascade` erases these too", counted(count, "reasons")));
        }
    }
    if report.other_readers {
        notes.push("other processes have the database open: they may hold erased files until they close it".to_owned());
    }
    Table { verb: "forget", columns: vec!["what".to_owned(), "key".to_owned()], rows, notes, ..Table::default() }
}
