//! Adjacency cache: the edges of items as of the last checkpoint.
//!
//! A recall follows some hundred links, and a catalog lookup for each would descend a B-tree. A *block* holds the
//! edges of 128 consecutive items. The first access to one of them reads the block in one scan. Blocks belong to a
//! catalog snapshot; a checkpoint carries unchanged blocks over to the next one.
//!
//! A block holds its ends packed, item by item in the order of the rows. A varint per end: where the edge is that of
//! the end before, twice the distance from its item; else twice the zigzag distance from the item itself, plus 1, and
//! then the edge's byte.
//!
//! Invariants:
//! 1. A block equals the catalog's rows, without their values.
//! 2. Changes since the checkpoint are not in the cache: for a changed item [`State::edges_out`] and
//!    [`State::edges_in`] scan the rows.
//! 3. Ends of an item that has very many are not in a block of more than [`MAX_BLOCK_ENDS`]: its rows are scanned, and
//!    its neighbours in the block are still cached. Once the cache is full, the rows of an item are scanned.
//!
//! Cost: 1 to 6 bytes per edge end and 700 bytes for both blocks of 128 items; an eighth of `memory_limit` at most, and
//! no more than 64 MiB.

use crate::model::edge::Edge;
use crate::model::item::ItemId;
use crate::records::tables;
use crate::state::{EdgeEnd, State};
use crate::{Error, Result};
use holotype_storage::overlay::Overlay;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Items per block.
const BLOCK_ITEMS: u32 = 128;
/// The greatest number of ends in a block.
const MAX_BLOCK_ENDS: usize = 131_072;
/// About the most bytes of a packed end where an item has many.
const MAX_END: usize = 6;
/// The cached edges of one catalog snapshot.
pub(crate) struct Adjacency {
    out: Box<[OnceLock<Arc<Block>>]>,
    into: Box<[OnceLock<Arc<Block>>]>,
    /// The bytes of its blocks, and the most that they may be.
    bytes: AtomicU64,
    most: u64,
}

/// The edges of a block. Those of its item `i` are packed in `bytes[starts[i]..starts[i + 1]]`, unless they are left
/// out.
struct Block {
    /// A bit for each item whose ends are left out, because they are too many.
    left_out: u128,
    starts: Starts,
    bytes: Box<[u8]>,
}

/// Places in the bytes of a block.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are short, and a box would be one more line of memory to read"
)]
enum Starts {
    Short([u16; PLACES]),
    Long(Box<[u32; PLACES]>),
}

const PLACES: usize = BLOCK_ITEMS as usize + 1;

/// Edge ends of an item, in the order of their rows.
pub(crate) enum Ends<'s> {
    Packed(PackedEnds<'s>),
    Listed(std::vec::IntoIter<EdgeEnd>),
}

impl Iterator for Ends<'_> {
    type Item = EdgeEnd;

    fn next(&mut self) -> Option<EdgeEnd> {
        match self {
            Ends::Packed(ends) => ends.next(),
            Ends::Listed(ends) => ends.next(),
        }
    }
}

/// The packed ends of an item.
#[derive(Clone)]
pub(crate) struct PackedEnds<'s> {
    bytes: &'s [u8],
    near: u32,
    before: Option<EdgeEnd>,
}

impl PackedEnds<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }
}

impl Iterator for PackedEnds<'_> {
    type Item = EdgeEnd;

    fn next(&mut self) -> Option<EdgeEnd> {
        let (mut step, mut shift) = (0, 0);
        loop {
            let byte = self.byte()?;
            step |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
            shift += 7;
        }
        let end = if step & 1 == 0 {
            let EdgeEnd { edge, far } = self.before?;
            EdgeEnd { edge, far: ItemId(far.0.wrapping_add((step >> 1) as u32)) }
        } else {
            let edge = self.byte().and_then(Edge::from_byte)?;
            let distance = (step >> 2) as u32 ^ (step >> 1 & 1).wrapping_neg() as u32;
            EdgeEnd { edge, far: ItemId(self.near.wrapping_add(distance)) }
        };
        self.before = Some(end);
        Some(end)
    }
}

