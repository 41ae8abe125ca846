//! Attribute storage: mapped columns as of the last checkpoint, with changed and new items over them.
//!
//! An item's [`Attributes`] are stored as scalar columns, in chunk files of 65,536 consecutive ids. Changes since the
//! last checkpoint are [`Layered`] over them, like the rows of the catalog. A filter scans one column of each chunk and
//! then corrects the changed ids (`select`).
//!
//! Invariants:
//! 1. The changes hide the columns.
//! 2. Every id below the bound is in one of both.
//! 3. Numeric columns are tested as `f64`: steps up to 2^53 and times until the year 2255 are exact. Absent values
//!    are never tested.
//!
//! Cost: reading one item takes 26 array accesses; see `select` for filters.

mod base_sets;
mod chunk;
pub(crate) mod scalars;
mod select;

pub(crate) use chunk::{CHUNK_ITEMS, Chunk};
pub(crate) use select::ValueTest;

use crate::model::item::{Attributes, ItemId, Kind, Layer};
use crate::state::attributes::scalars::{Reads, Scalars};
use crate::{Error, Result};
use base_sets::{ChangedFacts, EarlierSets, Facts, Place};
use chunk::Rewrite;
use holotype_index::bitmap::Bits;
use holotype_storage::BufferedMap;
use holotype_storage::columns::ColumnsWriter;
use holotype_storage::layered::{Layered, Savepoint};
use holotype_storage::segment_file::SegmentFile;
use select::Changed;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

/// A scalar attribute that a filter can test as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Kind,
    Status,
    Source,
    Support,
    Active,
    Redacted,
    Ungrounded,
    Pending,
    Episode,
    Version,
    Speaker,
    Tool,
    ReturnScore,
    Tokens,
    Step,
    Time,
    Utility,
    Reports,
    Credit,
    Rollouts,
    Commit,
}

impl Column {
    /// The number of columns.
    const COUNT: usize = Column::Commit as usize + 1;

    /// The attribute as a number; `None` if absent.
    pub(crate) fn of(self, attributes: &Attributes) -> Option<f64> {
        let number = |value: Option<u32>| value.map(f64::from);
        match self {
            Column::Kind => Some(f64::from(attributes.kind.to_byte())),
            Column::Status => attributes.status.map(|status| f64::from(status.to_byte())),
            Column::Source => attributes.source.map(|source| f64::from(source.to_byte())),
            Column::Support => Some(f64::from(attributes.support.to_byte())),
            Column::Active => Some(f64::from(u8::from(attributes.active))),
            Column::Redacted => Some(f64::from(u8::from(attributes.redacted))),
            Column::Ungrounded => Some(f64::from(u8::from(attributes.ungrounded))),
            Column::Pending => Some(f64::from(u8::from(attributes.pending))),
            Column::Episode => number(attributes.episode),
            Column::Version => number(attributes.version),
            Column::Speaker => number(attributes.speaker),
            Column::Tool => number(attributes.tool),
            Column::ReturnScore => attributes.return_score.map(f64::from),
            Column::Tokens => Some(f64::from(attributes.tokens)),
            Column::Step => attributes.step.map(|step| step as f64),
            Column::Time => attributes.time.map(|time| time as f64),
            Column::Utility => Some(f64::from(attributes.utility)),
            Column::Reports => Some(f64::from(attributes.utility_count)),
            Column::Credit => Some(f64::from(attributes.credit)),
            Column::Rollouts => Some(f64::from(attributes.credit_count)),
            Column::Commit => Some(attributes.commit as f64),
        }
    }
}

/// The attributes of a cited item that a citation shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cited {
    pub(crate) redacted: bool,
    pub(crate) layer: Layer,
    pub(crate) episode: Option<u32>,
    pub(crate) step: Option<u64>,
}

impl From<&Attributes> for Cited {
    fn from(item: &Attributes) -> Self {
        Cited { redacted: item.redacted, layer: item.layer(), episode: item.episode, step: item.step }
    }
}

/// The attributes of all items of a state. A copy takes no savepoints along.
#[derive(Clone, Default)]
pub(crate) struct AttributeStore {
    chunks: Arc<Vec<Arc<Chunk>>>,
    changes: Layered<ItemChanges>,
    /// Caches derived from columns and changes, filled by the first query after a change.
    derived: Arc<Derived>,
}

/// The attributes of changed and new items, by number.
type ItemChanges = BufferedMap<u32, Arc<Attributes>>;

/// Caches that are valid for one version of the attributes.
#[derive(Default)]
struct Derived {
    /// Both maps in columnar layout.
    changed: OnceLock<Changed>,
    base_sets: Place,
    /// The base sets of earlier versions of the store.
    earlier: EarlierSets,
    /// The facts of what changed since one of those.
    facts: OnceLock<Arc<ChangedFacts>>,
}

