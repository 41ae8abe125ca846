//! Appending: a transaction is laid out completely in memory, then written.
//!
//! The layout assigns every record a position, seals full pages and begins new segments, on a copy of the tip. It
//! detects everything for which a transaction may be refused, such as its size and the room on the disk, before a byte
//! is written. Then one write per touched segment follows, almost always one in total; a short transaction is buffered
//! until it is needed in the file ([`GroupCommit`]).
//!
//! 1. Before a segment's header is written, everything in the segment before it is synced.
//! 2. A failed write or sync poisons the log; a refusal changes nothing.
//! 3. At most [`MAX_AHEAD`] bytes are appended but not synced. So recovery need not read a mostly empty segment to its
//!    end.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use super::commit::{Close, Commit, STORED_CLOSE_LEN, STORED_COMMIT_LEN};
use super::draft::{Prepared, Salt, salt};
use super::erasure::{Erasing, Erasure, Intent, Redacted, STORED_DONE_LEN};
use super::group_commit::GroupCommit;
use super::leaf::Leaf;
use super::prepare::{Preparer, Spare};
use super::segment::{Segment, SegmentHeader};
use super::tip::Tip;
use super::{CommitNo, Lsn, SegmentTable};
use crate::chain::{self, Hash, TransactionHash};
use crate::error::{Error, Result};
use crate::features::Features;
use crate::log_page::{FOOTER_LEN, Footer, PageSize};
use crate::record::{self, CrcSeed, KIND_CLOSE, KIND_COMMIT, KIND_REDACT, KIND_REDACTED, Place};
use crate::vfs::VfsFile;

/// The greatest capacity of a layout buffer that is kept for reuse.
const KEPT_BUFFER_LEN: usize = 1 << 20;

/// The greatest number of bytes between the durable position and the end of the log.
pub(crate) const MAX_AHEAD: usize = 4 << 20;

/// The number of newest leaves that are kept in memory, so that a checkpoint need not read and hash the records again.
const RECENT_LEAVES: usize = 1 << 15;

/// A segment is at most this part of the log before it,
const SHARE_OF_LOG: u64 = 16;
/// but may have so many bytes.
const EARLY_SEGMENT_LEN: u64 = 1 << 20;

/// The properties of a log that do not change while it is open.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    pub(crate) database: [u8; 16],
    pub(crate) page: PageSize,
    pub(crate) seed: CrcSeed,
    pub(crate) erasing: Arc<Erasing>,
}

impl Geometry {
    pub(crate) fn new(database: [u8; 16], page: PageSize) -> Self {
        Self { database, page, seed: CrcSeed::new(&database), erasing: Arc::default() }
    }
}

/// The result of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The transaction's number.
    pub commit: CommitNo,
    /// Its clock: the given one, or that of the previous transaction if it is later.
    pub time_us: i64,
    /// The positions of its records, in the given order.
    pub lsns: Vec<Lsn>,
    /// The position after its commit record, for [`super::Log::sync_to`].
    pub end: Lsn,
}

/// The state of appending.
#[derive(Debug)]
pub(crate) struct Writer {
    geometry: Geometry,
    tip: Tip,
    segment: Arc<Segment>,
    /// The segment's file. Writes and syncs use the same handle, so that no failure is missed.
    file: Arc<dyn VfsFile>,
    preparer: Preparer,
    max_segment_len: u64,
    buffer: Vec<u8>,
    /// The leaves of the newest records of this writer: all from `recent_from` on.
    recent: VecDeque<Leaf>,
    recent_from: Lsn,
    closed: bool,
}

/// Consecutive bytes for one segment.
#[derive(Debug)]
struct Piece {
    segment: Arc<Segment>,
    file: Arc<dyn VfsFile>,
    start: u64,
    bytes: Vec<u8>,
    /// The prepared file of a new segment, to be returned if the transaction is refused.
    spare: Option<Spare>,
}

impl Writer {
    pub(crate) fn new(
        geometry: Geometry,
        tip: Tip,
        segment: Arc<Segment>,
        file: Arc<dyn VfsFile>,
        preparer: Preparer,
        max_segment_len: u64,
    ) -> Self {
        let (buffer, recent) = (Vec::new(), VecDeque::new());
        let recent_from = Lsn(if tip.records == 0 { 0 } else { tip.position });
        Self { geometry, tip, segment, file, preparer, max_segment_len, buffer, recent, recent_from, closed: false }
    }

