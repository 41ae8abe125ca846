//! One batch: each entry compared with the database and with the batch so far, then written.

use crate::ImportError;
use crate::entry::{Fact, Trace, hash, key};
use crate::evidence;
use crate::intake::Report;
use crate::writer::Entry;
use holotype::{
    Durability, Edge, EpisodeChange, Error, Holotype, Item, ItemId, Kind, Layer, MAX_KEY_LEN, Mark, NewRecall,
    NewTrace, Pointer, Snapshot, Source, Space, Status, Target, Transaction,
};
use std::collections::HashMap;
use std::rc::Rc;

/// The name of a space that is defined for the vectors of a table.
const UNNAMED_MODEL: &str = "unnamed";
/// The field with what a trace was read from.
const RAW: &str = "raw";

/// File and line.
pub(crate) type Place = (Rc<str>, u64);

/// An open batch; a dry run has no transaction.
pub(crate) struct Batch<'b, 'd> {
    transaction: Option<Transaction<'d>>,
    snapshot: Snapshot,
    /// Hashes of the contents that this batch, or a dry run, has under each key.
    staged: HashMap<String, String>,
    fresh: Vec<(NewTrace, bool, Place)>,
    current: &'b mut HashMap<String, String>,
    dry: &'b mut HashMap<String, String>,
    report: &'b mut Report,
    place: Place,
    /// The dimension of the space, if there is one.
    dim: Option<usize>,
}

/// The holder of a key in the database or the batch.
enum Found {
    Nothing,
    /// The same content; the item, if it is committed.
    Same(Option<Box<Item>>),
    Other(Option<Box<Item>>),
}

impl<'b, 'd> Batch<'b, 'd> {
    pub(crate) fn begin(
        database: &'d Holotype,
        is_dry: bool,
        current: &'b mut HashMap<String, String>,
        dry: &'b mut HashMap<String, String>,
        report: &'b mut Report,
    ) -> Result<Self, ImportError> {
        let transaction = if is_dry { None } else { Some(database.begin()?) };
        // Taken while the writer is held: nothing is newer.
        let snapshot = database.snapshot();
        let place = (Rc::from(""), 0);
        let staged = if is_dry { std::mem::take(dry) } else { HashMap::new() };
        let dim = snapshot.space()?.map(|space| space.dim);
        Ok(Batch { transaction, snapshot, staged, fresh: Vec::new(), current, dry, report, place, dim })
    }

    /// Takes one entry; one that the database refuses is reported.
    pub(crate) fn take(&mut self, entry: Entry, place: Place) -> Result<(), ImportError> {
        self.place = place;
        let taken = match entry {
            Entry::Episode { id, task, version } => self.episode(&id, task, version),
            Entry::Trace(trace) => self.trace(*trace),
            Entry::Fact(fact) => self.fact(*fact),
        };
        self.settle(taken)
    }

    pub(crate) fn commit(mut self, durability: Durability) -> Result<(), ImportError> {
        self.record_fresh()?;
        match self.transaction.take() {
            None => *self.dry = std::mem::take(&mut self.staged),
            Some(transaction) if transaction.is_empty() => {}
            Some(transaction) => {
                transaction.commit(durability)?;
            }
        }
        Ok(())
    }

    /// Reports an error that concerns one item, and passes on any other.
    fn settle(&mut self, done: Result<(), Error>) -> Result<(), ImportError> {
        match done {
            Err(error) if is_of_item(&error) => {
                self.report.skipped += 1;
                self.report.add_problem(&self.place.0, self.place.1, error.to_string());
                Ok(())
            }
            done => Ok(done?),
        }
    }

    fn episode(&mut self, id: &str, task: Option<String>, version: Option<String>) -> Result<(), Error> {
        let Some(transaction) = &mut self.transaction else { return Ok(()) };
        transaction.episode(&name(id), EpisodeChange { task, version, open: None })
    }

