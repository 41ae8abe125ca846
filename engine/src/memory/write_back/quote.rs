//! Finds a quote in a text without a model (TierMem B.5): as written, else without regard to case, white space and the
//! forms of quotation marks and dashes.
//!
//! A quote that occurs twice is ambiguous, one that does not occur is refused: a link that might be wrong is none.

use std::fmt;
use std::ops::Range;

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
            let last = at + wanted.len() - 1;
            Ok(origins[at].start..origins[last].end)
        }
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
        for lower in plain.to_lowercase() {
            folded.push(lower);
            origins.resize(folded.len(), origin.clone());
        }
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
