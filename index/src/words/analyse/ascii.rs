//! Text of ASCII, mostly without taking it apart by UAX #29: most of what stands between two spaces is one plain word.
//!
//! A short plain word is found and put in small letters sixteen bytes at a time ([`Short`]), and what it gave before is known to
//! a sink that remembers; so is what any other short piece between spaces gave. The rest goes the general way. What is known of a
//! word is mostly far away in memory, so some words are found before the first of them is asked for.

use super::super::letters::{after_word, lower_into, plain_word};
use super::super::short::Short;
use super::{Analysis, Sink};

/// How many words are found before they are asked for.
const AHEAD: usize = 16;

impl Analysis {
    /// Nothing in ASCII joins over white space, and between two of them stands mostly one plain word.
    pub(super) fn ascii_window(&mut self, text: &str, sink: &mut impl Sink) {
        let mut rest = text.as_bytes();
        let mut words = [Short::NOTHING; AHEAD];
        let mut count = 0;
        while let [first, after @ ..] = rest {
            if first.is_ascii_whitespace() {
                rest = after;
                continue;
            }
            let short = Short::leading(rest);
            match short.and_then(|word| Some((word, after_word(rest.get(word.len()..)?)?))) {
                Some((word, after)) => {
                    if count == AHEAD {
                        words.iter().for_each(|word| self.short(*word, sink));
                        count = 0;
                    }
                    sink.expect(word);
                    words[count] = word;
                    count += 1;
                    rest = after;
                }
                None => {
                    words.iter().take(count).for_each(|word| self.short(*word, sink));
                    count = 0;
                    let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
                    let (chunk, after) = rest.split_at(end);
                    self.chunk(std::str::from_utf8(chunk).expect("it is ASCII"), sink);
                    rest = after;
                }
            }
        }
        words.iter().take(count).for_each(|word| self.short(*word, sink));
    }

    /// What stands between white space and is not a short plain word.
    fn chunk(&mut self, chunk: &str, sink: &mut impl Sink) {
        if let Some(piece) = Short::piece(chunk) {
            if !sink.remembers(piece) {
                let since = sink.taken();
                self.window(chunk, sink);
                sink.learn(piece, since);
            }
        } else if let Some(word) = plain_word(chunk) {
            let mut key = std::mem::take(&mut self.key);
            lower_into(word, &mut key);
            self.letters(&key, sink);
            self.key = key;
        } else {
            self.window(chunk, sink);
        }
    }

    /// A short plain word.
    #[inline]
    fn short(&mut self, word: Short, sink: &mut impl Sink) {
        if !sink.remembers(word) {
            let mut key = std::mem::take(&mut self.key);
            word.write_into(&mut key);
            self.new_word(&key, Some(word), sink);
            self.key = key;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Analyzer, Each, Term};
    use proptest::prelude::*;

    #[test]
    fn what_ascii_alone_may_skip_changes_nothing() {
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
        ];
        let mut random = 1_u32;
        for _ in 0..300 {
            let mut text = String::new();
            for _ in 0..12 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                text.push_str(chunks[(random >> 8) as usize % chunks.len()]);
                text.push_str([" ", "  ", "\n", "\t", "\r\n", "\u{c}"][(random >> 24) as usize % 6]);
            }
            let mut whole = Vec::new();
            let each = &mut |term: Term<'_>| whole.push((term.key.to_owned(), term.role));
            Analyzer::default().start().window(&text, &mut Each(each));
            assert_eq!(Analyzer::default().analyze(&text), whole, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_ascii_gives_what_the_general_way_gives(text in "([a-zA-Z]{0,18}[ -~]{0,3}[ \\t]{0,2}|[\0-\x7f]{0,20}){0,8}") {
            let mut whole = Vec::new();
            let each = &mut |term: Term<'_>| whole.push((term.key.to_owned(), term.role));
            Analyzer::default().start().window(&text, &mut Each(each));
            prop_assert_eq!(Analyzer::default().analyze(&text), whole);
        }
    }
}
