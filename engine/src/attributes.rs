//! Attributes at rest: mapped columns up to the last checkpoint, changed and new items over them.
//!
//! An item's [`Attributes`] are spread over scalar columns, in chunk files of 65,536 consecutive ids; what changed since the
//! last checkpoint stands beside them in two ordered maps (the one a running checkpoint is writing, and the current one).
//! Filters scan one column of each chunk and then correct the changed ids (`select`).
//!
//! Invariants:
//! 1. `current` hides `frozen`, which hides the columns.
//! 2. Every id below the bound is in one of the three.
//! 3. A numeric column is read as `f64`: steps up to 2^53 and times to the year 2255 are exact; an absent value is
//!    never tested.
//!
//! Cost: one item is 24 array reads; what a filter costs is said in `select`.

mod chunk;
mod select;
mod usual;

pub(crate) use chunk::{CHUNK_ITEMS, Chunk};
pub(crate) use select::Wanted;

use crate::item::{Attributes, ItemId, Kind, Layer};
use crate::score::{Reads, Scalars};
use crate::{Error, Result};
use chunk::Rewrite;
use holotype_index::bitmap::Bits;
use holotype_storage::BufferedMap;
use holotype_storage::columns::ColumnsWriter;
use holotype_storage::segment_file::SegmentFile;
use select::Changed;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::{Arc, OnceLock};
use usual::{Before, Usual};

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
    Episode,
    Version,
    Speaker,
    Tool,
    Conflict,
    ReturnScore,
    Tokens,
    Step,
    Time,
    Utility,
    Commit,
}

impl Column {
    /// How many columns there are.
    const COUNT: usize = Column::Commit as usize + 1;

    /// The attribute as a number, or nothing where it is absent.
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
            Column::Episode => number(attributes.episode),
            Column::Version => number(attributes.version),
            Column::Speaker => number(attributes.speaker),
            Column::Tool => number(attributes.tool),
            Column::Conflict => number(attributes.conflict),
            Column::ReturnScore => attributes.return_score.map(f64::from),
            Column::Tokens => Some(f64::from(attributes.tokens)),
            Column::Step => attributes.step.map(|step| step as f64),
            Column::Time => attributes.time.map(|time| time as f64),
            Column::Utility => Some(f64::from(attributes.utility)),
            Column::Commit => Some(attributes.commit as f64),
        }
    }
}

/// What a citation says of the item it points to.
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

/// The attributes of every item of a state.
#[derive(Default)]
pub(crate) struct AttributeStore {
    chunks: Arc<Vec<Arc<Chunk>>>,
    frozen: BufferedMap<u32, Arc<Attributes>>,
    current: BufferedMap<u32, Arc<Attributes>>,
    /// What is made of the columns and the maps at the first question after a change.
    derived: Arc<Derived>,
    /// What changes replaced since the outermost savepoint, the newest last; as in `storage::overlay::View`.
    replaced: Vec<(u32, Option<Arc<Attributes>>)>,
    /// Savepoints under way.
    savepoints: usize,
}

/// What follows from the attributes as they are.
#[derive(Default)]
struct Derived {
    /// Both maps laid out for selecting.
    changed: OnceLock<Changed>,
    usual: OnceLock<Arc<Usual>>,
    /// The usual sets as they were before the last changes.
    before: Option<Before>,
}

/// Where a store stood, to come back to.
#[must_use = "ends with `AttributeStore::release` or `AttributeStore::roll_back`"]
pub(crate) struct AttributesSavepoint(usize);

impl Clone for AttributeStore {
    /// The attributes as they are. The savepoints stay with the original.
    fn clone(&self) -> Self {
        AttributeStore {
            chunks: Arc::clone(&self.chunks),
            frozen: self.frozen.clone(),
            current: self.current.clone(),
            derived: Arc::clone(&self.derived),
            ..AttributeStore::default()
        }
    }
}

impl AttributeStore {
    /// The store over chunks as a checkpoint left them, in the order of their ids.
    pub(crate) fn open(chunks: Vec<Chunk>) -> Self {
        let chunks = chunks.into_iter().map(Arc::new).collect();
        AttributeStore { chunks: Arc::new(chunks), ..AttributeStore::default() }
    }

    /// The attributes of an item.
    pub(crate) fn get(&self, id: ItemId) -> Result<Attributes> {
        if let Some(changed) = self.changed(id.0) {
            return Ok(changed.as_ref().clone());
        }
        match self.chunks.get((id.0 / CHUNK_ITEMS) as usize) {
            Some(chunk) => chunk.get(id.0),
            None => Err(Error::Corrupt { what: format!("item {id} has no attributes") }),
        }
    }

