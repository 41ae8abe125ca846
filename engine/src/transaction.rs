//! Write transactions: validated here, applied to a copy of the state, appended to the log as one.
//!
//! One transaction at a time is built; it holds the writer's lock from [`Holotype::begin`](crate::Holotype::begin) to its
//! end, so what it validates against is the newest appended state, and it sees its own writes. `commit` appends its
//! records and gives the lock up before it waits for the disk: transactions that arrive meanwhile share the next sync.
//!
//! Invariants:
//! 1. Nothing reaches the log that [`State::apply`] would refuse.
//! 2. A transaction that is dropped leaves no trace.
//! 3. A method that fails leaves the transaction as it was before the call.

mod episodes;
mod erasing;
mod links;
mod receipts;

use crate::apply::Place;
use crate::content::{CHUNK_LEN, Content, ContentReader, OwnItems, split_chunks};
use crate::database::{Inner, Writer};
use crate::edge::Edge;
use crate::item::{Attributes, ItemId, Layer, Source, Status};
use crate::new_item::{NewRecall, NewTrace};
use crate::options::Durability;
use crate::pages::{self, OpenPage};
use crate::provenance::{self, Pointer, Target};
use crate::record::{
    Field, FieldValue, ItemRecord, LinkRecord, PointerRecord, PointerTarget, Record, RekeyRecord, SettingRecord,
    SpaceRecord,
};
use crate::settings;
use crate::snapshot::Snapshot;
use crate::space::Space;
use crate::state::State;
use crate::{Error, Result};
use holotype_storage::log::{Appended, Draft, Erase};
use std::sync::{Arc, MutexGuard};

/// The longest key a caller may give, in bytes.
pub const MAX_KEY_LEN: usize = 512;

/// What a committed transaction is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// Its number, counted from 1.
    pub number: u64,
    /// The log position after it.
    pub position: u64,
    /// Its clock, in microseconds since the epoch.
    pub time: i64,
}

/// What a mark says of an item.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mark {
    /// How it went.
    Status(Status),
    /// Its utility, with the number of rollouts it is the mean of.
    Utility(f32, u32),
    /// No longer in use (soft delete).
    Inactive,
}

/// How an episode is opened, changed or closed; what is `None` stays as it was.
#[derive(Debug, Clone, Default)]
pub struct EpisodeChange {
    /// What the episode is about.
    pub task: Option<String>,
    /// The version of task, environment or tool schema.
    pub version: Option<String>,
    /// Open or closed.
    pub open: Option<bool>,
}

/// A write transaction.
pub struct Transaction<'db> {
    inner: &'db Arc<Inner>,
    writer: MutexGuard<'db, Writer>,
    state: State,
    records: Vec<Record>,
    /// The same records as they will stand in the log.
    draft: Draft,
    own: OwnItems,
    /// The open page that the last trace joined, as far as its hash goes: with it, closing the page reads none of its traces.
    page: Option<OpenPage>,
    bytes: u64,
    time: i64,
    /// Keys that begin with `~` are the engine's own; they come back with an import of an export.
    takes_engine_keys: bool,
    /// Records of the log that this transaction erases.
    erase: Vec<Erase>,
}

/// A transaction as it was, all of it.
pub(crate) struct Copied {
    state: State,
    records: usize,
    own: OwnItems,
    bytes: u64,
    erase: usize,
}

impl<'db> Transaction<'db> {
    pub(crate) fn new(inner: &'db Arc<Inner>, mut writer: MutexGuard<'db, Writer>) -> Self {
        let state = writer.state.as_ref().clone();
        let page = writer.open_page.take();
        let draft = std::mem::take(&mut writer.draft);
        let time = inner.now().max(state.meta.clock);
        Transaction {
            inner,
            writer,
            state,
            records: Vec::new(),
            draft,
            own: OwnItems::new(),
            page,
            bytes: 0,
            time,
            takes_engine_keys: false,
            erase: Vec::new(),
        }
    }

    /// The number this transaction will have.
    pub fn number(&self) -> u64 {
        self.state.meta.commit + 1
    }

