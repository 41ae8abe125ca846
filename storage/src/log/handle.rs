//! The open log: creating, appending, syncing, reading, scanning and closing it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::draft::{Draft, Prepared};
use super::fault::{Fault, damage_at};
use super::floor::Floor;
use super::group_commit::GroupCommit;
use super::open_files::OpenFiles;
use super::options::{LogLimits, LogOptions, OpenOptions};
use super::payload_end::PayloadEnds;
use super::position::{Checkpoint, Head, Lsn};
use super::prepare::Preparer;
use super::reader::SegmentTable;
use super::reader::{self, Payload};
use super::scanner::{Entry, Scanner, Step};
use super::segment::{HeaderState, Segment, SegmentHeader, file_name};
use super::tip::Tip;
use super::transaction::Transaction;
use super::writer::Appended;
use super::writer::{Geometry, Writer};
use super::{prepare, segment};
use crate::error::{Damage, Error, Result};
use crate::features::{Access, Features};
use crate::log_page::PageSize;
use crate::record::{NewRecord, Record};
use crate::recovery::{self, RecoveryReport};
use crate::verify::{self, VerifyReport};
use crate::vfs::{OpenMode, Vfs, refuse_symlink};

/// An open log. All methods may be called from any thread; appends run one at a time.
#[derive(Debug)]
pub struct Log {
    pub(super) dir: PathBuf,
    pub(super) geometry: Geometry,
    pub(super) limits: LogLimits,
    pub(super) table: SegmentTable,
    pub(super) group: GroupCommit,
    /// The head of the last appended commit.
    pub(super) head: Mutex<Head>,
    pub(super) writer: Option<Mutex<Writer>>,
    /// The damage found at opening; only in a read-only log.
    pub(super) damage: Option<Damage>,
    /// The beginning of the log, if it was truncated.
    pub(super) floor: Mutex<Option<Floor>>,
}

impl Log {
    /// Creates an empty log in `dir`, and the directory if it is missing.
    ///
    /// # Errors
    /// [`Error::LogExists`], [`Error::BadOption`], [`Error::Io`].
    pub fn create(vfs: Arc<dyn Vfs>, dir: &Path, options: &LogOptions) -> Result<Self> {
        let page = PageSize::new(options.page_size)?;
        refuse_symlink(&*vfs, dir).map_err(Error::io(dir, "create"))?;
        vfs.create_dir(dir).map_err(Error::io(dir, "create"))?;
        let names = vfs.list(dir).map_err(Error::io(dir, "list"))?;
        if names.iter().any(|name| segment::number_of(name).is_some()) {
            return Err(Error::LogExists { path: dir.to_owned() });
        }
        let len = options.first_segment_len.max(4 * page.bytes()).next_multiple_of(page.bytes());
        let geometry = Geometry::new(options.database, page);
        let tip = Tip::genesis(&options.database, page.bytes());
        let segment = Arc::new(first_segment(&vfs, dir, &geometry, &tip, len)?);
        Self::assemble(vfs, dir, geometry, options.limits.clone(), vec![segment], tip, BTreeMap::new())
    }

    /// The database id of the log in `dir`, from the header of its first segment; `None` if that is not readable, in
    /// which case opening the log reports the reason.
    ///
    /// # Errors
    /// [`Error::Io`] if the directory cannot be listed; [`Error::NewerFormat`] if the log must not be opened for
    /// `access`.
    pub fn identify(vfs: &dyn Vfs, dir: &Path, access: Access) -> Result<Option<[u8; 16]>> {
        let names = vfs.list(dir).map_err(Error::io(dir, "list"))?;
        let Some(first) = names.iter().filter_map(|name| segment::number_of(name)).min() else {
            return Ok(None);
        };
        let path = dir.join(file_name(first));
        let file = vfs.open(&path, OpenMode::Read).map_err(Error::io(&path, "open"))?;
        let header = segment::read_header(&*file, &path).map(|(header, _)| header);
        match header {
            Ok(HeaderState::Newer(what)) => Err(Error::NewerFormat { path, what }),
            Ok(HeaderState::Valid(header)) => {
                header.features.check(&path, access)?;
                Ok(Some(header.database))
            }
            _ => Ok(None),
        }
    }

