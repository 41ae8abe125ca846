//! The reads, writes, consolidations and prunings of the log, with a verdict on each read (HELM A.6).

use crate::model::edge::Edge;
use crate::model::item::{ItemId, Layer, Status};
use crate::read::snapshot::Snapshot;
use crate::records::record::{ItemRecord, PointerTarget, Record, RowRecord};
use crate::state::conflicts::Conflicts;
use crate::state::pages;
use crate::state::reader_position::{Reader, ReaderPosition, Window};
use crate::statements::events::transactions_from;
use crate::statements::prune::budget::BECAUSE;
use crate::write::transaction::uses::is_use;
use crate::{Error, Result};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The start of the keys that consolidation gives.
const CONSOLIDATED: &str = "claim:";

/// When something happened; both are `None` where nobody knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    pub(super) episode: Option<u32>,
    pub(super) step: Option<u64>,
}

/// An answer that was logged.
pub(super) struct Read {
    pub(super) at: Moment,
    pub(super) items: Vec<ItemId>,
    /// Retrieved tokens.
    pub(super) tokens: u64,
    /// True for each of stale, failed and contradicted that a row was; `None` if its commit is no longer kept.
    pub(super) flaws: Option<[bool; 3]>,
    /// The deepest layer of its rows; `None` without rows.
    pub(super) deepest: Option<Layer>,
    /// True if a trace among its rows has a recall above it, and that a theme.
    pub(super) is_full: bool,
}

/// The history of the audited episodes, from the log.
#[derive(Default)]
pub(super) struct History {
    /// The audited episodes; `None` for all.
    wanted: Option<BTreeSet<u32>>,
    pub(super) reads: Vec<Read>,
    pub(super) writes: Vec<Moment>,
    pub(super) consolidations: Vec<Moment>,
    pub(super) prunings: Vec<Moment>,
    /// The items that answers used.
    pub(super) used: BTreeSet<ItemId>,
    /// When each item happened: of a recall, by the traces it was made from, whatever became of them since.
    moments: HashMap<u32, Moment>,
    /// The state of the commit read last.
    past: Option<Snapshot>,
}

/// Reads the log up to a snapshot.
pub(super) fn scan(snapshot: &Snapshot, wanted: Option<BTreeSet<u32>>) -> Result<History> {
    let mut history = History { wanted, ..History::default() };
    if snapshot.commit() == 0 {
        return Ok(history);
    }
    for transaction in transactions_from(snapshot, 1)? {
        let transaction = transaction?;
        if transaction.number.0 > snapshot.commit() {
            break;
        }
        snapshot.tick()?;
        let mut records = Vec::with_capacity(transaction.records.len());
        for record in &transaction.records {
            records.extend(Record::effective(record)?.map(|effective| effective.record));
        }
        let mut done = Done::of(&records);
        for record in &records {
            snapshot.tick()?;
            history.record(snapshot, record, &mut done)?;
        }
        history.consolidations.extend(done.consolidated);
        history.prunings.extend(done.pruned);
    }
    history.past = None;
    Ok(history)
}

/// The consolidations and prunings of a transaction: one operation of each sort for each episode.
#[derive(Default)]
struct Done {
    /// The items of its consolidations.
    made: HashSet<u32>,
    consolidated: BTreeSet<Moment>,
    pruned: BTreeSet<Moment>,
}

impl Done {
    /// Finds the recalls that consolidation made: with a key of its own, or taking over that of one they supersede.
    fn of(records: &[Record]) -> Done {
        let is_own = |key: &str| key.starts_with(CONSOLIDATED);
        let made = records.iter().filter_map(|record| match record {
            Record::Item(item) if item.key.as_deref().is_some_and(is_own) => Some(item.id),
            Record::Rekey(rekey) if is_own(&rekey.key) => Some(rekey.item),
            _ => None,
        });
        Done { made: made.collect(), ..Done::default() }
    }
}

/// Adds an operation, once for an episode.
fn add(done: &mut BTreeSet<Moment>, at: Moment) {
    if !done.iter().any(|other| other.episode == at.episode) {
        done.insert(at);
    }
}

impl Read {
    /// True if a row had any flaw; `None` if nobody knows.
    pub(super) fn is_invalid(&self) -> Option<bool> {
        self.flaws.map(|flaws| flaws.contains(&true))
    }
}

