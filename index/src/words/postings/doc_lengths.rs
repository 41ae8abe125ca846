//! Document lengths for scoring, which reads them at random, once per posting.
//!
//! Most documents of a segment have one of a few lengths. So one byte per document selects a common length, in a
//! quarter of the memory, which stays in cache. All other documents read the full array.

use std::borrow::Cow;

use crate::words::postings::StoredU32;

/// The class of lengths without a class of their own.
const OTHER: u8 = u8::MAX;

/// Lengths from here on (4,096 words) have no class.
const LONG: u32 = 1 << 16;

/// A length class for each document of a segment.
#[derive(Debug)]
pub(crate) struct LengthClasses {
    classes: Vec<u8>,
    /// The length of each class.
    doc_lengths: Vec<u32>,
}

impl LengthClasses {
    /// Classifies the lengths of a segment. The first distinct lengths below [`LONG`] get classes.
    pub(crate) fn new(doc_lengths: &[StoredU32]) -> Self {
        let doc_lengths = || doc_lengths.iter().map(|len| u32::from_le_bytes(*len));
        let bound = doc_lengths().filter(|len| *len < LONG).max().map_or(0, |longest| longest as usize + 1);
        let mut numbers: Vec<Option<u8>> = vec![None; bound];
        let mut common = Vec::new();
        let mut class_of = |len: u32| {
            let Some(number) = numbers.get_mut(len as usize) else { return OTHER };
            *number.get_or_insert_with(|| {
                let class = u8::try_from(common.len()).unwrap_or(OTHER);
                if class != OTHER {
                    common.push(len);
                }
                class
            })
        };
        let classes = doc_lengths().map(&mut class_of).collect();
        Self { classes, doc_lengths: common }
    }
}

/// The lengths of the documents of a segment or tail, in sixteenths of a word.
#[derive(Debug)]
pub(crate) struct DocLengths<'a> {
    all: Cow<'a, [StoredU32]>,
    classes: &'a [u8],
    of_class: &'a [u32],
}

impl<'a> DocLengths<'a> {
    /// All lengths, with their classes if available.
    pub(crate) fn new(all: Cow<'a, [StoredU32]>, classes: Option<&'a LengthClasses>) -> Self {
        let (classes, of_class) =
            classes.map_or((&[][..], &[][..]), |classes| (&classes.classes, &classes.doc_lengths));
        Self { all, classes, of_class }
    }

    /// The length of a document; `None` out of range.
    #[inline]
    pub(crate) fn get(&self, local: u32) -> Option<u32> {
        let class = self.classes.get(local as usize).copied().unwrap_or(OTHER);
        match self.of_class.get(usize::from(class)) {
            Some(len) => Some(*len),
            None => self.all.get(local as usize).map(|len| u32::from_le_bytes(*len)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_found_whether_it_is_common_or_not() {
        let stored: Vec<StoredU32> =
            (0..1000u32).map(|i| (i * 7919 % 400 + u32::from(i > 990) * 70_000).to_le_bytes()).collect();
        let classes = LengthClasses::new(&stored);
        assert_eq!(classes.doc_lengths.len(), usize::from(OTHER));
        let with = DocLengths::new(Cow::Borrowed(&stored), Some(&classes));
        let without = DocLengths::new(Cow::Borrowed(&stored), None);
        for (local, len) in (0..).zip(&stored) {
            let len = Some(u32::from_le_bytes(*len));
            assert_eq!((with.get(local), without.get(local)), (len, len));
        }
        assert_eq!((with.get(1000), without.get(1000)), (None, None));
    }
}