/// Appends the ends of an item.
fn pack(near: u32, ends: &[EdgeEnd], bytes: &mut Vec<u8>) {
    let mut before: Option<EdgeEnd> = None;
    for end in ends {
        let same = before.filter(|before| before.edge == end.edge && before.far <= end.far);
        let mut step = match same {
            Some(before) => u64::from(end.far.0 - before.far.0) << 1,
            None => {
                let distance = i64::from(end.far.0) - i64::from(near);
                ((distance << 1 ^ distance >> 63) as u64) << 1 | 1
            }
        };
        while step >= 0x80 {
            bytes.push(step as u8 | 0x80);
            step >>= 7;
        }
        bytes.push(step as u8);
        bytes.extend(same.is_none().then(|| end.edge.to_byte()));
        before = Some(*end);
    }
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
        self.bytes.load(Ordering::Relaxed) + (MAX_BLOCK_ENDS * MAX_END) as u64 > self.most
    }

    fn keep(&self, place: &OnceLock<Arc<Block>>, block: Arc<Block>) {
        let bytes = block.size();
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
    /// A block of ends in the order of their items, of which `first` is the first, so many of each.
    fn new(first: u32, counts: [u32; BLOCK_ITEMS as usize], ends: &[EdgeEnd]) -> Block {
        let (mut left_out, mut bytes) = (0, Vec::with_capacity(4 * ends.len()));
        let mut starts = [0; PLACES];
        let mut rest = ends;
        for (at, (near, count)) in (first..).zip(counts).enumerate() {
            let (own, further) = rest.split_at(rest.len().min(count as usize));
            rest = further;
            if ends.len() > MAX_BLOCK_ENDS && own.len() > MAX_BLOCK_ENDS / BLOCK_ITEMS as usize {
                left_out |= 1 << at;
            } else {
                pack(near, own, &mut bytes);
            }
            starts[at + 1] = bytes.len() as u32;
        }
        let starts = match u16::try_from(bytes.len()) {
            Ok(_) => Starts::Short(starts.map(|start| start as u16)),
            Err(_) => Starts::Long(Box::new(starts)),
        };
        Block { left_out, starts, bytes: bytes.into() }
    }

    /// The bytes of memory that it takes.
    fn size(&self) -> usize {
        let starts = match &self.starts {
            Starts::Short(_) => 0,
            Starts::Long(starts) => size_of_val(&**starts),
        };
        size_of::<Block>() + starts + self.bytes.len()
    }

    /// The ends of an item; `None` if they are left out.
    fn of(&self, id: u32) -> Option<PackedEnds<'_>> {
        let at = (id % BLOCK_ITEMS) as usize;
        let (start, end) = match &self.starts {
            Starts::Short(starts) => (usize::from(starts[at]), usize::from(starts[at + 1])),
            Starts::Long(starts) => (starts[at] as usize, starts[at + 1] as usize),
        };
        let bytes = self.bytes.get(start..end).unwrap_or_default();
        (self.left_out >> at & 1 == 0).then_some(PackedEnds { bytes, near: id, before: None })
    }
}

impl State {
    /// The cached edges at one end of an item; `None` if the caller must scan the rows.
    pub(crate) fn adjacent(&self, table: u8, id: ItemId) -> Result<Option<Ends<'_>>> {
        let Some(base) = self.rows.base().filter(|_| !self.is_past) else { return Ok(None) };
        if self.rows.is_changed(table, &id.0.to_be_bytes()) {
            return Ok(None);
        }
        let Some(adjacency) = base.derived(|| Adjacency::new(self.bound(), base.derived_len())) else {
            return Ok(None);
        };
        let Some(place) = adjacency.blocks(table).get((id.0 / BLOCK_ITEMS) as usize) else { return Ok(None) };
        if let Some(block) = place.get() {
            return Ok(block.of(id.0).map(Ends::Packed));
        }
        if adjacency.is_full() {
            return Ok(None);
        }
        let block = Arc::new(self.read_block(table, id.0 / BLOCK_ITEMS * BLOCK_ITEMS)?);
        let ends = block.of(id.0).map(|ends| Ends::Listed(ends.collect::<Vec<_>>().into_iter()));
        adjacency.keep(place, block);
        Ok(ends)
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
        let Some(base) = self.rows.base() else { return Ok(Block::new(first, counts, &[])) };
        let last = match first.checked_add(BLOCK_ITEMS) {
            Some(next) => Bound::Excluded(next.to_be_bytes()),
            None => Bound::Unbounded,
        };
        let mut ends = Vec::with_capacity(2 * BLOCK_ITEMS as usize);
        base.each(table, Bound::Included(&first.to_be_bytes()), last.as_ref().map(|key| key.as_slice()), |key, _| {
            let near = tables::number_at(key, 0).and_then(|near| near.checked_sub(first));
            let count = near.and_then(|near| counts.get_mut(near as usize));
            let Some(count) = count else {
                return Err(Error::Corrupt { what: format!("an edge row of item #{first} has a malformed key") });
            };
            *count += 1;
            ends.push(EdgeEnd::decode(key)?);
            Ok(())
        })?;
        Ok(Block::new(first, counts, &ends))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::item::Kind;
    use crate::{Durability, Holotype, NewRecall, NewTrace, Options, Pointer};
    use proptest::prelude::*;

