//! History: prior values of rows and attributes, and the state as of an earlier commit.
//!
//! A transaction that changes existing data stores what it replaces under its own commit number: the prior value was
//! valid *until* that commit. Newly created rows need no prior value, because numbers are assigned in order: a number
//! at or above a commit's totals did not exist yet.
//!
//! | table | key | value |
//! |---|---|---|
//! | `COMMIT` | commit | its clock, the log position where its transaction begins, the totals after it |
//! | `ROW_HISTORY` | until u64, table, key | the row before that commit; empty if it did not exist |
//! | `ITEM_HISTORY` | until u64, item | the changed attributes of an item before that commit |
//! | `CHANGE_INDEX` | subject u8, number u32, until u64 | empty: an item, page or episode changed in that commit |
//!
//! A past state is the present state with later changes undone, newest first, under the totals of its commit; its
//! bitmaps, rows and word statistics follow from those. Redaction is never undone, and the embedding space is always
//! the present one.
//!
//! Invariants:
//! 1. History is a function of the log: a rebuild writes the same rows.
//! 2. Data created and changed in one transaction has no prior value.
//! 3. `as_of(c)` answers like a copy of the database taken after commit c, except for content erased since.
//!
//! Cost: one history row for each row or item that a transaction changes, however many records change it. Computing a
//! past state takes time and memory proportional to later changes, not to later additions.

use crate::model::item::{Attributes, ItemId, Source, Status, Support};
use crate::records::tables::{self, CommitRow, EdgeRow, Totals};
use crate::state::State;
use crate::{Error, Result};
use bincode::{Decode, Encode};
use holotype_storage::SmallBytes;
use holotype_storage::codec;
use holotype_storage::overlay::RowKey;
use imbl::OrdMap;
use std::ops::Bound;
use std::sync::Arc;

/// Finds the commit that created a numbered thing. Numbers of one commit are consecutive, so most lookups hit the
/// cached range.
pub(crate) struct CommitFinder<'s> {
    state: &'s State,
    total: fn(&Totals) -> u32,
    /// The numbers that the commit found last created.
    known: std::ops::Range<u32>,
    commit: u64,
}

impl<'s> CommitFinder<'s> {
    /// A finder for the things that `total` counts.
    pub(crate) fn new(state: &'s State, total: fn(&Totals) -> u32) -> Self {
        CommitFinder { state, total, known: 0..0, commit: 0 }
    }

    /// The commit that created a number; `None` if it is not committed yet.
    pub(crate) fn of(&mut self, number: u32) -> Result<Option<u64>> {
        if self.known.contains(&number) {
            return Ok(Some(self.commit));
        }
        if number >= (self.total)(&self.state.committed_totals) {
            return Ok(None);
        }
        let commit = self.state.commit_when(|row| (self.total)(&row.totals) > number)?;
        let before = if commit <= 1 { 0 } else { (self.total)(&self.state.commit_row(commit - 1)?.totals) };
        self.known = before..(self.total)(&self.state.commit_row(commit)?.totals);
        self.commit = commit;
        Ok(Some(commit))
    }
}

/// The subject of `CHANGE_INDEX` rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Item = 0,
    Page = 1,
    Episode = 2,
}

impl Subject {
    /// The mutable tables whose keys begin with the subject's number.
    fn tables(self) -> &'static [u8] {
        match self {
            Subject::Item => &[
                tables::KEY_OF,
                tables::POINTERS,
                tables::MEMBER_EPISODE,
                tables::EDGE_OUT,
                tables::EDGE_IN,
                tables::CLAIM_ITEM,
            ],
            Subject::Page => &[tables::PAGE],
            Subject::Episode => &[tables::EPISODE],
        }
    }
}

/// Before-images: rows and attributes that the transaction in progress has changed, as they were before it.
#[derive(Debug, Clone, Default)]
pub(crate) struct BeforeImages {
    rows: OrdMap<RowKey, Option<SmallBytes>>,
    items: OrdMap<u32, Arc<Attributes>>,
}

impl BeforeImages {
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.items.is_empty()
    }
}

