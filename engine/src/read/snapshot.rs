//! Snapshots: a consistent view that never changes and never blocks a writer.

use crate::core::Core;
use crate::core::throttle::SnapshotGuard;
use crate::model::edge::Edge;
use crate::model::item::{Attributes, ItemId, Layer};
use crate::model::pointer::{Verdict, hex};
use crate::model::space::Space;
use crate::model::time::Moment;
use crate::read::answer::Citation;
use crate::read::controller::HopController;
use crate::read::item_attributes::ItemAttributes;
use crate::read::limits::{Limits, Meter, check_memory, refill_memory};
use crate::read::near_answers::NearAnswers;
use crate::records::record::{ItemRecord, PointerRecord, PointerTarget};
use crate::records::tables;
use crate::state::State;
use crate::state::attributes::Cited;
use crate::state::content::{Content, ContentReader};
use crate::state::pages::PageHash;
use crate::{Error, Result};
use holotype_query::ItemRef;
use holotype_query::plan::AsOf;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A consistent view of a database as of one transaction.
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) core: Arc<Core>,
    pub(crate) state: Arc<State>,
    reader: ContentReader,
    /// `None` for the view of a transaction.
    _guard: Option<Arc<SnapshotGuard>>,
    limits: Limits,
    /// The resources used by the running statement, if it is limited.
    meter: Option<Arc<Meter>>,
    /// Contents read for the current answer, which needs some of them several times.
    read: Option<Arc<Mutex<HashMap<ItemId, Content>>>>,
    /// Searches by vector that were answered ahead.
    near: Option<Arc<NearAnswers>>,
    /// Decides whether routed recalls make another hop; the built-in one where there is none.
    hop_controller: Option<Arc<dyn HopController>>,
}

/// The erasures during one read after which it is given up.
const MAX_ERASURES: usize = 1_000;

/// Maximum number of contents cached for one answer.
const MAX_CACHED_CONTENTS: usize = 1_024;

/// An item with its scalar state and its content.
#[derive(Debug, Clone)]
pub struct Item {
    /// Its number.
    pub id: ItemId,
    /// Its key.
    pub key: String,
    /// Its current attributes.
    pub attributes: ItemAttributes,
    /// Its written content.
    pub content: Content,
}

impl Snapshot {
    /// True unless this is the view of a transaction.
    pub(crate) fn is_committed(&self) -> bool {
        self._guard.is_some()
    }

    /// The first item of the transaction whose view this is, if it has written one.
    pub(crate) fn first_own(&self) -> Option<u32> {
        self.reader.own.get_min().map(|(id, _)| *id)
    }

    pub(crate) fn new(core: Arc<Core>, state: Arc<State>, reader: ContentReader) -> Self {
        let limits = Limits::none();
        Snapshot {
            core,
            state,
            reader,
            _guard: None,
            limits,
            meter: None,
            read: None,
            near: None,
            hop_controller: None,
        }
    }

    /// Registers the snapshot, so that its age counts towards `snapshot_max_age`.
    pub(crate) fn held(self) -> Self {
        let held = self.core.throttle.register_snapshot(self.core.now());
        Snapshot { _guard: Some(Arc::new(held)), ..self }
    }

    /// The same view with limits for each statement that runs on it.
    pub fn with_limits(&self, limits: &Limits) -> Snapshot {
        Snapshot { limits: limits.clone(), meter: None, ..self.clone() }
    }

    /// The same view for a statement that runs already.
    pub(crate) fn measured_by(self, meter: Option<Arc<Meter>>) -> Snapshot {
        Snapshot { meter, ..self }
    }

    /// The same view with a controller that decides whether a routed recall makes another hop.
    pub fn with_hop_controller(&self, controller: Arc<dyn HopController>) -> Snapshot {
        Snapshot { hop_controller: Some(controller), ..self.clone() }
    }

    /// The controller of routed recalls, where it is not the built-in one.
    pub(crate) fn hop_controller(&self) -> Option<&dyn HopController> {
        self.hop_controller.as_deref()
    }

