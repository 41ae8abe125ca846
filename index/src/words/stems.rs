//! The stems of English words, remembered: to find one costs as much as thirty look-ups.
//!
//! What was found is shared by all that go on with it: a tail gives it to the next one, whose texts have mostly the same words.
//! At most [`MAX_STEMS`] are kept; then all are forgotten.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::fast::RandomState;
use rust_stemmers::{Algorithm, Stemmer};

use super::analyse::Stemming;

/// The most stems that are remembered.
const MAX_STEMS: usize = 32 << 10;
/// How long a word is that has a stem of its own.
const STEM_LEN: std::ops::RangeInclusive<usize> = 3..=32;

type Found = HashMap<Box<str>, Option<Box<str>>, RandomState>;

/// A stemmer and the stems it has found. Copies share them.
#[derive(Clone)]
pub(super) struct Stems {
    stemming: Stemming,
    /// By word; nothing where a word is its own stem.
    found: Arc<Mutex<Found>>,
}

impl fmt::Debug for Stems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stems").field("stemming", &self.stemming).finish_non_exhaustive()
    }
}

impl Stems {
    pub(super) fn new(stemming: Stemming) -> Self {
        Self { stemming, found: Arc::default() }
    }

    /// Gives `take` the stem of a lower-cased word; words of other than ASCII letters are their own.
    pub(super) fn stem<T>(&self, word: &str, take: impl FnOnce(&str) -> T) -> T {
        let is_stemmed = self.stemming == Stemming::English
            && STEM_LEN.contains(&word.len())
            && word.bytes().all(|byte| byte.is_ascii_lowercase());
        if !is_stemmed {
            return take(word);
        }
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stem) = found.get(word) {
            return take(stem.as_deref().unwrap_or(word));
        }
        if found.len() >= MAX_STEMS {
            found.clear();
        }
        let stem = Stemmer::create(Algorithm::English).stem(word);
        found.insert(word.into(), (*stem != *word).then(|| stem.as_ref().into()));
        take(&stem)
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
        assert!(stems.found.lock().unwrap().len() <= MAX_STEMS);
    }
}
