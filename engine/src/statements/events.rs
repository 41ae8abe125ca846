//! Events: the history of writes, read from the log record by record.
//!
//! A condition on `commit` in the predicate bounds the part of the log that is read.

use crate::derive::retained_log;
use crate::model::item::{ItemId, Kind, Layer};
use crate::read::cell::{Cell, Cells};
use crate::read::snapshot::{Snapshot, is_damage};
use crate::records::record::{Change, EffectiveRecord, MarkRecord, Record};
use crate::records::tables;
use crate::state::settings;
use crate::write::transaction::uses::is_use;
use crate::{Error, Result};
use holotype_query::plan::{Predicate, Test};
use holotype_query::{AttributeId, Op, Value};
use holotype_storage::log::Lsn;
use std::collections::{BTreeMap, HashSet};

/// The operation of a record, its item or else its episode, and its reason.
#[derive(Default)]
struct Event {
    op: &'static str,
    item: Option<u32>,
    episode: Option<String>,
    because: Option<String>,
}

/// The transactions from a commit on. Starts earlier if the log can only be read from an earlier point.
pub(super) fn transactions_from(
    snapshot: &Snapshot,
    first: u64,
) -> Result<Box<dyn Iterator<Item = Result<holotype_storage::log::Transaction>>>> {
    let log = &snapshot.core.log;
    if log.floor().is_some_and(|floor| first <= floor.head.commit.0) {
        return Ok(Box::new(retained_log::transactions(log)?));
    }
    let from = snapshot.state.commit_row(first)?.from;
    Ok(Box::new(log.scan(Lsn(from))?.map(|transaction| transaction.map_err(Error::from))))
}

