//! `history of`: what held of an item, page or episode, since which commit and until which.
//!
//! The thing is taken back change by change, from the newest to when it was made; what is there in one version and not in the
//! next ends with the commit between them. A row is one value of one attribute (an edge and a claim are values too), so what
//! comes back later is another row. The reason stands in the record that made the change, and is read from the log.

use super::listing::{columns, cut_and_sort, keep};
use super::walk::{episode_number, page_number};
use crate::answer::Table;
use crate::cell::{Cell, Cells};
use crate::edge::Edge;
use crate::history::Subject;
use crate::item::ItemId;
use crate::item_view::ItemView;
use crate::reader::Standing;
use crate::record::{Change, Record, Told};
use crate::snapshot::Snapshot;
use crate::state::State;
use crate::{Error, Result};
use holotype_query::ast::{History, Ref};
use holotype_storage::log::Lsn;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

const COLUMNS: &[&str] = &["attribute", "value", "since", "until", "time", "because"];

/// The attributes of an item that may change.
const OF_ITEMS: &[&str] = &[
    "key", "status", "source", "episode", "page", "step", "time", "version", "active", "support", "trust", "utility",
    "conflict",
];

/// A value of an attribute.
type Fact = (&'static str, Cell);

/// A value with the commit from which it held and the one that ended it.
struct Run {
    fact: Fact,
    since: u64,
    until: Option<u64>,
}

pub(super) fn run(snapshot: &Snapshot, history: &History) -> Result<Table> {
    let snapshot = &snapshot.at(history.listing.as_of.as_ref())?;
    let (subject, number) = subject(snapshot, &history.of.node)?;
    let mut reasons = Reasons { snapshot, known: HashMap::new() };
    let mut rows = Vec::new();
    for run in runs(snapshot, subject, number)? {
        let (attribute, value) = run.fact;
        let mut row: Cells = BTreeMap::from([
            ("attribute", Cell::text(attribute)),
            ("value", value),
            ("since", Cell::count(run.since)),
            ("time", Cell::Time(snapshot.state.commit_row(run.since)?.clock)),
        ]);
        row.extend(run.until.map(|until| ("until", Cell::count(until))));
        if subject == Subject::Item {
            let because = reasons.of(ItemId(number), attribute, run.since)?;
            row.extend(because.map(|because| ("because", Cell::Text(because))));
        }
        rows.push(row);
    }
    let rows = keep(rows, &history.listing)?;
    let columns = columns(&history.listing, COLUMNS);
    Ok(cut_and_sort("history", &history.listing, columns, rows))
}

fn subject(snapshot: &Snapshot, of: &Ref) -> Result<(Subject, u32)> {
    Ok(match of {
        Ref::Item(item) => (Subject::Item, snapshot.resolve_item(item.bound())?.0),
        Ref::Page(key) => (Subject::Page, page_number(snapshot, key.bound())?),
        Ref::Episode(id) => (Subject::Episode, episode_number(snapshot, id.bound())?),
    })
}

/// Every value with its time, oldest first.
fn runs(snapshot: &Snapshot, subject: Subject, number: u32) -> Result<Vec<Run>> {
    let mut state = snapshot.state.as_ref().clone();
    let made = match subject {
        Subject::Item => state.attributes(ItemId(number))?.commit,
        Subject::Page => state.commit_when(|row| row.totals.pages > number)?,
        Subject::Episode => state.commit_when(|row| row.totals.episodes > number)?,
    };
    let mut versions = Vec::new();
    for commit in state.changed_in(subject, number)?.into_iter().rev() {
        versions.push((commit, facts(snapshot, &state, subject, number)?));
        state.step_back(subject, number, commit)?;
    }
    versions.push((made, facts(snapshot, &state, subject, number)?));
    let mut ended: Vec<Run> = Vec::new();
    let mut open: Vec<Run> = Vec::new();
    for (commit, facts) in versions.into_iter().rev() {
        let (still, over): (Vec<Run>, Vec<Run>) = open.into_iter().partition(|run| facts.contains(&run.fact));
        ended.extend(over.into_iter().map(|run| Run { until: Some(commit), ..run }));
        open = still;
        for fact in facts {
            if !open.iter().any(|run| run.fact == fact) {
                open.push(Run { fact, since: commit, until: None });
            }
        }
    }
    ended.extend(open);
    ended.sort_by_key(|run| (run.since, run.until.unwrap_or(u64::MAX)));
    Ok(ended)
}

/// What holds of a thing in a state.
fn facts(snapshot: &Snapshot, state: &State, subject: Subject, number: u32) -> Result<Vec<Fact>> {
    match subject {
        Subject::Item => of_item(&snapshot.with_state(Arc::new(state.clone())), ItemId(number)),
        Subject::Page => {
            let page = state.page(number)?;
            Ok(vec![("state", Cell::text(if page.summarised { "summarised" } else { "unsummarised" }))])
        }
        Subject::Episode => {
            let episode = state.episode(number)?;
            let texts = [("task", episode.task.clone()), ("version", episode.version.clone())];
            let texts = texts.into_iter().filter_map(|(name, text)| Some((name, Cell::Text(text?))));
            Ok(texts.chain([("open", Cell::Bool(episode.open))]).collect())
        }
    }
}

fn of_item(snapshot: &Snapshot, id: ItemId) -> Result<Vec<Fact>> {
    let standing = Standing::default();
    let view = ItemView::new(snapshot, &standing, id)?;
    let mut facts = Vec::new();
    for name in OF_ITEMS {
        facts.extend(view.named(name)?.map(|cell| (*name, cell)));
    }
    for edge in Edge::ALL {
        let mut far: Vec<ItemId> = snapshot.state.edges_out(id, Some(*edge))?.into_iter().map(|end| end.far).collect();
        if edge.is_symmetric() {
            far.extend(snapshot.state.edges_in(id, Some(*edge))?.into_iter().map(|end| end.far));
        }
        for far in far {
            facts.push((edge.as_str(), Cell::Text(snapshot.key_of(far)?)));
        }
    }
    let claims = snapshot.state.claims_of(id)?.into_iter();
    facts.extend(claims.map(|claim| ("claims", Cell::Text(format!("{} = {}", claim.name, claim.value)))));
    Ok(facts)
}

/// Why items were changed, from the records of the log; the records of one commit are read once.
struct Reasons<'a> {
    snapshot: &'a Snapshot,
    known: HashMap<u64, Vec<Marked>>,
}

