//! Forgetting: the content of an item is erased from the log and from every derived file.
//!
//! Erased: text, fields, vector, speaker and claims. Kept, because other items refer to them: number, key, kind, tool,
//! log, step, time, status, source and links. The item is `redacted` from then on, in every snapshot and `as of` every
//! commit. A hash would let short content be guessed, so the hashes of its spans are erased too: in pointers and claims
//! of other items, in receipts, and the hash of its page. A record that only loses hashes is replaced by a copy without
//! them.
//!
//! Items that cite or derive from a forgotten item are reported and kept. With *cascade* they are forgotten too,
//! transitively, with the reasons of all their marks.
//!
//! In this order:
//!
//! 1. One transaction appends the replacement records, a record of the forgotten items with the reason, and the list of
//!    records to erase. It is synced.
//! 2. The state without the content is published, on the derived files there are. Snapshots taken before go on as
//!    `as of` their commit, without the content.
//! 3. The listed records are overwritten. After a crash from here on, the next opening completes the steps.
//! 4. All derived files are rebuilt without the content ([`crate::derive::rebuild_online`]); the old files are removed.
//!
//! Cost: one pass over the log to find the records, one to rebuild the catalog. Writers wait for both; readers do not.

use crate::core::handle::Holotype;
use crate::core::turns::TurnGuard;
use crate::core::writer_lock::WriterGuard;
use crate::core::{Core, Writer};
use crate::derive::merge;
use crate::derive::rebuild_online::{OnNewFiles, Purpose, rebuild_online};
use crate::model::edge::Edge;
use crate::model::item::ItemId;
use crate::model::pointer::NO_HASH;
use crate::options::Durability;
use crate::records::record::{
    ClaimRecord, EpisodeRecord, ForgetRecord, MarkRecord, PageRecord, PointerRecord, PointerTarget, PointersRecord,
    ReceiptRecord, Record, ReplacementRecord, RetainedRecord, RowRecord,
};
use crate::records::tables::{self, ClaimRow, PageRow};
use crate::state::State;
use crate::state::apply::{RecordLocation, next_number};
use crate::write::transaction::Transaction;
use crate::{Error, Result};
use holotype_storage::lock::Lock;
use holotype_storage::log::{Erase, Lsn, Redaction};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The scope and the reason of a forget.
#[derive(Debug, Clone)]
pub struct Forget {
    because: String,
    cascade: bool,
    episodes: Vec<String>,
}

impl Forget {
    /// A forget with its reason, which stays in the log.
    pub fn because(reason: impl Into<String>) -> Forget {
        Forget { because: reason.into(), cascade: false, episodes: Vec::new() }
    }

    /// Forgets the items that cite or derive from it, too.
    pub fn cascade(mut self) -> Forget {
        self.cascade = true;
        self
    }

    /// Forgets the task of an episode, too. The traces of the episode must be named as items.
    pub fn task_of(mut self, episode: impl Into<String>) -> Forget {
        self.episodes.push(episode.into());
        self
    }
}

/// The result of a forget.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForgetReport {
    /// The keys of the forgotten items, in the order of their numbers.
    pub items: Vec<String>,
    /// The keys of items that cite or derive from them and were kept.
    pub derived: Vec<String>,
    /// The keys of their pages, whose hashes were erased.
    pub pages: Vec<String>,
    /// The number of erased claims.
    pub claims: u64,
    /// The number of reasons of their marks: erased with `cascade`, kept without.
    pub reasons: u64,
    /// The number of receipts that show them: their hashes are erased, with `cascade` their statements too.
    pub receipts: u64,
    /// True if dependent items were forgotten, too.
    pub cascade: bool,
    /// The number of erased log records.
    pub records: u64,
    /// True if other processes have the database open; they may hold old files until they close it.
    pub other_readers: bool,
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

