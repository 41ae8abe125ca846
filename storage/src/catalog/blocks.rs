//! Rows packed into blocks of some forty rows, which redb stores as single entries.
//!
//! A tree that stores rows of some forty bytes one by one spends more on searching the place of each, and on copying
//! its page, than on the row. A checkpoint writes thousands of rows, most of them adjacent. So rows are merged block by
//! block, and each block is one entry of redb with one checksum.
//!
//! A block's key is its *fence*: no row of the block is above it, and every row of the next block is above it. Its
//! value:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | number of rows, n |
//! | 4 | 8 n | for each row: the ends of its key and its value, u32 each, counted from the first key |
//! | 4 + 8 n | | the rows, each its key and its value |
//! | last 4 | 4 | CRC32, as of every value of the catalog |
//!
//! 1. The rows of a block ascend, and there is at least one.
//! 2. The rows of a block are at or below its fence and above the fence before.
//! 3. A block of more than [`MAX_BLOCK_LEN`] bytes and more than one row is cut into equal ones, which may each be
//!    longer by one row; a longer row gets a block of its own. Blocks that became small are not joined.
//!
//! Cost: reading a row takes one look-up in redb, one checksum over the block, and a binary search in it; a checkpoint
//! takes two such look-ups for each block it touches.

use redb::{ReadableTable, Table};

use super::{CRC_LEN, append_crc, strip_crc};
use crate::overlay::RowKey;

/// The length in bytes above which a block is cut. Two blocks fill a page of redb: of shorter ones, rows that come in
/// order leave a quarter of each page empty, since redb cuts a full page in its middle.
const MAX_BLOCK_LEN: usize = 1920;

const COUNT_LEN: usize = 4;
const END_LEN: usize = 8;
const _: () = assert!(COUNT_LEN + END_LEN == 12);

/// A change of a row: its new value, or `None` for a deletion.
pub(super) type Change<V> = (RowKey, Option<V>);

/// A row: its key with the table's number in front, and its value.
type Row<'a> = (&'a [u8], &'a [u8]);

/// The rows of a block.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    ends: &'a [[u8; END_LEN]],
    rows: &'a [u8],
}

impl<'a> Block<'a> {
    /// Parses the block under a fence; `None` if its checksum does not match or it is malformed.
    pub(super) fn open(domain: u8, fence: &[u8], stored: &'a [u8]) -> Option<Self> {
        Self::parse(strip_crc(domain, fence, stored)?)
    }

    /// The same for a block whose checksum was verified before.
    pub(super) fn checked(stored: &'a [u8]) -> Option<Self> {
        Self::parse(stored.get(..stored.len().checked_sub(CRC_LEN)?)?)
    }

    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (count, rest) = bytes.split_first_chunk::<COUNT_LEN>()?;
        let count = u32::from_le_bytes(*count) as usize;
        let (ends, rows) = rest.split_at_checked(count.checked_mul(END_LEN)?)?;
        Some(Self { ends: ends.as_chunks().0, rows })
    }

    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// A row by its index in the block, if there is one.
    pub(super) fn row(&self, at: usize) -> Option<Row<'a>> {
        let start = match at.checked_sub(1) {
            Some(before) => self.ends_of(before)?.1,
            None => 0,
        };
        let (key_end, end) = self.ends_of(at)?;
        Some((self.rows.get(start..key_end)?, self.rows.get(key_end..end)?))
    }

    fn ends_of(&self, at: usize) -> Option<(usize, usize)> {
        let [a, b, c, d, e, f, g, h] = *self.ends.get(at)?;
        Some((u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes([e, f, g, h]) as usize))
    }

    /// The index of the first row whose key is not below `key`; `None` in a malformed block.
    pub(super) fn position(&self, key: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.row(middle)?.0 < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(low)
    }

    /// The value of the row with that key: `Some(None)` if there is none, `None` in a malformed block.
    pub(super) fn find(&self, key: &[u8]) -> Option<Option<&'a [u8]>> {
        let at = self.position(key)?;
        if at == self.len() {
            return Some(None);
        }
        let (found, value) = self.row(at)?;
        Some((found == key).then_some(value))
    }

    /// True if its rows ascend, above `before` and up to `fence`, and no bytes are left over.
    pub(super) fn is_in_order(&self, before: Option<&[u8]>, fence: &[u8]) -> bool {
        let mut last = before;
        let mut len = 0;
        for at in 0..self.len() {
            let Some((key, value)) = self.row(at) else { return false };
            if last.is_some_and(|last| key <= last) {
                return false;
            }
            last = Some(key);
            len += key.len() + value.len();
        }
        self.len() > 0 && len == self.rows.len() && last.is_some_and(|last| last <= fence)
    }
}

