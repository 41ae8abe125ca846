//! Opening a log: telling damage from an unsynced tail, and repairing the latter.
//!
//! Files and directory are synced first, so that everything read would survive a crash. Then everything from the
//! checkpoint (or the beginning) to the end is checked. If the bytes at position `p` fail a check, there are two
//! explanations, which must not be confused:
//!
//! - **Damage**: the bytes at `p` were durable and have changed. The proof is any evidence that a position after the
//!   last good commit was durable: the `synced` field of a later commit or close record, the header of a later segment,
//!   a file shorter than its header states, the checkpoint, or the caller's hint. Nothing is changed then; the log
//!   opens read-only.
//! - **An unsynced tail**: a crash came before the sync. Unsynced writes persist in any order, so valid commits may
//!   even follow. Everything after the last good commit is copied to a quarantine file and zeroed.
//!
//! There is a third explanation: a crash interrupted a redaction and left a record half erased. The transaction that
//! names the record was durable before the first byte was overwritten; [`interrupted_redaction`] finds it. The erasure
//! is finished after everything else is repaired.
//!
//! Valid bytes may not be durable either: after a failed sync the system shows pages that it never wrote. So everything
//! that is not proven durable is written again and synced.
//!
//! The order of the repair makes a crash during it safe, and the repair idempotent:
//!
//! 1. The quarantine file is complete, synced and renamed into place before anything is removed.
//! 2. Later segments are removed from the last to the first, each removal synced, before the tail is zeroed: a later
//!    header must not outlive what comes before it.
//! 3. The tail is zeroed and synced before anything is appended.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Damage, Error, Result};
use crate::features::Access;
use crate::log::erasure::{Erasure, Patches, Redaction};
use crate::log::fault::Fault;
use crate::log::floor::{self, Floor};
use crate::log::open_files::OpenFiles;
use crate::log::prepare::{Spare, remove_if_there, unfinished_path};
use crate::log::reader::{self, SegmentTable};
use crate::log::scanner::{Entry, Scanner, Step};
use crate::log::segment::{HeaderState, Segment, file_name, is_unfinished_name, number_of, place_in_row};
use crate::log::tip::Tip;
use crate::log::writer::Geometry;
use crate::log::{Checkpoint, CommitNo, Head, Log, Lsn, OpenOptions, Transaction, damage_at};
use crate::log_page::PageSize;
use crate::vfs::{OpenMode, Vfs, VfsFile, refuse_symlink};

mod evidence;
mod interrupted_redaction;
mod tail;

/// The findings and repairs of opening a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The position at which checking began.
    pub start: Lsn,
    /// The end of the log.
    pub end: Lsn,
    /// Its last commit.
    pub head: Head,
    /// Transactions read after the start.
    pub transactions: u64,
    /// Their records.
    pub records: u64,
    /// True if the log ends in a close record.
    pub closed: bool,
    /// The unsynced tail, if there was one.
    pub tail: Option<UnsyncedTail>,
    /// Removed files: later segments of the tail, unfinished files.
    pub removed: Vec<PathBuf>,
    /// Segments whose header, or its copy, was not readable and is written again from the other.
    pub mended: Vec<PathBuf>,
    /// The number of records of an interrupted redaction that were erased now.
    pub erased: u64,
    /// The damage; only in a log opened read-only.
    pub damage: Option<Damage>,
}

/// The end of a log that was not synced before a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsyncedTail {
    /// Its first position: the end of the last good commit.
    pub position: Lsn,
    /// Its length in bytes.
    pub len: u64,
    /// Its first fault.
    pub fault: Damage,
    /// The number of commit records in it that are intact on their own.
    pub commits: u64,
    /// The path of the quarantine file; `None` if the log was opened read-only.
    pub quarantine: Option<PathBuf>,
}

/// A log that is being opened.
#[derive(Debug)]
pub(crate) struct Opening {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    options: OpenOptions,
    geometry: Geometry,
    segments: Vec<Arc<Segment>>,
    scanner: Scanner,
    /// A position that was durable, from the checkpoint or the hint.
    durable: u64,
    /// The last state at which a log may end, and its segment.
    good: Tip,
    good_segment: usize,
    stop: Option<Stop>,
    /// Redactions without a done record, by commit.
    unfinished: BTreeMap<u64, Vec<Erasure>>,
    table: SegmentTable,
    /// The beginning of the log, if it was truncated.
    floor: Option<Floor>,
    report: RecoveryReport,
}

