//! Maintenance: one handle at a time changes derived files.
//!
//! An exclusive handle has its catalog open for writing all the time. A handle that takes turns opens it for a
//! checkpoint, a merge, a repair or a rebuild, and closes it again: redb lets one handle at a time have it open. All of
//! these go through the guard of this file.
//!
//! 1. While a handle has the maintenance byte, its state stands on the newest checkpoint: taking the byte opens the
//!    catalog and, if another handle wrote a checkpoint meanwhile, moves the state there. So nothing is written twice,
//!    and nothing is left out.
//! 2. The states of a handle that takes turns stand on a catalog that was opened for *reading*: a snapshot of the
//!    writing one would keep it open for as long as somebody holds the snapshot.
//! 3. Jobs of one handle share the byte and the catalog; the last one closes the catalog before it gives the byte back.
//!    Among themselves they are careful as the jobs of an exclusive handle are.
//! 4. The byte comes after the turn ([`holotype_storage::turn`]). The turn is given back before the work begins.

use crate::core::{Core, Writer};
use crate::{Error, Result};
use holotype_storage::catalog::{Applied, Catalog, CatalogOptions, CatalogSnapshot};
use holotype_storage::features::Access;
use holotype_storage::log::Head;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The pause between attempts to take the byte.
const PAUSE: Duration = Duration::from_millis(1);

/// Leave to change derived files, until this is dropped.
pub(crate) struct Maintenance<'c> {
    /// `None` for an exclusive handle.
    core: Option<&'c Core>,
    /// True if the state moved to a checkpoint that another handle wrote.
    pub(crate) moved: bool,
}

impl Drop for Maintenance<'_> {
    fn drop(&mut self) {
        let Some(core) = self.core else { return };
        let mut maintainers = core.maintainers();
        *maintainers -= 1;
        if *maintainers == 0 {
            core.catalog.store(None);
            core.lock.end_maintenance();
        }
    }
}

impl Core {
    fn maintainers(&self) -> MutexGuard<'_, u32> {
        self.turns.maintainers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True while a job of this handle changes derived files.
    pub(crate) fn is_maintaining(&self) -> bool {
        *self.maintainers() > 0
    }

    /// Waits until this handle may change derived files; its state is then the newest.
    ///
    /// # Errors
    /// As [`Core::lock_newest`]; [`holotype_storage::Error::TurnHeld`] if another handle changes them for longer than
    /// `write_timeout`.
    pub(crate) fn maintain(self: &Arc<Self>) -> Result<Maintenance<'_>> {
        self.lock.check_in_place()?;
        if self.lock.is_released() {
            return Err(holotype_storage::Error::Closed.into());
        }
        if !self.options.takes_turns() {
            return Ok(Maintenance { core: None, moved: false });
        }
        let deadline = Instant::now() + self.options.write_timeout;
        loop {
            if let Some(joined) = self.join_maintenance() {
                return Ok(joined);
            }
            let (turn, mut writer) = self.lock_newest()?;
            if let Some(begun) = self.try_maintain(&mut writer)? {
                return Ok(begun);
            }
            drop(writer);
            drop(turn);
            self.pause_until(deadline)?;
        }
    }

    /// The same for a caller that has the turn and the writer's lock, and keeps them.
    pub(crate) fn maintain_within(&self, writer: &mut Writer) -> Result<Maintenance<'_>> {
        if !self.options.takes_turns() {
            return Ok(Maintenance { core: None, moved: false });
        }
        let deadline = Instant::now() + self.options.write_timeout;
        loop {
            if let Some(begun) = self.try_maintain(writer)? {
                return Ok(begun);
            }
            self.pause_until(deadline)?;
        }
    }

    fn pause_until(&self, deadline: Instant) -> Result<()> {
        if Instant::now() >= deadline {
            let path = self.files.lock();
            return Err(Error::Storage(holotype_storage::Error::TurnHeld { path, pid: 0, command: String::new() }));
        }
        std::thread::sleep(PAUSE);
        Ok(())
    }

    fn join_maintenance(&self) -> Option<Maintenance<'_>> {
        let mut maintainers = self.maintainers();
        (*maintainers > 0).then(|| {
            *maintainers += 1;
            Maintenance { core: Some(self), moved: false }
        })
    }

    /// Begins or joins maintenance, unless another handle is at it.
    fn try_maintain(&self, writer: &mut Writer) -> Result<Option<Maintenance<'_>>> {
        let mut maintainers = self.maintainers();
        if *maintainers > 0 {
            *maintainers += 1;
            return Ok(Some(Maintenance { core: Some(self), moved: false }));
        }
        if !self.lock.try_maintenance()? {
            return Ok(None);
        }
        match self.open_catalog(writer) {
            Ok(moved) => {
                *maintainers = 1;
                Ok(Some(Maintenance { core: Some(self), moved }))
            }
            Err(error) => {
                self.lock.end_maintenance();
                Err(error)
            }
        }
    }

    /// Opens the catalog for writing and moves the state to its checkpoint; returns true if it stood on another one.
    fn open_catalog(&self, writer: &mut Writer) -> Result<bool> {
        // The bytes were checked when the state's own handle was opened; each block is checked on each read.
        let options = CatalogOptions { check_len: 0, ..self.options.catalog() };
        let (vfs, path, id) = (self.files.vfs.as_ref(), self.files.catalog(), self.log.database());
        let catalog = Catalog::open(vfs, &path, id, &options, Access::Write)?;
        let applied = catalog.applied()?;
        let moved = writer.state.rows.base().and_then(|base| base.applied()) != applied.as_ref();
        if moved {
            let newest = self.open_newest()?;
            self.adopt_checkpoint(writer, newest);
            self.publish();
        }
        self.checkpointer.generation.fetch_max(self.files.newest_generation(), Ordering::Relaxed);
        self.catalog.store(Some(Arc::new(catalog)));
        Ok(moved)
    }

    /// A snapshot of a catalog that this handle wrote, for the rows of its states.
    pub(crate) fn base_of(&self, catalog: &Catalog) -> Result<CatalogSnapshot> {
        if !self.options.takes_turns() {
            return Ok(catalog.snapshot()?);
        }
        let (vfs, path, id) = (self.files.vfs.as_ref(), self.files.catalog(), self.log.database());
        Ok(Catalog::open(vfs, &path, id, &self.options.catalog(), Access::Read)?.snapshot()?)
    }
}

/// The position of a checkpoint at `head`, with random bytes that tell it apart from every other one: a handle knows by
/// them whether the newest checkpoint is the one that its state stands on.
pub(crate) fn applied_at(head: Head) -> Result<Applied> {
    let mut blob = vec![0; 16];
    getrandom::fill(&mut blob).map_err(|error| Error::Corrupt { what: format!("no random numbers: {error}") })?;
    Ok(Applied { position: head.position, commit: head.commit, head: head.hash, blob })
}

/// The same for derived files that change without a new checkpoint.
pub(crate) fn applied_again(applied: &Applied) -> Result<Applied> {
    applied_at(Head { position: applied.position, commit: applied.commit, hash: applied.head })
}
