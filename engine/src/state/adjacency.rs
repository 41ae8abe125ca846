//! Adjacency cache: the edges of items as of the last checkpoint.
//!
//! A recall follows some hundred links, and a catalog lookup for each would descend a B-tree. A *block* holds the
//! edges of 128 consecutive items. The first access to one of them reads the block in one scan. Blocks belong to a
//! catalog snapshot; a checkpoint carries unchanged blocks over to the next one.
//!
//! Invariants:
//! 1. A block equals the catalog's rows.
//! 2. Changes since the checkpoint are not in the cache: for a changed item [`State::edges_out`] and
//!    [`State::edges_in`] scan the rows.
//! 3. A block that the cache has no room for is read once at most; from then on its items are read one by one.
//!
//! Cost: 16 bytes per edge end, for at most [`MAX_ENDS`] ends (64 MiB), and 1,100 bytes for both blocks of 128 items.

use crate::model::item::ItemId;
use crate::records::tables;
use crate::state::{EdgeEnd, State};
use crate::{Error, Result};
use holotype_storage::codec;
use holotype_storage::overlay::Overlay;
use std::borrow::Cow;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Items per block.
const BLOCK_ITEMS: u32 = 128;
/// Blocks with more ends are not cached.
const MAX_BLOCK_ENDS: usize = 131_072;
/// Maximum number of cached ends.
const MAX_ENDS: usize = 4 << 20;

/// The cached edges of one catalog snapshot.
pub(crate) struct Adjacency {
    out: Box<[Place]>,
    into: Box<[Place]>,
    ends: AtomicUsize,
}

/// The place of a block: empty before the first access, `None` for a block without room.
type Place = OnceLock<Option<Arc<Block>>>;

/// The edges of a block. Those of item `i` are `ends[starts[i]..starts[i + 1]]`.
struct Block {
    starts: [u32; BLOCK_ITEMS as usize + 1],
    ends: Box<[EdgeEnd]>,
}

impl Adjacency {
    fn new(bound: u32) -> Adjacency {
        let blocks = || (0..bound.div_ceil(BLOCK_ITEMS)).map(|_| OnceLock::new()).collect();
        Adjacency { out: blocks(), into: blocks(), ends: AtomicUsize::new(0) }
    }

    fn blocks(&self, table: u8) -> &[Place] {
        if table == tables::EDGE_OUT { &self.out } else { &self.into }
    }

    /// The number of ends that there is room for in one block.
    fn room(&self) -> usize {
        MAX_BLOCK_ENDS.min(MAX_ENDS.saturating_sub(self.ends.load(Ordering::Relaxed)))
    }

    /// Keeps a block, or that there is no room for it.
    fn keep(&self, place: &Place, block: Option<Arc<Block>>) {
        let block = block.filter(|block| block.ends.len() <= self.room());
        let ends = block.as_ref().map_or(0, |block| block.ends.len());
        if place.set(block).is_ok() {
            self.ends.fetch_add(ends, Ordering::Relaxed);
        }
    }

    /// The cache of the next checkpoint, which writes `changes`, for items below `bound`.
    fn after(&self, changes: &Overlay, bound: u32) -> Adjacency {
        let next = Adjacency::new(bound);
        for (table, from, to) in [(tables::EDGE_OUT, &self.out, &next.out), (tables::EDGE_IN, &self.into, &next.into)] {
            let rows = changes.iter().map(|(row, _)| row).filter(|row| row.table() == table);
            let mut changed: Vec<u32> =
                rows.filter_map(|row| tables::number_at(row.key(), 0)).map(|id| id / BLOCK_ITEMS).collect();
            changed.dedup();
            for (at, (from, to)) in (0u32..).zip(from.iter().zip(to)) {
                if let (Some(block), Err(_)) = (from.get(), changed.binary_search(&at)) {
                    next.keep(to, block.clone());
                }
            }
        }
        next
    }
}

impl Block {
    fn of(&self, id: u32) -> &[EdgeEnd] {
        let at = (id % BLOCK_ITEMS) as usize;
        let (start, end) = (self.starts[at] as usize, self.starts[at + 1] as usize);
        self.ends.get(start..end).unwrap_or_default()
    }
}