    /// How many records it holds so far.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether nothing was written yet.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// How many bytes its records have.
    pub(crate) fn byte_len(&self) -> u64 {
        self.bytes
    }

    /// A view of the database with this transaction's writes in it.
    pub fn snapshot(&mut self) -> Result<Snapshot> {
        self.state.settle()?;
        let mut state = self.state.clone();
        state.index_privately(&self.own)?;
        Ok(Snapshot::new(Arc::clone(self.inner), Arc::new(state), self.reader()))
    }

    /// The same view for looking up names and lineage alone: what this transaction wrote is not found by words or vectors.
    pub(crate) fn names(&mut self) -> Result<Snapshot> {
        self.state.settle()?;
        Ok(Snapshot::new(Arc::clone(self.inner), Arc::new(self.state.clone()), self.reader()))
    }

    fn reader(&self) -> ContentReader {
        ContentReader { log: Arc::clone(&self.inner.log), own: self.own.clone() }
    }

    pub(crate) fn state(&mut self) -> Result<&State> {
        self.state.settle()?;
        Ok(&self.state)
    }

    pub(crate) fn content(&self, id: ItemId) -> Result<Content> {
        self.reader().read(&self.state, id)
    }

    /// Lets keys through that the engine gave in the database an export came from.
    pub(crate) fn take_engine_keys(&mut self) {
        self.takes_engine_keys = true;
    }

    /// Gives it the clock of a transaction that is written again, as long as that goes on from the newest.
    pub(crate) fn at(&mut self, time: i64) {
        self.time = time.max(self.state.meta.clock);
    }

    /// The transaction as it stands, to come back to.
    pub(crate) fn copy(&self) -> Copied {
        Copied {
            state: self.state.clone(),
            records: self.records.len(),
            own: self.own.clone(),
            bytes: self.bytes,
            erase: self.erase.len(),
        }
    }

    /// Takes back everything since a copy was made.
    pub(crate) fn return_to(&mut self, copy: Copied) {
        self.state = copy.state;
        self.take_back(copy.records);
        self.own = copy.own;
        self.page = None;
        self.bytes = copy.bytes;
        self.erase.truncate(copy.erase);
    }

    /// Runs several steps as one: when one fails, none happened.
    pub(crate) fn atomically<T>(&mut self, steps: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let (records, bytes, erase, bound) = (self.records.len(), self.bytes, self.erase.len(), self.state.bound());
        let before = self.state.savepoint();
        let done = steps(self);
        if done.is_ok() {
            self.state.release(before);
            return done;
        }
        self.state.roll_back(before);
        self.take_back(records);
        self.bytes = bytes;
        self.erase.truncate(erase);
        self.own = self.own.split(&bound).0;
        self.page = None;
        done
    }

    // ---- items ----

    /// Records what happened, verbatim. Gives a step, a time and a key where none is stated.
    ///
    /// # Errors
    /// For a taken key or (tool, log, step), a vector that does not fit the space, a field too long.
    pub fn record(&mut self, trace: NewTrace) -> Result<ItemId> {
        self.atomically(|transaction| {
            let (id, episode) = transaction.record_in_steps(trace)?;
            transaction.seal_pages(episode)?;
            Ok(id)
        })
    }

    /// Records a trace and leaves its page open, even when it has reached its limit.
    pub(crate) fn record_in_open_page(&mut self, trace: NewTrace) -> Result<ItemId> {
        self.atomically(|transaction| Ok(transaction.record_in_steps(trace)?.0))
    }