/// The reason why writing changes stopped.
pub(super) enum Stopped {
    Redb(redb::Error),
    /// A block to be changed is damaged: the table number of a row there.
    Damaged(u8),
}

impl<E: Into<redb::Error>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Stopped::Redb(error.into())
    }
}

/// Sorts changes by row and keeps the last change of each row.
pub(super) fn in_order<V>(changes: impl IntoIterator<Item = Change<V>>) -> Vec<Change<V>> {
    let mut changes: Vec<Change<V>> = changes.into_iter().collect();
    if !changes.is_sorted_by(|one, other| one.0 < other.0) {
        changes.sort_by(|one, other| one.0.cmp(&other.0));
        changes.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                std::mem::swap(later, kept);
            }
            same
        });
    }
    changes
}

/// Merges sorted changes into the blocks of a table. Returns the bytes of the blocks that were written.
pub(super) fn merge<V: AsRef<[u8]>>(
    table: &mut Table<'_, &'static [u8], &'static [u8]>,
    domain: u8,
    mut changes: &[Change<V>],
) -> Result<u64, Stopped> {
    let mut written = 0;
    let (mut fence, mut stored, mut out) = (Vec::new(), Vec::new(), Vec::new());
    while let Some((first, _)) = changes.first() {
        fence.clear();
        stored.clear();
        let (own, stands) = {
            // Rows after all fences join the last block.
            let found = match table.range::<&[u8]>(first.flat()..)?.next() {
                Some(found) => Some(found?),
                None => table.last()?,
            };
            if let Some((key, value)) = &found {
                fence.extend_from_slice(key.value());
                stored.extend_from_slice(value.value());
            }
            let own = match first.flat() <= fence.as_slice() {
                true => changes.partition_point(|(key, _)| key.flat() <= fence.as_slice()),
                false => changes.len(),
            };
            (own, found.is_some())
        };
        let (here, later) = changes.split_at(own);
        let damaged = || Stopped::Damaged(first.table());
        let old = match stands {
            true => Some(Block::open(domain, &fence, &stored).ok_or_else(damaged)?),
            false => None,
        };
        let rows = merged(old, here).ok_or_else(damaged)?;
        let mut is_kept = false;
        for piece in cut(&rows) {
            let Some(&(last, _)) = piece.last() else { continue };
            // The last block keeps its fence, so that its key in redb stays the same.
            let is_last = rows.last().is_some_and(|(key, _)| *key == last);
            let of_piece = if is_last { last.max(&fence) } else { last };
            is_kept |= of_piece == fence.as_slice();
            encode(piece, &mut out);
            append_crc(domain, of_piece, &mut out);
            table.insert(of_piece, out.as_slice())?;
            written += out.len() as u64;
        }
        if old.is_some() && !is_kept {
            table.remove(fence.as_slice())?;
        }
        changes = later;
    }
    Ok(written)
}

/// The rows of a block after changes; `None` for a malformed block.
fn merged<'a, V: AsRef<[u8]>>(old: Option<Block<'a>>, changes: &'a [Change<V>]) -> Option<Vec<Row<'a>>> {
    let count = old.map_or(0, |old| old.len());
    let mut rows = Vec::with_capacity(count + changes.len());
    let mut at = 0;
    for (key, value) in changes {
        let key = key.flat();
        while let Some(old) = old.filter(|_| at < count) {
            let row = old.row(at)?;
            if row.0 > key {
                break;
            }
            at += 1;
            if row.0 < key {
                rows.push(row);
            }
        }
        if let Some(value) = value {
            rows.push((key, value.as_ref()));
        }
    }
    while let Some(old) = old.filter(|_| at < count) {
        rows.push(old.row(at)?);
        at += 1;
    }
    Some(rows)
}

