//! Holotype's durable bytes: the hash-chained page log, the catalog, derived segment files.

pub mod vfs;
