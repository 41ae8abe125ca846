//! The changes of rows since the last checkpoint, and the rows with those changes.
//!
//! The catalog holds the rows as of the last checkpoint. Later changes are an [`Overlay`], an
//! immutable ordered map from row to new value, or to `None` for a deleted row. Copying an overlay
//! is cheap and changing a copy leaves the original unchanged, so a snapshot is a copy.
//!
//! While a checkpoint is being written there are two overlays: `frozen`, which it writes, and
//! `active`, which takes new changes. A [`View`] combines them with the catalog (`base`):
//!
//! 1. `active` hides `frozen`, which hides `base`; a deletion hides like a value.
//! 2. [`View::freeze`] and [`View::thaw`] change no answer.
//! 3. A copy of a view never changes, whatever happens to the original.
//!
//! [`Layered`] keeps both and undoes changes to a [`View::savepoint`].
//!
//! Cost: O(log n) for each change and look-up; the maps are B-trees with shared nodes under the last few changes
//! ([`BufferedMap`]).

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::iter::Peekable;
use std::ops::Bound;

use crate::buffered_map::{BufferedMap, Entries};
use crate::catalog::{BaseRows, CatalogSnapshot};
use crate::error::{Error, Result};
use crate::layered::{Changes, Layered, Savepoint};
use crate::small_bytes::{MAX_INLINE_LEN, SmallBytes};

/// The name of a row: a table and a key in it. Rows are ordered by table, then bytewise by key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    /// The table's number, then the key.
    bytes: SmallBytes,
}

impl RowKey {
    /// The row of `key` in `table`.
    #[must_use]
    pub fn new(table: u8, key: &[u8]) -> Self {
        let mut short = [0; MAX_INLINE_LEN];
        match short.get_mut(..key.len() + 1) {
            Some(flat) => {
                flat[0] = table;
                flat[1..].copy_from_slice(key);
                Self { bytes: SmallBytes::new(flat) }
            }
            None => Self { bytes: flat_key(table, key).into() },
        }
    }

    /// The table's number.
    #[must_use]
    pub fn table(&self) -> u8 {
        self.bytes.first().copied().unwrap_or_default()
    }

    /// The key in the table.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.bytes.get(1..).unwrap_or_default()
    }

    /// Table and key as the catalog stores them.
    pub(crate) fn flat(&self) -> &[u8] {
        &self.bytes
    }
}

impl Borrow<[u8]> for RowKey {
    fn borrow(&self) -> &[u8] {
        &self.bytes
    }
}

impl std::fmt::Debug for RowKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.table(), self.key().escape_ascii())
    }
}

/// A set of changes. Clones share their content and change independently.
///
/// No row is changed of a table that is not in `tables`, so a look-up in it ends there: most transactions change few
/// tables, and a question looks hundreds of items up in some of the others.
#[derive(Clone, Debug, Default)]
pub struct Overlay {
    changes: BufferedMap<RowKey, Option<SmallBytes>>,
    content_len: usize,
    tables: Tables,
}

/// A set of tables.
#[derive(Clone, Copy, Debug, Default)]
struct Tables([u64; 4]);

impl Tables {
    fn add(&mut self, table: u8) {
        self.0[usize::from(table / 64)] |= 1 << (table % 64);
    }

    fn has(&self, table: u8) -> bool {
        self.0[usize::from(table / 64)] >> (table % 64) & 1 == 1
    }
}

impl Overlay {
    /// No changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of a row.
    pub fn put(&mut self, key: RowKey, value: SmallBytes) {
        self.change(key, Some(value));
    }

    /// Deletes a row. The deletion stays in the overlay and hides the row below.
    pub fn delete(&mut self, key: RowKey) {
        self.change(key, None);
    }

    /// The change of a row: `None` for none, `Some(None)` for a deletion, or the new value.
    #[must_use]
    pub fn get(&self, key: &RowKey) -> Option<Option<&SmallBytes>> {
        let change = if self.tables.has(key.table()) { self.changes.get(key) } else { None };
        change.map(Option::as_ref)
    }

