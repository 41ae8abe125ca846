//! The tokens of a text, as frames compare them.
//!
//! | characters | token |
//! |---|---|
//! | ASCII letters, digits and `_`, with Latin letters beside them | one run: `ua123`, `málaga` |
//! | a single letter of these with `+`, `++` or `#` | one: `C++`, `F#` |
//! | digits | a run that keeps inner `. , : / -`: `05:49`, `1,234.50`, `2026-01-05` |
//! | other letters, with their marks | one run, apart from ASCII runs |
//! | Han, kana, Thai, Lao, Myanmar, Khmer | each character, with its marks |
//! | pictographs | each |
//!
//! A token is compared in compatibility form (NFKC) and folded case. Its *stem* is the token if it has at most four
//! characters or a digit, else the token without its last two characters, at least four.
//!
//! Invariants:
//! 1. Only the first [`MAX_TOKENS`] tokens are kept; [`FrameText::is_equal`] compares all of them.
//! 2. A hash of 32 bits stands for a token. Two tokens of one hash are taken for equal: of 256 tokens each, a pair of
//!    texts has such a chance in 65,000, and it can only group, never hide.
//!
//! Cost: one pass over the text.

use holotype_index::words::analysis::name_signs;
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Tokens of a text that are compared.
pub(crate) const MAX_TOKENS: usize = 256;

/// Characters of a token up to which it is its own stem.
const MIN_STEM_CHARS: usize = 4;
/// Characters that a stem lacks.
const ENDING_CHARS: usize = 2;

/// Marks between two digits that belong to a number.
const NUMBER_MARKS: [char; 5] = ['.', ',', ':', '/', '-'];
/// Signs at the end of a question.
const QUESTION_MARKS: [char; 4] = ['?', '？', '؟', ';'];

/// A token of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) word: u32,
    pub(crate) stem: u32,
    pub(crate) has_digit: bool,
    /// A character of a script without spaces: only adjacent pairs of these name something.
    pub(crate) is_single: bool,
}

/// A token as it is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextToken<'t> {
    /// Its compared form.
    pub(crate) folded: &'t str,
    pub(crate) is_single: bool,
}

impl TextToken<'_> {
    pub(crate) fn token(&self) -> Token {
        let has_digit = self.folded.chars().any(char::is_numeric);
        let word = hash(self.folded);
        let stem = if has_digit { word } else { stem_hash(self.folded) };
        Token { word, stem, has_digit, is_single: self.is_single }
    }
}

/// A text as frames compare it.
#[derive(Debug, Clone, Default)]
pub(crate) struct FrameText {
    /// The first tokens.
    pub(crate) tokens: Box<[Token]>,
    /// The distinct words of `tokens`, ascending.
    distinct: Box<[u32]>,
    /// One bit for each word of `distinct`, some bits for several.
    signature: [u64; 4],
    /// A hash of all tokens in order, and their number.
    whole: (u64, u32),
    /// It ends as a question.
    pub(crate) asks: bool,
    /// The stems of the names of its structured claims.
    pub(crate) claims: Box<[Box<[u32]>]>,
}

impl FrameText {
    /// The tokens of a text, without claims.
    pub(crate) fn new(text: &str) -> FrameText {
        let mut tokens = Vec::new();
        let mut whole = foldhash::fast::FixedState::default().build_hasher();
        let mut count = 0_u32;
        each_token(text, |token, _| {
            let token = token.token();
            whole.write_u32(token.word);
            count += 1;
            if tokens.len() < MAX_TOKENS {
                tokens.push(token);
            }
        });
        let mut distinct: Vec<u32> = tokens.iter().map(|token: &Token| token.word).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let mut signature = [0_u64; 4];
        for word in &distinct {
            signature[(word >> 6) as usize & 3] |= 1 << (word & 63);
        }
        let asks = text.trim_end().ends_with(QUESTION_MARKS);
        let (tokens, distinct) = (tokens.into_boxed_slice(), distinct.into_boxed_slice());
        FrameText { tokens, distinct, signature, whole: (whole.finish(), count), asks, claims: Box::default() }
    }

    /// True if all tokens of both texts are equal.
    pub(crate) fn is_equal(&self, other: &FrameText) -> bool {
        self.whole == other.whole
    }

