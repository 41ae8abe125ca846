//! Words of a text by UAX #29, and compounds of adjacent words.
//!
//! A compound is a sequence of words with nothing but one joining sign between them. It gives a whole if it has several
//! words, or signs around it that belong to it. Characters of scripts without spaces and emoji end a compound.

use unicode_segmentation::UnicodeSegmentation;

use super::{Analysis, Role, Sink, Term, cut};
use crate::words::analysis::emoji::{ZERO_WIDTH_JOINER, emoji_into, is_emoji};
use crate::words::analysis::folding::{fold_into, lower_into};
use crate::words::analysis::letters::{has_letter_or_digit, is_joiner, is_suffix, name_prefix, name_signs};
use crate::words::analysis::scripts::spaceless;

/// The most words of a whole.
const MAX_WHOLE_WORDS: usize = 16;

/// Adjacent words with one joining sign between them.
#[derive(Default)]
struct Compound {
    start: usize,
    end: usize,
    words: usize,
    digits: bool,
    only_hyphens: bool,
    /// The last word has signs of its name, after which a digit needs no other sign.
    signed: bool,
}

impl Compound {
    fn starting_at(start: usize) -> Self {
        Self { start, only_hyphens: true, ..Self::default() }
    }

    /// Returns true if a word after `gap` that ends at `end` continues it.
    fn continues(&self, gap: &str, end: usize) -> bool {
        self.words > 0
            && self.words < MAX_WHOLE_WORDS
            && end - self.start <= super::MAX_TERM_LEN
            && (is_joiner(gap) || (self.signed && gap.is_empty()))
    }
}

impl Analysis {
    /// The terms of a text in normal form.
    pub(crate) fn window(&mut self, text: &str, sink: &mut impl Sink) {
        // Emoji are segments, but not words of UAX #29.
        if text.is_ascii() {
            self.segments(text, text.unicode_word_indices(), sink);
        } else {
            self.segments(text, text.split_word_bound_indices(), sink);
        }
    }

    fn segments<'t>(&mut self, text: &'t str, segments: impl Iterator<Item = (usize, &'t str)>, sink: &mut impl Sink) {
        let mut compound = Compound::default();
        for (start, segment) in segments {
            if !segment.is_ascii() {
                if self.units.last().is_some_and(|unit| unit.end != start) {
                    self.run_of_units(text, sink);
                }
                if has_letter_or_digit(segment) && spaceless::push_units(segment, start, &mut self.units) {
                    self.whole(text, &compound, sink);
                    compound = Compound::default();
                    continue;
                }
            }
            self.run_of_units(text, sink);
            if segment.starts_with(is_emoji) {
                self.whole(text, &compound, sink);
                compound = Compound::default();
                self.emoji(segment, sink);
                continue;
            }
            if !has_letter_or_digit(segment) {
                continue;
            }
            let single_letter = segment.len() == 1 && segment.as_bytes()[0].is_ascii_alphabetic();
            let signs = if single_letter { name_signs(&text[start + 1..], true) } else { 0 };
            let end = start + segment.len() + signs;
            let gap = text.get(compound.end..start).unwrap_or_default();
            if compound.continues(gap, end) {
                compound.only_hyphens &= gap == "-";
            } else {
                self.whole(text, &compound, sink);
                compound = Compound::starting_at(start);
            }
            compound.end = end;
            compound.words += 1;
            compound.signed = signs > 0;
            compound.digits |= segment.bytes().any(|byte| byte.is_ascii_digit());
            self.number.clear();
            if signs > 0 {
                let mut key = std::mem::take(&mut self.key);
                lower_into(&text[start..end], &mut key);
                self.letters(&key, sink);
                self.key = key;
            } else {
                self.word(segment, sink);
            }
        }
        self.whole(text, &compound, sink);
        self.run_of_units(text, sink);
    }

    /// The terms of the characters collected, which are adjacent.
    fn run_of_units(&mut self, text: &str, sink: &mut impl Sink) {
        if self.units.is_empty() {
            return;
        }
        spaceless::terms(text, &self.units, &mut |key, role| sink.term(Term { key: cut(key), role }));
        self.units.clear();
    }

    /// The terms of an emoji.
    fn emoji(&mut self, segment: &str, sink: &mut impl Sink) {
        emoji_into(segment, &mut self.folded);
        let emoji = std::mem::take(&mut self.folded);
        sink.term(Term { key: cut(&emoji), role: Role::Word });
        if emoji != segment {
            self.surface(segment, sink);
        }
        let parts = || emoji.split(ZERO_WIDTH_JOINER).filter(|part| !part.is_empty()).take(super::pieces::MAX_PARTS);
        let of = parts().count() as u8;
        if of > 1 {
            parts().for_each(|part| sink.term(Term { key: cut(part), role: Role::Part { of } }));
        }
        self.folded = emoji;
    }

    /// The whole of a compound that is more than one plain word.
    fn whole(&mut self, text: &str, compound: &Compound, sink: &mut impl Sink) {
        if compound.words == 0 {
            return;
        }
        let (before, rest) = (&text[..compound.start], &text[compound.end..]);
        let word = &text[compound.start..compound.end];
        let prefix = name_prefix(before, word).map_or(0, char::len_utf8);
        let suffix = match rest.chars().next() {
            Some(sign) if is_suffix(sign) => sign.len_utf8(),
            Some('+') if !compound.digits && !compound.signed => name_signs(rest, false),
            _ => 0,
        };
        if compound.words == 1 && prefix == 0 && suffix == 0 {
            return;
        }
        let mut lower = std::mem::take(&mut self.key);
        if compound.words == 1 && !self.number.is_empty() {
            lower.clear();
            lower.push_str(&text[compound.start - prefix..compound.start]);
            lower.push_str(&self.number);
            lower.push_str(&rest[..suffix]);
        } else {
            lower_into(&text[compound.start - prefix..compound.end + suffix], &mut lower);
        }
        fold_into(&lower, &mut self.whole);
        self.key = lower;
        if compound.words > 1 && compound.only_hyphens && !compound.digits {
            self.whole.retain(|sign| !matches!(sign, '-' | '\''));
            self.stems.stem(cut(&self.whole), |stem| sink.term(Term { key: stem, role: Role::Whole }));
        } else {
            sink.term(Term { key: cut(&self.whole), role: Role::Whole });
        }
    }
}
