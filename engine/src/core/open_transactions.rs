//! The transactions that each thread has open.
//!
//! A transaction holds the writer's lock, and a lock cannot be waited for by the thread that holds it. So whatever
//! waits for the writer asks here first, and gets an error instead of waiting for ever.
//!
//! 1. A mark lives as long as its transaction, which cannot leave its thread.
//! 2. Cores are told apart by their addresses: a transaction borrows its core, so no other takes the address meanwhile.

use crate::core::Core;
use crate::{Error, Result};
use std::cell::RefCell;
use std::marker::PhantomData;

thread_local! {
    static OPEN: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Marks a transaction of this thread as open until it is dropped.
pub(crate) struct OpenMark {
    core: usize,
    /// The mark must be dropped on the thread that made it.
    not_send: PhantomData<*const ()>,
}

impl Core {
    /// Marks that this thread has a transaction open.
    pub(crate) fn mark_open(&self) -> OpenMark {
        let core = self.address();
        OPEN.with_borrow_mut(|open| open.push(core));
        OpenMark { core, not_send: PhantomData }
    }

    /// Refuses to wait for a transaction that this thread itself has open.
    ///
    /// # Errors
    /// [`Error::TransactionOpen`].
    pub(crate) fn refuse_within_transaction(&self) -> Result<()> {
        match OPEN.with_borrow(|open| open.contains(&self.address())) {
            true => Err(Error::TransactionOpen),
            false => Ok(()),
        }
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

impl Drop for OpenMark {
    fn drop(&mut self) {
        // While the thread ends there is nothing left to keep count of.
        let _ = OPEN.try_with(|open| {
            let mut open = open.borrow_mut();
            if let Some(at) = open.iter().rposition(|core| *core == self.core) {
                open.swap_remove(at);
            }
        });
    }
}
