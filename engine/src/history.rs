//! History: what every row and attribute was before it changed, and the state as it stood after an earlier commit.
//!
//! A transaction that changes what was there before it keeps what it replaced, under its own number: a *former row* or the
//! *former attributes* of an item, which held *until* that commit. What is merely new is not kept, for the totals of each
//! commit tell it: numbers are given in order, so what has a number above them was not there.
//!
//! | table | key | holds |
//! |---|---|---|
//! | `COMMIT` | commit | its clock, where its transaction begins in the log, the totals after it |
//! | `WAS` | until u64, table, key | the row before that commit, or nothing |
//! | `WAS_ITEM` | until u64, item | the attributes of an item that changed, as they were |
//! | `CHANGED` | subject u8, number u32, until u64 | nothing: an item, page or episode that changed in that commit |
//!
//! A past state is the present one with later changes undone, newest first, under the totals of its commit: its bitmaps,
//! rows and word statistics are cut from it like those of the present. What was erased stays erased: redaction is not
//! undone. The embedding space is today's.
//!
//! Invariants:
//! 1. The rows are a function of the log: a rebuild writes the same ones.
//! 2. What a transaction both makes and changes leaves no former row.
//! 3. `as_of(c)` answers like a copy of the database taken after commit c, what was erased since aside.
//!
//! Cost: one former row for each row or item a transaction changes, whatever the number of its records; a past state takes
//! time and memory for what changed since, not for what was added.

use crate::item::{Attributes, ItemId, Source, Status, Support};
use crate::state::State;
use crate::tables::{self, CommitRow, EdgeRow};
use crate::{Error, Result};
use bincode::{Decode, Encode};
use holotype_storage::SmallBytes;
use holotype_storage::codec;
use holotype_storage::overlay::RowKey;
use imbl::OrdMap;
use std::ops::Bound;
use std::sync::Arc;

/// How many things of each sort there are; what has a greater number came later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Totals {
    pub(crate) items: u32,
    pub(crate) episodes: u32,
    pub(crate) pages: u32,
    pub(crate) symbols: u32,
    pub(crate) claims: u32,
    pub(crate) edges: u32,
    pub(crate) receipts: u32,
}

/// Finds the commits that numbered things came with. What came with one commit is numbered in a row, so that most is found
/// without looking.
pub(crate) struct CommitFinder<'s> {
    state: &'s State,
    total: fn(&Totals) -> u32,
    /// The numbers of the last commit that was found.
    known: std::ops::Range<u32>,
    commit: u64,
}

impl<'s> CommitFinder<'s> {
    /// For things of which `total` says how many there were.
    pub(crate) fn new(state: &'s State, total: fn(&Totals) -> u32) -> Self {
        CommitFinder { state, total, known: 0..0, commit: 0 }
    }

    /// The commit a number came with; none while it is not committed.
    pub(crate) fn of(&mut self, number: u32) -> Result<Option<u64>> {
        if self.known.contains(&number) {
            return Ok(Some(self.commit));
        }
        if number >= (self.total)(&self.state.sealed) {
            return Ok(None);
        }
        let commit = self.state.commit_when(|row| (self.total)(&row.totals) > number)?;
        let before = if commit <= 1 { 0 } else { (self.total)(&self.state.commit_row(commit - 1)?.totals) };
        self.known = before..(self.total)(&self.state.commit_row(commit)?.totals);
        self.commit = commit;
        Ok(Some(commit))
    }
}

/// What changed of something: the sort of `CHANGED` rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Item = 0,
    Page = 1,
    Episode = 2,
}

impl Subject {
    /// The tables whose rows begin with its number and may change.
    fn tables(self) -> &'static [u8] {
        match self {
            Subject::Item => &[
                tables::KEY_OF,
                tables::POINTERS,
                tables::ALSO_OF,
                tables::EDGE_OUT,
                tables::EDGE_IN,
                tables::CLAIM_ITEM,
            ],
            Subject::Page => &[tables::PAGE],
            Subject::Episode => &[tables::EPISODE],
        }
    }
}

/// What a transaction has changed so far of what was there before it, as it was.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    rows: OrdMap<RowKey, Option<SmallBytes>>,
    items: OrdMap<u32, Arc<Attributes>>,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.items.is_empty()
    }
}

/// An attribute as it was.
#[derive(Debug, Clone, Copy, PartialEq, Encode, Decode)]
pub(crate) enum Former {
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
    Conflict(Option<u32>),
}

