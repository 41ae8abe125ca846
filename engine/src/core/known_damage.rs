//! Damage of the log that this handle knows of.
//!
//! A log that is damaged somewhere is still readable everywhere else, and its end may be sound. But what is written now
//! may rest on what cannot be read, and a backup made later replaces one that is whole. So nothing is written while
//! damage is known, unless the options accept it. Reads go on.
//!
//! 1. What a read met is read again before a write is refused: another process may have erased the record meanwhile.

use crate::core::Core;
use crate::model::item::ItemId;
use crate::state::content::{ContentReader, OwnItems};
use crate::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// The damage found last, if there is any.
#[derive(Debug, Default)]
pub(crate) struct KnownDamage(Mutex<Option<Found>>);

#[derive(Debug, Clone)]
struct Found {
    detail: String,
    /// The item whose record could not be read; none when a verification found the damage.
    item: Option<ItemId>,
}

impl KnownDamage {
    /// Notes what a verification found: the first fault of the log, or that it has none.
    pub(crate) fn verified(&self, fault: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = fault.map(|detail| Found { detail, item: None });
    }

    /// Notes that the record of an item could not be read.
    pub(crate) fn unreadable(&self, item: ItemId, detail: String) {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        found.get_or_insert(Found { detail, item: Some(item) });
    }

    fn get(&self) -> Option<Found> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Core {
    /// Fails if the log is known to be damaged and the options do not accept it.
    pub(crate) fn refuse_after_damage(&self) -> Result<()> {
        let Some(found) = self.damage.get().filter(|_| !self.options.accept_damage) else { return Ok(()) };
        if let Some(item) = found.item {
            let reader = ContentReader { log: Arc::clone(&self.log), own: OwnItems::new() };
            if reader.read(&self.published.load(), item).is_ok() {
                self.damage.verified(None);
                return Ok(());
            }
        }
        Err(Error::WritesRefused { detail: found.detail })
    }
}
