//! Write transactions: each call validates its input, applies its records to a copy of the state, and stages them;
//! commit appends them to the log as one unit.
//!
//! A transaction holds the writer's lock from [`Holotype::begin`](crate::Holotype::begin) to its end: it validates
//! against the newest appended state and sees its own writes. `commit` appends the records and releases the lock before
//! it waits for the disk, so that concurrent transactions share the next sync.
//!
//! Invariants:
//! 1. Nothing reaches the log that [`State::apply`] would refuse.
//! 2. Dropping a transaction discards it.
//! 3. A failed call leaves the transaction unchanged.

mod concepts;
pub(crate) mod create;
pub(crate) mod decay;
pub(crate) mod embedding;
mod episodes;
mod erasing;
mod fields;
mod intents;
mod known;
mod limited;
mod links;
pub(crate) mod merge;
mod receipts;
mod reflect;
mod resolving;
mod setup;
mod updates;
pub(crate) mod uses;

pub use episodes::EpisodeChange;

use crate::core::open_transactions::OpenMark;
use crate::core::turns::TurnGuard;
use crate::core::writer_lock::WriterGuard;
use crate::core::{Core, Writer};
use crate::derive::checkpoint;
use crate::model::edge::Edge;
use crate::model::item::{ItemId, Kind, Layer, Source, Status};
use crate::model::space::Space;
use crate::model::time::{Timestamp, timestamp};
use crate::options::Durability;
use crate::read::item_attributes::ItemAttributes;
use crate::read::limits::{Meter, refill_memory};
use crate::read::snapshot::Snapshot;
use crate::records::field::LABELS;
use crate::records::record::{Field, FieldValue, ItemRecord, LinkRecord, Record};
use crate::state::State;
use crate::state::apply::RecordLocation;
use crate::state::content::{Content, ContentReader, OwnItems, split_chunks};
use crate::state::pages::{self, OpenPage};
use crate::write::draft::{NewRecall, NewTrace};
use crate::{Error, Result};
use holotype_query::time::MAX_MICROS;
use holotype_storage::log::{Appended, Draft, Erase};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The maximum length of a key, in bytes.
pub const MAX_KEY_LEN: usize = 512;

/// The greatest step.
pub(crate) const MAX_STEP: u64 = i64::MAX as u64;

/// The number, log position and clock of a committed transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// Its number, counted from 1.
    pub number: u64,
    /// The log position after it.
    pub position: u64,
    /// Its clock, in microseconds since the epoch.
    pub time: i64,
}

impl Commit {
    /// Its clock as a [`Timestamp`]; `None` only for a log whose clock no [`Timestamp`] can show.
    pub fn timestamp(&self) -> Option<Timestamp> {
        timestamp(self.time)
    }
}

/// A change of an item's attributes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mark {
    /// The status: success, failed or unknown.
    Status(Status),
    /// The utility, and the number of reports it averages.
    Utility(f32, u32),
    /// The credit, and the number of rollouts it averages.
    Credit(f32, u32),
    /// Retired (soft delete).
    Inactive,
}

/// A write transaction. It may be sent to another thread; the thread that used it last has it open.
pub struct Transaction<'db> {
    core: &'db Arc<Core>,
    writer: WriterGuard<'db, Writer>,
    state: State,
    records: Vec<Record>,
    /// The encoded form of `records`.
    draft: Draft,
    own: OwnItems,
    /// The running hash of the open page that the last trace joined; closing the page then reads no trace.
    page: Option<OpenPage>,
    bytes: u64,
    time: i64,
    /// True if callers may use generated keys (`~COMMIT.N`), as the import of an export does.
    accepts_generated_keys: bool,
    /// The log records that the commit erases.
    erase: Vec<Erase>,
    /// Concepts that this transaction wrote or found, by the words of their names.
    concept_names: HashMap<String, ItemId>,
    intents: intents::KnownIntents,
    /// The content that was read last: pointers of one item tend to have one target.
    last_read: RefCell<Option<(ItemId, Content)>>,
    /// The resources used by the running statement, if it is limited.
    meter: Option<Arc<Meter>>,
    open: OpenMark<'db>,
    /// Dropped after the writer's lock.
    turn: Option<TurnGuard<'db>>,
}