/// The position and reason at which checking ended.
#[derive(Debug)]
struct Stop {
    position: u64,
    /// The fault; `None` at the end of the written bytes.
    what: Option<String>,
    limit: bool,
}

impl Opening {
    pub(crate) fn begin(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        from: Option<Checkpoint>,
        options: &OpenOptions,
    ) -> Result<Self> {
        refuse_symlink(&*vfs, dir).map_err(Error::io(dir, "open"))?;
        let names = vfs.list(dir).map_err(Error::io(dir, "list"))?;
        let floor = Floor::read(&*vfs, dir)?;
        let segments = load_segments(&vfs, dir, &names, floor.as_ref().map(|(floor, _)| floor), options.read_only)?;
        let geometry = check_headers(&segments, options)?;
        if let Some((_, database)) = floor.filter(|(_, database)| *database != geometry.database) {
            return Err(Error::WrongDatabase {
                path: dir.join(floor::NAME),
                expected: geometry.database,
                found: database,
            });
        }
        let floor = floor.map(|(floor, _)| floor);
        let from = from.or(floor.map(|floor| floor.head));
        if !options.read_only && !options.given_back {
            sync_from(&*vfs, dir, &segments, from.map_or(0, |from| from.position.0))?;
        }
        let from_position = from.map_or(0, |from| from.position.0);
        let retold = floor.map_or(0, |floor| floor.until.position.0);
        let durable = options.durable_hint.map_or(0, |hint| hint.0).max(from_position).max(retold);
        // Position 0 means unknown: without a hint, a reader continues to the end.
        let known = options.durable_hint.is_some_and(|hint| hint.0 > 0);
        let limit = if options.read_only && known && !options.alone { durable } else { u64::MAX };
        let scanner = enter(&geometry, &segments, from, limit, retold)?;
        let report = RecoveryReport { start: Lsn(scanner.tip().position), ..RecoveryReport::default() };
        let (good, good_segment) = (scanner.tip().clone(), scanner.segment_index());
        let (dir, options) = (dir.to_owned(), options.clone());
        let table = SegmentTable::new(segments.clone());
        Ok(Self {
            vfs,
            dir,
            options,
            geometry,
            segments,
            scanner,
            durable,
            good,
            good_segment,
            stop: None,
            unfinished: BTreeMap::new(),
            table,
            floor,
            report,
        })
    }

    /// The next transaction, until the log ends or a check fails.
    pub(crate) fn next_transaction(&mut self) -> Result<Option<Transaction>> {
        while self.stop.is_none() {
            let position = self.scanner.tip().position;
            match self.scanner.step()? {
                Step::Transaction { mut transaction, erasures, .. } => {
                    self.note_good();
                    if !erasures.is_empty() {
                        self.unfinished.insert(transaction.number.0, erasures);
                    }
                    reader::fetch_replacements(&self.geometry, &self.table, &mut transaction.records)?;
                    self.report.transactions += 1;
                    self.report.records += transaction.records.len() as u64;
                    return Ok(Some(transaction));
                }
                Step::Closed => self.note_good(),
                Step::Redacted(commit) => {
                    self.note_good();
                    self.unfinished.remove(&commit);
                }
                Step::Sealed if self.scanner.between_transactions() => self.note_good(),
                Step::Sealed | Step::Switched { .. } => {}
                Step::Limit => match self.proven_behind()? {
                    Some(further) => self.scanner.extend(further),
                    None => self.stop = Some(Stop { position, what: None, limit: true }),
                },
                Step::End => {
                    let position = self.scanner.tip().position;
                    self.stop = Some(Stop { position, what: None, limit: false });
                }
                Step::Fault(fault) if self.patch(&fault)? => {}
                Step::Fault(Fault { position, what }) => {
                    self.stop = Some(Stop { position, what: Some(what), limit: false });
                }
            }
        }
        Ok(None)
    }

