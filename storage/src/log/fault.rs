//! A byte of the log that is not what it must be, and the file it is in.

use std::path::PathBuf;
use std::sync::Arc;

use super::position::Lsn;
use super::segment::Segment;
use crate::error::Damage;
use crate::log_page::PageSize;

/// Something that should not be where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) position: u64,
    pub(crate) what: String,
}

/// A fault with the file it is in.
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