    /// Every change, ordered by row.
    pub fn iter(&self) -> impl Iterator<Item = (&RowKey, Option<&SmallBytes>)> {
        self.changes.iter().map(|(key, value)| (key, value.as_ref()))
    }

    /// The number of changed rows.
    #[must_use]
    pub fn count(&self) -> usize {
        self.changes.len()
    }

    /// True if no row is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The length of all keys and values in bytes, for limits on memory.
    #[must_use]
    pub fn content_len(&self) -> usize {
        self.content_len
    }

    fn has(&self, table: u8, prefix: &[u8]) -> bool {
        if !self.tables.has(table) {
            return false;
        }
        let from = RowKey::new(table, prefix);
        let first = self.changes.range::<[u8]>((Bound::Included(from.flat()), Bound::Unbounded)).next();
        first.is_some_and(|(row, _)| row.flat().starts_with(from.flat()))
    }

    fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Ordered<'_> {
        self.changes.range::<[u8]>((from, to)).peekable()
    }
}

impl Changes for Overlay {
    type Key = RowKey;
    type Value = Option<SmallBytes>;

    fn change(&mut self, key: RowKey, value: Option<SmallBytes>) -> Option<Option<SmallBytes>> {
        let (key_len, value_len) = (key.bytes.len(), len_of(&value));
        self.tables.add(key.table());
        let replaced = self.changes.insert(key, value);
        match &replaced {
            Some(old) => self.content_len -= len_of(old),
            None => self.content_len += key_len,
        }
        self.content_len += value_len;
        replaced
    }

    fn add(&mut self, key: RowKey, value: Option<SmallBytes>) {
        self.content_len += key.bytes.len() + len_of(&value);
        self.tables.add(key.table());
        self.changes.insert_new(key, value);
    }

    fn forget(&mut self, key: &RowKey) {
        if let Some(value) = self.changes.remove(key) {
            self.content_len -= key.bytes.len() + len_of(&value);
        }
    }

    fn append(&mut self, newer: Self) {
        for (key, value) in newer.changes {
            self.change(key, value);
        }
    }

    fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

fn len_of(value: &Option<SmallBytes>) -> usize {
    value.as_ref().map_or(0, |value| value.len())
}

type Ordered<'a> = Peekable<Entries<'a, RowKey, Option<SmallBytes>>>;

/// The rows of a database at one moment. A copy takes no savepoints along.
#[derive(Clone, Debug, Default)]
pub struct View {
    base: Option<CatalogSnapshot>,
    changes: Layered<Overlay>,
}

impl View {
    /// A view of the catalog's rows, or an empty view without a catalog.
    #[must_use]
    pub fn new(base: Option<CatalogSnapshot>) -> Self {
        Self { base, ..Self::default() }
    }

    /// The catalog's rows, below the changes.
    #[must_use]
    pub fn base(&self) -> Option<&CatalogSnapshot> {
        self.base.as_ref()
    }

    /// Sets the value of a row.
    pub fn put(&mut self, table: u8, key: impl AsRef<[u8]>, value: impl Into<SmallBytes>) {
        self.changes.change(RowKey::new(table, key.as_ref()), Some(value.into()));
    }

    /// Sets the value of a row that was not changed since the last checkpoint, without looking it up among the changes.
    pub fn put_new(&mut self, table: u8, key: impl AsRef<[u8]>, value: impl Into<SmallBytes>) {
        self.changes.add(RowKey::new(table, key.as_ref()), Some(value.into()));
    }

    /// Deletes a row, which may be missing.
    pub fn delete(&mut self, table: u8, key: impl AsRef<[u8]>) {
        self.changes.change(RowKey::new(table, key.as_ref()), None);
    }

