//! The Merkle tree over all records: stored hashes of complete subtrees.
//!
//! For every 256 records a checkpoint writes a row with the hashes and positions of their sixteen subtrees of sixteen
//! records, and for every 65,536 and 16,777,216 records a row with one hash. A proof path then needs a few rows, the
//! records of at most two groups of sixteen, and the records since the last checkpoint, which are read once and
//! cached. The cost of a proof is logarithmic in the number of records n; the rows take 2.7 n bytes.
//!
//! | row | key | value |
//! |---|---|---|
//! | block | 8, number of the block | hash, and 16 times position and hash |
//! | larger subtree | 16 or 24, number | hash |
//! | extent | 0, 0 | records in blocks so far, position after the last of them |
//!
//! All rows are derived: without them the log is read from its start.

use crate::records::record::SubtreeRow;
use crate::records::tables;
use crate::state::State;
use crate::{Error, Result};
use bincode::{Decode, Encode};
use holotype_storage::log::{Leaf, Log, Lsn};
use holotype_storage::overlay::RowKey;
use holotype_storage::proof::tree::{Subtrees, fold};
use holotype_storage::{Hash, codec};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Levels of the subtrees with rows.
const ROW_LEVELS: [u32; 3] = [24, 16, 8];
/// Level of the subtrees within a block.
const PART_LEVEL: u32 = 4;
const PARTS: usize = 16;

/// The hashes of 256 records.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct BlockRow {
    pub(crate) hash: Hash,
    /// The position of the first record and the hash of each group of sixteen records.
    pub(crate) parts: Vec<(u64, Hash)>,
}

/// The records covered by rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ExtentRow {
    pub(crate) records: u64,
    pub(crate) position: u64,
}

/// Cached hashes of the records after the rows. All snapshots of a database share them, because they share the log.
#[derive(Debug, Default)]
pub(crate) struct TreeTail(Mutex<Tail>);

/// The records from `first` on.
#[derive(Debug, Default, Clone)]
struct Tail {
    first: u64,
    leaves: Vec<(u64, Hash)>,
    /// The position after the last cached record; `None` before the first use.
    end: Option<u64>,
}

/// The subtrees of a log as seen by one state.
pub(crate) struct Tree<'a> {
    log: &'a Log,
    state: &'a State,
    extent: ExtentRow,
    tail: Tail,
    /// Leaves of the groups read so far.
    groups: HashMap<u64, Vec<Hash>>,
    /// Hashes computed from lower levels.
    computed: HashMap<(u32, u64), Hash>,
}

impl<'a> Tree<'a> {
    /// The tree of all records up to the state's head.
    pub(crate) fn open(log: &'a Log, state: &'a State, shared: &TreeTail) -> Result<Tree<'a>> {
        let extent = extent(state)?;
        let mut kept = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.read_to(log, extent, state.head.position)?;
        let tail = kept.clone();
        drop(kept);
        Ok(Tree { log, state, extent, tail, groups: HashMap::new(), computed: HashMap::new() })
    }

    fn row<T: Decode<()>>(&self, level: u32, index: u64) -> Result<T> {
        let row = self.state.get(tables::TREE, &key(level, index))?;
        row.ok_or_else(|| Error::Corrupt {
            what: format!("the catalog has no hash of subtree {index} of level {level}"),
        })
    }

    /// A leaf after the rows.
    fn tail_leaf(&self, index: u64) -> Result<Hash> {
        let at = index.checked_sub(self.tail.first).and_then(|at| usize::try_from(at).ok());
        let leaf = at.and_then(|at| self.tail.leaves.get(at)).map(|(_, hash)| *hash);
        leaf.ok_or_else(|| Error::Corrupt { what: format!("the log has no record {index}") })
    }

    /// The sixteen leaves of a group covered by rows.
    fn group(&mut self, group: u64) -> Result<&[Hash]> {
        if !self.groups.contains_key(&group) {
            let block: BlockRow = self.row(8, group / PARTS as u64)?;
            let part = block.parts.get((group % PARTS as u64) as usize);
            let &(position, expected) = part.ok_or_else(|| bad_block(group / PARTS as u64))?;
            if let Some(floor) = self.log.floor().filter(|floor| position < floor.first.0) {
                let what = format!("the proof of record {}", group * PARTS as u64);
                return Err(Error::BeforeHistory { what, since: floor.head.commit.0 });
            }
            let leaves = self.log.leaves(Lsn(position), self.log.end()).take(PARTS);
            let leaves = leaves.map(|leaf| Ok(leaf?.hash)).collect::<Result<Vec<Hash>>>()?;
            if fold(&leaves) != Some(expected) {
                let what = format!("the records from log position {position} on do not match the hash in the catalog");
                return Err(Error::Corrupt { what });
            }
            self.groups.insert(group, leaves);
        }
        Ok(self.groups.get(&group).map_or(&[], Vec::as_slice))
    }

    /// The hash of a subtree, from the hashes of a lower level.
    fn of_level(&mut self, lower: u32, level: u32, index: u64) -> Result<Hash> {
        if let Some(hash) = self.computed.get(&(level, index)) {
            return Ok(*hash);
        }
        let width = 1_u64 << (level - lower);
        let parts =
            (index * width..(index + 1) * width).map(|part| self.hash(lower, part)).collect::<Result<Vec<_>>>()?;
        let hash = fold(&parts).ok_or_else(|| Error::Corrupt { what: "a subtree is not complete".to_owned() })?;
        self.computed.insert((level, index), hash);
        Ok(hash)
    }
}

