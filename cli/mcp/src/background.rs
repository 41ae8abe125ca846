//! The work of a server between calls: vectors of texts that hooks and shells wrote without the model, and checkpoints
//! of what they appended, so that the next opening has little to replay.
//!
//! A step looks at the database, and does at most one thing. The model computes at the lowest priority.
//!
//! 1. The thread holds nothing while it computes, so that no writer waits for a model.
//! 2. It is a convenience: whatever fails is tried again later, and everything is in the log before.
//! 3. The server does not wait for a model when it ends. A batch that is cut off is still pending.

use holotype::Holotype;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// The time between two looks at the database.
const PAUSE: Duration = Duration::from_millis(500);
/// Items of one step: few, so that the server can end soon.
const ITEMS: u64 = 16;
/// A checkpoint is written behind this many commits.
const COMMITS: u64 = 1_000;
/// A checkpoint is written after this many looks that found nothing new, if there is anything that no checkpoint has.
const QUIET_LOOKS: u32 = 60;
/// Looks without an attempt after a failure.
const PATIENCE_LOOKS: u32 = 120;

/// The thread.
#[derive(Debug)]
pub(crate) struct Background {
    /// Dropping it ends the thread after its step.
    stop: Sender<()>,
    /// Closed when the thread has ended.
    ended: Receiver<()>,
}

impl Background {
    /// Starts the thread; `embeds` says whether the server has the model of the database.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(crate) fn start(database: Holotype, embeds: bool) -> io::Result<Background> {
        let (stop, stopped) = mpsc::channel::<()>();
        let (ends, ended) = mpsc::channel::<()>();
        let work = move || {
            let _ends = ends;
            let mut chores = Chores::new(database, embeds);
            let mut pause = Duration::ZERO;
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                pause = if chores.step() == Step::Embedded { Duration::ZERO } else { PAUSE };
            }
        };
        thread::Builder::new().name("holotype-chores".into()).spawn(work)?;
        Ok(Background { stop, ended })
    }

    /// Asks the thread to end, and waits for it so long at most.
    pub(crate) fn stop(self, patience: Duration) {
        drop(self.stop);
        let _ = self.ended.recv_timeout(patience);
    }
}

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Nothing,
    Embedded,
    Checkpointed,
    Failed,
}

/// The state from one step to the next.
struct Chores {
    database: Holotype,
    embeds: bool,
    /// The newest commit that was seen, and the one of the last checkpoint.
    seen: u64,
    checkpointed: u64,
    /// Looks since something new was seen.
    quiet: u32,
    /// Looks that are left out after a failure.
    resting: u32,
}

impl Chores {
    fn new(database: Holotype, embeds: bool) -> Chores {
        let seen = database.snapshot().commit();
        // At the beginning, anything that no checkpoint has is due.
        Chores { database, embeds, seen, checkpointed: 0, quiet: 0, resting: 0 }
    }

    fn step(&mut self) -> Step {
        if self.resting > 0 {
            self.resting -= 1;
            return Step::Nothing;
        }
        let done = self.try_step().unwrap_or(Step::Failed);
        if done == Step::Failed {
            self.resting = PATIENCE_LOOKS;
        }
        done
    }

    fn try_step(&mut self) -> holotype::Result<Step> {
        let snapshot = self.database.snapshot();
        let commit = snapshot.commit();
        self.quiet = if commit == self.seen { self.quiet.saturating_add(1) } else { 0 };
        self.seen = commit;
        let pending = self.embeds && snapshot.pending()? > 0;
        drop(snapshot);
        if pending {
            let report = self.database.embed_pending_in_background(ITEMS)?;
            // Others may have filled the same items meanwhile.
            return Ok(if report.embedded + report.without > 0 { Step::Embedded } else { Step::Nothing });
        }
        let new = commit.saturating_sub(self.checkpointed);
        if new >= COMMITS || (new > 0 && self.quiet >= QUIET_LOOKS) {
            self.database.checkpoint()?;
            self.checkpointed = commit;
            return Ok(Step::Checkpointed);
        }
        Ok(Step::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holotype::embed::HashingEmbedder;
    use holotype::{Durability, NewTrace, Options};
    use std::path::Path;

    fn with_model() -> Options {
        Options::shared().embedder(HashingEmbedder::new(64))
    }

    /// Records like a hook, which has no model.
    fn record(path: &Path, texts: std::ops::Range<u64>) {
        let database = Holotype::open(path, Options::append_only()).unwrap();
        for text in texts.clone() {
            // Others see what is durable.
            let durability = if text + 1 == texts.end { Durability::Sync } else { Durability::None };
            let mut transaction = database.begin().unwrap();
            transaction.record(NewTrace::turn("e", format!("turn number {text}"))).unwrap();
            transaction.commit(durability).unwrap();
        }
        database.close().unwrap();
    }

    #[test]
    fn what_hooks_appended_gets_vectors_and_then_a_checkpoint() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.holo");
        Holotype::create(&path, with_model()).unwrap().close().unwrap();
        let server = Holotype::open(&path, with_model()).unwrap();
        let mut chores = Chores::new(server.clone(), true);
        record(&path, 0..20);
        assert_eq!((chores.step(), chores.step()), (Step::Embedded, Step::Embedded));
        assert_eq!(server.snapshot().pending().unwrap(), 0);
        // Nothing new for a while: then a checkpoint, once.
        let steps: Vec<Step> = (0..3 * QUIET_LOOKS).map(|_| chores.step()).collect();
        let checkpoints: Vec<usize> = (0..steps.len()).filter(|at| steps[*at] == Step::Checkpointed).collect();
        assert_eq!(checkpoints.len(), 1, "{steps:?}");
        assert!(checkpoints[0] + 1 >= QUIET_LOOKS as usize, "{checkpoints:?}");
        let tail = |database: &Holotype| {
            let limits = database.stats().unwrap().limits;
            limits.iter().find(|limit| limit.limit == "max_tail_bytes").unwrap().used
        };
        assert_eq!(tail(&server), 0);
        // Much that is new is not waited with.
        record(&path, 20..20 + COMMITS);
        let mut steps = Vec::new();
        while steps.last() != Some(&Step::Checkpointed) {
            assert!(steps.len() < 100, "{steps:?}");
            steps.push(chores.step());
        }
        assert!(steps.contains(&Step::Embedded));
        assert_eq!((tail(&server), server.snapshot().pending().unwrap()), (0, 0));
    }

    #[test]
    fn a_server_without_the_model_leaves_vectors_to_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.holo");
        Holotype::create(&path, with_model()).unwrap().close().unwrap();
        record(&path, 0..3);
        let mut chores = Chores::new(Holotype::open(&path, Options::shared()).unwrap(), false);
        assert_eq!(chores.step(), Step::Nothing);
        assert_eq!(chores.database.snapshot().pending().unwrap(), 3);
    }

    #[test]
    fn the_thread_ends_when_it_is_asked_to() {
        let dir = tempfile::tempdir().unwrap();
        let database = Holotype::create(dir.path().join("m.holo"), with_model()).unwrap();
        let background = Background::start(database.clone(), true).unwrap();
        drop(background.stop);
        assert_eq!(background.ended.recv(), Err(mpsc::RecvError));
        database.close().unwrap();
    }
}