    /// Judges the bytes after the last good commit, repairs the log, and opens it.
    pub(crate) fn finish(mut self) -> Result<(Log, RecoveryReport)> {
        let stop = self.stop.take().unwrap_or(Stop { position: self.good.position, what: None, limit: false });
        self.report.end = Lsn(self.good.position);
        self.report.head = self.good.public_head();
        self.report.closed = self.good.closed;
        if stop.limit {
            return self.open(None);
        }
        if !self.options.read_only && self.options.given_back && self.good.position != self.durable {
            // The status block is older than the log.
            sync_from(&*self.vfs, &self.dir, &self.segments, self.report.start.0)?;
        }
        let behind = self.look_behind(&stop)?;
        let damage = self.damage(&stop, &behind);
        match damage {
            Some(damage) if !self.options.read_only => return Err(Error::Damaged(damage)),
            Some(_) => {}
            None => {
                if !self.options.read_only {
                    self.remove_unfinished()?;
                    self.renew()?;
                    self.mend_headers()?;
                }
                if behind.end > self.good.position {
                    self.set_aside(&stop, &behind)?;
                }
            }
        }
        self.report.damage.clone_from(&damage);
        self.open(damage)
    }

    /// The position after the limit up to which the log itself proves bytes durable: a later commit states it, or a
    /// later segment was begun. The hint that set the limit may be old.
    fn proven_behind(&self) -> Result<Option<u64>> {
        let limit = self.scanner.tip().position;
        let (mut proven, mut last_end) = (limit, limit);
        let mut ahead = self.scanner.trial(Patches::new()).without_payloads();
        loop {
            match ahead.step()? {
                Step::Transaction { .. } | Step::Closed => {
                    last_end = ahead.tip().position;
                    proven = proven.max(ahead.tip().synced);
                }
                Step::Switched { .. } => proven = proven.max(last_end),
                Step::Sealed | Step::Redacted(_) => {}
                Step::End | Step::Limit | Step::Fault(_) => break,
            }
        }
        Ok((proven > limit).then_some(proven))
    }

    fn note_good(&mut self) {
        self.good = self.scanner.tip().clone();
        self.good_segment = self.scanner.segment_index();
    }

    fn open(mut self, damage: Option<Damage>) -> Result<(Log, RecoveryReport)> {
        let (vfs, limits) = (Arc::clone(&self.vfs), self.options.limits.clone());
        if self.options.read_only {
            let log = Log::read_only(&self.dir, self.geometry, limits, self.segments, &self.good, damage)?;
            return Ok((log.beginning_at(self.floor), self.report));
        }
        let spares = self.spares()?;
        let shared = self.options.shared;
        let end = Lsn(self.good.position);
        let log = Log::assemble(vfs, &self.dir, self.geometry, limits, self.segments, self.good, spares)?;
        let log = log.beginning_at(self.floor);
        if shared {
            log.share()?;
        }
        for (commit, erasures) in self.unfinished {
            let redaction = Redaction { commit: CommitNo(commit), end, erasures };
            log.complete_redaction(&redaction)?;
            self.report.erased += redaction.count() as u64;
        }
        Ok((log, self.report))
    }

    /// The prepared file after the last used one. Later files are removed, from the last to the first, each removal
    /// synced: numbers must never have a gap, and renaming the first one again could leave one after a crash.
    fn spares(&mut self) -> Result<BTreeMap<u64, Spare>> {
        let mut behind = self.segments.drain(self.good_segment + 1..);
        let next = behind.next();
        let others: Vec<Arc<Segment>> = behind.collect();
        for other in others.iter().rev() {
            self.vfs.remove(&other.path).map_err(Error::io(&other.path, "remove"))?;
            self.vfs.sync_dir(&self.dir).map_err(Error::io(&self.dir, "sync"))?;
            self.report.removed.push(other.path.clone());
        }
        let Some(spare) = next.filter(|spare| spare.file_len.is_multiple_of(self.geometry.page.bytes())) else {
            return Ok(BTreeMap::new());
        };
        // If that sync failed, its name may not be durable. Renaming it again makes a new change to sync.
        let unfinished = unfinished_path(&spare.path);
        self.vfs.rename(&spare.path, &unfinished).map_err(Error::io(&spare.path, "rename"))?;
        self.vfs.rename(&unfinished, &spare.path).map_err(Error::io(&spare.path, "rename"))?;
        self.vfs.sync_dir(&self.dir).map_err(Error::io(&self.dir, "sync"))?;
        let file = spare.file()?;
        Ok(BTreeMap::from([(spare.number, Spare { path: spare.path.clone(), len: spare.file_len, file })]))
    }