impl Subtrees for Tree<'_> {
    type Error = Error;

    fn hash(&mut self, level: u32, index: u64) -> Result<Hash> {
        let end = (index + 1) << level;
        if end > self.extent.records {
            return match level {
                0 => self.tail_leaf(index),
                _ => self.of_level(level - 1, level, index),
            };
        }
        match level {
            0 => {
                let leaf = self.group(index / PARTS as u64)?.get((index % PARTS as u64) as usize).copied();
                leaf.ok_or_else(|| bad_block(index >> 8))
            }
            1..PART_LEVEL => self.of_level(0, level, index),
            PART_LEVEL..8 => {
                let width = 1_usize << (level - PART_LEVEL);
                let block: BlockRow = self.row(8, (index << level) >> 8)?;
                let first = ((index << level >> PART_LEVEL) % PARTS as u64) as usize;
                let parts: Vec<Hash> = block.parts.iter().skip(first).take(width).map(|(_, hash)| *hash).collect();
                fold(&parts).filter(|_| parts.len() == width).ok_or_else(|| bad_block((index << level) >> 8))
            }
            8 => Ok(self.row::<BlockRow>(8, index)?.hash),
            16 | 24 => self.row(level, index),
            _ => {
                let lower = ROW_LEVELS.into_iter().find(|row| *row < level).unwrap_or(8);
                self.of_level(lower, level, index)
            }
        }
    }
}

impl Tail {
    /// Reads up to a position and drops records that have rows by now.
    fn read_to(&mut self, log: &Log, extent: ExtentRow, to: Lsn) -> Result<()> {
        let known = self.end.is_some() && self.first <= extent.records;
        let past = extent.records.saturating_sub(self.first);
        match usize::try_from(past).ok().filter(|past| known && *past <= self.leaves.len()) {
            Some(past) => {
                self.leaves.drain(..past);
            }
            None => {
                self.leaves.clear();
                self.end = Some(extent.position);
            }
        }
        self.first = extent.records;
        let from = self.end.unwrap_or(extent.position);
        if from < to.0 {
            for leaf in log.leaves(Lsn(from), to) {
                let leaf = leaf?;
                self.leaves.push((leaf.lsn.0, leaf.hash));
                self.end = Some(leaf.end.0);
            }
        }
        Ok(())
    }
}

/// The records covered by the rows of a state.
fn extent(state: &State) -> Result<ExtentRow> {
    Ok(state.get(tables::TREE, &key(0, 0))?.unwrap_or(ExtentRow { records: 0, position: 0 }))
}

