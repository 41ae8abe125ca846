//! Evidence after the last good commit that durable bytes have changed.
//!
//! 1. A record counts as evidence only if its CRC, seeded with the database's random id, matches in its place: text
//!    stored in the log cannot pass as a record.
//! 2. A record is no evidence for bytes after itself.

use super::{Opening, Stop};
use crate::error::{Damage, Result};
use crate::log::commit::{Close, Commit};
use crate::log::fault::Fault;
use crate::log::segment::{HeaderState, Segment};
use crate::log::writer::MAX_AHEAD;
use crate::log::{Lsn, damage_at};
use crate::record::{self, ALIGNMENT, KIND_CLOSE, KIND_COMMIT, Parsed, Place};
use crate::zeros;

/// The findings after the position at which checking ended.
#[derive(Debug)]
pub(super) struct Behind {
    /// The position after the last byte that is not zero.
    pub(super) end: u64,
    /// The greatest position that a record states as durable, and that record's description.
    pub(super) synced: Option<(u64, String)>,
    /// The last segment with a valid header.
    pub(super) header: Option<(u64, u64)>,
    pub(super) commits: u64,
}

impl Opening {
    /// Reads everything from the position at which checking ended.
    pub(super) fn look_behind(&self, stop: &Stop) -> Result<Behind> {
        let mut behind = Behind { end: stop.position, synced: None, header: None, commits: 0 };
        // If no writer started after the close record, nothing is after it, and the search can be skipped. It may not
        // be skipped otherwise: the remains of a torn append after a close record may begin with zeros.
        let closed = self.good.closed && stop.what.is_none() && self.good.position == stop.position;
        let confirmed = self.options.closed_hint && self.options.durable_hint == Some(Lsn(stop.position));
        let later = self.segments.get(self.good_segment + 1..).unwrap_or_default();
        if closed && confirmed && later.iter().all(|segment| segment.header == HeaderState::Blank) {
            return Ok(behind);
        }
        for segment in self.segments.iter().filter(|segment| segment.end() > stop.position) {
            let begins_here = stop.position <= segment.first;
            if begins_here && segment.header != HeaderState::Blank {
                behind.end = behind.end.max(segment.first + self.geometry.page.bytes());
                if segment.valid_header().is_some() {
                    behind.header = Some((segment.first, segment.number));
                }
            }
            self.search(segment, stop.position.max(segment.first), stop, &mut behind)?;
        }
        Ok(behind)
    }

    /// Searches a segment from a position for bytes that are not zero and for records that state a durable position.
    /// Without a fault so far, a run of zeros as long as a writer may be ahead ends the search.
    fn search(&self, segment: &Segment, from: u64, stop: &Stop, behind: &mut Behind) -> Result<()> {
        let page = self.geometry.page;
        let end = segment.first + segment.len.min(segment.file_len);
        let mut start = page.start_of(from);
        let mut bytes = vec![0; page.len()];
        while start < end {
            let known = behind.end.max(stop.position).max(segment.first);
            if stop.what.is_none() && start > known.saturating_add(MAX_AHEAD as u64 + page.bytes()) {
                break;
            }
            let len = page.bytes().min(end - start) as usize;
            let Some(bytes) = bytes.get_mut(..len) else {
                break;
            };
            segment.read(bytes, start - segment.first)?;
            let skip = from.saturating_sub(start) as usize;
            if let Some(last) = zeros::last_used(bytes).filter(|&last| last >= skip) {
                behind.end = behind.end.max(start + last as u64 + 1);
                for at in (skip.next_multiple_of(ALIGNMENT)..=last).step_by(ALIGNMENT) {
                    let rest = bytes.get(at..).unwrap_or_default();
                    self.note_statement(segment, start + at as u64, rest, behind);
                }
            }
            start += page.bytes();
        }
        Ok(())
    }

    /// Notes the durable position of an intact commit or close record at `position`, if there is one.
    fn note_statement(&self, segment: &Segment, position: u64, bytes: &[u8], behind: &mut Behind) {
        let own = matches!(bytes.get(4), Some(&(KIND_COMMIT | KIND_CLOSE)));
        if !own || record::claimed_len(bytes).is_none() {
            return;
        }
        let place = Place { segment: segment.number, offset: position - segment.first };
        let Parsed::Record(view) = record::parse(bytes, &self.geometry.seed, place) else {
            return;
        };
        let (synced, name) = match view.kind {
            KIND_COMMIT => match Commit::decode(view.payload) {
                Some(commit) => {
                    behind.commits += 1;
                    (commit.synced, format!("commit {}", commit.number))
                }
                None => return,
            },
            _ => match Close::decode(view.payload) {
                Some(close) => (close.synced, "the close record".into()),
                None => return,
            },
        };
        if synced <= position && behind.synced.as_ref().is_none_or(|(furthest, _)| *furthest < synced) {
            behind.synced = Some((synced, format!("{name} at position {position}")));
        }
    }

    /// The damage, if durable bytes have changed.
    pub(super) fn damage(&self, stop: &Stop, behind: &Behind) -> Option<Damage> {
        let page = self.geometry.page;
        let what = stop.what.clone().unwrap_or_else(|| "the bytes here are zero".into());
        let at = |position, what| Some(damage_at(&self.segments, page, Fault { position, what }));
        if let Some((synced, name)) = &behind.synced
            && *synced > self.good.position
        {
            return at(stop.position, format!("{what}, but {name} states that everything before {synced} was durable"));
        }
        if let Some((first, number)) = behind.header
            && first > stop.position
        {
            return at(
                stop.position,
                format!("{what}, but segment {number} was begun after this position was durable"),
            );
        }
        if self.durable > self.good.position {
            return at(stop.position, format!("{what}, but everything before {} was durable", self.durable));
        }
        let cut = self.segments.iter().find(|segment| self.was_cut(segment))?;
        let what = format!("the file has {} bytes, which no segment that was written here can have", cut.file_len);
        Some(cut.damage(cut.first + cut.len.min(cut.file_len), page, what))
    }

    /// True if a segment's file has another length than it was created with, which this program never changes.
    fn was_cut(&self, segment: &Segment) -> bool {
        let page = self.geometry.page.bytes();
        match &segment.header {
            HeaderState::Valid(header) => segment.file_len != header.len,
            _ => segment.file_len <= page || !segment.file_len.is_multiple_of(page),
        }
    }
}
