//! Salvaging: a new database of what can be read of a damaged one.
//!
//! All readable records of the log are written again, commit by commit with their clocks, under a new database id, at
//! new positions and with new numbers, because numbers are dense and some are lost. Keys stay. Pointers, links, marks
//! and claims that refer to something lost are dropped. Receipts are dropped, since their answers cannot be reproduced.
//! The report lists everything that is lost, with its position.
//!
//! The log is read twice, since later records name episodes whose first record is lost.
//!
//! `positions.tsv` in the new directory has the old and the new position of each item's record.
//!
//! The new database is built in the directory `DEST.salvaging` and renamed to DEST when it is closed and synced, so
//! DEST has a complete database or nothing. The next salvage removes what an interrupted one left.

use crate::core::files::{Files, POSITIONS};
use crate::core::handle::Holotype;
use crate::derive::open::last_checkpoint_position;
use crate::derive::retained_log;
use crate::model::item::ItemId;
use crate::model::plural::counted;
use crate::model::space::Space;
use crate::options::{Durability, Options};
use crate::records::record::{
    ChunkRecord, ClaimRecord, EffectiveRecord, EpisodeRecord, Field, FieldValue, ForgetRecord, ItemRecord, LinkRecord,
    MarkRecord, PageRecord, PointerRecord, PointerTarget, PointersRecord, Record, ReembedRecord, RekeyRecord,
    UnciteRecord, UncitedRecord, VectorRecord,
};
use crate::state::content::join_own_chunks;
use crate::write::forget::Forget;
use crate::write::transaction::Transaction;
use crate::{Error, Result};
use holotype_storage::Record as Stored;
use holotype_storage::lock::Lock;
use holotype_storage::log::{Floor, Log, Lsn, Salvaged, Unreadable};
use holotype_storage::vfs::{OpenMode, OsVfs, Vfs};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The limit of one transaction's bytes: each transaction is written again as one.
const MAX_TRANSACTION_BYTES: u64 = 1 << 40;

/// The counts and losses of a salvage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvageReport {
    /// Records of the damaged log that could be read.
    pub records: u64,
    /// Items written to the new database.
    pub items: u64,
    /// Everything that could not be read, and everything that could not be written without it, in the order of the log.
    pub lost: Vec<Lost>,
    /// True if the unfinished result of an interrupted salvage was removed.
    pub replaced_leftover: bool,
}

/// Something that is not in the new database.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// The position in the damaged log.
    pub position: u64,
    /// The number of unreadable bytes of the log; 0 for a readable record that refers to something lost.
    pub len: u64,
    /// Its description.
    pub what: String,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.len {
            0 => write!(f, "log position {}: {}", self.position, self.what),
            len => write!(f, "log position {}, {}: {}", self.position, counted(len, "bytes"), self.what),
        }
    }
}

impl From<Unreadable> for Lost {
    fn from(stretch: Unreadable) -> Lost {
        Lost { position: stretch.position, len: stretch.len, what: stretch.what }
    }
}

/// Writes everything readable of the database at `source` to a new one at `dest`, which must not exist. `source` is not
/// changed, and need not be possible to open.
///
/// # Errors
/// [`Error::NotFound`], [`Error::Exists`]; when no file of the log has a readable header; of the file systems.
pub fn salvage(source: impl AsRef<Path>, dest: impl AsRef<Path>) -> Result<SalvageReport> {
    salvage_on(Arc::new(OsVfs), source, dest)
}

/// [`salvage`] on a given file system.
///
/// # Errors
/// As [`salvage`].
pub fn salvage_on(vfs: Arc<dyn Vfs>, source: impl AsRef<Path>, dest: impl AsRef<Path>) -> Result<SalvageReport> {
    salvage_until(vfs, source, dest, Lsn(u64::MAX))
}

