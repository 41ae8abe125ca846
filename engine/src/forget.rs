//! Forgetting: what was said of an item is erased from the log and from everything made of it, and nothing else changes.
//!
//! Erased of an item are its text, fields, vector, speaker and claims. What stays is what others lean on: its number, key,
//! kind, place in its episode (tool, log, step, time), status and source, and its links; it is `redacted` from then on, as of
//! every time. The hash of a span of it would let the span be guessed, so those go too, wherever they stand: in pointers
//! and claims of other items, and with the hash of a page the item is in. A record that only loses hashes is *restated*: a
//! copy without them takes its place.
//!
//! What rests on a forgotten item is told and stays, unless *cascade* is asked for: then the items that cite it or derive
//! from it are forgotten too, and theirs, and the reasons given with marks of all of them are erased.
//!
//! In this order (storage.md, Forgetting):
//!
//! 1. One transaction: the restatements, a record of what is forgotten and why, and storage's list of what to erase.
//! 2. Once it is durable, the records are overwritten. A crash from here on is made good by the next opening.
//! 3. Everything derived is made anew without it ([`crate::rederive`]), in new files; the old ones go.
//! 4. Snapshots taken before end with [`Error::SnapshotForgotten`].
//!
//! Cost: one pass over the log to find what to erase, one to make the catalog anew; writers wait that long, readers do not.

use crate::apply::{Place, next_number};
use crate::database::Holotype;
use crate::edge::Edge;
use crate::item::ItemId;
use crate::options::Durability;
use crate::record::{
    ClaimRecord, EpisodeRecord, ForgetRecord, ItemRecord, KeptRecord, MarkRecord, PageRecord, PointerRecord,
    PointerTarget, PointersRecord, ReceiptRecord, Record, RestatedRecord, RowRecord,
};
use crate::state::State;
use crate::tables::{self, ClaimRow, PageRow};
use crate::transaction::Transaction;
use crate::{Error, Result};
use holotype_storage::log::{Erase, Lsn};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The hash of a span that was erased.
pub(crate) const NO_HASH: [u8; 32] = [0; 32];

/// How and why something is forgotten.
#[derive(Debug, Clone)]
pub struct Forget {
    because: String,
    cascade: bool,
    episodes: Vec<String>,
}

impl Forget {
    /// Forgetting for a reason, which stays in the log.
    pub fn because(reason: impl Into<String>) -> Forget {
        Forget { because: reason.into(), cascade: false, episodes: Vec::new() }
    }

    /// Together with what rests on it.
    pub fn cascade(mut self) -> Forget {
        self.cascade = true;
        self
    }

    /// Together with what this episode was said to be about (its task); its traces are named as items.
    pub fn task_of(mut self, episode: impl Into<String>) -> Forget {
        self.episodes.push(episode.into());
        self
    }
}

/// What a `forget` erased, and what it left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForgetReport {
    /// The keys of the items forgotten, in the order of their numbers.
    pub items: Vec<String>,
    /// The keys of items that rest on them and were left as they are.
    pub derived: Vec<String>,
    /// The keys of pages they were in, whose hashes are gone.
    pub pages: Vec<String>,
    /// Claims erased.
    pub claims: u64,
    /// Reasons of marks that speak of them: erased with `cascade`, left without.
    pub reasons: u64,
    /// Receipts that showed them: their hashes are erased, with `cascade` the questions too.
    pub receipts: u64,
    /// Whether what rests on them was forgotten too.
    pub cascade: bool,
    /// Records of the log erased.
    pub records: u64,
    /// Whether other processes had the database open, and may hold erased files until they close them.
    pub other_readers: bool,
}

/// What may be known of a forgotten item.
pub(crate) fn stripped(record: Arc<ItemRecord>) -> ItemRecord {
    ItemRecord { fields: Vec::new(), vector: None, speaker: None, ..Arc::unwrap_or_clone(record) }
}