    fn record_in_steps(&mut self, trace: NewTrace) -> Result<(ItemId, u32)> {
        if trace.kind.layer() != Layer::Trace {
            return Err(Error::Invalid(format!(
                "a {} is not recorded but remembered: only turns, calls and observations happen",
                trace.kind
            )));
        }
        let episode = self.ensure_episode(&trace.episode)?;
        let row = self.state.episode(episode)?;
        let step = trace.step.unwrap_or_else(|| row.newest_step.map_or(0, |step| step + 1));
        let log = self.state.log_symbol(episode, trace.log_id.as_deref())?;
        if self.state.has_trace(episode, trace.tool.as_deref(), log, step)? {
            let tool = trace.tool.unwrap_or_default();
            return Err(Error::DuplicateTrace { tool, log_id: trace.log_id.unwrap_or_else(|| row.id.clone()), step });
        }
        let time = trace.time.or((!trace.timeless).then_some(self.time));
        let vector = self.encode_vector(trace.vector.as_deref())?;
        let mut record = ItemRecord {
            id: self.state.bound(),
            kind: trace.kind.to_byte(),
            key: Some(self.item_key(trace.key)?),
            episode: Some(episode),
            step: Some(step),
            time,
            version: trace.version,
            status: trace.status.map(Status::to_byte),
            source: trace.source.map(Source::to_byte),
            speaker: trace.speaker,
            tool: trace.tool,
            log_id: trace.log_id,
            fields: trace.fields,
            from: Vec::new(),
            utility: None,
            return_score: None,
            ungrounded: false,
            origin: 0,
            tokens: 0,
            vector,
        };
        check_fields(&record.fields)?;
        record.tokens = pages::spoken_tokens(&record);
        let record = self.push_item(record)?;
        self.note_on_page(episode, &row.open_page, &record);
        Ok((record.item(), episode))
    }

    /// Remembers what was distilled, with pointers to what it rests on.
    ///
    /// # Errors
    /// For a pointer that does not resolve or whose hash disagrees, no pointer without `ungrounded`, a taken key, a vector
    /// that does not fit the space.
    pub fn remember(&mut self, recall: NewRecall) -> Result<ItemId> {
        self.atomically(|transaction| transaction.remember_in_steps(recall))
    }

    fn remember_in_steps(&mut self, recall: NewRecall) -> Result<ItemId> {
        let layer = recall.kind.layer();
        if layer == Layer::Trace {
            return Err(Error::Invalid(format!("a {} is not remembered but recorded", recall.kind)));
        }
        let mut pointers = Vec::with_capacity(recall.from.len());
        for pointer in &recall.from {
            let resolved = self.resolve(pointer)?;
            if !pointers.contains(&resolved) {
                pointers.push(resolved);
            }
        }
        let children = recall.children.iter().map(|child| self.find(child)).collect::<Result<Vec<_>>>()?;
        for child in &children {
            self.check_parent(*child, layer, recall.kind)?;
        }
        if pointers.is_empty() && layer == Layer::Recall && !recall.ungrounded {
            return Err(Error::Invalid(format!(
                "a {} needs a pointer to what it rests on, or must be marked ungrounded",
                recall.kind
            )));
        }
        if recall.return_score.is_some_and(|score| !(1..=10).contains(&score)) {
            return Err(Error::Invalid("return_score is from 1 to 10".to_owned()));
        }
        if recall.utility.is_some_and(|utility| !utility.is_finite()) {
            return Err(Error::Invalid("utility must be a finite number".to_owned()));
        }
        let episode = recall.episode.as_deref().map(|id| self.ensure_episode(id)).transpose()?;
        let vector = self.encode_vector(recall.vector.as_deref())?;
        let mut record = ItemRecord {
            id: self.state.bound(),
            kind: recall.kind.to_byte(),
            key: Some(self.item_key(recall.key)?),
            episode,
            step: recall.step,
            time: recall.time,
            version: recall.version,
            status: recall.status.map(Status::to_byte),
            source: recall.source.map(Source::to_byte),
            speaker: None,
            tool: None,
            log_id: None,
            fields: vec![Field { name: "text".to_owned(), value: FieldValue::Text(recall.text) }],
            from: pointers,
            utility: recall.utility,
            return_score: recall.return_score,
            ungrounded: recall.ungrounded,
            origin: recall.origin.to_byte(),
            tokens: 0,
            vector,
        };
        check_fields(&record.fields)?;
        record.tokens = crate::tokens::count(record.text());
        let id = self.push_item(record)?.item();
        for child in children {
            let link = LinkRecord { from: child.0, edge: Edge::Parent.to_byte(), to: id.0 };
            self.push(Record::Link(link))?;
        }
        Ok(id)
    }

