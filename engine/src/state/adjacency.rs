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
//! 3. Ends of an item that has very many are not in a block of more than [`MAX_BLOCK_ENDS`]: its rows are scanned, and
//!    its neighbours in the block are still cached. Once the cache is full, the rows of an item are scanned.
//!
//! Cost: 16 bytes per edge end and 1,100 bytes for both blocks of 128 items; an eighth of `memory_limit` at most, and
//! no more than 64 MiB.

use crate::model::item::ItemId;
use crate::records::tables;
use crate::state::{EdgeEnd, State};
use crate::{Error, Result};
use holotype_storage::codec;
use holotype_storage::overlay::Overlay;
use std::borrow::Cow;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Items per block.
const BLOCK_ITEMS: u32 = 128;
/// The greatest number of ends in a block.
const MAX_BLOCK_ENDS: usize = 131_072;
/// The cached edges of one catalog snapshot.
pub(crate) struct Adjacency {
    out: Box<[OnceLock<Arc<Block>>]>,
    into: Box<[OnceLock<Arc<Block>>]>,
    /// The bytes of its blocks, and the most that they may be.
    bytes: AtomicU64,
    most: u64,
}

/// The edges of a block. Those of item `i` are `ends[starts[i]..starts[i + 1]]`, unless they are left out.
struct Block {
    /// A bit for each item whose ends are left out, because they are too many.
    left_out: u128,
    starts: [u32; BLOCK_ITEMS as usize + 1],
    ends: Box<[EdgeEnd]>,
}

impl Adjacency {
    fn new(bound: u32, most: u64) -> Adjacency {
        let blocks = || (0..bound.div_ceil(BLOCK_ITEMS)).map(|_| OnceLock::new()).collect();
        Adjacency { out: blocks(), into: blocks(), bytes: AtomicU64::new(0), most }
    }

    fn blocks(&self, table: u8) -> &[OnceLock<Arc<Block>>] {
        if table == tables::EDGE_OUT { &self.out } else { &self.into }
    }

