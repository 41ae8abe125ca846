//! The background thread that writes checkpoints, one at a time.
//!
//! A request during a running checkpoint starts another one after it, because the running one may have frozen its
//! input before the request. An error is kept until [`Checkpointer::wait`] reports it; the changes stay in memory and
//! in the log.

use crate::core::Core;
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Runs checkpoints in the background, one at a time.
#[derive(Default)]
pub(crate) struct Checkpointer {
    background: Mutex<Background>,
    /// The highest generation assigned to a derived file.
    pub(crate) generation: AtomicU64,
    /// The error of the last background checkpoint, if it failed.
    failure: Mutex<Option<Error>>,
    /// Held while a checkpoint runs, so that checkpoints of different threads do not overlap.
    pub(crate) turn: Mutex<()>,
    /// Generations of damaged segments whose repair was attempted, successfully or not.
    pub(crate) repair_attempts: Mutex<BTreeSet<u64>>,
}

#[derive(Default)]
struct Background {
    thread: Option<JoinHandle<()>>,
    /// True until the thread has decided to stop checking `asked`.
    running: bool,
    /// A caller requested a checkpoint that starts from now on.
    asked: bool,
}

impl Checkpointer {
    pub(crate) fn starting_at(generation: u64) -> Self {
        Checkpointer { generation: AtomicU64::new(generation), ..Checkpointer::default() }
    }

    /// Requests a checkpoint. If one is running, another one follows it. `run` writes one checkpoint.
    pub(crate) fn request(core: &Arc<Core>, run: fn(&Arc<Core>) -> Result<()>) {
        let this = &core.checkpointer;
        let mut background = this.background();
        background.asked = true;
        let ended = background.thread.as_ref().is_some_and(JoinHandle::is_finished);
        if background.running && !ended {
            return;
        }
        let shared = Arc::clone(core);
        let work = move || {
            while shared.checkpointer.is_asked() {
                if let Err(error) = run(&shared) {
                    *shared.checkpointer.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            }
        };
        // If the thread cannot start, the tail stays in memory and the next commit tries again.
        background.thread = std::thread::Builder::new().name("holotype-checkpoint".into()).spawn(work).ok();
        background.running = background.thread.is_some();
    }

    /// Consumes a pending request. Without one the thread ends, and the next request starts another.
    fn is_asked(&self) -> bool {
        let mut background = self.background();
        background.running = std::mem::take(&mut background.asked);
        background.running
    }

    /// Waits for the requested checkpoints and returns the error of the last one that failed.
    pub(crate) fn wait(&self) -> Option<Error> {
        let thread = self.background().thread.take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            // The thread has reported its panic. The frozen changes are still in memory and in the log.
            self.background().running = false;
        }
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn background(&self) -> MutexGuard<'_, Background> {
        self.background.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
