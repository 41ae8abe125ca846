//! Full verification of the log.
//!
//! Opening checks from the last checkpoint on and stops at the first fault. Verification starts at the first byte,
//! continues after faults, and reports each with its file, log page and byte offset. Beside the checks of a scan it
//! reads the bytes that no record covers, the rest of header pages and unused pages at the end of a segment, which must
//! be zero.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Damage, Error, Result};
use crate::log::erasure::Erasure;
use crate::log::fault::Fault;
use crate::log::reader::{self, SegmentTable};
use crate::log::scanner::{Scanner, Step};
use crate::log::segment::{COPY_AT, HEADER_LEN, HeaderState, Segment, file_name};
use crate::log::writer::Geometry;
use crate::log::{Lsn, Transaction, damage_at};
use crate::zeros;

/// The findings of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Segment files read.
    pub segments: u64,
    /// Sealed log pages (or runs of a long record) whose Merkle root and chain match.
    pub pages: u64,
    /// Records of transactions that pass all checks.
    pub records: u64,
    /// Transactions that pass all checks.
    pub commits: u64,
    /// Erased records, each named by a redaction.
    pub redacted: u64,
    /// Bytes read.
    pub bytes: u64,
    /// The segments that were read to their end, or to the end of the log, without a fault.
    pub sound: Vec<SoundSegment>,
    /// The faults.
    pub faults: Vec<Damage>,
    /// Descriptions of everything that could not be checked.
    pub not_checked: Vec<String>,
}

/// A segment without a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoundSegment {
    /// Its number.
    pub number: u64,
    /// The position up to which it was checked.
    pub until: Lsn,
}

impl VerifyReport {
    /// True if no fault was found.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }

    /// Adds the damage that opening the log found, unless the scan reported the same place.
    pub(crate) fn add(&mut self, damage: Damage) {
        if self.faults.iter().any(|fault| fault.position == damage.position) {
            return;
        }
        let of_damaged = |segment: &SoundSegment| damage.file.ends_with(file_name(segment.number));
        self.sound.retain(|segment| !of_damaged(segment));
        self.faults.push(damage);
    }
}

/// The greatest number of faults reported, so that a destroyed file cannot fill the memory.
const MAX_FAULTS: usize = 1000;

/// Verifies up to position `limit`, or to the end of the files if that comes first. `end_now` returns the end of the
/// log while no append is under way, if it is known.
pub(crate) fn verify<E: From<Error>>(
    geometry: &Geometry,
    segments: Vec<Arc<Segment>>,
    limit: u64,
    end_now: &dyn Fn() -> Option<u64>,
    progress: &mut dyn FnMut(u64, u64) -> Result<(), E>,
) -> Result<VerifyReport, E> {
    let total = segments.last().map_or(0, |last| last.end()).min(limit);
    // If the beginning of the log was cut off, the first transaction may have begun before the floor.
    let mut is_first = true;
    let mut scanner = Scanner::at_rest(geometry.clone(), segments.clone(), limit).without_payloads();
    let mut verifying = Verifying {
        geometry,
        segments,
        report: VerifyReport::default(),
        faulty: 0,
        erased: BTreeSet::new(),
        open_redactions: BTreeMap::new(),
    };
    verifying.check_header_page(0)?;
    let mut told = 0;
    loop {
        let position = scanner.tip().position;
        if position - told.min(position) >= geometry.page.bytes() {
            progress(position, total)?;
            told = position;
        }
        match scanner.step()? {
            Step::Transaction { transaction, whole, erasures } if whole || is_first => {
                is_first = false;
                verifying.note_redactions(&transaction, erasures);
                verifying.report.commits += 1;
                verifying.report.records += transaction.records.len() as u64;
            }
            Step::Transaction { transaction, .. } => verifying.report.not_checked.push(format!(
                "the hash of commit {}, of which some records are unreadable or were skipped",
                transaction.number
            )),
            Step::Closed => {}
            Step::Redacted(commit) => verifying.note_done(commit),
            Step::Sealed => verifying.report.pages += 1,
            Step::Switched { blank_from } => {
                verifying.check_blank(blank_from, scanner.segment_index())?;
                verifying.check_header_page(scanner.segment_index())?;
            }
            Step::Fault(fault) => {
                verifying.fault(fault);
                is_first = false;
                scanner.resume()?;
            }
            Step::Limit => {
                verifying.check_behind(limit, end_now)?;
                break;
            }
            Step::End => {
                let fault = Fault { position: scanner.tip().position, what: "the log continues after this".into() };
                scanner.resume()?;
                let goes_on = scanner.segment().is_some();
                if goes_on || limit != u64::MAX {
                    verifying.fault(fault);
                }
                if !goes_on {
                    break;
                }
            }
        }
    }
    let end = scanner.tip().position.min(total);
    progress(total, total)?;
    Ok(verifying.finish(end)?)
}