/// Writes everything of the database at `source` up to a commit, given by the position after it, to a new one at
/// `dest`: another lineage, which can be written to. What was erased since stays erased. Receipts are left
/// behind, as by [`salvage`].
///
/// # Errors
/// As [`salvage`].
pub fn fork(source: impl AsRef<Path>, dest: impl AsRef<Path>, position: u64) -> Result<SalvageReport> {
    salvage_until(Arc::new(OsVfs), source, dest, Lsn(position))
}

fn salvage_until(
    vfs: Arc<dyn Vfs>,
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    ends: Lsn,
) -> Result<SalvageReport> {
    let from = Files::new(Arc::clone(&vfs), source.as_ref());
    if !from.exists()? {
        return Err(Error::NotFound { path: from.dir });
    }
    let dest = dest.as_ref();
    if vfs.list(dest).is_ok() || vfs.open(dest, OpenMode::Read).is_ok() {
        return Err(Error::Exists { path: dest.to_owned() });
    }
    let unfinished = Files::new(Arc::clone(&vfs), &unfinished_path(dest));
    let replaced_leftover = remove_leftover(&unfinished)?;
    let mut report = match write_new(&from, &unfinished, ends) {
        Ok(report) => report,
        Err(error) => {
            // Best effort: the first failure is reported, and the next salvage removes the rest.
            let _ = unfinished.remove_all();
            return Err(error);
        }
    };
    report.replaced_leftover = replaced_leftover;
    vfs.rename_dir(&unfinished.dir, dest).map_err(|source| Error::File { path: dest.to_owned(), source })?;
    Ok(report)
}

/// The directory in which the new database is built.
fn unfinished_path(dest: &Path) -> PathBuf {
    let mut name = dest.file_name().unwrap_or_default().to_owned();
    name.push(".salvaging");
    dest.with_file_name(name)
}

/// Removes what an interrupted salvage left; returns true if there was anything. A running one holds the lock.
fn remove_leftover(unfinished: &Files) -> Result<bool> {
    match unfinished.vfs.list(&unfinished.dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(source) => return Err(Error::File { path: unfinished.dir.clone(), source }),
        Ok(_) => {}
    }
    let _lock = Lock::writer(unfinished.vfs.as_ref(), &unfinished.lock())?;
    unfinished.remove_all()?;
    Ok(true)
}

/// Writes the new database and closes it.
fn write_new(from: &Files, to: &Files, ends: Lsn) -> Result<SalvageReport> {
    let vfs = Arc::clone(&from.vfs);
    let durable = last_durable(from);
    let mut names = HashMap::new();
    let found = Log::salvage(Arc::clone(&vfs), &from.log_dir(), durable, &mut |salvaged| {
        note_episodes(&salvaged, &mut names);
        Ok::<(), Error>(())
    })?;
    let options =
        Options { page_size: found.page_size, max_transaction_bytes: MAX_TRANSACTION_BYTES, ..Options::default() };
    let database = Holotype::create_on(Arc::clone(&vfs), &to.dir, options)?;
    let report = SalvageReport { records: found.records, ..SalvageReport::default() };
    let mut salvage = Salvage {
        database: &database,
        names,
        numbers: Numbers::default(),
        receipts: None,
        report,
        at: 0,
        begins: Lsn(0),
        ends,
    };
    if let Some(floor) = found.floor {
        let mut records = Vec::new();
        let mut retained = |salvaged| salvage.retained(salvaged, &floor, &mut records);
        Log::salvage(Arc::clone(&vfs), &from.log_dir(), durable, &mut retained)?;
        salvage.transaction(Salvaged { records, time_us: None })?;
        salvage.begins = floor.head.position;
    }
    Log::salvage(vfs, &from.log_dir(), durable, &mut |salvaged| salvage.transaction(salvaged))?;
    let (positions, mut report) = salvage.finish()?;
    if durable > found.end {
        let what = format!("the log ends here, but all before {durable} was durable");
        report.lost.push(Lost { position: found.end.0, len: durable.0 - found.end.0, what });
    }
    report.lost.extend(found.unreadable.into_iter().map(Lost::from));
    report.lost.sort_by_key(|lost| (lost.position, lost.len == 0));
    write_positions(&database, &positions, &to.dir.join(POSITIONS))?;
    database.close()?;
    Ok(report)
}

