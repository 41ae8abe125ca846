//! Fast path of the analysis: text between two spaces is mostly one plain word, which needs no UAX #29 segmentation.
//!
//! ASCII white space separates everything: no UAX #29 word contains it except at its end, no character composes with
//! it, and combining marks do not cross it. So a dash or an accent slows down only its own chunk.
//!
//! A short plain word is found and lower-cased sixteen bytes at a time ([`InlineWord`]). A sink with a cache already
//! knows its terms, and those of other short pieces between spaces; all other chunks take the general path. Cache
//! entries are mostly not in the processor's cache, so several words are found and prefetched before the first look-up.

use super::{Analysis, Role, Sink, Term};
use crate::words::analysis::folding::lower_into;
use crate::words::analysis::inline_word::InlineWord;
use crate::words::analysis::letters::{after_word, plain_word};
use crate::words::analysis::normal::normalize;

/// Words found and prefetched before their look-ups.
const AHEAD: usize = 16;

impl Analysis {
    /// Emits the terms of a text chunk by chunk.
    pub(crate) fn chunks(&mut self, text: &str, sink: &mut impl Sink) {
        let mut rest = text.as_bytes();
        let mut words = [InlineWord::NOTHING; AHEAD];
        let mut count = 0;
        // The end of the last chunk on the general path.
        let mut chunk_end: Option<usize> = None;
        while let [first, after @ ..] = rest {
            if first.is_ascii_whitespace() {
                rest = after;
                continue;
            }
            let word = InlineWord::leading(rest);
            match word.and_then(|word| Some((word, after_word(rest.get(word.len()..)?)?))) {
                Some((word, after)) => {
                    if count == AHEAD {
                        words.iter().for_each(|word| self.inline_word(*word, sink));
                        count = 0;
                    }
                    sink.expect(word);
                    words[count] = word;
                    count += 1;
                    rest = after;
                }
                None => {
                    words.iter().take(count).for_each(|word| self.inline_word(*word, sink));
                    count = 0;
                    let (start, len) = (text.len() - rest.len(), rest.iter().position(u8::is_ascii_whitespace));
                    let (chunk, after) = text[start..].split_at(len.unwrap_or(rest.len()));
                    let is_adjacent = chunk_end.is_some_and(|end| end + 1 == start && !is_line_end(text, end));
                    self.numbers(chunk, is_adjacent, sink);
                    self.chunk(chunk, sink);
                    chunk_end = Some(start + chunk.len());
                    rest = after.as_bytes();
                }
            }
        }
        words.iter().take(count).for_each(|word| self.inline_word(*word, sink));
        self.number_run.finish(&mut |key| sink.term(Term { key, role: Role::Joined }));
    }

    /// The wholes of groups of digits that end before a chunk. They are no terms of a chunk, whose terms are cached.
    fn numbers(&mut self, chunk: &str, is_adjacent: bool, sink: &mut impl Sink) {
        let mut each = |key: &str| sink.term(Term { key, role: Role::Joined });
        let has_digit = |text: &str| text.chars().any(char::is_numeric);
        if chunk.is_ascii() || !has_digit(chunk) {
            self.number_run.chunk(chunk, is_adjacent, &mut each);
        } else {
            for (place, chunk) in normalize(chunk).split(' ').enumerate() {
                self.number_run.chunk(chunk, is_adjacent || place > 0, &mut each);
            }
        }
    }

    /// A chunk that is not a short plain word.
    fn chunk(&mut self, chunk: &str, sink: &mut impl Sink) {
        if let Some(piece) = InlineWord::piece(chunk) {
            if !sink.remembers(piece) {
                let since = sink.taken();
                self.any_chunk(chunk, sink);
                sink.learn(piece, since);
            }
        } else if let Some(word) = plain_word(chunk) {
            let mut key = std::mem::take(&mut self.key);
            lower_into(word, &mut key);
            self.letters(&key, sink);
            self.key = key;
        } else {
            self.any_chunk(chunk, sink);
        }
    }

    /// A chunk on the general path.
    fn any_chunk(&mut self, chunk: &str, sink: &mut impl Sink) {
        self.window(&normalize(chunk), sink);
    }

    /// A short plain word.
    #[inline]
    fn inline_word(&mut self, word: InlineWord, sink: &mut impl Sink) {
        if !sink.remembers(word) {
            let mut key = std::mem::take(&mut self.key);
            word.write_into(&mut key);
            self.new_word(&key, Some(word), sink);
            self.key = key;
        }
    }
}

