//! Reading the log at opening: open it, verify it and decode its transactions, on the calling thread or ahead of it.

use crate::core::OpenReport;
use crate::core::files::Files;
use crate::options::Options;
use crate::state::replay::Decoded;
use crate::{Error, Result};
use holotype_storage::RecoveryReport;
use holotype_storage::log::{Head, Log, LogLimits, Lsn, OpenOptions, Transaction};
use std::sync::Arc;

/// Bytes of records in one batch that the reading thread hands over.
const BATCH_LEN: usize = 256 << 10;
/// The number of batches that the reading thread may be ahead.
const BATCHES_AHEAD: usize = 8;

/// The greatest length of a log segment that a handle that takes turns begins.
const SEGMENT_IN_TURNS: u64 = 8 << 20;

/// Evidence from outside the log of where it ends.
#[derive(Clone, Copy)]
pub(crate) struct KnownEnd {
    /// The log was durable up to this position.
    pub(crate) durable: Option<Lsn>,
    /// The log was closed cleanly.
    pub(crate) closed: bool,
    /// No writer has the database open.
    pub(crate) alone: bool,
    /// The turn was given back at `durable`, with everything before it synced.
    pub(crate) given_back: bool,
}

/// One pass over the log.
pub(crate) struct LogReader<'a> {
    pub(crate) files: &'a Files,
    pub(crate) options: &'a Options,
    /// The pass begins behind this head; at the first record without one.
    pub(crate) from: Option<Head>,
    pub(crate) end: KnownEnd,
    pub(crate) report: &'a mut OpenReport,
}

impl LogReader<'_> {
    /// Hands every transaction to `apply`. A long tail is read on another thread, a short one does not pay for a
    /// thread.
    pub(crate) fn read_each(self, apply: &mut dyn FnMut(&Decoded) -> Result<()>) -> Result<Log> {
        let start = self.from.map_or(0, |head| head.position.0);
        let tail_len = self.end.durable.map_or(0, |end| end.0.saturating_sub(start));
        if tail_len < BATCH_LEN as u64 {
            return self.read(&mut |transaction| apply(&transaction.try_into()?));
        }
        self.read_ahead(apply)
    }

    /// Reads, verifies and decodes on another thread while `apply` runs on this one. Applied transactions go
    /// back there to be dropped: freeing memory on a thread other than the one that allocated it makes the two contend
    /// for the allocator.
    pub(crate) fn read_ahead(self, apply: &mut dyn FnMut(&Decoded) -> Result<()>) -> Result<Log> {
        std::thread::scope(|scope| {
            let (batches, ready) = crossbeam::channel::bounded::<Vec<Decoded>>(BATCHES_AHEAD);
            let (spent, to_drop) = crossbeam::channel::unbounded::<Vec<Decoded>>();
            let files = self.files;
            let reading = files.spawn(scope, move || {
                let (mut batch, mut batch_len) = (Vec::new(), 0);
                let hand_over = |batch| {
                    to_drop.try_iter().for_each(drop);
                    batches.send(batch).map_err(|_| Error::Cancelled("applying the log"))
                };
                let log = self.read(&mut |transaction| {
                    batch_len += transaction.records.iter().map(|record| record.payload.len()).sum::<usize>();
                    batch.push(transaction.try_into()?);
                    if batch_len < BATCH_LEN {
                        return Ok(());
                    }
                    batch_len = 0;
                    hand_over(std::mem::take(&mut batch))
                })?;
                hand_over(batch)?;
                Ok(log)
            })?;
            // An error here drops the receiver, which ends the reading thread.
            let applied = ready.into_iter().try_for_each(|batch| {
                batch.iter().try_for_each(&mut *apply)?;
                // Fails once the reading thread has finished; the batch is then dropped here.
                let _ = spent.send(batch);
                Ok(())
            });
            let log = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            applied.and(log)
        })
    }

    /// Opens the log and hands every transaction to `apply`.
    fn read(self, apply: &mut dyn FnMut(Transaction) -> Result<()>) -> Result<Log> {
        let LogReader { files, options, from, end, report } = self;
        let limits = log_limits(options);
        let KnownEnd { durable: durable_hint, closed: closed_hint, alone, given_back } = end;
        let read_only = options.read_only;
        let shared = options.takes_turns();
        let log_options =
            OpenOptions { database: None, read_only, durable_hint, alone, closed_hint, given_back, shared, limits };
        report.replayed = 0;
        let mut apply = |transaction: Transaction| -> Result<()> {
            report.replayed += transaction.records.len() as u64;
            apply(transaction)
        };
        let (log, recovery) = Log::open(Arc::clone(&files.vfs), &files.log_dir(), from, &log_options, &mut apply)?;
        report.recovery = recovery_messages(&recovery);
        report.damage = recovery.damage.as_ref().map(ToString::to_string);
        Ok(log)
    }
}

/// The limits of a log that is opened with these options. A handle that takes turns prepares a segment while others
/// wait, so its segments are shorter.
pub(crate) fn log_limits(options: &Options) -> LogLimits {
    let limits = LogLimits { max_transaction_bytes: options.max_transaction_bytes, ..LogLimits::default() };
    match options.takes_turns() {
        true => LogLimits { max_segment_len: SEGMENT_IN_TURNS, ..limits },
        false => limits,
    }
}

/// The work of recovery, as messages for a person.
fn recovery_messages(report: &RecoveryReport) -> Vec<String> {
    let mut messages = Vec::new();
    if let Some(tail) = &report.tail {
        let copy = tail.quarantine.as_ref().map(|path| format!("; a copy is in {}", path.display()));
        messages.push(format!(
            "discarded {} at log position {}, which {} never synced: {}{}",
            counted(tail.len, "byte"),
            tail.position,
            if tail.len == 1 { "was" } else { "were" },
            tail.fault,
            copy.unwrap_or_default()
        ));
    }
    for path in &report.mended {
        messages.push(format!(
            "{}: the header was damaged, or its copy; it is written again from the other",
            path.display()
        ));
    }
    if report.erased > 0 {
        messages.push(format!("erased {} of an interrupted forget", counted(report.erased, "record")));
    }
    messages.extend(
        report.removed.iter().map(|path| format!("removed {}, which was prepared and never used", path.display())),
    );
    messages
}

/// A count with its noun: `1 record`, `2 records`.
fn counted(count: impl Into<u64>, noun: &str) -> String {
    let count = count.into();
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
