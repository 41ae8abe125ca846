//! The state of the database after a transaction: one immutable value, published by one atomic swap.
//!
//! A `State` holds everything a reader needs: catalog rows (an overlay over the last checkpoint), attribute columns
//! with later changes, vector and word segments with their tails, and the id bound. Cloning is cheap because
//! structure is shared: a transaction works on its own copy, and a snapshot is an `Arc<State>`.
//!
//! Invariants:
//! 1. A published state never changes.
//! 2. State is a function of the log: applying the same records gives the same answers (see `apply`).
//! 3. Between checkpoints every change is in the overlay. A checkpoint moves it to derived files without changing any
//!    answer.

pub(crate) mod adjacency;
pub(crate) mod apply;
pub(crate) mod attributes;
pub(crate) mod claims;
pub(crate) mod conflicts;
pub(crate) mod content;
pub(crate) mod covered_items;
pub(crate) mod embedder;
pub(crate) mod episode_cache;
pub(crate) mod frame_texts;
pub(crate) mod history;
pub(crate) mod layers;
pub(crate) mod lineage;
pub(crate) mod name_cache;
pub(crate) mod pages;
pub(crate) mod reader_position;
pub(crate) mod record_tree;
pub(crate) mod replay;
pub(crate) mod settings;
pub(crate) mod vectors;
pub(crate) mod vectors_in_log;

use crate::extract::ExtractOptions;
use crate::model::edge::Edge;
use crate::model::item::{Attributes, ItemId, Layer};
use crate::records::record::PointerRecord;
use crate::records::tables::Totals;
use crate::records::tables::{self, EdgeRow, Meta, PageRow, PointersRow};
use crate::state::adjacency::Ends;
use crate::state::attributes::{AttributeStore, Cited};
use crate::state::episode_cache::EpisodeCache;
use crate::state::history::BeforeImages;
use crate::state::layers::{LayerIndex, analyzer, empty_layers};
use crate::state::name_cache::NameCache;
use crate::{Error, Result};
use bincode::{Decode, Encode};
use holotype_storage::SmallBytes;
use holotype_storage::catalog::Catalog;
use holotype_storage::codec;
use holotype_storage::layered;
use holotype_storage::log::Head;
use holotype_storage::overlay::View;
use imbl::OrdSet;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// One end of an edge, seen from the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EdgeEnd {
    pub(crate) edge: Edge,
    pub(crate) far: ItemId,
}

/// The beginning of the keys of an item's edges, of one type or of all.
fn edge_prefix(id: ItemId, edge: Option<Edge>) -> Vec<u8> {
    let mut prefix = tables::numbers([id.0]);
    prefix.extend(edge.map(Edge::to_byte));
    prefix
}

impl EdgeEnd {
    /// Decodes the key of an edge row.
    pub(crate) fn decode(key: &[u8]) -> Result<EdgeEnd> {
        match (key.get(4).copied().and_then(Edge::from_byte), tables::number_at(key, 5)) {
            (Some(edge), Some(far)) => Ok(EdgeEnd { edge, far: ItemId(far) }),
            _ => Err(Error::Corrupt { what: format!("an edge row has the malformed key {}", key.escape_ascii()) }),
        }
    }
}

/// A row of the catalog: its key and its value.
pub(crate) type StoredRow = (Vec<u8>, SmallBytes);

/// The complete state after a transaction.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) meta: Meta,
    pub(crate) head: Head,
    pub(crate) rows: View,
    pub(crate) attributes: AttributeStore,
    pub(crate) layers: [LayerIndex; 3],
    /// Items whose derived attributes are outdated. Empty whenever the state is read or committed.
    pub(crate) stale_items: OrdSet<u32>,
    /// Rows and attributes changed by the transaction in progress, as they were before it.
    pub(crate) before_images: BeforeImages,
    /// The totals after the last commit.
    pub(crate) committed_totals: Totals,
    /// This is a past state: rows beyond its totals are later additions and hidden.
    pub(crate) is_past: bool,
    /// Transactions of the log that replay could not apply and skipped, with the reason; those of this opening only.
    pub(crate) skipped: Vec<String>,
    /// The vectors of the index were dropped, and are read again from the log.
    pub(crate) vectors_due: bool,
    /// The episode written last. Until the state is settled it may be newer than the episode's row.
    pub(crate) episode_cache: Option<EpisodeCache>,
    pub(crate) lookup_cache: LookupCache,
}

/// Cached lookups of rows that seldom change.
#[derive(Clone, Default)]
pub(crate) struct LookupCache {
    /// The setting `page.tokens`.
    pub(crate) page_tokens: OnceLock<u64>,
    /// The explicitly set settings.
    settings: OnceLock<Arc<BTreeMap<String, String>>>,
    /// The extractor of claims, if they are extracted.
    pub(crate) extraction: OnceLock<Option<Arc<ExtractOptions>>>,
    /// True if any item's current key differs from the one in its record.
    moved_keys: OnceLock<bool>,
    episode_ids: NameCache,
    symbol_names: NameCache,
}