impl AttributeStore {
    /// Opens the store over the chunks of a checkpoint, in order of their ids.
    pub(crate) fn open(chunks: Vec<Chunk>) -> Self {
        let chunks = chunks.into_iter().map(Arc::new).collect();
        AttributeStore { chunks: Arc::new(chunks), ..AttributeStore::default() }
    }

    /// The attributes of an item.
    pub(crate) fn get(&self, id: ItemId) -> Result<Attributes> {
        self.read(id, |changed| changed.as_ref().clone(), |chunk| chunk.get(id.0))
    }

    /// Reads an item from the changes or, if it has not changed since the last checkpoint, from its chunk.
    fn read<T>(
        &self,
        id: ItemId,
        changed: impl FnOnce(&Arc<Attributes>) -> T,
        stored: impl FnOnce(&Chunk) -> Result<T>,
    ) -> Result<T> {
        match (self.changed(id.0), self.chunks.get((id.0 / CHUNK_ITEMS) as usize)) {
            (Some(attributes), _) => Ok(changed(attributes)),
            (None, Some(chunk)) => stored(chunk),
            (None, None) => Err(Error::Corrupt { what: format!("item {id} has no attributes") }),
        }
    }

    /// One attribute of an item as a number; `None` if absent.
    pub(crate) fn number(&self, id: ItemId, column: Column) -> Result<Option<f64>> {
        self.read(id, |changed| column.of(changed), |chunk| chunk.number_of(id.0, column))
    }

    /// The attributes that S needs for an item of a layer: at most a third of the columns.
    pub(crate) fn scalars(&self, id: ItemId, layer: Layer, reads: Reads) -> Result<Scalars> {
        self.read(id, |changed| Scalars::of(changed, reads), |chunk| chunk.scalars(id.0, layer, reads))
    }

    /// The log position of an item's record, and whether the record was erased.
    pub(crate) fn location_of(&self, id: ItemId) -> Result<(u64, bool)> {
        self.read(id, |changed| (changed.lsn, changed.redacted), |chunk| chunk.location_of(id.0))
    }

    /// The attributes that a citation of the item shows.
    pub(crate) fn cited(&self, id: ItemId) -> Result<Cited> {
        self.read(id, |changed| Cited::from(changed.as_ref()), |chunk| chunk.cited(id.0))
    }

    /// The step and the time of an item.
    pub(crate) fn moment(&self, id: ItemId) -> Result<(Option<u64>, Option<i64>)> {
        self.read(id, |changed| (changed.step, changed.time), |chunk| chunk.moment(id.0))
    }

    /// The facts that decide in which base sets an item is.
    fn facts(&self, id: ItemId) -> Result<Facts> {
        self.read(id, |changed| Facts::from(changed.as_ref()), |chunk| chunk.facts(id.0))
    }

    /// The kind of an item; reads one column.
    pub(crate) fn kind(&self, id: ItemId) -> Result<Kind> {
        self.read(id, |changed| changed.kind, |chunk| chunk.kind(id.0))
    }

    /// The episode and log of an item.
    pub(crate) fn log(&self, id: ItemId) -> Result<(Option<u32>, Option<u32>)> {
        self.read(id, |changed| (changed.episode, changed.log_id), |chunk| chunk.log(id.0))
    }

    /// The speaker of an item.
    pub(crate) fn speaker(&self, id: ItemId) -> Result<Option<u32>> {
        self.read(id, |changed| changed.speaker, |chunk| chunk.speaker(id.0))
    }

    fn changed(&self, id: u32) -> Option<&Arc<Attributes>> {
        self.changes.active().get(&id).or_else(|| self.changes.frozen().get(&id))
    }

    /// Sets the attributes of an existing item or of the next one.
    pub(crate) fn set(&mut self, id: ItemId, attributes: Attributes) {
        self.invalidate(Some(id.0));
        self.changes.change(id.0, Arc::new(attributes));
    }

    /// Sets the log position of an item that is new in this state.
    pub(crate) fn set_location(&mut self, id: ItemId, lsn: u64) -> Result<()> {
        self.invalidate(None);
        let Some(attributes) = self.changes.active_mut().get_mut(&id.0) else {
            return Err(Error::Corrupt { what: format!("item {id} has no attributes") });
        };
        Arc::make_mut(attributes).lsn = lsn;
        Ok(())
    }

    /// Merges buffered changes for all copies of the store, so that a later change need not ([`BufferedMap::merge`]).
    pub(crate) fn merge(&self) {
        self.changes.active().merge();
    }

    /// Number of items with changes since the last checkpoint.
    pub(crate) fn changed_count(&self) -> usize {
        self.changes.frozen().len() + self.changes.active().len()
    }

