//! Stems by Snowball's algorithms, and a cache of them: computing a stem costs as much as thirty look-ups.
//!
//! The script of a word decides its algorithm: ASCII letters are English (Porter 2), Cyrillic letters Russian, Greek
//! letters Greek. Words of other languages in these scripts lose some endings of the same look, in texts and questions
//! alike.
//!
//! Copies share the cache, so a tail passes it to its successor, whose texts mostly have the same words. The cache
//! holds at most [`MAX_STEMS`] stems; when it is full, it is cleared.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::fast::RandomState;
use rust_stemmers::{Algorithm, Stemmer};

use crate::words::analysis::Stemming;

/// Capacity of the cache.
const MAX_STEMS: usize = 32 << 10;
/// Lengths in bytes of words that are stemmed.
const STEM_LEN: std::ops::RangeInclusive<usize> = 3..=32;
/// The same for letters of two bytes.
const WIDE_STEM_LEN: std::ops::RangeInclusive<usize> = 6..=64;

type StemCache = HashMap<Box<str>, Option<Box<str>>, RandomState>;

/// A stemmer with a cache that its clones share.
#[derive(Clone)]
pub(crate) struct Stems {
    stemming: Stemming,
    /// Stems by word; `None` for a word that is its own stem.
    cache: Arc<Mutex<StemCache>>,
}

impl fmt::Debug for Stems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stems").field("stemming", &self.stemming).finish_non_exhaustive()
    }
}

impl Stems {
    pub(crate) fn new(stemming: Stemming) -> Self {
        Self { stemming, cache: Arc::default() }
    }

    /// Returns true if words are stemmed at all.
    pub(crate) fn is_active(&self) -> bool {
        self.stemming == Stemming::English
    }

    /// Passes the stem of a folded word to `take`. Words of other letters are their own stems.
    pub(crate) fn stem<T>(&self, word: &str, take: impl FnOnce(&str) -> T) -> T {
        let Some(algorithm) = self.algorithm(word) else { return take(word) };
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stem) = cache.get(word) {
            return take(stem.as_deref().unwrap_or(word));
        }
        if cache.len() >= MAX_STEMS {
            cache.clear();
        }
        let stem = Stemmer::create(algorithm).stem(word);
        cache.insert(word.into(), (*stem != *word).then(|| stem.as_ref().into()));
        take(&stem)
    }

    fn algorithm(&self, word: &str) -> Option<Algorithm> {
        if !self.is_active() {
            return None;
        }
        if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return STEM_LEN.contains(&word.len()).then_some(Algorithm::English);
        }
        let all = |letters: std::ops::RangeInclusive<char>| word.chars().all(|sign| letters.contains(&sign));
        match word.bytes().next()? {
            0xce | 0xcf if all('α'..='ω') => Some(Algorithm::Greek),
            0xd0 | 0xd1 if all('а'..='џ') => Some(Algorithm::Russian),
            _ => None,
        }
        .filter(|_| WIDE_STEM_LEN.contains(&word.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stem_is_the_same_whenever_it_is_asked_for() {
        let stems = Stems::new(Stemming::English);
        for stems in [&stems, &stems.clone()] {
            for (word, expected) in [("running", "run"), ("run", "run"), ("ua", "ua"), ("caf\u{e9}s", "caf\u{e9}s")] {
                assert_eq!(stems.stem(word, str::to_owned), expected);
            }
        }
        assert_eq!(Stems::new(Stemming::None).stem("running", str::to_owned), "running");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let stems = Stems::new(Stemming::English);
        let letters = |mut number: usize| {
            let mut word = String::new();
            for _ in 0..5 {
                word.push(char::from(b'a' + (number % 26) as u8));
                number /= 26;
            }
            word
        };
        (0..2 * MAX_STEMS).for_each(|number| stems.stem(&letters(number), |_| ()));
        assert!(stems.cache.lock().unwrap().len() <= MAX_STEMS);
    }
}