/// An attribute's value before a commit.
#[derive(Debug, Clone, Copy, PartialEq, Encode, Decode)]
pub(crate) enum PriorValue {
    Status(Option<u8>),
    Source(Option<u8>),
    Episode(Option<u32>),
    Step(Option<u64>),
    Time(Option<i64>),
    Version(Option<u32>),
    Active(bool),
    Inherited(u8),
    Support(u8),
    Trust(u8, u8),
    Utility(f32, u32),
    Credit(f32, u32),
}

impl PriorValue {
    /// The attributes that differ, with their values in `before`. Omits the page, which is assigned once and follows
    /// from the totals, and redaction, which is never undone.
    fn differences(before: &Attributes, after: &Attributes) -> Vec<PriorValue> {
        let mut found = Vec::new();
        let mut note = |differs: bool, former: PriorValue| {
            if differs {
                found.push(former);
            }
        };
        note(before.status != after.status, PriorValue::Status(before.status.map(Status::to_byte)));
        note(before.source != after.source, PriorValue::Source(before.source.map(Source::to_byte)));
        note(before.episode != after.episode, PriorValue::Episode(before.episode));
        note(before.step != after.step, PriorValue::Step(before.step));
        note(before.time != after.time, PriorValue::Time(before.time));
        note(before.version != after.version, PriorValue::Version(before.version));
        note(before.active != after.active, PriorValue::Active(before.active));
        note(before.inherited != after.inherited, PriorValue::Inherited(before.inherited));
        note(before.support != after.support, PriorValue::Support(before.support.to_byte()));
        let trust = |of: &Attributes| (of.trust_sources, of.trust_statuses);
        note(trust(before) != trust(after), PriorValue::Trust(before.trust_sources, before.trust_statuses));
        let utility = |of: &Attributes| (of.utility.to_bits(), of.utility_count);
        note(utility(before) != utility(after), PriorValue::Utility(before.utility, before.utility_count));
        let credit = |of: &Attributes| (of.credit.to_bits(), of.credit_count);
        note(credit(before) != credit(after), PriorValue::Credit(before.credit, before.credit_count));
        found
    }

    /// Restores the attribute in `attributes`.
    fn restore(self, attributes: &mut Attributes) -> Result<()> {
        let named = |what, byte| crate::records::record::bad_byte(what, byte);
        match self {
            PriorValue::Status(byte) => {
                let of = |byte| Status::from_byte(byte).ok_or_else(|| named("status", byte));
                attributes.status = byte.map(of).transpose()?;
            }
            PriorValue::Source(byte) => {
                let of = |byte| Source::from_byte(byte).ok_or_else(|| named("source", byte));
                attributes.source = byte.map(of).transpose()?;
            }
            PriorValue::Episode(episode) => attributes.episode = episode,
            PriorValue::Step(step) => attributes.step = step,
            PriorValue::Time(time) => attributes.time = time,
            PriorValue::Version(version) => attributes.version = version,
            PriorValue::Active(active) => attributes.active = active,
            PriorValue::Inherited(bits) => attributes.inherited = bits,
            PriorValue::Support(byte) => {
                attributes.support = Support::from_byte(byte).ok_or_else(|| named("support", byte))?;
            }
            PriorValue::Trust(sources, statuses) => {
                let redacted = attributes.trust_statuses & Attributes::TRUST_REDACTED;
                attributes.trust_sources = sources;
                attributes.trust_statuses = statuses | redacted;
            }
            PriorValue::Utility(utility, count) => (attributes.utility, attributes.utility_count) = (utility, count),
            PriorValue::Credit(credit, count) => (attributes.credit, attributes.credit_count) = (credit, count),
        }
        Ok(())
    }
}

