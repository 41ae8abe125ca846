//! Whether an item line says what the database holds of the item, and if not, the first member that differs.
//!
//! An item is compared as it was written and, where that may have changed since, as it stands: status and utility by
//! marks, `active` by a deactivation, pointers by later citations. A step that the line does not state is the engine's
//! to give, a vector that it does not state the embedder's.

use super::fault::Failure;
use crate::interchange::line::{FieldValue, Pointer, Recall, Stated, Theme, Trace, Unit};
use crate::interchange::vocabulary::nearest;
use crate::provenance::{field_bytes, hex};
use crate::record::{self, ItemRecord, PointerRecord, PointerTarget};
use crate::{Attributes, Edge, Inherited, Kind, Origin, Result, Snapshot, Source, Status, time};

/// The first member in which a line and a stored item differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) path: Vec<String>,
    pub(super) stored: String,
    pub(super) given: String,
}
