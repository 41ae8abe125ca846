//! The rows of a catalog at one moment, and what is derived from them.
//!
//! Every row is checked when it is read, and redb's panics are caught. Both cost little for a row that is looked up and much
//! for one of many, so [`CatalogSnapshot::each`] reads many under one guard and copies none.

use std::any::Any;
use std::fmt::Debug;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use redb::{OwnedRange, ReadOnlyTable, ReadableTableMetadata};

use super::{Applied, ROWS_DOMAIN, guard, open_seal};
use crate::error::{Error, Result};
use crate::overlay::{flat_bounds, flat_key};
use crate::vfs::VfsFile;

/// The rows of a catalog at one moment; clones are the same.
#[derive(Clone)]
pub struct CatalogSnapshot {
    inner: Arc<Snapshot>,
}

struct Snapshot {
    path: PathBuf,
    file: Arc<dyn VfsFile>,
    table: BytesTable,
    applied: Option<Applied>,
    /// Closing a database ends its readers, so this keeps it open, whatever becomes of the catalog.
    _keep: Option<Arc<dyn Send + Sync>>,
    derived: OnceLock<Box<dyn Any + Send + Sync>>,
}

pub(super) type BytesTable = ReadOnlyTable<&'static [u8], &'static [u8]>;

impl CatalogSnapshot {
    pub(super) fn new(
        path: PathBuf,
        file: Arc<dyn VfsFile>,
        table: BytesTable,
        applied: Option<Applied>,
        keep: Option<Arc<dyn Send + Sync>>,
    ) -> Self {
        Self { inner: Arc::new(Snapshot { path, file, table, applied, _keep: keep, derived: OnceLock::new() }) }
    }

    /// The position of the log these rows stand for; none before the first checkpoint.
    #[must_use]
    pub fn applied(&self) -> Option<&Applied> {
        self.inner.applied.as_ref()
    }

    /// The length of the catalog's file in bytes.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn file_len(&self) -> Result<u64> {
        self.inner.file.len().map_err(Error::io(&self.inner.path, "measure"))
    }

    /// Reads every row and checks it. Returns how many there are. `on_bytes` is told the bytes of each row, and ends the
    /// work with an error.
    ///
    /// # Errors
    /// [`Error::DamagedFile`] for the first fault; what `on_bytes` returns.
    pub fn verify<E: From<Error>>(&self, on_bytes: &mut dyn FnMut(u64) -> Result<(), E>) -> Result<u64, E> {
        let mut count = 0;
        for row in self.range_flat(Bound::Unbounded, Bound::Unbounded)? {
            let (key, value) = row?;
            // The way down to a row goes through other bytes than the way along.
            if self.get_flat(&key)?.as_deref() != Some(&*value) {
                return Err(Error::damaged_file(&self.inner.path, "a row cannot be found by its key").into());
            }
            count += 1;
            on_bytes((key.len() + value.len()) as u64)?;
        }
        // redb keeps this number apart from the rows.
        let expected = guard(&self.inner.path, || Ok(self.inner.table.len()?))?;
        if count != expected {
            let what = format!("it has {count} rows instead of {expected}");
            return Err(Error::damaged_file(&self.inner.path, what).into());
        }
        Ok(count)
    }

    /// The value of a row.
    ///
    /// # Errors
    /// [`Error::DamagedFile`] when the row does not match its checksum; [`Error::Io`].
    pub fn get(&self, table: u8, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_flat(&flat_key(table, key))
    }

    pub(crate) fn get_flat(&self, flat: &[u8]) -> Result<Option<Vec<u8>>> {
        let sealed = guard(&self.inner.path, || Ok(self.inner.table.get(flat)?.map(|sealed| sealed.value().to_vec())))?;
        sealed.map(|sealed| unseal_row(&self.inner.path, flat, sealed)).transpose()
    }

    /// Shows the rows of a table between two keys, ascending, where they lie: key without its table, and value.
    /// `see` only takes what it needs; its first error ends the work.
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
        let (path, bounds) = (&self.inner.path, (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice)));
        guard(path, || {
            for row in self.inner.table.range::<&[u8]>(bounds)? {
                let (flat, sealed) = row?;
                let seen = match open_seal(ROWS_DOMAIN, flat.value(), sealed.value()) {
                    Some(value) => see(flat.value().get(1..).unwrap_or_default(), value),
                    None => Err(damaged_row(path, flat.value()).into()),
                };
                if seen.is_err() {
                    return Ok(seen);
                }
            }
            Ok(Ok(()))
        })?
    }

    /// What its owner derives from these rows, which never change, and keeps with them; made at the first question. Nothing
    /// when something of another type is kept.
    pub fn derived<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.inner.derived.get_or_init(|| Box::new(make())).downcast_ref()
    }

    /// The same, if it was made already.
    #[must_use]
    pub fn derived_already<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.inner.derived.get()?.downcast_ref()
    }

    /// The rows between two keys that carry their table's number in front.
    pub(crate) fn range_flat(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Result<BaseRows> {
        let rows = guard(&self.inner.path, || Ok(self.inner.table.range_owned::<&[u8]>((from, to))?))?;
        Ok(BaseRows { rows, path: self.inner.path.clone() })
    }
}

impl Debug for CatalogSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CatalogSnapshot").field("path", &self.inner.path).finish_non_exhaustive()
    }
}

/// Rows in order: table number and key in one piece, and value.
pub(crate) struct BaseRows {
    rows: OwnedRange<&'static [u8], &'static [u8]>,
    path: PathBuf,
}

impl Iterator for BaseRows {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = guard(&self.path, || {
            let Some(row) = self.rows.next() else {
                return Ok(None);
            };
            let (key, sealed) = row?;
            Ok(Some((key.value().to_vec(), sealed.value().to_vec())))
        });
        match row {
            Ok(row) => row.map(|(key, sealed)| {
                let value = unseal_row(&self.path, &key, sealed)?;
                Ok((key, value))
            }),
            Err(error) => Some(Err(error)),
        }
    }
}

impl Debug for BaseRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BaseRows").field("path", &self.path).finish_non_exhaustive()
    }
}

fn unseal_row(path: &Path, flat: &[u8], mut sealed: Vec<u8>) -> Result<Vec<u8>> {
    let Some(len) = open_seal(ROWS_DOMAIN, flat, &sealed).map(<[u8]>::len) else {
        return Err(damaged_row(path, flat));
    };
    sealed.truncate(len);
    Ok(sealed)
}

fn damaged_row(path: &Path, flat: &[u8]) -> Error {
    let table = flat.first().copied().unwrap_or_default();
    Error::damaged_file(path, format!("the checksum of a row of table {table} does not match"))
}
