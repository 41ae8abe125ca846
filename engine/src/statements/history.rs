//! `history of`: the values of an item, page or episode over time, each with the commits it was valid from and until.
//!
//! Undoes the changes of the subject one by one, newest first, and compares consecutive versions: a value present in
//! one version and absent in the next ended with the commit between them. A row is one value of one attribute; edges
//! and claims are values too, and a value that returns later is a new row. Reasons come from the log record of the
//! change.

use super::listing::{columns, cut_and_sort, keep};
use super::walk::{episode_number, page_number};
use crate::model::edge::Edge;
use crate::model::item::ItemId;
use crate::read::answer::Table;
use crate::read::cell::{Cell, Cells};
use crate::read::container_rows::page_state;
use crate::read::item_view::ItemView;
use crate::read::snapshot::Snapshot;
use crate::records::record::{Change, EffectiveRecord, Record};
use crate::state::State;
use crate::state::history::Subject;
use crate::state::reader_position::ReaderPosition;
use crate::{Error, Result};
use holotype_query::AttributeId;
use holotype_query::plan::{History, Ref};
use holotype_storage::log::Lsn;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

const COLUMNS: &[AttributeId] = &[
    AttributeId::Attribute,
    AttributeId::Value,
    AttributeId::Since,
    AttributeId::Until,
    AttributeId::Time,
    AttributeId::Because,
];

/// The mutable attributes of an item.
const OF_ITEMS: &[AttributeId] = &[
    AttributeId::Key,
    AttributeId::Status,
    AttributeId::Source,
    AttributeId::Episode,
    AttributeId::Page,
    AttributeId::Step,
    AttributeId::Time,
    AttributeId::Version,
    AttributeId::Active,
    AttributeId::Support,
    AttributeId::Trust,
    AttributeId::Utility,
    AttributeId::Credit,
    AttributeId::Conflict,
];

/// An attribute's name and value.
type AttributeValue = (&'static str, Cell);

/// A value with the commit it was valid from and the commit that ended it.
struct ValuePeriod {
    fact: AttributeValue,
    since: u64,
    until: Option<u64>,
}

pub(super) fn run(snapshot: &Snapshot, history: &History) -> Result<Table> {
    let snapshot = &snapshot.at(history.listing.as_of.as_ref())?;
    let (subject, number) = subject(snapshot, &history.of)?;
    let mut reasons = MarkReasons { snapshot, known: HashMap::new() };
    let mut rows = Vec::new();
    for run in value_periods(snapshot, subject, number)? {
        let (attribute, value) = run.fact;
        let mut row: Cells = BTreeMap::from([
            (AttributeId::Attribute, Cell::text(attribute)),
            (AttributeId::Value, value),
            (AttributeId::Since, Cell::count(run.since)),
            (AttributeId::Time, Cell::Time(snapshot.state.commit_row(run.since)?.clock)),
        ]);
        row.extend(run.until.map(|until| (AttributeId::Until, Cell::count(until))));
        if subject == Subject::Item {
            let because = reasons.of(ItemId(number), attribute, run.since)?;
            row.extend(because.map(|because| (AttributeId::Because, Cell::Text(because))));
        }
        rows.push(row);
    }
    let rows = keep(rows, &history.listing)?;
    let columns = columns(&history.listing, COLUMNS);
    Ok(cut_and_sort("history", &history.listing, &columns, rows))
}

fn subject(snapshot: &Snapshot, of: &Ref) -> Result<(Subject, u32)> {
    Ok(match of {
        Ref::Item(item) => (Subject::Item, snapshot.resolve_item(item)?.0),
        Ref::Page(key) => (Subject::Page, page_number(snapshot, key)?),
        Ref::Episode(id) => (Subject::Episode, episode_number(snapshot, id)?),
    })
}

/// All values with their periods, oldest first.
fn value_periods(snapshot: &Snapshot, subject: Subject, number: u32) -> Result<Vec<ValuePeriod>> {
    let mut state = snapshot.state.as_ref().clone();
    let made = match subject {
        Subject::Item => state.attributes(ItemId(number))?.commit,
        Subject::Page => state.commit_when(|row| row.totals.pages > number)?,
        Subject::Episode => state.commit_when(|row| row.totals.episodes > number)?,
    };
    let mut versions = Vec::new();
    for commit in state.changed_in(subject, number)?.into_iter().rev() {
        versions.push((commit, values(snapshot, &state, subject, number)?));
        state.step_back(subject, number, commit)?;
    }
    versions.push((made, values(snapshot, &state, subject, number)?));
    let mut ended: Vec<ValuePeriod> = Vec::new();
    let mut open: Vec<ValuePeriod> = Vec::new();
    for (commit, values) in versions.into_iter().rev() {
        let (still, over): (Vec<ValuePeriod>, Vec<ValuePeriod>) =
            open.into_iter().partition(|run| values.contains(&run.fact));
        ended.extend(over.into_iter().map(|run| ValuePeriod { until: Some(commit), ..run }));
        open = still;
        for fact in values {
            if !open.iter().any(|run| run.fact == fact) {
                open.push(ValuePeriod { fact, since: commit, until: None });
            }
        }
    }
    ended.extend(open);
    ended.sort_by_key(|run| (run.since, run.until.unwrap_or(u64::MAX)));
    Ok(ended)
}

/// The values of a subject in a state.
fn values(snapshot: &Snapshot, state: &State, subject: Subject, number: u32) -> Result<Vec<AttributeValue>> {
    match subject {
        Subject::Item => of_item(&snapshot.with_state(Arc::new(state.clone())), ItemId(number)),
        Subject::Page => {
            let page = state.page(number)?;
            Ok(vec![(AttributeId::State.as_str(), Cell::text(page_state(page.summarised).as_str()))])
        }
        Subject::Episode => {
            let episode = state.episode(number)?;
            let texts = [(AttributeId::Task, episode.task.clone()), (AttributeId::Version, episode.version.clone())];
            let texts = texts.into_iter().filter_map(|(name, text)| Some((name.as_str(), Cell::Text(text?))));
            Ok(texts.chain([(AttributeId::Open.as_str(), Cell::Bool(episode.open))]).collect())
        }
    }
}

fn of_item(snapshot: &Snapshot, id: ItemId) -> Result<Vec<AttributeValue>> {
    let reader_position = ReaderPosition::default();
    let view = ItemView::new(snapshot, &reader_position, id)?;
    let mut values = Vec::new();
    for id in OF_ITEMS {
        values.extend(view.attribute(*id)?.map(|cell| (id.as_str(), cell)));
    }
    for edge in Edge::ALL {
        let mut far: Vec<ItemId> = snapshot.state.edges_out(id, Some(*edge))?.into_iter().map(|end| end.far).collect();
        if edge.is_symmetric() {
            far.extend(snapshot.state.edges_in(id, Some(*edge))?.into_iter().map(|end| end.far));
        }
        for far in far {
            values.push((edge.as_str(), Cell::Text(snapshot.key_of(far)?)));
        }
    }
    let claims = snapshot.state.stated_claims_of(id)?.into_iter();
    values.extend(claims.map(|claim| ("claims", Cell::Text(format!("{} = {}", claim.name, claim.value)))));
    Ok(values)
}

/// The reasons of marks, read from the log once per commit.
struct MarkReasons<'a> {
    snapshot: &'a Snapshot,
    known: HashMap<u64, Vec<MarkReason>>,
}