    /// What S reads of an item of a layer: a third of the columns at most.
    pub(crate) fn scalars(&self, id: ItemId, layer: Layer, reads: Reads) -> Result<Scalars> {
        match (self.changed(id.0), self.chunks.get((id.0 / CHUNK_ITEMS) as usize)) {
            (Some(changed), _) => Ok(Scalars::of(changed, reads)),
            (None, Some(chunk)) => chunk.scalars(id.0, layer, reads),
            (None, None) => Err(Error::Corrupt { what: format!("item {id} has no attributes") }),
        }
    }

    /// Where the record of an item stands in the log, and whether it was erased.
    pub(crate) fn place_of(&self, id: ItemId) -> Result<(u64, bool)> {
        match (self.changed(id.0), self.chunks.get((id.0 / CHUNK_ITEMS) as usize)) {
            (Some(changed), _) => Ok((changed.lsn, changed.redacted)),
            (None, Some(chunk)) => chunk.place_of(id.0),
            (None, None) => Err(Error::Corrupt { what: format!("item {id} has no attributes") }),
        }
    }

    /// What a citation of an item says of it.
    pub(crate) fn cited(&self, id: ItemId) -> Result<Cited> {
        match (self.changed(id.0), self.chunks.get((id.0 / CHUNK_ITEMS) as usize)) {
            (Some(changed), _) => Ok(Cited::from(changed.as_ref())),
            (None, Some(chunk)) => chunk.cited(id.0),
            (None, None) => Err(Error::Corrupt { what: format!("item {id} has no attributes") }),
        }
    }

    /// The step and the time of an item.
    pub(crate) fn moment(&self, id: ItemId) -> Result<(Option<u64>, Option<i64>)> {
        match (self.changed(id.0), self.chunks.get((id.0 / CHUNK_ITEMS) as usize)) {
            (Some(changed), _) => Ok((changed.step, changed.time)),
            (None, Some(chunk)) => chunk.moment(id.0),
            (None, None) => Err(Error::Corrupt { what: format!("item {id} has no attributes") }),
        }
    }

    /// The kind of an item: one column instead of all.
    pub(crate) fn kind(&self, id: ItemId) -> Result<Kind> {
        match (self.changed(id.0), self.chunks.get((id.0 / CHUNK_ITEMS) as usize)) {
            (Some(changed), _) => Ok(changed.kind),
            (None, Some(chunk)) => chunk.kind(id.0),
            (None, None) => Err(Error::Corrupt { what: format!("item {id} has no attributes") }),
        }
    }

    /// The episode and the log an item belongs to.
    pub(crate) fn log(&self, id: ItemId) -> Result<(Option<u32>, Option<u32>)> {
        match (self.changed(id.0), self.chunks.get((id.0 / CHUNK_ITEMS) as usize)) {
            (Some(changed), _) => Ok((changed.episode, changed.log_id)),
            (None, Some(chunk)) => chunk.log(id.0),
            (None, None) => Err(Error::Corrupt { what: format!("item {id} has no attributes") }),
        }
    }

    fn changed(&self, id: u32) -> Option<&Arc<Attributes>> {
        self.current.get(&id).or_else(|| self.frozen.get(&id))
    }

    /// Gives an item its attributes, the next one or one there is.
    pub(crate) fn set(&mut self, id: ItemId, attributes: Attributes) {
        self.changes(Some(id.0));
        let replaced = self.current.insert(id.0, Arc::new(attributes));
        if self.savepoints > 0 {
            self.replaced.push((id.0, replaced));
        }
    }

    /// Says where the record of an item that is new in this state came to stand.
    pub(crate) fn place(&mut self, id: ItemId, lsn: u64) -> Result<()> {
        self.changes(None);
        let Some(attributes) = self.current.get_mut(&id.0) else {
            return Err(Error::Corrupt { what: format!("item {id} has no attributes") });
        };
        Arc::make_mut(attributes).lsn = lsn;
        Ok(())
    }

    /// Does ahead, for all copies, what a change of one of them might have to do ([`BufferedMap::merge`]).
    pub(crate) fn merge(&self) {
        self.current.merge();
    }

    /// How many items stand beside the columns.
    pub(crate) fn changed_count(&self) -> usize {
        self.frozen.len() + self.current.len()
    }

    /// How many of them no checkpoint has begun to write.
    pub(crate) fn current_count(&self) -> usize {
        self.current.len()
    }