    /// A hash of all its tokens.
    pub(crate) fn identity(&self) -> (u64, u32) {
        self.whole
    }

    /// Distinct words of the text with fewer of them, and those in both.
    pub(crate) fn common_words(&self, other: &FrameText, at_least: f64) -> bool {
        let fewer = self.distinct.len().min(other.distinct.len());
        let wanted = at_least * fewer as f64;
        // Words that share a bit count once in a signature.
        let bits = |signature: &[u64; 4]| signature.iter().map(|bits| bits.count_ones()).sum::<u32>() as usize;
        let both: [u64; 4] = std::array::from_fn(|at| self.signature[at] & other.signature[at]);
        let most = bits(&both) + self.distinct.len() - bits(&self.signature);
        if (most as f64) < wanted {
            return false;
        }
        let (mut left, mut right, mut common) = (self.distinct.iter().peekable(), other.distinct.iter().peekable(), 0);
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            match a.cmp(b) {
                std::cmp::Ordering::Less => drop(left.next()),
                std::cmp::Ordering::Greater => drop(right.next()),
                std::cmp::Ordering::Equal => {
                    common += 1;
                    left.next();
                    right.next();
                }
            }
        }
        f64::from(common) >= wanted
    }

    /// The memory it takes, in bytes.
    pub(crate) fn byte_len(&self) -> usize {
        let claims: usize = self.claims.iter().map(|name| size_of::<Box<[u32]>>() + 4 * name.len()).sum();
        size_of::<FrameText>() + size_of_val(&*self.tokens) + size_of_val(&*self.distinct) + claims
    }
}

/// The hash of the stem of a token.
pub(crate) fn stem_hash(folded: &str) -> u32 {
    if folded.chars().any(char::is_numeric) {
        return hash(folded);
    }
    let chars = folded.chars().count();
    let kept = if chars <= MIN_STEM_CHARS { chars } else { (chars - ENDING_CHARS).max(MIN_STEM_CHARS) };
    let end = folded.char_indices().nth(kept).map_or(folded.len(), |(at, _)| at);
    hash(folded.get(..end).unwrap_or(folded))
}

/// The hash of two adjacent characters of a script without spaces.
pub(crate) fn pair_hash(first: u32, second: u32) -> u32 {
    first.rotate_left(16).wrapping_mul(0x9E37_79B1) ^ second
}

fn hash(text: &str) -> u32 {
    let mut hasher = foldhash::fast::FixedState::default().build_hasher();
    hasher.write(text.as_bytes());
    let hash = hasher.finish();
    (hash ^ (hash >> 32)) as u32
}

/// The class of a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// A letter of the Latin script, an ASCII digit or `_`.
    Latin,
    /// A digit of another script.
    Digit,
    /// A letter of another script, or a mark.
    Letter,
    /// A character of a script without spaces.
    Single,
    Pictograph,
    Other,
}

fn class(c: char) -> Class {
    match c {
        '0'..='9' | 'a'..='z' | 'A'..='Z' | '_' => Class::Latin,
        '\0'..='\x7f' => Class::Other,
        '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' => Class::Single,
        '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}' => {
            Class::Single
        }
        '\u{00AA}'..='\u{024F}' | '\u{1E00}'..='\u{1EFF}' | '\u{FF21}'..='\u{FF5A}' if c.is_alphabetic() => {
            Class::Latin
        }
        '\u{0300}'..='\u{036F}' => Class::Latin,
        '\u{200C}' | '\u{200D}' => Class::Letter,
        '\u{2190}'..='\u{2BFF}' | '\u{1F000}'..='\u{1FAFF}' => Class::Pictograph,
        c if c.is_numeric() => Class::Digit,
        c if c.is_alphabetic() || is_combining_mark(c) => Class::Letter,
        _ => Class::Other,
    }
}