    /// Opens the log in `dir`, recovers it, and calls back with each transaction after `from`, in order.
    ///
    /// # Errors
    /// [`Error::Damaged`] when durable bytes have changed and the log was not opened read-only;
    /// [`Error::CheckpointMismatch`] if `from` is not a commit of this log (try an older one, or none, with its
    /// position as the hint); [`Error::MissingSegment`], [`Error::NewerFormat`], [`Error::WrongDatabase`],
    /// [`Error::Io`]; the callback's errors.
    pub fn open<E: From<Error>>(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        from: Option<Checkpoint>,
        options: &OpenOptions,
        on_transaction: &mut dyn FnMut(Transaction) -> Result<(), E>,
    ) -> Result<(Self, RecoveryReport), E> {
        let mut opening = recovery::Opening::begin(vfs, dir, from, options)?;
        while let Some(transaction) = opening.next_transaction()? {
            on_transaction(transaction)?;
        }
        Ok(opening.finish()?)
    }

    /// Assembles a log whose bytes up to `tip` are durable. The last of `segments` contains the tip.
    pub(crate) fn assemble(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        geometry: Geometry,
        limits: LogLimits,
        segments: Vec<Arc<Segment>>,
        tip: Tip,
        spares: BTreeMap<u64, prepare::Spare>,
    ) -> Result<Self> {
        let missing = || Error::MissingSegment { path: dir.join(file_name(1)), number: 1 };
        let segment = segments.last().map(Arc::clone).ok_or_else(missing)?;
        let file = segment.file()?;
        let mut log = Self::read_only(dir, geometry.clone(), limits, segments, &tip, None)?;
        let preparer = Preparer::new(vfs, dir, spares);
        let max_segment_len = log.limits.max_segment_len;
        log.writer = Some(Mutex::new(Writer::new(geometry, tip, segment, file, preparer, max_segment_len)));
        Ok(log)
    }

    pub(crate) fn read_only(
        dir: &Path,
        geometry: Geometry,
        limits: LogLimits,
        segments: Vec<Arc<Segment>>,
        tip: &Tip,
        damage: Option<Damage>,
    ) -> Result<Self> {
        let missing = || Error::MissingSegment { path: dir.join(file_name(1)), number: 1 };
        let last = segments.last().ok_or_else(missing)?;
        let group = GroupCommit::new(last.file()?, last, tip.position);
        let head = Mutex::new(tip.public_head());
        let (dir, table) = (dir.to_owned(), SegmentTable::new(segments));
        Ok(Self { dir, geometry, limits, table, group, head, writer: None, damage, floor: Mutex::default() })
    }

    pub(crate) fn beginning_at(mut self, floor: Option<Floor>) -> Self {
        self.floor = Mutex::new(floor);
        self
    }

    /// The log's file system.
    pub(super) fn vfs(&self) -> Result<Arc<dyn Vfs>> {
        let missing = || Error::MissingSegment { path: self.dir.join(file_name(1)), number: 1 };
        self.table.all().first().map(|segment| Arc::clone(segment.files().vfs())).ok_or_else(missing)
    }

    /// Encodes and hashes a transaction: the part of an append that needs no lock, so threads may do it in parallel.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::ReservedKind`].
    pub fn prepare(&self, records: &[NewRecord]) -> Result<Prepared> {
        Prepared::encode(records, self.limits.max_transaction_bytes)
    }

    /// The same for records that are already encoded.
    ///
    /// # Errors
    /// [`Error::TooLarge`]; [`Error::Io`] if the system provides no random numbers.
    pub fn prepare_draft(&self, draft: Draft) -> Result<Prepared> {
        Prepared::new(draft, self.limits.max_transaction_bytes)
    }

    /// Appends one transaction. It is readable at once, but it may be in its file only after [`Self::flush`], a read,
    /// or dropping the log, and is durable only after [`Self::sync_to`] its end.
    ///
    /// # Errors
    /// [`Error::NoRoom`] and those of [`Self::prepare`], which concern this transaction only; [`Error::Poisoned`] after
    /// a failed write or sync; [`Error::Closed`], [`Error::ReadOnly`].
    pub fn append(&self, records: &[NewRecord], time_us: i64) -> Result<Appended> {
        let prepared = self.prepare(records)?;
        self.append_prepared(&prepared, time_us)
    }