    /// Merges the map's run for all copies, so that no later change has to ([`BufferedMap::merge`]).
    pub fn merge(&self) {
        self.changes.active().changes.merge();
    }

    /// Begins a savepoint. Savepoints must end in reverse order.
    pub fn savepoint(&mut self) -> Savepoint {
        self.changes.savepoint()
    }

    /// Ends a savepoint and keeps the changes since.
    pub fn release(&mut self, savepoint: Savepoint) {
        self.changes.release(savepoint);
    }

    /// Undoes every change since a savepoint and ends it.
    pub fn roll_back(&mut self, savepoint: Savepoint) {
        self.changes.roll_back(savepoint, |_| {});
    }

    /// The value of a row.
    ///
    /// # Errors
    /// As [`CatalogSnapshot::get`].
    pub fn get(&self, table: u8, key: &[u8]) -> Result<Option<SmallBytes>> {
        let row = RowKey::new(table, key);
        if let Some(change) = self.active().get(&row).or_else(|| self.frozen().get(&row)) {
            return Ok(change.cloned());
        }
        match &self.base {
            Some(base) => Ok(base.get_flat(row.flat())?.map(Into::into)),
            None => Ok(None),
        }
    }

    /// The rows of a table between two keys, ascending.
    pub fn range(&self, table: u8, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Rows<'_> {
        let (from, to) = flat_bounds(table, from, to);
        self.rows(from, to)
    }

    /// The rows of a table whose key begins with `prefix`, ascending; the whole table for an empty
    /// one.
    pub fn prefix(&self, table: u8, prefix: &[u8]) -> Rows<'_> {
        let from = flat_key(table, prefix);
        let to = successor(from.clone()).map_or(Bound::Unbounded, Bound::Excluded);
        self.rows(Bound::Included(from), to)
    }

    /// True if a row whose key begins with `prefix` was changed since the last checkpoint.
    #[must_use]
    pub fn is_changed(&self, table: u8, prefix: &[u8]) -> bool {
        [self.active(), self.frozen()].into_iter().any(|overlay| overlay.has(table, prefix))
    }

    /// Begins a checkpoint: freezes the active overlay and returns it for the checkpoint to write.
    ///
    /// # Panics
    /// If there is a frozen overlay already: one checkpoint at a time.
    pub fn freeze(&mut self) -> Overlay {
        self.changes.freeze();
        self.frozen().clone()
    }

    /// Ends a checkpoint: `base` now contains the frozen changes.
    pub fn thaw(&mut self, base: CatalogSnapshot) {
        self.base = Some(base);
        self.changes.thaw();
    }

    /// Replaces the catalog's rows by the same rows of another handle on it.
    pub fn rest_on(&mut self, base: CatalogSnapshot) {
        self.base = Some(base);
    }

    /// Ends a failed checkpoint: the frozen changes become active again, below the newer ones.
    pub fn unfreeze(&mut self) {
        self.changes.unfreeze();
    }

    /// The changes that no checkpoint is writing.
    #[must_use]
    pub fn active(&self) -> &Overlay {
        self.changes.active()
    }

    /// The changes a checkpoint is writing.
    #[must_use]
    pub fn frozen(&self) -> &Overlay {
        self.changes.frozen()
    }

    fn rows(&self, from: Bound<Vec<u8>>, to: Bound<Vec<u8>>) -> Rows<'_> {
        let from = from.as_ref().map(Vec::as_slice);
        let to = to.as_ref().map(Vec::as_slice);
        if is_empty(from, to) {
            return Rows { base: None, frozen: None, active: None, failed: None };
        }
        let (base, failed) = match self.base.as_ref().map(|base| base.range_flat(from, to)) {
            None => (None, None),
            Some(Ok(rows)) => (Some(rows.peekable()), None),
            Some(Err(error)) => (None, Some(error)),
        };
        let frozen = Some(self.frozen().range(from, to));
        Rows { base, frozen, active: Some(self.active().range(from, to)), failed }
    }
}

