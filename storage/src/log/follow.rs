//! Following a log that another process appends to.
//!
//! A reader never reads past the durable position that the writer states. So everything it has read survives any crash
//! of the writer, and bytes before that position do not change, except by erasure. To follow, a reader loads the
//! headers of new segments, then checks and returns the transactions since.

use std::sync::Arc;

use super::fault::Fault;
use super::open_files::OpenFiles;
use super::reader::{self, SegmentTable};
use super::scanner::Step;
use super::segment::{Segment, file_name, number_of, place_in_row};
use super::{Checkpoint, Floor, Log, Lsn, Transaction, damage_at};
use crate::error::{Error, Result};
use crate::recovery;

impl Log {
    /// Extends this log to `durable`, the position in the writer's status block, and calls back with each transaction
    /// after `from`, in order. If the position is before the present end, the log is not extended.
    ///
    /// # Errors
    /// [`Error::CheckpointMismatch`] if `from` is not a commit of this log, or is none and the log was truncated;
    /// [`Error::Damaged`]; [`Error::Io`], also for a file that was removed meanwhile; the callback's errors. An error
    /// leaves the log unchanged.
    pub fn follow<E: From<Error>>(
        &self,
        from: Option<Checkpoint>,
        durable: Lsn,
        on_transaction: &mut dyn FnMut(Transaction) -> Result<(), E>,
    ) -> Result<(), E> {
        let limit = durable.max(self.end()).max(from.map_or(Lsn(0), |from| from.position)).0;
        let floor = Self::floor_in(&*self.vfs()?, &self.dir)?.filter(|floor| floor.until.position.0 <= limit);
        if let (None, Some(floor)) = (from, &floor) {
            let why = format!("the log begins after position {}", floor.head.position);
            return Err(Error::CheckpointMismatch { position: Lsn(0), why }.into());
        }
        let segments = self.reload(limit, floor.as_ref())?;
        let mut scanner = recovery::enter(&self.geometry, &segments, from, limit, 0)?;
        let table = SegmentTable::new(segments.clone());
        let damaged = |fault| Error::Damaged(damage_at(&segments, self.geometry.page, fault));
        loop {
            match scanner.step()? {
                Step::Transaction { mut transaction, .. } => {
                    reader::fetch_replacements(&self.geometry, &table, &mut transaction.records)?;
                    on_transaction(transaction)?;
                }
                Step::Closed | Step::Redacted(_) | Step::Sealed | Step::Switched { .. } => {}
                Step::Limit => break,
                Step::Fault(fault) => return Err(damaged(fault).into()),
                Step::End => {
                    let position = scanner.tip().position;
                    let what = format!("the bytes here are zero, but everything before {limit} was durable");
                    return Err(damaged(Fault { position, what }).into());
                }
            }
        }
        let tip = scanner.tip();
        if let Some(segment) = scanner.segment() {
            let file = segment.file()?;
            self.table.replace(segments.clone());
            let mut head = self.head_guard();
            if tip.commit > head.commit.0 {
                *head = tip.public_head();
            }
            self.group.follow(&file, segment, tip.position);
        }
        if let Some(floor) = floor {
            *self.floor_guard() = Some(floor);
            self.table.retire(floor.segment);
        }
        Ok(())
    }

    /// The segments up to `limit`: the known ones, then the new ones, read from their files.
    pub(super) fn reload(&self, limit: u64, floor: Option<&Floor>) -> Result<Vec<Arc<Segment>>> {
        let mut segments = self.table.all();
        let end = self.end().0;
        segments.retain(|segment| segment.first < end && segment.valid_header().is_some());
        let Some(last) = segments.last().map(Arc::clone) else {
            return Err(Error::MissingSegment { path: self.dir.join(file_name(1)), number: 1 });
        };
        if limit <= last.end() {
            return Ok(segments);
        }
        // The floor may have removed all known segments.
        let cut_off = floor.filter(|floor| floor.segment > last.number);
        let (next, position) = cut_off.map_or((last.number + 1, last.end()), |floor| (floor.segment, floor.first.0));
        if cut_off.is_some() {
            segments.clear();
        }
        // Files of these names may have been replaced since they were opened.
        let files = Arc::new(OpenFiles::like(last.files()));
        let mut numbers = files.numbers(&self.dir, number_of)?;
        numbers.retain(|&number| number >= next);
        if let Some((expected, _)) = (next..).zip(&numbers).find(|(expected, number)| *number != expected) {
            return Err(Error::MissingSegment { path: self.dir.join(file_name(expected)), number: expected });
        }
        let mut begun = Segment::load_row(&files, &self.dir, &numbers)?;
        place_in_row(&mut begun, position);
        segments.extend(begun.into_iter().map(Arc::new));
        Ok(segments)
    }
}
