//! Catching up: a handle that takes turns applies what others appended since it last had the turn.
//!
//! The log decides what that is. Each of its transactions is applied as opening and a reader's refresh apply it, so the
//! state of every handle is the same function of the same log. Where more was appended than makes a checkpoint due, the
//! state moves to the newest checkpoint, if another handle wrote one.
//!
//! 1. Existing snapshots do not change: their rows are pinned in the catalog, their files mapped or open.
//! 2. After a holder that died, the log is recovered first, from this handle's checkpoint: an interrupted erasure may
//!    lie before its head.
//! 3. A state that may hold forgotten content moves to a checkpoint that does not, or makes one.
//! 4. A failure leaves the note of what is to be caught up with, so the next transaction tries again.

use crate::core::turns::{Since, TurnGuard};
use crate::core::writer_lock::WriterGuard;
use crate::core::{Core, Writer};
use crate::derive::merge;
use crate::derive::open::{MANIFEST_ATTEMPTS, is_superseded_file, open_checkpoint};
use crate::derive::rebuild_online::{Purpose, rebuild_online};
use crate::records::tables::{self, ManifestRow};
use crate::state::State;
use crate::state::content::{ContentReader, OwnItems};
use crate::state::replay::replay;
use crate::{Error, Result};
use holotype_storage::catalog::Applied;
use holotype_storage::codec;
use holotype_storage::log::{Head, Log, Lsn, Transaction, Until};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// A state with the number of log records that its checkpoint lacks.
pub(crate) struct Newest {
    pub(crate) state: State,
    records: u64,
    /// The position of the checkpoint.
    from: Lsn,
}

impl Core {
    /// The turn and the writer's lock, with the newest state. An exclusive handle always has its newest state.
    ///
    /// # Errors
    /// As [`Core::enter_turn`]; [`Error::Poisoned`]; when the log or derived files cannot be read.
    pub(crate) fn lock_newest(self: &Arc<Self>) -> Result<(Option<TurnGuard<'_>>, WriterGuard<'_, Writer>)> {
        self.lock_newest_until(None)
    }

    /// The same, waiting for turn and lock until `deadline` at most.
    ///
    /// # Errors
    /// As [`Core::lock_newest`]; [`Error::WriterBusy`].
    pub(crate) fn lock_newest_until(
        self: &Arc<Self>,
        deadline: Option<Instant>,
    ) -> Result<(Option<TurnGuard<'_>>, WriterGuard<'_, Writer>)> {
        let turn = self.enter_turn(deadline)?;
        let mut writer = self.lock_writer_until(deadline)?;
        if let Some(detail) = &writer.poisoned {
            return Err(Error::Poisoned { detail: detail.clone() });
        }
        match turn {
            Some(_) => self.catch_up(&mut writer)?,
            None => self.finish_forget(&mut writer)?,
        }
        Ok((turn, writer))
    }

    /// Applies what others appended. The caller has the turn.
    fn catch_up(self: &Arc<Self>, writer: &mut Writer) -> Result<()> {
        let done = match self.turns.since() {
            // A forget of this handle may have failed to make derived files.
            Since::Nothing => return self.finish_forget(writer),
            Since::Appended(durable) => match self.follow_others(writer, Until::End(durable)) {
                // The holder before died, and LOCK is old.
                Err(Error::Storage(holotype_storage::Error::Damaged(_))) => self.recover(writer, durable),
                done => done.map(|_| ()),
            },
            Since::Died(durable) => self.recover(writer, durable),
        };
        done?;
        // Readers must not see what a crash may take back.
        self.log.sync_to(self.log.end())?;
        self.record_durable(writer.state.head);
        self.publish();
        self.finish_forget(writer)?;
        self.turns.caught_up();
        Ok(())
    }

    /// Recovers the log after a holder that died with the turn, and follows.
    fn recover(self: &Arc<Self>, writer: &mut Writer, durable: Lsn) -> Result<()> {
        let from = writer.state.rows.base().and_then(|base| base.applied()).map(head_of);
        let hint = durable.max(self.log.durable());
        let dir = self.files.log_dir();
        Log::recover_beside(Arc::clone(&self.files.vfs), &dir, from, Some(hint))?;
        self.follow_others(writer, Until::End(hint)).map(|_| ())
    }

    /// Applies what stands behind the state in the log; returns true if there was anything.
    pub(crate) fn follow_others(&self, writer: &mut Writer, until: Until) -> Result<bool> {
        let before = self.log.end();
        let cut_off = self.is_cut_off(&writer.state)?;
        let mut state = match cut_off {
            false => writer.state.as_ref().clone(),
            true => open_checkpoint(&self.files, &self.options)?.1,
        };
        let from = cut_off.then_some(state.head);
        let mut records = 0;
        self.log.take_over(until, from, &mut |transaction| -> Result<()> {
            records += transaction.records.len() as u64;
            replay(&mut state, &transaction.try_into()?)
        })?;
        if state.head.commit == writer.state.head.commit {
            return Ok(false);
        }
        self.prepare(&mut state)?;
        let unread = from.map_or(before, |from| from.position);
        if cut_off {
            (writer.tail_records, writer.tail_bytes) = (0, 0);
        }
        writer.tail_records += records;
        writer.tail_bytes += self.log.end().0.saturating_sub(unread.0);
        self.adopt(writer, state);
        self.move_to_newest(writer);
        Ok(true)
    }