/// A mark: of which item, of which attribute, and why.
struct Marked {
    item: u32,
    attribute: &'static str,
    because: Option<String>,
}

impl Reasons<'_> {
    /// The reason stated with the last mark of that sort in a commit.
    fn of(&mut self, item: ItemId, attribute: &str, commit: u64) -> Result<Option<String>> {
        if !matches!(attribute, "status" | "utility" | "active") {
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

    fn read(&self, commit: u64) -> Result<Vec<Marked>> {
        // The reasons given before went with the log that held them.
        if self.snapshot.inner.log.floor().is_some_and(|floor| commit <= floor.head.commit.0) {
            return Ok(Vec::new());
        }
        let from = self.snapshot.state.commit_row(commit)?.from;
        let Some(transaction) = self.snapshot.inner.log.scan(Lsn(from))?.next().transpose()? else {
            return Err(Error::Corrupt { what: format!("no transaction stands after log position {from}") });
        };
        let mut marks = Vec::new();
        for record in &transaction.records {
            if let Some(Told { record: Record::Mark(mark), .. }) = Record::told(record)? {
                let attribute = match mark.change {
                    Change::Status(_) => "status",
                    Change::Utility(..) => "utility",
                    Change::Active(_) => "active",
                };
                marks.push(Marked { item: mark.item, attribute, because: mark.because });
            }
        }
        Ok(marks)
    }
}