    /// Where the store stands, to come back to. Savepoints end in the reverse order they began in.
    pub(crate) fn savepoint(&mut self) -> AttributesSavepoint {
        self.savepoints += 1;
        AttributesSavepoint(self.replaced.len())
    }

    /// Ends a savepoint; the changes since stay.
    pub(crate) fn release(&mut self, _savepoint: AttributesSavepoint) {
        self.savepoints = self.savepoints.saturating_sub(1);
        if self.savepoints == 0 {
            self.replaced.clear();
        }
    }

    /// Takes back every change since a savepoint, and ends it.
    pub(crate) fn roll_back(&mut self, savepoint: AttributesSavepoint) {
        while self.replaced.len() > savepoint.0 {
            let Some((id, replaced)) = self.replaced.pop() else { break };
            self.changes(Some(id));
            match replaced {
                Some(attributes) => self.current.insert(id, attributes),
                None => self.current.remove(&id),
            };
        }
        self.release(savepoint);
    }

    /// Notes that the maps are about to be others, and which item then has other attributes; copies of this store keep what
    /// they derived.
    fn changes(&mut self, item: Option<u32>) {
        let derived = &self.derived;
        if derived.changed.get().is_some() || derived.usual.get().is_some() || Arc::strong_count(derived) > 1 {
            let before = Before::of(derived.usual.get(), derived.before.as_ref());
            self.derived = Arc::new(Derived { before, ..Derived::default() });
        }
        if let (Some(item), Some(derived)) = (item, Arc::get_mut(&mut self.derived)) {
            derived.before = derived.before.take().and_then(|before| before.with(item));
        }
    }

    /// The items whose attribute is present and passes the test.
    pub(crate) fn select(&self, column: Column, bound: u32, test: &dyn Fn(f64) -> bool) -> Result<Bits> {
        self.select_wanted(column, bound, Wanted::Passing(test))
    }

    /// The items whose attribute is wanted.
    pub(crate) fn select_wanted(&self, column: Column, bound: u32, wanted: Wanted<'_>) -> Result<Bits> {
        let changed = self.derived.changed.get_or_init(|| Changed::new(&self.frozen, &self.current));
        select::select(&self.chunks, changed, column, bound, wanted)
    }

    /// The items of a layer.
    pub(crate) fn layer(&self, layer: Layer, bound: u32) -> Result<Bits> {
        let of_layer = |kind: f64| Kind::from_byte(kind as u8).is_some_and(|kind| kind.layer() == layer);
        self.select(Column::Kind, bound, &of_layer)
    }

    /// The files the columns stand in.
    pub(crate) fn files(&self) -> impl Iterator<Item = &SegmentFile> {
        self.chunks.iter().map(|chunk| chunk.file())
    }

    // ---- checkpoints ----

    /// Sets the changes so far aside for a checkpoint to write; later ones gather anew.
    pub(crate) fn freeze(&mut self) {
        debug_assert!(self.frozen.is_empty(), "one checkpoint at a time");
        self.changes(None);
        self.frozen = std::mem::take(&mut self.current);
    }

    /// The numbers of the chunks that the frozen changes touch.
    pub(crate) fn frozen_chunks(&self) -> BTreeSet<u32> {
        self.frozen.iter().map(|(id, _)| id / CHUNK_ITEMS).collect()
    }

    /// The columns of a chunk with the frozen changes in them, for the ids below `bound`.
    pub(crate) fn write_chunk(&self, number: u32, bound: u32) -> Result<ColumnsWriter> {
        let first = number * CHUNK_ITEMS;
        let last = bound.min(first.saturating_add(CHUNK_ITEMS));
        let changed = self.frozen.range::<u32>((Bound::Included(&first), Bound::Excluded(&last)));
        let changed = changed.map(|(id, item)| ((id - first) as usize, item.as_ref().clone())).collect();
        let before = self.chunks.get(number as usize).map(Arc::as_ref);
        Rewrite::new(first, (last - first) as usize, before, changed)?.columns()
    }

    /// Puts the frozen changes back under the later ones, after a checkpoint that failed.
    pub(crate) fn unfreeze(&mut self) {
        self.changes(None);
        let later = std::mem::replace(&mut self.current, std::mem::take(&mut self.frozen));
        for (id, attributes) in later {
            self.current.insert(id, attributes);
        }
    }

    /// The generation of the file a chunk stands in, if it was ever written.
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
        self.changes(None);
        self.frozen = BufferedMap::default();
    }
}