    pub(crate) fn tip(&self) -> &Tip {
        &self.tip
    }

    /// Goes on at `tip`, in `segment`: another handle appended up to there.
    pub(crate) fn go_on_at(&mut self, tip: Tip, segment: Arc<Segment>, file: Arc<dyn VfsFile>) {
        self.recent.clear();
        self.recent_from = Lsn(tip.position);
        (self.tip, self.segment, self.file) = (tip, segment, file);
    }

    /// True if other handles append to the log, too.
    pub(crate) fn is_shared(&self) -> bool {
        self.preparer.is_shared()
    }

    /// Prepares no segment ahead of its use from now on.
    pub(crate) fn share(&mut self) {
        self.preparer.share();
    }

    /// The leaves from `from` on, a position at which a record begins or ends, up to the one that ends at `to`; `None`
    /// if the first of them is no longer kept.
    pub(crate) fn recent_leaves(&self, from: Lsn, to: Lsn) -> Option<Vec<Leaf>> {
        if from < self.recent_from {
            return None;
        }
        let [start, end] = [from, to].map(|at| self.recent.partition_point(|leaf| leaf.lsn < at));
        Some(self.recent.range(start..end.max(start)).copied().collect())
    }

    /// Appends one transaction.
    pub(crate) fn append(
        &mut self,
        group: &GroupCommit,
        table: &SegmentTable,
        prepared: &Prepared,
        time_us: i64,
    ) -> Result<Appended> {
        let (appended, _) = self.append_redaction(group, table, prepared, Vec::new(), time_us)?;
        Ok(appended)
    }

    /// Appends one transaction that names records to erase, each with its replacement among the transaction's records.
    pub(crate) fn append_redaction(
        &mut self,
        group: &GroupCommit,
        table: &SegmentTable,
        prepared: &Prepared,
        drafts: Vec<(Erasure, Option<usize>)>,
        time_us: i64,
    ) -> Result<(Appended, Vec<Erasure>)> {
        let mut lsns = Vec::with_capacity(prepared.len());
        let mut erasures = Vec::with_capacity(drafts.len());
        let synced = group.durable();
        let appended = self.extend(group, table, |layout| {
            let mut hash = TransactionHash::new();
            for (encoded, r) in prepared.records() {
                layout.make_room(encoded.len())?;
                lsns.push(Lsn(layout.put(encoded, r)));
                hash.push(&r);
            }
            let number = layout.tip.commit.wrapping_add(1);
            for (erasure, replacement) in drafts {
                let replacement = replacement.and_then(|replacement| lsns.get(replacement)).map_or(0, |lsn| lsn.0);
                erasures.push(Erasure { replacement, ..erasure });
            }
            let intents = Intent::payloads(number, &erasures);
            for payload in &intents {
                layout.make_room(record::stored_len(payload.len()))?;
                hash.push(&layout.put_own(KIND_REDACT, &salt()?, payload));
            }
            layout.make_room(STORED_COMMIT_LEN)?;
            let mut commit = Commit {
                number,
                record_count: u32::try_from(prepared.len() + intents.len()).unwrap_or(u32::MAX),
                time_us: time_us.max(layout.tip.time_us),
                synced,
                transaction: hash.finish(),
                head: Hash::default(),
            };
            commit.head = layout.tip.head_of(&commit);
            layout.put_own(KIND_COMMIT, &prepared.commit_salt, &commit.encode());
            layout.tip.committed(&commit);
            Ok((commit.number, commit.time_us))
        })?;
        let (number, time_us) = appended;
        let appended = Appended { commit: CommitNo(number), time_us, lsns, end: Lsn(self.tip.position) };
        Ok((appended, erasures))
    }

    /// Appends the done record of a redaction. Everything before must be durable.
    pub(crate) fn redacted(&mut self, group: &GroupCommit, table: &SegmentTable, commit: u64) -> Result<()> {
        let synced = group.durable();
        let salt = salt()?;
        self.extend(group, table, |layout| {
            layout.make_room(STORED_DONE_LEN)?;
            layout.put_own(KIND_REDACTED, &salt, &Redacted { commit, synced }.encode());
            layout.tip.synced = layout.tip.synced.max(synced);
            Ok(())
        })
    }

