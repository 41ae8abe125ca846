//! Reading one record by its position.

use std::sync::{Arc, PoisonError, RwLock};

use super::Lsn;
use super::segment::Segment;
use super::writer::Geometry;
use crate::chain::Hash;
use crate::error::{Error, Result};
use crate::record::{self, ALIGNMENT, FLAG_REDACTED, PREFIX_LEN, Parsed, Place, Record, RecordView};

/// The length that is read before the record's length is known. Most records are shorter.
const FIRST_READ_LEN: usize = 2 << 10;

/// The segments in use, ascending.
#[derive(Debug)]
pub(crate) struct SegmentTable(RwLock<Arc<Vec<Arc<Segment>>>>);

impl SegmentTable {
    pub(crate) fn new(segments: Vec<Arc<Segment>>) -> Self {
        Self(RwLock::new(Arc::new(segments)))
    }

    pub(crate) fn push(&self, segment: Arc<Segment>) {
        Arc::make_mut(&mut *self.0.write().unwrap_or_else(PoisonError::into_inner)).push(segment);
    }

    /// Removes the segments before this number.
    pub(crate) fn retire(&self, first: u64) {
        let mut segments = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut *segments).retain(|segment| segment.number >= first);
    }

    /// Replaces all segments, for a reader that follows another process.
    pub(crate) fn replace(&self, segments: Vec<Arc<Segment>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(segments);
    }

    pub(crate) fn all(&self) -> Vec<Arc<Segment>> {
        self.present().to_vec()
    }

    /// The segments as they are now.
    pub(crate) fn present(&self) -> Arc<Vec<Arc<Segment>>> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The segment that contains a position.
    pub(crate) fn of(&self, position: u64) -> Option<Arc<Segment>> {
        let segments = self.0.read().unwrap_or_else(PoisonError::into_inner);
        holding(&segments, position).map(Arc::clone)
    }
}

/// The segment that contains a position.
pub(super) fn holding(segments: &[Arc<Segment>], position: u64) -> Option<&Arc<Segment>> {
    let after = segments.partition_point(|segment| segment.first <= position);
    segments.get(after.checked_sub(1)?).filter(|segment| position < segment.end())
}

/// The type and payload of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The type.
    pub kind: u8,
    /// The bytes; empty if they were erased.
    pub bytes: Vec<u8>,
    /// True if they were erased.
    pub redacted: bool,
}

/// Reads the record at `lsn` of a log that ends at `end`.
pub(crate) fn read(geometry: &Geometry, table: &SegmentTable, end: u64, lsn: Lsn) -> Result<Record> {
    read_as(geometry, table, end, lsn, None, |view| view.to_record(lsn))
}

/// Reads the payload of the record at `lsn` without computing its hash, which would cost more than everything else.
pub(crate) fn read_payload(geometry: &Geometry, table: &SegmentTable, end: u64, lsn: Lsn) -> Result<Payload> {
    let take = |view: RecordView<'_>| Payload {
        kind: view.kind,
        bytes: view.payload.to_vec(),
        redacted: view.flags & FLAG_REDACTED != 0,
    };
    read_as(geometry, table, end, lsn, Some(Hash::default()), take)
}

/// Returns the result of `take` for the record at `lsn`, whose hash may be given.
fn read_as<T>(
    geometry: &Geometry,
    table: &SegmentTable,
    end: u64,
    lsn: Lsn,
    hash: Option<Hash>,
    take: impl Fn(RecordView<'_>) -> T,
) -> Result<T> {
    let read = read_once(geometry, table, end, lsn, hash, &take);
    if let Err(Error::Damaged(_)) = read {
        // The record may have been read while it was being erased.
        geometry.erasing.wait();
        return read_once(geometry, table, end, lsn, hash, &take);
    }
    read
}

/// Replaces redacted records by their replacements.
pub(crate) fn fetch_replacements(geometry: &Geometry, table: &SegmentTable, records: &mut [Record]) -> Result<()> {
    for record in records.iter_mut() {
        if let Some(lsn) = record.replacement {
            let mut replacement = read(geometry, table, u64::MAX, lsn)?;
            // A replacement may have been erased too; its own replacement is always at a later position.
            while let Some(next) = replacement.replacement.filter(|next| *next > replacement.lsn) {
                replacement = read(geometry, table, u64::MAX, next)?;
            }
            (record.kind, record.payload) = (replacement.kind, replacement.payload);
        }
    }
    Ok(())
}

fn read_once<T>(
    geometry: &Geometry,
    table: &SegmentTable,
    end: u64,
    lsn: Lsn,
    hash: Option<Hash>,
    take: impl Fn(RecordView<'_>) -> T,
) -> Result<T> {
    let none = |why: &str| Error::NoRecord { lsn, why: why.into() };
    if lsn.0 >= end {
        return Err(none("the log ends before it"));
    }
    let segment = table.of(lsn.0).ok_or_else(|| none("no segment holds it"))?;
    read_in(geometry, (&segment, end), (lsn, hash), |buf, offset| segment.read(buf, offset), take)
}

/// Returns the result of `take` for the record at `lsn`, whose hash may be given. It is in this segment, of which
/// `read` fills a buffer from an offset, and in a log that ends at `end`.
pub(super) fn read_in<T>(
    geometry: &Geometry,
    (segment, end): (&Segment, u64),
    (lsn, hash): (Lsn, Option<Hash>),
    read: impl Fn(&mut [u8], u64) -> Result<()>,
    take: impl FnOnce(RecordView<'_>) -> T,
) -> Result<T> {
    let none = |why: &str| Error::NoRecord { lsn, why: why.into() };
    if !lsn.0.is_multiple_of(ALIGNMENT as u64) {
        return Err(none("records start on multiples of 8"));
    }
    let page = geometry.page;
    let offset = lsn.0 - segment.first;
    if offset < page.bytes() {
        return Err(none("it lies in the header of a segment"));
    }
    let room = page.capacity().saturating_sub(page.within(lsn.0));
    if room < PREFIX_LEN {
        return Err(none("it lies in the footer of a log page"));
    }
    let mut first = [0; FIRST_READ_LEN];
    let first = first.get_mut(..room.min(FIRST_READ_LEN)).unwrap_or_default();
    read(first, offset)?;
    let known = first.len();
    let mut whole = Vec::new();
    let bytes = match record::claimed_len(first) {
        Some(stored_len) if stored_len > known && fits(geometry, segment, lsn.0, stored_len, end) => {
            whole.resize(stored_len, 0);
            let (front, rest) = whole.split_at_mut(known);
            front.copy_from_slice(first);
            read(rest, offset + known as u64)?;
            &*whole
        }
        _ => &*first,
    };
    match record::parse_hashed(bytes, &geometry.seed, Place { segment: segment.number, offset }, hash) {
        Parsed::Record(view) => Ok(take(view)),
        Parsed::Blank => Err(Error::Damaged(segment.damage(lsn.0, page, "a record was here and is zero now"))),
        Parsed::Fault(what) => Err(Error::Damaged(segment.damage(lsn.0, page, what))),
    }
}

/// True if a record of this length can be at this position: within a page, or alone in a run of pages.
fn fits(geometry: &Geometry, segment: &Segment, position: u64, stored_len: usize, end: u64) -> bool {
    let page = geometry.page;
    let within = page.within(position);
    let in_page = within + stored_len <= page.capacity();
    let run_len = (page.run_pages(stored_len) * page.len()) as u64;
    let in_run = within == 0 && run_len <= segment.end() - position;
    (in_page || in_run) && stored_len as u64 <= end - position
}