/// A copy of a transaction's staged work, for [`Transaction::restore`].
pub(crate) struct TransactionCopy {
    state: State,
    records: usize,
    own: OwnItems,
    bytes: u64,
    erase: usize,
}

impl<'db> Transaction<'db> {
    pub(crate) fn new(
        core: &'db Arc<Core>,
        mut writer: WriterGuard<'db, Writer>,
        turn: Option<TurnGuard<'db>>,
    ) -> Result<Self> {
        let state = writer.state.as_ref().clone();
        let page = writer.open_page.take();
        let draft = std::mem::take(&mut writer.draft);
        // A clock past the last time that can be written is wrong, and every later commit would get the same time.
        let now = Some(core.now()).filter(|now| *now <= MAX_MICROS);
        let time = now.map_or(state.meta.clock, |now| now.max(state.meta.clock));
        Ok(Transaction {
            core,
            writer,
            state,
            records: Vec::new(),
            draft,
            own: OwnItems::new(),
            page,
            bytes: 0,
            time,
            accepts_generated_keys: false,
            erase: Vec::new(),
            concept_names: HashMap::new(),
            intents: intents::KnownIntents::default(),
            last_read: RefCell::new(None),
            meter: None,
            open: core.mark_open(),
            turn,
        })
    }

    /// The commit number of this transaction.
    pub fn number(&self) -> u64 {
        self.state.meta.commit + 1
    }

    /// The number of staged records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// True if no record is staged.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The encoded length of the staged records, in bytes.
    pub(crate) fn byte_len(&self) -> u64 {
        self.bytes
    }

    /// A snapshot that includes this transaction's writes.
    pub fn snapshot(&mut self) -> Result<Snapshot> {
        self.open.touch();
        self.state.settle()?;
        let mut state = self.state.clone();
        state.index_privately(&self.own)?;
        state.index_filled(&self.records, None)?;
        let snapshot = Snapshot::new(Arc::clone(self.core), Arc::new(state), self.reader());
        Ok(snapshot.measured_by(self.meter.clone()))
    }

    /// A snapshot for keys and lineage only: this transaction's items are in no word or vector index.
    pub(crate) fn names(&mut self) -> Result<Snapshot> {
        self.state.settle()?;
        Ok(Snapshot::new(Arc::clone(self.core), Arc::new(self.state.clone()), self.reader()))
    }

    fn reader(&self) -> ContentReader {
        ContentReader { log: Arc::clone(&self.core.log), own: self.own.clone() }
    }

    pub(crate) fn state(&mut self) -> Result<&State> {
        self.open.touch();
        self.state.settle()?;
        Ok(&self.state)
    }

    pub(crate) fn content(&self, id: ItemId) -> Result<Content> {
        if self.own.contains_key(&id.0) {
            return self.reader().read(&self.state, id);
        }
        if let Some((_, content)) =
            self.last_read.borrow().as_ref().filter(|(last, _)| *last == id && self.erase.is_empty())
        {
            return Ok(content.clone());
        }
        let content = self.reader().read(&self.state, id)?;
        *self.last_read.borrow_mut() = Some((id, content.clone()));
        Ok(content)
    }

    /// The stored vector of an item.
    pub(crate) fn stored_vector(&self, id: ItemId) -> Result<Option<Vec<u8>>> {
        self.reader().vector(&self.state, id)
    }

    /// Accepts generated keys from callers: those of the database that an export came from.
    pub(crate) fn accept_generated_keys(&mut self) {
        self.accepts_generated_keys = true;
    }

    /// Sets the clock, for copying a transaction. The clock never goes back.
    pub(crate) fn at(&mut self, time: i64) {
        self.time = time.max(self.state.meta.clock);
    }

    /// A copy to return to.
    pub(crate) fn copy(&self) -> TransactionCopy {
        TransactionCopy {
            state: self.state.clone(),
            records: self.records.len(),
            own: self.own.clone(),
            bytes: self.bytes,
            erase: self.erase.len(),
        }
    }