    /// Seals the open page, unless it is empty.
    pub(crate) fn seal(&mut self, group: &GroupCommit, table: &SegmentTable) -> Result<()> {
        self.extend(group, table, |layout| {
            if layout.tip.open.count() > 0 {
                layout.seal_page();
            }
            Ok(())
        })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Removes the segments that were prepared and not used. Nothing is appended afterwards.
    pub(crate) fn discard_spares(&mut self) {
        self.closed = true;
        self.preparer.discard();
    }

    /// Writes the close record, unless the log ends in one. Everything before it must be durable.
    pub(crate) fn close(&mut self, group: &GroupCommit, table: &SegmentTable) -> Result<()> {
        if self.closed || self.tip.closed {
            self.closed = true;
            return Ok(());
        }
        let synced = group.durable();
        let salt = salt()?;
        self.extend(group, table, |layout| {
            layout.make_room(STORED_CLOSE_LEN)?;
            let close = Close { number: layout.tip.commit, synced, head: layout.tip.head };
            layout.put_own(KIND_CLOSE, &salt, &close.encode());
            layout.tip.closed(&close);
            Ok(())
        })?;
        self.closed = true;
        Ok(())
    }

    /// Lays out what `fill` adds, writes or buffers it, and moves the tip.
    fn extend<T>(
        &mut self,
        group: &GroupCommit,
        table: &SegmentTable,
        fill: impl FnOnce(&mut Layout<'_>) -> Result<T>,
    ) -> Result<T> {
        if self.closed {
            return Err(Error::Closed);
        }
        group.check()?;
        let first = Piece {
            segment: Arc::clone(&self.segment),
            file: Arc::clone(&self.file),
            start: self.tip.position,
            bytes: mem::take(&mut self.buffer),
            spare: None,
        };
        let mut layout = Layout {
            geometry: &self.geometry,
            tip: self.tip.clone(),
            done: Vec::new(),
            piece: first,
            leaves: Vec::new(),
            preparer: &mut self.preparer,
            max_segment_len: self.max_segment_len,
        };
        let filled = fill(&mut layout);
        let Layout { tip, mut done, piece, leaves, .. } = layout;
        done.push(piece);
        let is_held = self.may_be_held(group, &done);
        let result = match filled {
            Ok(value) if is_held => Ok(value),
            Ok(value) => self.write(group, &done).map(|()| value),
            Err(refusal) => {
                self.keep_spares(&mut done);
                Err(refusal)
            }
        };
        if result.is_ok() {
            self.keep_leaves(leaves);
            self.advance(table, tip, &done);
            match done.first() {
                Some(only) if is_held => group.hold(&only.bytes),
                _ => group.publish(&self.file, &self.segment, self.tip.position),
            }
        }
        self.keep_buffer(done);
        result
    }

    fn write(&self, group: &GroupCommit, pieces: &[Piece]) -> Result<()> {
        group.write_held()?;
        let mut previous: Option<&Piece> = None;
        let mut ahead = self.ahead(group);
        let mut begun = false;
        for piece in pieces {
            if let Some(previous) = previous {
                group.sync_file(&previous.file, &previous.segment.path)?;
                ahead = 0;
            }
            let mut offset = piece.start - piece.segment.first;
            for part in piece.bytes.chunks(MAX_AHEAD) {
                if ahead.saturating_add(part.len()) > MAX_AHEAD {
                    match begun {
                        true => group.sync_file(&piece.file, &piece.segment.path)?,
                        false => group.sync_to(self.tip.position)?,
                    }
                    ahead = 0;
                }
                let written = piece.file.write_at(part, offset);
                written.map_err(Error::io(&piece.segment.path, "write")).map_err(|error| group.poison(&error))?;
                ahead += part.len();
                offset += part.len() as u64;
                begun = true;
            }
            previous = Some(piece);
        }
        Ok(())
    }

    /// The number of bytes that are appended but not synced.
    fn ahead(&self, group: &GroupCommit) -> usize {
        usize::try_from(self.tip.position.saturating_sub(group.durable())).unwrap_or(usize::MAX)
    }

    /// True if the pieces may be buffered: one short piece in the present segment, not too far ahead of the durable
    /// position.
    fn may_be_held(&self, group: &GroupCommit, pieces: &[Piece]) -> bool {
        let page = self.geometry.page;
        let fits = |len| group.may_hold(len, page) && self.ahead(group).saturating_add(len) <= MAX_AHEAD;
        matches!(pieces, [only] if fits(only.bytes.len()))
    }

    fn advance(&mut self, table: &SegmentTable, tip: Tip, pieces: &[Piece]) {
        for piece in pieces.iter().skip(1) {
            piece.segment.files().put(piece.segment.number, Arc::clone(&piece.file));
            table.push(Arc::clone(&piece.segment));
            (self.segment, self.file) = (Arc::clone(&piece.segment), Arc::clone(&piece.file));
        }
        self.tip = tip;
        // Half full: the next one will be needed.
        if self.segment.end() - self.tip.position < self.segment.len / 2 {
            let (len, end) = (self.segment.len, self.segment.end());
            let len = next_len(len, end, self.max_segment_len, self.geometry.page);
            self.preparer.prefetch(self.segment.number + 1, len);
        }
    }

    fn keep_leaves(&mut self, leaves: Vec<Leaf>) {
        self.recent.extend(leaves);
        let too_many = self.recent.len().saturating_sub(RECENT_LEAVES);
        if let Some(last) = self.recent.drain(..too_many).next_back() {
            self.recent_from = last.end;
        }
    }

    fn keep_spares(&mut self, pieces: &mut [Piece]) {
        for piece in pieces {
            if let Some(spare) = piece.spare.take() {
                self.preparer.give_back(piece.segment.number, spare);
            }
        }
    }

    fn keep_buffer(&mut self, pieces: Vec<Piece>) {
        let mut buffer = pieces.into_iter().next().map(|piece| piece.bytes).unwrap_or_default();
        buffer.clear();
        buffer.shrink_to(KEPT_BUFFER_LEN);
        self.buffer = buffer;
    }
}

/// The length of the segment after one that ends at `end` and is `len` bytes long: double, up to a share of the log so
/// far, so that the end of a log that is not used yet stays a small part of it.
fn next_len(len: u64, end: u64, max_len: u64, page: PageSize) -> u64 {
    let share = (end / SHARE_OF_LOG).max(EARLY_SEGMENT_LEN).next_multiple_of(page.bytes());
    len.saturating_mul(2).min(share).min(max_len.max(len))
}

/// A transaction being laid out.
struct Layout<'a> {
    geometry: &'a Geometry,
    tip: Tip,
    done: Vec<Piece>,
    piece: Piece,
    leaves: Vec<Leaf>,
    preparer: &'a mut Preparer,
    max_segment_len: u64,
}

impl Layout<'_> {
    /// Moves to a position with room for a record of this stored length.
    fn make_room(&mut self, stored_len: usize) -> Result<()> {
        let page = self.geometry.page;
        loop {
            let within = page.within(self.tip.position);
            if within > 0 {
                if within + stored_len <= page.capacity() {
                    return Ok(());
                }
                self.seal_page();
                continue;
            }
            let run_len = (page.run_pages(stored_len) * page.len()) as u64;
            if run_len <= self.piece.segment.end() - self.tip.position {
                return Ok(());
            }
            self.begin_segment(run_len)?;
        }
    }

