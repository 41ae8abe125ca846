//! The history of a simulated disk, change by change: to inspect, to replay, and to reorder.

use std::fmt;
use std::sync::Arc;

use super::disk::Disk;
use super::{Operation, SimVfs};

/// One change.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// The number of the changed file.
    pub(super) file: usize,
    /// The tag from [`SimVfs::tag_changes`], or 0.
    pub(super) tag: u64,
    /// The number of the call that made it.
    pub(super) call: u64,
    pub(super) operation: Operation,
}

/// Computes a tag for each change.
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

    /// The number of changes so far.
    #[must_use]
    pub fn history_len(&self) -> usize {
        self.state().history.len()
    }

    /// The numbers of the calls that changed something, in order: see [`SimVfs::calls`].
    #[must_use]
    pub fn changing_calls(&self) -> Vec<u64> {
        self.state().history.iter().map(|change| change.call).collect()
    }

    /// Tags every change from now on. `tagger` runs in the thread that makes the change; a tag may identify the place
    /// in the code, for example.
    pub fn tag_changes(&self, tagger: Arc<dyn Fn(&Operation) -> u64 + Send + Sync>) {
        self.state().tagger = Some(Tagger(tagger));
    }

    /// Every change so far with its tag, in order; the tag is 0 if no tagger was set.
    #[must_use]
    pub fn changes(&self) -> Vec<(u64, Operation)> {
        self.state().history.iter().map(|change| (change.tag, change.operation.clone())).collect()
    }

    /// The disk after only the changes with these indices, in this order. The auditor checks them again. A file must
    /// still be created before it is changed, and files must be created in their original order.
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

    /// An iterator over this disk after each change, from before the first one. Simulated damage ([`SimVfs::flip`],
    /// [`SimVfs::replace`]) is not part of the history.
    #[must_use]
    pub fn replay(&self) -> Replay {
        let state = self.audited();
        let disk = state.origin.as_ref().unwrap_or(&state.disk).clone();
        Replay { disk, history: state.history.clone().into_iter(), started: false }
    }
}

/// The disk before the first change, then after each one: see [`SimVfs::replay`].
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
