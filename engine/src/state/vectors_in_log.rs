//! The vectors of items where they were written: in the records of the log ([`holotype_index::logged`]).
//!
//! A segment of vectors whose bytes are those of the records refers to them. The vector is the last field of an item's
//! record, and a retained copy of a record ends as the record does, so its bytes are the last of the payload.

use crate::model::item::ItemId;
use crate::records::record::ends_with_vector;
use crate::state::attributes::AttributeStore;
use holotype_index::LoggedVectors;
use holotype_storage::log::{Lsn, PayloadEnds, Place};
use std::fmt;
use std::num::NonZero;

/// The vectors of a state's items in the log.
pub(crate) struct VectorsInLog {
    pub(crate) attributes: AttributeStore,
    pub(crate) payloads: PayloadEnds,
}

impl fmt::Debug for VectorsInLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VectorsInLog").finish_non_exhaustive()
    }
}

impl LoggedVectors for VectorsInLog {
    fn find(&self, id: u32, out: &mut [u8]) -> Option<NonZero<u64>> {
        let (lsn, is_redacted) = self.attributes.location_of(ItemId(id)).ok()?;
        let (kind, place) = self.payloads.find(Lsn(lsn), out).ok()?;
        (!is_redacted && ends_with_vector(kind)).then(|| place.to_number())
    }

    fn copy(&self, place: NonZero<u64>, out: &mut [u8]) -> bool {
        self.payloads.read(Place::from_number(place), out)
    }

    fn prefetch(&self, place: NonZero<u64>, len: usize) {
        self.payloads.prefetch(Place::from_number(place), len);
    }
}
