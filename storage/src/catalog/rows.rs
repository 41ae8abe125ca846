//! The rows of a catalog at one moment, with values derived from them.
//!
//! Every block is checked when it is read, and redb's panics are caught. [`CatalogSnapshot::each`] reads many rows
//! under one panic guard and copies none.

use std::any::Any;
use std::fmt::Debug;
use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use redb::{OwnedRange, ReadOnlyTable, ReadableTableMetadata};

use super::blocks::Block;
use super::{Applied, BLOCKS_DOMAIN, Place};
use crate::error::{Error, Result};
use crate::overlay::{flat_bounds, flat_key};
use crate::vfs::VfsFile;

/// The rows of a catalog at one moment. Clones share them.
#[derive(Clone)]
pub struct CatalogSnapshot {
    inner: Arc<Snapshot>,
}

struct Snapshot {
    place: Place,
    file: Arc<dyn VfsFile>,
    blocks: BytesTable,
    applied: Option<Applied>,
    /// Keeps the database open after the catalog is dropped: closing it would end its readers.
    _keep: Option<Arc<dyn Send + Sync>>,
    derived: OnceLock<Box<dyn Any + Send + Sync>>,
}

pub(super) type BytesTable = ReadOnlyTable<&'static [u8], &'static [u8]>;

impl CatalogSnapshot {
    pub(super) fn new(
        place: Place,
        file: Arc<dyn VfsFile>,
        blocks: BytesTable,
        applied: Option<Applied>,
        keep: Option<Arc<dyn Send + Sync>>,
    ) -> Self {
        Self { inner: Arc::new(Snapshot { place, file, blocks, applied, _keep: keep, derived: OnceLock::new() }) }
    }

    /// The position of the log up to which these rows are complete; `None` before the first checkpoint.
    #[must_use]
    pub fn applied(&self) -> Option<&Applied> {
        self.inner.applied.as_ref()
    }

    /// The length of the catalog's file in bytes.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn file_len(&self) -> Result<u64> {
        self.inner.file.len().map_err(Error::io(&self.inner.place.path, "measure"))
    }

    /// Reads and checks every row. Returns their number. `on_bytes` receives the length of each row and may end the
    /// work with an error.
    ///
    /// # Errors
    /// [`Error::DamagedFile`] for the first fault; what `on_bytes` returns.
    pub fn verify<E: From<Error>>(&self, on_bytes: &mut dyn FnMut(u64) -> Result<(), E>) -> Result<u64, E> {
        let (mut rows, mut count, mut before) = (0, 0, None);
        let path = &self.inner.place.path;
        let mut blocks = self.inner.place.guard(|| Ok(self.inner.blocks.range_owned::<&[u8]>(..)?))?;
        while let Some((fence, stored)) = next_block(&self.inner.place, &mut blocks)? {
            let damaged = || damaged_rows(path, fence.first().copied().unwrap_or_default());
            let block = Block::open(BLOCKS_DOMAIN, &fence, &stored).ok_or_else(damaged)?;
            if !block.is_in_order(before.as_deref(), &fence) {
                return Err(Error::damaged_file(path, "its rows are not in order").into());
            }
            // A look-up reads other bytes of redb's tree than an iteration.
            for at in [0, block.len() - 1] {
                let (key, value) = block.row(at).ok_or_else(damaged)?;
                if self.get_flat(key)?.as_deref() != Some(value) {
                    return Err(Error::damaged_file(path, "a row cannot be found by its key").into());
                }
            }
            count += 1;
            rows += block.len() as u64;
            on_bytes(stored.len() as u64)?;
            before = Some(fence);
        }
        // redb stores this count separately from the blocks.
        let expected = self.inner.place.guard(|| Ok(self.inner.blocks.len()?))?;
        if count != expected {
            let what = format!("it has {count} blocks of rows instead of {expected}");
            return Err(Error::damaged_file(path, what).into());
        }
        Ok(rows)
    }

    /// The value of a row.
    ///
    /// # Errors
    /// [`Error::DamagedFile`] when the row does not match its checksum; [`Error::Io`].
    pub fn get(&self, table: u8, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_flat(&flat_key(table, key))
    }

    pub(crate) fn get_flat(&self, flat: &[u8]) -> Result<Option<Vec<u8>>> {
        let path = &self.inner.place.path;
        self.inner.place.guard(|| {
            let Some(block) = self.inner.blocks.range::<&[u8]>(flat..)?.next() else { return Ok(Ok(None)) };
            let (fence, stored) = block?;
            let found = Block::open(BLOCKS_DOMAIN, fence.value(), stored.value()).and_then(|block| block.find(flat));
            let damaged = || damaged_rows(path, flat.first().copied().unwrap_or_default());
            Ok(found.map(|value| value.map(<[u8]>::to_vec)).ok_or_else(damaged))
        })?
    }

    /// Calls `see` with the rows of a table between two keys, ascending, without copying them: key without its table,
    /// and value. The first error of `see` ends the work.
    ///
    /// # Errors
    /// As [`CatalogSnapshot::get`], also for each row; what `see` returns.
    pub fn each<E: From<Error>>(
        &self,
        table: u8,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        mut see: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (from, to) = flat_bounds(table, from, to);
        let (from, to) = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
        let path = &self.inner.place.path;
        self.inner.place.guard(|| {
            for block in self.inner.blocks.range::<&[u8]>((from, Bound::Unbounded))? {
                let (fence, stored) = block?;
                let damaged = || damaged_rows(path, table);
                let Some(block) = Block::open(BLOCKS_DOMAIN, fence.value(), stored.value()) else {
                    return Ok(Err(damaged().into()));
                };
                let Some(first) = first_in(&block, from) else { return Ok(Err(damaged().into())) };
                for at in first..block.len() {
                    let Some((flat, value)) = block.row(at) else { return Ok(Err(damaged().into())) };
                    if is_past(flat, to) {
                        return Ok(Ok(()));
                    }
                    let seen = see(flat.get(1..).unwrap_or_default(), value);
                    if seen.is_err() {
                        return Ok(seen);
                    }
                }
            }
            Ok(Ok(()))
        })?
    }

    /// A value that the caller derives from these immutable rows, computed at the first call and cached with them.
    /// `None` if a value of another type is cached.
    pub fn derived<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.inner.derived.get_or_init(|| Box::new(make())).downcast_ref()
    }

    /// The cached value, if it was computed already.
    #[must_use]
    pub fn derived_already<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.inner.derived.get()?.downcast_ref()
    }

    /// The rows between two keys that begin with their table's number.
    pub(crate) fn range_flat(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Result<BaseRows> {
        let place = self.inner.place.clone();
        let blocks = place.guard(|| Ok(self.inner.blocks.range_owned::<&[u8]>((from, Bound::Unbounded))?))?;
        let mut rows = BaseRows { blocks, block: Vec::new(), table: 0, at: 0, to: to.map(<[u8]>::to_vec), place };
        if rows.load()? {
            let first = Block::checked(&rows.block).and_then(|block| first_in(&block, from));
            rows.at = first.ok_or_else(|| damaged_rows(&rows.place.path, rows.table))?;
        }
        Ok(rows)
    }
}

