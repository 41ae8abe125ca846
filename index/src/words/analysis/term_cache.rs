//! A cache from short words and pieces of text to their terms.
//!
//! An open-addressing hash table with linear probing (Knuth, *The Art of Computer Programming*, volume 3, 6.4). A hit
//! costs one cache miss: key and value share one entry, and two entries share a cache line. A caller that knows the
//! next words can prefetch their entries.
//!
//! Cost: 32 bytes per entry, at most three quarters of them used, at most [`MAX_LEN`] entries. When all are used, the
//! cache is cleared; frequent words return soon.

use std::hash::{BuildHasher, RandomState};

use crate::words::analysis::inline_word::InlineWord;

/// The most terms cached for one word or piece.
pub(crate) const MAX_TERMS: usize = 3;
/// Sentinel: no term.
pub(crate) const NONE: u32 = u32::MAX;

const FIRST_LEN: usize = 1 << 8;
const MAX_LEN: usize = 1 << 16;

/// The terms of a word or piece of text, and the number of words among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CachedTerms {
    pub(crate) terms: [u32; MAX_TERMS],
    pub(crate) words: u32,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Entry {
    word: InlineWord,
    cached: CachedTerms,
}

const _: () = assert!(size_of::<Entry>() == 32);

const FREE: Entry = Entry { word: InlineWord::NOTHING, cached: CachedTerms { terms: [NONE; MAX_TERMS], words: 0 } };

/// A map from words and pieces to their terms.
#[derive(Debug)]
pub(crate) struct TermCache {
    /// Empty, or a power of two in length.
    entries: Vec<Entry>,
    taken: usize,
    /// Random hash seeds: nobody can craft a text whose words all collide.
    seeds: [u64; 2],
}

impl Default for TermCache {
    fn default() -> Self {
        let random = RandomState::new();
        Self { entries: Vec::new(), taken: 0, seeds: [0, 1].map(|seed: u64| random.hash_one(seed)) }
    }
}

impl TermCache {
    /// Prefetches the entry of a word.
    #[inline]
    pub(crate) fn prefetch(&self, word: InlineWord) {
        if let Some(entry) = self.entries.get(self.place(word)) {
            crate::prefetch::prefetch(std::slice::from_ref(entry));
        }
    }

    /// The terms of a word, if cached.
    #[inline]
    pub(crate) fn get(&self, word: InlineWord) -> Option<CachedTerms> {
        let mut place = self.place(word);
        loop {
            let entry = self.entries.get(place)?;
            if entry.word == word {
                return Some(entry.cached);
            }
            if entry.word == InlineWord::NOTHING {
                return None;
            }
            place = (place + 1) & (self.entries.len() - 1);
        }
    }

    /// Caches the terms of a word that is not empty and not yet cached.
    pub(crate) fn insert(&mut self, word: InlineWord, cached: CachedTerms) {
        if (self.taken + 1) * 4 > self.entries.len() * 3 {
            self.make_room();
        }
        self.put(Entry { word, cached });
    }

    fn make_room(&mut self) {
        self.taken = 0;
        if self.entries.len() >= MAX_LEN {
            self.entries.fill(FREE);
            return;
        }
        let len = (2 * self.entries.len()).max(FIRST_LEN);
        let old = std::mem::replace(&mut self.entries, vec![FREE; len]);
        old.into_iter().filter(|entry| entry.word != InlineWord::NOTHING).for_each(|entry| self.put(entry));
    }

    fn put(&mut self, entry: Entry) {
        let mut place = self.place(entry.word);
        while self.entries[place].word != InlineWord::NOTHING {
            place = (place + 1) & (self.entries.len() - 1);
        }
        self.entries[place] = entry;
        self.taken += 1;
    }

    #[inline]
    fn place(&self, word: InlineWord) -> usize {
        word.hash(self.seeds) as usize & self.entries.len().wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn word(number: u32) -> InlineWord {
        InlineWord::word(&format!("w{number}")).unwrap()
    }

    fn cached(number: u32) -> CachedTerms {
        CachedTerms { terms: [number, NONE, NONE], words: 1 }
    }

    /// Against a map, over every growth; past the last all are forgotten at once.
    #[test]
    fn what_is_remembered_is_what_was_given() {
        let mut cache = TermCache::default();
        assert_eq!(cache.get(word(0)), None);
        let mut map = HashMap::new();
        let (mut forgot, mut looked) = (0, 0);
        for number in 0..100_000 {
            cache.prefetch(word(number));
            assert_eq!(cache.get(word(number)), None);
            cache.insert(word(number), cached(number));
            if cache.taken == 1 && number > 0 {
                map.clear();
                forgot += 1;
            }
            map.insert(number, cached(number));
            if number.is_power_of_two() || number % 9_973 == 0 {
                looked += 1;
                for other in 0..=number {
                    assert_eq!(cache.get(word(other)), map.get(&other).copied(), "{other} of {number}");
                }
            }
        }
        assert_eq!((forgot, cache.entries.len()), (2, MAX_LEN));
        assert!(looked > 20);
    }
}
