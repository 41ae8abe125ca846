//! The items whose text the detector quarantines, as far as they were asked about.
//!
//! The text of an item never changes, so that its verdict holds for as long as the database is open. Verdicts on what a
//! transaction has not committed are not kept, since another may get the same number.

use crate::Result;
use holotype_index::bitmap::Bits;
use std::sync::{Mutex, PoisonError};

/// Verdicts so far.
#[derive(Default)]
pub(crate) struct Quarantined(Mutex<Verdicts>);

#[derive(Default)]
struct Verdicts {
    known: Bits,
    quarantined: Bits,
}

impl Quarantined {
    /// The quarantined ones of `items`; `verdict` tells of one that is not known yet.
    pub(crate) fn among(&self, items: &Bits, keeps: bool, verdict: impl Fn(u32) -> Result<bool>) -> Result<Bits> {
        let (unknown, mut found) = {
            let verdicts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            (items.and_not(&verdicts.known), verdicts.quarantined.and(items))
        };
        let mut fresh = Vec::new();
        for id in unknown.iter() {
            if verdict(id)? {
                fresh.push(id);
            }
        }
        let fresh: Bits = fresh.into_iter().collect();
        if keeps && !unknown.is_empty() {
            let mut verdicts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            verdicts.known = verdicts.known.or(&unknown);
            verdicts.quarantined = verdicts.quarantined.or(&fresh);
        }
        found = found.or(&fresh);
        Ok(found)
    }
}
