//! Reader processes: moving a database that is open for reading forward, beside the process that writes it.
//!
//! A reader has a checkpoint with the later log applied in memory, like a writer, and never reads past the durable
//! position in the writer's status block. A refresh applies what became durable since. When that is as much as makes a
//! checkpoint due, the reader moves to the writer's newest checkpoint, so that its memory is bounded by the same
//! options as the writer's.
//!
//! 1. Existing snapshots do not change: their rows are pinned in the catalog, their files mapped or open.
//! 2. A failed refresh leaves the reader unchanged.
//! 3. A missing derived file belonged to a replaced checkpoint: the manifest is read again.

use crate::Result;
use crate::core::Writer;
use crate::core::handle::Holotype;
use crate::derive::open::{MANIFEST_ATTEMPTS, is_superseded_file, open_checkpoint};
use crate::state::State;
use crate::state::content::{ContentReader, OwnItems};
use crate::state::replay::replay;
use holotype_storage::log::{Log, Lsn, Until};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time for which a handle that takes turns waits for its background jobs before it shows an older state, and the
/// pause between attempts.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_micros(50);

impl Holotype {
    /// Applies everything that the writer has made durable since to a database that is open for reading. Returns true
    /// if there was anything. Existing snapshots do not change. A database open for writing exclusively always has its
    /// newest state; one of [`Options::shared`](crate::Options::shared) does this for each snapshot.
    ///
    /// # Errors
    /// When files cannot be read or the log is damaged; the state does not change.
    pub fn refresh(&self) -> Result<bool> {
        let core = &self.core;
        core.lock.check_process()?;
        if core.options.takes_turns() {
            return self.follow_durable();
        }
        if !core.options.read_only || core.report.damage.is_some() {
            return Ok(false);
        }
        let mut writer = core.lock_writer();
        let durable = core.lock.status()?.map_or(Lsn(0), |status| status.durable);
        // Another process may still have been making files without what it had forgotten, when this one followed.
        let is_unpurged = writer.state.meta.purged < writer.state.meta.forgets;
        if durable <= core.log.end() && !is_unpurged {
            return Ok(false);
        }
        let durable = durable.max(core.log.end());
        let before = writer.state.head.commit;
        let mut state = match self.newer_checkpoint(&writer, durable) {
            Some(state) => {
                writer.tail_records = 0;
                writer.tail_bytes = 0;
                state
            }
            None => writer.state.as_ref().clone(),
        };
        let start = state.head.position.0;
        let mut records = self.follow(&mut state, durable)?;
        // The writer's checkpoint after a forget does not contain the forgotten content, but files open here may.
        if (is_unpurged || state.meta.forgets > writer.state.meta.forgets)
            && let Ok((_, mut purged)) = open_checkpoint(&core.files, &core.options)
            && purged.meta.purged >= state.meta.forgets
        {
            records = self.follow(&mut purged, durable)?;
            state = purged;
        }
        writer.tail_records += records;
        writer.tail_bytes += state.head.position.0.saturating_sub(start);
        core.forgets.fetch_max(state.meta.forgets, Ordering::AcqRel);
        let is_new = state.head.commit > before;
        writer.state = Arc::new(state);
        core.published.store(Arc::clone(&writer.state));
        core.changed.notify();
        Ok(is_new)
    }

    /// The same for a handle that takes turns, without the turn. While one of its transactions is open, that one has
    /// caught up already.
    fn follow_durable(&self) -> Result<bool> {
        let core = &self.core;
        if core.refuse_within_transaction().is_err() {
            return Ok(false);
        }
        let durable = core.lock.status()?.map_or(Lsn(0), |status| status.durable);
        let patience = Instant::now() + PATIENCE;
        let mut writer = loop {
            let newest = core.published.load();
            let is_purged = newest.meta.purged >= newest.meta.forgets || core.erasing.load(Ordering::Acquire);
            // While another thread follows the log, its end is ahead of the state.
            let end = core.log.end();
            let shows_all = durable <= newest.head.position || (durable <= end && newest.head == core.log.head());
            if shows_all && is_purged {
                return Ok(false);
            }
            drop(newest);
            match core.try_lock_writer() {
                Some(writer) if writer.poisoned.is_some() => return Ok(false),
                Some(writer) => break writer,
                // A background job of this handle has it for a moment.
                None if Instant::now() < patience => sleep(PAUSE),
                None => return Ok(false),
            }
        };
        let is_new = core.follow_others(&mut writer, Until::Durable(durable))?;
        if !is_new {
            core.move_to_newest(&mut writer);
        }
        drop(writer);
        core.publish();
        Ok(is_new)
    }

    /// Applies the log after a state; returns the number of records.
    fn follow(&self, state: &mut State, durable: Lsn) -> Result<u64> {
        let from = (state.head.commit.0 > 0).then_some(state.head);
        let mut records = 0;
        self.core.log.follow(from, durable, &mut |transaction| -> Result<()> {
            records += transaction.records.len() as u64;
            replay(state, &transaction.try_into()?)
        })?;
        let reader = ContentReader { log: Arc::clone(&self.core.log), own: OwnItems::new() };
        state.reload_vectors(&reader)?;
        state.prepare_vectors()?;
        Ok(records)
    }

    /// The state of the writer's newest checkpoint, if one is due and exists. If it cannot be opened for any reason,
    /// the log after the present state gives the same state.
    fn newer_checkpoint(&self, writer: &Writer, durable: Lsn) -> Option<State> {
        let core = &self.core;
        let behind = durable.0.saturating_sub(writer.state.head.position.0);
        // The log after the present state may have been truncated.
        let floor = Log::floor_in(core.files.vfs.as_ref(), &core.files.log_dir()).ok().flatten();
        let cut_off = floor.is_some_and(|floor| writer.state.head.position < floor.head.position);
        let due = cut_off
            || writer.tail_bytes.saturating_add(behind) >= core.options.checkpoint_bytes
            || writer.tail_records >= core.options.checkpoint_records;
        if !due {
            return None;
        }
        let held = writer.state.rows.base().and_then(|base| base.applied()).map(|applied| applied.position);
        for _ in 0..MANIFEST_ATTEMPTS {
            match open_checkpoint(&core.files, &core.options) {
                Ok((_, state)) => return (Some(state.head.position) > held).then_some(state),
                Err(error) if is_superseded_file(&error) => {}
                Err(_) => return None,
            }
        }
        None
    }
}