/// A position within a transaction to roll back to. Excludes the indexes of the layers, which a transaction extends
/// only at its end.
#[must_use = "ends with `State::release` or `State::roll_back`"]
pub(crate) struct Savepoint {
    meta: Meta,
    rows: layered::Savepoint,
    attributes: layered::Savepoint,
    stale_items: OrdSet<u32>,
    episode_cache: Option<EpisodeCache>,
    before_images: BeforeImages,
}

impl State {
    /// The empty state over the rows of a catalog, if given.
    pub(crate) fn empty(catalog: Option<&Catalog>) -> Result<State> {
        Ok(State {
            meta: Meta::default(),
            head: Head::default(),
            rows: View::new(catalog.map(Catalog::snapshot).transpose()?),
            attributes: AttributeStore::default(),
            layers: empty_layers(analyzer("english")),
            stale_items: Default::default(),
            before_images: Default::default(),
            committed_totals: Default::default(),
            is_past: false,
            skipped: Vec::new(),
            vectors_due: false,
            episode_cache: None,
            lookup_cache: Default::default(),
        })
    }

    /// The number of items, which is also the exclusive upper bound of ids.
    pub(crate) fn bound(&self) -> u32 {
        self.meta.items
    }

    /// The index of a layer's vectors and words.
    pub(crate) fn layer(&self, layer: Layer) -> &LayerIndex {
        &self.layers[layer as usize]
    }

    // ---- savepoints ----

    pub(crate) fn savepoint(&mut self) -> Savepoint {
        Savepoint {
            meta: self.meta.clone(),
            rows: self.rows.savepoint(),
            attributes: self.attributes.savepoint(),
            stale_items: self.stale_items.clone(),
            episode_cache: self.episode_cache.clone(),
            before_images: self.before_images.clone(),
        }
    }

    /// Closes a savepoint and keeps the changes.
    pub(crate) fn release(&mut self, savepoint: Savepoint) {
        self.rows.release(savepoint.rows);
        self.attributes.release(savepoint.attributes);
    }

    /// Undoes every change since a savepoint and closes it.
    pub(crate) fn roll_back(&mut self, savepoint: Savepoint) {
        self.meta = savepoint.meta;
        self.rows.roll_back(savepoint.rows);
        self.attributes.roll_back(savepoint.attributes);
        self.stale_items = savepoint.stale_items;
        self.episode_cache = savepoint.episode_cache;
        self.before_images = savepoint.before_images;
        self.lookup_cache = LookupCache::default();
    }

    // ---- rows ----

    pub(crate) fn get<T: Decode<()>>(&self, table: u8, key: &[u8]) -> Result<Option<T>> {
        match self.rows.get(table, key)? {
            Some(value) if self.includes(table, key, &value)? => Ok(Some(codec::decode(&value)?)),
            _ => Ok(None),
        }
    }

    /// Writes a row. The replaced row becomes history when the transaction commits.
    pub(crate) fn put<T: Encode>(&mut self, table: u8, key: impl AsRef<[u8]>, value: &T) -> Result<()> {
        self.save_before_image(table, key.as_ref())?;
        self.put_new(table, key, value)
    }

    /// Writes a row that did not exist.
    pub(crate) fn put_new<T: Encode>(&mut self, table: u8, key: impl AsRef<[u8]>, value: &T) -> Result<()> {
        self.rows.put(table, key, codec::encode(value)?);
        Ok(())
    }

    /// Writes a row that did not exist and whose value is a number.
    pub(crate) fn put_new_number(&mut self, table: u8, key: impl AsRef<[u8]>, number: u32) {
        self.rows.put(table, key, number.to_le_bytes());
    }

    pub(crate) fn put_empty(&mut self, table: u8, key: impl AsRef<[u8]>) -> Result<()> {
        self.save_before_image(table, key.as_ref())?;
        self.rows.put(table, key, []);
        Ok(())
    }

    pub(crate) fn delete(&mut self, table: u8, key: impl AsRef<[u8]>) -> Result<()> {
        self.save_before_image(table, key.as_ref())?;
        self.rows.delete(table, key);
        Ok(())
    }

    pub(crate) fn has(&self, table: u8, key: &[u8]) -> Result<bool> {
        match self.rows.get(table, key)? {
            Some(value) => self.includes(table, key, &value),
            None => Ok(false),
        }
    }

