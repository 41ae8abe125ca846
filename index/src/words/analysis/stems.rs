//! Stems by Snowball's algorithms.
//!
//! The script of a word decides its algorithm: ASCII letters are English (Porter 2), Cyrillic letters Russian, Greek
//! letters Greek. Words of other languages in these scripts lose some endings of the same look, in texts and questions
//! alike.

use rust_stemmers::{Algorithm, Stemmer};

use crate::words::analysis::Stemming;

/// Lengths in bytes of words that are stemmed.
const STEM_LEN: std::ops::RangeInclusive<usize> = 3..=32;
/// The same for letters of two bytes.
const WIDE_STEM_LEN: std::ops::RangeInclusive<usize> = 6..=64;

/// A stemmer of lower-cased words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stems {
    stemming: Stemming,
}

impl Stems {
    pub(crate) fn new(stemming: Stemming) -> Self {
        Self { stemming }
    }

    /// Returns true if words are stemmed at all.
    pub(crate) fn is_active(&self) -> bool {
        self.stemming == Stemming::English
    }

    /// Passes the stem of a folded word to `take`. Words of other letters are their own stems.
    pub(crate) fn stem<T>(&self, word: &str, take: impl FnOnce(&str) -> T) -> T {
        match self.algorithm(word) {
            Some(algorithm) => take(&Stemmer::create(algorithm).stem(word)),
            None => take(word),
        }
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
    fn words_of_plain_letters_are_stemmed() {
        let stems = Stems::new(Stemming::English);
        for (word, expected) in [("running", "run"), ("run", "run"), ("ua", "ua"), ("caf\u{e9}s", "caf\u{e9}s")] {
            assert_eq!(stems.stem(word, str::to_owned), expected);
        }
        assert_eq!(Stems::new(Stemming::None).stem("running", str::to_owned), "running");
    }
}