    fn look(&self, key: &str, hash: &str, content: &str, is_beside: bool) -> Result<Found, Error> {
        if let Some(staged) = self.staged.get(key) {
            return Ok(if staged == hash { Found::Same(None) } else { Found::Other(None) });
        }
        let Some(item) = self.snapshot.get(key)? else { return Ok(Found::Nothing) };
        let is_same = match is_beside {
            true => item.content.field_bytes(RAW) == Some(content.as_bytes()),
            false => item.content.text() == content,
        };
        // An item that was forgotten stays so.
        let is_same = is_same || item.attributes.redacted;
        Ok(if is_same { Found::Same(Some(Box::new(item))) } else { Found::Other(Some(Box::new(item))) })
    }

    // ---- traces ----

    fn trace(&mut self, trace: Trace) -> Result<(), Error> {
        if let Some(vector) = &trace.vector {
            self.check_dimension(vector.len())?;
        }
        let content = if trace.is_beside { trace.raw.as_deref().unwrap_or_default() } else { &trace.text };
        let hash = hash(content);
        match self.look(&trace.key, &hash, content, trace.is_beside)? {
            Found::Nothing => {
                self.staged.insert(trace.key.clone(), hash);
                self.stage(trace);
                Ok(())
            }
            Found::Same(item) => self.known(&trace, item.as_deref()),
            Found::Other(Some(item)) if item.attributes.kind.layer() != Layer::Trace => Err(Error::Invalid(format!(
                "got the key {:?} of a {}, expected a trace",
                trace.key, item.attributes.kind
            ))),
            Found::Other(_) => self.version(trace, &hash),
        }
    }

    /// Defines the space of the vectors of a table where there is none, and refuses those of another dimension.
    fn check_dimension(&mut self, given: usize) -> Result<(), Error> {
        match self.dim {
            Some(dim) if dim == given => return Ok(()),
            Some(dim) => return Err(Error::Vector(format!("got a vector of {given} numbers, expected {dim}"))),
            None => self.dim = Some(given),
        }
        match &mut self.transaction {
            Some(transaction) => transaction.define_space(&Space::new(UNNAMED_MODEL, given)),
            None => Ok(()),
        }
    }

    /// A trace that is known; an outcome that came later is marked.
    fn known(&mut self, trace: &Trace, item: Option<&Item>) -> Result<(), Error> {
        let later = trace.status.filter(|status| *status != Status::Unknown);
        if let (Some(item), Some(status)) = (item, later)
            && item.attributes.status == Some(Status::Unknown)
            && !item.attributes.redacted
        {
            if let Some(transaction) = &mut self.transaction {
                transaction.mark(item.id, Mark::Status(status), Some("imported later".to_owned()))?;
            }
            self.report.written += 1;
            return Ok(());
        }
        self.report.known += u64::from(!trace.is_beside);
        Ok(())
    }

    fn stage(&mut self, trace: Trace) {
        let is_beside = trace.is_beside;
        let place = self.place.clone();
        self.fresh.push((new_trace(trace), is_beside, place));
    }

    /// Other text under a known key: a trace of its own, which supersedes the last version.
    fn version(&mut self, mut trace: Trace, hash: &str) -> Result<(), Error> {
        let base = trace.key.clone();
        trace.key = format!("{base}@{}", &hash[..8]);
        let content = if trace.is_beside { trace.raw.clone().unwrap_or_default() } else { trace.text.clone() };
        let found = self.look(&trace.key, hash, &content, trace.is_beside)?;
        if !matches!(found, Found::Nothing) {
            let is_active = match &found {
                Found::Same(Some(item)) => item.attributes.active,
                _ => true,
            };
            if is_active {
                self.current.insert(base, trace.key);
            }
            self.report.known += u64::from(!trace.is_beside);
            return Ok(());
        }
        self.record_fresh_items()?;
        if let Some(transaction) = &mut self.transaction {
            let before = self.current.get(&base).cloned().unwrap_or_else(|| base.clone());
            let mut old = transaction.find(&Target::Key(before))?;
            while old.0 < self.snapshot.len()
                && let Some(newer) = self.snapshot.linking(old, Edge::Supersedes)?.into_iter().max()
                && newer > old
            {
                old = newer;
            }
            let is_beside = trace.is_beside;
            let new = transaction.record(new_trace(trace.clone()))?;
            transaction.link(new, Edge::Supersedes, old)?;
            if is_beside {
                transaction.deactivate(new, None, Some("kept beside a fact".to_owned()))?;
            }
        }
        self.report.written += u64::from(!trace.is_beside);
        self.report.versions += u64::from(!trace.is_beside);
        self.staged.insert(trace.key.clone(), hash.to_owned());
        self.current.insert(base, trace.key);
        Ok(())
    }