    /// Places an encoded record at the position found by [`Self::make_room`].
    fn put(&mut self, encoded: &[u8], r: Hash) -> u64 {
        let lsn = self.tip.position;
        let start = self.piece.bytes.len();
        self.piece.bytes.extend_from_slice(encoded);
        let place = self.place(lsn);
        record::set_crc(&mut self.piece.bytes[start..], &self.geometry.seed, place);
        self.tip.push(r, encoded.len());
        let mut end = lsn + encoded.len() as u64;
        if encoded.len() > self.geometry.page.capacity() {
            let run_len = self.geometry.page.run_pages(encoded.len()) * self.geometry.page.len();
            end = lsn + run_len as u64;
            self.seal_until(lsn, end);
        }
        self.leaves.push(Leaf { lsn: Lsn(lsn), end: Lsn(end), hash: r });
        lsn
    }

    /// Places a record of the log itself.
    fn put_own(&mut self, kind: u8, salt: &Salt, payload: &[u8]) -> Hash {
        let mut encoded = Vec::with_capacity(record::stored_len(payload.len()));
        let r = record::encode(kind, salt, payload, &mut encoded);
        self.put(&encoded, r);
        r
    }

    fn seal_page(&mut self) {
        let start = self.geometry.page.start_of(self.tip.position);
        self.seal_until(start, start + self.geometry.page.bytes());
    }