    /// True if there may be no room for another block.
    fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) + (MAX_BLOCK_ENDS * size_of::<EdgeEnd>()) as u64 > self.most
    }

    fn keep(&self, place: &OnceLock<Arc<Block>>, block: Arc<Block>) {
        let bytes = size_of::<Block>() + size_of_val(&*block.ends);
        if !self.is_full() && place.set(block).is_ok() {
            self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// The cache of the next checkpoint, which writes `changes`, for items below `bound`.
    fn after(&self, changes: &Overlay, bound: u32) -> Adjacency {
        let next = Adjacency::new(bound, self.most);
        for (table, from, to) in [(tables::EDGE_OUT, &self.out, &next.out), (tables::EDGE_IN, &self.into, &next.into)] {
            let rows = changes.iter().map(|(row, _)| row).filter(|row| row.table() == table);
            let mut changed: Vec<u32> =
                rows.filter_map(|row| tables::number_at(row.key(), 0)).map(|id| id / BLOCK_ITEMS).collect();
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
    /// A block of ends in the order of their items, so many of each.
    fn new(mut counts: [u32; BLOCK_ITEMS as usize], mut ends: Vec<EdgeEnd>) -> Block {
        let mut left_out = 0;
        if ends.len() > MAX_BLOCK_ENDS {
            let mut from = 0;
            for (at, count) in counts.iter_mut().enumerate() {
                if *count as usize > MAX_BLOCK_ENDS / BLOCK_ITEMS as usize {
                    left_out |= 1 << at;
                    ends.drain(from..from + std::mem::take(count) as usize);
                }
                from += *count as usize;
            }
        }
        let mut starts = [0; BLOCK_ITEMS as usize + 1];
        for (at, count) in counts.into_iter().enumerate() {
            starts[at + 1] = starts[at] + count;
        }
        Block { left_out, starts, ends: ends.into() }
    }

    /// The ends of an item; `None` if they are left out.
    fn of(&self, id: u32) -> Option<&[EdgeEnd]> {
        let at = (id % BLOCK_ITEMS) as usize;
        let (start, end) = (self.starts[at] as usize, self.starts[at + 1] as usize);
        (self.left_out >> at & 1 == 0).then(|| self.ends.get(start..end).unwrap_or_default())
    }
}

impl State {
    /// The cached edges at one end of an item; `None` if the caller must scan the rows.
    pub(crate) fn adjacent(&self, table: u8, id: ItemId) -> Result<Option<Cow<'_, [EdgeEnd]>>> {
        let Some(base) = self.rows.base().filter(|_| !self.is_past) else { return Ok(None) };
        if self.rows.is_changed(table, &id.0.to_be_bytes()) {
            return Ok(None);
        }
        let Some(adjacency) = base.derived(|| Adjacency::new(self.bound(), base.derived_len())) else {
            return Ok(None);
        };
        let Some(place) = adjacency.blocks(table).get((id.0 / BLOCK_ITEMS) as usize) else { return Ok(None) };
        if let Some(block) = place.get() {
            return Ok(block.of(id.0).map(Cow::Borrowed));
        }
        if adjacency.is_full() {
            return Ok(None);
        }
        let block = Arc::new(self.read_block(table, id.0 / BLOCK_ITEMS * BLOCK_ITEMS)?);
        let ends = block.of(id.0).map(<[EdgeEnd]>::to_vec);
        adjacency.keep(place, block);
        Ok(ends.map(Cow::Owned))
    }

    /// The bytes of the edges that are cached.
    pub(crate) fn adjacency_bytes(&self) -> u64 {
        let known = self.rows.base().and_then(|base| base.derived_already::<Adjacency>());
        known.map_or(0, |adjacency| adjacency.bytes.load(Ordering::Relaxed))
    }

    /// Carries unchanged blocks over to the catalog snapshot of a new checkpoint.
    pub(crate) fn carry_over_adjacency(&self, changes: &Overlay, next: &holotype_storage::catalog::CatalogSnapshot) {
        if let Some(known) = self.rows.base().and_then(|base| base.derived_already::<Adjacency>()) {
            next.derived(|| known.after(changes, self.bound()));
        }
    }

    /// Reads the edges of a block that begins at `first`, as of the checkpoint.
    fn read_block(&self, table: u8, first: u32) -> Result<Block> {
        let mut counts = [0u32; BLOCK_ITEMS as usize];
        let Some(base) = self.rows.base() else { return Ok(Block::new(counts, Vec::new())) };
        let last = match first.checked_add(BLOCK_ITEMS) {
            Some(next) => Bound::Excluded(next.to_be_bytes()),
            None => Bound::Unbounded,
        };
        let mut ends = Vec::with_capacity(2 * BLOCK_ITEMS as usize);
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
        Ok(Block::new(counts, ends))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::edge::Edge;
    use crate::model::item::Kind;
    use crate::records::tables::EdgeRow;
    use crate::{Durability, Holotype, NewRecall, NewTrace, Options, Pointer};

    #[test]
    fn an_item_with_very_many_ends_leaves_those_of_its_neighbours_in_the_block() {
        let ends = |from: u32, count: u32| {
            let row = EdgeRow { order: 0, stated: false };
            (from..from + count).map(move |far| EdgeEnd { edge: Edge::Cites, far: ItemId(far), row })
        };
        let mut counts = [0; BLOCK_ITEMS as usize];
        (counts[0], counts[3], counts[127]) = (2, 150_000, 1);
        let all: Vec<EdgeEnd> = ends(10, 2).chain(ends(100, 150_000)).chain(ends(7, 1)).collect();
        let block = Block::new(counts, all);
        assert_eq!(block.of(0), Some(ends(10, 2).collect::<Vec<_>>().as_slice()));
        assert_eq!(block.of(128 + 3), None);
        assert_eq!(block.of(4), Some([].as_slice()));
        assert_eq!(block.of(127), Some(ends(7, 1).collect::<Vec<_>>().as_slice()));
        counts[3] = 300;
        let all: Vec<EdgeEnd> = ends(10, 2).chain(ends(100, 300)).chain(ends(7, 1)).collect();
        assert_eq!(Block::new(counts, all).of(3).map(<[EdgeEnd]>::len), Some(300));
    }

    #[test]
    fn a_full_cache_scans_the_rows_of_an_item() {
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
        let whole = state.read_block(tables::EDGE_IN, 0).unwrap();
        let base = state.rows.base().unwrap();
        let adjacency = base.derived(|| Adjacency::new(state.bound(), base.derived_len())).unwrap();
        adjacency.bytes.store(adjacency.most, Ordering::Relaxed);
        for id in [trace, concepts[0], concepts[1]] {
            assert!(state.adjacent(tables::EDGE_IN, id).unwrap().is_none());
            let mut found = far(&state.edges_in(id, None).unwrap());
            let mut expected = far(whole.of(id.0).unwrap());
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected);
            assert!(!found.is_empty());
        }
        assert_eq!(state.adjacency_bytes(), adjacency.most);
    }
}