    fn record_fresh(&mut self) -> Result<(), ImportError> {
        let recorded = self.record_fresh_items();
        self.settle(recorded)
    }

    /// Records the traces that wait; of those that are refused each one alone.
    fn record_fresh_items(&mut self) -> Result<(), Error> {
        let fresh = std::mem::take(&mut self.fresh);
        let counted = fresh.iter().filter(|(_, is_beside, _)| !is_beside).count() as u64;
        let Some(transaction) = self.transaction.as_mut().filter(|_| !fresh.is_empty()) else {
            self.report.written += counted;
            return Ok(());
        };
        match transaction.record_all(fresh.iter().map(|(trace, ..)| trace.clone())) {
            Ok(ids) => {
                self.report.written += counted;
                for (id, _) in ids.into_iter().zip(&fresh).filter(|(_, (_, is_beside, _))| *is_beside) {
                    transaction.deactivate(id, None, Some("kept beside a fact".to_owned()))?;
                }
                Ok(())
            }
            Err(error) if is_of_item(&error) => self.record_each(fresh),
            Err(error) => Err(error),
        }
    }

    fn record_each(&mut self, fresh: Vec<(NewTrace, bool, Place)>) -> Result<(), Error> {
        for (trace, is_beside, place) in fresh {
            let Some(transaction) = &mut self.transaction else { return Ok(()) };
            match transaction.record(trace) {
                Ok(_) if !is_beside => self.report.written += 1,
                Ok(id) => transaction.deactivate(id, None, Some("kept beside a fact".to_owned()))?,
                Err(error) if is_of_item(&error) => {
                    self.report.skipped += 1;
                    self.report.add_problem(&place.0, place.1, error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    // ---- facts ----

    fn fact(&mut self, fact: Fact) -> Result<(), Error> {
        self.record_fresh_items()?;
        let hash = hash(&fact.text);
        match self.look(&fact.key, &hash, &fact.text, false)? {
            Found::Nothing => self.remember(&fact)?,
            Found::Same(item) if !self.has_moved(&fact, item.as_deref())? => self.report.known += 1,
            Found::Other(Some(item)) if item.attributes.kind.layer() == Layer::Trace => {
                let kind = item.attributes.kind;
                return Err(Error::Invalid(format!(
                    "got the key {:?} of a {kind}, expected a {}",
                    fact.key, fact.kind
                )));
            }
            Found::Other(Some(item)) if item.attributes.time.zip(fact.time).is_some_and(|(old, new)| new < old) => {
                self.report.known += 1;
            }
            Found::Same(_) | Found::Other(_) => self.update(&fact)?,
        }
        self.staged.insert(fact.key.clone(), hash);
        self.keep_raw(fact)
    }

    /// True if the trace that says a known fact has a new version, which the fact does not cite yet.
    fn has_moved(&mut self, fact: &Fact, item: Option<&Item>) -> Result<bool, Error> {
        let (Some((base, ..)), Some(item)) = (&fact.evidence, item) else { return Ok(false) };
        let Some(version) = self.current.get(base).cloned() else { return Ok(false) };
        if item.attributes.redacted {
            return Ok(false);
        }
        let Some(transaction) = &self.transaction else { return Ok(true) };
        let cited = transaction.find(&Target::Key(version))?;
        Ok(!self.snapshot.linked(item.id, Edge::Cites)?.contains(&cited))
    }

    fn remember(&mut self, fact: &Fact) -> Result<(), Error> {
        let recall = self.new_recall(fact)?.key(fact.key.clone());
        if let Some(transaction) = &mut self.transaction {
            let id = transaction.remember(recall)?;
            self.mention(id, fact)?;
        }
        self.report.written += 1;
        Ok(())
    }

    fn update(&mut self, fact: &Fact) -> Result<(), Error> {
        let recall = self.new_recall(fact)?;
        if let Some(transaction) = &mut self.transaction {
            let id = transaction.update(&fact.key, recall)?;
            self.mention(id, fact)?;
        }
        self.report.written += 1;
        self.report.versions += 1;
        Ok(())
    }

    /// The recall of a fact, which cites the words that were found, or is marked ungrounded.
    fn new_recall(&mut self, fact: &Fact) -> Result<NewRecall, Error> {
        let mut recall = NewRecall::new(fact.kind, fact.text.clone());
        if let Some(episode) = &fact.episode {
            recall = recall.episode(name(episode));
        }
        if let Some(time) = fact.time {
            recall = recall.time(time);
        }
        let found = match &fact.evidence {
            Some((base, start, end)) => Some((self.current.get(base).unwrap_or(base).clone(), *start, *end)),
            None => evidence::find(&self.snapshot, &fact.quote)?,
        };
        Ok(match found {
            Some((key, start, end)) => {
                self.report.verified += 1;
                recall.from(Pointer::to_key(key).bytes(start, end))
            }
            None => recall.source(Source::Document).ungrounded(),
        })
    }

    fn mention(&mut self, id: ItemId, fact: &Fact) -> Result<(), Error> {
        let Some(transaction) = &mut self.transaction else { return Ok(()) };
        for mentioned in &fact.mentions {
            let key = key(&["concept", mentioned]);
            let concept = match transaction.find(&Target::Key(key.clone())) {
                Ok(found) if transaction.attributes(found)?.kind == Kind::Concept => found,
                Ok(_) => continue,
                Err(Error::Missing { .. }) => {
                    transaction.remember(NewRecall::new(Kind::Concept, mentioned.clone()).key(key))?
                }
                Err(error) => return Err(error),
            };
            transaction.link(id, Edge::Mentions, concept)?;
        }
        Ok(())
    }

    /// Keeps what a fact was read from as an inactive trace beside it.
    fn keep_raw(&mut self, fact: Fact) -> Result<(), Error> {
        let Some(raw) = fact.raw else { return Ok(()) };
        let episode = fact.episode.unwrap_or_else(|| fact.key.split('/').next().unwrap_or("imported").to_owned());
        let mut beside = Trace::new(Kind::Observation, episode, format!("{}/raw", fact.key), "");
        beside.time = fact.time;
        beside.raw = Some(raw);
        beside.is_beside = true;
        self.trace(beside)
    }
}

/// True for an error that concerns one item, and not the database.
fn is_of_item(error: &Error) -> bool {
    matches!(
        error,
        Error::DuplicateKey { .. }
            | Error::DuplicateTrace { .. }
            | Error::Invalid(_)
            | Error::Vector(_)
            | Error::UnresolvedPointer { .. }
            | Error::Missing { .. }
    )
}

/// A name of an episode as the database takes it.
fn name(id: &str) -> String {
    match id.is_empty() || id.len() > MAX_KEY_LEN || id.contains('\0') {
        true => format!("imported/{}", hash(id)),
        false => id.to_owned(),
    }
}

fn new_trace(trace: Trace) -> NewTrace {
    let mut new = NewTrace::new(trace.kind, name(&trace.episode), trace.text).key(trace.key).source(trace.source);
    new = match trace.time {
        Some(time) => new.time(time),
        None => new.without_time(),
    };
    if let Some(status) = trace.status {
        new = new.status(status);
    }
    if let Some(speaker) = trace.speaker {
        new = new.speaker(speaker);
    }
    if let Some(tool) = trace.tool {
        new = new.tool(tool);
    }
    for (name, value) in trace.fields {
        new = new.field(name, value);
    }
    if let Some(raw) = trace.raw {
        new = new.kept_field(RAW, raw);
    }
    match trace.vector {
        Some(vector) => new.vector(vector),
        None => new,
    }
}