impl Totals {
    /// Returns true if the row existed under these totals, judged by the numbers in it.
    pub(crate) fn include(&self, table: u8, key: &[u8], value: &[u8]) -> Result<bool> {
        let number = |at: usize| tables::number_at(key, at).unwrap_or(u32::MAX);
        let last = || number(key.len().saturating_sub(4));
        let value_number = || codec::decode::<u32>(value);
        Ok(match table {
            tables::KEY | tables::TRACE => value_number()? < self.items,
            tables::KEY_OF | tables::POINTERS | tables::CHUNK => number(0) < self.items,
            tables::EDGE_OUT | tables::EDGE_IN => {
                let is_old = number(0) < self.items && number(5) < self.items;
                is_old && codec::decode::<EdgeRow>(value)?.order < self.edges
            }
            tables::EPISODE => number(0) < self.episodes,
            tables::EPISODE_ID => value_number()? < self.episodes,
            tables::PAGE => number(0) < self.pages,
            tables::PAGE_KEY => value_number()? < self.pages,
            tables::SYMBOL => number(0) < self.symbols,
            tables::SYMBOL_NAME => value_number()? < self.symbols,
            tables::CLAIM => number(0) < self.claims,
            tables::CLAIM_NAME => last() < self.claims,
            tables::EXTRACTED => number(0) < self.items,
            // Items of these keys are inverted.
            tables::EXTRACTED_NAME => !number(key.len().saturating_sub(5)) < self.items,
            tables::RECEIPT => number(0) < self.receipts,
            tables::CLAIM_ITEM => number(4) < self.claims,
            tables::MEMBER_EPISODE => number(0) < self.items,
            tables::EPISODE_MEMBER => number(4) < self.items,
            _ => true,
        })
    }

    /// Returns true if a change of the row needs a before-image, that is, if the row describes something that existed
    /// before.
    fn keep(&self, table: u8, key: &[u8]) -> bool {
        let number = |at: usize| tables::number_at(key, at).unwrap_or(u32::MAX);
        match table {
            tables::KEY | tables::SETTING => true,
            tables::KEY_OF | tables::POINTERS | tables::MEMBER_EPISODE | tables::CLAIM_ITEM => number(0) < self.items,
            tables::EPISODE_MEMBER => number(4) < self.items,
            tables::EDGE_OUT | tables::EDGE_IN => number(0) < self.items && number(5) < self.items,
            tables::EPISODE => number(0) < self.episodes,
            tables::PAGE => number(0) < self.pages,
            _ => false,
        }
    }
}

/// Returns true if the totals tell when a row was created, so that its earlier absence needs no history row.
fn has_creation_order(table: u8) -> bool {
    matches!(table, tables::EDGE_OUT | tables::EDGE_IN | tables::EPISODE | tables::PAGE | tables::CLAIM_ITEM)
}

/// The subject whose history a row belongs to.
fn subject_of(table: u8, key: &[u8]) -> Option<(Subject, u32)> {
    let all = [Subject::Item, Subject::Page, Subject::Episode];
    let subject = all.into_iter().find(|subject| subject.tables().contains(&table))?;
    Some((subject, tables::number_at(key, 0)?))
}

impl State {
    /// Saves the before-image of a row unless the transaction already has one.
    pub(crate) fn save_before_image(&mut self, table: u8, key: &[u8]) -> Result<()> {
        if !self.committed_totals.keep(table, key) {
            return Ok(());
        }
        let row = RowKey::new(table, key);
        if self.before_images.rows.contains_key(&row) {
            return Ok(());
        }
        let before = self.rows.get(table, key)?;
        self.before_images.rows.insert(row, before);
        Ok(())
    }

    /// Replaces the attributes of an item and saves their before-image.
    pub(crate) fn set_attributes(&mut self, id: ItemId, attributes: Attributes) -> Result<()> {
        if id.0 < self.committed_totals.items {
            return self.replace_attributes(id, self.attributes.get(id)?, attributes);
        }
        self.attributes.set(id, attributes);
        Ok(())
    }

    /// The same for an item whose attributes are `before`.
    pub(crate) fn replace_attributes(&mut self, id: ItemId, before: Attributes, after: Attributes) -> Result<()> {
        let is_committed = id.0 < self.committed_totals.items;
        if is_committed && !self.before_images.items.contains_key(&id.0) {
            self.before_images.items.insert(id.0, Arc::new(before));
        }
        self.attributes.set(id, after);
        Ok(())
    }