impl Holotype {
    /// Forgets items in a transaction of its own: see [`Transaction::forget`].
    ///
    /// # Errors
    /// As [`Transaction::forget`] and [`Transaction::commit`].
    pub fn forget(&self, items: &[ItemId], forget: &Forget) -> Result<ForgetReport> {
        let mut transaction = self.begin()?;
        let report = transaction.forget(items, forget)?;
        transaction.commit(Durability::Sync)?;
        Ok(report)
    }
}

impl Transaction<'_> {
    /// Forgets items: see [`Forget`]. They are gone once the transaction is committed.
    ///
    /// # Errors
    /// For items this transaction wrote itself; [`Error::Limit`] when what is to be restated is too much for one
    /// transaction.
    pub fn forget(&mut self, items: &[ItemId], forget: &Forget) -> Result<ForgetReport> {
        self.atomically(|transaction| transaction.forget_in_steps(items, forget))
    }

    fn forget_in_steps(&mut self, items: &[ItemId], forget: &Forget) -> Result<ForgetReport> {
        let mut report = ForgetReport { cascade: forget.cascade, ..ForgetReport::default() };
        let state = self.state()?.clone();
        let mut gone: BTreeSet<u32> = BTreeSet::new();
        for id in items {
            state.attributes(*id)?;
            gone.insert(id.0);
        }
        let resting = state.resting_on(&gone)?;
        let derived: BTreeSet<u32> = resting.difference(&gone).copied().collect();
        if forget.cascade {
            gone.extend(&derived);
        }
        let mut episodes = BTreeSet::new();
        for id in &forget.episodes {
            let missing = || Error::Missing { what: "episode", name: format!("'{id}'") };
            episodes.insert(state.episode_number(id)?.ok_or_else(missing)?);
        }
        self.check_are_stored(&gone)?;
        let pages = state.pages_of(&gone)?;
        let reasons = forget.cascade;
        let forgotten = Forgotten { items: &gone, pages: &pages, episodes: &episodes, resting: &resting, reasons };
        // What only this transaction wrote, and says nothing, is named by nothing in the log.
        if !self.are_own(&gone) || !episodes.is_empty() {
            self.erase_records(&forgotten, &mut report)?;
        }

        let names = self.names()?;
        report.items = gone.iter().map(|id| names.key_of(ItemId(*id))).collect::<Result<_>>()?;
        if !forget.cascade {
            report.derived = derived.iter().map(|id| names.key_of(ItemId(*id))).collect::<Result<_>>()?;
        }
        report.pages = pages.iter().map(|page| Ok(state.page(*page)?.key)).collect::<Result<_>>()?;
        report.other_readers = self.has_other_readers()?;
        let record = ForgetRecord {
            items: gone.into_iter().collect(),
            episodes: episodes.into_iter().collect(),
            erased: report.records,
            because: forget.because.clone(),
        };
        self.push(Record::Forget(record))?;
        Ok(report)
    }

    /// Stages, for every record that says something of what is forgotten, that it is erased, and what stands in for it.
    fn erase_records(&mut self, forgotten: &Forgotten<'_>, report: &mut ForgetReport) -> Result<()> {
        let log = self.log();
        // Also what is told again elsewhere stands in the files until they go.
        let begins = log.floor().map_or(Lsn(0), |floor| floor.head.position);
        for transaction in log.scan_files() {
            let transaction = transaction?;
            let mut twice = ForgetReport::default();
            for stored in &transaction.records {
                // Of an erased record nothing is left but what stands in for it, which is met where it stands.
                if stored.is_redacted() || self.is_staged_to_erase(stored.lsn) {
                    continue;
                }
                let counted = if stored.lsn < begins { &mut twice } else { &mut *report };
                let restated = match Record::decode(stored.kind, &stored.payload)? {
                    Record::Restated(before) => {
                        let inner = before.record()?;
                        let cleaned = forgotten.clean(inner, before.erased, counted)?;
                        cleaned.map(|cleaned| cleaned.restated(before.lsn)).transpose()?
                    }
                    record => {
                        forgotten.clean(record, false, counted)?.map(|it| it.restated(stored.lsn.0)).transpose()?
                    }
                };
                let Some(restated) = restated else { continue };
                report.records += 1;
                let instead = restated.map(|restated| self.stage(Record::Restated(restated))).transpose()?;
                self.stage_erase(Erase { lsn: stored.lsn, instead });
            }
        }
        Ok(())
    }
}