/// The reason of a mark, with its item and attribute.
struct MarkReason {
    item: u32,
    attribute: &'static str,
    because: Option<String>,
}

impl MarkReasons<'_> {
    /// The reason of the commit's last mark of this attribute.
    fn of(&mut self, item: ItemId, attribute: &str, commit: u64) -> Result<Option<String>> {
        if !matches!(attribute, "status" | "utility" | "credit" | "active") {
            return Ok(None);
        }
        if !self.known.contains_key(&commit) {
            let marks = self.read(commit)?;
            self.known.insert(commit, marks);
        }
        let marks = self.known.get(&commit).into_iter().flatten();
        let found = marks.rev().find(|mark| mark.item == item.0 && mark.attribute == attribute);
        Ok(found.and_then(|mark| mark.because.clone()))
    }

    fn read(&self, commit: u64) -> Result<Vec<MarkReason>> {
        // Truncation removed the marks of earlier commits together with their reasons.
        if self.snapshot.core.log.floor().is_some_and(|floor| commit <= floor.head.commit.0) {
            return Ok(Vec::new());
        }
        let from = self.snapshot.state.commit_row(commit)?.from;
        let Some(transaction) = self.snapshot.core.log.scan(Lsn(from))?.next().transpose()? else {
            return Err(Error::Corrupt { what: format!("no transaction stands after log position {from}") });
        };
        let mut marks = Vec::new();
        for record in &transaction.records {
            if let Some(EffectiveRecord { record: Record::Mark(mark), .. }) = Record::effective(record)? {
                let attribute = match mark.change {
                    Change::Status(_) => AttributeId::Status.as_str(),
                    Change::Utility(..) => AttributeId::Utility.as_str(),
                    Change::Credit(..) => AttributeId::Credit.as_str(),
                    Change::Active(_) => AttributeId::Active.as_str(),
                };
                marks.push(MarkReason { item: mark.item, attribute, because: mark.because });
            }
        }
        Ok(marks)
    }
}
