//! What was done to a simulated disk, one change after another: to look at, to stand at each point of, to do otherwise.

use std::fmt;
use std::sync::Arc;

use super::disk::Disk;
use super::{Operation, SimVfs};

/// One change.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// The number of the file it is about.
    pub(super) file: usize,
    /// What [`SimVfs::tag_changes`] gave it; else 0.
    pub(super) tag: u64,
    pub(super) operation: Operation,
}

/// Gives each change a tag as it is made.
#[derive(Clone)]
pub(super) struct Tagger(Arc<dyn Fn(&Operation) -> u64 + Send + Sync>);

impl Tagger {
    pub(super) fn tag(&self, operation: &Operation) -> u64 {
        (self.0)(operation)
    }
}

impl fmt::Debug for Tagger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tagger")
    }
}

impl SimVfs {
    /// Every change made so far, in order.
    #[must_use]
    pub fn history(&self) -> Vec<Operation> {
        self.audited().history.iter().map(|change| change.operation.clone()).collect()
    }

    /// How many changes were made so far.
    #[must_use]
    pub fn history_len(&self) -> usize {
        self.state().history.len()
    }

    /// Has every change from now on tagged by the thread that makes it, for example with where in the code it is made.
    pub fn tag_changes(&self, tagger: Arc<dyn Fn(&Operation) -> u64 + Send + Sync>) {
        self.state().tagger = Some(Tagger(tagger));
    }

    /// Every change made so far with its tag, in order; it is 0 where nobody tagged it.
    #[must_use]
    pub fn changes(&self) -> Vec<(u64, Operation)> {
        self.state().history.iter().map(|change| (change.tag, change.operation.clone())).collect()
    }

    /// The disk as it would be had the changes with these numbers been made in this order, and no others. The auditor
    /// looks at them again. A file must still be made before it is changed, and files made in the order they were made
    /// in.
    #[must_use]
    pub fn reordered(&self, order: &[usize]) -> Self {
        let state = self.state();
        let other = Self::with_disk(state.origin.as_ref().unwrap_or(&state.disk).clone());
        let mut changed = other.state();
        for change in order.iter().map(|&number| &state.history[number]) {
            changed.record(change.file, change.operation.clone());
        }
        drop(changed);
        other
    }

    /// Stands at each point of this disk's history in turn, from what it was before the first change. Damage from
    /// outside ([`SimVfs::flip`], [`SimVfs::replace`]) is no part of the history.
    #[must_use]
    pub fn replay(&self) -> Replay {
        let state = self.audited();
        let disk = state.origin.as_ref().unwrap_or(&state.disk).clone();
        Replay { disk, history: state.history.clone().into_iter(), started: false }
    }
}

/// The points of a run, from [`SimVfs::replay`]: the disk before the first change, then after each one.
#[derive(Debug)]
pub struct Replay {
    disk: Disk,
    history: std::vec::IntoIter<Change>,
    started: bool,
}

impl Iterator for Replay {
    type Item = SimVfs;

    fn next(&mut self) -> Option<SimVfs> {
        if self.started {
            let Change { file, operation, .. } = self.history.next()?;
            self.disk.apply(file, &operation);
        }
        self.started = true;
        Some(SimVfs::with_disk(self.disk.clone()))
    }
}