/// The events up to the snapshot, oldest first.
pub(super) fn events(snapshot: &Snapshot, filter: Option<&Predicate>) -> Result<Vec<Cells>> {
    let state = &snapshot.state;
    let first = filter.map_or(1, first_commit).max(1);
    let mut rows = Vec::new();
    if first > snapshot.commit() {
        return Ok(rows);
    }
    let mut pages = HashSet::new();
    for transaction in transactions_from(snapshot, first)? {
        let transaction = transaction?;
        if transaction.number.0 < first {
            continue;
        }
        if transaction.number.0 > snapshot.commit() {
            break;
        }
        for record in &transaction.records {
            snapshot.tick()?;
            let Some(EffectiveRecord { record, .. }) = Record::effective(record)? else { continue };
            for event in events_of_record(&record, snapshot, &mut pages, transaction.number.0)? {
                let mut row = BTreeMap::from([
                    (AttributeId::Commit, Cell::count(transaction.number.0)),
                    (AttributeId::Time, Cell::Time(transaction.time_us)),
                    (AttributeId::Op, Cell::text(event.op)),
                ]);
                let mut episode = event.episode;
                if let Some(item) = event.item.map(ItemId) {
                    let key = match snapshot.key_of(item) {
                        Err(error) if is_damage(&error) => item.to_string(),
                        key => key?,
                    };
                    row.insert(AttributeId::Item, Cell::Text(key));
                    let number = state.attributes(item)?.episode;
                    episode = number.map(|number| state.episode(number)).transpose()?.map(|episode| episode.id.clone());
                }
                row.extend(episode.map(|episode| (AttributeId::Episode, Cell::Text(episode))));
                row.extend(event.because.map(|because| (AttributeId::Because, Cell::Text(because))));
                snapshot.keep(EVENT_BYTES)?;
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

/// About the memory of an event as a row.
const EVENT_BYTES: usize = 512;

/// The events of a record. A read yields one event per item read, or a single one if it read none.
fn events_of_record(record: &Record, snapshot: &Snapshot, pages: &mut HashSet<u32>, commit: u64) -> Result<Vec<Event>> {
    let of = |op, item| Event { op, item: Some(item), ..Event::default() };
    let plain = |op| Event { op, ..Event::default() };
    Ok(vec![match record {
        Record::Item(item) => {
            let layer = Kind::from_byte(item.kind).map(Kind::layer);
            of(if layer == Some(Layer::Trace) { "record" } else { "remember" }, item.id)
        }
        Record::Link(link) => of("link", link.from),
        Record::Unlink(link) => of("unlink", link.from),
        Record::Pointers(pointers) => of("link", pointers.item),
        Record::Uncite(uncite) => of("unlink", uncite.item),
        Record::Mark(mark) => Event { because: mark.because.clone(), ..of(op_of(mark), mark.item) },
        Record::Claim(claim) => of("claim", claim.item),
        Record::Rekey(rekey) if rekey.key.starts_with('~') => return Ok(Vec::new()),
        Record::Rekey(rekey) => of("update", rekey.item),
        Record::Episode(episode) => {
            let op = if episode.open { "open" } else { "close" };
            Event { episode: Some(episode.id.clone()), ..plain(op) }
        }
        Record::Page(page) => {
            // The first record of a page closes it; later ones change its state.
            let made = snapshot.state.commit_when(|row| row.totals.pages > page.number)?;
            let is_first = made == commit && pages.insert(page.number);
            let episode = snapshot.state.episode(page.episode)?.id.clone();
            Event { episode: Some(episode), ..plain(if is_first { "page" } else { "mark" }) }
        }
        // Which prompt a role has from here on.
        Record::Setting(setting) if setting.name.starts_with(settings::PROMPT) => {
            Event { because: Some(format!("{} = {}", setting.name, setting.value)), ..plain("set") }
        }
        Record::Setting(_) | Record::Space(_) => plain("set"),
        Record::Forget(forget) => {
            let because = Some(forget.because.clone());
            let event = |item: &u32| Event { because: because.clone(), ..of("forget", *item) };
            return Ok(forget.items.iter().map(event).collect());
        }
        Record::Receipt(_) => plain("receipt"),
        Record::Reembed(record) => Event { because: Some(record.fingerprint.clone()), ..plain("reembed") },
        Record::Read(read) if read.rows.is_empty() => plain("recall"),
        Record::Read(read) => return Ok(read.rows.iter().map(|row| of("recall", row.item)).collect()),
        Record::Chunk(_)
        | Record::Vector(_)
        | Record::Replacement(_)
        | Record::Retained(_)
        | Record::RetainedCommit(_)
        | Record::Subtrees(_) => {
            return Ok(Vec::new());
        }
    }])
}

fn op_of(mark: &MarkRecord) -> &'static str {
    match mark.change {
        Change::Active(false)
            if mark.because.as_deref().is_some_and(|because| because.starts_with(super::prune::budget::BECAUSE)) =>
        {
            "prune"
        }
        Change::Active(_) if mark.by.is_some() => "retract",
        _ if is_use(mark) => "use",
        _ => "mark",
    }
}

/// The first commit whose events may match a predicate.
fn first_commit(predicate: &Predicate) -> u64 {
    match predicate {
        Predicate::And(parts) => parts.iter().map(first_commit).max().unwrap_or(0),
        Predicate::Or(parts) => parts.iter().map(first_commit).min().unwrap_or(0),
        Predicate::Not(_) => 0,
        Predicate::Test(test) => match &**test {
            Test::Compare { name, op, value } if name.attribute() == Some(AttributeId::Commit) => match (op, value) {
                (Op::Eq | Op::Ge, Value::Number(number)) => number.as_u64().unwrap_or(0),
                (Op::Gt, Value::Number(number)) => number.as_u64().map_or(0, |commit| commit.saturating_add(1)),
                _ => 0,
            },
            Test::Between { name, not: false, low: Value::Number(low), .. }
                if name.attribute() == Some(AttributeId::Commit) =>
            {
                low.as_u64().unwrap_or(0)
            }
            _ => 0,
        },
    }
}

/// Every receipt, oldest first.
pub(super) fn receipts(snapshot: &Snapshot) -> Result<Vec<Cells>> {
    let state = &snapshot.state;
    let mut rows = Vec::new();
    for (_, value) in state.scan(tables::RECEIPT, &[])? {
        let receipt: crate::records::record::ReceiptRecord = holotype_storage::codec::decode(&value)?;
        let mut row = BTreeMap::from([
            (AttributeId::Receipt, Cell::Text(crate::write::receipt::id(receipt.number))),
            (AttributeId::Statement, Cell::Text(receipt.statement)),
            (AttributeId::Rows, Cell::count(receipt.rows.len() as u64)),
            (AttributeId::AsOf, Cell::count(receipt.commit)),
        ]);
        let commit = state.commit_when(|row| row.totals.receipts > receipt.number)?;
        if state.commit_row(commit)?.totals.receipts > receipt.number {
            row.insert(AttributeId::Commit, Cell::count(commit));
            row.insert(AttributeId::Time, Cell::Time(state.commit_row(commit)?.clock));
        }
        rows.push(row);
    }
    Ok(rows)
}
