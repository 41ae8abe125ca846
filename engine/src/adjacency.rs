//! Adjacency: the edges at both ends of items, as of the last checkpoint, kept once they were read.
//!
//! A recall follows some hundred links. In the catalog each is a way down a tree of pages; here a *block* has the edges of 128
//! items that follow each other, read with one scan when the first of them is asked for. Blocks belong to the rows they were
//! read from and go with them; a checkpoint hands on those it changes nothing of.
//!
//! Invariants:
//! 1. A block says what the catalog's rows say.
//! 2. What changed since the checkpoint is not in here: who asks for such an item's edges scans rows
//!    ([`State::edges_out`], [`State::edges_in`]).
//!
//! Cost: 16 bytes an edge end, of at most [`MOST_ENDS`] (64 MiB), and 1,100 bytes for the two blocks of 128 items.

use crate::item::ItemId;
use crate::state::{EdgeEnd, State};
use crate::tables;
use crate::{Error, Result};
use holotype_storage::codec;
use holotype_storage::overlay::Overlay;
use std::borrow::Cow;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Items of a block.
const BLOCK: u32 = 128;
/// A block with more ends is not kept.
const LARGE: usize = 32_768;
/// Ends that are kept in all.
const MOST_ENDS: usize = 4 << 20;

/// The edges of some of the items, as the rows of one checkpoint say.
pub(crate) struct Adjacency {
    out: Box<[OnceLock<Arc<Block>>]>,
    into: Box<[OnceLock<Arc<Block>>]>,
    ends: AtomicUsize,
}

/// The edges of the items of a block: those of item `i` stand at `starts[i]..starts[i + 1]`.
struct Block {
    starts: [u32; BLOCK as usize + 1],
    ends: Box<[EdgeEnd]>,
}

impl Adjacency {
    fn new(bound: u32) -> Adjacency {
        let blocks = || (0..bound.div_ceil(BLOCK)).map(|_| OnceLock::new()).collect();
        Adjacency { out: blocks(), into: blocks(), ends: AtomicUsize::new(0) }
    }

    fn blocks(&self, table: u8) -> &[OnceLock<Arc<Block>>] {
        if table == tables::EDGE_OUT { &self.out } else { &self.into }
    }

    fn keep(&self, place: &OnceLock<Arc<Block>>, block: Arc<Block>) {
        let ends = block.ends.len();
        if ends <= LARGE && self.ends.load(Ordering::Relaxed) + ends <= MOST_ENDS && place.set(block).is_ok() {
            self.ends.fetch_add(ends, Ordering::Relaxed);
        }
    }

    /// What holds after a checkpoint that writes these changes, for items below `bound`.
    fn after(&self, changes: &Overlay, bound: u32) -> Adjacency {
        let next = Adjacency::new(bound);
        for (table, from, to) in [(tables::EDGE_OUT, &self.out, &next.out), (tables::EDGE_IN, &self.into, &next.into)] {
            let rows = changes.iter().map(|(row, _)| row).filter(|row| row.table() == table);
            let mut changed: Vec<u32> =
                rows.filter_map(|row| tables::number_at(row.key(), 0)).map(|id| id / BLOCK).collect();
            changed.dedup();
            for (at, (from, to)) in (0u32..).zip(from.iter().zip(to)) {
                if let (Some(block), Err(_)) = (from.get(), changed.binary_search(&at)) {
                    next.keep(to, Arc::clone(block));
                }
            }
        }
        next
    }
}

impl Block {
    fn of(&self, id: u32) -> &[EdgeEnd] {
        let at = (id % BLOCK) as usize;
        let (start, end) = (self.starts[at] as usize, self.starts[at + 1] as usize);
        self.ends.get(start..end).unwrap_or_default()
    }
}

impl State {
    /// The edges at one end of an item, as rows of a table say; nothing where they have to be scanned for.
    pub(crate) fn adjacent(&self, table: u8, id: ItemId) -> Result<Option<Cow<'_, [EdgeEnd]>>> {
        let Some(base) = self.rows.base().filter(|_| !self.is_past) else { return Ok(None) };
        if self.rows.is_changed(table, &id.0.to_be_bytes()) {
            return Ok(None);
        }
        let Some(adjacency) = base.derived(|| Adjacency::new(self.bound())) else { return Ok(None) };
        let Some(place) = adjacency.blocks(table).get((id.0 / BLOCK) as usize) else { return Ok(None) };
        if let Some(block) = place.get() {
            return Ok(Some(Cow::Borrowed(block.of(id.0))));
        }
        let block = Arc::new(self.read_block(table, id.0 / BLOCK * BLOCK)?);
        let ends = block.of(id.0).to_vec();
        adjacency.keep(place, block);
        Ok(Some(Cow::Owned(ends)))
    }

    /// Hands on to the rows of a new checkpoint what is known of those it changes nothing of.
    pub(crate) fn hand_on_adjacency(&self, changes: &Overlay, next: &holotype_storage::catalog::CatalogSnapshot) {
        if let Some(known) = self.rows.base().and_then(|base| base.derived_already::<Adjacency>()) {
            next.derived(|| known.after(changes, self.bound()));
        }
    }

    /// Reads the edges of the items from `first` on, without what changed since the checkpoint.
    fn read_block(&self, table: u8, first: u32) -> Result<Block> {
        let mut block = Block { starts: [0; BLOCK as usize + 1], ends: Box::default() };
        let Some(base) = self.rows.base() else { return Ok(block) };
        let last = match first.checked_add(BLOCK) {
            Some(next) => Bound::Excluded(next.to_be_bytes()),
            None => Bound::Unbounded,
        };
        let mut ends = Vec::with_capacity(2 * BLOCK as usize);
        let mut counts = [0u32; BLOCK as usize];
        base.each(
            table,
            Bound::Included(&first.to_be_bytes()),
            last.as_ref().map(|key| key.as_slice()),
            |key, value| {
                let near = tables::number_at(key, 0).and_then(|near| near.checked_sub(first));
                let count = near.and_then(|near| counts.get_mut(near as usize));
                let Some(count) = count else {
                    return Err(Error::Corrupt { what: format!("an edge row of item #{first} has a malformed key") });
                };
                *count += 1;
                ends.push(EdgeEnd::decode(key, codec::decode(value)?)?);
                Ok(())
            },
        )?;
        for (at, count) in counts.into_iter().enumerate() {
            block.starts[at + 1] = block.starts[at] + count;
        }
        block.ends = ends.into();
        Ok(block)
    }
}
