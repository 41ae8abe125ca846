//! Verifying: every checksum, hash, pointer and derived row, against the log.
//!
//! It runs beside readers and writers, within a limit of its rate, and can be cancelled. It checks in this order: the
//! log (framing, CRCs, record hashes, Merkle roots, chain, commits), the items (each record read and decoded at its
//! position in the columns), the pointers (each span read and hashed again) and pages, the catalog's rows and the
//! derived segments' checksums, the manifest against the files, and rows, columns and hashes against a new application
//! of the log. It continues after a fault, and lists what it did not check.
//!
//! The file `VERIFIED` stores when each segment of the log was last found without faults.

mod against_log;
mod pace;

pub(crate) use pace::Pace;
pub use pace::VerifyOptions;

use crate::core::handle::Holotype;
use crate::model::item::ItemId;
use crate::model::plural::counted;
use crate::model::pointer::{Verdict, hex};
use crate::read::snapshot::{Snapshot, is_damage};
use crate::records::record::Record;
use crate::records::tables::{self, ManifestRow, PageRow};
use crate::state::State;
use crate::{Error, Result};
use holotype_storage::catalog::Catalog;
use holotype_storage::features::Access;
use holotype_storage::log::Head;
use holotype_storage::verified::{self, Verified};
use holotype_storage::{Damage, SoundSegment, codec, damage_note};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file, or the part of the database if the fault is not in a single file.
    pub file: String,
    /// The log page in the file, from 0.
    pub page: Option<u64>,
    /// The byte in the file.
    pub offset: Option<u64>,
    /// The description.
    pub what: String,
}

impl From<&Damage> for Fault {
    fn from(damage: &Damage) -> Self {
        Fault {
            file: damage.file.display().to_string(),
            page: Some(damage.page),
            offset: Some(damage.offset),
            what: damage.what.clone(),
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.file)?;
        if let Some(page) = self.page {
            write!(f, ": log page {page}")?;
        }
        if let Some(offset) = self.offset {
            write!(f, ", byte offset {offset}")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// The findings of a verification.
#[derive(Debug, Clone, Default)]
pub struct VerifyReport {
    /// The checked kinds of things, with their counts.
    pub checked: Vec<(String, u64)>,
    /// The faults.
    pub faults: Vec<Fault>,
    /// The things that were not checked, with the reason.
    pub not_checked: Vec<String>,
    /// The head up to which the log was verified.
    pub head: Head,
    /// The first fault of the log itself, which unlike a derived file cannot be rebuilt.
    pub(crate) log_fault: Option<String>,
    /// The segments of the log without a fault.
    pub(crate) sound: Vec<SoundSegment>,
}

impl VerifyReport {
    /// True if no fault was found.
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }

    /// The verdict in words: the number of faults, or the commit up to which there is none.
    pub fn verdict(&self) -> String {
        match self.faults.len() {
            0 => format!("no faults, up to commit {}", self.head.commit),
            count => counted(count as u64, "faults"),
        }
    }
}

/// So often is a verification repeated that found faults while the database changed.
const ATTEMPTS: u32 = 4;

/// The relation of an externally stored head to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownHead {
    /// The log contains it: this commit has that hash.
    At(u64),
    /// The log ends before its commit: it was rolled back.
    RolledBack,
    /// Its commit has another hash: the log was changed, or is a fork.
    Forked,
    /// No commit has it: the log was rolled back, changed, or is another one.
    Unknown,
}

impl Holotype {
    /// Runs all checks. `progress` receives the bytes of the log done and the total.
    ///
    /// # Errors
    /// Only if checking itself is impossible, because the disk fails; faults of the data are in the report.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport> {
        self.verify_with(&VerifyOptions::default(), progress)
    }

