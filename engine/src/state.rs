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

use crate::attributes::AttributeStore;
use crate::edge::Edge;
use crate::history::{Changes, Totals};
use crate::item::{Attributes, ItemId, Layer};
use crate::layers::LayerIndex;
use crate::record::PointerRecord;
use crate::tables::{self, EdgeRow, EpisodeRow, Meta, PageRow, PointersRow};
use crate::{Error, Result};
use bincode::{Decode, Encode};
use holotype_storage::codec;
use holotype_storage::log::Head;
use holotype_storage::overlay::View;
use imbl::OrdSet;
use std::sync::Arc;

/// One end of an edge as a walk sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EdgeEnd {
    pub(crate) edge: Edge,
    pub(crate) far: ItemId,
    pub(crate) row: EdgeRow,
}

/// A row of the catalog: its key and its value.
pub(crate) type StoredRow = (Vec<u8>, Arc<[u8]>);

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

    // ---- rows ----

    pub(crate) fn get<T: Decode<()>>(&self, table: u8, key: &[u8]) -> Result<Option<T>> {
        match self.rows.get(table, key)? {
            Some(value) if self.includes(table, key, &value)? => Ok(Some(codec::decode(&value)?)),
            _ => Ok(None),
        }
    }

    /// Writes a row; what it replaces becomes history at the end of the transaction.
    pub(crate) fn put<T: Encode>(&mut self, table: u8, key: Vec<u8>, value: &T) -> Result<()> {
        self.note_row(table, &key)?;
        self.put_new(table, key, value)
    }

    /// Writes a row that was not there.
    pub(crate) fn put_new<T: Encode>(&mut self, table: u8, key: Vec<u8>, value: &T) -> Result<()> {
        self.rows.put(table, key, codec::encode(value)?);
        Ok(())
    }

    pub(crate) fn put_empty(&mut self, table: u8, key: Vec<u8>) -> Result<()> {
        self.note_row(table, &key)?;
        self.rows.put(table, key, Vec::new());
        Ok(())
    }

    pub(crate) fn delete(&mut self, table: u8, key: Vec<u8>) -> Result<()> {
        self.note_row(table, &key)?;
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

    // ---- items ----

    /// The item that holds a key.
    pub(crate) fn item_by_key(&self, key: &str) -> Result<Option<ItemId>> {
        Ok(self.get::<u32>(tables::KEY, key.as_bytes())?.map(ItemId))
    }

    /// The scalar state of an item below the bound.
    pub(crate) fn attributes(&self, id: ItemId) -> Result<Attributes> {
        if id.0 >= self.bound() {
            return Err(Error::Missing { what: "item", name: id.to_string() });
        }
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

    fn edges(&self, table: u8, id: ItemId, edge: Option<Edge>) -> Result<Vec<EdgeEnd>> {
        let mut prefix = tables::numbers([id.0]);
        prefix.extend(edge.map(Edge::to_byte));
        let mut ends = Vec::new();
        for (key, value) in self.scan(table, &prefix)? {
            let edge = key.get(4).copied().and_then(Edge::from_byte);
            let far = tables::number_at(&key, 5);
            let (Some(edge), Some(far)) = (edge, far) else {
                return Err(Error::Corrupt { what: format!("an edge row of item {id} has a malformed key") });
            };
            ends.push(EdgeEnd { edge, far: ItemId(far), row: codec::decode(&value)? });
        }
        Ok(ends)
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

    pub(crate) fn episode_number(&self, id: &str) -> Result<Option<u32>> {
        self.get(tables::EPISODE_ID, id.as_bytes())
    }

    pub(crate) fn episode(&self, number: u32) -> Result<EpisodeRow> {
        self.get(tables::EPISODE, &tables::numbers([number]))?
            .ok_or_else(|| Error::Missing { what: "episode", name: format!("number {number}") })
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
        self.get(tables::SYMBOL, &tables::numbers([number]))?
            .ok_or_else(|| Error::Missing { what: "symbol", name: format!("number {number}") })
    }

    /// The number of a symbol, given now if it has none.
    pub(crate) fn intern(&mut self, name: &str) -> Result<u32> {
        if let Some(number) = self.symbol(name)? {
            return Ok(number);
        }
        let number = self.meta.symbols;
        self.meta.symbols += 1;
        self.put_new(tables::SYMBOL, tables::numbers([number]), &name.to_owned())?;
        self.put_new(tables::SYMBOL_NAME, name.as_bytes().to_vec(), &number)?;
        Ok(number)
    }

    pub(crate) fn setting(&self, name: &str) -> Result<Option<String>> {
        self.get(tables::SETTING, name.as_bytes())
    }
}