    /// Ends the page or run from `start` to `end` with a footer.
    fn seal_until(&mut self, start: u64, end: u64) {
        let used_len = self.tip.position - start;
        let first_record = self.tip.first_of_page();
        let (record_count, root) = (self.tip.open.count() as u32, self.tip.open.root());
        let gap = end - FOOTER_LEN as u64 - self.tip.position;
        let chain = chain::chain(&self.tip.chain, &root);
        self.tip.sealed(end, chain);
        let footer = Footer { record_count, used_len: used_len as u32, first_record, root, chain };
        let place = self.place(end - FOOTER_LEN as u64);
        let padded = self.piece.bytes.len() + gap as usize;
        self.piece.bytes.resize(padded, 0);
        self.piece.bytes.extend_from_slice(&footer.encode(&self.geometry.seed, place));
    }

    /// Begins a new segment with room for `run_len` bytes of pages.
    fn begin_segment(&mut self, run_len: u64) -> Result<()> {
        let page = self.geometry.page;
        let current = &self.piece.segment;
        let (number, first) = (current.number + 1, current.end());
        let len = next_len(current.len, first, self.max_segment_len, page);
        let spare = self.preparer.take(number, len, page.bytes() + run_len)?;
        let header = SegmentHeader {
            features: Features::default(),
            page_size: page.bytes() as u32,
            database: self.geometry.database,
            number,
            first,
            len: spare.len,
            previous_end: self.tip.position,
            records: self.tip.records,
            commit: self.tip.commit,
            time_us: self.tip.time_us,
            chain: self.tip.chain,
        };
        let mut bytes = header.encode_twice();
        bytes.resize(page.len(), 0);
        let files = Arc::clone(current.files());
        let segment = Arc::new(Segment::begin(header, spare.path.clone(), files));
        let next = Piece { segment, file: Arc::clone(&spare.file), start: first, bytes, spare: Some(spare) };
        self.done.push(mem::replace(&mut self.piece, next));
        self.tip.position = first + page.bytes();
        Ok(())
    }

    fn place(&self, position: u64) -> Place {
        Place { segment: self.piece.segment.number, offset: position - self.piece.segment.first }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::NewRecord;
    use crate::log::{Log, LogOptions};
    use crate::vfs::SimVfs;

    #[test]
    fn a_segment_is_a_small_part_of_the_log_before_it() {
        let page = PageSize::new(32 << 10).unwrap();
        let (mut len, mut end) = (256 << 10, 256 << 10);
        while end < 2 << 30 {
            len = next_len(len, end, 64 << 20, page);
            assert!(
                len.is_multiple_of(page.bytes()) && len <= (1 << 20).max(end / 16 + page.bytes()),
                "{len} at {end}"
            );
            end += len;
        }
        assert_eq!(len, 64 << 20);
    }

    /// Types and payloads to append, computed from the tip.
    type Own = fn(&Tip) -> Vec<(u8, Vec<u8>)>;

    /// Appends these records after one commit and returns the fault that reading the log finds.
    fn read_back(own: Own) -> Option<String> {
        let sim = SimVfs::new();
        let log = Log::create(Arc::new(sim.clone()), Path::new("/log"), &LogOptions::new([7; 16])).unwrap();
        log.append(&[NewRecord { kind: 1, payload: vec![1] }], 5).unwrap();
        let fill = |layout: &mut Layout<'_>| {
            for (kind, payload) in own(&layout.tip) {
                layout.make_room(record::stored_len(payload.len()))?;
                layout.put_own(kind, &Salt::default(), &payload);
            }
            Ok(())
        };
        log.writer().unwrap().extend(&log.group, &log.table, fill).unwrap();
        let found = log.scan(Lsn(0)).unwrap().find_map(Result::err);
        // The auditor objects as well, to positions stated as durable.
        drop(log);
        let _ = sim.objections();
        match found {
            Some(Error::Damaged(damage)) => Some(damage.what),
            None => None,
            Some(other) => panic!("{other}"),
        }
    }