fn kept_again(erased: bool, record: &Record) -> Result<Record> {
    Ok(Record::Kept(KeptRecord { erased, kind: record.kind(), payload: record.encode()? }))
}

/// What is forgotten, as far as records tell.
struct Forgotten<'a> {
    items: &'a BTreeSet<u32>,
    /// Pages that hold one of them.
    pages: &'a BTreeSet<u32>,
    /// Episodes whose task is forgotten.
    episodes: &'a BTreeSet<u32>,
    /// What rests on them: rows of it showed spans of theirs.
    resting: &'a BTreeSet<u32>,
    /// Whether reasons given for marks of the items, and questions that were answered with them, go too.
    reasons: bool,
}

/// What becomes of a record.
enum Cleaned {
    /// Nothing of it may be known.
    Gone,
    /// This may be known of something forgotten.
    Left(Record),
    /// The same without some hashes or words.
    Restated(Record),
}

impl Cleaned {
    fn restated(self, lsn: u64) -> Result<Option<RestatedRecord>> {
        Ok(match self {
            Cleaned::Gone => None,
            Cleaned::Left(record) => Some(RestatedRecord::new(lsn, true, &record)?),
            Cleaned::Restated(record) => Some(RestatedRecord::new(lsn, false, &record)?),
        })
    }
}

impl Forgotten<'_> {
    fn has(&self, item: u32) -> bool {
        self.items.contains(&item)
    }

    /// What becomes of a record; nothing when it may stay. `erased`: it stands in for something forgotten before.
    fn clean(&self, record: Record, erased: bool, report: &mut ForgetReport) -> Result<Option<Cleaned>> {
        let restated = |record| if erased { Cleaned::Left(record) } else { Cleaned::Restated(record) };
        Ok(match record {
            Record::Item(item) if self.has(item.id) && !erased => {
                let mut left = stripped(item);
                self.clean_pointers(&mut left.from);
                Some(Cleaned::Left(Record::Item(Arc::new(left))))
            }
            Record::Item(mut item) => {
                self.clean_pointers(&mut Arc::make_mut(&mut item).from).then(|| restated(Record::Item(item)))
            }
            Record::Chunk(chunk) => self.has(chunk.item).then_some(Cleaned::Gone),
            Record::Claim(claim) if erased && claim.name.is_empty() => None,
            Record::Claim(claim) if self.has(claim.item) => {
                report.claims += 1;
                let ClaimRecord { number, item, global, .. } = claim;
                let (name, value, from) = (String::new(), String::new(), Vec::new());
                Some(Cleaned::Left(Record::Claim(ClaimRecord { number, item, name, value, global, from })))
            }
            Record::Claim(mut claim) => self.clean_pointers(&mut claim.from).then(|| restated(Record::Claim(claim))),
            Record::Pointers(PointersRecord { item, mut pointers }) => self
                .clean_pointers(&mut pointers)
                .then(|| restated(Record::Pointers(PointersRecord { item, pointers }))),
            Record::Page(page) if self.pages.contains(&page.number) && page.hash != NO_HASH => {
                Some(restated(Record::Page(PageRecord { hash: NO_HASH, ..page })))
            }
            Record::Episode(episode) if self.episodes.contains(&episode.number) && episode.task.is_some() => {
                Some(restated(Record::Episode(EpisodeRecord { task: None, ..episode })))
            }
            Record::Mark(mark) if self.has(mark.item) && mark.because.is_some() => {
                report.reasons += 1;
                self.reasons.then(|| restated(Record::Mark(MarkRecord { because: None, ..mark })))
            }
            Record::Receipt(mut receipt) => {
                let cleaned = self.clean_rows(&mut receipt.rows, &mut receipt.spans, &mut receipt.answer);
                report.receipts += u64::from(cleaned);
                if cleaned && self.reasons {
                    (receipt.statement, receipt.vector) = (String::new(), None);
                }
                cleaned.then(|| restated(Record::Receipt(receipt)))
            }
            Record::Kept(kept) => match self.clean(kept.record()?, erased || kept.erased, report)? {
                None => None,
                Some(Cleaned::Gone) => Some(Cleaned::Gone),
                Some(Cleaned::Left(record)) => Some(Cleaned::Left(kept_again(true, &record)?)),
                Some(Cleaned::Restated(record)) => Some(Cleaned::Restated(kept_again(kept.erased, &record)?)),
            },
            Record::Read(mut read) => {
                self.clean_rows(&mut read.rows, &mut read.spans, &mut read.answer).then(|| restated(Record::Read(read)))
            }
            Record::Mark(_)
            | Record::Page(_)
            | Record::Episode(_)
            | Record::Space(_)
            | Record::Setting(_)
            | Record::Link(_)
            | Record::Unlink(_)
            | Record::Uncite(_)
            | Record::Rekey(_)
            | Record::Forget(_)
            | Record::Restated(_)
            | Record::Before(_)
            | Record::Subtrees(_) => None,
        })
    }

    /// Takes out the hashes of what was shown of something forgotten, in a row of its own or cited by one; says whether there
    /// was any. Which span was whose is not kept, so all of them go.
    fn clean_rows(&self, rows: &mut [RowRecord], spans: &mut Vec<[u8; 32]>, answer: &mut [u8; 32]) -> bool {
        let mut any = false;
        for row in rows
            .iter_mut()
            .filter(|row| (self.has(row.item) || self.resting.contains(&row.item)) && row.hash != NO_HASH)
        {
            row.hash = NO_HASH;
            any = true;
        }
        if any {
            spans.clear();
            *answer = NO_HASH;
        }
        any
    }

    /// Takes out the hashes of what is forgotten; says whether there were any.
    fn clean_pointers(&self, pointers: &mut [PointerRecord]) -> bool {
        let mut any = false;
        for pointer in pointers {
            let gone = match pointer.target {
                PointerTarget::Item(item) => self.has(item),
                PointerTarget::Page(page) => self.pages.contains(&page),
            };
            if gone && pointer.hash != NO_HASH {
                pointer.hash = NO_HASH;
                any = true;
            }
        }
        any
    }
}

