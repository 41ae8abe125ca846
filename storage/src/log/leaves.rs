//! The leaves of the tree over the log: the hashes of records in order, and a record's number.
//!
//! A page's footer, or the header of its segment, states the number of records before the page. So a record's number
//! can be computed from few pages, regardless of the log's length. Reading hashes goes page by page and checks only
//! each record's CRC; opening and [`Log::verify`] check the chain of pages.

use std::sync::{Arc, PoisonError};

use super::fault::{Fault, damage_at};
use super::handle::Log;
use super::leaf::Leaf;
use super::position::Lsn;
use super::reader;
use super::segment::Segment;
use crate::chain::Hash;
use crate::error::{Error, Result};
use crate::log_page::{FOOTER_LEN, Footer, ParsedFooter};
use crate::record::{self, FLAG_REDACTED, Parsed, Place, RecordView, SALT_LEN};

/// A record as stored in the log, with the complete input of its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// Bytes 0 to 7 of the record: length, type, flags, mark.
    pub header: [u8; 8],
    /// Salt and payload; `None` if the record was redacted.
    pub content: Option<([u8; SALT_LEN], Vec<u8>)>,
    /// Its hash `r`.
    pub hash: Hash,
}

/// An iterator over leaves: see [`Log::leaves`]. Ends after the first error.
#[derive(Debug)]
pub struct Leaves<'a> {
    log: &'a Log,
    segments: Vec<Arc<Segment>>,
    position: u64,
    limit: u64,
    unit: Option<Unit>,
}

/// A page, or the run of a long record.
#[derive(Debug)]
struct Unit {
    segment: Arc<Segment>,
    start: u64,
    bytes: Vec<u8>,
}

impl Unit {
    fn holds(&self, position: u64) -> bool {
        (self.start..self.start + self.bytes.len() as u64).contains(&position)
    }
}

impl Log {
    /// The records from `from` on, a position at which a record begins or ends, up to the first one that ends at or
    /// after `to`.
    #[must_use]
    pub fn leaves(&self, from: Lsn, to: Lsn) -> Leaves<'_> {
        let limit = to.0.min(self.group.written());
        Leaves { log: self, segments: self.table.all(), position: from.0, limit, unit: None }
    }

    /// The same from memory, without reading; `None` unless this handle appended all of them recently.
    #[must_use]
    pub fn recent_leaves(&self, from: Lsn, to: Lsn) -> Option<Vec<Leaf>> {
        let writer = self.writer.as_ref()?;
        writer.lock().unwrap_or_else(PoisonError::into_inner).recent_leaves(from, to)
    }

    /// The number of records before a position at which a record begins or ends. For the record at `lsn` this is its
    /// number, counted from 0; for the end of a commit it is the size of the tree at that commit.
    ///
    /// # Errors
    /// [`Error::NoRecord`], [`Error::Damaged`], [`Error::Io`].
    pub fn records_before(&self, lsn: Lsn) -> Result<u64> {
        let page = self.geometry.page;
        let none = |why: &str| Error::NoRecord { lsn, why: why.into() };
        if lsn.0 > self.group.written() {
            return Err(none("the log ends before it"));
        }
        let segments = self.table.all();
        let after = segments.partition_point(|segment| segment.first < lsn.0);
        let segment =
            after.checked_sub(1).and_then(|index| segments.get(index)).ok_or_else(|| none("no segment holds it"))?;
        let first = segment.first + page.bytes();
        if lsn.0 < first {
            return Err(none("it lies in the header of a segment"));
        }
        let start = page.start_of(lsn.0);
        if start == first {
            let header = segment.valid_header();
            let before = header.ok_or_else(|| none("the segment's header is not readable"))?.records;
            return self.count_from(start, lsn, before);
        }
        let at = start - FOOTER_LEN as u64;
        let mut bytes = [0; FOOTER_LEN];
        segment.read(&mut bytes, at - segment.first)?;
        let place = Place { segment: segment.number, offset: at - segment.first };
        match Footer::parse(&bytes, &self.geometry.seed, place) {
            ParsedFooter::Footer(footer) => {
                let before = footer.first_record.checked_add(footer.record_count.into());
                self.count_from(start, lsn, before.ok_or_else(|| none("its page states an impossible number"))?)
            }
            ParsedFooter::Blank => Err(none("the page before it was never sealed")),
            ParsedFooter::Fault(what) => Err(Error::Damaged(segment.damage(at, page, what))),
        }
    }

    /// Reads the record at `lsn` with the complete input of its hash.
    ///
    /// # Errors
    /// [`Error::NoRecord`], [`Error::Damaged`], [`Error::Io`].
    pub fn read_stored(&self, lsn: Lsn) -> Result<StoredRecord> {
        let mut leaves = self.leaves(lsn, Lsn(lsn.0.saturating_add(1)));
        let stored = leaves.next_with(|unit, within, view| {
            let record = unit.bytes.get(within..).unwrap_or_default();
            let mut header = [0; 8];
            header.copy_from_slice(record.get(..8)?);
            let salt = record.get(record::PREFIX_LEN..)?.first_chunk::<SALT_LEN>().copied()?;
            let content = (view.flags & FLAG_REDACTED == 0).then(|| (salt, view.payload.to_vec()));
            (unit.start + within as u64 == lsn.0).then_some(StoredRecord { header, content, hash: view.hash })
        });
        stored?.flatten().ok_or_else(|| Error::NoRecord { lsn, why: "no record begins at this position".into() })
    }

    fn count_from(&self, start: u64, lsn: Lsn, before: u64) -> Result<u64> {
        let mut count = before;
        if start == lsn.0 {
            return Ok(count);
        }
        for leaf in self.leaves(Lsn(start), lsn) {
            let leaf = leaf?;
            if leaf.lsn == lsn {
                return Ok(count);
            }
            count += 1;
            if leaf.end >= lsn {
                break;
            }
        }
        Ok(count)
    }
}