fn len_of(rows: &[Row<'_>]) -> usize {
    rows.iter().map(|(key, value)| END_LEN + key.len() + value.len()).sum()
}

/// Encodes a block without its checksum.
fn encode(rows: &[Row<'_>], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&(rows.len() as u32).to_le_bytes());
    let mut end = 0;
    for (key, value) in rows {
        for len in [key.len(), value.len()] {
            end += len;
            out.extend_from_slice(&(end as u32).to_le_bytes());
        }
    }
    for (key, value) in rows {
        out.extend_from_slice(key);
        out.extend_from_slice(value);
    }
}

/// Cuts rows into blocks of about the same length. A row longer than a block gets its own, so that reading a neighbour
/// does not checksum it.
fn cut<'r, 'a>(rows: &'r [Row<'a>]) -> impl Iterator<Item = &'r [Row<'a>]> {
    let (mut rest, mut rest_len) = (rows, len_of(rows));
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let wanted = rest_len / rest_len.div_ceil(MAX_BLOCK_LEN).max(1);
        let (mut len, mut count) = (0, 0);
        for row in rest {
            let row_len = len_of(std::slice::from_ref(row));
            if count > 0 && (len >= wanted || row_len > MAX_BLOCK_LEN) {
                break;
            }
            len += row_len;
            count += 1;
        }
        let (piece, later) = rest.split_at(count);
        (rest, rest_len) = (later, rest_len - len);
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use redb::backends::InMemoryBackend;
    use redb::{Builder, Database, TableDefinition};
    use std::collections::BTreeMap;

    const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("blocks");
    const DOMAIN: u8 = b'b';

    fn database() -> Database {
        Builder::new().create_with_backend(InMemoryBackend::new()).unwrap()
    }

    fn write(database: &Database, changes: &[Change<Vec<u8>>]) {
        let transaction = database.begin_write().unwrap();
        let mut table = transaction.open_table(TABLE).unwrap();
        assert!(merge(&mut table, DOMAIN, changes).is_ok());
        drop(table);
        transaction.commit().unwrap();
    }

    /// Reads every block and checks the invariants.
    fn read(database: &Database) -> (BTreeMap<Vec<u8>, Vec<u8>>, Vec<usize>) {
        let transaction = database.begin_write().unwrap();
        let table = transaction.open_table(TABLE).unwrap();
        let (mut rows, mut lens, mut before) = (BTreeMap::new(), Vec::new(), None);
        for block in table.iter().unwrap() {
            let (fence, stored) = block.unwrap();
            let (fence, stored) = (fence.value().to_vec(), stored.value());
            let block = Block::open(DOMAIN, &fence, stored).unwrap();
            assert!(block.is_in_order(before.as_deref(), &fence));
            for at in 0..block.len() {
                let (key, value) = block.row(at).unwrap();
                assert_eq!(block.find(key), Some(Some(value)));
                rows.insert(key.to_vec(), value.to_vec());
            }
            assert_eq!(block.row(block.len()), None);
            lens.push(stored.len());
            before = Some(fence);
        }
        (rows, lens)
    }

    #[test]
    fn the_bytes_of_a_block() {
        let mut out = Vec::new();
        encode(&[(b"\x01a", b"xyz"), (b"\x01bc", b"")], &mut out);
        let expected = [&2_u32.to_le_bytes()[..], &[2, 5, 8, 8].map(u32::to_le_bytes).concat(), b"\x01axyz\x01bc"];
        assert_eq!(out, expected.concat());
        append_crc(DOMAIN, b"\x01bc", &mut out);
        let crc = crc32fast::hash(&[&b"b\x03\0\0\0\x01bc"[..], &expected.concat()].concat());
        assert_eq!(out.last_chunk(), Some(&crc.to_le_bytes()));
        assert!(Block::open(DOMAIN, b"\x01bc", &out).is_some());
        assert!(Block::open(DOMAIN, b"\x01bd", &out).is_none(), "under another fence");
    }

    /// A row as long as a block shares its block with others; a row one byte longer does not.
    #[test]
    fn longer_rows_than_a_block_stand_alone() {
        let other: Row<'_> = (b"a", b"");
        let rest = MAX_BLOCK_LEN - len_of(&[(b"b", b"")]);
        for (more, blocks) in [(0, 1), (1, 2)] {
            let value = vec![7; rest + more];
            assert_eq!(cut(&[other, (b"b", &value)]).count(), blocks);
        }
    }

    #[test]
    fn blocks_out_of_order_are_detected() {
        let is_in_order = |rows: &[Row<'_>], rest: &[u8], before: Option<&[u8]>, fence: &[u8]| {
            let mut bytes = Vec::new();
            encode(rows, &mut bytes);
            bytes.extend_from_slice(rest);
            Block::parse(&bytes).unwrap().is_in_order(before, fence)
        };
        let rows: [Row<'_>; 2] = [(b"b", b"x"), (b"d", b"")];
        assert!(is_in_order(&rows, b"", None, b"d") && is_in_order(&rows, b"", Some(b"a"), b"e"));
        assert!(!is_in_order(&[], b"", Some(b"a"), b"b"), "without a row");
        assert!(!is_in_order(&rows, b"z", None, b"d"), "with something left over");
        assert!(!is_in_order(&rows, b"", None, b"c"), "a row above the fence");
        assert!(!is_in_order(&rows, b"", Some(b"b"), b"d"), "the row that came before");
        assert!(
            !is_in_order(&[(b"d", b""), (b"b", b"")], b"", None, b"d") && !is_in_order(&[rows[0]; 2], b"", None, b"b")
        );
    }

    #[test]
    fn bytes_that_are_no_block_are_none() {
        for bytes in [&b""[..], b"\x01\0\0", b"\x01\0\0\0\0\0\0\0", b"\xff\xff\xff\xff\0\0\0\0\0\0\0\0"] {
            assert!(Block::parse(bytes).is_none(), "{bytes:?}");
        }
        // Ends outside the block, or before the start.
        for ends in [[1_u32, 9], [9, 9], [1, 0]] {
            let bytes = [&1_u32.to_le_bytes()[..], &ends.map(u32::to_le_bytes).concat(), b"ab"].concat();
            let block = Block::parse(&bytes).unwrap();
            assert_eq!((block.row(0), block.find(b"a")), (None, None));
            assert!(!block.is_in_order(None, b"z"));
        }
    }

    #[test]
    fn a_damaged_block_is_not_written_over() {
        let change = [(RowKey::new(1, b"a"), Some(vec![1]))];
        for damaged in [&b""[..], b"\x01\0\0", &[0; 60]] {
            let database = database();
            let transaction = database.begin_write().unwrap();
            let mut table = transaction.open_table(TABLE).unwrap();
            table.insert(&b"\x01z"[..], damaged).unwrap();
            assert!(matches!(merge(&mut table, DOMAIN, &change), Err(Stopped::Damaged(1))), "{damaged:?}");
            assert_eq!(table.get(&b"\x01z"[..]).unwrap().unwrap().value(), damaged);
        }
    }

    #[test]
    fn a_long_row_stands_alone_and_does_not_part_those_behind_it() {
        let value = |len: usize| vec![0; len];
        let (long, short) = (value(50_000), value(20));
        let mut rows: Vec<Row<'_>> = vec![(b"k", &short); 200];
        rows[100] = (b"k", &long);
        let pieces: Vec<&[Row<'_>]> = cut(&rows).collect();
        assert_eq!(pieces.concat(), rows);
        let of_long: Vec<_> = pieces.iter().filter(|piece| piece.contains(&rows[100])).collect();
        assert_eq!(of_long, [&&rows[100..=100]]);
        assert!(pieces.len() < 10, "{} pieces", pieces.len());
    }

    #[test]
    fn rows_that_come_in_order_fill_their_blocks() {
        let database = database();
        for round in 0..10_u32 {
            let of = |i: u32| (RowKey::new(1, &(round * 1000 + i).to_be_bytes()), Some(vec![7; 20]));
            write(&database, &(0..1000).map(of).collect::<Vec<_>>());
        }
        let (rows, lens) = read(&database);
        assert_eq!(rows.len(), 10_000);
        let full = lens.iter().filter(|len| (MAX_BLOCK_LEN * 9 / 10..MAX_BLOCK_LEN + 50).contains(*len)).count();
        assert!(full * 10 > lens.len() * 9, "{lens:?}");
    }

    proptest! {
        /// After any writes, the blocks have the content of an ordinary map.
        #[test]
        fn blocks_are_a_map(
            rounds in proptest::collection::vec(
                proptest::collection::vec((0_u8..3, 0_u16..600, proptest::option::of(0_usize..40), any::<bool>()), 0..200),
                0..8,
            )
        ) {
            let (database, mut model) = (database(), BTreeMap::new());
            for round in rounds {
                let change = |(table, key, len, long): (u8, u16, Option<usize>, bool)| {
                    let len = len.map(|len| if long && len == 39 { 3000 } else { len });
                    (RowKey::new(table, &key.to_be_bytes()), len.map(|len| vec![len as u8; len]))
                };
                let changes: Vec<Change<Vec<u8>>> = round.into_iter().map(change).collect();
                for (key, value) in &changes {
                    match value {
                        Some(value) => model.insert(key.flat().to_vec(), value.clone()),
                        None => model.remove(key.flat()),
                    };
                }
                write(&database, &in_order(changes));
                let (rows, lens) = read(&database);
                prop_assert_eq!(&rows, &model);
                prop_assert!(lens.iter().all(|len| *len < 3100));
            }
        }
    }
}