/// The durable position of the log, from the lock's status block and the catalog, if they are readable.
fn last_durable(from: &Files) -> Lsn {
    let status = || Lock::reader(from.vfs.as_ref(), &from.lock()).ok()?.status().ok()?;
    let status = status().map(|status| status.durable);
    status.max(last_checkpoint_position(from, &Options::read_only())).unwrap_or_default()
}

fn note_episodes(salvaged: &Salvaged, names: &mut HashMap<u32, String>) {
    for stored in &salvaged.records {
        let told = Record::effective(stored).ok().flatten();
        if let Some(Ok(Record::Episode(episode))) = told.map(|told| told.record.unwrap_carrier()) {
            names.entry(episode.number).or_insert(episode.id);
        }
    }
}

fn write_positions(database: &Holotype, positions: &BTreeMap<u64, u32>, path: &Path) -> Result<()> {
    let snapshot = database.snapshot();
    let mut text = "old\tnew\n".to_owned();
    for (old, item) in positions {
        let new = snapshot.state.attributes(ItemId(*item))?.lsn;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{old}\t{new}");
    }
    let failed = |source| Error::File { path: path.to_owned(), source };
    let file = database.core.files.vfs.open(path, OpenMode::CreateNew).map_err(failed)?;
    file.write_at(text.as_bytes(), 0).and_then(|()| file.sync()).map_err(failed)?;
    database.core.files.vfs.sync_dir(&database.core.files.dir).map_err(failed)
}

/// A page that was written again.
struct Page {
    number: u32,
    /// True if it has all of its traces, so that its hash is the same.
    whole: bool,
}

/// The new numbers by old numbers.
#[derive(Default)]
struct Numbers {
    items: HashMap<u32, u32>,
    episodes: HashMap<u32, u32>,
    pages: HashMap<u32, Page>,
    /// New items by the old positions of their records.
    positions: BTreeMap<u64, u32>,
    /// New items that are erased, but not yet recorded as forgotten.
    erased: BTreeSet<u32>,
}

struct Salvage<'d> {
    database: &'d Holotype,
    /// Episodes by their old numbers.
    names: HashMap<u32, String>,
    numbers: Numbers,
    /// The number of dropped receipts, and the position of the first.
    receipts: Option<(u64, u64)>,
    report: SalvageReport,
    /// The position of the record that is being written.
    at: u64,
    /// Earlier records were already written from their retained copies.
    begins: Lsn,
    /// Records from here on are left out.
    ends: Lsn,
}

