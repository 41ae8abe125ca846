//! Document lengths for scoring, which reads them at random, once per posting.

use std::borrow::Cow;

use crate::words::postings::StoredU32;

/// The lengths of the documents of a segment or tail, in sixteenths of a word.
#[derive(Debug)]
pub(crate) struct DocLengths<'a>(pub(crate) Cow<'a, [StoredU32]>);

impl DocLengths<'_> {
    /// The length of a document; `None` out of range.
    #[inline]
    pub(crate) fn get(&self, local: u32) -> Option<u32> {
        self.0.get(local as usize).map(|len| u32::from_le_bytes(*len))
    }
}