impl History {
    pub(super) fn is_wanted(&self, episode: Option<u32>) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| episode.is_some_and(|episode| wanted.contains(&episode)))
    }

    fn record(&mut self, snapshot: &Snapshot, record: &Record, done: &mut Done) -> Result<()> {
        match record {
            Record::Item(item) if pages::is_event(item.tool.as_deref()) => {}
            Record::Item(item) => {
                let at = self.moment_of_record(snapshot, item)?;
                self.moments.insert(item.id, at);
                if !self.is_wanted(at.episode) {
                } else if done.made.contains(&item.id) {
                    add(&mut done.consolidated, at);
                } else {
                    self.writes.push(at);
                }
            }
            Record::Mark(mark) if mark.because.as_ref().is_some_and(|because| because.starts_with(BECAUSE)) => {
                let at = self.moment(snapshot, mark.item)?;
                if self.is_wanted(at.episode) {
                    add(&mut done.pruned, at);
                }
            }
            Record::Mark(mark) if is_use(mark) => drop(self.used.insert(ItemId(mark.item))),
            Record::Receipt(receipt) => {
                let (episode, version) = (receipt.episode.clone(), receipt.version.clone());
                let reader = Reader { episode, step: receipt.step, time: receipt.time, version };
                self.read(snapshot, receipt.commit, &receipt.rows, &reader)?;
            }
            Record::Read(read) => {
                let (episode, version) = (read.episode.clone(), read.version.clone());
                let reader = Reader { episode, step: read.step, time: read.time, version };
                self.read(snapshot, read.commit, &read.rows, &reader)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn moment(&self, snapshot: &Snapshot, item: u32) -> Result<Moment> {
        if let Some(known) = self.moments.get(&item) {
            return Ok(*known);
        }
        let attributes = snapshot.state.attributes(ItemId(item))?;
        Ok(Moment { episode: attributes.episode, step: attributes.step })
    }

    /// As stated, else as of the newest item that it was made from.
    fn moment_of_record(&self, snapshot: &Snapshot, item: &ItemRecord) -> Result<Moment> {
        let mut newest = Moment { episode: item.episode, step: item.step };
        for pointer in &item.from {
            let PointerTarget::Item(source) = pointer.target else { return self.moment(snapshot, item.id) };
            let at = self.moment(snapshot, source)?;
            newest.episode = newest.episode.or(at.episode);
            if item.step.is_none() && newest.episode == at.episode {
                newest.step = newest.step.max(at.step);
            }
        }
        Ok(newest)
    }

    fn read(&mut self, snapshot: &Snapshot, commit: u64, rows: &[RowRecord], reader: &Reader) -> Result<()> {
        let items: Vec<ItemId> = rows.iter().map(|row| ItemId(row.item)).collect();
        // A reader of several episodes is counted where its first row is.
        let episode = match &reader.episode {
            Some(id) => snapshot.state.episode_number(id)?,
            None => items.first().map(|id| self.moment(snapshot, id.0)).transpose()?.and_then(|first| first.episode),
        };
        if !self.is_wanted(episode) {
            return Ok(());
        }
        if self.past.as_ref().is_none_or(|past| past.commit() != commit) {
            self.past = match snapshot.as_of(commit) {
                Ok(past) => Some(past),
                Err(Error::BeforeHistory { .. }) => None,
                Err(error) => return Err(error),
            };
        }
        let mut read =
            Read { at: Moment { episode, step: None }, items, tokens: 0, flaws: None, deepest: None, is_full: false };
        for id in &read.items {
            let attributes = snapshot.state.attributes(*id)?;
            read.tokens += u64::from(attributes.tokens);
            read.deepest = read.deepest.into_iter().chain([attributes.layer()]).min_by_key(|layer| *layer as u8);
        }
        let now = snapshot.core.now();
        if let Some(past) = &self.past {
            let newest = ReaderPosition::find(&past.state, Some(episode.as_slice()), &Reader::default(), now)?;
            read.at.step = reader.step.or(newest.reader.step);
            let position = ReaderPosition::find(&past.state, None, reader, now)?;
            read.flaws = Some(flaws(past, &position, &read.items)?);
            read.is_full = reaches_down(past, &read.items)?;
        }
        self.reads.push(read);
        Ok(())
    }
}

/// True for each of stale, failed and contradicted that a row was for the reader (HELM A.6).
pub(super) fn flaws(past: &Snapshot, position: &ReaderPosition, items: &[ItemId]) -> Result<[bool; 3]> {
    let state = &past.state;
    let window = Window::default_of(state)?;
    let conflicts = Conflicts::new(state, position);
    let mut flaws = [false; 3];
    for id in items.iter().filter(|id| id.0 < past.len()) {
        let attributes = state.attributes(*id)?;
        flaws[0] |= position.is_stale(state, &attributes, &window)?;
        flaws[1] |= attributes.status == Some(Status::Failed);
        flaws[2] |= conflicts.leader_over(*id)?.is_some();
    }
    Ok(flaws)
}

/// True if a trace among these items has a recall above it that a theme leads to: M(3), M(2), M(1).
fn reaches_down(past: &Snapshot, items: &[ItemId]) -> Result<bool> {
    let state = &past.state;
    let layer = |id: ItemId| Ok::<_, Error>(state.attributes(id)?.layer());
    for id in items.iter().filter(|id| id.0 < past.len()) {
        if layer(*id)? != Layer::Trace {
            continue;
        }
        for above in state.dependents(*id)? {
            if layer(above)? != Layer::Recall {
                continue;
            }
            let routes = |edge: Edge| matches!(edge, Edge::Parent | Edge::Mentions | Edge::Solves);
            let mut themes: Vec<ItemId> = state.dependents(above)?;
            themes.extend(state.edges_out(above, None)?.iter().filter(|end| routes(end.edge)).map(|end| end.far));
            for theme in themes {
                if layer(theme)? == Layer::Theme {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}