impl Former {
    /// What of `before` is otherwise in `after`. The page of a trace is given once and told by the totals; redaction is
    /// never undone.
    fn differences(before: &Attributes, after: &Attributes) -> Vec<Former> {
        let mut found = Vec::new();
        let mut note = |differs: bool, former: Former| {
            if differs {
                found.push(former);
            }
        };
        note(before.status != after.status, Former::Status(before.status.map(Status::to_byte)));
        note(before.source != after.source, Former::Source(before.source.map(Source::to_byte)));
        note(before.episode != after.episode, Former::Episode(before.episode));
        note(before.step != after.step, Former::Step(before.step));
        note(before.time != after.time, Former::Time(before.time));
        note(before.version != after.version, Former::Version(before.version));
        note(before.active != after.active, Former::Active(before.active));
        note(before.inherited != after.inherited, Former::Inherited(before.inherited));
        note(before.support != after.support, Former::Support(before.support.to_byte()));
        let trust = |of: &Attributes| (of.trust_sources, of.trust_statuses);
        note(trust(before) != trust(after), Former::Trust(before.trust_sources, before.trust_statuses));
        let utility = |of: &Attributes| (of.utility.to_bits(), of.utility_count);
        note(utility(before) != utility(after), Former::Utility(before.utility, before.utility_count));
        note(before.conflict != after.conflict, Former::Conflict(before.conflict));
        found
    }

    /// Gives an item the attribute back.
    fn restore(self, attributes: &mut Attributes) -> Result<()> {
        let named = |what, byte| crate::record::bad_byte(what, byte);
        match self {
            Former::Status(byte) => {
                let of = |byte| Status::from_byte(byte).ok_or_else(|| named("status", byte));
                attributes.status = byte.map(of).transpose()?;
            }
            Former::Source(byte) => {
                let of = |byte| Source::from_byte(byte).ok_or_else(|| named("source", byte));
                attributes.source = byte.map(of).transpose()?;
            }
            Former::Episode(episode) => attributes.episode = episode,
            Former::Step(step) => attributes.step = step,
            Former::Time(time) => attributes.time = time,
            Former::Version(version) => attributes.version = version,
            Former::Active(active) => attributes.active = active,
            Former::Inherited(bits) => attributes.inherited = bits,
            Former::Support(byte) => {
                attributes.support = Support::from_byte(byte).ok_or_else(|| named("support", byte))?;
            }
            Former::Trust(sources, statuses) => {
                let redacted = attributes.trust_statuses & Attributes::TRUST_REDACTED;
                attributes.trust_sources = sources;
                attributes.trust_statuses = statuses | redacted;
            }
            Former::Utility(utility, count) => (attributes.utility, attributes.utility_count) = (utility, count),
            Former::Conflict(winner) => attributes.conflict = winner,
        }
        Ok(())
    }
}

impl Totals {
    /// Whether a row was there under these totals, as far as its numbers tell.
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
            tables::CLAIM_NAME | tables::RIVALS => last() < self.claims,
            tables::CLAIM_AT => number(0) < self.claims,
            tables::RECEIPT => number(0) < self.receipts,
            tables::CLAIM_ITEM => number(4) < self.claims,
            tables::ALSO_OF => number(0) < self.items,
            tables::ALSO_IN => number(4) < self.items,
            _ => true,
        })
    }

    /// Whether a change of the row must be kept: whether what it says is about something that was there before.
    fn keep(&self, table: u8, key: &[u8]) -> bool {
        let number = |at: usize| tables::number_at(key, at).unwrap_or(u32::MAX);
        match table {
            tables::KEY | tables::SETTING => true,
            tables::KEY_OF | tables::POINTERS | tables::ALSO_OF | tables::CLAIM_ITEM => number(0) < self.items,
            tables::ALSO_IN => number(4) < self.items,
            tables::EDGE_OUT | tables::EDGE_IN => number(0) < self.items && number(5) < self.items,
            tables::EPISODE => number(0) < self.episodes,
            tables::PAGE => number(0) < self.pages,
            tables::CLAIM_AT => number(0) < self.claims,
            tables::RIVALS => number(key.len().saturating_sub(4)) < self.claims,
            _ => false,
        }
    }
}

