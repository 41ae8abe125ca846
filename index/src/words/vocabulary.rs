//! The terms of a tail, numbered as they come, and what short words gave when they were met before.
//!
//! The same words come again and again. What a word gives depends on nothing else, so the numbers of its terms are kept
//! beside the word itself, in one entry that a look-up finds without following a pointer: otherwise each word costs a look-up
//! of its stem, of the stem's term and of the surface's, each of them several misses of the cache.
//!
//! Cost: 32 bytes for each of at most [`MAX_WORDS`] remembered words; memory for each distinct term.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::analyse::{Analysis, Analyzer, Role, Sink, Term};
use super::stems::Stems;

/// The most words that are remembered.
const MAX_WORDS: usize = 64 << 10;
/// The longest of them in bytes.
const MAX_WORD_LEN: usize = 15;
/// The most terms of one of them.
const MAX_TERMS: usize = 3;
/// No term.
const NONE: u32 = u32::MAX;
/// What a term costs besides its text and postings: its place in the map, its list, and the word that gave it.
const TERM_BYTES: usize = 112;

/// The terms of a growing index and their numbers.
#[derive(Debug)]
pub(super) struct Vocabulary {
    analysis: Analysis,
    numbers: Numbers,
}

#[derive(Debug, Default)]
struct Numbers {
    terms: HashMap<Box<str>, u32, RandomState>,
    words: HashMap<[u64; 2], [u32; MAX_TERMS], RandomState>,
    byte_len: usize,
}

impl Vocabulary {
    pub(super) fn new(analyzer: Analyzer, stems: Stems) -> Self {
        Self { analysis: analyzer.start_with(stems), numbers: Numbers::default() }
    }

    /// How many terms there are; they have the numbers below that.
    pub(super) fn term_count(&self) -> usize {
        self.numbers.terms.len()
    }

    /// About how many bytes of memory the terms take.
    pub(super) fn byte_len(&self) -> usize {
        self.numbers.byte_len
    }

    /// The number of a term.
    pub(super) fn number(&self, key: &str) -> Option<u32> {
        self.numbers.terms.get(key).copied()
    }

    /// Every term with its number.
    pub(super) fn terms(&self) -> impl Iterator<Item = (&str, u32)> {
        self.numbers.terms.iter().map(|(key, number)| (&**key, *number))
    }

    /// Appends the numbers of the terms of a text, in order, giving new ones where needed; returns how many words it has.
    pub(super) fn number_terms(&mut self, text: &str, found: &mut Vec<u32>) -> u32 {
        let mut numbering = Numbering { numbers: &mut self.numbers, start: found.len(), found, words: 0 };
        self.analysis.run_into(text, &mut numbering);
        numbering.words
    }
}

/// The numbers of one text's terms.
struct Numbering<'a> {
    numbers: &'a mut Numbers,
    found: &'a mut Vec<u32>,
    words: u32,
    /// Where the terms of the word begin that is not known.
    start: usize,
}

impl Sink for Numbering<'_> {
    fn term(&mut self, term: Term<'_>) {
        self.words = self.words.saturating_add(u32::from(term.role == Role::Word));
        self.found.push(self.numbers.number(term.key));
    }

    fn remembers(&mut self, word: &str) -> bool {
        self.start = self.found.len();
        let Some(known) = inline(word).and_then(|word| self.numbers.words.get(&word)) else { return false };
        // One by one: an iterator that filters does not say how many come, and costs as much again as the look-up.
        known.iter().filter(|number| **number != NONE).for_each(|number| self.found.push(*number));
        self.words = self.words.saturating_add(1);
        true
    }

    fn learn(&mut self, word: &str) {
        let gave = self.found.get(self.start..).unwrap_or_default();
        let mut numbers = [NONE; MAX_TERMS];
        if let (Some(word), Some(place)) = (inline(word), numbers.get_mut(..gave.len()))
            && self.numbers.words.len() < MAX_WORDS
        {
            place.copy_from_slice(gave);
            self.numbers.words.insert(word, numbers);
        }
    }
}

impl Numbers {
    /// The number of a term, given now if it is new.
    fn number(&mut self, key: &str) -> u32 {
        if let Some(number) = self.terms.get(key) {
            return *number;
        }
        let number = self.terms.len() as u32;
        self.terms.insert(key.into(), number);
        self.byte_len += key.len() + TERM_BYTES;
        number
    }
}

/// A short word and its length in sixteen bytes.
fn inline(word: &str) -> Option<[u64; 2]> {
    let mut bytes = [0; MAX_WORD_LEN + 1];
    bytes.get_mut(..word.len()).filter(|_| word.len() <= MAX_WORD_LEN)?.copy_from_slice(word.as_bytes());
    bytes[MAX_WORD_LEN] = word.len() as u8;
    let (halves, _) = bytes.as_chunks();
    Some([u64::from_le_bytes(*halves.first()?), u64::from_le_bytes(*halves.last()?)])
}

#[cfg(test)]
mod tests {
    use super::super::analyse::Stemming;
    use super::*;

    /// A text met again gives the same terms, and as many words, as an analysis that remembers nothing.
    #[test]
    fn what_is_remembered_is_what_was_given() {
        let text = "Running runs ran, running cafés café a_b UA123 extraordinarily extraordinarily-long abcdefghijklmno \
                    abcdefghijklmnop don't naïvetés 東京 running";
        let expected = Analyzer::default().analyze(text);
        let mut vocabulary = Vocabulary::new(Analyzer::default(), Stems::new(Stemming::English));
        for _ in 0..3 {
            let mut found = Vec::new();
            let words = vocabulary.number_terms(text, &mut found);
            let mut keys = vec![""; vocabulary.term_count()];
            vocabulary.terms().for_each(|(key, number)| keys[number as usize] = key);
            let found: Vec<&str> = found.iter().map(|number| keys[*number as usize]).collect();
            assert_eq!(found, expected.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>());
            assert_eq!(words as usize, expected.iter().filter(|(_, role)| *role == Role::Word).count());
        }
        assert_eq!(vocabulary.number("run"), Some(0));
        assert_eq!(vocabulary.number("runs"), None);
    }

    #[test]
    fn long_words_are_not_kept_inline_and_lengths_tell_words_apart() {
        assert_eq!(inline("abcdefghijklmnop"), None);
        assert_ne!(inline("a"), inline("a\0"));
        assert!(inline("abcdefghijklmno").is_some());
    }
}
