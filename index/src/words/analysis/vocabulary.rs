//! The vocabulary of tails: terms numbered in order of their first occurrence, and a cache of the terms of short words.
//!
//! The terms of a word depend on nothing but the word, so the cache maps the word to their numbers ([`TermCache`]).
//! Without it each word costs a look-up of its stem, of the stem's term and of the surface's, each several cache
//! misses. The cache also holds short pieces of text between spaces, such as `(don't`, which otherwise need UAX #29
//! segmentation each time.
//!
//! A vocabulary serves a sequence of tails, whose texts mostly share their words, until it is
//! [too large](Vocabulary::is_too_large).
//!
//! Cost: memory for each distinct term and for the cache.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::words::analysis::inline_word::InlineWord;
use crate::words::analysis::stems::Stems;
use crate::words::analysis::term_cache::{CachedTerms, MAX_TERMS, NONE, TermCache};
use crate::words::analysis::{Analysis, Analyzer, Role, Sink, Taken, Term};

/// A larger vocabulary is not passed to another tail.
const MAX_KEPT_BYTES: usize = 8 << 20;
/// Memory per term besides its text and postings: its map entry, and its cached word.
const TERM_BYTES: usize = 96;

/// The terms of an index under construction and their numbers.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    analysis: Analysis,
    numbers: Numbers,
}

#[derive(Debug, Default)]
struct Numbers {
    terms: HashMap<Box<str>, u32, RandomState>,
    words: TermCache,
    byte_len: usize,
}

impl Vocabulary {
    pub(crate) fn new(analyzer: Analyzer, stems: Stems) -> Self {
        Self { analysis: analyzer.start_with(stems), numbers: Numbers::default() }
    }

    /// An empty vocabulary with the same analyser.
    pub(crate) fn afresh(&self) -> Self {
        let analysis = Analysis::new(*self.analysis.stems());
        Self { analysis, numbers: Numbers::default() }
    }

    /// Returns true if it is too large to be passed to another tail.
    pub(crate) fn is_too_large(&self) -> bool {
        self.numbers.byte_len > MAX_KEPT_BYTES
    }

    /// The number of terms, which are numbered from 0.
    pub(crate) fn term_count(&self) -> usize {
        self.numbers.terms.len()
    }

    /// The approximate memory of the terms in bytes.
    pub(crate) fn byte_len(&self) -> usize {
        self.numbers.byte_len
    }

    /// The number of a term.
    pub(crate) fn number(&self, key: &str) -> Option<u32> {
        self.numbers.terms.get(key).copied()
    }

    /// All terms with their numbers.
    pub(crate) fn terms(&self) -> impl Iterator<Item = (&str, u32)> {
        self.numbers.terms.iter().map(|(key, number)| (&**key, *number))
    }

    /// Passes the numbers of the terms of `text` to a callback in order, numbering new terms; returns the number of
    /// words.
    pub(crate) fn number_terms(&mut self, text: &str, take: impl FnMut(u32)) -> u32 {
        let taken = Taken::default();
        let mut numbering = Numbering { numbers: &mut self.numbers, take, taken, last: [NONE; MAX_TERMS] };
        self.analysis.run_into(text, &mut numbering);
        numbering.taken.words
    }
}

/// The numbers of one text's terms.
struct Numbering<'a, T> {
    numbers: &'a mut Numbers,
    take: T,
    taken: Taken,
    /// The last terms, in order.
    last: [u32; MAX_TERMS],
}

impl<T: FnMut(u32)> Numbering<'_, T> {
    #[inline]
    fn give(&mut self, number: u32) {
        let [_, before, last] = self.last;
        self.last = [before, last, number];
        self.taken.terms += 1;
        (self.take)(number);
    }
}

impl<T: FnMut(u32)> Sink for Numbering<'_, T> {
    fn term(&mut self, term: Term<'_>) {
        self.taken.words = self.taken.words.saturating_add(u32::from(term.role == Role::Word));
        let number = self.numbers.number(term.key);
        self.give(number);
    }

    #[inline]
    fn expect(&mut self, word: InlineWord) {
        self.numbers.words.prefetch(word);
    }

    #[inline]
    fn remembers(&mut self, word: InlineWord) -> bool {
        let Some(known) = self.numbers.words.get(word) else { return false };
        for number in known.terms {
            if number == NONE {
                break;
            }
            self.give(number);
        }
        self.taken.words = self.taken.words.saturating_add(known.words);
        true
    }

    fn taken(&self) -> Taken {
        self.taken
    }

    fn learn(&mut self, word: InlineWord, since: Taken) {
        let count = self.taken.terms - since.terms;
        if count > MAX_TERMS {
            return;
        }
        let mut terms = [NONE; MAX_TERMS];
        terms[..count].copy_from_slice(&self.last[MAX_TERMS - count..]);
        self.numbers.words.insert(word, CachedTerms { terms, words: self.taken.words - since.words });
    }
}

impl Numbers {
    /// The number of a term, assigned now if it is new.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::analysis::Stemming;
    use proptest::prelude::*;

    fn numbered(vocabulary: &mut Vocabulary, text: &str) -> (Vec<String>, u32) {
        let mut found = Vec::new();
        let words = vocabulary.number_terms(text, |number| found.push(number));
        let mut keys = vec![""; vocabulary.term_count()];
        vocabulary.terms().for_each(|(key, number)| keys[number as usize] = key);
        (found.iter().map(|number| keys[*number as usize].to_owned()).collect(), words)
    }

    fn analysed(text: &str) -> (Vec<String>, u32) {
        let terms = Analyzer::default().analyze(text);
        let words = terms.iter().filter(|(_, role)| *role == Role::Word).count();
        (terms.into_iter().map(|(key, _)| key).collect(), words as u32)
    }

    /// A repeated text gives the same terms and word count as an analysis without a cache.
    #[test]
    fn what_is_remembered_is_what_was_given() {
        let text = "Running runs ran, running cafés café a_b UA123 extraordinarily extraordinarily-long abcdefghijklmno \
                    abcdefghijklmnop don't naïvetés 東京 running";
        let mut vocabulary = Vocabulary::new(Analyzer::default(), Stems::new(Stemming::English));
        for _ in 0..3 {
            assert_eq!(numbered(&mut vocabulary, text), analysed(text));
        }
        assert_eq!(vocabulary.number("run"), Some(0));
        assert_eq!(vocabulary.number("runs"), None);
    }
    proptest! {
        #[test]
        fn any_texts_give_what_an_analysis_gives_that_remembers_nothing(
            texts in proptest::collection::vec("([a-c'.@_0-2-]{0,5}[ (]|\\PC{0,6}){0,12}", 1..6)
        ) {
            let mut vocabulary = Vocabulary::new(Analyzer::default(), Stems::new(Stemming::English));
            for text in &texts {
                prop_assert_eq!(numbered(&mut vocabulary, text), analysed(text));
            }
        }
    }
}