    /// Discards everything staged since `copy` was made.
    pub(crate) fn restore(&mut self, copy: TransactionCopy) {
        self.state = copy.state;
        self.truncate(copy.records);
        self.own = copy.own;
        self.page = None;
        self.bytes = copy.bytes;
        self.erase.truncate(copy.erase);
    }

    /// Runs `steps` as a unit: an error rolls back all of them.
    pub(crate) fn atomically<T>(&mut self, steps: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let (records, bytes, erase, bound) = (self.records.len(), self.bytes, self.erase.len(), self.state.bound());
        let before = self.state.savepoint();
        let done = steps(self);
        if done.is_ok() {
            self.state.release(before);
            return done;
        }
        self.state.roll_back(before);
        self.truncate(records);
        self.bytes = bytes;
        self.erase.truncate(erase);
        self.own = self.own.split(&bound).0;
        self.page = None;
        done
    }

    // ---- items ----

    /// Records a trace without closing its page at the token limit.
    pub(crate) fn record_in_open_page(&mut self, trace: NewTrace) -> Result<ItemId> {
        self.atomically(|transaction| Ok(transaction.record_inner(trace)?.0))
    }

    fn record_inner(&mut self, trace: NewTrace) -> Result<(ItemId, u32)> {
        if trace.kind.layer() != Layer::Trace {
            return Err(Error::Invalid(format!(
                "a {} cannot be recorded; use remember (record takes turn, call and observation)",
                trace.kind
            )));
        }
        let episode = self.ensure_episode(&trace.episode)?;
        let row = self.state.episode(episode)?;
        let step = match (trace.step, row.newest_step) {
            (Some(step), _) => step,
            (None, None) => 0,
            (None, Some(newest)) => newest.checked_add(1).filter(|step| *step <= MAX_STEP).ok_or_else(|| {
                let episode = &trace.episode;
                Error::Invalid(format!("no step follows {newest}, the newest of episode {episode:?}; give the step"))
            })?,
        };
        check_step(Some(step))?;
        let log = self.state.log_symbol(episode, trace.log_id.as_deref())?;
        if self.state.has_trace(episode, trace.tool.as_deref(), log, step)? {
            let tool = trace.tool.unwrap_or_default();
            return Err(Error::DuplicateTrace { tool, log_id: trace.log_id.unwrap_or_else(|| row.id.clone()), step });
        }
        let time = trace.time.or((!trace.timeless).then_some(self.time));
        let vector = match trace.vector.is_some() {
            true => self.encode_vector(trace.vector.as_deref())?,
            false => self.trace_vector(&trace).and_then(|vector| self.encode_vector(vector.as_deref()))?,
        };
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
        fields::add_labels(&mut record.fields, trace.labels)?;
        fields::check(&record.fields)?;
        record.tokens = pages::spoken_tokens(&record);
        let record = self.push_item(record)?;
        self.extend_open_page(episode, &row.open_page, &record);
        Ok((record.item(), episode))
    }

    /// Remembers a recall or theme with pointers to its evidence.
    ///
    /// # Errors
    /// [`Error::UnresolvedPointer`], [`Error::HashMismatch`], [`Error::DuplicateKey`], [`Error::Vector`], and
    /// [`Error::Invalid`] for a recall without pointers that is not marked ungrounded.
    pub fn remember(&mut self, recall: NewRecall) -> Result<ItemId> {
        self.atomically(|transaction| transaction.remember_inner(recall))
    }