/// The rows that a checkpoint of `state` adds, for the blocks complete at its head.
pub(crate) fn new_rows(log: &Log, state: &State) -> Result<Vec<(RowKey, Option<Vec<u8>>)>> {
    let mut rows = Vec::new();
    let start = extent(state)?;
    let mut on_row = |key: &[u8], value: &[u8]| {
        rows.push((RowKey::new(tables::TREE, key), Some(value.to_vec())));
        Ok(())
    };
    let end = match log.recent_leaves(Lsn(start.position), state.head.position) {
        Some(leaves) => {
            let mut blocks = Blocks { extent: start, ..Blocks::default() };
            leaves.into_iter().try_for_each(|leaf| blocks.push(leaf, state, &mut on_row))?;
            blocks.extent
        }
        None => append_rows(log, state, start, state.head.position, &mut |_| Ok(()), &mut on_row)?,
    };
    if end != start {
        rows.push((RowKey::new(tables::TREE, &key(0, 0)), Some(codec::encode(&end)?)));
    }
    Ok(rows)
}

/// The last block boundary at or before a record, of the blocks with rows: the number of records before it, and its log
/// position. Rows may lag behind: derived files that are made anew take over those there are, and a checkpoint that has
/// nothing else to write adds none.
pub(crate) fn extent_before(state: &State, records: u64) -> Result<(u64, Lsn)> {
    let kept = extent(state)?;
    let block = records.min(kept.records) >> 8;
    let position = match (block << 8).cmp(&kept.records) {
        std::cmp::Ordering::Equal => kept.position,
        _ if block == 0 => 0,
        _ => {
            let row: BlockRow = required(state, 8, block)?;
            row.parts.first().ok_or_else(|| bad_block(block))?.0
        }
    };
    Ok((block << 8, Lsn(position)))
}

/// The rows over the first `records` records, a multiple of 256.
pub(crate) fn rows_before(state: &State, records: u64) -> Result<Vec<SubtreeRow>> {
    let is_before = |key: &[u8]| {
        let (level, index) = key.split_first()?;
        let index = u64::from_be_bytes(index.try_into().ok()?);
        Some(*level > 0 && (index + 1).checked_shl((*level).into())? <= records)
    };
    let rows = state.scan(tables::TREE, &[])?.into_iter().filter(|(key, _)| is_before(key) == Some(true));
    Ok(rows.map(|(key, value)| SubtreeRow { key, value: value.to_vec() }).collect())
}

/// Stores how many records the rows of a state cover.
pub(crate) fn put_extent(state: &mut State, records: u64, position: Lsn) -> Result<()> {
    if records > 0 {
        state.put_new(tables::TREE, key(0, 0), &ExtentRow { records, position: position.0 })?;
    }
    Ok(())
}

/// Receives the key and value of a row.
pub(crate) type OnRow<'a> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'a;

/// Rebuilds all rows of a state from the log and passes them to `on_row`. `on_bytes` receives the bytes read.
pub(crate) fn rebuild_rows(
    log: &Log,
    state: &State,
    on_bytes: &mut dyn FnMut(u64) -> Result<()>,
    on_row: &mut OnRow<'_>,
) -> Result<()> {
    let kept = extent(state)?;
    let mut start = ExtentRow::default();
    if let Some(floor) = log.floor() {
        // Records before the floor are truncated, so their rows are kept as they are.
        start = ExtentRow { records: floor.records, position: floor.leaves.0 };
        for row in rows_before(state, floor.records)? {
            on_row(&row.key, &row.value)?;
        }
    }
    let end = append_rows(log, state, start, Lsn(kept.position), on_bytes, on_row)?;
    match kept == ExtentRow::default() {
        true => Ok(()),
        false => on_row(&key(0, 0), &codec::encode(&end)?),
    }
}

/// Builds the rows of the blocks that are complete between `extent` and a position. Returns the new extent.
fn append_rows(
    log: &Log,
    state: &State,
    extent: ExtentRow,
    to: Lsn,
    on_bytes: &mut dyn FnMut(u64) -> Result<()>,
    on_row: &mut OnRow<'_>,
) -> Result<ExtentRow> {
    let mut blocks = Blocks { extent, ..Blocks::default() };
    for leaf in log.leaves(Lsn(extent.position), to) {
        let leaf = leaf?;
        on_bytes(leaf.end.0.saturating_sub(leaf.lsn.0))?;
        blocks.push(leaf, state, on_row)?;
    }
    Ok(blocks.extent)
}

