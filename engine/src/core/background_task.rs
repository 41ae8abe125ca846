//! A background thread that runs one job whenever it is asked to, never twice at a time.
//!
//! A request while the job runs has it run once more afterwards, because the running one may have read its input before
//! the request. The thread ends when nothing is asked for. An error is kept until [`BackgroundTask::wait`] reports it.

use crate::core::Core;
use crate::{Error, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A job of the core that runs in the background.
pub(crate) struct BackgroundTask {
    /// The name of its thread.
    name: &'static str,
    progress: Mutex<Progress>,
    /// The error of the last run, if it failed.
    failure: Mutex<Option<Error>>,
}

#[derive(Default)]
struct Progress {
    thread: Option<JoinHandle<()>>,
    /// True until the thread has decided to stop checking `asked`.
    running: bool,
    /// A caller requested a run that starts from now on.
    asked: bool,
}

impl BackgroundTask {
    pub(crate) fn new(name: &'static str) -> Self {
        BackgroundTask { name, progress: Mutex::default(), failure: Mutex::default() }
    }

    /// Requests a run. If one is running, another one follows it. `task` finds it in the core, `run` runs it once.
    pub(crate) fn request(core: &Arc<Core>, task: fn(&Core) -> &BackgroundTask, run: fn(&Arc<Core>) -> Result<()>) {
        let this = task(core);
        let mut progress = this.progress();
        progress.asked = true;
        let ended = progress.thread.as_ref().is_some_and(JoinHandle::is_finished);
        if progress.running && !ended {
            return;
        }
        let shared = Arc::clone(core);
        let work = move || {
            while task(&shared).is_asked() {
                if let Err(error) = run(&shared) {
                    *task(&shared).failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            }
        };
        // If the thread cannot start, the work stays undone and the next request tries again.
        progress.thread = std::thread::Builder::new().name(this.name.into()).spawn(work).ok();
        progress.running = progress.thread.is_some();
    }

    /// Consumes a pending request. Without one the thread ends, and the next request starts another.
    fn is_asked(&self) -> bool {
        let mut progress = self.progress();
        progress.running = std::mem::take(&mut progress.asked);
        progress.running
    }

    /// Waits for the requested runs and returns the error of the last one that failed.
    pub(crate) fn wait(&self) -> Option<Error> {
        let thread = self.progress().thread.take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            // The thread has reported its panic.
            self.progress().running = false;
        }
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