    fn remember_inner(&mut self, recall: NewRecall) -> Result<ItemId> {
        let layer = recall.kind.layer();
        if layer == Layer::Trace {
            return Err(Error::Invalid(format!("a {} cannot be remembered; use record", recall.kind)));
        }
        let mut pointers = Vec::with_capacity(recall.from.len());
        let mut seen = HashSet::new();
        for pointer in &recall.from {
            let resolved = self.resolve(pointer)?;
            if seen.insert(resolved.clone()) {
                pointers.push(resolved);
            }
        }
        self.mark_summarised_by(recall.kind, &pointers)?;
        let children = recall.children.iter().map(|child| self.find(child)).collect::<Result<Vec<_>>>()?;
        for child in &children {
            self.check_parent(*child, layer, recall.kind)?;
        }
        if pointers.is_empty() && layer == Layer::Recall && !recall.ungrounded {
            return Err(Error::Invalid(format!(
                "a {} needs at least one pointer to its evidence; otherwise mark it ungrounded",
                recall.kind
            )));
        }
        check_scores(&recall)?;
        check_step(recall.step)?;
        let episode = recall.episode.as_deref().map(|id| self.ensure_episode(id)).transpose()?;
        let vector = match recall.vector.is_some() {
            true => self.encode_vector(recall.vector.as_deref())?,
            false => self.configured_vector(&recall.text).and_then(|vector| self.encode_vector(vector.as_deref()))?,
        };
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
            fields: [vec![Field { name: "text".to_owned(), value: FieldValue::Text(recall.text) }], recall.fields]
                .concat(),
            from: pointers,
            utility: recall.utility,
            return_score: recall.return_score,
            ungrounded: recall.ungrounded,
            origin: recall.origin.to_byte(),
            tokens: 0,
            vector,
        };
        fields::add_labels(&mut record.fields, recall.labels)?;
        if record.field(LABELS).is_none() {
            let inherited = self.labels_of_evidence(&record.from, &children)?;
            record.fields.extend(inherited);
        }
        fields::check(&record.fields)?;
        record.tokens = crate::model::tokens::count(record.text());
        let id = self.push_item(record)?.item();
        for child in children {
            let link = LinkRecord { from: child.0, edge: Edge::Parent.to_byte(), to: id.0 };
            self.push(Record::Link(link))?;
        }
        Ok(id)
    }

    pub(crate) fn push_item(&mut self, record: ItemRecord) -> Result<Arc<ItemRecord>> {
        if record.id == u32::MAX {
            let limit = u64::from(u32::MAX);
            return Err(Error::Limit { what: "the number of items", limit, needed: limit + 1 });
        }
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
        self.open.touch();
        self.tick()?;
        let len = self.draft.push(record.kind(), |bytes| record.encode_into(bytes))? as u64;
        let applied = self.apply(&record, len);
        match applied {
            Ok(()) => self.records.push(record),
            Err(_) => self.truncate(self.records.len()),
        }
        applied
    }

    fn apply(&mut self, record: &Record, len: u64) -> Result<()> {
        let limit = self.core.options.max_transaction_bytes;
        if self.bytes + len > limit {
            return Err(Error::Limit { what: "the size of a transaction in bytes", limit, needed: self.bytes + len });
        }
        self.state.apply(record, RecordLocation { commit: self.number(), lsn: 0, clock: self.time })?;
        self.bytes += len;
        Ok(())
    }

    /// Discards all but the first `count` records.
    fn truncate(&mut self, count: usize) {
        self.records.truncate(count);
        self.draft.truncate(count);
    }

    fn encode_vector(&self, vector: Option<&[f32]>) -> Result<Option<Vec<u8>>> {
        let Some(vector) = vector else { return Ok(None) };
        let Some(space) = &self.state.meta.space else {
            return Err(Error::Vector(
                "the database has no embedding space; define one before writing vectors".to_owned(),
            ));
        };
        Space::try_from(space.as_ref())?.encode(vector).map(Some)
    }

    // ---- names ----

    fn item_key(&self, key: Option<String>) -> Result<String> {
        let Some(key) = key else { return self.generated_key() };
        check_name("key", &key)?;
        if key.starts_with('~') && !self.accepts_generated_keys {
            return Err(Error::Invalid(format!("key {key:?}: the prefix ~ is reserved for generated keys")));
        }
        if self.state.item_by_key(&key)?.is_some() {
            return Err(Error::DuplicateKey { key, what: "item" });
        }
        Ok(key)
    }

    /// A key for an item without one: `~COMMIT.N`.
    pub(crate) fn generated_key(&self) -> Result<String> {
        let mut n = self.len();
        // A record's index is unique in its transaction, so only an imported key can collide.
        let can_be_taken = self.accepts_generated_keys || self.number() <= self.state.meta.foreign_keys;
        loop {
            let key = format_generated_key(self.number(), n);
            if !can_be_taken || self.state.item_by_key(&key)?.is_none() {
                return Ok(key);
            }
            n += 1;
        }
    }

    /// The attributes of an item, including this transaction's changes.
    pub fn attributes(&mut self, id: ItemId) -> Result<ItemAttributes> {
        let state = self.state()?;
        ItemAttributes::new(state, id)
    }

    // ---- the end ----

    /// Appends the transaction and waits for the requested durability. An empty transaction appends nothing.
    ///
    /// # Errors
    /// Errors of the file system. After a failed write or sync the handle refuses writes; open the database again.
    /// [`Error::OutOfMemory`] before anything is written.
    pub fn commit(mut self, durability: Durability) -> Result<Commit> {
        self.core.lock.check_process()?;
        refill_memory()?;
        if self.is_empty() {
            self.draft.truncate(0);
            self.writer.open_page = self.page;
            self.writer.draft = self.draft;
            let head = self.state.head;
            return Ok(Commit { number: head.commit.0, position: head.position.0, time: self.state.meta.clock });
        }
        self.state.settle()?;
        self.state.finish_commit(self.state.meta.commit + 1, self.time)?;
        let forgets = !self.erase.is_empty();
        if forgets {
            self.core.frame_texts.clear();
        }
        let prepared = self.core.log.prepare_draft(std::mem::take(&mut self.draft))?;
        let (appended, redaction) = self.core.log.append_prepared_redaction(&prepared, &self.erase, self.time)?;
        self.writer.draft = prepared.into_draft();
        if let Err(error) = self.apply_appended(&appended) {
            // The log is ahead of the state: a further commit would use the same numbers again.
            self.writer.poisoned = Some(error.to_string());
            return Err(error);
        }
        let commit = Commit { number: appended.commit.0, position: appended.end.0, time: self.time };
        let Transaction { core, mut writer, state, records, bytes, page, turn, .. } = self;
        if forgets {
            core.complete_forget(writer, state, &redaction, turn)?;
            return Ok(commit);
        }
        if state.vectors_due {
            core.complete_reembed(writer, state, turn)?;
            return Ok(commit);
        }
        writer.open_page = page;
        if core.appended(writer, Arc::new(state), appended.end, durability, records.len() as u64, bytes)? {
            checkpoint::start(core);
        }
        Ok(commit)
    }

    /// Sets the log positions of the appended records and indexes the new items.
    fn apply_appended(&mut self, appended: &Appended) -> Result<()> {
        for (record, lsn) in self.records.iter().zip(&appended.lsns) {
            self.state.set_location(record, lsn.0)?;
        }
        self.state.index_items(&self.own)?;
        self.state.index_filled(&self.records, None)?;
        self.state.meta.commit = appended.commit.0;
        self.state.meta.clock = self.time;
        self.state.head = self.core.log.head();
        Ok(())
    }
}