impl Core {
    /// Completes an appended forget: publishes the state without the content, erases the records and rebuilds the
    /// derived files. If those cannot be written, the next opening rebuilds them.
    pub(crate) fn complete_forget(
        self: &Arc<Self>,
        writer: WriterGuard<'_, Writer>,
        state: State,
        redaction: &Redaction,
        turn: Option<TurnGuard<'_>>,
    ) -> Result<()> {
        self.erasing.store(true, Ordering::Release);
        let done = self.erase_and_purge(writer, state, redaction, turn);
        self.erasing.store(false, Ordering::Release);
        done
    }

    fn erase_and_purge(
        self: &Arc<Self>,
        mut writer: WriterGuard<'_, Writer>,
        state: State,
        redaction: &Redaction,
        turn: Option<TurnGuard<'_>>,
    ) -> Result<()> {
        let end = state.head.position;
        let erased = self.log.sync_to(end).map_err(Error::from).and_then(|()| {
            self.record_durable(state.head);
            // Readers go on with it while the content is overwritten.
            self.replace(&mut writer, state.clone());
            self.publish();
            self.forgets.store(state.meta.forgets, Ordering::Release);
            let _unpinned = Lock::unpinned(self.files.vfs.as_ref(), &self.files.lock())?;
            self.files.remove_quarantined()?;
            Ok(self.log.complete_redaction(redaction)?)
        });
        if let Err(error) = erased {
            writer.poisoned = Some(error.to_string());
            self.turns.note_failure();
            return Err(error);
        }
        self.record_durable(state.head);
        self.publish_purged(writer, state, turn)
    }

    /// Publishes a state on derived files made anew, without what is no longer in force. If they cannot be written, the
    /// state is published from memory, and the next opening rebuilds them.
    pub(crate) fn publish_purged(
        self: &Arc<Self>,
        mut writer: WriterGuard<'_, Writer>,
        state: State,
        turn: Option<TurnGuard<'_>>,
    ) -> Result<()> {
        let made = self.purge(&mut writer, &state);
        let (state, made) = match made {
            Ok(fresh) => fresh.map_or((state, Ok(())), |fresh| (fresh.state, fresh.removed)),
            Err(error) => (state, Err(error)),
        };
        self.analyse_soon(&state);
        self.replace(&mut writer, state);
        drop(writer);
        self.publish();
        drop(turn);
        // A merge that began before may still write what is gone, and discards it in the end.
        merge::interrupt(self);
        made.map_err(|source| Error::Unfinished { source: Box::new(source) })
    }

    /// The state on derived files without what is gone.
    fn purge(self: &Arc<Self>, writer: &mut Writer, state: &State) -> Result<Option<OnNewFiles>> {
        let maintenance = self.maintain_within(writer)?;
        // The newest checkpoint was another handle's: the state behind it holds this transaction, too.
        let moved = maintenance.moved.then(|| Arc::clone(&writer.state));
        rebuild_online(self, writer, moved.as_deref().unwrap_or(state), Purpose::Forget)
    }
}

