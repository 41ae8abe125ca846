//! Maintenance: verification, backup, retention, salvage, following another process, changes, vectors that are made
//! later or anew, statistics.

pub(crate) mod backup;
pub(crate) mod changes;
pub(crate) mod pending;
pub(crate) mod reembed;
pub(crate) mod refresh;
pub(crate) mod restored;
pub(crate) mod retain;
pub(crate) mod salvage;
pub(crate) mod stats;
pub(crate) mod verify;