    /// As [`Holotype::verify`], no faster than the options let it.
    ///
    /// # Errors
    /// As [`Holotype::verify`]; [`Error::Cancelled`]; [`Error::SnapshotForgotten`] if others erase so often that no
    /// verification ends between two erasures.
    pub fn verify_with(&self, options: &VerifyOptions, progress: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport> {
        self.core.lock.check_process()?;
        let mut attempt = 1;
        let report = loop {
            let (snapshot, since) = (self.snapshot(), self.history_since());
            let verified = verify_all(&snapshot, &mut Pace::new(options), progress);
            // Changes by another process may look like faults meanwhile, and are none the next time.
            if verified.as_ref().is_ok_and(|report| report.faults.is_empty()) || !self.has_moved_on(&snapshot, since) {
                break verified?;
            }
            if attempt == ATTEMPTS {
                break if self.has_erased(&snapshot, since) { Err(Error::SnapshotForgotten) } else { verified }?;
            }
            attempt += 1;
            if self.core.erasing.load(Ordering::Acquire) && self.core.refuse_within_transaction().is_ok() {
                // The erasure has the writer's lock until its end.
                drop(self.core.lock_writer());
            }
        };
        self.core.damage.verified(report.log_fault.clone());
        Ok(report)
    }

    /// True if the database may have changed since the snapshot.
    fn has_moved_on(&self, snapshot: &Snapshot, since: u64) -> bool {
        let followed = self.refresh();
        let newest = self.core.published.load();
        let is_behind = || {
            let status = self.core.lock.status().ok().flatten();
            status.is_some_and(|status| status.durable > self.core.log.end())
        };
        followed.is_err() || newest.head != snapshot.state.head || self.has_erased(snapshot, since) || is_behind()
    }

    /// True if something was forgotten since the snapshot or just before, or history before a later commit than `since`
    /// cut off.
    fn has_erased(&self, snapshot: &Snapshot, since: u64) -> bool {
        // Looked at before the state, which is published on its files before the erasure ends.
        let is_erasing = self.core.erasing.load(Ordering::Acquire);
        let (newest, meta) = (self.core.published.load(), &snapshot.state.meta);
        // Without another writer nobody is about to finish it, and it is a fault.
        let is_at_it = meta.purged < meta.forgets && (is_erasing || self.core.lock.has_other_writer().unwrap_or(true));
        let has_ended = newest.meta.purged > meta.purged;
        newest.meta.forgets > meta.forgets || has_ended || is_at_it || self.history_since() > since
    }

    /// Stores in the file `VERIFIED` the segments of the log without a fault, with the present time; and in the file
    /// `DAMAGE` the first fault of the log, if it has one. Then opening for writing is refused until the log is
    /// restored and verified again, or damage is accepted.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn note_verified(&self, report: &VerifyReport) -> Result<()> {
        let (files, database) = (&self.core.files, self.core.log.database());
        let mut segments = verified::read(files.vfs.as_ref(), &files.verified(), database)?;
        match &report.log_fault {
            Some(fault) => damage_note::write(files.vfs.as_ref(), &files.damage_note(), database, fault)?,
            None => damage_note::remove(files.vfs.as_ref(), &files.damage_note())?,
        }
        let time_us = self.core.now();
        segments
            .extend(report.sound.iter().map(|segment| (segment.number, Verified { until: segment.until, time_us })));
        let kept = self.core.log.segments();
        segments.retain(|number, _| kept.contains(number));
        Ok(verified::write(files.vfs.as_ref(), &files.verified(), database, &segments)?)
    }

    /// The segments of the log by number, with the time of each one's last verification without a fault, in
    /// microseconds since 1970.
    ///
    /// # Errors
    /// When the file `VERIFIED` cannot be read.
    pub fn verified(&self) -> Result<Vec<(u64, Option<i64>)>> {
        let (files, log) = (&self.core.files, &self.core.log);
        let known = verified::read(files.vfs.as_ref(), &files.verified(), log.database())?;
        let when = |number: &u64| known.get(number).map(|verified| verified.time_us);
        Ok(log.segments().into_iter().map(|number| (number, when(&number))).collect())
    }

