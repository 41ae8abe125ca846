//! What short words and pieces of text gave when they were met before.
//!
//! An open hash table with linear probing (Knuth, *The Art of Computer Programming*, volume 3, 6.4), made so that a word that
//! is there costs one miss of the cache: a word and what it gave stand in one entry, two entries in a line. Whoever knows which
//! words come can have their lines fetched beforehand.
//!
//! Cost: 32 bytes an entry, of which at most three in four are taken; [`MAX_LEN`] entries at most. When those are taken, all
//! are forgotten: what comes again is soon known again.

use std::hash::{BuildHasher, RandomState};

use super::short::Short;

/// The most terms that are remembered of one word or piece.
pub(super) const MAX_TERMS: usize = 3;
/// No term.
pub(super) const NONE: u32 = u32::MAX;

const FIRST_LEN: usize = 1 << 8;
const MAX_LEN: usize = 1 << 16;

/// What a word or a piece of text gave: terms, and words among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gave {
    pub(super) terms: [u32; MAX_TERMS],
    pub(super) words: u32,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Entry {
    short: Short,
    gave: Gave,
}

const _: () = assert!(size_of::<Entry>() == 32);

const FREE: Entry = Entry { short: Short::NOTHING, gave: Gave { terms: [NONE; MAX_TERMS], words: 0 } };

/// Words and pieces with what they gave.
#[derive(Debug)]
pub(super) struct Remembered {
    /// A power of two of them, or none.
    entries: Vec<Entry>,
    taken: usize,
    /// What a hash begins with, so that no text can be made whose words all have one place.
    seeds: [u64; 2],
}

impl Default for Remembered {
    fn default() -> Self {
        let random = RandomState::new();
        Self { entries: Vec::new(), taken: 0, seeds: [0, 1].map(|seed: u64| random.hash_one(seed)) }
    }
}

impl Remembered {
    /// Has the place of a word fetched from memory.
    #[inline]
    pub(super) fn prefetch(&self, short: Short) {
        if let Some(entry) = self.entries.get(self.place(short)) {
            crate::distance::prefetch(std::slice::from_ref(entry));
        }
    }

    /// What a word gave, if that is known.
    #[inline]
    pub(super) fn get(&self, short: Short) -> Option<Gave> {
        let mut place = self.place(short);
        loop {
            let entry = self.entries.get(place)?;
            if entry.short == short {
                return Some(entry.gave);
            }
            if entry.short == Short::NOTHING {
                return None;
            }
            place = (place + 1) & (self.entries.len() - 1);
        }
    }

    /// Remembers what a word gave, which is not known and not nothing.
    pub(super) fn insert(&mut self, short: Short, gave: Gave) {
        if (self.taken + 1) * 4 > self.entries.len() * 3 {
            self.make_room();
        }
        self.put(Entry { short, gave });
    }

    fn make_room(&mut self) {
        self.taken = 0;
        if self.entries.len() >= MAX_LEN {
            self.entries.fill(FREE);
            return;
        }
        let len = (2 * self.entries.len()).max(FIRST_LEN);
        let old = std::mem::replace(&mut self.entries, vec![FREE; len]);
        old.into_iter().filter(|entry| entry.short != Short::NOTHING).for_each(|entry| self.put(entry));
    }

    fn put(&mut self, entry: Entry) {
        let mut place = self.place(entry.short);
        while self.entries[place].short != Short::NOTHING {
            place = (place + 1) & (self.entries.len() - 1);
        }
        self.entries[place] = entry;
        self.taken += 1;
    }

    #[inline]
    fn place(&self, short: Short) -> usize {
        short.hash(self.seeds) as usize & self.entries.len().wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn word(number: u32) -> Short {
        Short::word(&format!("w{number}")).unwrap()
    }

    fn gave(number: u32) -> Gave {
        Gave { terms: [number, NONE, NONE], words: 1 }
    }

    /// Against a map, over every growth; past the last all are forgotten at once.
    #[test]
    fn what_is_remembered_is_what_was_given() {
        let mut remembered = Remembered::default();
        assert_eq!(remembered.get(word(0)), None);
        let mut map = HashMap::new();
        let (mut forgot, mut looked) = (0, 0);
        for number in 0..100_000 {
            remembered.prefetch(word(number));
            assert_eq!(remembered.get(word(number)), None);
            remembered.insert(word(number), gave(number));
            if remembered.taken == 1 && number > 0 {
                map.clear();
                forgot += 1;
            }
            map.insert(number, gave(number));
            if number.is_power_of_two() || number % 9_973 == 0 {
                looked += 1;
                for other in 0..=number {
                    assert_eq!(remembered.get(word(other)), map.get(&other).copied(), "{other} of {number}");
                }
            }
        }
        assert_eq!((forgot, remembered.entries.len()), (2, MAX_LEN));
        assert!(looked > 20);
    }
}
