//! English stems by the Porter 2 algorithm.

use rust_stemmers::{Algorithm, Stemmer};

use crate::words::analysis::Stemming;

/// Lengths in bytes of words that are stemmed.
const STEM_LEN: std::ops::RangeInclusive<usize> = 3..=32;

/// A stemmer of lower-cased words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stems {
    stemming: Stemming,
}

impl Stems {
    pub(crate) fn new(stemming: Stemming) -> Self {
        Self { stemming }
    }

    /// Passes the stem of a lower-cased word to `take`. Words with non-ASCII letters are their own stems.
    pub(crate) fn stem<T>(&self, word: &str, take: impl FnOnce(&str) -> T) -> T {
        let is_stemmed = self.stemming == Stemming::English
            && STEM_LEN.contains(&word.len())
            && word.bytes().all(|byte| byte.is_ascii_lowercase());
        if is_stemmed { take(&Stemmer::create(Algorithm::English).stem(word)) } else { take(word) }
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
