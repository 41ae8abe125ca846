//! The state of the database after a transaction: one immutable value, replaced by one atomic swap.
//!
//! A `State` is everything a reader needs: catalog rows (the last checkpoint under the overlay), attribute columns
//! with their later changes, vector and word segments with their tails, and the id bound. Cloning one is cheap
//! (shared structure), so a transaction works on its own copy and a snapshot is simply an `Arc<State>`.
//!
//! Invariants:
//! 1. A published state never changes.
//! 2. State is a function of the log: applying the same records gives the same answers (see `apply`).
//! 3. Between checkpoints every change stands in the overlay; a checkpoint moves it into derived files without
//!    changing any answer.

use crate::attributes::{AttributeStore, AttributesSavepoint, Cited};
use crate::edge::Edge;
use crate::history::{Changes, Totals};
use crate::hot_episode::HotEpisode;
use crate::item::{Attributes, ItemId, Layer};
use crate::layers::LayerIndex;
use crate::names::Names;
use crate::record::PointerRecord;
use crate::tables::{self, EdgeRow, Meta, PageRow, PointersRow};
use crate::{Error, Result};
use bincode::{Decode, Encode};
use holotype_storage::SmallBytes;
use holotype_storage::codec;
use holotype_storage::log::Head;
use holotype_storage::overlay::{self, View};
use imbl::OrdSet;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// One end of an edge as a walk sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EdgeEnd {
    pub(crate) edge: Edge,
    pub(crate) far: ItemId,
    pub(crate) row: EdgeRow,
}

impl EdgeEnd {
    /// Of the row with that key.
    pub(crate) fn decode(key: &[u8], row: EdgeRow) -> Result<EdgeEnd> {
        match (key.get(4).copied().and_then(Edge::from_byte), tables::number_at(key, 5)) {
            (Some(edge), Some(far)) => Ok(EdgeEnd { edge, far: ItemId(far), row }),
            _ => Err(Error::Corrupt { what: format!("an edge row has the malformed key {}", key.escape_ascii()) }),
        }
    }
}

/// A row of the catalog: its key and its value.
pub(crate) type StoredRow = (Vec<u8>, SmallBytes);

/// Everything that holds after a transaction.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) meta: Meta,
    pub(crate) head: Head,
    pub(crate) rows: View,
    pub(crate) attributes: AttributeStore,
    pub(crate) layers: [LayerIndex; 3],
    /// Items whose derived attributes must be recomputed before the transaction is read or committed.
    pub(crate) unsettled: OrdSet<u32>,
    /// Items that changed in what decides between competing claims.
    pub(crate) disputed: OrdSet<u32>,
    /// What the transaction under way has changed, as it was before.
    pub(crate) changes: Changes,
    /// The totals after the last transaction.
    pub(crate) sealed: Totals,
    /// A past state: rows that its totals do not include came later.
    pub(crate) is_past: bool,
    /// The episode that was written to last. Until the state is settled it may be ahead of the episode's row.
    pub(crate) hot: Option<HotEpisode>,
    pub(crate) at_hand: AtHand,
}

/// What was looked up in rows that seldom change.
#[derive(Clone, Default)]
pub(crate) struct AtHand {
    /// The setting `page.tokens`.
    pub(crate) page_tokens: OnceLock<u64>,
    /// The settings that were stated.
    settings: OnceLock<Arc<BTreeMap<String, String>>>,
    /// Whether any item has another key than it was written with.
    moved_keys: OnceLock<bool>,
    episode_ids: Names,
    symbol_names: Names,
}

/// Where a state stood within a transaction, to come back to. The indexes of the layers are not in it: what a transaction
/// writes joins them at its end.
#[must_use = "ends with `State::release` or `State::roll_back`"]
pub(crate) struct Savepoint {
    meta: Meta,
    rows: overlay::Savepoint,
    attributes: AttributesSavepoint,
    unsettled: OrdSet<u32>,
    hot: Option<HotEpisode>,
    changes: Changes,
}

