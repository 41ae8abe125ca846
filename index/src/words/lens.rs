//! Lengths of documents, as a search reads them: one here and one there, for every posting of a term.
//!
//! Most documents of a segment have one of a few lengths. So a byte for each says which, in a quarter of the memory that the
//! lengths take and that much nearer to the core; for the rest it says to look where the lengths are kept.

use std::borrow::Cow;

use super::segment::Number;

/// The class of all lengths that have none of their own.
const OTHER: u8 = u8::MAX;

/// From here on a length has no class: 4,096 words.
const LONG: u32 = 1 << 16;

/// Which of a segment's common lengths each document has.
#[derive(Debug)]
pub(super) struct LenClasses {
    classes: Vec<u8>,
    /// The length of each class.
    lens: Vec<u32>,
}

impl LenClasses {
    /// Of all lengths of a segment. The first that are met, of those below [`LONG`], have classes.
    pub(super) fn new(lens: &[Number]) -> Self {
        let lens = || lens.iter().map(|len| u32::from_le_bytes(*len));
        let bound = lens().filter(|len| *len < LONG).max().map_or(0, |longest| longest as usize + 1);
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
        let classes = lens().map(&mut class_of).collect();
        Self { classes, lens: common }
    }
}

/// The lengths of the documents of a part, in sixteenths of a word.
#[derive(Debug)]
pub(super) struct Lens<'a> {
    all: Cow<'a, [Number]>,
    classes: &'a [u8],
    of_class: &'a [u32],
}

impl<'a> Lens<'a> {
    /// All of them, and their classes where there are any.
    pub(super) fn new(all: Cow<'a, [Number]>, classes: Option<&'a LenClasses>) -> Self {
        let (classes, of_class) = classes.map_or((&[][..], &[][..]), |classes| (&classes.classes, &classes.lens));
        Self { all, classes, of_class }
    }

    /// The length of a document; nothing for one that is not there.
    #[inline]
    pub(super) fn get(&self, local: u32) -> Option<u32> {
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
        let stored: Vec<Number> =
            (0..1000u32).map(|i| (i * 7919 % 400 + u32::from(i > 990) * 70_000).to_le_bytes()).collect();
        let classes = LenClasses::new(&stored);
        assert_eq!(classes.lens.len(), usize::from(OTHER));
        let with = Lens::new(Cow::Borrowed(&stored), Some(&classes));
        let without = Lens::new(Cow::Borrowed(&stored), None);
        for (local, len) in (0..).zip(&stored) {
            let len = Some(u32::from_le_bytes(*len));
            assert_eq!((with.get(local), without.get(local)), (len, len));
        }
        assert_eq!((with.get(1000), without.get(1000)), (None, None));
    }
}
