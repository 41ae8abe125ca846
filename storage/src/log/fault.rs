//! A fault of the log, and its file.

use std::path::PathBuf;
use std::sync::Arc;

use super::position::Lsn;
use super::segment::Segment;
use crate::error::Damage;
use crate::log_page::PageSize;

/// Bytes that fail a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) position: u64,
    pub(crate) what: String,
}

/// Adds the file to a fault.
pub(crate) fn damage_at(segments: &[Arc<Segment>], page: PageSize, fault: Fault) -> Damage {
    let after = segments.partition_point(|segment| segment.first <= fault.position);
    match segments.get(after.saturating_sub(1)) {
        Some(segment) => segment.damage(fault.position, page, fault.what),
        None => Damage {
            file: PathBuf::new(),
            page: 0,
            offset: fault.position,
            position: Lsn(fault.position),
            what: fault.what,
        },
    }
}