impl Transaction<'_> {
    /// Forgets items (see [`Forget`]). The commit erases them.
    ///
    /// # Errors
    /// [`Error::Invalid`] for items that this transaction wrote; [`Error::Limit`] if the replacement records exceed the
    /// size of a transaction.
    pub fn forget(&mut self, items: &[ItemId], forget: &Forget) -> Result<ForgetReport> {
        self.atomically(|transaction| transaction.forget_inner(items, forget))
    }

    fn forget_inner(&mut self, items: &[ItemId], forget: &Forget) -> Result<ForgetReport> {
        let mut report = ForgetReport { cascade: forget.cascade, ..ForgetReport::default() };
        let state = self.state()?.clone();
        let mut gone: BTreeSet<u32> = BTreeSet::new();
        for id in items {
            state.attributes(*id)?;
            gone.insert(id.0);
        }
        let resting = state.dependents_of(&gone)?;
        let derived: BTreeSet<u32> = resting.difference(&gone).copied().collect();
        if forget.cascade {
            gone.extend(&derived);
        }
        let mut episodes = BTreeSet::new();
        for id in &forget.episodes {
            let missing = || Error::Missing { what: "episode", name: format!("'{id}'") };
            episodes.insert(state.episode_number(id)?.ok_or_else(missing)?);
        }
        self.check_stored(&gone)?;
        let pages = state.pages_of(&gone)?;
        let reasons = forget.cascade;
        let forgotten = RedactionScope { items: &gone, pages: &pages, episodes: &episodes, resting: &resting, reasons };
        // The log names no item that only this transaction wrote; there is nothing to erase.
        if !self.wrote_all(&gone) || !episodes.is_empty() {
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

    /// Stages the erasure of every log record with forgotten content, and its replacement record.
    fn erase_records(&mut self, forgotten: &RedactionScope<'_>, report: &mut ForgetReport) -> Result<()> {
        let log = self.log();
        // Records before the floor are retained in later ones, but their files may still exist: erase both, count once.
        let begins = log.floor().map_or(Lsn(0), |floor| floor.head.position);
        for transaction in log.scan_files() {
            let transaction = transaction?;
            let mut twice = ForgetReport::default();
            for stored in &transaction.records {
                // An erased record has no content; its replacement record comes later in the scan.
                if stored.is_redacted() || self.is_staged_to_erase(stored.lsn) {
                    continue;
                }
                let counted = if stored.lsn < begins { &mut twice } else { &mut *report };
                let replacement = match Record::decode(stored.kind, &stored.payload)? {
                    Record::Replacement(before) => {
                        let inner = before.record()?;
                        let redacted = forgotten.redact(inner, before.erased, counted)?;
                        redacted.map(|redacted| redacted.into_replacement(before.lsn)).transpose()?
                    }
                    record => forgotten
                        .redact(record, false, counted)?
                        .map(|it| it.into_replacement(stored.lsn.0))
                        .transpose()?,
                };
                let Some(replacement) = replacement else { continue };
                report.records += 1;
                let replacement =
                    replacement.map(|replacement| self.stage(Record::Replacement(replacement))).transpose()?;
                self.stage_erase(Erase { lsn: stored.lsn, replacement });
            }
        }
        Ok(())
    }
}

fn retain_again(erased: bool, record: &Record) -> Result<Record> {
    Ok(Record::Retained(RetainedRecord { erased, kind: record.kind(), payload: record.encode()? }))
}

/// The scope of a forget: decides what a record loses.
struct RedactionScope<'a> {
    items: &'a BTreeSet<u32>,
    /// The pages that hold these items.
    pages: &'a BTreeSet<u32>,
    /// The episodes whose tasks are forgotten.
    episodes: &'a BTreeSet<u32>,
    /// The dependent items, whose rows in receipts showed spans of the items.
    resting: &'a BTreeSet<u32>,
    /// True if the reasons of marks and the statements of receipts are erased, too.
    reasons: bool,
}

/// The effect of a forget on a record.
enum RedactionOutcome {
    /// The record is erased.
    Erased,
    /// The record is erased; this remainder replaces it.
    Remainder(Record),
    /// The record stays, without some hashes or reasons.
    WithoutHashes(Record),
}

impl RedactionOutcome {
    fn into_replacement(self, lsn: u64) -> Result<Option<ReplacementRecord>> {
        Ok(match self {
            RedactionOutcome::Erased => None,
            RedactionOutcome::Remainder(record) => Some(ReplacementRecord::new(lsn, true, &record)?),
            RedactionOutcome::WithoutHashes(record) => Some(ReplacementRecord::new(lsn, false, &record)?),
        })
    }
}

