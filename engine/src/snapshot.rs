//! Snapshots: a consistent view that never changes and holds up nobody.

use crate::answer::Citation;
use crate::attributes::Cited;
use crate::content::{Content, ContentReader};
use crate::database::Inner;
use crate::edge::Edge;
use crate::item::{Attributes, ItemId, Layer};
use crate::limits::{Limits, Meter};
use crate::pages::PageHash;
use crate::pressure::Held;
use crate::provenance::{Verdict, field_bytes, hex};
use crate::record::{PointerRecord, PointerTarget};
use crate::space::Space;
use crate::state::State;
use crate::{Error, Result, tables};
use holotype_query::ast::AsOf;
use holotype_query::{ItemRef, Spanned};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A consistent view of a database as of one transaction.
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) inner: Arc<Inner>,
    pub(crate) state: Arc<State>,
    reader: ContentReader,
    /// Nothing for the view of a transaction.
    _held: Option<Arc<Held>>,
    limits: Limits,
    /// What the statement under way has taken, when anything is limited.
    meter: Option<Arc<Meter>>,
    /// What the answer under way has read: it looks at some of it several times.
    read: Option<Arc<Mutex<HashMap<ItemId, Content>>>>,
}

/// So many contents are kept for one answer.
const MOST_READ: usize = 1_024;

/// An item with its scalar state and its content.
#[derive(Debug, Clone)]
pub struct Item {
    /// Its number.
    pub id: ItemId,
    /// Its key.
    pub key: String,
    /// What holds of it.
    pub attributes: Attributes,
    /// What was written of it.
    pub content: Content,
}

impl Snapshot {
    pub(crate) fn new(inner: Arc<Inner>, state: Arc<State>, reader: ContentReader) -> Self {
        Snapshot { inner, state, reader, _held: None, limits: Limits::none(), meter: None, read: None }
    }

    /// The same view, which is known to be held from now on.
    pub(crate) fn held(self) -> Self {
        let held = self.inner.gate.hold(self.inner.now());
        Snapshot { _held: Some(Arc::new(held)), ..self }
    }

    /// The same view with limits for each statement that is run on it.
    pub fn with_limits(&self, limits: &Limits) -> Snapshot {
        Snapshot { limits: limits.clone(), meter: None, ..self.clone() }
    }

    /// The same view for one answer, for which each content is read once.
    pub(crate) fn reading_once(&self) -> Snapshot {
        Snapshot { read: Some(Arc::default()), ..self.clone() }
    }