    /// Number of items with changes that no checkpoint has frozen.
    pub(crate) fn current_count(&self) -> usize {
        self.changes.active().len()
    }

    /// Begins a savepoint. Savepoints must end in reverse order.
    pub(crate) fn savepoint(&mut self) -> Savepoint {
        self.changes.savepoint()
    }

    /// Ends a savepoint and keeps the changes.
    pub(crate) fn release(&mut self, savepoint: Savepoint) {
        self.changes.release(savepoint);
    }

    /// Undoes every change since a savepoint and ends it.
    pub(crate) fn roll_back(&mut self, savepoint: Savepoint) {
        let mut undone = Vec::new();
        self.changes.roll_back(savepoint, |id| undone.push(*id));
        undone.into_iter().for_each(|id| self.invalidate(Some(id)));
    }

    /// Invalidates caches at a change and records the changed item. Copies of this store keep their
    /// caches.
    fn invalidate(&mut self, item: Option<u32>) {
        let derived = &self.derived;
        let is_shared = Arc::strong_count(derived) > 1 || Arc::strong_count(&derived.base_sets) > 1;
        if is_shared || derived.changed.get().is_some() || derived.base_sets.get().is_some() {
            let earlier = derived.earlier.after(&derived.base_sets);
            self.derived = Arc::new(Derived { earlier, ..Derived::default() });
        }
        if let (Some(item), Some(derived)) = (item, Arc::get_mut(&mut self.derived)) {
            derived.earlier.add(item);
        }
    }

    /// The items whose attribute is present and passes the test.
    pub(crate) fn select(&self, column: Column, bound: u32, test: &dyn Fn(f64) -> bool) -> Result<Bits> {
        self.select_values(column, bound, ValueTest::Predicate(test))
    }

    /// The items whose attribute passes the value test.
    pub(crate) fn select_values(&self, column: Column, bound: u32, wanted: ValueTest<'_>) -> Result<Bits> {
        let changed = self.derived.changed.get_or_init(|| Changed::new(self.changes.frozen(), self.changes.active()));
        select::select(&self.chunks, changed, column, bound, wanted)
    }

    /// The items of a layer.
    pub(crate) fn layer(&self, layer: Layer, bound: u32) -> Result<Bits> {
        let of_layer = |kind: f64| Kind::from_byte(kind as u8).is_some_and(|kind| kind.layer() == layer);
        self.select(Column::Kind, bound, &of_layer)
    }

    /// The files that hold the columns.
    pub(crate) fn files(&self) -> impl Iterator<Item = &SegmentFile> {
        self.chunks.iter().map(|chunk| chunk.file())
    }

    // ---- checkpoints ----

    /// Sets the changes aside for a checkpoint; later changes go to a new map.
    pub(crate) fn freeze(&mut self) {
        self.invalidate(None);
        self.changes.freeze();
    }

    /// The chunks affected by frozen changes.
    pub(crate) fn frozen_chunks(&self) -> BTreeSet<u32> {
        self.changes.frozen().iter().map(|(id, _)| id / CHUNK_ITEMS).collect()
    }

    /// The columns of a chunk with the frozen changes applied, for ids below `bound`.
    pub(crate) fn write_chunk(&self, number: u32, bound: u32) -> Result<ColumnsWriter> {
        let first = number * CHUNK_ITEMS;
        let last = bound.min(first.saturating_add(CHUNK_ITEMS));
        let changed = self.changes.frozen().range::<u32>((Bound::Included(&first), Bound::Excluded(&last)));
        let changed = changed.map(|(id, item)| ((id - first) as usize, item.as_ref().clone())).collect();
        let before = self.chunks.get(number as usize).map(Arc::as_ref);
        Rewrite::new(first, (last - first) as usize, before, changed)?.columns()
    }

    /// Puts the frozen changes back under the later ones after a failed checkpoint.
    pub(crate) fn unfreeze(&mut self) {
        self.invalidate(None);
        self.changes.unfreeze();
    }

    /// The generation of a chunk's file, if it was ever written.
    pub(crate) fn chunk_generation(&self, number: u32) -> Option<u64> {
        Some(self.chunks.get(number as usize)?.file().identity().generation)
    }

    /// Puts the chunks a checkpoint wrote in the place of the frozen changes.
    pub(crate) fn thaw(&mut self, written: Vec<Chunk>) {
        let mut chunks = self.chunks.as_ref().clone();
        for chunk in written.into_iter().map(Arc::new) {
            let at = chunk.number() as usize;
            if at < chunks.len() {
                chunks[at] = chunk;
            } else {
                chunks.push(chunk);
            }
        }
        self.chunks = Arc::new(chunks);
        self.invalidate(None);
        self.changes.thaw();
    }
}