/// Returns true if the white space at `at` begins another line, which no number continues.
fn is_line_end(text: &str, at: usize) -> bool {
    matches!(text.as_bytes().get(at), Some(b'\n' | b'\r'))
}

#[cfg(test)]
mod tests {
    use super::super::{Analyzer, Each};
    use super::*;
    use crate::words::analysis::numbers::NumberRun;
    use proptest::prelude::*;

    type Terms = Vec<(String, Role)>;

    /// The terms of the words of a text as a whole, without those of numbers over several words.
    fn whole(text: &str) -> Terms {
        let mut terms = Vec::new();
        let each = &mut |term: Term<'_>| terms.push((term.key.to_owned(), term.role));
        Analyzer::default().start().window(&normalize(text), &mut Each(each));
        terms
    }

    /// The same, chunk by chunk.
    fn by_chunks(text: &str) -> Terms {
        let mut numbers = Vec::new();
        let mut run = NumberRun::default();
        let mut each = |key: &str| numbers.push((key.to_owned(), Role::Joined));
        let mut end = None;
        for chunk in text.split_ascii_whitespace() {
            let start = chunk.as_ptr() as usize - text.as_ptr() as usize;
            let mut adjacent = end.is_some_and(|end: usize| end + 1 == start && !is_line_end(text, end));
            for chunk in normalize(chunk).split(' ') {
                run.chunk(chunk, adjacent, &mut each);
                adjacent = true;
            }
            end = Some(start + chunk.len());
        }
        run.finish(&mut each);
        let mut terms = Analyzer::default().analyze(text);
        for number in numbers {
            let place = terms.iter().position(|term| *term == number).expect("a whole of each number");
            terms.remove(place);
        }
        terms
    }

    #[test]
    fn what_chunks_may_skip_changes_nothing() {
        let chunks = [
            "the",
            "The",
            "I",
            "a",
            "cats",
            "Running",
            "usa.",
            "etc...",
            "what?!",
            "no;",
            "USA",
            "iPhone",
            "don't",
            "e.g.",
            "10:30",
            "x,",
            "x,y",
            "a-b",
            "$5",
            "#tag",
            "well-known",
            "Mc",
            "McDonald",
            ".",
            "...",
            "_",
            "a_",
            "B12",
            "A.",
            "%",
            "so:",
            "\u{b}tab",
            "a\u{b}b",
            "\0",
            "a\0",
            "=",
            "'s",
            "it's",
            "na\u{ef}ve",
            "nai\u{308}ve",
            "\u{308}x",
            "\u{a8}x",
            "\u{2014}",
            "so\u{2014}and",
            "\u{201c}Quoted\u{201d}",
            "don\u{2019}t",
            "a\u{200d}b",
            "\u{200d}",
            "\u{1f1e9}",
            "\u{1f1e9}\u{1f1ea}",
            "\u{1f44d}\u{1f3fd}",
            "\u{fb01}ne",
            "\u{ff21}\u{ff22}",
            "\u{6771}\u{4eac}",
            "\u{30ab}\u{30bf}",
            "\u{e01}\u{e33}",
            "a\u{a0}b",
            "a\u{3000}b",
            "\u{645}\u{631}",
            "\u{5d0}\"\u{5d1}",
            "\u{430}.",
            "1\u{66b}5",
            "\u{2028}x",
            "\u{85}",
            "\u{feff}word",
            "word\u{ad}",
        ];
        let mut random = 1_u32;
        for _ in 0..2_000 {
            let mut text = String::new();
            for _ in 0..12 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                text.push_str(chunks[(random >> 8) as usize % chunks.len()]);
                text.push_str([" ", "  ", "\n", "\t", "\r\n", "\u{c}"][(random >> 24) as usize % 6]);
            }
            assert_eq!(by_chunks(&text), whole(&text), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_ascii_gives_what_the_general_way_gives(text in "([a-zA-Z]{0,18}[ -~]{0,3}[ \\t]{0,2}|[\0-\x7f]{0,20}){0,8}") {
            prop_assert_eq!(by_chunks(&text), whole(&text));
        }

        #[test]
        fn any_text_gives_what_it_gives_as_a_whole(
            text in "([a-zA-Z]{0,18}[ -~]{0,2}[\\pM\\pP\\p{Cf}]{0,2}[ \\t\\n]{0,2}|\\PC{0,9}[ \r]{0,2}|[\0-\u{7ff}]{0,20}){0,8}",
        ) {
            prop_assert_eq!(by_chunks(&text), whole(&text));
        }
    }
}