    /// Ends of one edge at consecutive items.
    fn ends(edge: Edge, from: u32, count: u32) -> Vec<EdgeEnd> {
        (from..from + count).map(move |far| EdgeEnd { edge, far: ItemId(far) }).collect()
    }

    fn of(block: &Block, id: u32) -> Option<Vec<EdgeEnd>> {
        block.of(id).map(Iterator::collect)
    }

    #[test]
    fn an_item_with_very_many_ends_leaves_those_of_its_neighbours_in_the_block() {
        let mut counts = [0; BLOCK_ITEMS as usize];
        (counts[0], counts[3], counts[127]) = (2, 150_000, 1);
        let cites = |from, count| ends(Edge::Cites, from, count);
        let all = [cites(10, 2), cites(100, 150_000), cites(7, 1)].concat();
        let block = Block::new(0, counts, &all);
        assert_eq!(of(&block, 0), Some(cites(10, 2)));
        assert_eq!(of(&block, 128 + 3), None);
        assert_eq!(of(&block, 4), Some(Vec::new()));
        assert_eq!(of(&block, 127), Some(cites(7, 1)));
        counts[3] = 300;
        let all = [cites(10, 2), cites(100, 300), cites(7, 1)].concat();
        assert_eq!(of(&Block::new(0, counts, &all), 3).map(|ends| ends.len()), Some(300));
    }

    proptest! {
        #[test]
        fn a_block_packs_all_ends(
            first in 0..u32::MAX / BLOCK_ITEMS,
            ends in prop::collection::btree_set((0..BLOCK_ITEMS, prop::sample::select(Edge::ALL), any::<u32>()), 0..90),
            many in 0..40_000_u32,
        ) {
            let first = first * BLOCK_ITEMS;
            let mut of_items: Vec<Vec<EdgeEnd>> = vec![Vec::new(); BLOCK_ITEMS as usize];
            for (item, edge, far) in ends {
                of_items[item as usize].push(EdgeEnd { edge, far: ItemId(far) });
            }
            of_items[9] = (0..many).map(|nth| EdgeEnd { edge: Edge::Cites, far: ItemId(nth * 70_000) }).collect();
            let counts = std::array::from_fn(|at| of_items[at].len() as u32);
            let block = Block::new(first, counts, &of_items.concat());
            for (item, ends) in (first..).zip(of_items) {
                prop_assert_eq!(of(&block, item), Some(ends));
            }
        }
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
        let far = |ends: Vec<EdgeEnd>| ends.into_iter().map(|end| (end.edge, end.far)).collect::<Vec<_>>();
        let whole = state.read_block(tables::EDGE_IN, 0).unwrap();
        let base = state.rows.base().unwrap();
        let adjacency = base.derived(|| Adjacency::new(state.bound(), base.derived_len())).unwrap();
        adjacency.bytes.store(adjacency.most, Ordering::Relaxed);
        for id in [trace, concepts[0], concepts[1]] {
            assert!(state.adjacent(tables::EDGE_IN, id).unwrap().is_none());
            let mut found = far(state.edges_in(id, None).unwrap());
            let mut expected = far(of(&whole, id.0).unwrap());
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected);
            assert!(!found.is_empty());
        }
        assert_eq!(state.adjacency_bytes(), adjacency.most);
    }
}
