//! Pointers: from what was distilled back to the bytes it rests on.
//!
//! A pointer (HELM A.7) names an item's field and a byte span in it, or a whole memory page, and carries the BLAKE3 of
//! the bytes it meant. It is refused when written if it does not resolve; when read, the bytes are hashed again and the
//! [`Verdict`] says whether they are still those.
//!
//! Invariants:
//! 1. Spans are UTF-8 bytes on character boundaries, `start <= end <= length of the field`.
//! 2. A stored pointer's hash is the hash of bytes that were there when it was written.

use crate::content::Content;
use crate::item::{ItemId, UnknownName, names};
use crate::record::{FieldValue, PointerRecord, PointerTarget};
use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

names! {
    /// What became of a pointer, found by reading and hashing the bytes it points to.
    Verdict, "verdict" {
        /// The bytes are those that were cited.
        Ok = 0 "ok",
        /// The target or the span is not there.
        Unresolved = 1 "unresolved",
        /// The bytes are there and are not those that were cited.
        Mismatch = 2 "mismatch",
        /// The bytes were erased.
        Redacted = 3 "redacted",
    }
}

/// Where a new pointer points, as a caller says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    /// The item or page.
    pub target: Target,
    /// The field; `text` when not said.
    pub field: Option<String>,
    /// Which part of the field.
    pub span: Span,
    /// The hash the caller expects, 64 hex digits, checked when given.
    pub hash: Option<String>,
}

/// What a pointer may point to.
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

/// Which part of a field a new pointer means.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Span {
    /// All of it.
    #[default]
    Whole,
    /// Bytes `start..end`.
    Bytes(u64, u64),
    /// Characters `start..end`, converted to bytes.
    Chars(u64, u64),
    /// The one place where this text stands.
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

    /// The same pointer to the one place where `quote` stands in its field.
    pub fn quoting(mut self, quote: impl Into<String>) -> Self {
        self.span = Span::Quoting(quote.into());
        self
    }
}

/// The bytes of a field value that a span counts in.
pub(crate) fn field_bytes(value: &FieldValue) -> &[u8] {
    match value {
        FieldValue::Text(text) | FieldValue::Json(text) => text.as_bytes(),
        FieldValue::Bytes(bytes) => bytes,
        FieldValue::Chunks { .. } => &[],
    }
}

/// Resolves a caller's pointer to an item against the item's content.
pub(crate) fn resolve(pointer: &Pointer, target: ItemId, content: &Content) -> Result<PointerRecord> {
    let name = pointer.field.as_deref().unwrap_or("text");
    let unresolved = |reason: String| Error::UnresolvedPointer { target: pointer.target.to_string(), reason };
    let field = content.field(name).ok_or_else(|| {
        let known: Vec<&str> = content.record.fields.iter().map(|field| field.name.as_str()).collect();
        unresolved(format!("it has no field {name:?}; its fields are {}", known.join(", ")))
    })?;
    let bytes = field_bytes(&field.value);
    let (start, end) =
        span_in(bytes, &pointer.span).map_err(|reason| unresolved(format!("field {name:?}: {reason}")))?;
    let hash = *blake3::hash(&bytes[start..end]).as_bytes();
    check_hash(pointer, &hash)?;
    Ok(PointerRecord {
        target: PointerTarget::Item(target.0),
        field: name.to_owned(),
        start: start as u64,
        end: end as u64,
        hash,
    })
}

/// A pointer into an item whose text was forgotten, as an import brings it back: there is nothing to check it against.
pub(crate) fn resolve_forgotten(pointer: &Pointer, target: ItemId) -> Result<PointerRecord> {
    let (start, end) = match pointer.span {
        Span::Whole => (0, 0),
        Span::Bytes(start, end) if start <= end && pointer.hash.is_none() => (start, end),
        _ => {
            let reason = "its text was forgotten".to_owned();
            return Err(Error::UnresolvedPointer { target: pointer.target.to_string(), reason });
        }
    };
    let field = pointer.field.clone().unwrap_or_else(|| "text".to_owned());
    let hash = crate::forget::NO_HASH;
    Ok(PointerRecord { target: PointerTarget::Item(target.0), field, start, end, hash })
}

/// Refuses a pointer whose given hash is not that of the bytes; a prefix of at least 16 hex digits is enough.
pub(crate) fn check_hash(pointer: &Pointer, found: &[u8; 32]) -> Result<()> {
    let Some(given) = &pointer.hash else { return Ok(()) };
    let found = hex(found);
    if given.len() >= 16 && found.starts_with(&given.to_ascii_lowercase()) {
        return Ok(());
    }
    Err(Error::HashMismatch { target: pointer.target.to_string(), given: given.clone(), found })
}

/// The byte range of a span in the bytes of a field, if there is one.
pub(crate) fn span_bytes(bytes: &[u8], span: &Span) -> Option<(usize, usize)> {
    span_in(bytes, span).ok()
}

/// The byte range of a span in the bytes of a field, or why there is none.
fn span_in(bytes: &[u8], span: &Span) -> Result<(usize, usize), String> {
    let text = || std::str::from_utf8(bytes).map_err(|_| "it holds bytes, not text".to_owned());
    match span {
        Span::Whole => Ok((0, bytes.len())),
        Span::Bytes(start, end) => {
            let inside = start <= end && *end <= bytes.len() as u64;
            if !inside {
                return Err(format!("bytes {start} to {end} lie outside its {} bytes", bytes.len()));
            }
            let (start, end) = (*start as usize, *end as usize);
            if let Ok(text) = text()
                && !(text.is_char_boundary(start) && text.is_char_boundary(end))
            {
                return Err(format!("bytes {start} to {end} cut a character in two"));
            }
            Ok((start, end))
        }
        Span::Chars(start, end) => {
            let text = text()?;
            let outside = || format!("characters {start} to {end} lie outside its {} characters", text.chars().count());
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
                return Err("an empty quote stands everywhere".to_owned());
            }
            let mut places = text.match_indices(quote.as_str());
            let Some((start, found)) = places.next() else {
                return Err(format!("it does not contain {quote:?}"));
            };
            if places.next().is_some() {
                return Err(format!("it contains {quote:?} more than once: ambiguous; give the bytes"));
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
        assert_eq!(why(Span::Bytes(0, 99)), "bytes 0 to 99 lie outside its 7 bytes");
        assert_eq!(why(Span::Bytes(3, 2)), "bytes 3 to 2 lie outside its 7 bytes");
        assert_eq!(why(Span::Bytes(0, 3)), "bytes 0 to 3 cut a character in two");
        assert_eq!(why(Span::Chars(0, 9)), "characters 0 to 9 lie outside its 5 characters");
        assert!(why(Span::Quoting("a".into())).contains("ambiguous"));
        assert!(why(Span::Quoting("b".into())).contains("does not contain"));
        assert_eq!(span_in(&[0xff, 0xfe], &Span::Chars(0, 1)), Err("it holds bytes, not text".into()));
    }
}
