//! The background thread that writes checkpoints, one at a time.
//!
//! If a checkpoint fails, the changes stay in memory and in the log.

use crate::Result;
use crate::core::Core;
use crate::core::background_task::BackgroundTask;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

/// Runs checkpoints in the background, one at a time.
pub(crate) struct Checkpointer {
    pub(crate) task: BackgroundTask,
    /// The highest generation assigned to a derived file.
    pub(crate) generation: AtomicU64,
    /// Held while the catalog is written: by a checkpoint, a repair, or a merge that is being published.
    pub(crate) turn: Mutex<()>,
    /// Generations of damaged segments whose repair was attempted, successfully or not.
    pub(crate) repair_attempts: Mutex<BTreeSet<u64>>,
}

impl Checkpointer {
    pub(crate) fn starting_at(generation: u64) -> Self {
        Checkpointer {
            task: BackgroundTask::new("holotype-checkpoint"),
            generation: AtomicU64::new(generation),
            turn: Mutex::default(),
            repair_attempts: Mutex::default(),
        }
    }

    /// Requests a checkpoint. If one is running, another one follows it. `run` writes one checkpoint.
    pub(crate) fn request(core: &Arc<Core>, run: fn(&Arc<Core>) -> Result<()>) {
        BackgroundTask::request(core, |core| &core.checkpointer.task, run);
    }
}