    /// Removes files of unfinished preparations, and segments before the floor. The floor's name is made durable first,
    /// since it may not be.
    fn remove_unfinished(&mut self) -> Result<()> {
        let names = self.vfs.list(&self.dir).map_err(Error::io(&self.dir, "list"))?;
        let is_behind = |name: &String| self.floor.zip(number_of(name)).is_some_and(|(floor, it)| it < floor.segment);
        if let Some(floor) = self.floor.filter(|_| names.iter().any(is_behind)) {
            floor.write(&*self.vfs, &self.dir, &self.geometry.database)?;
        }
        let unfinished_floor = floor::unfinished(&self.dir);
        let is_unfinished = |name: &String| {
            is_unfinished_name(name) || *name == tail::UNFINISHED || self.dir.join(name) == unfinished_floor
        };
        for name in names.iter().filter(|name| is_unfinished(name) || is_behind(name)) {
            let path = self.dir.join(name);
            remove_if_there(&*self.vfs, &path).map_err(Error::io(&path, "remove"))?;
            self.report.removed.push(path);
        }
        Ok(())
    }

    /// Rewrites and syncs all bytes that are not proven durable. After a failed sync the system may have pages that it
    /// shows to every reader, marks clean, and never wrote.
    fn renew(&self) -> Result<()> {
        let Some(segment) = self.segments.get(self.good_segment) else { return Ok(()) };
        let proven = self.durable.max(self.good.synced).max(segment.first);
        if proven == 0 {
            return self.renew_first(segment);
        }
        if proven >= self.good.position {
            return Ok(());
        }
        let (file, first) = (segment.file()?, segment.first);
        copy(segment, proven - first..self.good.position - first, &*file)?;
        file.sync().map_err(Error::io(&segment.path, "sync"))
    }

    /// Writes headers again from their copies, and copies from their headers, where one of the two is not readable: a
    /// crash may have left one of them only, and the next damage must find both.
    fn mend_headers(&mut self) -> Result<()> {
        for segment in self.segments.iter().take(self.good_segment + 1) {
            let Some(header) = segment.valid_header() else { continue };
            for at in segment.spoiled_headers()? {
                let file = segment.file()?;
                file.write_at(&header.encode(), at).map_err(Error::io(&segment.path, "write"))?;
                file.sync().map_err(Error::io(&segment.path, "sync"))?;
                self.report.mended.push(segment.path.clone());
            }
        }
        Ok(())
    }

    /// Replaces the first segment by a copy if nothing proves that creating the log was completed: its last step was
    /// the sync of the directory, and if that failed, the name never becomes durable. After a crash the name refers to
    /// the old file or the new one.
    fn renew_first(&self, segment: &Segment) -> Result<()> {
        let unfinished = unfinished_path(&segment.path);
        let file = self.vfs.open(&unfinished, OpenMode::CreateNew).map_err(Error::io(&unfinished, "create"))?;
        copy(segment, 0..segment.file_len, &*file)?;
        file.sync().map_err(Error::io(&unfinished, "sync"))?;
        self.vfs.rename(&unfinished, &segment.path).map_err(Error::io(&segment.path, "rename"))?;
        self.vfs.sync_dir(&self.dir).map_err(Error::io(&self.dir, "sync"))?;
        segment.files().put(segment.number, file);
        Ok(())
    }
}

/// Writes a range of a segment's bytes to the same offset of a file, its own or another.
fn copy(segment: &Segment, range: Range<u64>, file: &dyn VfsFile) -> Result<()> {
    let mut bytes = vec![0; tail::COPY_LEN.min((range.end - range.start) as usize)];
    let mut offset = range.start;
    while offset < range.end {
        let len = (range.end - offset).min(tail::COPY_LEN as u64);
        let Some(bytes) = bytes.get_mut(..len as usize) else { break };
        segment.read(bytes, offset)?;
        file.write_at(bytes, offset).map_err(Error::io(&segment.path, "write"))?;
        offset += len;
    }
    Ok(())
}