/// Calls `see` with each token of a text and its range of bytes.
pub(crate) fn each_token(text: &str, mut see: impl FnMut(TextToken<'_>, Range<usize>)) {
    let mut spare = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((start, first)) = chars.next() {
        let class_of_first = class(first);
        if class_of_first == Class::Other {
            continue;
        }
        let (mut end, mut before) = (start + first.len_utf8(), first);
        while let Some((at, c)) = chars.peek().copied() {
            let joins = match class_of_first {
                Class::Single => is_combining_mark(c),
                Class::Pictograph => false,
                _ => class(c) == class_of_first || (class_of_first != Class::Latin && is_combining_mark(c)),
            };
            let is_inside_number = || {
                let next = text.get(at + c.len_utf8()..).and_then(|rest| rest.chars().next());
                NUMBER_MARKS.contains(&c) && before.is_numeric() && next.is_some_and(char::is_numeric)
            };
            if !joins && !is_inside_number() {
                break;
            }
            (end, before) = (at + c.len_utf8(), c);
            chars.next();
        }
        if first.is_ascii_alphabetic() && end == start + 1 {
            let signs = name_signs(text.get(end..).unwrap_or_default(), true);
            end += signs;
            while chars.next_if(|(at, _)| *at < end).is_some() {}
        }
        let written = text.get(start..end).unwrap_or_default();
        let is_single = class_of_first == Class::Single;
        see(TextToken { folded: fold(written, &mut spare), is_single }, start..end);
    }
}

/// The compatibility form of a token in folded case.
fn fold<'t>(written: &'t str, spare: &'t mut String) -> &'t str {
    let is_folded = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
    if written.bytes().all(is_folded) {
        return written;
    }
    spare.clear();
    if written.is_ascii() {
        spare.push_str(written);
        spare.make_ascii_lowercase();
        return spare;
    }
    for c in written.nfkc().flat_map(char::to_lowercase) {
        match c {
            'ß' => spare.push_str("ss"),
            'ς' => spare.push('σ'),
            c => spare.push(c),
        }
    }
    spare
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        each_token(text, |token, _| found.push(token.folded.to_owned()));
        found
    }

    #[test]
    fn tokens_by_script() {
        assert_eq!(
            tokens("The UA123 rent_2 is $1,234.50 at 05:49."),
            ["the", "ua123", "rent_2", "is", "1,234.50", "at", "05:49"]
        );
        assert_eq!(tokens("Málaga, 2026-01-05; Straße 5."), ["málaga", "2026-01-05", "strasse", "5"]);
        assert_eq!(tokens("家賃は900円"), ["家", "賃", "は", "900", "円"]);
        assert_eq!(tokens("ราคา 5"), ["ร", "า", "ค", "า", "5"]);
        assert_eq!(tokens("цена билета ΟΔΟΣ"), ["цена", "билета", "οδοσ"]);
        assert_eq!(tokens("C, C++ and F#; a+b, C++17 #1"), ["c", "c++", "and", "f#", "a", "b", "c++", "17", "1"]);
        assert_eq!(tokens("done 🎉🎉"), ["done", "🎉", "🎉"]);
    }

    #[test]
    fn stems_keep_four_characters_and_numbers() {
        let same = |a: &str, b: &str| stem_hash(a) == stem_hash(b);
        assert!(same("price", "prices") && same("price", "priced"));
        assert!(!same("rent", "rest") && !same("ua1234", "ua1235"));
    }

    #[test]
    fn equal_means_all_tokens() {
        let long = |last: &str| FrameText::new(&format!("{}{last}", "word ".repeat(300)));
        assert!(long("one").is_equal(&long("One!")));
        assert!(!long("one").is_equal(&long("two")));
    }

    proptest! {
        #[test]
        fn ranges_cover_tokens_in_order(text in any::<String>()) {
            let mut end = 0;
            each_token(&text, |_, range| {
                assert!(range.start >= end && text.get(range.clone()).is_some_and(|written| !written.is_empty()));
                end = range.end;
            });
        }

        #[test]
        fn signatures_reject_nothing_that_is_common(a in "[a-f]( [a-f]){0,12}", b in "[a-f]( [a-f]){0,12}") {
            let (a, b) = (FrameText::new(&a), FrameText::new(&b));
            let common = a.distinct.iter().filter(|word| b.distinct.contains(word)).count() as f64;
            let fewer = a.distinct.len().min(b.distinct.len()) as f64;
            prop_assert_eq!(a.common_words(&b, 0.54), common >= 0.54 * fewer);
        }
    }
}
