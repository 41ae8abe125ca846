//! The hashes of records in order, and a record's number among all: what the tree over the log is made of.
//!
//! A page's footer, or the header of its segment, states how many records come before it. So the number of a record is
//! found in its own page, whatever the log's length. Reading hashes on from a place goes page by page and checks each
//! record's CRC and nothing more: that the pages form a chain is the business of opening and of [`Log::verify`].

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

/// A record as it stands in the log, with all that its hash is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// Bytes 0 to 7 of the record: length, type, flags, mark.
    pub header: [u8; 8],
    /// Salt and payload; none when it was redacted.
    pub content: Option<([u8; SALT_LEN], Vec<u8>)>,
    /// Its hash `r`.
    pub hash: Hash,
}

/// The records from a place on: see [`Log::leaves`]. Ends after the first error.
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
    /// The records from `from` on, a position where one begins or where one ends, up to the one that ends at `to` or
    /// first after it.
    #[must_use]
    pub fn leaves(&self, from: Lsn, to: Lsn) -> Leaves<'_> {
        let limit = to.0.min(self.group.written());
        Leaves { log: self, segments: self.table.all(), position: from.0, limit, unit: None }
    }

    /// The same, as far as it is known without reading: nothing where this log was not the one that appended them all,
    /// or where they were appended too long ago.
    #[must_use]
    pub fn recent_leaves(&self, from: Lsn, to: Lsn) -> Option<Vec<Leaf>> {
        let writer = self.writer.as_ref()?;
        writer.lock().unwrap_or_else(PoisonError::into_inner).recent_leaves(from, to)
    }

    /// How many records stand before a position where one begins or ends: the number of the record at `lsn`, counted
    /// from 0; or, at the end of a commit, the size of the tree then.
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
            after.checked_sub(1).and_then(|index| segments.get(index)).ok_or_else(|| none("it is no place"))?;
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

    /// The record at `lsn` with all that its hash is over.
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
        stored?.flatten().ok_or_else(|| Error::NoRecord { lsn, why: "no record begins there".into() })
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
    /// Moves behind the next record and gives what `look` makes of it.
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
                // One that is being erased may be read half old, half new.
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
                        // Left over at the end of a segment, where the next record needed more.
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

    /// Reads the page or run that the position lies in; none where it had to be moved to one first.
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
            // A length that leaves the segment is a fault of the record, found when it is parsed.
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
