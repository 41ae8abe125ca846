//! Appending behind what another handle appended, in turns ([`crate::turn`]).
//!
//! Every handle that takes turns has a log that is open for writing. Before it appends, it reads what others appended
//! since and goes on at the new end, with their last segment, chain, numbers and clock.
//!
//! 1. Only the holder of the turn takes over up to the end. Without the turn a handle may follow up to a position that
//!    is durable: bytes before that do not change, except by erasure.
//! 2. A fault is an error and leaves the log unchanged: the holder before died within a write. The caller then recovers
//!    the log ([`Log::recover_beside`]) and takes over again.

use std::path::Path;
use std::sync::Arc;

use super::fault::Fault;
use super::reader::{self, SegmentTable};
use super::scanner::{Scanner, Step};
use super::segment::Segment;
use super::tip::Tip;
use super::{Checkpoint, Log, Lsn, OpenOptions, Transaction, damage_at};
use crate::error::{Error, Result};
use crate::recovery::{self, RecoveryReport};
use crate::vfs::Vfs;

/// The extent of a takeover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// To where nothing is written, of which everything before the position is durable. Needs the turn.
    End(Lsn),
    /// To this position, which is durable.
    Durable(Lsn),
}

impl Log {
    /// From now on no segment is prepared ahead of its use.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Poisoned`].
    pub fn share(&self) -> Result<()> {
        self.writer()?.share();
        Ok(())
    }

    /// True if nothing is written at the end of this log, in the segment that has it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn is_blank_behind(&self) -> Result<bool> {
        let end = self.end().0;
        let Some(segment) = self.table.of(end).filter(|segment| end < segment.end()) else { return Ok(false) };
        let mut bytes = [0; 8];
        let len = (segment.end() - end).min(8) as usize;
        segment.read(&mut bytes[..len], end - segment.first)?;
        Ok(bytes == [0; 8])
    }

    /// Calls back with each transaction that other handles appended behind this log, in order, and goes on behind them.
    /// `from` is a later commit to begin behind: a retention by another handle may have removed the end of this log.
    ///
    /// # Errors
    /// [`Error::CheckpointMismatch`] if the log has no such commit; [`Error::Damaged`] at the first fault;
    /// [`Error::ReadOnly`], [`Error::Poisoned`], [`Error::Io`]; the callback's errors. An error leaves the log
    /// unchanged.
    pub fn take_over<E: From<Error>>(
        &self,
        until: Until,
        from: Option<Checkpoint>,
        on_transaction: &mut dyn FnMut(Transaction) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut writer = self.writer()?;
        self.group.write_held()?;
        let limit = match until {
            Until::End(_) => u64::MAX,
            Until::Durable(durable) if durable <= self.end() => return Ok(()),
            Until::Durable(durable) => durable.0,
        };
        let floor = Self::floor_in(&*self.vfs()?, &self.dir)?;
        let segments = self.reload(limit, floor.as_ref())?;
        let head = self.head();
        let from = from.or((head.commit.0 > 0).then_some(head));
        let scanner = recovery::enter(&self.geometry, &segments, from, limit, 0)?;
        let (tip, last) = self.read_on(scanner, &segments, on_transaction)?;
        let Some(segment) = segments.get(last) else { return Ok(()) };
        let (file, end) = (segment.file()?, tip.position);
        let durable = match until {
            Until::End(durable) => durable.0.max(tip.synced).min(end),
            Until::Durable(_) => end,
        };
        self.table.replace(segments[..=last].to_vec());
        *self.head_guard() = tip.public_head();
        self.group.go_on_at(&file, segment, end, durable);
        writer.go_on_at(tip, Arc::clone(segment), file);
        if let Some(floor) = floor {
            *self.floor_guard() = Some(floor);
            self.table.retire(floor.segment);
        }
        Ok(())
    }

    /// Reads to the end; returns the tip there and the index of its segment.
    fn read_on<E: From<Error>>(
        &self,
        mut scanner: Scanner,
        segments: &[Arc<Segment>],
        on_transaction: &mut dyn FnMut(Transaction) -> Result<(), E>,
    ) -> Result<(Tip, usize), E> {
        let table = SegmentTable::new(segments.to_vec());
        let damaged = |fault| Error::Damaged(damage_at(segments, self.geometry.page, fault));
        let mut good = (scanner.tip().clone(), scanner.segment_index());
        loop {
            match scanner.step()? {
                Step::Transaction { mut transaction, .. } => {
                    good = (scanner.tip().clone(), scanner.segment_index());
                    reader::fetch_replacements(&self.geometry, &table, &mut transaction.records)?;
                    on_transaction(transaction)?;
                }
                Step::Closed | Step::Redacted(_) => good = (scanner.tip().clone(), scanner.segment_index()),
                Step::Sealed if scanner.between_transactions() => {
                    good = (scanner.tip().clone(), scanner.segment_index());
                }
                Step::Sealed | Step::Switched { .. } => {}
                Step::End | Step::Limit if scanner.tip().position == good.0.position => return Ok(good),
                Step::End | Step::Limit => {
                    let what = "a transaction was begun here and not finished".into();
                    return Err(damaged(Fault { position: good.0.position, what }).into());
                }
                Step::Fault(fault) => return Err(damaged(fault).into()),
            }
        }
    }

    /// Recovers the log in `dir` as opening does, for a handle that has it open: what a holder of the turn left when it
    /// died is completed or set aside. `from` is a commit before anything that holder did.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn recover_beside(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        from: Option<Checkpoint>,
        durable_hint: Option<Lsn>,
    ) -> Result<RecoveryReport> {
        let options = OpenOptions { durable_hint, shared: true, ..OpenOptions::default() };
        let (_, report) = Self::open(vfs, dir, from, &options, &mut |_| Ok::<(), Error>(()))?;
        Ok(report)
    }
}