/// Whether the totals tell when a row of the table was made, so that its absence before needs no row.
fn is_numbered(table: u8) -> bool {
    matches!(table, tables::EDGE_OUT | tables::EDGE_IN | tables::EPISODE | tables::PAGE | tables::CLAIM_ITEM)
}

/// Whose history a row is part of.
fn subject_of(table: u8, key: &[u8]) -> Option<(Subject, u32)> {
    let all = [Subject::Item, Subject::Page, Subject::Episode];
    let subject = all.into_iter().find(|subject| subject.tables().contains(&table))?;
    Some((subject, tables::number_at(key, 0)?))
}

impl State {
    /// Keeps a row as it is before a transaction changes it for the first time.
    pub(crate) fn note_row(&mut self, table: u8, key: &[u8]) -> Result<()> {
        if !self.sealed.keep(table, key) {
            return Ok(());
        }
        let row = RowKey::new(table, key);
        if self.changes.rows.contains_key(&row) {
            return Ok(());
        }
        let before = self.rows.get(table, key)?;
        self.changes.rows.insert(row, before);
        Ok(())
    }

    /// Replaces the attributes of an item, and keeps those it had before the transaction.
    pub(crate) fn set_attributes(&mut self, id: ItemId, attributes: Attributes) -> Result<()> {
        let is_kept = id.0 < self.sealed.items && !self.changes.items.contains_key(&id.0);
        if is_kept || self.meta.claims > 0 {
            let before = self.attributes.get(id)?;
            self.note_rival(id, &before, &attributes);
            if is_kept {
                self.changes.items.insert(id.0, Arc::new(before));
            }
        }
        self.attributes.set(id, attributes);
        Ok(())
    }

    /// Ends a transaction: what it replaced becomes history under its number, and its totals are noted.
    pub(crate) fn seal(&mut self, commit: u64, clock: i64) -> Result<()> {
        let changes = std::mem::take(&mut self.changes);
        for (row, before) in &changes.rows {
            let (table, key) = (row.table(), row.key());
            if self.rows.get(table, key)? == *before {
                continue;
            }
            if before.is_some() || !is_numbered(table) {
                let before = before.as_ref().map(|bytes| bytes.to_vec());
                self.rows.put_new(tables::WAS, tables::was(commit, row), codec::encode(&before)?);
            }
            if let Some((subject, number)) = subject_of(table, key) {
                self.rows.put(tables::CHANGED, tables::changed(subject as u8, number, commit), []);
            }
        }
        for (item, before) in &changes.items {
            let former = Former::differences(before, &self.attributes.get(ItemId(*item))?);
            if former.is_empty() {
                continue;
            }
            self.rows.put_new(tables::WAS_ITEM, tables::was_item(commit, *item), codec::encode(&former)?);
            self.rows.put(tables::CHANGED, tables::changed(Subject::Item as u8, *item, commit), []);
        }
        let totals = self.totals();
        // Before the first commit the log is at its beginning, whoever made the state.
        let from = if commit == 1 { 0 } else { self.head.position.0 };
        let row = CommitRow { clock, from, newest_time: self.meta.newest_time, totals };
        self.rows.put_new(tables::COMMIT, commit.to_be_bytes(), codec::encode(&row)?);
        self.sealed = totals;
        Ok(())
    }

    /// The totals as they stand.
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

    /// What is known of a commit of this database.
    pub(crate) fn commit_row(&self, commit: u64) -> Result<CommitRow> {
        let row = self.get(tables::COMMIT, &commit.to_be_bytes())?;
        row.ok_or_else(|| Error::Corrupt { what: format!("the catalog has no row of commit {commit}") })
    }

    /// The first commit after which `reached` holds of the totals; they only grow.
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

    /// The last commit stamped at or before a time; 0 when there is none.
    pub(crate) fn commit_at(&self, time: i64) -> Result<u64> {
        if self.meta.commit == 0 || self.meta.clock <= time {
            return Ok(self.meta.commit);
        }
        Ok(self.commit_when(|row| row.clock > time)? - 1)
    }