    /// The same view with a content cache for one answer.
    pub(crate) fn with_content_cache(&self) -> Snapshot {
        Snapshot { read: Some(Arc::default()), ..self.clone() }
    }

    /// The same view with answers to searches by vector that were found in it.
    pub(crate) fn with_near_answers(&self, answers: NearAnswers) -> Snapshot {
        Snapshot { near: (!answers.is_empty()).then(|| Arc::new(answers)), ..self.clone() }
    }

    /// The searches by vector that were answered ahead.
    pub(crate) fn near_answers(&self) -> Option<&NearAnswers> {
        self.near.as_deref()
    }

    /// The view for one statement, with a meter if it is limited. Its first tick fails if there is no memory for it.
    pub(crate) fn metered(&self) -> Cow<'_, Snapshot> {
        let _ = refill_memory();
        match self.limits.start().filter(|_| self.meter.is_none()) {
            Some(meter) => Cow::Owned(Snapshot { meter: Some(meter), ..self.clone() }),
            None => Cow::Borrowed(self),
        }
    }

    /// True if statements may use only so much time, rows or memory.
    pub(crate) fn limits_use(&self) -> bool {
        self.limits.limit_use()
    }

    /// Fails if the statement is cancelled or out of time, or if there is no memory.
    pub(crate) fn tick(&self) -> Result<()> {
        check_memory()?;
        self.meter.as_ref().map_or(Ok(()), |meter| meter.tick())
    }

    /// The ticks of the running statement.
    #[cfg(test)]
    pub(crate) fn ticks(&self) -> u64 {
        self.meter.as_ref().map_or(0, |meter| meter.ticks())
    }

    /// Charges examined rows to the statement.
    pub(crate) fn charge_rows(&self, rows: u64) -> Result<()> {
        check_memory()?;
        self.meter.as_ref().map_or(Ok(()), |meter| meter.rows(rows))
    }

    /// Charges kept bytes to the statement.
    pub(crate) fn keep(&self, bytes: usize) -> Result<()> {
        check_memory()?;
        self.meter.as_ref().map_or(Ok(()), |meter| meter.memory(bytes))
    }

    /// The commit of the view.
    pub fn commit(&self) -> u64 {
        self.state.meta.commit
    }

    /// The view after an earlier commit: statuses, edges, claims, support, pages and word statistics as they were
    /// then. The embedding space is the present one, and erased content stays erased.
    ///
    /// # Errors
    /// [`Error::FutureCommit`].
    pub fn as_of(&self, commit: u64) -> Result<Snapshot> {
        if commit == self.commit() && self.state.before_images.is_empty() {
            return Ok(self.clone());
        }
        let state = self.core.past(&self.state, commit)?;
        Ok(self.with_state(state))
    }

    /// The same view over another state of the same database.
    pub(crate) fn with_state(&self, state: Arc<State>) -> Snapshot {
        Snapshot { state, read: None, near: None, ..self.clone() }
    }

    /// The view after the last commit stamped at or before a time: a [`Timestamp`](crate::Timestamp), or microseconds
    /// since the epoch.
    pub fn as_of_time(&self, at: impl Moment) -> Result<Snapshot> {
        self.as_of(self.state.commit_at(at.micros())?)
    }

    /// The view that a clause `as of` names; this one without a clause.
    pub(crate) fn at(&self, clause: Option<&AsOf>) -> Result<Cow<'_, Snapshot>> {
        match clause {
            None => Ok(Cow::Borrowed(self)),
            Some(AsOf::Commit(commit)) => self.as_of(*commit).map(Cow::Owned),
            Some(AsOf::Time(time)) => self.as_of_time(time.micros).map(Cow::Owned),
        }
    }

    /// The clock of its newest commit, in microseconds since 1970.
    pub fn clock(&self) -> i64 {
        self.state.meta.clock
    }

    /// The number of items.
    pub fn len(&self) -> u32 {
        self.state.bound()
    }

    /// Returns true if there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The embedding space, if the database has one.
    pub fn space(&self) -> Result<Option<Space>> {
        self.state.meta.space.as_deref().map(Space::try_from).transpose()
    }

    /// The item that holds a key.
    pub fn get(&self, key: &str) -> Result<Option<Item>> {
        self.unless_erased(|view| view.state.item_by_key(key)?.map(|id| view.item_as_read(id)).transpose())
    }

    /// The keys with a prefix, in order, at most `most`.
    pub fn keys(&self, prefix: &str, most: usize) -> Result<Vec<String>> {
        self.names(tables::KEY, prefix, most)
    }

    /// The ids of episodes with a prefix, in order, at most `most`.
    pub fn episodes(&self, prefix: &str, most: usize) -> Result<Vec<String>> {
        self.names(tables::EPISODE_ID, prefix, most)
    }

    fn names(&self, table: u8, prefix: &str, most: usize) -> Result<Vec<String>> {
        let rows = self.state.scan_some(table, prefix.as_bytes(), most)?;
        Ok(rows.iter().map(|(key, _)| String::from_utf8_lossy(key).into_owned()).collect())
    }

    /// The item with this id.
    pub fn item(&self, id: ItemId) -> Result<Item> {
        self.unless_erased(|view| view.item_as_read(id))
    }

    fn item_as_read(&self, id: ItemId) -> Result<Item> {
        Ok(Item { id, key: self.key_of(id)?, attributes: self.attributes(id)?, content: self.content(id)? })
    }

    /// The attributes of an item, without its content.
    pub fn attributes(&self, id: ItemId) -> Result<ItemAttributes> {
        self.core.unless_cut(|| ItemAttributes::new(&self.state, id))
    }

    /// The targets of edges of a type from `from`.
    pub fn linked(&self, from: ItemId, edge: Edge) -> Result<Vec<ItemId>> {
        let mut ends: Vec<ItemId> = self.state.edges_out(from, Some(edge))?.iter().map(|end| end.far).collect();
        if edge.is_symmetric() {
            ends.extend(self.state.edges_in(from, Some(edge))?.iter().map(|end| end.far));
        }
        Ok(ends)
    }

    /// The sources of edges of a type to `to`.
    pub fn linking(&self, to: ItemId, edge: Edge) -> Result<Vec<ItemId>> {
        if edge.is_symmetric() {
            return self.linked(to, edge);
        }
        Ok(self.state.edges_in(to, Some(edge))?.iter().map(|end| end.far).collect())
    }

    /// The vector of an item, rounded to the space's encoding.
    pub fn vector(&self, id: ItemId) -> Result<Option<Vec<f32>>> {
        let Some(space) = self.space()? else { return Ok(None) };
        self.tick()?;
        self.unless_erased(|view| view.reader.vector(&view.state, id)?.map(|bytes| space.decode(&bytes)).transpose())
    }

    /// The stored vector of an item with this record: its own, or the one that was made since.
    pub(crate) fn vector_in_force(&self, record: &ItemRecord) -> Result<Option<Vec<u8>>> {
        match (&record.vector, self.state.vector_epoch()?) {
            (Some(own), None) => Ok(Some(own.clone())),
            _ => self.reader.vector(&self.state, record.item()),
        }
    }

    pub(crate) fn content(&self, id: ItemId) -> Result<Content> {
        self.tick()?;
        self.check_not_erased()?;
        let Some(read) = &self.read else { return self.read_content(id) };
        if let Some(content) = read.lock().unwrap_or_else(PoisonError::into_inner).get(&id) {
            return Ok(content.clone());
        }
        let content = self.read_content(id)?;
        let mut read = read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.len() < MAX_CACHED_CONTENTS {
            read.insert(id, content.clone());
        }
        Ok(content)
    }

    fn read_content(&self, id: ItemId) -> Result<Content> {
        let content = self.reader.read(&self.state, id);
        if let Err(error @ Error::Storage(holotype_storage::Error::Damaged(_))) = &content {
            self.core.damage.unreadable(id, error.to_string());
        }
        content
    }

    /// The current key of an item whose record holds another one.
    pub(crate) fn moved_key(&self, id: ItemId) -> Result<Option<String>> {
        self.state.moved_key(id)
    }

    /// The key of an item.
    pub fn key_of(&self, id: ItemId) -> Result<String> {
        if let Some(moved) = self.moved_key(id)? {
            return Ok(moved);
        }
        Ok(self.content(id)?.record.key.clone().unwrap_or_else(|| id.to_string()))
    }

    /// The item with this key, or with this id for `#` and a number, even if its content is erased.
    ///
    /// # Errors
    /// [`Error::Missing`].
    pub fn item_named(&self, name: &str) -> Result<ItemId> {
        self.resolve_item(&ItemRef::Key(name.to_owned()))
    }

    /// The item that a statement names by id or key.
    pub(crate) fn resolve_item(&self, item: &ItemRef) -> Result<ItemId> {
        match item {
            ItemRef::Id(number) => match u32::try_from(*number) {
                Ok(number) if number < self.state.bound() => Ok(ItemId(number)),
                _ => Err(Error::Missing { what: "item", name: format!("#{number}") }),
            },
            ItemRef::Key(key) => {
                let by_number =
                    || key.strip_prefix('#')?.parse().ok().filter(|number| *number < self.state.bound()).map(ItemId);
                let found = self.state.item_by_key(key)?.or_else(by_number);
                found.ok_or_else(|| Error::Missing { what: "item", name: format!("'{key}'") })
            }
        }
    }

    /// The traces of the page with that key.
    pub(crate) fn page_traces(&self, key: &str) -> Result<Vec<ItemId>> {
        let missing = || Error::Missing { what: "page", name: format!("'{key}'") };
        let number = self.state.page_number(key)?.ok_or_else(missing)?;
        Ok(self.state.page(number)?.traces.into_iter().map(ItemId).collect())
    }

    /// The pointers of an item, each verified by reading and hashing its bytes again.
    pub fn citations(&self, id: ItemId) -> Result<Vec<Citation>> {
        self.unless_erased(|view| view.state.pointers(id)?.iter().map(|pointer| view.check(pointer)).collect())
    }

    /// Verifies a pointer.
    fn check(&self, pointer: &PointerRecord) -> Result<Citation> {
        match pointer.target {
            PointerTarget::Item(id) => self.check_span(ItemId(id), pointer),
            PointerTarget::Page(page) => self.check_page(page, pointer),
        }
    }

    /// Fails if content was erased after this snapshot was taken.
    pub(crate) fn check_not_erased(&self) -> Result<()> {
        if self.is_before_erasure() { Err(Error::SnapshotForgotten) } else { Ok(()) }
    }

    fn is_before_erasure(&self) -> bool {
        self.state.meta.forgets < self.core.forgets.load(std::sync::atomic::Ordering::Acquire)
    }

    /// Runs what reads this view. If content was erased since the view was taken, or is while this reads, it goes on
    /// with the same commit as the newest state knows it: without the content, and otherwise the same.
    pub(crate) fn unless_erased<T>(&self, read: impl Fn(&Snapshot) -> Result<T>) -> Result<T> {
        for _ in 0..MAX_ERASURES {
            match self.without_erased().and_then(|view| read(&view)) {
                Err(Error::SnapshotForgotten) => {}
                done => return done,
            }
        }
        Err(Error::SnapshotForgotten)
    }

    fn without_erased(&self) -> Result<Cow<'_, Snapshot>> {
        if !self.is_before_erasure() {
            return Ok(Cow::Borrowed(self));
        }
        let newest = self.core.published.load_full();
        let state = self.core.past(&newest, self.commit())?;
        Ok(Cow::Owned(self.with_state(state)))
    }

    fn check_span(&self, id: ItemId, pointer: &PointerRecord) -> Result<Citation> {
        let cited = self.state.cited(id)?;
        let content = match self.content(id) {
            Ok(content) => Some(content),
            Err(error) if is_damage(&error) => None,
            Err(error) => return Err(error),
        };
        self.cite(id, cited, content.as_ref(), pointer)
    }

    /// The citation of a pointer. `content` is `None` if the target cannot be read as written.
    fn cite(&self, id: ItemId, cited: Cited, content: Option<&Content>, pointer: &PointerRecord) -> Result<Citation> {
        let field = content.and_then(|content| content.field(&pointer.field));
        let bytes = field.map(|field| field.value.bytes());
        let span =
            bytes.and_then(|bytes| bytes.get(usize::try_from(pointer.start).ok()?..usize::try_from(pointer.end).ok()?));
        let verdict = match (content, span) {
            _ if cited.redacted => Verdict::Redacted,
            (None, _) => Verdict::Mismatch,
            (Some(_), None) => Verdict::Unresolved,
            (Some(_), Some(span)) if blake3::hash(span).as_bytes() != &pointer.hash => Verdict::Mismatch,
            (Some(_), Some(_)) => Verdict::Ok,
        };
        let text = span.filter(|_| verdict == Verdict::Ok).map(|span| String::from_utf8_lossy(span).into_owned());
        let record = content.map(|content| &content.record);
        let episode =
            || cited.episode.and_then(|episode| self.state.episode_id(episode).ok()).map(|id| id.as_ref().to_owned());
        let target = match record {
            Some(record) => match self.moved_key(id)? {
                Some(moved) => moved,
                None => record.key.clone().unwrap_or_else(|| id.to_string()),
            },
            None => id.to_string(),
        };
        Ok(Citation {
            target,
            tool: record.and_then(|record| record.tool.clone()),
            log_id: record
                .and_then(|record| record.log_id.clone())
                .or_else(|| if cited.layer == Layer::Trace { episode() } else { None }),
            step: cited.step.filter(|_| cited.layer == Layer::Trace),
            field: pointer.field.clone(),
            start: pointer.start,
            end: pointer.end,
            hash: hex_of(&pointer.hash),
            verdict,
            text,
        })
    }

    fn check_page(&self, number: u32, pointer: &PointerRecord) -> Result<Citation> {
        let page = self.state.page(number)?;
        let verdict = match self.hash_page(&page.traces) {
            _ if self.state.any_redacted(&page.traces)? => Verdict::Redacted,
            Ok(hash) if hash == pointer.hash => Verdict::Ok,
            Ok(_) => Verdict::Mismatch,
            Err(error) if is_damage(&error) => Verdict::Mismatch,
            Err(error) => return Err(error),
        };
        Ok(Citation {
            target: page.key,
            tool: None,
            log_id: None,
            step: None,
            field: String::new(),
            start: 0,
            end: 0,
            hash: hex_of(&pointer.hash),
            verdict,
            text: None,
        })
    }

    /// The hash of a page, computed from its lines as they read now.
    pub(crate) fn hash_page(&self, traces: &[u32]) -> Result<[u8; 32]> {
        let mut hash = PageHash::default();
        for trace in traces {
            hash.push(&self.content(ItemId(*trace))?.record);
        }
        Ok(hash.get())
    }

    /// A citation of a trace's own text, so that users of the row can cite it.
    pub(crate) fn own_citation(&self, id: ItemId, attributes: &Attributes, content: &Content) -> Result<Citation> {
        let text = content.text();
        let pointer = PointerRecord {
            target: PointerTarget::Item(id.0),
            field: "text".to_owned(),
            start: 0,
            end: text.len() as u64,
            hash: *blake3::hash(text.as_bytes()).as_bytes(),
        };
        self.cite(id, Cited::from(attributes), Some(content), &pointer)
    }
}

/// A span's hash in hex digits; empty if the span was erased together with its hash.
fn hex_of(hash: &[u8; 32]) -> String {
    if *hash == crate::model::pointer::NO_HASH { String::new() } else { hex(hash) }
}

/// Returns true if an error means that stored bytes differ from the written ones.
pub(crate) fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. } | Error::UnknownRecord { .. })
        || matches!(error, Error::Storage(holotype_storage::Error::Damaged(_) | holotype_storage::Error::Decode { .. }))
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("commit", &self.commit()).field("items", &self.len()).finish()
    }
}
