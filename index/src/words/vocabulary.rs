//! The terms of a tail, numbered as they come, and what short words gave when they were met before.
//!
//! The same words come again and again. What a word gives depends on nothing else, so the numbers of its terms are kept
//! beside the word itself (`remembered`): otherwise each word costs a look-up of its stem, of the stem's term and of the
//! surface's, each of them several misses of the cache. So are those of a short piece of text between spaces, such as
//! `(don't`, which would otherwise be taken apart by UAX #29 each time.
//!
//! A vocabulary serves one tail after the other, whose texts have mostly the same words, until it is
//! [too large](Vocabulary::is_too_large).
//!
//! Cost: memory for each distinct term and for what is remembered.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::analyse::{Analysis, Analyzer, Role, Sink, Taken, Term};
use super::remembered::{Gave, MAX_TERMS, NONE, Remembered};
use super::short::Short;
use super::stems::Stems;

/// A vocabulary that takes more than this serves no other tail.
const MAX_KEPT_BYTES: usize = 8 << 20;
/// What a term costs besides its text and postings: its place in the map, and the word that gave it.
const TERM_BYTES: usize = 96;

/// The terms of a growing index and their numbers.
#[derive(Debug)]
pub(super) struct Vocabulary {
    analysis: Analysis,
    numbers: Numbers,
}

#[derive(Debug, Default)]
struct Numbers {
    terms: HashMap<Box<str>, u32, RandomState>,
    words: Remembered,
    byte_len: usize,
}

impl Vocabulary {
    pub(super) fn new(analyzer: Analyzer, stems: Stems) -> Self {
        Self { analysis: analyzer.start_with(stems), numbers: Numbers::default() }
    }

    /// An empty one with the same analyser, and with the stems that were found so far.
    pub(super) fn afresh(&self) -> Self {
        let analysis = Analysis::new(self.analysis.stems().clone());
        Self { analysis, numbers: Numbers::default() }
    }

    /// Whether it has grown so large that one of fewer terms would do better.
    pub(super) fn is_too_large(&self) -> bool {
        self.numbers.byte_len > MAX_KEPT_BYTES
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

    /// Hands on the numbers of the terms of a text, in order, giving new ones where needed; returns how many words it has.
    pub(super) fn number_terms(&mut self, text: &str, take: impl FnMut(u32)) -> u32 {
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
    fn expect(&mut self, short: Short) {
        self.numbers.words.prefetch(short);
    }

    #[inline]
    fn remembers(&mut self, short: Short) -> bool {
        let Some(known) = self.numbers.words.get(short) else { return false };
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

    fn learn(&mut self, short: Short, since: Taken) {
        let count = self.taken.terms - since.terms;
        if count > MAX_TERMS {
            return;
        }
        let mut terms = [NONE; MAX_TERMS];
        terms[..count].copy_from_slice(&self.last[MAX_TERMS - count..]);
        self.numbers.words.insert(short, Gave { terms, words: self.taken.words - since.words });
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

#[cfg(test)]
mod tests {
    use super::super::analyse::Stemming;
    use super::*;
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

    /// A text met again gives the same terms, and as many words, as an analysis that remembers nothing.
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