    /// True if a retention by another handle removed the log behind a state; its checkpoint is later.
    fn is_cut_off(&self, state: &State) -> Result<bool> {
        let floor = Log::floor_in(self.files.vfs.as_ref(), &self.files.log_dir())?;
        Ok(floor.is_some_and(|floor| state.head.position < floor.head.position))
    }

    /// Moves the state to the newest checkpoint, if there is a reason to and another handle wrote it.
    pub(crate) fn move_to_newest(&self, writer: &mut Writer) {
        if self.is_newer_checkpoint_wanted(writer)
            && let Some(newest) = self.newest_checkpoint(&writer.state)
        {
            self.adopt_checkpoint(writer, newest);
        }
    }

    /// True if the state should move to a newer checkpoint, and no job of this handle builds on the present one.
    fn is_newer_checkpoint_wanted(&self, writer: &Writer) -> bool {
        let is_due = self.is_checkpoint_due(writer) || writer.state.meta.purged < writer.state.meta.forgets;
        is_due && !writer.checkpoint_running && !self.is_maintaining()
    }

    /// The state on the newest checkpoint, if another handle wrote one; without one the present state is as good.
    fn newest_checkpoint(&self, state: &State) -> Option<Newest> {
        let newest = self.open_newest().ok()?;
        let own = state.rows.base().and_then(|base| base.applied());
        (newest.state.rows.base().and_then(|base| base.applied()) != own).then_some(newest)
    }

    /// The newest checkpoint with the log behind it applied.
    ///
    /// # Errors
    /// When files cannot be read; [`Error::Corrupt`] if it does not lead to the head of the log.
    pub(crate) fn open_newest(&self) -> Result<Newest> {
        let mut opened = open_checkpoint(&self.files, &self.options);
        for _ in 1..MANIFEST_ATTEMPTS {
            match &opened {
                Err(error) if is_superseded_file(error) => opened = open_checkpoint(&self.files, &self.options),
                _ => break,
            }
        }
        let (_, mut state) = opened?;
        let from = state.head.position;
        let mut records = 0;
        let start = if state.head.commit.0 == 0 { Lsn(0) } else { from };
        for transaction in self.log.scan(start)? {
            let transaction: Transaction = transaction?;
            records += transaction.records.len() as u64;
            replay(&mut state, &transaction.try_into()?)?;
        }
        if state.head != self.log.head() {
            let what = "the newest checkpoint does not lead to the head of the log".to_owned();
            return Err(Error::Corrupt { what });
        }
        self.prepare(&mut state)?;
        Ok(Newest { state, records, from })
    }

    fn prepare(&self, state: &mut State) -> Result<()> {
        let reader = ContentReader { log: Arc::clone(&self.log), own: OwnItems::new() };
        state.reload_vectors(&reader)?;
        state.prepare_vectors()
    }

    /// Moves the writer's state to a checkpoint of another handle.
    pub(crate) fn adopt_checkpoint(&self, writer: &mut Writer, newest: Newest) {
        writer.tail_records = newest.records;
        writer.tail_bytes = newest.state.head.position.0.saturating_sub(newest.from.0);
        self.adopt(writer, newest.state);
    }

    fn adopt(&self, writer: &mut Writer, state: State) {
        // It holds what this handle knows of a page that others may have continued.
        writer.open_page = None;
        self.forgets.fetch_max(state.meta.forgets, Ordering::AcqRel);
        self.analyse_soon(&state);
        self.replace(writer, state);
        self.throttle.signal_progress();
    }

    /// Makes derived files without forgotten content, if the process that forgot it died or failed before.
    pub(crate) fn finish_forget(self: &Arc<Self>, writer: &mut Writer) -> Result<()> {
        if writer.state.meta.purged >= writer.state.meta.forgets {
            return Ok(());
        }
        let maintenance = self.maintain_within(writer)?;
        if writer.state.meta.purged >= writer.state.meta.forgets {
            // The files without it are in place already, but those before them may still be there.
            return if maintenance.moved { self.remove_unnamed(&writer.state) } else { Ok(()) };
        }
        self.files.remove_quarantined()?;
        let state = Arc::clone(&writer.state);
        if let Some(fresh) = rebuild_online(self, writer, &state, Purpose::Forget)? {
            self.replace(writer, fresh.state);
            self.publish();
            merge::interrupt(self);
            fresh.removed?;
        }
        Ok(())
    }
}

impl Core {
    /// Removes derived files that the manifest does not name. The caller has maintenance, and no job of this handle
    /// writes any.
    fn remove_unnamed(&self, state: &State) -> Result<()> {
        let mut keep = Vec::new();
        for (_, value) in state.scan(tables::MANIFEST, &[])? {
            let row: ManifestRow = codec::decode(&value)?;
            keep.push(self.files.of_manifest(&row, self.log.database())?.1);
        }
        self.files.remove_other(&keep)?;
        self.files.sync_dirs()
    }
}

/// The head of a checkpoint.
fn head_of(applied: &Applied) -> Head {
    Head { position: applied.position, commit: applied.commit, hash: applied.head }
}