/// `~COMMIT.N`. Written without the formatter, because nearly every item gets such a key.
fn format_generated_key(commit: u64, n: usize) -> String {
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
        return Err(Error::Invalid(format!("{what} {name:?}: expected 1 to {MAX_KEY_LEN} bytes without NUL")));
    }
    Ok(())
}

/// Refuses a step that answers cannot show and statements cannot name.
fn check_step(step: Option<u64>) -> Result<()> {
    step.filter(|step| *step > MAX_STEP)
        .map_or(Ok(()), |step| Err(Error::Invalid(format!("step {step} is above {MAX_STEP}, the greatest step"))))
}

/// Refuses scores out of range, and return scores of items other than procedures.
fn check_scores(recall: &NewRecall) -> Result<()> {
    if recall.return_score.is_some_and(|score| !(1..=10).contains(&score)) {
        return Err(Error::Invalid("return_score must be from 1 to 10".to_owned()));
    }
    if recall.return_score.is_some() && recall.kind != Kind::Procedure {
        return Err(Error::Invalid(format!("return_score belongs to procedures, not to a {}", recall.kind)));
    }
    if recall.utility.is_some_and(|utility| !utility.is_finite()) {
        return Err(Error::Invalid("utility must be a finite number".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::format_generated_key;
    use crate::{Durability, Error, Holotype, Metric, NewTrace, Options, Space, Target, salvage_on};
    use holotype_storage::vfs::{SimVfs, Vfs};
    use std::sync::Arc;

    /// Appends a trace whose vector no check has seen, as versions that did not check its magnitude did. The commit
    /// fails after the append.
    fn append_unusable(vfs: &Arc<dyn Vfs>) -> Holotype {
        let options = Options::with_space(Space::new("test", 2).metric(Metric::Dot));
        let database = Holotype::create_on(Arc::clone(vfs), "/db", options).unwrap();
        record(&database, "before");
        let mut transaction = database.begin().unwrap();
        let id = transaction.record(NewTrace::turn("e", "unusable").key("unusable").vector(vec![1.0, 2.0])).unwrap();
        let mut item = transaction.own[&id.0].as_ref().clone();
        transaction.truncate(0);
        transaction.own.clear();
        transaction.state = transaction.writer.state.as_ref().clone();
        item.vector = Some([3e38_f32, 3e38].iter().flat_map(|number| number.to_le_bytes()).collect());
        transaction.push_item(item).unwrap();
        assert!(matches!(transaction.commit(Durability::Sync), Err(Error::Index(_))));
        database
    }

    fn record(database: &Holotype, key: &str) {
        let mut transaction = database.begin().unwrap();
        transaction.record(NewTrace::turn("e", key).key(key).vector(vec![1.0, 2.0])).unwrap();
        transaction.commit(Durability::Sync).unwrap();
    }

    #[test]
    fn a_commit_that_cannot_be_applied_poisons_the_handle_and_no_checkpoint_covers_it() {
        let vfs: Arc<dyn Vfs> = Arc::new(SimVfs::new());
        let database = append_unusable(&vfs);
        assert!(matches!(database.begin(), Err(Error::Poisoned { .. })));
        assert!(matches!(database.close(), Err(Error::Poisoned { .. })));
        let database = Holotype::open_on(Arc::clone(&vfs), "/db", Options::default()).unwrap();
        let [skipped] = database.report().skipped.as_slice() else { panic!("one transaction is left out") };
        assert!(skipped.starts_with("commit 3: item #1: "), "{skipped}");
    }

    #[test]
    fn opening_rebuild_and_salvage_get_past_a_transaction_that_cannot_be_applied() {
        let vfs: Arc<dyn Vfs> = Arc::new(SimVfs::new());
        drop(append_unusable(&vfs));
        let database = Holotype::open_on(Arc::clone(&vfs), "/db", Options::default()).unwrap();
        record(&database, "after");
        assert_eq!(database.verify(&mut |_, _| {}).unwrap().faults.len(), 1);
        database.close().unwrap();
        for all in [false, true] {
            let (vfs, options) = (Arc::clone(&vfs), Options::default());
            let database = match all {
                true => Holotype::rebuild_all_on(vfs, "/db", options),
                false => Holotype::rebuild_on(vfs, "/db", options),
            }
            .unwrap();
            assert_eq!(database.report().skipped.len(), 1);
            let transaction = database.begin().unwrap();
            let find = |key: &str| transaction.find(&Target::Key(key.to_owned())).map(|id| id.0);
            assert_eq!((find("before").unwrap(), find("after").unwrap()), (0, 1));
            assert!(matches!(find("unusable"), Err(Error::Missing { .. })));
        }
        let report = salvage_on(Arc::clone(&vfs), "/db", "/salvaged").unwrap();
        assert_eq!((report.items, report.lost.len()), (3, 1), "{:?}", report.lost);
        let salvaged = Holotype::open_on(vfs, "/salvaged", Options::default()).unwrap();
        assert_eq!(salvaged.report().skipped, [""; 0]);
        assert!(salvaged.verify(&mut |_, _| {}).unwrap().is_clean());
    }

    #[test]
    fn a_key_of_the_engine_names_commit_and_place() {
        for (commit, n) in [(1, 0), (10, 9), (907, 100), (u64::MAX, usize::MAX)] {
            assert_eq!(format_generated_key(commit, n), format!("~{commit}.{n}"));
        }
    }
}