    /// Replaces the item that holds `key` by a new one that supersedes it; the key moves to the new one, which takes
    /// the union of both items' pointers (TierMem B.6).
    pub fn update(&mut self, key: &str, recall: NewRecall) -> Result<ItemId> {
        self.atomically(|transaction| transaction.update_in_steps(key, recall))
    }

    fn update_in_steps(&mut self, key: &str, mut recall: NewRecall) -> Result<ItemId> {
        let old = self.find_key(key)?;
        let attributes = self.state.attributes(old)?;
        if attributes.layer() == Layer::Trace {
            return Err(Error::Invalid(format!("'{key}' is a trace: what happened cannot be updated, only marked")));
        }
        recall.key = None;
        let inherited = self.state.pointers(old)?;
        let stated_grounds = recall.ungrounded;
        recall.ungrounded |= recall.from.is_empty() && !inherited.is_empty();
        let fresh = recall.from.iter().map(|pointer| self.resolve(pointer)).collect::<Result<Vec<_>>>()?;
        let new = self.remember_with(recall, inherited, fresh, stated_grounds)?;
        let spare = self.generated_key()?;
        self.push(Record::Rekey(RekeyRecord { key: spare, item: old.0 }))?;
        self.push(Record::Rekey(RekeyRecord { key: key.to_owned(), item: new.0 }))?;
        self.link(new, Edge::Supersedes, old)?;
        Ok(new)
    }

    fn remember_with(
        &mut self,
        mut recall: NewRecall,
        inherited: Vec<PointerRecord>,
        fresh: Vec<PointerRecord>,
        ungrounded: bool,
    ) -> Result<ItemId> {
        recall.from = inherited.into_iter().chain(fresh).map(|pointer| self.restate(pointer)).collect::<Result<_>>()?;
        recall.ungrounded = ungrounded;
        self.remember(recall)
    }

    /// A stored pointer as a caller would say it.
    fn restate(&self, pointer: PointerRecord) -> Result<Pointer> {
        Ok(match pointer.target {
            PointerTarget::Item(id) => {
                Pointer::to_item(ItemId(id)).field(pointer.field).bytes(pointer.start, pointer.end)
            }
            PointerTarget::Page(page) => Pointer::to_page(self.state.page(page)?.key),
        })
    }

    pub(crate) fn push_item(&mut self, record: ItemRecord) -> Result<Arc<ItemRecord>> {
        let whole = Arc::new(record);
        let mut logged = Arc::clone(&whole);
        for chunk in split_chunks(&mut logged) {
            self.push(Record::Chunk(chunk))?;
        }
        self.push(Record::Item(logged))?;
        self.own.insert(whole.id, Arc::clone(&whole));
        Ok(whole)
    }

    pub(crate) fn push(&mut self, record: Record) -> Result<()> {
        let len = self.draft.push(record.kind(), |bytes| record.encode_into(bytes))? as u64;
        let applied = self.apply(&record, len);
        match applied {
            Ok(()) => self.records.push(record),
            Err(_) => self.take_back(self.records.len()),
        }
        applied
    }

    fn apply(&mut self, record: &Record, len: u64) -> Result<()> {
        let limit = self.inner.options.max_transaction_bytes;
        if self.bytes + len > limit {
            return Err(Error::Limit { what: "the size of a transaction in bytes", limit, needed: self.bytes + len });
        }
        self.state.apply(record, Place { commit: self.number(), lsn: 0 })?;
        self.bytes += len;
        Ok(())
    }

    /// Takes back all but the first `count` records.
    fn take_back(&mut self, count: usize) {
        self.records.truncate(count);
        self.draft.truncate(count);
    }

    // ---- the database itself ----

