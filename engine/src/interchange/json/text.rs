//! The text of a JSON value as a value of its own.

use super::{JsonError, JsonType, Parser};
use std::fmt;

/// The depth of the value of a field in its line: `{"trace":{"fields":{…`.
const FIELD_DEPTH: u32 = 3;

/// The text of one JSON value exactly as it was written: a number, a boolean, an array or an object.
///
/// It is never a string (its text is the decoded string), never `null` (an absent value), never an object whose only
/// member is `base64` (bytes), has no white space around it and no line feed in it. So written into a line and read
/// again it is the same `JsonText`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText(String);

impl JsonText {
    /// The text, when it satisfies what the type promises; `None` otherwise.
    pub fn new(text: &str) -> Option<Self> {
        let mut parser = Parser { depth: FIELD_DEPTH, ..Parser::new(text) };
        let found = parser.peek().ok()?;
        let whole = parser.raw().ok()? == text;
        let plain = match found {
            JsonType::String | JsonType::Null => false,
            JsonType::Object => sole_base64(text).ok()?.is_none(),
            JsonType::Boolean | JsonType::Number | JsonType::Array => true,
        };
        (whole && plain && !text.contains('\n')).then(|| Self::trusted(text))
    }

    /// The text of a value just read, which the caller knows to satisfy what the type promises.
    pub(in super::super) fn trusted(text: &str) -> Self {
        JsonText(text.to_owned())
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The offset of the value, when `object` is the text of an object whose only member is `base64`.
pub(in super::super) fn sole_base64(object: &str) -> Result<Option<usize>, JsonError> {
    let (mut names, mut value_at) = (0_usize, None);
    Parser::new(object).object(|parser, name| {
        names += 1;
        if name.text == "base64" {
            value_at = Some(parser.offset());
        }
        parser.raw().map(drop)
    })?;
    Ok(value_at.filter(|_| names == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_text_is_what_survives_a_line() {
        for good in ["450.50", "true", "[1, \"a\"]", "{}", "{\"base64\":1,\"b\":2}", "-0", "1e999"] {
            assert_eq!(JsonText::new(good).map(|text| text.to_string()).as_deref(), Some(good));
        }
        for bad in ["", " 1", "1 ", "null", "\"s\"", "{\"base64\":\"AA==\"}", "[1,\n2]", "1 2", "nope"] {
            assert_eq!(JsonText::new(bad), None, "{bad:?}");
        }
    }
}
