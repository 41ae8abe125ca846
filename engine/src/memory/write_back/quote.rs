//! Finds a quote in a text without a model (TierMem B.5): as written, else without regard to case, white space, the
//! forms of quotation marks and dashes, and forms that Unicode calls compatible (NFKD: a ligature is its letters, and a
//! letter with its accent may be one character or two).
//!
//! A quote that occurs twice is ambiguous, one that does not occur is refused: a link that might be wrong is none.

use std::fmt;
use std::ops::Range;
use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// Why a quote has no place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuoteError {
    /// The text does not contain it.
    Absent,
    /// The text contains it more than once.
    Ambiguous,
    /// It has no letters or digits.
    Empty,
}

impl fmt::Display for QuoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QuoteError::Absent => "does not contain the quote",
            QuoteError::Ambiguous => "contains the quote more than once: ambiguous",
            QuoteError::Empty => "a quote needs a letter or digit",
        })
    }
}

/// The bytes of `text` that a quote means. Linear in both.
///
/// # Errors
/// [`QuoteError`].
pub fn find_quote(text: &str, quote: &str) -> Result<Range<usize>, QuoteError> {
    if !quote.contains(char::is_alphanumeric) {
        return Err(QuoteError::Empty);
    }
    match only(text, quote)? {
        Some(at) => Ok(at..at + quote.len()),
        None => {
            let (folded, origins) = fold(text);
            let (wanted, _) = fold(quote);
            let wanted = wanted.trim().trim_matches(['"', '\'', '.', ',', ';']);
            let at = only(&folded, wanted)?.ok_or(QuoteError::Absent)?;
            let end = at + wanted.len();
            let (first, last) = (&origins[at], &origins[end - 1]);
            // A part of a character, or a letter without its accent, is something else.
            let starts_within = at > 0 && origins[at - 1] == *first;
            let ends_within = origins.get(end) == Some(last);
            if starts_within || ends_within || folded[end..].chars().next().is_some_and(is_combining_mark) {
                return Err(QuoteError::Absent);
            }
            Ok(first.start..last.end)
        }
    }
}

/// A quote of a line of a page without the time and the speaker before its text: `[2026-01-06T00:00:00Z] Bob: the
/// text`.
pub(crate) fn without_prefix<'q>(quote: &'q str, speaker: Option<&str>) -> &'q str {
    let quote = quote.trim_start();
    let is_time = |inside: &str| inside.get(..4).is_some_and(|year| year.bytes().all(|byte| byte.is_ascii_digit()));
    let timed = quote.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let timed = timed.filter(|(inside, _)| is_time(inside) && inside.contains('-'));
    let untimed = timed.map_or(quote, |(_, rest)| rest.trim_start());
    let spoken = speaker.and_then(|speaker| {
        let (named, rest) = untimed.split_once(':')?;
        (named.trim().to_lowercase() == speaker.to_lowercase()).then(|| rest.trim_start())
    });
    match spoken {
        Some(said) if said.contains(char::is_alphanumeric) => said,
        _ if untimed.contains(char::is_alphanumeric) => untimed,
        _ => quote,
    }
}

/// The place of a text that occurs at most once.
fn only(text: &str, wanted: &str) -> Result<Option<usize>, QuoteError> {
    let Some(first) = text.find(wanted) else { return Ok(None) };
    // Overlapping occurrences count too.
    let next = first + wanted.chars().next().map_or(1, char::len_utf8);
    let again = text.get(next..).is_some_and(|rest| rest.contains(wanted));
    if again { Err(QuoteError::Ambiguous) } else { Ok(Some(first)) }
}

/// A text in lower case with single blanks and plain marks, and for each of its bytes the character it comes from.
fn fold(text: &str) -> (String, Vec<Range<usize>>) {
    let (mut folded, mut origins) = (String::with_capacity(text.len()), Vec::with_capacity(text.len()));
    for (at, c) in text.char_indices() {
        let origin = at..at + c.len_utf8();
        let plain = match c {
            c if c.is_whitespace() => ' ',
            '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{2032}' => '\'',
            '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{ab}' | '\u{bb}' => '"',
            '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
            c => c,
        };
        if plain == ' ' && folded.ends_with(' ') {
            continue;
        }
        decompose_compatible(plain, |part| {
            for lower in part.to_lowercase() {
                folded.push(lower);
                origins.resize(folded.len(), origin.clone());
            }
        });
    }
    (folded, origins)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_quote_is_found_as_written_or_folded_once() {
        let text = "She said: \u{201c}The  ferry\nleaves at Nine\u{201d} \u{2013} twice; at 9, at 9.";
        let found = |quote: &str| find_quote(text, quote).map(|span| &text[span]);
        assert_eq!(found("leaves at Nine"), Ok("leaves at Nine"));
        assert_eq!(found("\"the ferry leaves at nine\""), Ok("The  ferry\nleaves at Nine"));
        assert_eq!(found("nine\" - TWICE"), Ok("Nine\u{201d} \u{2013} twice"));
        assert_eq!(found("at 9"), Err(QuoteError::Ambiguous));
        assert_eq!(found("the bus leaves"), Err(QuoteError::Absent));
        assert_eq!(found(" ... "), Err(QuoteError::Empty));
        assert_eq!(find_quote("aaa", "aa"), Err(QuoteError::Ambiguous));
        let accents = |quote: &str| find_quote("the of\u{fb01}ce of Ren\u{e9} and Zoe\u{301}", quote);
        assert_eq!(accents("OFFICE OF RENE\u{301}"), Ok(4..20));
        assert_eq!(accents("ofice of Rene\u{301}"), Err(QuoteError::Absent));
        assert_eq!(accents("zo\u{e9}"), Ok(25..30));
        assert_eq!(accents("Zoe"), Ok(25..28), "as written, without the mark after it");
        for part in ["Rene", "zoe", "THE OFF"] {
            assert_eq!(accents(part), Err(QuoteError::Absent), "{part}");
        }
    }

    proptest! {
        #[test]
        fn a_span_is_on_character_boundaries_and_says_the_quote(text in any::<String>(), quote in "\\PC{1,4}") {
            if let Ok(span) = find_quote(&text, &quote) {
                prop_assert!(text.get(span.clone()).is_some_and(|written| !written.is_empty()));
            }
        }

        #[test]
        fn what_occurs_once_is_found_in_any_case(quote in "[n-z]{3,6}", around in "[a-m ]{0,9}") {
            let (before, after) = (&around, &around);
            let text = format!("{before}{quote}{after}");
            prop_assert_eq!(find_quote(&text, &quote.to_uppercase()).map(|span| &text[span]), Ok(quote.as_str()));
        }
    }
}
