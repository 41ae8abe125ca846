//! Reading everything readable of a damaged log.
//!
//! The log is scanned as for verification: after each fault, reading continues at the next intact record, page or
//! segment. Salvage returns the records that pass their checksum in their place; of a transaction whose commit record
//! is unreadable it returns the readable records. Records at the end without a commit were never part of the database
//! and are not returned, unless they are known to have been durable. Files may be missing; nothing is changed.
//!
//! An unreadable record that a complete transaction names for erasure counts as erased: a crash interrupted the
//! overwriting, and its erased form is known.
//!
//! Every unreadable range is reported with its position and length. A range ends where reading continued; the last one
//! ends with the last byte that is not zero.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::erasure::Patches;
use super::fault::Fault;
use super::open_files::OpenFiles;
use super::reader::{self, SegmentTable};
use super::scanner::{Scanner, Step};
use super::segment::{HeaderState, Segment, number_of};
use super::writer::Geometry;
use super::{Floor, Log, Lsn, damage_at};
use crate::error::{Error, Result};
use crate::log_page::PageSize;
use crate::record::Record;
use crate::vfs::{OpenMode, Vfs};
use crate::zeros;

/// The length of one read when searching for the last byte.
const READ_LEN: u64 = 256 << 10;
/// The end of messages about missing files.
const MISSING: &str = "missing";

/// The readable records of one transaction.
#[derive(Clone, Debug)]
pub struct Salvaged {
    /// In order; an erased record is represented by its replacement.
    pub records: Vec<Record>,
    /// The transaction's clock, if its commit record is readable.
    pub time_us: Option<i64>,
}

/// An unreadable range of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Its first log position.
    pub position: u64,
    /// Its length in bytes.
    pub len: u64,
    /// The file and the fault.
    pub what: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "log position {}, {} bytes: {}", self.position, self.len, self.what)
    }
}

/// The result of a salvage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// The log page size in bytes.
    pub page_size: u32,
    /// The unreadable ranges, in the order of the log.
    pub unreadable: Vec<Unreadable>,
    /// The number of records returned.
    pub records: u64,
    /// The position after the last readable page or record.
    pub end: Lsn,
    /// The beginning of the log, if it was truncated and the floor file is readable.
    pub floor: Option<Floor>,
}

impl Log {
    /// Reads everything readable of the log in `dir`, in order. Everything before `durable` is known to have been
    /// durable.
    ///
    /// # Errors
    /// [`Error::MissingSegment`] if no segment has a readable header; [`Error::NewerFormat`]; [`Error::Io`]; the
    /// callback's errors.
    pub fn salvage<E: From<Error>>(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        durable: Lsn,
        on_transaction: &mut dyn FnMut(Salvaged) -> Result<(), E>,
    ) -> Result<SalvageReport, E> {
        let mut report = SalvageReport::default();
        let segments = load(&vfs, dir, &mut report)?;
        let header = segments.iter().find_map(|segment| segment.valid_header());
        let header = header.ok_or_else(|| Error::MissingSegment { path: dir.to_owned(), number: 1 })?;
        let geometry = Geometry::new(header.database, PageSize::new(header.page_size)?);
        report.page_size = header.page_size;
        let table = SegmentTable::new(segments.clone());
        let mut scanner = Scanner::at_rest(geometry.clone(), segments.clone(), u64::MAX);
        let mut salvage = Salvage { geometry, segments, table, durable, knows_erased: false, report };
        while let Some(salvaged) = salvage.next(&mut scanner)? {
            on_transaction(salvaged)?;
        }
        salvage.report.unreadable.sort_by_key(|lost| lost.position);
        Ok(salvage.report)
    }
}

struct Salvage {
    geometry: Geometry,
    segments: Vec<Arc<Segment>>,
    table: SegmentTable,
    durable: Lsn,
    /// True if the scanner has the erasures of complete transactions as patches.
    knows_erased: bool,
    report: SalvageReport,
}

impl Salvage {
    /// The next readable records.
    fn next(&mut self, scanner: &mut Scanner) -> Result<Option<Salvaged>> {
        loop {
            let step = scanner.step()?;
            if !matches!(step, Step::Fault(_) | Step::End | Step::Limit) {
                self.report.end = Lsn(scanner.tip().position);
            }
            let fault = match step {
                Step::Transaction { transaction, .. } => {
                    return Ok(Some(self.told(transaction.records, Some(transaction.time_us))));
                }
                Step::Closed | Step::Redacted(_) | Step::Sealed | Step::Switched { .. } => continue,
                Step::Fault(_) if !self.knows_erased => {
                    self.knows_erased = true;
                    scanner.patch(self.erased()?);
                    continue;
                }
                Step::Fault(fault) => Some(fault),
                Step::End | Step::Limit => None,
            };
            let (at, mut pending) = (scanner.tip().position, scanner.take_pending());
            scanner.resume()?;
            let goes_on = scanner.segment().is_some();
            if fault.is_none() && !goes_on {
                pending.retain(|record| record.lsn < self.durable);
                return Ok((!pending.is_empty()).then(|| self.told(pending, None)));
            }
            let to = if goes_on { scanner.tip().position } else { self.last_byte(at)? };
            // The next file's fault is none yet when reading goes on before it.
            let fault = fault.filter(|fault| !goes_on || fault.position < to).unwrap_or_else(|| Fault {
                position: at,
                what: "the bytes here are zero, but later ones are not".into(),
            });
            self.note(at, fault, to);
            if !pending.is_empty() {
                return Ok(Some(self.told(pending, None)));
            }
        }
    }