struct Verifying<'a> {
    geometry: &'a Geometry,
    segments: Vec<Arc<Segment>>,
    report: VerifyReport,
    faulty: u64,
    /// Erased records that no redaction has named yet.
    erased: BTreeSet<u64>,
    /// Redactions that are not done yet, with the records they name that were not erased when they were read.
    open_redactions: BTreeMap<u64, Vec<u64>>,
}

impl Verifying<'_> {
    fn fault(&mut self, fault: Fault) {
        self.faulty += 1;
        if self.report.faults.len() < MAX_FAULTS {
            self.report.faults.push(damage_at(&self.segments, self.geometry.page, fault));
        }
    }

    /// A record is erased if and only if a later redaction names it.
    fn note_redactions(&mut self, transaction: &Transaction, erasures: Vec<Erasure>) {
        self.erased.extend(transaction.records.iter().filter(|record| record.is_redacted()).map(|record| record.lsn.0));
        if erasures.is_empty() {
            return;
        }
        let first = self.segments.first().map_or(0, |first| first.first);
        let mut left = Vec::new();
        for Erasure { position, .. } in erasures {
            if self.erased.remove(&position) {
                self.report.redacted += 1;
            } else if position >= first {
                left.push(position);
            }
        }
        self.open_redactions.insert(transaction.number.0, left);
    }

    /// Checks that the records named by a finished redaction are erased.
    fn note_done(&mut self, commit: u64) {
        for position in self.open_redactions.remove(&commit).unwrap_or_default() {
            if !self.is_erased(position) {
                let what = format!("commit {commit} states that this record is erased, but it is not");
                self.fault(Fault { position, what });
            }
        }
    }

    /// True if a record is erased now. Reads it again.
    fn is_erased(&mut self, position: u64) -> bool {
        self.geometry.erasing.wait();
        let table = SegmentTable::new(self.segments.clone());
        let now = reader::read(self.geometry, &table, u64::MAX, Lsn(position));
        let erased = now.is_ok_and(|record| record.is_redacted());
        self.report.redacted += u64::from(erased);
        erased
    }

    /// Checks the header page of the segment with this index: the header, its copy, and zeros around the copy.
    fn check_header_page(&mut self, index: usize) -> Result<()> {
        let Some(segment) = self.segments.get(index).map(Arc::clone) else {
            return Ok(());
        };
        self.report.segments += 1;
        for at in segment.spoiled_headers()? {
            let (which, other) = if at == 0 { ("header", "its copy") } else { ("copy of the header", "the header") };
            let what = format!("the {which} of the segment is damaged; {other} is read instead");
            self.fault(Fault { position: segment.first + at, what });
        }
        let (copy, copy_end) = (segment.first + COPY_AT as u64, segment.first + (COPY_AT + HEADER_LEN) as u64);
        self.check_zeros(&segment, segment.first + HEADER_LEN as u64, copy)?;
        self.check_zeros(&segment, copy_end, segment.first + self.geometry.page.bytes())
    }

    /// Checks the unused pages at the end of the segment before the one with this index.
    fn check_blank(&mut self, from: u64, index: usize) -> Result<()> {
        let previous = index.checked_sub(1).and_then(|index| self.segments.get(index)).map(Arc::clone);
        let Some(segment) = previous else {
            return Ok(());
        };
        self.check_zeros(&segment, from, segment.end())
    }

    fn check_zeros(&mut self, segment: &Segment, from: u64, to: u64) -> Result<()> {
        if let Some(fault) = self.find_used(segment, from, to)? {
            self.fault(fault);
        }
        Ok(())
    }

    /// Checks the bytes after the end in the last segment, which must be zero unless a writer appends meanwhile.
    fn check_behind(&mut self, end: u64, end_now: &dyn Fn() -> Option<u64>) -> Result<()> {
        let Some(segment) = self.segments.iter().rfind(|segment| segment.first < end).map(Arc::clone) else {
            return Ok(());
        };
        let used = match end_now() {
            Some(_) => self.find_used(&segment, end, segment.end())?,
            None => None,
        };
        match (used, end_now()) {
            (Some(fault), Some(now)) if now == end => self.fault(fault),
            (None, Some(_)) => {}
            _ => {
                let what = format!("the bytes after position {end}, where a writer may be appending");
                self.report.not_checked.push(what);
            }
        }
        Ok(())
    }

    /// The first byte that is not zero.
    fn find_used(&self, segment: &Segment, from: u64, to: u64) -> Result<Option<Fault>> {
        let mut bytes = vec![0; self.geometry.page.len()];
        let mut position = from;
        while position < to {
            let len = (to - position).min(self.geometry.page.bytes()) as usize;
            let Some(bytes) = bytes.get_mut(..len) else { break };
            match segment.read(bytes, position - segment.first) {
                Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::UnexpectedEof => {
                    let what = format!("the file ends within the {len} bytes from here");
                    return Ok(Some(Fault { position, what }));
                }
                other => other?,
            }
            if let Some(at) = zeros::first_used(bytes) {
                let what = "a byte that was never used is not zero".into();
                return Ok(Some(Fault { position: position + at as u64, what }));
            }
            position += len as u64;
        }
        Ok(None)
    }

    fn finish(mut self, end: u64) -> Result<VerifyReport> {
        self.report.bytes = end - self.segments.first().map_or(0, |first| first.first).min(end);
        let of_fault = |file: &PathBuf| self.report.faults.iter().any(|fault| fault.file == *file);
        let read = self.segments.iter().filter(|segment| segment.first < end && segment.valid_header().is_some());
        let sound = read.filter(|segment| self.faulty <= MAX_FAULTS as u64 && !of_fault(&segment.path));
        self.report.sound =
            sound.map(|segment| SoundSegment { number: segment.number, until: Lsn(segment.end().min(end)) }).collect();
        let unnamed: Vec<u64> = self.erased.iter().copied().collect();
        match self.faulty {
            0 => {
                for position in unnamed {
                    let what = "this record is erased, but no redaction in the log names it".into();
                    self.fault(Fault { position, what });
                }
            }
            // The redaction that names them may be unreadable.
            _ if !unnamed.is_empty() => {
                let what = format!("whether redactions name all erased records ({} not found)", unnamed.len());
                self.report.not_checked.push(what);
            }
            _ => {}
        }
        for commit in self.open_redactions.keys() {
            let what =
                format!("the redaction of commit {commit}, which is not finished: open the database for writing");
            self.report.not_checked.push(what);
        }
        if self.faulty > MAX_FAULTS as u64 {
            let more = self.faulty - MAX_FAULTS as u64;
            self.report.not_checked.push(format!("{more} more faults are not listed"));
        }
        let unreadable: Vec<PathBuf> = self
            .segments
            .iter()
            .filter(|segment| segment.first < end && segment.header != HeaderState::Blank)
            .filter(|segment| segment.valid_header().is_none())
            .map(|segment| segment.path.clone())
            .collect();
        for path in unreadable {
            self.report.not_checked.push(format!("the header of {}", path.display()));
        }
        Ok(self.report)
    }
}
