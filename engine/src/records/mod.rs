//! The bytes of the log and of the catalog: log records and catalog rows.

pub(crate) mod field;
pub(crate) mod record;
mod space;
pub(crate) mod tables;
