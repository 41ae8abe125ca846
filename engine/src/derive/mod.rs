//! Derived files: the catalog, columns and segments, written at checkpoints and rebuilt from the log.

pub(crate) mod catch_up;
pub(crate) mod checkpoint;
pub(crate) mod compact;
pub(crate) mod derived_writer;
pub(crate) mod log_reader;
pub(crate) mod maintenance;
pub(crate) mod merge;
pub(crate) mod merge_policy;
pub(crate) mod open;
pub(crate) mod rebuild;
pub(crate) mod rebuild_online;
pub(crate) mod repair;
pub(crate) mod retained_log;
pub(crate) mod reuse;
