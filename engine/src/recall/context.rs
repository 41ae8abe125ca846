//! The parts that the steps of a recall share, and the list that they report to.

use super::passages::Logs;
use super::plan::Plan;
use super::words::Words;
use crate::read::snapshot::Snapshot;

/// The steps of a recall, stage by stage, as `explain analyze` shows them.
pub(crate) type Steps = Vec<(String, String)>;

/// The parts of a recall that its steps share.
#[derive(Clone, Copy)]
pub(super) struct Context<'r, 'w> {
    pub(super) snapshot: &'r Snapshot,
    pub(super) plan: &'r Plan,
    pub(super) words: &'r Words<'w>,
    pub(super) logs: &'r Logs<'r>,
}
