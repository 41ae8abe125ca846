//! The thread that writes the transaction under way.
//!
//! A transaction holds the writer's lock, and a lock cannot be waited for by the thread that holds it. So whatever
//! waits for the writer asks here first, and gets an error instead of waiting for ever.
//!
//! 1. There is at most one transaction of a core. Its thread is the one that used it last: it may be sent to another.
//! 2. A transaction may give the lock back before its mark ends, and another begin: only its own mark is taken away.

use crate::core::Core;
use crate::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// No thread.
const NOBODY: u64 = 0;

/// The number of the next thread.
static NEXT: AtomicU64 = AtomicU64::new(NOBODY + 1);

thread_local! {
    /// The number of this thread, which no other ever has.
    static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
}

/// The number of the thread that used the open transaction last.
#[derive(Default)]
pub(crate) struct WritingThread(AtomicU64);

/// Marks a transaction as open until it is dropped.
pub(crate) struct OpenMark<'c> {
    writing: &'c WritingThread,
    /// The thread that is noted there.
    thread: u64,
}

impl OpenMark<'_> {
    /// Notes that this thread uses the transaction.
    pub(crate) fn touch(&mut self) {
        let thread = this_thread();
        if thread != self.thread {
            self.thread = thread;
            self.writing.0.store(thread, Ordering::Relaxed);
        }
    }
}

impl Core {
    /// Marks that this thread has a transaction open. The caller has the writer's lock.
    pub(crate) fn mark_open(&self) -> OpenMark<'_> {
        let thread = this_thread();
        self.writing.0.store(thread, Ordering::Relaxed);
        OpenMark { writing: &self.writing, thread }
    }

    /// Refuses to wait for a transaction that this thread itself has open.
    ///
    /// # Errors
    /// [`Error::TransactionOpen`].
    pub(crate) fn refuse_within_transaction(&self) -> Result<()> {
        match self.writing.0.load(Ordering::Relaxed) {
            thread if thread != NOBODY && thread == this_thread() => Err(Error::TransactionOpen),
            _ => Ok(()),
        }
    }
}

impl Drop for OpenMark<'_> {
    fn drop(&mut self) {
        // If it fails, another transaction began after this one gave the lock back.
        let _ = self.writing.0.compare_exchange(self.thread, NOBODY, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// While a thread ends, it begins no transaction that it could wait for.
fn this_thread() -> u64 {
    NUMBER.try_with(|number| *number).unwrap_or(NOBODY)
}