impl Debug for CatalogSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CatalogSnapshot").field("path", &self.inner.place.path).finish_non_exhaustive()
    }
}

/// Rows in order: table number and key as one key, and value.
pub(crate) struct BaseRows {
    blocks: OwnedRange<&'static [u8], &'static [u8]>,
    /// The block of the next row, checked; empty before the first and after the last.
    block: Vec<u8>,
    /// The number of the table of the block's last row.
    table: u8,
    at: usize,
    to: Bound<Vec<u8>>,
    place: Place,
}

impl BaseRows {
    /// Moves to the next block, if there is one.
    fn load(&mut self) -> Result<bool> {
        self.at = 0;
        self.block.clear();
        let Some((fence, stored)) = next_block(&self.place, &mut self.blocks)? else { return Ok(false) };
        self.table = fence.first().copied().unwrap_or_default();
        if Block::open(BLOCKS_DOMAIN, &fence, &stored).is_none() {
            return Err(damaged_rows(&self.place.path, self.table));
        }
        self.block = stored;
        Ok(true)
    }
}

impl Iterator for BaseRows {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let block = Block::checked(&self.block)?;
            if self.at < block.len() {
                let Some((key, value)) = block.row(self.at) else {
                    self.block.clear();
                    return Some(Err(damaged_rows(&self.place.path, self.table)));
                };
                if is_past(key, self.to.as_ref().map(Vec::as_slice)) {
                    self.block.clear();
                    return None;
                }
                self.at += 1;
                return Some(Ok((key.to_vec(), value.to_vec())));
            }
            if let Err(error) = self.load() {
                return Some(Err(error));
            }
        }
    }
}

impl Debug for BaseRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BaseRows").field("path", &self.place.path).finish_non_exhaustive()
    }
}

/// A fence and the block under it.
type StoredBlock = (Vec<u8>, Vec<u8>);

/// The next block, unchecked.
fn next_block(place: &Place, blocks: &mut OwnedRange<&'static [u8], &'static [u8]>) -> Result<Option<StoredBlock>> {
    place.guard(|| {
        let Some(block) = blocks.next() else { return Ok(None) };
        let (fence, stored) = block?;
        Ok(Some((fence.value().to_vec(), stored.value().to_vec())))
    })
}

/// The index of the first row of a block at or after a bound; `None` in a malformed block.
fn first_in(block: &Block<'_>, from: Bound<&[u8]>) -> Option<usize> {
    match from {
        Bound::Unbounded => Some(0),
        Bound::Included(from) => block.position(from),
        Bound::Excluded(from) => {
            let at = block.position(from)?;
            let is_it = block.row(at).is_some_and(|(key, _)| key == from);
            Some(at + usize::from(is_it))
        }
    }
}

fn is_past(key: &[u8], to: Bound<&[u8]>) -> bool {
    match to {
        Bound::Unbounded => false,
        Bound::Included(to) => key > to,
        Bound::Excluded(to) => key >= to,
    }
}

pub(super) fn damaged_rows(path: &Path, table: u8) -> Error {
    Error::damaged_file(path, format!("the checksum of rows of table {table} does not match"))
}