    /// Ends a transaction: its before-images become history under its commit number, and its totals are stored.
    pub(crate) fn finish_commit(&mut self, commit: u64, clock: i64) -> Result<()> {
        let changes = std::mem::take(&mut self.before_images);
        let mut changed = Vec::with_capacity(changes.items.len());
        for (row, before) in &changes.rows {
            let (table, key) = (row.table(), row.key());
            if self.rows.get(table, key)? == *before {
                continue;
            }
            if before.is_some() || !has_creation_order(table) {
                let before = before.as_ref().map(|bytes| bytes.to_vec());
                self.rows.put_new(tables::ROW_HISTORY, tables::row_history(commit, row), codec::encode(&before)?);
            }
            changed.extend(subject_of(table, key).map(|(subject, number)| (subject as u8, number)));
        }
        for (item, before) in &changes.items {
            let former = PriorValue::differences(before, &self.attributes.get(ItemId(*item))?);
            if former.is_empty() {
                continue;
            }
            self.rows.put_new(tables::ITEM_HISTORY, tables::item_history(commit, *item), codec::encode(&former)?);
            changed.push((Subject::Item as u8, *item));
        }
        changed.sort_unstable();
        changed.dedup();
        for (subject, number) in changed {
            self.rows.put_new(tables::CHANGE_INDEX, tables::change_index(subject, number, commit), []);
        }
        let totals = self.totals();
        // The first transaction begins at the start of the log, even in a state that was imported.
        let from = if commit == 1 { 0 } else { self.head.position.0 };
        let row =
            CommitRow { clock, from, newest_time: self.meta.newest_time, latest_time: self.meta.latest_time, totals };
        self.rows.put_new(tables::COMMIT, commit.to_be_bytes(), codec::encode(&row)?);
        self.committed_totals = totals;
        Ok(())
    }

    /// The current totals.
    pub(crate) fn totals(&self) -> Totals {
        let meta = &self.meta;
        Totals {
            items: meta.items,
            episodes: meta.episodes,
            pages: meta.pages,
            symbols: meta.symbols,
            claims: meta.claims,
            edges: meta.edges,
            receipts: meta.receipts,
        }
    }

    /// The row of a commit of this database.
    pub(crate) fn commit_row(&self, commit: u64) -> Result<CommitRow> {
        let row = self.get(tables::COMMIT, &commit.to_be_bytes())?;
        row.ok_or_else(|| Error::Corrupt { what: format!("the catalog has no row of commit {commit}") })
    }

    /// The first commit for which `reached` holds. `reached` must be monotonic.
    pub(crate) fn commit_when(&self, reached: impl Fn(&CommitRow) -> bool) -> Result<u64> {
        let (mut low, mut high) = (1, self.meta.commit);
        while low < high {
            let middle = low + (high - low) / 2;
            if reached(&self.commit_row(middle)?) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low)
    }

    /// The last commit stamped at or before a time; 0 if there is none.
    pub(crate) fn commit_at(&self, time: i64) -> Result<u64> {
        if self.meta.commit == 0 || self.meta.clock <= time {
            return Ok(self.meta.commit);
        }
        Ok(self.commit_when(|row| row.clock > time)? - 1)
    }

    /// The state after a commit.
    ///
    /// # Errors
    /// [`Error::FutureCommit`] for a commit that does not exist yet.
    pub(crate) fn as_of(&self, commit: u64) -> Result<State> {
        if commit > self.meta.commit {
            return Err(Error::FutureCommit { commit, newest: self.meta.commit });
        }
        let row = if commit == 0 { CommitRow::default() } else { self.commit_row(commit)? };
        let mut past = self.clone();
        past.before_images = BeforeImages::default();
        past.clear_caches();
        past.stale_items = Default::default();
        for (item, before) in &self.before_images.items {
            past.restore_attributes(*item, &PriorValue::differences(before, &self.attributes.get(ItemId(*item))?))?;
        }
        for (row, before) in &self.before_images.rows {
            past.restore_row(row.table(), row.key(), before.as_deref());
        }
        for (key, value) in self.after(tables::ITEM_HISTORY, commit)?.into_iter().rev() {
            let item = tables::number_at(&key, 8).ok_or_else(|| malformed("ITEM_HISTORY"))?;
            past.restore_attributes(item, &codec::decode::<Vec<PriorValue>>(&value)?)?;
        }
        for (key, value) in self.after(tables::ROW_HISTORY, commit)?.into_iter().rev() {
            let (Some(table), Some(row)) = (key.get(8), key.get(9..)) else { return Err(malformed("ROW_HISTORY")) };
            let before: Option<Vec<u8>> = codec::decode(&value)?;
            past.restore_row(*table, row, before.as_deref());
        }
        past.set_commit(commit, &row);
        Ok(past)
    }