    /// Looks up an externally stored head: the commit with that hash. If the commit is given too, the result
    /// distinguishes a log that was rolled back from a changed one.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn find_head(&self, hash: &str, commit: Option<u64>) -> Result<KnownHead> {
        let wanted = hash.to_ascii_lowercase();
        for transaction in crate::derive::retained_log::transactions(&self.core.log)? {
            let transaction = transaction?;
            if hex(&transaction.head.hash) == wanted {
                return Ok(KnownHead::At(transaction.number.0));
            }
            if commit == Some(transaction.number.0) {
                return Ok(KnownHead::Forked);
            }
        }
        Ok(if commit.is_some() { KnownHead::RolledBack } else { KnownHead::Unknown })
    }

    /// True if an externally stored head is part of this database's history.
    pub fn contains_head(&self, hash: &str) -> Result<bool> {
        let wanted = hash.to_ascii_lowercase();
        if hex(&self.head().hash) == wanted {
            return Ok(true);
        }
        Ok(matches!(self.find_head(&wanted, None)?, KnownHead::At(_)))
    }
}

/// Checks everything.
pub(crate) fn verify_all(
    snapshot: &Snapshot,
    pace: &mut Pace,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<VerifyReport> {
    let snapshot = &snapshot.of_newest();
    let mut report = VerifyReport { head: snapshot.state.head, ..VerifyReport::default() };
    verify_log(snapshot, pace, progress, &mut report)?;
    verify_items(snapshot, pace, &mut report)?;
    verify_pages(snapshot, &mut report)?;
    verify_catalog(snapshot, pace, &mut report)?;
    verify_segments(snapshot, pace, &mut report)?;
    against_log::verify(snapshot, pace, &mut report)?;
    verify_forgets(snapshot, &mut report);
    let rollback = "whether the log was rolled back to an older state: compare `holotype head` with one kept elsewhere";
    report.not_checked.push(rollback.to_owned());
    Ok(report)
}

/// Checks that every forget has ended: the log no longer has the content; derived files may.
fn verify_forgets(snapshot: &Snapshot, report: &mut VerifyReport) {
    let meta = &snapshot.state.meta;
    if meta.purged < meta.forgets && !snapshot.is_replayed() {
        let what = "something was forgotten and erased from the log, but files that were made before still have it; \
                    the next transaction, or opening for writing, makes them again without it";
        report.faults.push(Fault { file: "catalog.redb".to_owned(), page: None, offset: None, what: what.to_owned() });
    }
}

/// Checks the log itself.
pub(crate) fn verify_log(
    snapshot: &Snapshot,
    pace: &mut Pace,
    progress: &mut dyn FnMut(u64, u64),
    report: &mut VerifyReport,
) -> Result<()> {
    let mut told = 0;
    let log = snapshot.core.log.verify_while(&mut |done, total| -> Result<()> {
        progress(done, total);
        let read = done.saturating_sub(told);
        told = told.max(done);
        pace.read(read)
    })?;
    report.sound.clone_from(&log.sound);
    let counts =
        [("log bytes", log.bytes), ("log pages", log.pages), ("records", log.records), ("transactions", log.commits)];
    report.checked.extend(counts.map(|(name, count)| (name.to_owned(), count)));
    if log.redacted > 0 {
        report.checked.push(("erased records".to_owned(), log.redacted));
    }
    report.faults.extend(log.faults.iter().map(Fault::from));
    report.log_fault = log.faults.first().map(ToString::to_string);
    report.not_checked.extend(log.not_checked);
    Ok(())
}

/// Checks that every item's record is at its position in the columns, and every pointer against the bytes.
fn verify_items(snapshot: &Snapshot, pace: &mut Pace, report: &mut VerifyReport) -> Result<()> {
    let (mut pointers, mut redacted) = (0, 0);
    for id in (0..snapshot.len()).map(ItemId) {
        match snapshot.content(id) {
            Ok(content) if content.record.id == id.0 => {
                redacted += u64::from(snapshot.state.attributes(id)?.redacted);
                pace.read(content.text().len() as u64)?;
            }
            Ok(_) => {
                report.faults.push(in_catalog(format!("the columns lead from item {id} to another item's record")));
            }
            Err(error) if is_damage(&error) => {
                report.faults.push(in_catalog(format!("item {id} cannot be read: {error}")));
            }
            Err(error) => return Err(error),
        }
        for citation in snapshot.citations(id)? {
            pointers += 1;
            if !matches!(citation.verdict, Verdict::Ok | Verdict::Redacted) {
                let place = if citation.field.is_empty() {
                    format!("page {}", citation.target)
                } else {
                    format!("{}.{}[{}..{}]", citation.target, citation.field, citation.start, citation.end)
                };
                report.faults.push(in_catalog(format!("item {id} cites {place}: {}", citation.verdict)));
            }
        }
    }
    report.checked.push(("items".to_owned(), u64::from(snapshot.len())));
    report.checked.push(("pointers".to_owned(), pointers));
    if redacted > 0 {
        report.checked.push(("forgotten items".to_owned(), redacted));
    }
    Ok(())
}

fn verify_pages(snapshot: &Snapshot, report: &mut VerifyReport) -> Result<()> {
    let mut count = 0;
    for (_, value) in snapshot.state.scan(tables::PAGE, &[])? {
        let page: PageRow = codec::decode(&value)?;
        count += 1;
        if snapshot.state.any_redacted(&page.traces)? {
            if page.hash != crate::model::pointer::NO_HASH {
                report.faults.push(in_catalog(format!("page {} holds what was forgotten, and its hash", page.key)));
            }
            continue;
        }
        match snapshot.hash_page(&page.traces) {
            Ok(hash) if hash == page.hash => {}
            Ok(_) => report
                .faults
                .push(in_catalog(format!("page {} does not hash to what it did when it was closed", page.key))),
            Err(error) if is_damage(&error) => report.faults.push(in_catalog(format!("page {}: {error}", page.key))),
            Err(error) => return Err(error),
        }
    }
    report.checked.push(("memory pages".to_owned(), count));
    Ok(())
}

/// Checks the catalog's rows against their checksums.
pub(crate) fn verify_catalog(snapshot: &Snapshot, pace: &mut Pace, report: &mut VerifyReport) -> Result<()> {
    let Some(catalog) = snapshot.state.rows.base() else {
        report.not_checked.push("the catalog: the database was opened without one".to_owned());
        return Ok(());
    };
    match catalog.verify(&mut |bytes| pace.read(bytes)) {
        Ok(rows) => report.checked.push(("catalog rows".to_owned(), rows)),
        Err(Error::Storage(error)) => {
            report.faults.push(derived(snapshot.core.files.catalog().display().to_string(), &error));
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Checks the checksums of every derived file.
pub(crate) fn verify_segments(snapshot: &Snapshot, pace: &mut Pace, report: &mut VerifyReport) -> Result<()> {
    let mut named = BTreeSet::new();
    let mut check = |file: &holotype_storage::segment_file::SegmentFile| {
        named.insert(file.path().to_owned());
        if let Err(error) = file.verify() {
            report.faults.push(derived(file.path().display().to_string(), &error));
        }
        pace.read(file.file_len())
    };
    snapshot.state.attributes.files().try_for_each(&mut check)?;
    for layer in &snapshot.state.layers {
        if let Some(vectors) = &layer.vectors {
            vectors.segments.iter().try_for_each(|segment| check(segment.file()))?;
        }
        layer.words.segments.iter().try_for_each(|segment| check(segment.file()))?;
    }
    if !report.faults.is_empty() {
        let vectors = snapshot.state.layers.iter().filter_map(|layer| layer.vectors.as_ref());
        let mut vectors = vectors.flat_map(|vectors| vectors.segments.iter());
        let mut words = snapshot.state.layers.iter().flat_map(|layer| layer.words.segments.iter());
        if vectors.any(|segment| segment.check_all().is_err()) || words.any(|segment| segment.verify().is_err()) {
            snapshot.core.schedule_repair();
        }
    }
    report.checked.push(("derived files".to_owned(), named.len() as u64));
    verify_manifest(snapshot, &named, report)
}

/// Checks the manifest against the open files, and both against the existing files.
fn verify_manifest(snapshot: &Snapshot, open: &BTreeSet<PathBuf>, report: &mut VerifyReport) -> Result<()> {
    let (core, state) = (&snapshot.core, &snapshot.state);
    let mut count = 0;
    if state.rows.frozen().is_empty() {
        // The check of the catalog reports unreadable rows.
        let Ok(rows) = state.scan(tables::MANIFEST, &[]) else { return Ok(()) };
        for (_, value) in rows {
            let row: ManifestRow = codec::decode(&value)?;
            let (_, path, _) = core.files.of_manifest(&row, core.log.database())?;
            count += 1;
            if !open.contains(&path) {
                let what = format!("the manifest names {}, which is not in use", path.display());
                report.faults.push(in_catalog(what));
            }
        }
        if count < open.len() as u64 {
            report.faults.push(in_catalog("files are in use that the manifest does not name".to_owned()));
        }
    }
    report.checked.push(("files of the manifest".to_owned(), count));
    let there = core.files.derived_files()?;
    let gone: Vec<&PathBuf> = open.iter().filter(|path| !there.contains(*path)).collect();
    if !gone.is_empty() {
        let wanted = wanted(snapshot)?;
        for path in gone.into_iter().filter(|path| wanted.contains(*path)) {
            let missing = holotype_storage::Error::MissingFile { path: path.clone() };
            report.faults.push(derived(path.display().to_string(), &missing));
        }
    }
    let left: Vec<&PathBuf> = there.iter().filter(|path| !open.contains(*path)).collect();
    if let Some(first) = left.first() {
        report.not_checked.push(format!(
            "{} that no manifest names, such as {}: left over, or being written by a checkpoint",
            counted(left.len() as u64, "files"),
            first.display()
        ));
    }
    Ok(())
}

/// The files that must exist now. A checkpoint that ended meanwhile, here or in the writing process, removed the files
/// that its manifest no longer names.
fn wanted(snapshot: &Snapshot) -> Result<BTreeSet<PathBuf>> {
    let core = &snapshot.core;
    let newest = if core.options.read_only || core.options.takes_turns() {
        let options = core.options.catalog();
        let (vfs, path, database) = (core.files.vfs.as_ref(), core.files.catalog(), core.log.database());
        let catalog = Catalog::open(vfs, &path, database, &options, Access::Read)?;
        Arc::new(State::empty(Some(&catalog))?)
    } else {
        core.published.load_full()
    };
    let mut wanted = BTreeSet::new();
    for (_, value) in newest.scan(tables::MANIFEST, &[])? {
        wanted.insert(core.files.of_manifest(&codec::decode(&value)?, core.log.database())?.1);
    }
    Ok(wanted)
}

/// Checks that each record of the log can be decoded; part of `verify log`.
pub(crate) fn verify_records(snapshot: &Snapshot, report: &mut VerifyReport) -> Result<()> {
    let mut count = 0;
    for transaction in snapshot.core.log.scan(holotype_storage::log::Lsn(0))? {
        let Ok(transaction) = transaction else { break };
        for record in &transaction.records {
            count += 1;
            if let Err(error) = Record::effective(record) {
                report.faults.push(in_catalog(format!("the record at log position {}: {error}", record.lsn)));
            }
        }
    }
    report.checked.push(("records decoded".to_owned(), count));
    Ok(())
}

fn in_catalog(what: String) -> Fault {
    Fault { file: "database".to_owned(), page: None, offset: None, what }
}

fn derived(file: String, error: &holotype_storage::Error) -> Fault {
    let what = format!("{error}; nothing is lost: `holotype rebuild` makes it again from the log");
    Fault { file, page: None, offset: None, what }
}