    /// The view that one statement runs on, which counts what it takes.
    pub(crate) fn metered(&self) -> Cow<'_, Snapshot> {
        match self.limits.start().filter(|_| self.meter.is_none()) {
            Some(meter) => Cow::Owned(Snapshot { meter: Some(meter), ..self.clone() }),
            None => Cow::Borrowed(self),
        }
    }

    /// Says that the statement goes on, or why it must not.
    pub(crate) fn tick(&self) -> Result<()> {
        self.meter.as_ref().map_or(Ok(()), |meter| meter.tick())
    }

    /// Says that the statement looks at so many more rows.
    pub(crate) fn look_at(&self, rows: u64) -> Result<()> {
        self.meter.as_ref().map_or(Ok(()), |meter| meter.rows(rows))
    }

    /// Says that the statement keeps so many more bytes.
    pub(crate) fn keep(&self, bytes: usize) -> Result<()> {
        self.meter.as_ref().map_or(Ok(()), |meter| meter.memory(bytes))
    }

    /// The transaction the view is as of.
    pub fn commit(&self) -> u64 {
        self.state.meta.commit
    }

    /// The view as it was after an earlier commit: statuses, edges, claims, support, pages and word statistics as they were,
    /// the embedding space and what was erased as of today.
    ///
    /// # Errors
    /// [`Error::FutureCommit`].
    pub fn as_of(&self, commit: u64) -> Result<Snapshot> {
        if commit == self.commit() && self.state.changes.is_empty() {
            return Ok(self.clone());
        }
        let state = self.inner.past(&self.state, commit)?;
        Ok(self.with_state(state))
    }

    /// The same view of another state of the same database.
    pub(crate) fn with_state(&self, state: Arc<State>) -> Snapshot {
        Snapshot { state, read: None, ..self.clone() }
    }

    /// The view as it was at a time: after the last commit stamped at or before it.
    pub fn as_of_time(&self, micros: i64) -> Result<Snapshot> {
        self.as_of(self.state.commit_at(micros)?)
    }

    /// The view a clause `as of` names; this one without a clause.
    pub(crate) fn at(&self, clause: Option<&Spanned<AsOf>>) -> Result<Cow<'_, Snapshot>> {
        match clause.map(|clause| &clause.node) {
            None => Ok(Cow::Borrowed(self)),
            Some(AsOf::Commit(commit)) => self.as_of(*commit.node.bound()).map(Cow::Owned),
            Some(AsOf::Time(time)) => self.as_of_time(time.node.bound().micros).map(Cow::Owned),
        }
    }

    /// How many items there are.
    pub fn len(&self) -> u32 {
        self.state.bound()
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The embedding space, if the database has one.
    pub fn space(&self) -> Result<Option<Space>> {
        self.state.meta.space.as_deref().map(Space::try_from).transpose()
    }

    /// The item that holds a key.
    pub fn get(&self, key: &str) -> Result<Option<Item>> {
        self.check_remembers()?;
        match self.state.item_by_key(key)? {
            Some(id) => self.item(id).map(Some),
            None => Ok(None),
        }
    }

    /// The keys of items that begin with a text, in order, at most so many.
    pub fn keys(&self, prefix: &str, most: usize) -> Result<Vec<String>> {
        self.names(tables::KEY, prefix, most)
    }

    /// The ids of episodes that begin with a text, in order, at most so many.
    pub fn episodes(&self, prefix: &str, most: usize) -> Result<Vec<String>> {
        self.names(tables::EPISODE_ID, prefix, most)
    }

    fn names(&self, table: u8, prefix: &str, most: usize) -> Result<Vec<String>> {
        let rows = self.state.scan_some(table, prefix.as_bytes(), most)?;
        Ok(rows.iter().map(|(key, _)| String::from_utf8_lossy(key).into_owned()).collect())
    }

    /// The item of that number.
    pub fn item(&self, id: ItemId) -> Result<Item> {
        let attributes = self.state.attributes(id)?;
        Ok(Item { id, key: self.key_of(id)?, attributes, content: self.content(id)? })
    }

    /// The items that `from` is linked to by an edge of that type.
    pub fn linked(&self, from: ItemId, edge: Edge) -> Result<Vec<ItemId>> {
        let mut ends: Vec<ItemId> = self.state.edges_out(from, Some(edge))?.iter().map(|end| end.far).collect();
        if edge.is_symmetric() {
            ends.extend(self.state.edges_in(from, Some(edge))?.iter().map(|end| end.far));
        }
        Ok(ends)
    }

    /// The items that are linked to `to` by an edge of that type.
    pub fn linking(&self, to: ItemId, edge: Edge) -> Result<Vec<ItemId>> {
        if edge.is_symmetric() {
            return self.linked(to, edge);
        }
        Ok(self.state.edges_in(to, Some(edge))?.iter().map(|end| end.far).collect())
    }

    /// The vector of an item, as it was given up to the space's encoding.
    pub fn vector(&self, id: ItemId) -> Result<Option<Vec<f32>>> {
        let Some(space) = self.space()? else { return Ok(None) };
        let content = self.content(id)?;
        content.record.vector.as_deref().map(|bytes| space.decode(bytes)).transpose()
    }

    pub(crate) fn content(&self, id: ItemId) -> Result<Content> {
        self.tick()?;
        self.check_remembers()?;
        let Some(read) = &self.read else { return self.reader.read(&self.state, id) };
        if let Some(content) = read.lock().unwrap_or_else(PoisonError::into_inner).get(&id) {
            return Ok(content.clone());
        }
        let content = self.reader.read(&self.state, id)?;
        let mut read = read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.len() < MOST_READ {
            read.insert(id, content.clone());
        }
        Ok(content)
    }

    /// The key of an item that has another than it was written with.
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

    /// The item with that key, or, for `#` and a number, the item of that number, whatever became of its content.
    ///
    /// # Errors
    /// [`Error::Missing`].
    pub fn item_named(&self, name: &str) -> Result<ItemId> {
        self.resolve_item(&ItemRef::Key(name.to_owned()))
    }

    /// The item a statement names, by number or by key.
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

    /// The pointers of an item with what is found when the bytes are read and hashed again.
    pub fn citations(&self, id: ItemId) -> Result<Vec<Citation>> {
        self.state.pointers(id)?.iter().map(|pointer| self.check(pointer)).collect()
    }

    /// Reads and hashes what a pointer points to.
    fn check(&self, pointer: &PointerRecord) -> Result<Citation> {
        match pointer.target {
            PointerTarget::Item(id) => self.check_span(ItemId(id), pointer),
            PointerTarget::Page(page) => self.check_page(page, pointer),
        }
    }

    /// Refuses to go on when something was forgotten since.
    pub(crate) fn check_remembers(&self) -> Result<()> {
        if self.state.meta.forgets < self.inner.forgets.load(std::sync::atomic::Ordering::Acquire) {
            return Err(Error::SnapshotForgotten);
        }
        Ok(())
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

    /// A pointer with what its target holds; nothing where that cannot be read as it was written.
    fn cite(&self, id: ItemId, cited: Cited, content: Option<&Content>, pointer: &PointerRecord) -> Result<Citation> {
        let field = content.and_then(|content| content.field(&pointer.field));
        let bytes = field.map(|field| field_bytes(&field.value));
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

    /// The hash of a page's lines as they are read now.
    pub(crate) fn hash_page(&self, traces: &[u32]) -> Result<[u8; 32]> {
        let mut hash = PageHash::default();
        for trace in traces {
            hash.push(&self.content(ItemId(*trace))?.record);
        }
        Ok(hash.get())
    }

    /// A trace's own text as a citation, so that whoever uses the row can cite it.
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

/// A span's hash in hex digits; nothing when the span was erased and its hash with it.
fn hex_of(hash: &[u8; 32]) -> String {
    if *hash == crate::forget::NO_HASH { String::new() } else { hex(hash) }
}

/// Whether an error says that stored bytes are not what they were.
pub(crate) fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. } | Error::UnknownRecord { .. })
        || matches!(error, Error::Storage(holotype_storage::Error::Damaged(_) | holotype_storage::Error::Decode { .. }))
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("commit", &self.commit()).field("items", &self.len()).finish()
    }
}