    /// Changes a setting; see `docs/memory.md` for their names and values.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let value = settings::canonical(name, value)?;
        if self.state.setting(name)?.as_deref() == Some(value.as_str()) {
            return Ok(());
        }
        if name == "analyser" && self.state.bound() > 0 {
            return Err(Error::Invalid(format!(
                "setting analyser cannot become {value:?}: the database holds items, whose words stand as they were analysed"
            )));
        }
        self.push(Record::Setting(SettingRecord { name: name.to_owned(), value }))
    }

    /// Says what the vectors of this database are; once.
    pub fn define_space(&mut self, space: &Space) -> Result<()> {
        space.check()?;
        let record = SpaceRecord::from(space);
        match &self.state.meta.space {
            Some(known) if **known == record => Ok(()),
            Some(known) => Err(Error::Vector(format!(
                "the database holds vectors of {}; {} is another space",
                Space::try_from(known.as_ref())?,
                space
            ))),
            None => self.push(Record::Space(record)),
        }
    }

    fn encode_vector(&self, vector: Option<&[f32]>) -> Result<Option<Vec<u8>>> {
        let Some(vector) = vector else { return Ok(None) };
        let Some(space) = &self.state.meta.space else {
            return Err(Error::Vector(
                "the database has no embedding space yet: name one before giving vectors".to_owned(),
            ));
        };
        Space::try_from(space.as_ref())?.encode(vector).map(Some)
    }

    // ---- names ----

    /// The item a key or `#number` names.
    pub fn find(&self, target: &Target) -> Result<ItemId> {
        match target {
            Target::Item(id) if id.0 < self.state.bound() => Ok(*id),
            Target::Item(id) => Err(Error::Missing { what: "item", name: id.to_string() }),
            Target::Key(key) => self.find_key(key),
            Target::Page(key) => Err(Error::Invalid(format!("page '{key}' is named where an item is needed"))),
        }
    }

    fn find_key(&self, key: &str) -> Result<ItemId> {
        self.state.item_by_key(key)?.ok_or_else(|| Error::Missing { what: "item", name: format!("'{key}'") })
    }

    /// Resolves a pointer against the bytes as they are.
    pub(crate) fn resolve(&self, pointer: &Pointer) -> Result<PointerRecord> {
        let unresolved =
            |reason: &str| Error::UnresolvedPointer { target: pointer.target.to_string(), reason: reason.to_owned() };
        if let Target::Page(key) = &pointer.target {
            let number = self.state.page_number(key)?.ok_or_else(|| unresolved("there is no such page"))?;
            let hash = self.state.page(number)?.hash;
            provenance::check_hash(pointer, &hash)?;
            return Ok(PointerRecord {
                target: PointerTarget::Page(number),
                field: String::new(),
                start: 0,
                end: 0,
                hash,
            });
        }
        let target = self.find(&pointer.target).map_err(|_| unresolved("there is no such item"))?;
        if self.state.attributes(target)?.layer() == Layer::Theme {
            return Err(unresolved("it is a theme, which only routes; point to a trace or a recall"));
        }
        if self.takes_engine_keys && self.state.attributes(target)?.redacted {
            return provenance::resolve_forgotten(pointer, target);
        }
        provenance::resolve(pointer, target, &self.content(target)?)
    }

    fn item_key(&self, key: Option<String>) -> Result<String> {
        let Some(key) = key else { return self.generated_key() };
        check_name("key", &key)?;
        if key.starts_with('~') && !self.takes_engine_keys {
            return Err(Error::Invalid(format!("key {key:?}: keys that begin with ~ are the engine's own")));
        }
        if self.state.item_by_key(&key)?.is_some() {
            return Err(Error::DuplicateKey { key, what: "item" });
        }
        Ok(key)
    }

    /// The engine's own key for an item that was given none: `~COMMIT.N`.
    pub(crate) fn generated_key(&self) -> Result<String> {
        let mut n = self.records.len();
        // Every record has its own place in the transaction, so that only keys from elsewhere can be in the way.
        let can_be_taken = self.takes_engine_keys || self.number() <= self.state.meta.foreign_keys;
        loop {
            let key = engine_key(self.number(), n);
            if !can_be_taken || self.state.item_by_key(&key)?.is_none() {
                return Ok(key);
            }
            n += 1;
        }
    }

    /// The attributes of an item, this transaction's changes included.
    pub fn attributes(&mut self, id: ItemId) -> Result<Attributes> {
        self.state()?.attributes(id)
    }

    // ---- the end ----

    /// Appends the transaction and waits until it is as durable as asked. An empty one commits nothing.
    ///
    /// # Errors
    /// Of the disk; after a failed write or sync the database must be opened again.
    pub fn commit(mut self, durability: Durability) -> Result<Commit> {
        if self.records.is_empty() {
            self.writer.open_page = self.page;
            self.writer.draft = self.draft;
            let head = self.state.head;
            return Ok(Commit { number: head.commit.0, position: head.position.0, time: self.state.meta.clock });
        }
        self.state.settle()?;
        self.state.seal(self.state.meta.commit + 1, self.time)?;
        let forgets = !self.erase.is_empty();
        let prepared = self.inner.log.prepare_draft(std::mem::take(&mut self.draft))?;
        let (appended, redaction) = self.inner.log.append_prepared_redaction(&prepared, &self.erase, self.time)?;
        self.writer.draft = prepared.into_draft();
        if let Err(error) = self.take_place(&appended) {
            // The log holds what the state does not: nothing more may be numbered after it.
            self.writer.poisoned = Some(error.to_string());
            return Err(error);
        }
        let commit = Commit { number: appended.commit.0, position: appended.end.0, time: self.time };
        let Transaction { inner, mut writer, state, records, bytes, page, .. } = self;
        if forgets {
            inner.forgotten(writer, state, &redaction)?;
            return Ok(commit);
        }
        writer.open_page = page;
        inner.appended(writer, Arc::new(state), appended.end, durability, records.len() as u64, bytes)?;
        Ok(commit)
    }

    /// Gives the state the places its records came to stand at, and makes its items findable.
    fn take_place(&mut self, appended: &Appended) -> Result<()> {
        for (record, lsn) in self.records.iter().zip(&appended.lsns) {
            self.state.place(record, lsn.0)?;
        }
        self.state.index_items(&self.own)?;
        self.state.meta.commit = appended.commit.0;
        self.state.meta.clock = self.time;
        self.state.head = self.inner.log.head();
        Ok(())
    }
}