    /// Appends a prepared transaction.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn append_prepared(&self, prepared: &Prepared, time_us: i64) -> Result<Appended> {
        let mut writer = self.writer()?;
        let appended = writer.append(&self.group, &self.table, prepared, time_us)?;
        *self.head_guard() = writer.tip().public_head();
        Ok(appended)
    }

    /// Returns once everything appended before the call is written to its files: it survives a crash of the process,
    /// but perhaps not of the machine.
    ///
    /// # Errors
    /// [`Error::Poisoned`] after a failed write or sync.
    pub fn flush(&self) -> Result<()> {
        self.group.write_held()
    }

    /// Returns once everything before `end` is durable. Calls that arrive while a sync runs share the next one.
    ///
    /// # Errors
    /// [`Error::Poisoned`] after a failed write or sync, [`Error::NoRecord`] for a position past the end.
    pub fn sync_to(&self, end: Lsn) -> Result<()> {
        self.group.sync_to(end.0)
    }

    /// The position before which everything is durable.
    #[must_use]
    pub fn durable(&self) -> Lsn {
        Lsn(self.group.durable())
    }

    /// The position after the last transaction appended.
    #[must_use]
    pub fn end(&self) -> Lsn {
        Lsn(self.group.end())
    }

    /// The last appended commit.
    #[must_use]
    pub fn head(&self) -> Head {
        *self.head_guard()
    }

    /// The database's id.
    #[must_use]
    pub fn database(&self) -> [u8; 16] {
        self.geometry.database
    }

    /// The log page size in bytes.
    #[must_use]
    pub fn page_size(&self) -> u32 {
        self.geometry.page.bytes() as u32
    }

    /// The numbers of the segments in use, ascending.
    #[must_use]
    pub fn segments(&self) -> Vec<u64> {
        let end = self.end().0;
        let used = |segment: &Arc<Segment>| segment.first < end && segment.valid_header().is_some();
        self.table.all().iter().filter(|segment| used(segment)).map(|segment| segment.number).collect()
    }

    /// The log's directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Reads the record at `lsn` and checks its framing and checksum.
    ///
    /// # Errors
    /// [`Error::NoRecord`] for a position that cannot hold a record, [`Error::Damaged`] for bytes that are not one,
    /// [`Error::Io`].
    pub fn read(&self, lsn: Lsn) -> Result<Record> {
        reader::read(&self.geometry, &self.table, self.group.written_past(lsn.0), lsn)
    }

    /// Reads the payload of the record at `lsn` with the checks of [`Log::read`], but does not compute its hash.
    ///
    /// # Errors
    /// As [`Log::read`].
    pub fn payload(&self, lsn: Lsn) -> Result<Payload> {
        reader::read_payload(&self.geometry, &self.table, self.group.written_past(lsn.0), lsn)
    }

    /// The ends of payloads, read through maps of the files.
    #[must_use]
    pub fn payload_ends(&self) -> PayloadEnds {
        PayloadEnds::of(&self.geometry, &self.table)
    }

    /// All transactions after `from`, the position of a [`Head`], up to the end at the time of the call. `Lsn(0)` means
    /// from the beginning (in a log with a floor: all after the floor).
    ///
    /// # Errors
    /// [`Error::NoRecord`] if no transaction ends at `from`, [`Error::Damaged`], [`Error::Io`].
    pub fn scan(&self, from: Lsn) -> Result<Transactions> {
        let geometry = self.geometry.clone();
        let limit = self.group.written();
        let segments = self.table.all();
        let scanner = match self.floor().filter(|_| from == Lsn(0)).map_or(from, |floor| floor.head.position) {
            Lsn(0) => Scanner::at_start(geometry, segments.clone(), limit),
            Lsn(position) => match Scanner::at(geometry, segments.clone(), limit, position)? {
                Entry::Ready(scanner) => *scanner,
                Entry::Mismatch(why) => return Err(Error::NoRecord { lsn: from, why }),
                Entry::Ended(end) => {
                    return Err(Error::NoRecord { lsn: from, why: format!("the log ends at {end}") });
                }
                Entry::Fault(fault) => {
                    return Err(Error::Damaged(damage_at(&segments, self.geometry.page, fault)));
                }
            },
        };
        Ok(self.transactions(scanner, segments))
    }

    /// Returns whether a head is that of a commit of this log: its hash covers everything before it, so a log that was
    /// rolled back before it, or written differently up to it, does not contain it.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the log cannot be read there, [`Error::Io`].
    pub fn contains(&self, head: Head) -> Result<bool> {
        if head.position > self.end() {
            return Ok(false);
        }
        match recovery::enter(&self.geometry, &self.table.all(), Some(head), self.group.written(), 0) {
            Ok(_) => Ok(true),
            Err(Error::CheckpointMismatch { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// All transactions in the log's files. In a log with a floor these include remains from before the floor, of which
    /// the first transaction may be incomplete.
    #[must_use]
    pub fn scan_files(&self) -> Transactions {
        let (segments, limit) = (self.table.all(), self.group.written());
        let scanner = Scanner::at_rest(self.geometry.clone(), segments.clone(), limit);
        self.transactions(scanner, segments)
    }

    pub(super) fn transactions(&self, scanner: Scanner, segments: Vec<Arc<Segment>>) -> Transactions {
        let table = SegmentTable::new(segments.clone());
        Transactions { scanner: Some(scanner), segments, table, geometry: self.geometry.clone() }
    }

    /// Seals the open log page, so that the chain covers it, and syncs. Has no effect on an empty page.
    ///
    /// # Errors
    /// As [`Self::append`] and [`Self::sync_to`].
    pub fn seal(&self) -> Result<()> {
        self.writer()?.seal(&self.group, &self.table)?;
        self.sync_to(self.end())
    }

    /// Syncs everything, writes the close record and syncs that; then removes segments that were prepared and not used.
    /// Nothing can be appended afterwards. No effect on read-only logs.
    ///
    /// # Errors
    /// As [`Self::append`] and [`Self::sync_to`].
    pub fn close(&self) -> Result<()> {
        if self.writer.is_none() {
            return Ok(());
        }
        let mut writer = self.writer()?;
        self.sync_to(self.end())?;
        writer.close(&self.group, &self.table)?;
        self.sync_to(self.end())?;
        writer.discard_spares();
        Ok(())
    }

    /// True once a clean end was written: nothing can be appended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.writer().is_ok_and(|writer| writer.is_closed())
    }

    /// Verifies the whole log, continues after faults, and reports all of them. `progress` receives the bytes done and
    /// the total.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be read at all.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport> {
        self.verify_while(&mut |done, total| {
            progress(done, total);
            Ok(())
        })
    }

    /// As [`Self::verify`]. `progress` is called after each page; it may end the verification with an error, and may
    /// block to slow it down.
    ///
    /// # Errors
    /// As [`Self::verify`]; the errors of `progress`.
    pub fn verify_while<E: From<Error>>(
        &self,
        progress: &mut dyn FnMut(u64, u64) -> Result<(), E>,
    ) -> Result<VerifyReport, E> {
        let limit = if self.damage.is_some() { u64::MAX } else { self.group.written() };
        // Other handles may append behind this one's end while it does not have the turn.
        let end_now = || self.writer().ok().filter(|idle| !idle.is_shared()).map(|_idle| self.group.written());
        let (segments, missing) = self.reopen_segments()?;
        let mut report = verify::verify(&self.geometry, segments, limit, &end_now, progress)?;
        missing.into_iter().chain(self.damage.clone()).for_each(|damage| report.add(damage));
        if let Err(Error::DamagedFloor { path, what }) = Floor::read(&*self.vfs()?, &self.dir) {
            report.faults.push(Damage { file: path, page: 0, offset: 0, position: Lsn(0), what });
        }
        Ok(report)
    }

    /// Opens the segments again by name, and reports those whose files are missing. An open file would not show that
    /// its name was removed or given to another file.
    fn reopen_segments(&self) -> Result<(Vec<Arc<Segment>>, Vec<Damage>)> {
        let known = self.table.all();
        let Some(first) = known.first() else { return Ok((known, Vec::new())) };
        let files = Arc::new(OpenFiles::like(first.files()));
        let (mut reopened, mut missing) = (Vec::with_capacity(known.len()), Vec::new());
        for segment in &known {
            match Segment::load(&files, &self.dir, segment.number) {
                Ok(segment) => reopened.push(segment),
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                    missing.push(segment.damage(segment.first, self.geometry.page, "the file is missing"));
                }
                Err(error) => return Err(error),
            }
        }
        // A segment may have been retired meanwhile.
        let kept = self.table.all();
        missing.retain(|damage| kept.iter().any(|segment| segment.path == damage.file));
        if reopened.len() < known.len() {
            return Ok((known, missing));
        }
        segment::place_in_row(&mut reopened, first.first);
        Ok((reopened.into_iter().map(Arc::new).collect(), missing))
    }

    pub(super) fn writer(&self) -> Result<MutexGuard<'_, Writer>> {
        let writer = self.writer.as_ref().ok_or(Error::ReadOnly)?;
        writer.lock().map_err(|_| Error::Poisoned { why: "a thread panicked while appending".into() })
    }

    pub(super) fn floor_guard(&self) -> MutexGuard<'_, Option<Floor>> {
        self.floor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn head_guard(&self) -> MutexGuard<'_, Head> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An iterator over transactions in order: see [`Log::scan`]. Ends after the first error.
