//! Pointers: from distilled memory back to the bytes it rests on.
//!
//! A pointer (HELM A.7) names an item's field and a byte span in it, or a whole memory page, and carries the BLAKE3
//! of the cited bytes. A pointer that does not resolve is rejected when written. When read, the bytes are hashed
//! again, and the [`Verdict`] tells whether they still match.
//!
//! Invariants:
//! 1. Spans are UTF-8 bytes on character boundaries, `start <= end <= length of the field`.
//! 2. A stored pointer's hash is that of the cited bytes at the time of writing.

use crate::error::UnknownName;
use crate::model::item::{ItemId, names};
use crate::model::plural::counted;
use std::fmt;
use std::str::FromStr;

names! {
    /// The result of verifying a pointer.
    Verdict, "verdict" {
        /// The bytes are the cited ones.
        Ok = 0,
        /// The target or the span does not exist.
        Unresolved = 1,
        /// The bytes differ from the cited ones.
        Mismatch = 2,
        /// The bytes were erased.
        Redacted = 3,
    }
}

/// The stored hash of a span whose bytes were erased; no bytes have it.
pub(crate) const NO_HASH: [u8; 32] = [0; 32];

/// A new pointer as a caller states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    /// The item or page.
    pub target: Target,
    /// The field; `text` by default.
    pub field: Option<String>,
    /// The part of the field.
    pub span: Span,
    /// The expected hash, 64 hex digits, checked if given.
    pub hash: Option<String>,
}

/// The target of a pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An item, by its number.
    Item(ItemId),
    /// An item, by its key.
    Key(String),
    /// A memory page, by its key.
    Page(String),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Item(id) => write!(f, "{id}"),
            Target::Key(key) => write!(f, "'{key}'"),
            Target::Page(key) => write!(f, "page '{key}'"),
        }
    }
}

/// The part of a field that a new pointer cites.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Span {
    /// All of it.
    #[default]
    Whole,
    /// Bytes `start..end`.
    Bytes(u64, u64),
    /// Characters `start..end`, converted to bytes.
    Chars(u64, u64),
    /// The unique occurrence of this text.
    Quoting(String),
}

impl Pointer {
    /// A pointer to the whole text of an item.
    pub fn to_key(key: impl Into<String>) -> Self {
        Pointer { target: Target::Key(key.into()), field: None, span: Span::Whole, hash: None }
    }

    /// A pointer to the whole text of an item, by number.
    pub fn to_item(id: ItemId) -> Self {
        Pointer { target: Target::Item(id), field: None, span: Span::Whole, hash: None }
    }

    /// A pointer to a memory page.
    pub fn to_page(key: impl Into<String>) -> Self {
        Pointer { target: Target::Page(key.into()), field: None, span: Span::Whole, hash: None }
    }

    /// The same pointer into another field than `text`.
    pub fn field(mut self, name: impl Into<String>) -> Self {
        self.field = Some(name.into());
        self
    }

    /// The same pointer to bytes `start..end` of its field.
    pub fn bytes(mut self, start: u64, end: u64) -> Self {
        self.span = Span::Bytes(start, end);
        self
    }

    /// The same pointer to the unique occurrence of `quote` in its field.
    pub fn quoting(mut self, quote: impl Into<String>) -> Self {
        self.span = Span::Quoting(quote.into());
        self
    }
}

/// The byte range of a span in a field, if it resolves.
pub(crate) fn span_bytes(bytes: &[u8], span: &Span) -> Option<(usize, usize)> {
    span_in(bytes, span).ok()
}

/// The byte range of a span in a field, or the reason why it does not resolve.
pub(crate) fn span_in(bytes: &[u8], span: &Span) -> Result<(usize, usize), String> {
    let text = || std::str::from_utf8(bytes).map_err(|_| "it holds bytes, not text".to_owned());
    match span {
        Span::Whole => Ok((0, bytes.len())),
        Span::Bytes(start, end) => {
            let inside = start <= end && *end <= bytes.len() as u64;
            if !inside {
                return Err(format!("bytes {start} to {end} are outside its {}", counted(bytes.len() as u64, "bytes")));
            }
            let (start, end) = (*start as usize, *end as usize);
            // A byte of the form 10xxxxxx continues a character, if these bytes are text at all.
            let is_within = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
            if (is_within(start) || is_within(end)) && text().is_ok() {
                return Err(format!("bytes {start} to {end} split a character"));
            }
            Ok((start, end))
        }
        Span::Chars(start, end) => {
            let text = text()?;
            let outside = || {
                let characters = counted(text.chars().count() as u64, "characters");
                format!("characters {start} to {end} are outside its {characters}")
            };
            let byte_of = |index: u64| {
                let mut starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
                usize::try_from(index).ok().and_then(|index| starts.nth(index))
            };
            match (byte_of(*start), byte_of(*end)) {
                (Some(from), Some(to)) if from <= to => Ok((from, to)),
                _ => Err(outside()),
            }
        }
        Span::Quoting(quote) => {
            let text = text()?;
            if quote.is_empty() {
                return Err("the quote is empty".to_owned());
            }
            let mut places = text.match_indices(quote.as_str());
            let Some((start, found)) = places.next() else {
                return Err(format!("it does not contain {quote:?}"));
            };
            if places.next().is_some() {
                return Err(format!("it contains {quote:?} more than once: ambiguous; give the byte range"));
            }
            Ok((start, start + found.len()))
        }
    }
}

/// Bytes as lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or('?'));
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_resolve_in_bytes_characters_and_quotes() {
        let bytes = "UA123 costs 450 €, today".as_bytes();
        assert_eq!(span_in(bytes, &Span::Whole), Ok((0, 26)));
        assert_eq!(span_in(bytes, &Span::Bytes(6, 11)), Ok((6, 11)));
        assert_eq!(span_in(bytes, &Span::Chars(16, 18)), Ok((16, 20)));
        assert_eq!(span_in(bytes, &Span::Quoting("450 €".into())), Ok((12, 19)));
    }

    #[test]
    fn spans_that_do_not_resolve_say_why() {
        let bytes = "a € a".as_bytes();
        let why = |span| span_in(bytes, &span).unwrap_err();
        assert_eq!(why(Span::Bytes(0, 99)), "bytes 0 to 99 are outside its 7 bytes");
        assert_eq!(why(Span::Bytes(3, 2)), "bytes 3 to 2 are outside its 7 bytes");
        assert_eq!(why(Span::Bytes(0, 3)), "bytes 0 to 3 split a character");
        assert_eq!(why(Span::Chars(0, 9)), "characters 0 to 9 are outside its 5 characters");
        assert!(why(Span::Quoting("a".into())).contains("ambiguous"));
        assert!(why(Span::Quoting("b".into())).contains("does not contain"));
        assert_eq!(span_in(&[0xff, 0xfe], &Span::Chars(0, 1)), Err("it holds bytes, not text".into()));
    }
}