/// `~COMMIT.N`, put together without the formatter: nearly every item gets one.
fn engine_key(commit: u64, n: usize) -> String {
    let mut bytes = [0; 42];
    let mut start = bytes.len();
    for (mut number, sign) in [(n as u64, b'.'), (commit, b'~')] {
        loop {
            start -= 1;
            bytes[start] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        start -= 1;
        bytes[start] = sign;
    }
    bytes[start..].iter().map(|byte| char::from(*byte)).collect()
}

/// Refuses a name that is empty or too long.
fn check_name(what: &str, name: &str) -> Result<()> {
    if name.is_empty() || name.len() > MAX_KEY_LEN || name.contains('\0') {
        return Err(Error::Invalid(format!("{what} {name:?}: 1 to {MAX_KEY_LEN} bytes without NUL are expected")));
    }
    Ok(())
}

fn check_fields(fields: &[Field]) -> Result<()> {
    let limit = (64 * CHUNK_LEN) as u64;
    for (index, field) in fields.iter().enumerate() {
        if field.name.is_empty() || fields[..index].iter().any(|other| other.name == field.name) {
            return Err(Error::Invalid(format!("field {:?}: names of fields are unique and not empty", field.name)));
        }
        let needed = provenance::field_bytes(&field.value).len() as u64;
        if needed > limit {
            return Err(Error::Limit { what: "the length of a field in bytes", limit, needed });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::engine_key;

    #[test]
    fn a_key_of_the_engine_names_commit_and_place() {
        for (commit, n) in [(1, 0), (10, 9), (907, 100), (u64::MAX, usize::MAX)] {
            assert_eq!(engine_key(commit, n), format!("~{commit}.{n}"));
        }
    }
}