impl State {
    /// The cached edges at one end of an item; `None` if the caller must scan the rows.
    pub(crate) fn adjacent(&self, table: u8, id: ItemId) -> Result<Option<Cow<'_, [EdgeEnd]>>> {
        let Some(base) = self.rows.base().filter(|_| !self.is_past) else { return Ok(None) };
        if self.rows.is_changed(table, &id.0.to_be_bytes()) {
            return Ok(None);
        }
        let Some(adjacency) = base.derived(|| Adjacency::new(self.bound())) else { return Ok(None) };
        let Some(place) = adjacency.blocks(table).get((id.0 / BLOCK_ITEMS) as usize) else { return Ok(None) };
        if let Some(block) = place.get() {
            return Ok(block.as_ref().map(|block| Cow::Borrowed(block.of(id.0))));
        }
        let block = self.read_block(table, id.0 / BLOCK_ITEMS * BLOCK_ITEMS, adjacency.room())?.map(Arc::new);
        let ends = block.as_ref().map(|block| Cow::Owned(block.of(id.0).to_vec()));
        adjacency.keep(place, block);
        Ok(ends)
    }

    /// Carries unchanged blocks over to the catalog snapshot of a new checkpoint.
    pub(crate) fn carry_over_adjacency(&self, changes: &Overlay, next: &holotype_storage::catalog::CatalogSnapshot) {
        if let Some(known) = self.rows.base().and_then(|base| base.derived_already::<Adjacency>()) {
            next.derived(|| known.after(changes, self.bound()));
        }
    }

    /// Reads the edges of a block that begins at `first`, as of the checkpoint; `None` if it has more than `most` ends.
    fn read_block(&self, table: u8, first: u32, most: usize) -> Result<Option<Block>> {
        let mut block = Block { starts: [0; BLOCK_ITEMS as usize + 1], ends: Box::default() };
        let Some(base) = self.rows.base() else { return Ok(Some(block)) };
        let last = match first.checked_add(BLOCK_ITEMS) {
            Some(next) => Bound::Excluded(next.to_be_bytes()),
            None => Bound::Unbounded,
        };
        let mut ends = Vec::with_capacity(2 * BLOCK_ITEMS as usize);
        let mut counts = [0u32; BLOCK_ITEMS as usize];
        let read = base.each(
            table,
            Bound::Included(&first.to_be_bytes()),
            last.as_ref().map(|key| key.as_slice()),
            |key, value| {
                let near = tables::number_at(key, 0).and_then(|near| near.checked_sub(first));
                let count = near.and_then(|near| counts.get_mut(near as usize));
                let Some(count) = count else {
                    let what = format!("an edge row of item #{first} has a malformed key");
                    return Err(Stop::Failed(Error::Corrupt { what }));
                };
                if ends.len() == most {
                    return Err(Stop::Full);
                }
                *count += 1;
                ends.push(EdgeEnd::decode(key, codec::decode(value).map_err(Error::from)?)?);
                Ok(())
            },
        );
        match read {
            Ok(()) => {}
            Err(Stop::Full) => return Ok(None),
            Err(Stop::Failed(error)) => return Err(error),
        }
        for (at, count) in counts.into_iter().enumerate() {
            block.starts[at + 1] = block.starts[at] + count;
        }
        block.ends = ends.into();
        Ok(Some(block))
    }
}

/// Why the reading of a block ends early.
enum Stop {
    /// It has more ends than there is room for.
    Full,
    Failed(Error),
}

impl<E: Into<Error>> From<E> for Stop {
    fn from(error: E) -> Stop {
        Stop::Failed(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::edge::Edge;
    use crate::model::item::Kind;
    use crate::{Durability, Holotype, NewRecall, NewTrace, Options, Pointer};

    #[test]
    fn a_block_without_room_is_read_item_by_item() {
        let folder = tempfile::tempdir().unwrap();
        let database = Holotype::create(folder.path().join("m.holo"), Options::default()).unwrap();
        let mut transaction = database.begin().unwrap();
        let trace = transaction.record(NewTrace::turn("e", "A page.")).unwrap();
        let concept = |name: &str| NewRecall::new(Kind::Concept, name).ungrounded();
        let concepts = ["Ada", "Bob"].map(|name| transaction.remember(concept(name)).unwrap());
        for nth in 0..3 {
            let fact = NewRecall::fact(format!("Fact {nth}.")).from(Pointer::to_item(trace));
            let fact = transaction.remember(fact).unwrap();
            transaction.link(fact, Edge::Mentions, concepts[nth % 2]).unwrap();
        }
        transaction.commit(Durability::None).unwrap();
        database.checkpoint().unwrap();
        let snapshot = database.snapshot();
        let state = &snapshot.state;
        let far = |ends: &[EdgeEnd]| ends.iter().map(|end| (end.edge, end.far)).collect::<Vec<_>>();
        let whole = state.read_block(tables::EDGE_IN, 0, MAX_BLOCK_ENDS).unwrap().unwrap();
        assert!(state.read_block(tables::EDGE_IN, 0, whole.ends.len()).unwrap().is_some());
        assert!(state.read_block(tables::EDGE_IN, 0, whole.ends.len() - 1).unwrap().is_none());
        // The same database again, where the cache has no room for the block.
        let base = state.rows.base().unwrap();
        let adjacency = base.derived(|| Adjacency::new(state.bound())).unwrap();
        adjacency.ends.store(MAX_ENDS - 1, Ordering::Relaxed);
        for id in [trace, concepts[0], concepts[1]] {
            assert!(state.adjacent(tables::EDGE_IN, id).unwrap().is_none());
            let mut found = far(&state.edges_in(id, None).unwrap());
            let mut expected = far(whole.of(id.0));
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected);
            assert!(!found.is_empty());
        }
        assert_eq!(adjacency.ends.load(Ordering::Relaxed), MAX_ENDS - 1);
    }
}