    /// Undoes a commit for one item, page or episode; everything else stays.
    pub(crate) fn step_back(&mut self, subject: Subject, number: u32, commit: u64) -> Result<()> {
        if subject == Subject::Item
            && let Some(former) =
                self.get::<Vec<PriorValue>>(tables::ITEM_HISTORY, &tables::item_history(commit, number))?
        {
            self.restore_attributes(number, &former)?;
        }
        for table in subject.tables() {
            let row = RowKey::new(*table, &number.to_be_bytes());
            for (key, value) in self.scan(tables::ROW_HISTORY, &tables::row_history(commit, &row))? {
                let row = key.get(9..).ok_or_else(|| malformed("ROW_HISTORY"))?;
                let before: Option<Vec<u8>> = codec::decode(&value)?;
                self.restore_row(*table, row, before.as_deref());
            }
        }
        let before = commit - 1;
        let row = if before == 0 { CommitRow::default() } else { self.commit_row(before)? };
        self.set_commit(before, &row);
        Ok(())
    }

    fn set_commit(&mut self, commit: u64, row: &CommitRow) {
        let Totals { items, episodes, pages, symbols, claims, edges, receipts } = row.totals;
        self.clear_caches();
        let meta = &mut self.meta;
        (meta.items, meta.episodes, meta.pages) = (items, episodes, pages);
        (meta.symbols, meta.claims, meta.edges, meta.receipts) = (symbols, claims, edges, receipts);
        (meta.newest_time, meta.latest_time) = (row.newest_time, row.latest_time);
        meta.commit = commit;
        meta.clock = row.clock;
        self.committed_totals = row.totals;
        self.is_past = true;
    }

    /// The rows of a history table that were valid until a commit after `commit`.
    fn after(&self, table: u8, commit: u64) -> Result<Vec<crate::state::StoredRow>> {
        let from = (commit + 1).to_be_bytes();
        Ok(self.rows.range(table, Bound::Included(&from), Bound::Unbounded).collect::<Result<Vec<_>, _>>()?)
    }

    fn restore_attributes(&mut self, item: u32, former: &[PriorValue]) -> Result<()> {
        let mut attributes = self.attributes.get(ItemId(item))?;
        for former in former {
            former.restore(&mut attributes)?;
        }
        self.attributes.set(ItemId(item), attributes);
        Ok(())
    }

    fn restore_row(&mut self, table: u8, key: &[u8], before: Option<&[u8]>) {
        match before {
            Some(value) => self.rows.put(table, key, value),
            None => self.rows.delete(table, key),
        }
    }

    /// The commits that changed the subject, oldest first.
    pub(crate) fn changed_in(&self, subject: Subject, number: u32) -> Result<Vec<u64>> {
        let prefix = tables::change_index(subject as u8, number, 0);
        let rows = self.scan(tables::CHANGE_INDEX, &prefix[..5])?;
        let commit = |(key, _): &crate::state::StoredRow| Some(u64::from_be_bytes(key.get(5..13)?.try_into().ok()?));
        let commits = rows.iter().map(|row| commit(row).ok_or_else(|| malformed("CHANGE_INDEX")));
        let commits = commits.filter(|commit| !matches!(commit, Ok(commit) if *commit > self.meta.commit));
        commits.collect()
    }
}

fn malformed(table: &str) -> Error {
    Error::Corrupt { what: format!("a row of the table {table} has a malformed key") }
}