    /// The state as it stood after a commit.
    ///
    /// # Errors
    /// [`Error::FutureCommit`] for a commit that is not there yet.
    pub(crate) fn as_of(&self, commit: u64) -> Result<State> {
        if commit > self.meta.commit {
            return Err(Error::FutureCommit { commit, newest: self.meta.commit });
        }
        let row = if commit == 0 { CommitRow::default() } else { self.commit_row(commit)? };
        let mut past = self.clone();
        past.changes = Changes::default();
        past.forget_what_is_at_hand();
        past.unsettled = Default::default();
        past.disputed = Default::default();
        for (item, before) in &self.changes.items {
            past.give_back(*item, &Former::differences(before, &self.attributes.get(ItemId(*item))?))?;
        }
        for (row, before) in &self.changes.rows {
            past.put_back(row.table(), row.key(), before.as_deref());
        }
        for (key, value) in self.after(tables::WAS_ITEM, commit)?.into_iter().rev() {
            let item = tables::number_at(&key, 8).ok_or_else(|| malformed("WAS_ITEM"))?;
            past.give_back(item, &codec::decode::<Vec<Former>>(&value)?)?;
        }
        for (key, value) in self.after(tables::WAS, commit)?.into_iter().rev() {
            let (Some(table), Some(row)) = (key.get(8), key.get(9..)) else { return Err(malformed("WAS")) };
            let before: Option<Vec<u8>> = codec::decode(&value)?;
            past.put_back(*table, row, before.as_deref());
        }
        past.stand_at(commit, &row);
        Ok(past)
    }

    /// Goes back to before a commit, as far as one item, page or episode is concerned; the rest stays as it is.
    pub(crate) fn step_back(&mut self, subject: Subject, number: u32, commit: u64) -> Result<()> {
        if subject == Subject::Item
            && let Some(former) = self.get::<Vec<Former>>(tables::WAS_ITEM, &tables::was_item(commit, number))?
        {
            self.give_back(number, &former)?;
        }
        for table in subject.tables() {
            let row = RowKey::new(*table, &number.to_be_bytes());
            for (key, value) in self.scan(tables::WAS, &tables::was(commit, &row))? {
                let row = key.get(9..).ok_or_else(|| malformed("WAS"))?;
                let before: Option<Vec<u8>> = codec::decode(&value)?;
                self.put_back(*table, row, before.as_deref());
            }
        }
        let before = commit - 1;
        let row = if before == 0 { CommitRow::default() } else { self.commit_row(before)? };
        self.stand_at(before, &row);
        Ok(())
    }

    fn stand_at(&mut self, commit: u64, row: &CommitRow) {
        let Totals { items, episodes, pages, symbols, claims, edges, receipts } = row.totals;
        self.forget_what_is_at_hand();
        let meta = &mut self.meta;
        (meta.items, meta.episodes, meta.pages) = (items, episodes, pages);
        (meta.symbols, meta.claims, meta.edges, meta.receipts) = (symbols, claims, edges, receipts);
        meta.newest_time = row.newest_time;
        meta.commit = commit;
        meta.clock = row.clock;
        self.sealed = row.totals;
        self.is_past = true;
    }

    /// The rows of a table of history that say what held until a later commit than that.
    fn after(&self, table: u8, commit: u64) -> Result<Vec<crate::state::StoredRow>> {
        let from = (commit + 1).to_be_bytes();
        Ok(self.rows.range(table, Bound::Included(&from), Bound::Unbounded).collect::<Result<Vec<_>, _>>()?)
    }

    fn give_back(&mut self, item: u32, former: &[Former]) -> Result<()> {
        let mut attributes = self.attributes.get(ItemId(item))?;
        for former in former {
            former.restore(&mut attributes)?;
        }
        self.attributes.set(ItemId(item), attributes);
        Ok(())
    }

    fn put_back(&mut self, table: u8, key: &[u8], before: Option<&[u8]>) {
        match before {
            Some(value) => self.rows.put(table, key, value),
            None => self.rows.delete(table, key),
        }
    }

    /// The commits in which something changed, oldest first.
    pub(crate) fn changed_in(&self, subject: Subject, number: u32) -> Result<Vec<u64>> {
        let prefix = tables::changed(subject as u8, number, 0);
        let rows = self.scan(tables::CHANGED, &prefix[..5])?;
        let commit = |(key, _): &crate::state::StoredRow| Some(u64::from_be_bytes(key.get(5..13)?.try_into().ok()?));
        let commits = rows.iter().map(|row| commit(row).ok_or_else(|| malformed("CHANGED")));
        let commits = commits.filter(|commit| !matches!(commit, Ok(commit) if *commit > self.meta.commit));
        commits.collect()
    }
}

fn malformed(table: &str) -> Error {
    Error::Corrupt { what: format!("a row of the table {table} has a malformed key") }
}