impl Leaves<'_> {
    /// Moves past the next record and returns the result of `look` for it.
    fn next_with<T>(&mut self, look: impl Fn(&Unit, usize, &RecordView<'_>) -> T) -> Result<Option<T>> {
        let geometry = &self.log.geometry;
        let page = geometry.page;
        let mut has_waited = false;
        while self.position < self.limit {
            let unit = match self.unit.take().filter(|unit| unit.holds(self.position)) {
                Some(unit) => unit,
                None => match self.load()? {
                    Some(unit) => unit,
                    None => continue,
                },
            };
            let end = unit.start + unit.bytes.len() as u64;
            let within = (self.position - unit.start) as usize;
            let rest = unit.bytes.get(within..unit.bytes.len() - FOOTER_LEN).unwrap_or_default();
            let place = |position: u64| Place { segment: unit.segment.number, offset: position - unit.segment.first };
            match record::parse(rest, &geometry.seed, place(self.position)) {
                Parsed::Record(view) => {
                    // A run holds one record.
                    let alone = view.stored_len > page.capacity();
                    self.position = if alone { end } else { self.position + view.stored_len as u64 };
                    let found = look(&unit, within, &view);
                    self.unit = Some(unit);
                    return Ok(Some(found));
                }
                // A record that is being erased may be read half old, half new.
                Parsed::Fault(_) if !has_waited => {
                    geometry.erasing.wait();
                    has_waited = true;
                }
                Parsed::Fault(what) => return Err(Error::Damaged(unit.segment.damage(self.position, page, what))),
                Parsed::Blank => {
                    let footer = unit.bytes.last_chunk::<FOOTER_LEN>();
                    let footer =
                        footer.map(|bytes| Footer::parse(bytes, &geometry.seed, place(end - FOOTER_LEN as u64)));
                    self.position = match footer {
                        Some(ParsedFooter::Footer(_)) => end,
                        // Unused room at the end of a segment, too small for the next record.
                        _ if within == 0 && end <= self.limit => unit.segment.end(),
                        _ => {
                            let what = "a record was here and is zero now";
                            return Err(Error::Damaged(unit.segment.damage(self.position, page, what)));
                        }
                    };
                }
            }
        }
        Ok(None)
    }

    /// Reads the page or run that contains the position; `None` if the position first had to move to the next segment.
    fn load(&mut self) -> Result<Option<Unit>> {
        let page = self.log.geometry.page;
        let Some(segment) = reader::holding(&self.segments, self.position).map(Arc::clone) else {
            let fault = Fault { position: self.position, what: "no segment holds this".into() };
            return Err(Error::Damaged(damage_at(&self.segments, page, fault)));
        };
        let first = segment.first + page.bytes();
        if self.position < first {
            self.position = first;
            return Ok(None);
        }
        let start = page.start_of(self.position);
        let mut bytes = vec![0; page.len()];
        segment.read(&mut bytes, start - segment.first)?;
        if let Some(stored_len) = record::claimed_len(&bytes)
            && stored_len > page.capacity()
        {
            let run_len = page.run_pages(stored_len) * page.len();
            // A length that exceeds the segment is a fault of the record, which parsing reports.
            if run_len as u64 <= segment.end() - start {
                bytes.resize(run_len, 0);
                let rest = bytes.get_mut(page.len()..).unwrap_or_default();
                segment.read(rest, start - segment.first + page.bytes())?;
            }
        }
        Ok(Some(Unit { segment, start, bytes }))
    }
}

impl Iterator for Leaves<'_> {
    type Item = Result<Leaf>;

    fn next(&mut self) -> Option<Self::Item> {
        let taken = self.next_with(|unit, within, view| (Lsn(unit.start + within as u64), view.hash));
        let end = Lsn(self.position);
        if taken.is_err() {
            self.position = self.limit;
        }
        taken.map(|taken| taken.map(|(lsn, hash)| Leaf { lsn, end, hash })).transpose()
    }
}