impl Salvage<'_> {
    fn transaction(&mut self, salvaged: Salvaged) -> Result<()> {
        if salvaged.records.first().is_some_and(|stored| stored.lsn >= self.ends) {
            return Ok(());
        }
        let mut transaction = self.database.begin()?;
        transaction.accept_generated_keys();
        if let Some(time) = salvaged.time_us {
            transaction.at(time);
        }
        let mut chunks: Vec<ChunkRecord> = Vec::new();
        for stored in &salvaged.records {
            if stored.lsn < self.begins {
                continue;
            }
            self.at = stored.lsn.0;
            let EffectiveRecord { record, erased } = match Record::effective(stored) {
                Ok(Some(told)) => told,
                Ok(None) => continue,
                Err(error) => {
                    self.lost(error.to_string());
                    continue;
                }
            };
            let parts = match record {
                Record::Chunk(chunk) => {
                    chunks.push(chunk);
                    continue;
                }
                Record::Item(_) => std::mem::take(&mut chunks),
                _ => Vec::new(),
            };
            let written = transaction.atomically(|transaction| match record {
                Record::Item(item) => self.item(transaction, item, parts, erased),
                record => self.record(transaction, record),
            });
            if let Err(error) = written {
                self.lost(error.to_string());
            }
        }
        transaction.commit(Durability::Flush)?;
        Ok(())
    }

    /// Writes the retained transactions of a truncated log. `records` are those of the transaction whose end was not
    /// read yet.
    fn retained(&mut self, salvaged: Salvaged, floor: &Floor, records: &mut Vec<Stored>) -> Result<()> {
        let there = floor.from.position..floor.until.position;
        for stored in salvaged.records.iter().filter(|stored| there.contains(&stored.lsn)) {
            match Record::effective(stored).map(|told| told.map(|told| told.record)) {
                Ok(Some(Record::Retained(kept))) => records.push(retained_log::unwrap_retained(kept, stored.lsn)?),
                Ok(Some(Record::RetainedCommit(before))) => {
                    self.transaction(Salvaged { records: std::mem::take(records), time_us: Some(before.time) })?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Records erased items as forgotten if the record that did so is lost.
    fn finish(mut self) -> Result<(BTreeMap<u64, u32>, SalvageReport)> {
        if !self.numbers.erased.is_empty() {
            let mut transaction = self.database.begin()?;
            let items = std::mem::take(&mut self.numbers.erased).into_iter().collect();
            let because = "it was erased before it was salvaged".to_owned();
            transaction.push(Record::Forget(ForgetRecord { items, episodes: Vec::new(), erased: 0, because }))?;
            transaction.commit(Durability::Sync)?;
        }
        if let Some((count, first)) = self.receipts {
            let what = format!("{}, the first of them here: left behind", counted(count, "receipts"));
            self.report.lost.push(Lost { position: first, len: 0, what });
        }
        Ok((self.numbers.positions, self.report))
    }

    /// Notes that something of the current record is lost.
    fn lost(&mut self, what: String) {
        self.report.lost.push(Lost { position: self.at, len: 0, what });
    }

    fn item(
        &mut self,
        transaction: &mut Transaction<'_>,
        mut item: Arc<ItemRecord>,
        chunks: Vec<ChunkRecord>,
        erased: bool,
    ) -> Result<()> {
        if join_own_chunks(&mut item, &chunks.iter().collect::<Vec<_>>()).is_err() {
            let whole = |field: &Field| !matches!(field.value, FieldValue::Chunks { .. });
            Arc::make_mut(&mut item).fields.retain(whole);
            self.lost("long fields of the item".to_owned());
        }
        let mut new = Arc::unwrap_or_clone(item);
        let old = new.id;
        new.id = transaction.state()?.bound();
        new.episode = new.episode.map(|episode| self.episode(transaction, episode)).transpose()?;
        let pointers = new.from.len();
        new.from = self.pointers(std::mem::take(&mut new.from));
        if new.from.len() < pointers {
            self.lost(format!("{} of the item", counted((pointers - new.from.len()) as u64, "pointers")));
            new.ungrounded |= new.from.is_empty();
        }
        if new.vector.is_some() && !fits(transaction, new.vector.as_deref())? {
            new.vector = None;
            self.lost("the vector of the item: the new database has no space that can hold it".to_owned());
        }
        if let Some(key) = new.key.take() {
            new.key = Some(self.free_key(transaction, key)?);
        }
        let id = new.id;
        transaction.push_item(new)?;
        if erased {
            self.numbers.erased.insert(id);
        }
        self.numbers.items.insert(old, id);
        self.numbers.positions.insert(self.at, id);
        self.report.items += 1;
        Ok(())
    }

    /// The key, or another one if its holder still has it because the record of its rekeying is lost.
    fn free_key(&mut self, transaction: &mut Transaction<'_>, key: String) -> Result<String> {
        if transaction.state()?.item_by_key(&key)?.is_none() {
            return Ok(key);
        }
        self.lost(format!("the key '{key}' of the item, which another has"));
        transaction.generated_key()
    }

    /// The new number of an episode.
    fn episode(&mut self, transaction: &mut Transaction<'_>, old: u32) -> Result<u32> {
        if let Some(number) = self.numbers.episodes.get(&old) {
            return Ok(*number);
        }
        let number = transaction.state()?.meta.episodes;
        let id = match self.names.get(&old) {
            Some(id) => id.clone(),
            None => {
                self.lost(format!("the name of episode number {old}"));
                format!("~lost-{old}")
            }
        };
        transaction.push(Record::Episode(EpisodeRecord { number, id, task: None, version: None, open: true }))?;
        self.numbers.episodes.insert(old, number);
        Ok(number)
    }

    fn known(&self, item: u32) -> Result<u32> {
        let lost = || Error::Missing { what: "item", name: format!("number {item}, which is lost") };
        self.numbers.items.get(&item).copied().ok_or_else(lost)
    }

    /// The new target of a pointer, if it was saved unchanged.
    fn target(&self, target: PointerTarget) -> Option<PointerTarget> {
        Some(match target {
            PointerTarget::Item(item) => PointerTarget::Item(*self.numbers.items.get(&item)?),
            PointerTarget::Page(page) => {
                PointerTarget::Page(self.numbers.pages.get(&page).filter(|page| page.whole)?.number)
            }
        })
    }

    fn pointers(&self, pointers: Vec<PointerRecord>) -> Vec<PointerRecord> {
        let moved = |pointer: PointerRecord| Some(PointerRecord { target: self.target(pointer.target)?, ..pointer });
        pointers.into_iter().filter_map(moved).collect()
    }

    fn link(&self, link: LinkRecord) -> Result<LinkRecord> {
        Ok(LinkRecord { from: self.known(link.from)?, to: self.known(link.to)?, ..link })
    }

    fn record(&mut self, transaction: &mut Transaction<'_>, record: Record) -> Result<()> {
        let moved = match record {
            Record::Space(_) | Record::Setting(_) => record,
            Record::Episode(mut episode) => {
                let old = episode.number;
                let next = transaction.state()?.meta.episodes;
                episode.number = *self.numbers.episodes.get(&old).unwrap_or(&next);
                let number = episode.number;
                transaction.push(Record::Episode(episode))?;
                self.numbers.episodes.insert(old, number);
                return Ok(());
            }
            Record::Page(page) => return self.page(transaction, page),
            Record::Link(link) => Record::Link(self.link(link)?),
            Record::Unlink(link) => Record::Unlink(self.link(link)?),
            Record::Pointers(PointersRecord { item, pointers }) => {
                let (item, count) = (self.known(item)?, pointers.len());
                let pointers = self.pointers(pointers);
                if pointers.len() < count {
                    self.lost(format!(
                        "{} added to item #{item}",
                        counted((count - pointers.len()) as u64, "pointers")
                    ));
                }
                Record::Pointers(PointersRecord { item, pointers })
            }
            Record::Uncite(UnciteRecord { item, pointers }) => {
                let moved = |it: UncitedRecord| Some(UncitedRecord { target: self.target(it.target)?, ..it });
                Record::Uncite(UnciteRecord {
                    item: self.known(item)?,
                    pointers: pointers.into_iter().filter_map(moved).collect(),
                })
            }
            Record::Mark(mark) => {
                let by = mark.by.and_then(|by| self.numbers.items.get(&by).copied());
                Record::Mark(MarkRecord { item: self.known(mark.item)?, by, ..mark })
            }
            // Only the number of an erased claim is left.
            Record::Claim(claim) if claim.name.is_empty() => return Ok(()),
            Record::Claim(claim) => {
                let (number, from) = (transaction.state()?.meta.claims, self.pointers(claim.from));
                Record::Claim(ClaimRecord { number, item: self.known(claim.item)?, from, ..claim })
            }
            Record::Vector(vector) => Record::Vector(VectorRecord { item: self.known(vector.item)?, ..vector }),
            Record::Reembed(reembed) => {
                Record::Reembed(ReembedRecord { bound: transaction.state()?.bound(), ..reembed })
            }
            Record::Rekey(rekey) => return self.rekey(transaction, rekey),
            Record::Forget(forget) => return self.forget(transaction, forget),
            Record::Receipt(_) => {
                let (count, first) = self.receipts.unwrap_or((0, self.at));
                self.receipts = Some((count + 1, first));
                return Ok(());
            }
            // Audited reads stay in the damaged log; replacements were applied at the positions of the replaced
            // records.
            Record::Item(_) | Record::Chunk(_) | Record::Read(_) | Record::Replacement(_) => return Ok(()),
            Record::Retained(_) | Record::RetainedCommit(_) | Record::Subtrees(_) => return Ok(()),
        };
        transaction.push(moved)
    }

    /// Moves a key. If another item still has it because the record of its rekeying is lost, that item gets a generated
    /// key.
    fn rekey(&mut self, transaction: &mut Transaction<'_>, rekey: RekeyRecord) -> Result<()> {
        let item = self.known(rekey.item)?;
        let holder = transaction.state()?.item_by_key(&rekey.key)?.filter(|holder| holder.0 != item);
        if let Some(holder) = holder
            && transaction.names()?.key_of(holder)? == rekey.key
        {
            let key = transaction.generated_key()?;
            transaction.push(Record::Rekey(RekeyRecord { key, item: holder.0 }))?;
        }
        transaction.push(Record::Rekey(RekeyRecord { item, ..rekey }))
    }

    /// Records again what was forgotten, with the reason. Erases what a crash left unerased.
    fn forget(&mut self, transaction: &mut Transaction<'_>, forget: ForgetRecord) -> Result<()> {
        let known: BTreeSet<u32> = forget.items.iter().filter_map(|it| self.numbers.items.get(it).copied()).collect();
        let (erased, unerased): (Vec<u32>, Vec<u32>) =
            known.into_iter().partition(|item| self.numbers.erased.contains(item));
        let unerased: Vec<ItemId> = unerased.into_iter().map(ItemId).collect();
        if !unerased.is_empty() {
            transaction.forget(&unerased, &Forget::because(forget.because.clone()))?;
        }
        for item in &erased {
            self.numbers.erased.remove(item);
        }
        let episodes = forget.episodes.iter().filter_map(|it| self.numbers.episodes.get(it).copied()).collect();
        transaction.push(Record::Forget(ForgetRecord { items: erased, episodes, erased: 0, because: forget.because }))
    }

    /// Writes a page of the saved traces, with a new hash.
    fn page(&mut self, transaction: &mut Transaction<'_>, page: PageRecord) -> Result<()> {
        if !self.numbers.pages.contains_key(&page.number) {
            let episode = self.episode(transaction, page.episode)?;
            let traces: Vec<u32> = page.traces.iter().filter_map(|it| self.numbers.items.get(it).copied()).collect();
            let count = page.traces.len() - traces.len();
            if count > 0 {
                self.lost(format!("{} of page '{}'", counted(count as u64, "traces"), page.key));
            }
            let number = transaction.close_page(episode, traces, Some(page.key.clone()))?;
            self.numbers.pages.insert(page.number, Page { number, whole: count == 0 });
        }
        transaction.mark_page(&page.key, page.summarised)
    }
}

/// True if a vector is of the space of the new database.
fn fits(transaction: &mut Transaction<'_>, vector: Option<&[u8]>) -> Result<bool> {
    let space = transaction.state()?.meta.space.clone();
    let space = space.map(|space| Space::try_from(space.as_ref())).transpose()?;
    Ok(space.zip(vector).is_some_and(|(space, bytes)| space.check_stored(bytes).is_ok()))
}