    /// The erasures that complete transactions name.
    fn erased(&self) -> Result<Patches> {
        let mut scanner = Scanner::at_rest(self.geometry.clone(), self.segments.clone(), u64::MAX).without_payloads();
        let mut erased = Patches::new();
        while scanner.segment().is_some() {
            match scanner.step()? {
                Step::Transaction { whole: true, erasures, .. } => {
                    erased.extend(erasures.into_iter().map(|erasure| (erasure.position, erasure)));
                }
                Step::Fault(_) | Step::End | Step::Limit => scanner.resume()?,
                _ => {}
            }
        }
        Ok(erased)
    }

    /// Reports the range between two positions as unreadable, unless a missing file explains it. For a file that cannot
    /// be entered the range begins with the file, not with the unused bytes before it.
    fn note(&mut self, at: u64, fault: Fault, to: u64) {
        let in_later_file = self.segments.iter().any(|segment| at < segment.first && segment.first <= fault.position);
        let from = if in_later_file { fault.position } else { at.min(fault.position) };
        let missing = |lost: &Unreadable| {
            let end = lost.position + lost.len;
            lost.what.ends_with(MISSING) && from <= end && end <= to
        };
        if self.report.unreadable.iter().any(missing) {
            return;
        }
        let (position, len) = (from, to.saturating_sub(from));
        let what = damage_at(&self.segments, self.geometry.page, fault).to_string();
        self.report.unreadable.push(Unreadable { position, len, what });
    }

    fn told(&mut self, records: Vec<Record>, time_us: Option<i64>) -> Salvaged {
        let mut readable = Vec::with_capacity(records.len());
        for mut record in records {
            match reader::fetch_replacements(&self.geometry, &self.table, std::slice::from_mut(&mut record)) {
                Ok(()) => readable.push(record),
                Err(error) => {
                    let what = format!("the replacement of the erased record here: {error}");
                    self.report.unreadable.push(Unreadable { position: record.lsn.0, len: 0, what });
                }
            }
        }
        self.report.records += readable.len() as u64;
        Salvaged { records: readable, time_us }
    }

    /// The position after the last byte that is not zero.
    fn last_byte(&self, from: u64) -> Result<u64> {
        let mut last = from;
        for segment in self.segments.iter().filter(|segment| segment.end() > from) {
            let end = segment.first + segment.len.min(segment.file_len);
            let mut position = from.max(segment.first);
            while position < end {
                let mut bytes = vec![0; (end - position).min(READ_LEN) as usize];
                segment.read(&mut bytes, position - segment.first)?;
                if let Some(at) = zeros::last_used(&bytes) {
                    last = position + at as u64 + 1;
                }
                position += bytes.len() as u64;
            }
        }
        Ok(last)
    }
}

/// The existing segment files, each at the position in its header, or after the file before it.
fn load(vfs: &Arc<dyn Vfs>, dir: &Path, report: &mut SalvageReport) -> Result<Vec<Arc<Segment>>> {
    let files = Arc::new(OpenFiles::new(Arc::clone(vfs), OpenMode::Read));
    let mut segments: Vec<Arc<Segment>> = Vec::new();
    // An unreadable floor is treated like a missing one.
    report.floor = Floor::read(&**vfs, dir).ok().flatten().map(|(floor, _)| floor);
    let mut expected = report.floor.map_or(1, |floor| floor.segment);
    let kept = expected;
    for number in files.numbers(dir, number_of)?.into_iter().filter(|number| *number >= kept) {
        let mut segment = Segment::load(&files, dir, number)?;
        if let HeaderState::Newer(what) = segment.header {
            return Err(Error::NewerFormat { path: segment.path, what });
        }
        let first = report.floor.map_or(0, |floor| floor.first.0);
        let before = segments.last().map_or(first, |before| before.end());
        (segment.first, segment.len) = match &segment.header {
            HeaderState::Valid(header) if header.first >= before => (header.first, header.len),
            _ => (before, segment.file_len),
        };
        if number > expected {
            let what = match number - expected {
                1 => format!("log segment {expected} is {MISSING}"),
                _ => format!("log segments {expected} to {} are {MISSING}", number - 1),
            };
            report.unreadable.push(Unreadable { position: before, len: segment.first - before, what });
        }
        expected = number + 1;
        if segment.header != HeaderState::Blank {
            segments.push(Arc::new(segment));
        }
    }
    Ok(segments)
}