/// Turns a stream of record hashes into rows.
#[derive(Default)]
pub(crate) struct Blocks {
    /// The records covered by rows.
    extent: ExtentRow,
    /// The records of the incomplete last block.
    block: Vec<(u64, Hash)>,
    hashes: HashMap<(u32, u64), Hash>,
}

impl Blocks {
    /// Continues after the rows of a state.
    pub(crate) fn after(state: &State) -> Result<Blocks> {
        Ok(Blocks { extent: extent(state)?, ..Blocks::default() })
    }

    /// The log position to continue reading from.
    pub(crate) fn read_from(&self) -> Lsn {
        Lsn(self.extent.position)
    }

    /// Adds the next record and passes completed rows to `on_row`. Rows of earlier records are read from `state`.
    pub(crate) fn push(&mut self, leaf: Leaf, state: &State, on_row: &mut OnRow<'_>) -> Result<()> {
        let Blocks { extent, block, hashes } = self;
        block.push((leaf.lsn.0, leaf.hash));
        if block.len() < PARTS * PARTS {
            return Ok(());
        }
        let number = extent.records >> 8;
        let row = block_row(block).ok_or_else(|| bad_block(number))?;
        hashes.insert((8, number), row.hash);
        on_row(&key(8, number), &codec::encode(&row)?)?;
        block.clear();
        *extent = ExtentRow { records: extent.records + 256, position: leaf.end.0 };
        for level in [16_u32, 24] {
            if !extent.records.is_multiple_of(1 << level) {
                break;
            }
            let (number, first) = ((extent.records >> level) - 1, ((extent.records >> level) - 1) << 8);
            let lower = level - 8;
            let parts = (first..first + 256).map(|part| match hashes.get(&(lower, part)) {
                Some(hash) => Ok(*hash),
                None if lower == 8 => Ok(required::<BlockRow>(state, lower, part)?.hash),
                None => required(state, lower, part),
            });
            let hash = fold(&parts.collect::<Result<Vec<Hash>>>()?).ok_or_else(|| bad_block(first))?;
            hashes.insert((level, number), hash);
            on_row(&key(level, number), &codec::encode(&hash)?)?;
        }
        Ok(())
    }

    /// The extent row, if there are other rows.
    pub(crate) fn extent_row(&self) -> Result<Option<(RowKey, Vec<u8>)>> {
        if self.extent == ExtentRow::default() {
            return Ok(None);
        }
        Ok(Some((RowKey::new(tables::TREE, &key(0, 0)), codec::encode(&self.extent)?)))
    }
}

fn required<T: Decode<()>>(state: &State, level: u32, index: u64) -> Result<T> {
    let missing = || Error::Corrupt { what: format!("the catalog has no hash of subtree {index} of level {level}") };
    state.get(tables::TREE, &key(level, index))?.ok_or_else(missing)
}

fn block_row(leaves: &[(u64, Hash)]) -> Option<BlockRow> {
    let part = |leaves: &[(u64, Hash)]| {
        let hashes: Vec<Hash> = leaves.iter().map(|(_, hash)| *hash).collect();
        Some((leaves.first()?.0, fold(&hashes)?))
    };
    let parts = leaves.chunks(PARTS).map(part).collect::<Option<Vec<_>>>()?;
    let hashes: Vec<Hash> = parts.iter().map(|(_, hash)| *hash).collect();
    Some(BlockRow { hash: fold(&hashes)?, parts })
}

fn key(level: u32, index: u64) -> Vec<u8> {
    let mut key = vec![level as u8];
    key.extend_from_slice(&index.to_be_bytes());
    key
}

fn bad_block(number: u64) -> Error {
    Error::Corrupt {
        what: format!("the catalog's hashes of records {} to {} are incomplete", number << 8, (number << 8) + 255),
    }
}