    /// Returns true if a stored row belongs to this state. In a past state, later rows do not.
    fn includes(&self, table: u8, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(!self.is_past || self.committed_totals.include(table, key, value)?)
    }

    /// All rows of a table with a key prefix, in key order.
    pub(crate) fn scan(&self, table: u8, prefix: &[u8]) -> Result<Vec<StoredRow>> {
        let mut found = Vec::new();
        for row in self.rows.prefix(table, prefix) {
            let (key, value) = row?;
            if self.includes(table, &key, &value)? {
                found.push((key, value));
            }
        }
        Ok(found)
    }

    /// The rows of a table with a key prefix, in key order, read as they are pulled.
    pub(crate) fn iter(&self, table: u8, prefix: &[u8]) -> impl Iterator<Item = Result<StoredRow>> + use<'_> {
        self.rows.prefix(table, prefix).filter_map(move |row| match row {
            Ok((key, value)) => match self.includes(table, &key, &value) {
                Ok(true) => Some(Ok((key, value))),
                Ok(false) => None,
                Err(error) => Some(Err(error)),
            },
            Err(error) => Some(Err(error.into())),
        })
    }

    /// The first `most` rows of a table with a key prefix.
    pub(crate) fn scan_some(&self, table: u8, prefix: &[u8], most: usize) -> Result<Vec<StoredRow>> {
        let mut found = Vec::new();
        for row in self.rows.prefix(table, prefix) {
            if found.len() == most {
                break;
            }
            let (key, value) = row?;
            if self.includes(table, &key, &value)? {
                found.push((key, value));
            }
        }
        Ok(found)
    }

    // ---- items ----

    /// The item that holds a key.
    pub(crate) fn item_by_key(&self, key: &str) -> Result<Option<ItemId>> {
        Ok(self.get::<u32>(tables::KEY, key.as_bytes())?.map(ItemId))
    }

    /// The current key of an item whose record holds another one.
    pub(crate) fn moved_key(&self, id: ItemId) -> Result<Option<String>> {
        let any = match self.lookup_cache.moved_keys.get() {
            Some(any) => *any,
            None => {
                let any = !self.scan_some(tables::KEY_OF, &[], 1)?.is_empty();
                *self.lookup_cache.moved_keys.get_or_init(|| any)
            }
        };
        if any { self.get(tables::KEY_OF, &tables::numbers([id.0])) } else { Ok(None) }
    }

    /// The log position of an item's record, and whether the record was erased. The id must be below the bound.
    pub(crate) fn location_of(&self, id: ItemId) -> Result<(u64, bool)> {
        self.check_bound(id)?;
        self.attributes.location_of(id)
    }

    /// The attributes that a citation of an item below the bound shows.
    pub(crate) fn cited(&self, id: ItemId) -> Result<Cited> {
        self.check_bound(id)?;
        self.attributes.cited(id)
    }

    /// The step and time of an item below the bound.
    pub(crate) fn moment(&self, id: ItemId) -> Result<(Option<u64>, Option<i64>)> {
        self.check_bound(id)?;
        self.attributes.moment(id)
    }

    fn check_bound(&self, id: ItemId) -> Result<()> {
        if id.0 < self.bound() { Ok(()) } else { Err(Error::Missing { what: "item", name: id.to_string() }) }
    }

    /// The attributes of an item below the bound.
    pub(crate) fn attributes(&self, id: ItemId) -> Result<Attributes> {
        self.check_bound(id)?;
        let mut attributes = self.attributes.get(id)?;
        if self.is_past {
            attributes.page = attributes.page.filter(|page| *page < self.meta.pages);
        }
        Ok(attributes)
    }

    /// The pointers of an item, in the order they were stated.
    pub(crate) fn pointers(&self, id: ItemId) -> Result<Vec<PointerRecord>> {
        Ok(self.get::<PointersRow>(tables::POINTERS, &tables::numbers([id.0]))?.unwrap_or_default())
    }

    /// The outgoing edges of an item, of one type or of all.
    pub(crate) fn edges_out(&self, id: ItemId, edge: Option<Edge>) -> Result<Vec<EdgeEnd>> {
        self.edges(tables::EDGE_OUT, id, edge)
    }

    /// The incoming edges of an item, of one type or of all.
    pub(crate) fn edges_in(&self, id: ItemId, edge: Option<Edge>) -> Result<Vec<EdgeEnd>> {
        self.edges(tables::EDGE_IN, id, edge)
    }

    /// All edges at one end of an item.
    pub(crate) fn ends(&self, table: u8, id: ItemId) -> Result<Ends<'_>> {
        match self.adjacent(table, id)? {
            Some(ends) => Ok(ends),
            None => Ok(Ends::Listed(self.scanned(table, id, None)?.into_iter())),
        }
    }

    fn edges(&self, table: u8, id: ItemId, edge: Option<Edge>) -> Result<Vec<EdgeEnd>> {
        match self.adjacent(table, id)? {
            Some(ends) => Ok(ends.filter(|end| edge.is_none_or(|edge| end.edge == edge)).collect()),
            None => self.scanned(table, id, edge),
        }
    }

    /// The edges at one end of an item, without the cache.
    fn scanned(&self, table: u8, id: ItemId, edge: Option<Edge>) -> Result<Vec<EdgeEnd>> {
        self.scan(table, &edge_prefix(id, edge))?.iter().map(|(key, _)| EdgeEnd::decode(key)).collect()
    }

    /// The edges at one end of an item with their rows, of one type or of all.
    pub(crate) fn edge_rows(&self, table: u8, id: ItemId, edge: Option<Edge>) -> Result<Vec<(EdgeEnd, EdgeRow)>> {
        let rows = self.scan(table, &edge_prefix(id, edge))?;
        rows.iter().map(|(key, value)| Ok((EdgeEnd::decode(key)?, codec::decode(value)?))).collect()
    }

    /// Every episode an item of a layer belongs to, by number; `first` is the one in its attributes.
    pub(crate) fn episodes_of(&self, id: ItemId, layer: Layer, first: Option<u32>) -> Result<Vec<u32>> {
        let mut episodes: Vec<u32> = first.into_iter().collect();
        if layer != Layer::Trace {
            for (key, _) in self.scan(tables::MEMBER_EPISODE, &tables::numbers([id.0]))? {
                episodes.extend(tables::number_at(&key, 4));
            }
        }
        Ok(episodes)
    }

    // ---- episodes, pages, symbols, settings ----

    /// The cached id of an episode.
    pub(crate) fn episode_id(&self, number: u32) -> Result<Arc<str>> {
        self.lookup_cache.episode_ids.of(number, || Ok(self.episode(number)?.id.as_str().into()))
    }

    /// Drops all caches before the rows change as a whole.
    pub(crate) fn clear_caches(&mut self) {
        self.episode_cache = None;
        self.lookup_cache = LookupCache::default();
    }

    /// The trace with this tool, log and step.
    pub(crate) fn trace(&self, tool: Option<&str>, log: Option<u32>, step: u64) -> Result<Option<u32>> {
        let Some(log) = log else { return Ok(None) };
        let tool = match tool.filter(|tool| !tool.is_empty()) {
            Some(tool) => match self.symbol(tool)? {
                Some(tool) => Some(tool),
                None => return Ok(None),
            },
            None => None,
        };
        self.get(tables::TRACE, &tables::trace(tool, log, step))
    }

    pub(crate) fn page_number(&self, key: &str) -> Result<Option<u32>> {
        self.get(tables::PAGE_KEY, key.as_bytes())
    }

    pub(crate) fn page(&self, number: u32) -> Result<PageRow> {
        self.get(tables::PAGE, &tables::numbers([number]))?
            .ok_or_else(|| Error::Missing { what: "page", name: format!("number {number}") })
    }

    /// The number of a symbol (a version, speaker, tool or log name), if it is in use.
    pub(crate) fn symbol(&self, name: &str) -> Result<Option<u32>> {
        self.get(tables::SYMBOL_NAME, name.as_bytes())
    }

    /// The name of a symbol.
    pub(crate) fn symbol_name(&self, number: u32) -> Result<String> {
        let name = self.lookup_cache.symbol_names.of(number, || {
            let name: Option<String> = self.get(tables::SYMBOL, &tables::numbers([number]))?;
            let name = name.ok_or_else(|| Error::Missing { what: "symbol", name: format!("number {number}") })?;
            Ok(name.into())
        });
        Ok(name?.as_ref().to_owned())
    }

    /// The number of a symbol; assigns one if it has none.
    pub(crate) fn intern(&mut self, name: &str) -> Result<u32> {
        if let Some(number) = self.symbol(name)? {
            return Ok(number);
        }
        let number = self.meta.symbols;
        self.meta.symbols += 1;
        self.put_new(tables::SYMBOL, tables::numbers([number]), &name.to_owned())?;
        self.put_new_number(tables::SYMBOL_NAME, name, number);
        Ok(number)
    }

    pub(crate) fn setting(&self, name: &str) -> Result<Option<String>> {
        if let Some(stated) = self.lookup_cache.settings.get() {
            return Ok(stated.get(name).cloned());
        }
        let mut stated = BTreeMap::new();
        for (name, value) in self.scan(tables::SETTING, &[])? {
            stated.insert(String::from_utf8_lossy(&name).into_owned(), codec::decode(&value)?);
        }
        Ok(self.lookup_cache.settings.get_or_init(|| Arc::new(stated)).get(name).cloned())
    }
}