#[derive(Debug)]
pub struct Transactions {
    scanner: Option<Scanner>,
    segments: Vec<Arc<Segment>>,
    table: SegmentTable,
    geometry: Geometry,
}

impl Iterator for Transactions {
    type Item = Result<Transaction>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let step = self.scanner.as_mut()?.step();
            let error = match step {
                Ok(Step::Transaction { mut transaction, .. }) => {
                    let fetched = reader::fetch_replacements(&self.geometry, &self.table, &mut transaction.records);
                    match fetched {
                        Ok(()) => return Some(Ok(transaction)),
                        Err(error) => Some(error),
                    }
                }
                Ok(Step::Closed | Step::Redacted(_) | Step::Sealed | Step::Switched { .. }) => continue,
                Ok(Step::Limit) => None,
                Ok(Step::End) => {
                    let position = self.scanner.as_ref()?.tip().position;
                    let fault = Fault { position, what: "the log ends too early".into() };
                    Some(Error::Damaged(damage_at(&self.segments, self.geometry.page, fault)))
                }
                Ok(Step::Fault(fault)) => Some(Error::Damaged(damage_at(&self.segments, self.geometry.page, fault))),
                Err(error) => Some(error),
            };
            self.scanner = None;
            return error.map(Err);
        }
    }
}

