//! Reading the end of a record's payload through a map of its segment, for bytes that are read at random and often.
//!
//! [`PayloadEnds::find`] verifies a record, and gives the end of its payload and its place. A read by place trusts that
//! and verifies nothing: it copies bytes. Of a record that was erased meanwhile these are zeros.
//!
//! Cost: finding copies the record and computes its CRC.

use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;

use super::floor::Floor;
use super::options::OpenOptions;
use super::position::Lsn;
use super::reader::{self, SegmentTable};
use super::segment::Segment;
use super::writer::Geometry;
use crate::chain::Hash;
use crate::error::{Error, Result};
use crate::record::{self, ALIGNMENT, FLAG_REDACTED, RecordView};
use crate::recovery;
use crate::vfs::{LiveMap, Vfs};

/// The ends of the payloads in a log, in the segments that it has now.
#[derive(Clone, Debug)]
pub struct PayloadEnds {
    geometry: Geometry,
    segments: Arc<Vec<Arc<Segment>>>,
}

impl PayloadEnds {
    pub(super) fn of(geometry: &Geometry, table: &SegmentTable) -> Self {
        Self { geometry: geometry.clone(), segments: table.present() }
    }

    /// Those of the log in `dir` as its files are now, for a program that is about to open it.
    ///
    /// # Errors
    /// [`Error::MissingSegment`], [`Error::Damaged`] for a damaged first header, [`Error::NewerFormat`], [`Error::Io`].
    pub fn open(vfs: &Arc<dyn Vfs>, dir: &Path) -> Result<Self> {
        let names = vfs.list(dir).map_err(Error::io(dir, "list"))?;
        let floor = Floor::read(&**vfs, dir)?;
        let segments = recovery::load_segments(vfs, dir, &names, floor.as_ref().map(|(floor, _)| floor), true)?;
        let geometry = recovery::check_headers(&segments, &OpenOptions { read_only: true, ..OpenOptions::default() })?;
        Ok(Self { geometry, segments: Arc::new(segments) })
    }

    /// Verifies the record at `lsn`, which is in its file, and copies the last bytes of its payload to `out`. Returns
    /// its type, and its place.
    ///
    /// # Errors
    /// [`Error::NoRecord`] for a position that holds none, an erased one, or one with a shorter payload, and for one
    /// that has no [`Place`]; [`Error::Damaged`] for bytes that are no record; [`Error::Io`].
    pub fn find(&self, lsn: Lsn, out: &mut [u8]) -> Result<(u8, Place)> {
        let none = |why: &str| Error::NoRecord { lsn, why: why.into() };
        let segment = reader::holding(&self.segments, lsn.0).ok_or_else(|| none("no segment holds it"))?;
        let map = segment.live()?;
        let read = |buf: &mut [u8], offset| match map.copy(offset, buf) {
            true => Ok(()),
            false => Err(Error::Damaged(segment.damage(lsn.0, self.geometry.page, "the file ends before it"))),
        };
        let take = |view: RecordView<'_>| {
            if view.flags & FLAG_REDACTED != 0 {
                return None;
            }
            let start = view.payload.len().checked_sub(out.len())?;
            out.copy_from_slice(view.payload.get(start..)?);
            Some((view.kind, Place::of(segment.number, lsn.0 - segment.first, view.payload.len())?))
        };
        // A hash is given, since computing it would take longer than all else.
        let wanted = (lsn, Some(Hash::default()));
        let found = reader::read_in(&self.geometry, (segment, segment.end()), wanted, read, take)?;
        found.ok_or_else(|| none("it was erased, is shorter, or lies too far behind the beginning"))
    }

    /// Copies the last bytes of the payload of the record at `place` to `out`. False if the log no longer has it, or
    /// its payload is shorter.
    #[must_use]
    pub fn read(&self, place: Place, out: &mut [u8]) -> bool {
        let map = self.map(place);
        out.len() <= place.payload_len()
            && map.is_some_and(|(map, offset)| map.copy(offset + place.end(out.len()), out))
    }

    /// Announces that so many last bytes of the payload of the record at `place` will be read soon.
    pub fn prefetch(&self, place: Place, len: usize) {
        if let Some((map, offset)) = self.map(place) {
            map.prefetch(offset + place.end(len), len);
        }
    }

    /// The map of the segment that holds the record at `place`, and the record's offset in it.
    fn map(&self, place: Place) -> Option<(&dyn LiveMap, u64)> {
        let first = self.segments.first()?.number;
        let at = usize::try_from(place.segment().checked_sub(first)?).ok()?;
        let segment = self.segments.get(at).filter(|segment| segment.number == place.segment())?;
        Some((segment.live().ok()?, place.offset()))
    }
}

/// The place of a record that was found in a log: the number of its segment, the offset in that in multiples of 8, and
/// the length of its payload, in these numbers of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(NonZero<u64>);

const SEGMENT_BITS: u32 = 14;
const OFFSET_BITS: u32 = 26;
const LENGTH_BITS: u32 = u64::BITS - SEGMENT_BITS - OFFSET_BITS;

impl Place {
    /// `None` for what does not fit: a payload of 16 MiB, an offset from 512 MiB on, a segment from number 16,384 on.
    fn of(segment: u64, offset: u64, payload_len: usize) -> Option<Self> {
        let (eighths, len) = (offset / ALIGNMENT as u64, payload_len as u64);
        let fits = segment >> SEGMENT_BITS == 0 && eighths >> OFFSET_BITS == 0 && len >> LENGTH_BITS == 0;
        let number = NonZero::new((segment << OFFSET_BITS | eighths) << LENGTH_BITS | len);
        number.filter(|_| fits && offset.is_multiple_of(ALIGNMENT as u64)).map(Self)
    }

    /// The place as a number.
    #[must_use]
    pub fn to_number(self) -> NonZero<u64> {
        self.0
    }

    /// The place of a number that [`Self::to_number`] gave.
    #[must_use]
    pub fn from_number(number: NonZero<u64>) -> Self {
        Self(number)
    }

    fn segment(self) -> u64 {
        self.0.get() >> (OFFSET_BITS + LENGTH_BITS)
    }

    /// The offset of the record in its segment.
    fn offset(self) -> u64 {
        (self.0.get() >> LENGTH_BITS & ((1 << OFFSET_BITS) - 1)) * ALIGNMENT as u64
    }

    fn payload_len(self) -> usize {
        (self.0.get() & ((1 << LENGTH_BITS) - 1)) as usize
    }

    /// The offset in the record of the last `len` bytes of the payload.
    fn end(self, len: usize) -> u64 {
        (record::PAYLOAD_AT + self.payload_len() - len.min(self.payload_len())) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_what_it_was_made_of_or_none() {
        for (segment, offset, len) in [(1, 4096, 0), (16_383, (512 << 20) - 8, (16 << 20) - 1), (7, 8, 1)] {
            let place = Place::of(segment, offset, len).unwrap();
            assert_eq!((place.segment(), place.offset(), place.payload_len()), (segment, offset, len));
        }
        for (segment, offset, len) in [(16_384, 8, 1), (1, 512 << 20, 1), (1, 8, 16 << 20), (1, 9, 1), (0, 0, 0)] {
            assert_eq!(Place::of(segment, offset, len), None, "{segment} {offset} {len}");
        }
    }
}