/// The rows of a range, from [`View::range`] and [`View::prefix`]: key without its table, and value.
/// Ends after an error.
#[derive(Debug)]
pub struct Rows<'a> {
    base: Option<Peekable<BaseRows>>,
    frozen: Option<Ordered<'a>>,
    active: Option<Ordered<'a>>,
    failed: Option<Error>,
}

impl Iterator for Rows<'_> {
    type Item = Result<(Vec<u8>, SmallBytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.failed.take() {
            return Some(self.fail(error));
        }
        loop {
            let active = peek(&mut self.active);
            let frozen = peek(&mut self.frozen);
            let changed = match (active, frozen) {
                (Some(active), Some(frozen)) => Some(active.min(frozen)),
                (one, other) => one.or(other),
            };
            let stored = match self.base.as_mut().and_then(Peekable::peek) {
                // An error is returned at once, as if its row came first.
                Some(Err(_)) => Some(Ordering::Less),
                Some(Ok((key, _))) => Some(changed.map_or(Ordering::Less, |changed| key.as_slice().cmp(changed))),
                None => None,
            };
            let row = match stored {
                Some(Ordering::Less | Ordering::Equal) => self.base.as_mut().and_then(Iterator::next),
                _ => None,
            };
            if stored == Some(Ordering::Less) {
                return match row? {
                    Ok((key, value)) => Some(Ok((key_of(&key), value.into()))),
                    Err(error) => Some(self.fail(error)),
                };
            }
            let changed = changed?;
            let older = if frozen == Some(changed) { take(&mut self.frozen) } else { None };
            let newer = if active == Some(changed) { take(&mut self.active) } else { None };
            if let Some(value) = newer.or(older).flatten() {
                return Some(Ok((key_of(changed), value)));
            }
        }
    }
}

impl Rows<'_> {
    fn fail<T>(&mut self, error: Error) -> Result<T> {
        *self = Rows { base: None, frozen: None, active: None, failed: None };
        Err(error)
    }
}

fn peek<'a>(changes: &mut Option<Ordered<'a>>) -> Option<&'a [u8]> {
    changes.as_mut()?.peek().map(|(key, _)| key.flat())
}

/// The next change: `Some(None)` for a deletion.
fn take(changes: &mut Option<Ordered<'_>>) -> Option<Option<SmallBytes>> {
    changes.as_mut()?.next().map(|(_, value)| value.clone())
}

/// Table and key as one key of the catalog.
pub(crate) fn flat_key(table: u8, key: &[u8]) -> Vec<u8> {
    let mut flat = Vec::with_capacity(1 + key.len());
    flat.push(table);
    flat.extend_from_slice(key);
    flat
}

/// Bounds of a table's keys as bounds of the catalog's keys.
pub(crate) fn flat_bounds(table: u8, from: Bound<&[u8]>, to: Bound<&[u8]>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let from = match from {
        Bound::Unbounded => Bound::Included(vec![table]),
        bound => bound.map(|key| flat_key(table, key)),
    };
    let to = match to {
        Bound::Unbounded => table.checked_add(1).map_or(Bound::Unbounded, |next| Bound::Excluded(vec![next])),
        bound => bound.map(|key| flat_key(table, key)),
    };
    (from, to)
}

fn key_of(flat: &[u8]) -> Vec<u8> {
    flat.get(1..).unwrap_or_default().to_vec()
}

/// The least key above all keys that begin with `prefix`, if there is one.
fn successor(mut prefix: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = prefix.pop() {
        if let Some(next) = last.checked_add(1) {
            prefix.push(next);
            return Some(prefix);
        }
    }
    None
}

/// True if no key can be between the bounds. The underlying maps panic on such bounds.
fn is_empty(from: Bound<&[u8]>, to: Bound<&[u8]>) -> bool {
    match (from, to) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => from >= to,
    }
}
