//! Globs: `*` matches any run of characters, `?` any one; everything else matches itself, ignoring case. Texts are
//! compared in NFC, so a letter with an accent is one character however it was typed.
//!
//! A pattern is cut at its stars into pieces, and each piece is taken where it first occurs behind the one before:
//! for globs the leftmost occurrence leaves the most room for the rest, so nothing is ever tried again. A piece
//! without `?` is found by substring search in linear time. A piece with `?` is found by Shift-And (Baeza-Yates and
//! Gonnet, 1992), which costs one step per character of the text and 64 characters of the piece.

use std::collections::HashMap;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// Tests whether a text matches a glob as a whole.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    matches(&comparable(pattern), &comparable(text), &mut 0)
}

/// The form in which texts are compared: NFC, in lower case.
pub(crate) fn comparable(text: &str) -> String {
    if is_nfc_quick(text.chars()) == IsNormalized::Yes {
        text.to_lowercase()
    } else {
        text.nfc().collect::<String>().to_lowercase()
    }
}

/// The test on lower-case texts; adds to `steps` the bytes compared and the words shifted.
fn matches(pattern: &str, text: &str, steps: &mut u64) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return strip_prefix(text, pattern, steps).is_some_and(str::is_empty);
    };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut text) = strip_prefix(text, first, steps) else { return false };
    for piece in middle.split('*').filter(|piece| !piece.is_empty()) {
        match after(text, piece, steps) {
            Some(rest) => text = rest,
            None => return false,
        }
    }
    ends_with(text, last, steps)
}

/// The text behind a piece that it begins with.
fn strip_prefix<'t>(text: &'t str, piece: &str, steps: &mut u64) -> Option<&'t str> {
    let mut rest = text.chars();
    for wanted in piece.chars() {
        *steps += 1;
        rest.next().filter(|c| wanted == '?' || *c == wanted)?;
    }
    Some(rest.as_str())
}

fn ends_with(text: &str, piece: &str, steps: &mut u64) -> bool {
    let mut rest = text.chars().rev();
    piece.chars().rev().all(|wanted| {
        *steps += 1;
        rest.next().is_some_and(|c| wanted == '?' || c == wanted)
    })
}

/// The text behind the first occurrence of a piece.
fn after<'t>(text: &'t str, piece: &str, steps: &mut u64) -> Option<&'t str> {
    if piece.contains('?') {
        return ShiftAnd::new(piece).after(text, steps);
    }
    let found = text.find(piece);
    let end = found.map_or(text.len(), |at| at + piece.len());
    *steps += end as u64;
    found.and_then(|_| text.get(end..))
}

/// Bit `i` of the state says that the characters read last match the first `i + 1` of the piece.
struct ShiftAnd {
    /// Positions of `?`.
    any: Vec<u64>,
    /// Positions of each other character, as (word, bits) in ascending order: memory stays linear in the piece however
    /// many characters it uses.
    literal: HashMap<char, Vec<(usize, u64)>>,
    last: (usize, u64),
}

impl ShiftAnd {
    /// `piece` is not empty.
    fn new(piece: &str) -> ShiftAnd {
        let mut any = Vec::new();
        let mut literal: HashMap<char, Vec<(usize, u64)>> = HashMap::new();
        let mut last = (0, 1);
        for (at, c) in piece.chars().enumerate() {
            let (word, bit) = (at / 64, 1 << (at % 64));
            if any.len() == word {
                any.push(0);
            }
            last = (word, bit);
            if c == '?' {
                any[word] |= bit;
                continue;
            }
            let words = literal.entry(c).or_default();
            match words.last_mut().filter(|(at, _)| *at == word) {
                Some((_, bits)) => *bits |= bit,
                None => words.push((word, bit)),
            }
        }
        ShiftAnd { any, literal, last }
    }

    fn after<'t>(&self, text: &'t str, steps: &mut u64) -> Option<&'t str> {
        let mut state = vec![0_u64; self.any.len()];
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            let mut literal = self.literal.get(&c).map_or(&[][..], Vec::as_slice);
            let mut carry = 1;
            for (word, (bits, any)) in state.iter_mut().zip(&self.any).enumerate() {
                let mut wanted = *any;
                if let [(at, positions), rest @ ..] = literal
                    && *at == word
                {
                    wanted |= positions;
                    literal = rest;
                }
                let next = *bits >> 63;
                *bits = ((*bits << 1) | carry) & wanted;
                carry = next;
            }
            *steps += state.len() as u64;
            if state[self.last.0] & self.last.1 != 0 {
                return Some(chars.as_str());
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn globs_match_as_people_expect() {
        assert!(glob("*@example.com", "Ann@Example.com"));
        assert!(glob("UA?23*", "ua123 costs"));
        assert!(glob("", ""));
        assert!(glob("caf?", "Cafe\u{301}") && glob("Cafe\u{301} *", "café Löwen"));
        assert!(glob("a*b*c", "a-b-b-c"));
        assert!(glob("*a?c*?", "abd abcd"));
        assert!(glob("**", ""));
        assert!(!glob("a*b", "a-c"));
        assert!(!glob("a*a", "a"));
        assert!(!glob("?", ""));
        assert!(!glob("*?*", ""));
    }

    /// Steps are counted, not time.
    #[test]
    fn matching_takes_linear_time() {
        const LEN: usize = 1 << 20;
        let text = "a".repeat(LEN);
        let halves = "a".repeat(LEN / 2);
        for pattern in [
            format!("*{halves}b*"),
            format!("*{}b", "*a".repeat(1 << 16)),
            format!("*{}?b*", "a".repeat(62)),
            "*a*a*a*a*a*a*b*".to_owned(),
            "*?*?*?*?b*".to_owned(),
        ] {
            let mut steps = 0;
            assert!(!matches(&pattern, &text, &mut steps));
            assert!(steps <= 2 * (text.len() + pattern.len()) as u64, "{}: {steps} steps", pattern.len());
        }
    }

    /// The definition, by recursion.
    fn by_definition(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], text) => text.is_empty(),
            (['*', rest @ ..], text) => (0..=text.len()).any(|skip| by_definition(rest, &text[skip..])),
            (['?', pattern @ ..], [_, text @ ..]) => by_definition(pattern, text),
            ([wanted, pattern @ ..], [c, text @ ..]) => wanted == c && by_definition(pattern, text),
            (_, []) => false,
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(pattern in "[ab?*]{0,8}", text in "[ab]{0,10}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(glob(&pattern, &text), by_definition(&chars(&pattern), &chars(&text)));
        }

        #[test]
        fn long_pieces_cross_words(before in 0_usize..70, head in 0_usize..130, tail in 0_usize..130) {
            let pattern = format!("*{}?{}*", "a".repeat(head), "b".repeat(tail));
            let text = format!("{}{}x{}", "c".repeat(before), "a".repeat(head), "b".repeat(tail));
            prop_assert!(glob(&pattern, &text));
            let short = format!("{}x{}", "a".repeat(head), "b".repeat(tail.saturating_sub(1)));
            prop_assert_eq!(glob(&pattern, &short), tail == 0);
        }
    }
}