impl RedactionScope<'_> {
    fn has(&self, item: u32) -> bool {
        self.items.contains(&item)
    }

    /// The effect on a record; `None` if it is unaffected. `erased` marks the remainder of an earlier forget.
    fn redact(&self, record: Record, erased: bool, report: &mut ForgetReport) -> Result<Option<RedactionOutcome>> {
        let replacement =
            |record| if erased { RedactionOutcome::Remainder(record) } else { RedactionOutcome::WithoutHashes(record) };
        Ok(match record {
            Record::Item(item) if self.has(item.id) && !erased => {
                let mut left = Arc::unwrap_or_clone(item).without_content();
                self.redact_pointers(&mut left.from);
                Some(RedactionOutcome::Remainder(Record::Item(Arc::new(left))))
            }
            Record::Item(mut item) => {
                self.redact_pointers(&mut Arc::make_mut(&mut item).from).then(|| replacement(Record::Item(item)))
            }
            Record::Chunk(chunk) => self.has(chunk.item).then_some(RedactionOutcome::Erased),
            Record::Vector(vector) => {
                (vector.vector.is_some() && self.has(vector.item)).then_some(RedactionOutcome::Erased)
            }
            Record::Claim(claim) if erased && claim.name.is_empty() => None,
            Record::Claim(claim) if self.has(claim.item) => {
                report.claims += 1;
                let ClaimRecord { number, item, global, .. } = claim;
                let (name, value, from) = (String::new(), String::new(), Vec::new());
                Some(RedactionOutcome::Remainder(Record::Claim(ClaimRecord {
                    number,
                    item,
                    name,
                    value,
                    global,
                    from,
                })))
            }
            Record::Claim(mut claim) => {
                self.redact_pointers(&mut claim.from).then(|| replacement(Record::Claim(claim)))
            }
            Record::Pointers(PointersRecord { item, mut pointers }) => self
                .redact_pointers(&mut pointers)
                .then(|| replacement(Record::Pointers(PointersRecord { item, pointers }))),
            Record::Page(page) if self.pages.contains(&page.number) && page.hash != NO_HASH => {
                Some(replacement(Record::Page(PageRecord { hash: NO_HASH, ..page })))
            }
            Record::Episode(episode) if self.episodes.contains(&episode.number) && episode.task.is_some() => {
                Some(replacement(Record::Episode(EpisodeRecord { task: None, ..episode })))
            }
            Record::Mark(mark) if self.has(mark.item) && mark.because.is_some() => {
                report.reasons += 1;
                self.reasons.then(|| replacement(Record::Mark(MarkRecord { because: None, ..mark })))
            }
            Record::Receipt(mut receipt) => {
                let redacted = self.redact_rows(&mut receipt.rows, &mut receipt.spans, &mut receipt.answer);
                report.receipts += u64::from(redacted);
                if redacted && self.reasons {
                    (receipt.statement, receipt.vector) = (String::new(), None);
                }
                redacted.then(|| replacement(Record::Receipt(receipt)))
            }
            Record::Retained(kept) => match self.redact(kept.record()?, erased || kept.erased, report)? {
                None => None,
                Some(RedactionOutcome::Erased) => Some(RedactionOutcome::Erased),
                Some(RedactionOutcome::Remainder(record)) => {
                    Some(RedactionOutcome::Remainder(retain_again(true, &record)?))
                }
                Some(RedactionOutcome::WithoutHashes(record)) => {
                    Some(RedactionOutcome::WithoutHashes(retain_again(kept.erased, &record)?))
                }
            },
            Record::Read(mut read) => self
                .redact_rows(&mut read.rows, &mut read.spans, &mut read.answer)
                .then(|| replacement(Record::Read(read))),
            Record::Mark(_)
            | Record::Page(_)
            | Record::Episode(_)
            | Record::Space(_)
            | Record::Setting(_)
            | Record::Link(_)
            | Record::Unlink(_)
            | Record::Uncite(_)
            | Record::Rekey(_)
            | Record::Reembed(_)
            | Record::Forget(_)
            | Record::Replacement(_)
            | Record::RetainedCommit(_)
            | Record::Subtrees(_) => None,
        })
    }

    /// Erases the hashes of rows that show or cite forgotten items. Returns whether there were any. Spans are not
    /// attributed to rows, so all span hashes are erased with them.
    fn redact_rows(&self, rows: &mut [RowRecord], spans: &mut Vec<[u8; 32]>, answer: &mut [u8; 32]) -> bool {
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

    /// Erases the hashes of pointers to forgotten content. Returns whether there were any.
    fn redact_pointers(&self, pointers: &mut [PointerRecord]) -> bool {
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
    /// The items that cite or derive from any of these, transitively.
    fn dependents_of(&self, items: &BTreeSet<u32>) -> Result<BTreeSet<u32>> {
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

    /// True if any of these items is redacted.
    pub(crate) fn any_redacted(&self, items: &[u32]) -> Result<bool> {
        for id in items {
            if self.attributes(ItemId(*id))?.redacted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Applies the remainder of an erased record.
    pub(crate) fn apply_erased(&mut self, record: &Record, place: RecordLocation) -> Result<()> {
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

    /// Moves the location of an item to its replacement record.
    pub(crate) fn apply_replacement(&mut self, replacement: &ReplacementRecord, lsn: u64) -> Result<()> {
        match Record::Replacement(replacement.clone()).unwrap_carrier()? {
            item @ Record::Item(_) => self.relocate(&item, lsn),
            _ => Ok(()),
        }
    }

    /// Applies a forget to the state and to its history, so that `as of` every commit the content is gone.
    pub(crate) fn apply_forget(&mut self, forget: &ForgetRecord) -> Result<()> {
        self.meta.forgets += u64::from(forget.erased > 0);
        let items: BTreeSet<u32> = forget.items.iter().copied().collect();
        let pages = self.pages_of(&items)?;
        let episodes = forget.episodes.iter().copied().collect();
        let resting = self.dependents_of(&items)?;
        let forgotten =
            RedactionScope { items: &items, pages: &pages, episodes: &episodes, resting: &resting, reasons: false };
        for (key, value) in self.scan(tables::RECEIPT, &[])? {
            let mut receipt: ReceiptRecord = holotype_storage::codec::decode(&value)?;
            if forgotten.redact_rows(&mut receipt.rows, &mut receipt.spans, &mut receipt.answer) {
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
        self.flush_episode_cache()?;
        self.clear_caches();
        for number in &forget.episodes {
            let mut row = self.episode(*number)?.as_ref().clone();
            row.task = None;
            self.put_new(tables::EPISODE, tables::numbers([*number]), &row)?;
        }
        Ok(())
    }

    fn forget_item(&mut self, id: ItemId, forgotten: &RedactionScope<'_>) -> Result<()> {
        let mut attributes = self.attributes(id)?;
        self.set_pending(&mut attributes, false);
        (attributes.redacted, attributes.has_vector, attributes.speaker) = (true, false, None);
        self.forget_extracted(id)?;
        self.attributes.set(id, attributes);
        self.forget_vectors(id)?;
        for (key, _) in self.scan(tables::CHUNK, &tables::numbers([id.0]))? {
            self.rows.delete(tables::CHUNK, key);
        }
        for (key, _) in self.scan(tables::CLAIM_ITEM, &tables::numbers([id.0]))? {
            let Some(number) = tables::number_at(&key, 4) else { continue };
            if let Some(claim) = self.get::<ClaimRow>(tables::CLAIM, &tables::numbers([number]))? {
                self.rows.delete(tables::CLAIM_NAME, tables::claim_name(&claim.name, number));
            }
            self.rows.delete(tables::CLAIM, tables::numbers([number]));
            self.rows.delete(tables::CLAIM_ITEM, key);
        }
        let citing = self.edges_in(id, Some(Edge::Cites))?.into_iter().map(|end| end.far);
        for item in citing.chain([id]) {
            self.redact_references_in(item, forgotten)?;
        }
        self.stale_items.insert(id.0);
        self.mark_dependents_stale(id)
    }

    /// Erases the hashes of forgotten content from the pointers and claims of an item.
    fn redact_references_in(&mut self, item: ItemId, forgotten: &RedactionScope<'_>) -> Result<()> {
        let mut pointers = self.pointers(item)?;
        if forgotten.redact_pointers(&mut pointers) {
            self.put_new(tables::POINTERS, tables::numbers([item.0]), &pointers)?;
        }
        for (key, _) in self.scan(tables::CLAIM_ITEM, &tables::numbers([item.0]))? {
            let Some(number) = tables::number_at(&key, 4) else { continue };
            let row = tables::numbers([number]);
            let Some(mut claim) = self.get::<ClaimRow>(tables::CLAIM, &row)? else { continue };
            if forgotten.redact_pointers(&mut claim.from) {
                self.put_new(tables::CLAIM, row, &claim)?;
            }
        }
        Ok(())
    }
}