/// The headers of all segment files from the floor on, which must be numbered without a gap.
pub(crate) fn load_segments(
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    names: &[String],
    floor: Option<&Floor>,
    read_only: bool,
) -> Result<Vec<Arc<Segment>>> {
    let (first_number, first) = floor.map_or((1, 0), |floor| (floor.segment, floor.first.0));
    let numbers = names.iter().filter_map(|name| number_of(name));
    let mut numbers: Vec<u64> = numbers.filter(|number| *number >= first_number).collect();
    numbers.sort_unstable();
    let mode = if read_only { OpenMode::Read } else { OpenMode::ReadWrite };
    let files = Arc::new(OpenFiles::new(Arc::clone(vfs), mode));
    for at in 0..numbers.len().max(1) {
        // A damaged floor may name any number.
        let expected = first_number.saturating_add(at as u64);
        if numbers.get(at) != Some(&expected) {
            return Err(Error::MissingSegment { path: dir.join(file_name(expected)), number: expected });
        }
    }
    let mut segments = Segment::load_row(&files, dir, &numbers)?;
    place_in_row(&mut segments, first);
    Ok(segments.into_iter().map(Arc::new).collect())
}

/// Refuses a log that must not be opened, before anything is changed, and returns the geometry of the first header.
pub(crate) fn check_headers(segments: &[Arc<Segment>], options: &OpenOptions) -> Result<Geometry> {
    for segment in segments {
        match &segment.header {
            HeaderState::Newer(what) => {
                return Err(Error::NewerFormat { path: segment.path.clone(), what: what.clone() });
            }
            HeaderState::Valid(header) if !options.read_only => header.features.check(&segment.path, Access::Write)?,
            _ => {}
        }
    }
    let Some(first) = segments.first() else {
        return Err(Error::MissingSegment { path: PathBuf::new(), number: 1 });
    };
    let smallest = PageSize::new(crate::log_page::MIN_PAGE_SIZE)?;
    let header = match &first.header {
        HeaderState::Valid(header) => header,
        HeaderState::WrongMagic(found) => {
            let (path, found) = (first.path.clone(), found.clone());
            return Err(Error::WrongMagic { path, expected: "a holotype log", found });
        }
        HeaderState::Fault(what) | HeaderState::Newer(what) => {
            return Err(Error::Damaged(first.damage(0, smallest, what.clone())));
        }
        HeaderState::Blank => {
            return Err(Error::Damaged(first.damage(0, smallest, "the header is zero")));
        }
    };
    if let Some(expected) = options.database
        && expected != header.database
    {
        return Err(Error::WrongDatabase { path: first.path.clone(), expected, found: header.database });
    }
    let page = PageSize::new(header.page_size)?;
    Ok(Geometry::new(header.database, page))
}

/// Syncs everything from a position on before it is trusted.
fn sync_from(vfs: &dyn Vfs, dir: &Path, segments: &[Arc<Segment>], from: u64) -> Result<()> {
    for segment in segments.iter().filter(|segment| segment.end() > from) {
        segment.file()?.sync().map_err(Error::io(&segment.path, "sync"))?;
    }
    vfs.sync_dir(dir).map_err(Error::io(dir, "sync"))
}

/// A scanner where checking begins. The records before `retold` were written again by `retain` and were durable before
/// the log's beginning was removed: a log that ends before them is damaged.
pub(crate) fn enter(
    geometry: &Geometry,
    segments: &[Arc<Segment>],
    from: Option<Checkpoint>,
    limit: u64,
    retold: u64,
) -> Result<Scanner> {
    let (geometry, all) = (geometry.clone(), segments.to_vec());
    let page = geometry.page;
    let Some(from) = from else {
        return Ok(Scanner::at_start(geometry, all, limit));
    };
    let mismatch = |why| Err(Error::CheckpointMismatch { position: from.position, why });
    let scanner = match Scanner::at(geometry.clone(), all, limit, from.position.0)? {
        Entry::Ready(scanner) => *scanner,
        Entry::Mismatch(why) => return mismatch(why),
        Entry::Ended(position) if from.position.0 <= retold => {
            let what = format!("the bytes here are zero, but `retain` made everything before {retold} durable");
            return Err(Error::Damaged(damage_at(segments, page, Fault { position, what })));
        }
        Entry::Ended(end) => return mismatch(format!("the log ends at {end}")),
        Entry::Fault(fault) => match interrupted_redaction::enter(&geometry, segments, limit, from.position.0, &fault)?
        {
            Some(scanner) => scanner,
            None => return Err(Error::Damaged(damage_at(segments, page, fault))),
        },
    };
    let found = scanner.tip().public_head();
    if found != from {
        return mismatch(format!("the log has commit {} there, with another head", found.commit));
    }
    Ok(scanner)
}
