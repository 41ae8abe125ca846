//! Claim extraction (HELM's EXTRACTCLAIMS): values of structured text with their subjects and attributes.
//!
//! | form | example | claim |
//! |---|---|---|
//! | call | `search_flights(flight TK129): price = $583` | tk129, price, `583 USD` |
//! | JSON | `{"flight":"TK129","price":583,"currency":"USD"}` | the same |
//! | fields | `flight` = `TK129`, `price` = `583`, `currency` = `USD` of one item | the same |
//! | key and value | `Gate: D24` below the line `Flight TK129:` | tk129, gate, `d24` |
//! | table | <code>\| flight \| gate \|</code>, one row per subject | tk129, gate, `d24` |
//!
//! Sentences make no claims: word lists that read English prose were right in 18 % of 110 claims labelled by hand. The
//! subject is the argument of the call, the subject member of the JSON object or record of fields, or the heading. A
//! value without a subject makes no claim: it would contradict every other.
//!
//! Invariants:
//!
//! 1. The claims are a function of the input and the options alone; [`EXTRACTOR_VERSION`] changes whenever that
//!    function does.
//! 2. Time is linear in the text. At most [`MAX_TEXT_LEN`] bytes of a field are read and at most
//!    [`ExtractOptions::max_claims`] claims are made.
//! 3. The span of a claim is on character boundaries of its field and covers its value as written.

mod json;
mod lines;
mod normalise;
mod subject;

pub(crate) use normalise::MONTHS;
pub use normalise::normalise;

use std::borrow::Cow;
use std::ops::Range;

/// Identifies these rules, and those by which support and trust follow from the sources of an item. Opening a database
/// whose claims another version found derives all of it anew from the log.
pub const EXTRACTOR_VERSION: u32 = 4;

/// Bytes of a field that are read; the rest is ignored.
pub const MAX_TEXT_LEN: usize = 64 * 1024;

/// Longest subject, attribute or value, in bytes as written; longer ones are no claims but running text.
pub(in crate::memory::extract) const MAX_PART_LEN: usize = 120;

/// One field of an item.
#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    /// Its name, for example `text`; for a structured field it is the attribute.
    pub name: &'a str,
    /// Its value.
    pub text: &'a str,
}

/// An item's statement about one attribute of one subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractedClaim {
    /// The subject, normalised: `flight tk129` is `tk129`.
    pub subject: String,
    /// The attribute, normalised: `departure_time` is `departure time`.
    pub attribute: String,
    /// The value, normalised by [`normalise`].
    pub value: String,
    /// Index of the field.
    pub field: usize,
    /// The value as written, in bytes of the field.
    pub span: Range<usize>,
}

impl ExtractedClaim {
    /// The name under which claims compete.
    pub fn name(&self) -> String {
        format!("{} of {}", self.attribute, self.subject)
    }
}

/// Settings of [`extract`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractOptions {
    /// Attributes that make no claims beside the built-in volatile ones, in any case and spelling of word breaks.
    pub ignore: Vec<String>,
    /// At most so many claims of one item. Default 64.
    pub max_claims: usize,
}

impl Default for ExtractOptions {
    fn default() -> Self {
        ExtractOptions { ignore: Vec::new(), max_claims: 64 }
    }
}

/// Extracts the claims of an item without repetitions: of its short fields read as one record, then of the text of each
/// field.
///
/// `tool` is the name of the tool of a call; a call without arguments is about the tool itself.
///
/// ```
/// use holotype::extract::{ExtractOptions, Field, extract};
///
/// let fields = [Field { name: "text", text: "search_flights(flight TK129): price = $1,583.00" }];
/// let claims = extract(Some("search_flights"), &fields, &ExtractOptions::default());
/// assert_eq!(claims[0].name(), "price of tk129");
/// assert_eq!(claims[0].value, "1583 USD");
/// ```
pub fn extract(tool: Option<&str>, fields: &[Field<'_>], options: &ExtractOptions) -> Vec<ExtractedClaim> {
    let ignore = options.ignore.iter().map(|name| subject::attribute(name)).collect();
    let mut claims = Claims { ignore, most: options.max_claims, found: Vec::new(), field: 0, text: "" };
    json::record(fields, &mut claims);
    let is_error = |name: &str| matches!(subject::attribute(name).as_str(), "error" | "errors");
    for (index, field) in fields.iter().enumerate().filter(|(_, field)| !is_error(field.name)) {
        let text = cut(field.text, MAX_TEXT_LEN);
        (claims.field, claims.text) = (index, text);
        if !json::extract(text, &mut claims) {
            lines::extract(tool, text, &mut claims);
        }
    }
    claims.found
}

/// The longest prefix of at most `len` bytes that ends on a character boundary.
fn cut(text: &str, len: usize) -> &str {
    text.get(..text.floor_char_boundary(len)).unwrap_or(text)
}

/// The claims found so far.
struct Claims<'t> {
    ignore: Vec<String>,
    most: usize,
    found: Vec<ExtractedClaim>,
    field: usize,
    /// The field that is read.
    text: &'t str,
}

impl Claims<'_> {
    fn is_full(&self) -> bool {
        self.found.len() >= self.most
    }

    /// Adds a claim whose value is a part of the field.
    fn add(&mut self, subject: &str, attribute: &str, value: &str) {
        let value = value.trim();
        if let Some(span) = self.span_of(value) {
            self.add_at(subject, attribute, Cow::Borrowed(value), span);
        }
    }

    /// The span of a slice of the field.
    fn span_of(&self, part: &str) -> Option<Range<usize>> {
        // Both are slices of one text, so that the distance of their starts is the offset.
        let start = (part.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let span = start..start.saturating_add(part.len());
        (self.text.get(span.clone()) == Some(part)).then_some(span)
    }

    /// Adds a claim whose value is written at a span.
    fn add_at(&mut self, subject: &str, attribute: &str, value: Cow<'_, str>, span: Range<usize>) {
        if self.is_full() || [subject, attribute, &value].iter().any(|part| part.len() > MAX_PART_LEN) {
            return;
        }
        let (subject, attribute, value) = (subject::subject(subject), subject::attribute(attribute), normalise(&value));
        if subject.is_empty() || attribute.is_empty() || value.is_empty() || subject::is_pronoun(&subject) {
            return;
        }
        if subject::is_volatile(&attribute) || self.ignore.contains(&attribute) {
            return;
        }
        let claim = ExtractedClaim { subject, attribute, value, field: self.field, span };
        let is_same = |other: &ExtractedClaim| {
            (&other.subject, &other.attribute, &other.value) == (&claim.subject, &claim.attribute, &claim.value)
        };
        if !self.found.iter().any(is_same) {
            self.found.push(claim);
        }
    }
}

#[cfg(test)]
mod tests;