    fn close(tip: &Tip) -> Close {
        Close { number: tip.commit, synced: tip.position, head: tip.head }
    }

    fn commit(tip: &Tip) -> Commit {
        let transaction = TransactionHash::new().finish();
        let (number, time_us) = (tip.commit + 1, tip.time_us);
        let stated = Commit { number, record_count: 0, time_us, synced: tip.position, transaction, head: [0; 32] };
        Commit { head: tip.head_of(&stated), ..stated }
    }

    fn done(tip: &Tip) -> Redacted {
        Redacted { commit: tip.commit, synced: tip.position }
    }

    /// Records of the log with valid checksums, and valid or impossible contents.
    #[test]
    fn own_records_that_cannot_be_are_noticed() {
        let sound: [Own; 3] = [
            |tip| vec![(KIND_CLOSE, close(tip).encode().to_vec())],
            |tip| vec![(KIND_COMMIT, commit(tip).encode().to_vec())],
            |tip| vec![(KIND_REDACTED, done(tip).encode().to_vec())],
        ];
        for own in sound {
            assert_eq!(read_back(own), None);
        }
        let wrong: [(Own, &str); 17] = [
            (|_| vec![(0xf7, Vec::new())], "unknown log record type 0xf7"),
            (|_| vec![(KIND_CLOSE, Vec::new())], "invalid layout"),
            (|_| vec![(KIND_COMMIT, Vec::new())], "invalid layout"),
            (|_| vec![(KIND_REDACT, Vec::new())], "invalid layout"),
            (|_| vec![(KIND_REDACTED, Vec::new())], "invalid layout"),
            (|tip| vec![(1, vec![9]), (KIND_CLOSE, close(tip).encode().to_vec())], "inside a transaction"),
            (|tip| vec![(1, vec![9]), (KIND_REDACTED, done(tip).encode().to_vec())], "inside a transaction"),
            (|tip| vec![(KIND_CLOSE, Close { number: 2, ..close(tip) }.encode().to_vec())], "of commit 2, after 1"),
            (|tip| vec![(KIND_CLOSE, Close { head: [1; 32], ..close(tip) }.encode().to_vec())], "of commit 1, after 1"),
            (|tip| vec![(KIND_CLOSE, Close { synced: tip.position + 1, ..close(tip) }.encode().to_vec())], "as synced"),
            (
                |tip| vec![(KIND_REDACTED, Redacted { synced: tip.position + 1, ..done(tip) }.encode().to_vec())],
                "as synced",
            ),
            (|tip| vec![(KIND_REDACTED, Redacted { commit: 2, ..done(tip) }.encode().to_vec())], "after commit 1"),
            (|tip| vec![(KIND_COMMIT, Commit { number: 3, ..commit(tip) }.encode().to_vec())], "commit 3 follows"),
            (|tip| vec![(KIND_COMMIT, Commit { time_us: 4, ..commit(tip) }.encode().to_vec())], "goes back"),
            (
                |tip| vec![(KIND_COMMIT, Commit { record_count: 1, ..commit(tip) }.encode().to_vec())],
                "0 records, states 1",
            ),
            (
                |tip| vec![(KIND_COMMIT, Commit { transaction: [1; 32], ..commit(tip) }.encode().to_vec())],
                "do not match its hash",
            ),
            (
                |tip| vec![(KIND_COMMIT, Commit { head: [1; 32], ..commit(tip) }.encode().to_vec())],
                "does not match the log",
            ),
        ];
        for (own, expected) in wrong {
            let found = read_back(own).unwrap_or_default();
            assert!(found.contains(expected), "{found:?}, not {expected:?}");
        }
    }
}