/// Creates the first segment, complete and synced before it gets its name.
fn first_segment(vfs: &Arc<dyn Vfs>, dir: &Path, geometry: &Geometry, tip: &Tip, len: u64) -> Result<Segment> {
    let header = SegmentHeader {
        features: Features::default(),
        page_size: geometry.page.bytes() as u32,
        database: geometry.database,
        number: 1,
        first: 0,
        len,
        previous_end: 0,
        records: 0,
        commit: 0,
        time_us: tip.time_us,
        chain: tip.chain,
    };
    let files = Arc::new(OpenFiles::new(Arc::clone(vfs), OpenMode::ReadWrite));
    let vfs = &**vfs;
    let path = dir.join(file_name(1));
    let unfinished = prepare::unfinished_path(&path);
    let made = prepare::remove_if_there(vfs, &unfinished)
        .and_then(|()| prepare::fill(vfs, &unfinished, len, &AtomicBool::new(false)))
        .and_then(|file| file.write_at(&header.encode_twice(), 0).and_then(|()| file.sync()))
        .and_then(|()| vfs.rename(&unfinished, &path))
        .and_then(|()| vfs.sync_dir(dir));
    match made {
        Ok(()) => Ok(Segment::begin(header, path, files)),
        Err(source) => {
            // Best effort: once these names are removed, creating the log can be tried again.
            let _ = prepare::remove_if_there(vfs, &unfinished);
            let _ = prepare::remove_if_there(vfs, &path);
            Err(Error::NoRoom { path, len, source })
        }
    }
}