impl State {
    /// The items that cite or derive from any of these, and what rests on those in turn.
    fn resting_on(&self, items: &BTreeSet<u32>) -> Result<BTreeSet<u32>> {
        let mut found = BTreeSet::new();
        let mut queue: Vec<u32> = items.iter().copied().collect();
        while let Some(id) = queue.pop() {
            for edge in [Edge::DerivedFrom, Edge::Cites] {
                for end in self.edges_in(ItemId(id), Some(edge))? {
                    if found.insert(end.far.0) {
                        queue.push(end.far.0);
                    }
                }
            }
        }
        Ok(found)
    }

    fn pages_of(&self, items: &BTreeSet<u32>) -> Result<BTreeSet<u32>> {
        let pages = items.iter().map(|id| Ok(self.attributes(ItemId(*id))?.page));
        Ok(pages.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// Whether any of these items is forgotten.
    pub(crate) fn any_redacted(&self, items: &[u32]) -> Result<bool> {
        for id in items {
            if self.attributes(ItemId(*id))?.redacted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Applies what stands in for the record of something forgotten.
    pub(crate) fn apply_erased(&mut self, record: &Record, place: Place) -> Result<()> {
        match record {
            Record::Claim(claim) => {
                next_number("claim", claim.number, self.meta.claims)?;
                self.meta.claims += 1;
                Ok(())
            }
            Record::Item(item) => {
                self.apply(record, place)?;
                let mut attributes = self.attributes(item.item())?;
                attributes.redacted = true;
                self.attributes.set(item.item(), attributes);
                Ok(())
            }
            record => self.apply(record, place),
        }
    }

    /// The record of an item stands elsewhere from now on.
    pub(crate) fn apply_restated(&mut self, restated: &RestatedRecord, lsn: u64) -> Result<()> {
        match Record::Restated(restated.clone()).innermost()? {
            item @ Record::Item(_) => self.stands_at(&item, lsn),
            _ => Ok(()),
        }
    }

    /// Forgetting is no change that history keeps: what was forgotten is so as of every time.
    pub(crate) fn apply_forget(&mut self, forget: &ForgetRecord) -> Result<()> {
        self.meta.forgets += u64::from(forget.erased > 0);
        let items: BTreeSet<u32> = forget.items.iter().copied().collect();
        let pages = self.pages_of(&items)?;
        let episodes = forget.episodes.iter().copied().collect();
        let resting = self.resting_on(&items)?;
        let forgotten =
            Forgotten { items: &items, pages: &pages, episodes: &episodes, resting: &resting, reasons: false };
        for (key, value) in self.scan(tables::RECEIPT, &[])? {
            let mut receipt: ReceiptRecord = holotype_storage::codec::decode(&value)?;
            if forgotten.clean_rows(&mut receipt.rows, &mut receipt.spans, &mut receipt.answer) {
                self.put_new(tables::RECEIPT, key, &receipt)?;
            }
        }
        for id in &items {
            self.forget_item(ItemId(*id), &forgotten)?;
        }
        for page in &pages {
            let row = PageRow { hash: NO_HASH, ..self.page(*page)? };
            self.put_new(tables::PAGE, tables::numbers([*page]), &row)?;
        }
        self.write_hot_episode()?;
        self.forget_what_is_at_hand();
        for number in &forget.episodes {
            let mut row = self.episode(*number)?.as_ref().clone();
            row.task = None;
            self.put_new(tables::EPISODE, tables::numbers([*number]), &row)?;
        }
        Ok(())
    }

    fn forget_item(&mut self, id: ItemId, forgotten: &Forgotten<'_>) -> Result<()> {
        let mut attributes = self.attributes(id)?;
        (attributes.redacted, attributes.has_vector, attributes.speaker) = (true, false, None);
        attributes.conflict = None;
        self.attributes.set(id, attributes);
        for (key, _) in self.scan(tables::CHUNK, &tables::numbers([id.0]))? {
            self.rows.delete(tables::CHUNK, key);
        }
        for (key, _) in self.scan(tables::CLAIM_ITEM, &tables::numbers([id.0]))? {
            let Some(number) = tables::number_at(&key, 4) else { continue };
            if let Some(claim) = self.get::<ClaimRow>(tables::CLAIM, &tables::numbers([number]))? {
                self.rows.delete(tables::CLAIM_NAME, tables::claim_name(&claim.name, number));
            }
            self.withdraw_claim(number)?;
            self.rows.delete(tables::CLAIM, tables::numbers([number]));
            self.rows.delete(tables::CLAIM_ITEM, key);
        }
        let citing = self.edges_in(id, Some(Edge::Cites))?.into_iter().map(|end| end.far);
        for item in citing.chain([id]) {
            self.clean_rows_of(item, forgotten)?;
        }
        self.unsettled.insert(id.0);
        self.touch_dependents(id)
    }

    /// Takes the hashes of what is forgotten out of the pointers of an item and its claims.
    fn clean_rows_of(&mut self, item: ItemId, forgotten: &Forgotten<'_>) -> Result<()> {
        let mut pointers = self.pointers(item)?;
        if forgotten.clean_pointers(&mut pointers) {
            self.put_new(tables::POINTERS, tables::numbers([item.0]), &pointers)?;
        }
        for (key, _) in self.scan(tables::CLAIM_ITEM, &tables::numbers([item.0]))? {
            let Some(number) = tables::number_at(&key, 4) else { continue };
            let row = tables::numbers([number]);
            let Some(mut claim) = self.get::<ClaimRow>(tables::CLAIM, &row)? else { continue };
            if forgotten.clean_pointers(&mut claim.from) {
                self.put_new(tables::CLAIM, row, &claim)?;
            }
        }
        Ok(())
    }
}