impl State {
    /// The number of items: every id of this state is below it.
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
            unsettled: self.unsettled.clone(),
            hot: self.hot.clone(),
            changes: self.changes.clone(),
        }
    }

    /// Ends a savepoint; the changes since stay.
    pub(crate) fn release(&mut self, savepoint: Savepoint) {
        self.rows.release(savepoint.rows);
        self.attributes.release(savepoint.attributes);
    }

    /// Takes back every change since a savepoint, and ends it.
    pub(crate) fn roll_back(&mut self, savepoint: Savepoint) {
        self.meta = savepoint.meta;
        self.rows.roll_back(savepoint.rows);
        self.attributes.roll_back(savepoint.attributes);
        self.unsettled = savepoint.unsettled;
        self.hot = savepoint.hot;
        self.changes = savepoint.changes;
        self.at_hand = AtHand::default();
    }

    // ---- rows ----

    pub(crate) fn get<T: Decode<()>>(&self, table: u8, key: &[u8]) -> Result<Option<T>> {
        match self.rows.get(table, key)? {
            Some(value) if self.includes(table, key, &value)? => Ok(Some(codec::decode(&value)?)),
            _ => Ok(None),
        }
    }

    /// Writes a row; what it replaces becomes history at the end of the transaction.
    pub(crate) fn put<T: Encode>(&mut self, table: u8, key: impl AsRef<[u8]>, value: &T) -> Result<()> {
        self.note_row(table, key.as_ref())?;
        self.put_new(table, key, value)
    }

    /// Writes a row that was not there.
    pub(crate) fn put_new<T: Encode>(&mut self, table: u8, key: impl AsRef<[u8]>, value: &T) -> Result<()> {
        self.rows.put(table, key, codec::encode(value)?);
        Ok(())
    }

    /// Writes a row that was not there, with a number for its value.
    pub(crate) fn put_new_number(&mut self, table: u8, key: impl AsRef<[u8]>, number: u32) {
        self.rows.put(table, key, number.to_le_bytes());
    }

    pub(crate) fn put_empty(&mut self, table: u8, key: impl AsRef<[u8]>) -> Result<()> {
        self.note_row(table, key.as_ref())?;
        self.rows.put(table, key, []);
        Ok(())
    }

    pub(crate) fn delete(&mut self, table: u8, key: impl AsRef<[u8]>) -> Result<()> {
        self.note_row(table, key.as_ref())?;
        self.rows.delete(table, key);
        Ok(())
    }

    pub(crate) fn has(&self, table: u8, key: &[u8]) -> Result<bool> {
        match self.rows.get(table, key)? {
            Some(value) => self.includes(table, key, &value),
            None => Ok(false),
        }
    }

    /// Whether a stored row belongs to this state: of a past one, whether it was there already.
    fn includes(&self, table: u8, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(!self.is_past || self.sealed.include(table, key, value)?)
    }

    /// Every row of a table whose key begins with `prefix`, in key order.
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

    /// The first rows of a table whose key begins with `prefix`, at most so many.
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

    /// The key of an item that has another than it was written with.
    pub(crate) fn moved_key(&self, id: ItemId) -> Result<Option<String>> {
        let any = match self.at_hand.moved_keys.get() {
            Some(any) => *any,
            None => {
                let any = !self.scan_some(tables::KEY_OF, &[], 1)?.is_empty();
                *self.at_hand.moved_keys.get_or_init(|| any)
            }
        };
        if any { self.get(tables::KEY_OF, &tables::numbers([id.0])) } else { Ok(None) }
    }

    /// Where the record of an item below the bound stands in the log, and whether it was erased.
    pub(crate) fn place_of(&self, id: ItemId) -> Result<(u64, bool)> {
        self.check_bound(id)?;
        self.attributes.place_of(id)
    }

    /// What a citation says of an item below the bound.
    pub(crate) fn cited(&self, id: ItemId) -> Result<Cited> {
        self.check_bound(id)?;
        self.attributes.cited(id)
    }

    /// When an item below the bound happened: its step and its time.
    pub(crate) fn moment(&self, id: ItemId) -> Result<(Option<u64>, Option<i64>)> {
        self.check_bound(id)?;
        self.attributes.moment(id)
    }

    fn check_bound(&self, id: ItemId) -> Result<()> {
        if id.0 < self.bound() { Ok(()) } else { Err(Error::Missing { what: "item", name: id.to_string() }) }
    }

    /// The scalar state of an item below the bound.
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

    /// The edges that leave an item; of one type, or of all.
    pub(crate) fn edges_out(&self, id: ItemId, edge: Option<Edge>) -> Result<Vec<EdgeEnd>> {
        self.edges(tables::EDGE_OUT, id, edge)
    }

    /// The edges that arrive at an item; of one type, or of all.
    pub(crate) fn edges_in(&self, id: ItemId, edge: Option<Edge>) -> Result<Vec<EdgeEnd>> {
        self.edges(tables::EDGE_IN, id, edge)
    }

    /// All edges at one end of an item, without a copy where they are at hand.
    pub(crate) fn ends(&self, table: u8, id: ItemId) -> Result<Cow<'_, [EdgeEnd]>> {
        match self.adjacent(table, id)? {
            Some(ends) => Ok(ends),
            None => self.edges(table, id, None).map(Cow::Owned),
        }
    }

    fn edges(&self, table: u8, id: ItemId, edge: Option<Edge>) -> Result<Vec<EdgeEnd>> {
        if let Some(ends) = self.adjacent(table, id)? {
            return Ok(ends.iter().filter(|end| edge.is_none_or(|edge| end.edge == edge)).copied().collect());
        }
        let mut prefix = tables::numbers([id.0]);
        prefix.extend(edge.map(Edge::to_byte));
        let rows = self.scan(table, &prefix)?;
        rows.iter().map(|(key, value)| EdgeEnd::decode(key, codec::decode(value)?)).collect()
    }

    /// Every episode an item belongs to, by number.
    pub(crate) fn episodes_of(&self, id: ItemId, attributes: &Attributes) -> Result<Vec<u32>> {
        let mut episodes: Vec<u32> = attributes.episode.into_iter().collect();
        if attributes.layer() != Layer::Trace {
            for (key, _) in self.scan(tables::ALSO_OF, &tables::numbers([id.0]))? {
                episodes.extend(tables::number_at(&key, 4));
            }
        }
        Ok(episodes)
    }

    // ---- episodes, pages, symbols, settings ----

    /// The id of an episode, for which its row need not be read again.
    pub(crate) fn episode_id(&self, number: u32) -> Result<Arc<str>> {
        self.at_hand.episode_ids.of(number, || Ok(self.episode(number)?.id.as_str().into()))
    }

    /// Lets go of what is kept beside the rows, which are about to become others.
    pub(crate) fn forget_what_is_at_hand(&mut self) {
        self.hot = None;
        self.at_hand = AtHand::default();
    }

    /// The trace of this tool, log and step, if there is one.
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

    /// The number of a symbol (a version, speaker, tool or log name), if it was ever used.
    pub(crate) fn symbol(&self, name: &str) -> Result<Option<u32>> {
        self.get(tables::SYMBOL_NAME, name.as_bytes())
    }

    /// The name a symbol's number stands for.
    pub(crate) fn symbol_name(&self, number: u32) -> Result<String> {
        let name = self.at_hand.symbol_names.of(number, || {
            let name: Option<String> = self.get(tables::SYMBOL, &tables::numbers([number]))?;
            let name = name.ok_or_else(|| Error::Missing { what: "symbol", name: format!("number {number}") })?;
            Ok(name.into())
        });
        Ok(name?.as_ref().to_owned())
    }

    /// The number of a symbol, given now if it has none.
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
        if let Some(stated) = self.at_hand.settings.get() {
            return Ok(stated.get(name).cloned());
        }
        let mut stated = BTreeMap::new();
        for (name, value) in self.scan(tables::SETTING, &[])? {
            stated.insert(String::from_utf8_lossy(&name).into_owned(), codec::decode(&value)?);
        }
        Ok(self.at_hand.settings.get_or_init(|| Arc::new(stated)).get(name).cloned())
    }
}
