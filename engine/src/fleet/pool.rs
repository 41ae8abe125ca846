//! The databases of a fleet that are open: few of many, those that were used last.
//!
//! Invariants:
//! 1. At most `most` are open or being opened, those in use among them. Before another is opened, the one that
//!    was used longest ago is closed; while all are in use, the caller waits.
//! 2. A handle that is handed out is of the directory that the path names now, and shows what is durable now.

use crate::core::files::Files;
use crate::core::handle::Holotype;
use crate::options::Options;
use crate::{Error, Result};
use holotype_storage::standing::Standing;
use holotype_storage::vfs::OsVfs;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The open databases of a fleet.
#[derive(Debug)]
pub(super) struct Pool {
    options: Options,
    most: usize,
    slots: Mutex<Slots>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Slots {
    open: HashMap<PathBuf, Slot>,
    opening: usize,
    /// Counts uses, so that the least recent one is the smallest.
    clock: u64,
}

#[derive(Debug)]
struct Slot {
    database: Holotype,
    leases: usize,
    used: u64,
}

/// An open database in use.
#[derive(Debug)]
pub(super) struct Lease<'p> {
    pool: &'p Pool,
    path: &'p Path,
    pub(super) database: Holotype,
    /// The content of its LOCK when it was handed out; `None` without that file.
    pub(super) standing: Option<Standing>,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.pool.slots().open.get_mut(self.path) {
            slot.leases = slot.leases.saturating_sub(1);
        }
        self.pool.freed.notify_one();
    }
}

impl Pool {
    pub(super) fn new(options: Options, most: usize) -> Pool {
        let options = Options { read_only: true, append_only: false, witness: None, ..options };
        Pool { options, most: most.max(1), slots: Mutex::default(), freed: Condvar::new() }
    }

    /// The number of databases that are open.
    pub(super) fn open_count(&self) -> usize {
        self.slots().open.len()
    }

    /// The options that databases are opened with.
    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    /// A database as it is now, opened if it is not open.
    ///
    /// # Errors
    /// As [`Holotype::open`] and [`Holotype::refresh`].
    pub(super) fn lease<'p>(&'p self, path: &'p Path) -> Result<Lease<'p>> {
        let standing = standing_of(path)?;
        let mut lease = self.lease_as_it_was(path, standing)?;
        let is_another = |lease: &Lease<'_>| match (lease.database.instance(), standing.and_then(|now| now.instance)) {
            (Some(opened), Some(now)) => opened != now,
            _ => false,
        };
        if is_another(&lease) {
            drop(lease);
            self.close(path);
            lease = self.lease_as_it_was(path, standing)?;
            if is_another(&lease) {
                // Another thread still reads what was there before.
                return Err(holotype_storage::Error::Replaced { path: path.to_owned() }.into());
            }
        }
        if standing.is_some_and(|now| now.durable > lease.database.head().position) {
            lease.database.refresh()?;
        }
        Ok(lease)
    }

    fn lease_as_it_was<'p>(&'p self, path: &'p Path, standing: Option<Standing>) -> Result<Lease<'p>> {
        let lease = |slot: &mut Slot, clock: u64| {
            slot.leases += 1;
            slot.used = clock;
            Lease { pool: self, path, database: slot.database.clone(), standing }
        };
        let mut slots = self.slots();
        let closed = loop {
            slots.clock += 1;
            let clock = slots.clock;
            if let Some(slot) = slots.open.get_mut(path) {
                return Ok(lease(slot, clock));
            }
            if slots.open.len() + slots.opening < self.most {
                break None;
            }
            let unused = slots.open.iter().filter(|(_, slot)| slot.leases == 0);
            let oldest = unused.min_by_key(|(_, slot)| slot.used).map(|(path, _)| path.clone());
            match oldest.and_then(|oldest| slots.open.remove(&oldest)) {
                Some(slot) => break Some(slot),
                None => slots = self.freed.wait(slots).unwrap_or_else(PoisonError::into_inner),
            }
        };
        slots.opening += 1;
        drop(slots);
        drop(closed);
        let opened = Holotype::open(path, self.options.clone());
        let mut slots = self.slots();
        slots.opening -= 1;
        slots.clock += 1;
        let clock = slots.clock;
        let opened = match opened {
            // Another thread was quicker: its handle is used, and this one closed.
            Ok(database) => slots.open.entry(path.to_owned()).or_insert(Slot { database, leases: 0, used: 0 }),
            Err(error) => {
                drop(slots);
                self.freed.notify_one();
                return Err(error);
            }
        };
        Ok(lease(opened, clock))
    }

    /// Closes a database, unless it is in use.
    fn close(&self, path: &Path) {
        let mut slots = self.slots();
        let slot = match slots.open.get(path) {
            Some(slot) if slot.leases == 0 => slots.open.remove(path),
            _ => None,
        };
        drop(slots);
        drop(slot);
        self.freed.notify_one();
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The content of a database's LOCK; `None` for a database without that file.
///
/// # Errors
/// [`Error::NotFound`] where no database is.
pub(super) fn standing_of(path: &Path) -> Result<Option<Standing>> {
    let files = Files::new(Arc::new(OsVfs), path);
    match Standing::read(files.vfs.as_ref(), &files.lock())? {
        Some(standing) => Ok(Some(standing)),
        None if files.exists()? => Ok(None),
        None => Err(Error::NotFound { path: path.to_owned() }),
    }
}
