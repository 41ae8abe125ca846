//! A strict JSON reader that never builds a tree.
//!
//! The caller pulls values in the order of the text ([`Parser::object`], [`Parser::array`], [`Parser::string`], …). So
//! a line of 64 MiB costs only the values that are kept, numbers keep their text, and every fault has an offset: the
//! parser reports faults of the grammar, the caller reports faults of meaning with [`Parser::offset`]. `serde_json` is
//! only the oracle of the tests: it gives no offsets of values, accepts duplicate names and rounds numbers.
//!
//! Invariants:
//!
//! 1. The parser accepts RFC 8259 without duplicate names in one object, lone surrogates and nesting beyond
//!    [`MAX_DEPTH`] levels.
//! 2. `offset` is a byte offset into the text, on a character boundary, at most its length; an error because the text
//!    ended has exactly its length.
//! 3. Time is linear in the text and the stack is bounded by [`MAX_DEPTH`].

mod find;
mod text;

#[cfg(test)]
mod oracle;

pub use find::find;
pub use text::JsonText;
pub(super) use text::sole_base64;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

/// Deepest nesting of arrays and objects.
pub const MAX_DEPTH: u32 = 128;

/// Objects with more names than this look for duplicates in a hash set, smaller ones by comparing.
const FEW_NAMES: usize = 16;

/// A fault of a JSON text, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JsonError {
    /// Byte offset into the text.
    pub offset: usize,
    /// The expected and the found text.
    pub message: String,
    /// The remedy, if there is one.
    pub hint: Option<String>,
}

impl JsonError {
    /// An error at a byte offset of the text.
    pub fn new(offset: usize, message: impl Into<String>) -> Self {
        JsonError { offset, message: message.into(), hint: None }
    }

    /// The same error with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The type of a JSON value. It displays with its article: "a string".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonType {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// A number.
    Number,
    /// A string.
    String,
    /// `[…]`
    Array,
    /// `{…}`
    Object,
}

impl fmt::Display for JsonType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JsonType::Null => "null",
            JsonType::Boolean => "a boolean",
            JsonType::Number => "a number",
            JsonType::String => "a string",
            JsonType::Array => "an array",
            JsonType::Object => "an object",
        })
    }
}

/// The name of a member, as [`Parser::object`] hands it out.
#[derive(Debug)]
pub struct Name<'n> {
    /// The decoded name.
    pub text: &'n str,
    /// The offset of its opening quote.
    pub offset: usize,
}

/// A cursor over a JSON text; see the module.
#[derive(Debug, Clone)]
pub struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

impl<'a> Parser<'a> {
    /// A cursor at the start of `text`.
    pub fn new(text: &'a str) -> Self {
        let mut parser = Parser { text, at: 0, depth: 0 };
        parser.skip_space();
        parser
    }

    /// The byte offset of the next token, after white space.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// The type of the next value, or an error if there is none. Consumes nothing.
    pub fn peek(&self) -> Result<JsonType, JsonError> {
        Ok(match self.next_byte() {
            Some(b'n') => self.check_word("null").map(|()| JsonType::Null)?,
            Some(b't') => self.check_word("true").map(|()| JsonType::Boolean)?,
            Some(b'f') => self.check_word("false").map(|()| JsonType::Boolean)?,
            Some(b'-' | b'0'..=b'9') => JsonType::Number,
            Some(b'"') => JsonType::String,
            Some(b'[') => JsonType::Array,
            Some(b'{') => JsonType::Object,
            _ => return Err(self.not_found("a value")),
        })
    }

    /// Consumes a `null` if it is next, and returns true if it did.
    pub fn null(&mut self) -> Result<bool, JsonError> {
        if self.peek()? != JsonType::Null {
            return Ok(false);
        }
        self.word("null")?;
        Ok(true)
    }

    /// A boolean.
    pub fn boolean(&mut self) -> Result<bool, JsonError> {
        self.want(JsonType::Boolean)?;
        let value = self.next_byte() == Some(b't');
        self.word(if value { "true" } else { "false" })?;
        Ok(value)
    }

    /// The text of a number.
    pub fn number(&mut self) -> Result<&'a str, JsonError> {
        self.want(JsonType::Number)?;
        let start = self.at;
        self.take(b'-');
        if self.take(b'0') {
            if matches!(self.next_byte(), Some(b'0'..=b'9')) {
                return Err(JsonError::new(start, "a number may not begin with a zero"));
            }
        } else {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.digits()?;
        }
        let number = self.text.get(start..self.at).unwrap_or_default();
        self.skip_space();
        Ok(number)
    }

    /// A string, decoded; borrowed from the text when it has no escape.
    pub fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.want(JsonType::String)?;
        self.at += 1;
        let mut decoded: Option<String> = None;
        loop {
            let run = self.plain_run();
            match self.next_byte() {
                Some(b'"') => {
                    self.at += 1;
                    self.skip_space();
                    return Ok(match decoded {
                        None => Cow::Borrowed(run),
                        Some(mut string) => {
                            string.push_str(run);
                            Cow::Owned(string)
                        }
                    });
                }
                Some(b'\\') => {
                    let string = decoded.get_or_insert_default();
                    string.push_str(run);
                    string.push(self.escape()?);
                }
                Some(control) => {
                    let what = format!("the control character U+{control:04X} in a string must be escaped");
                    return Err(JsonError::new(self.at, what).with_hint(format!("write \\u{control:04x}")));
                }
                None => return Err(self.ended("inside a string")),
            }
        }
    }

    /// An object: `member` is called with each name and must consume the value.
    pub fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &Name<'_>) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        self.want(JsonType::Object)?;
        self.descend_into()?;
        let mut seen = Seen::default();
        if !self.take_token(b'}') {
            loop {
                if self.next_byte() != Some(b'"') {
                    return Err(self.not_found("a name in quotes"));
                }
                let offset = self.at;
                let name = self.string()?;
                if !self.take_token(b':') {
                    return Err(self.not_found("`:` after a name"));
                }
                if seen.contains(&name) {
                    return Err(JsonError::new(offset, format!("the name {} is given twice", quoted(&name))));
                }
                member(self, &Name { text: &name, offset })?;
                seen.insert(name);
                if self.take_token(b'}') {
                    break;
                }
                if !self.take_token(b',') {
                    return Err(self.not_found("`,` or `}`"));
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// An array: `element` is called with each position and must consume the value.
    pub fn array(
        &mut self,
        mut element: impl FnMut(&mut Self, usize) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        self.want(JsonType::Array)?;
        self.descend_into()?;
        if !self.take_token(b']') {
            for position in 0_usize.. {
                element(self, position)?;
                if self.take_token(b']') {
                    break;
                }
                if !self.take_token(b',') {
                    return Err(self.not_found("`,` or `]`"));
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Checks one value of any type and gives its text as written.
    pub fn raw(&mut self) -> Result<&'a str, JsonError> {
        let start = self.at;
        match self.peek()? {
            JsonType::Null => self.word("null")?,
            JsonType::Boolean => self.boolean().map(drop)?,
            JsonType::Number => self.number().map(drop)?,
            JsonType::String => self.string().map(drop)?,
            JsonType::Array => self.array(|parser, _| parser.raw().map(drop))?,
            JsonType::Object => self.object(|parser, _| parser.raw().map(drop))?,
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        Ok(text.trim_end_matches([' ', '\t', '\n', '\r']))
    }

    /// Succeeds when nothing but white space is left.
    pub fn end(&self) -> Result<(), JsonError> {
        if self.at == self.text.len() {
            return Ok(());
        }
        Err(JsonError::new(self.at, format!("expected the end of the line, found {}", self.describe_next())))
    }

    fn want(&self, wanted: JsonType) -> Result<(), JsonError> {
        let found = self.peek()?;
        if found == wanted {
            return Ok(());
        }
        Err(JsonError::new(self.at, format!("expected {wanted}, found {found}")))
    }

    fn descend_into(&mut self) -> Result<(), JsonError> {
        if self.depth == MAX_DEPTH {
            return Err(JsonError::new(self.at, format!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.depth += 1;
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    fn word(&mut self, word: &'static str) -> Result<(), JsonError> {
        self.check_word(word)?;
        self.at += word.len();
        self.skip_space();
        Ok(())
    }

    /// Succeeds when this word comes next. Consumes nothing.
    fn check_word(&self, word: &'static str) -> Result<(), JsonError> {
        let rest = self.rest();
        if rest.starts_with(word) {
            return Ok(());
        }
        if word.starts_with(rest) {
            return Err(self.ended(&format!("inside `{word}`")));
        }
        Err(self.not_found(&format!("`{word}`")))
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        if !matches!(self.next_byte(), Some(b'0'..=b'9')) {
            return Err(self.not_found("a digit"));
        }
        while matches!(self.next_byte(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    /// The characters of a string up to its end, an escape or a fault.
    fn plain_run(&mut self) -> &'a str {
        let rest = self.rest();
        let len = rest.bytes().position(|b| b == b'"' || b == b'\\' || b < 0x20).unwrap_or(rest.len());
        self.at += len;
        rest.get(..len).unwrap_or_default()
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let start = self.at;
        self.at += 1;
        let Some(kind) = self.rest().chars().next() else {
            return Err(self.ended("inside a string"));
        };
        self.at += kind.len_utf8();
        Ok(match kind {
            '"' | '\\' | '/' => kind,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let first = self.hex4()?;
                match first {
                    0xd800..=0xdbff => {
                        let second = if self.rest().starts_with("\\u") {
                            self.at += 2;
                            self.hex4()?
                        } else if "\\u".starts_with(self.rest()) {
                            self.at = self.text.len();
                            return Err(self.ended("inside a string"));
                        } else {
                            0
                        };
                        if !(0xdc00..=0xdfff).contains(&second) {
                            return Err(lone_surrogate(start, first));
                        }
                        char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))
                            .ok_or_else(|| lone_surrogate(start, first))?
                    }
                    _ => char::from_u32(first).ok_or_else(|| lone_surrogate(start, first))?,
                }
            }
            _ => {
                let what = format!("unknown escape `\\{}` in a string", kind.escape_debug());
                return Err(JsonError::new(start, what)
                    .with_hint("the escapes are \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX"));
            }
        })
    }

    fn hex4(&mut self) -> Result<u32, JsonError> {
        let mut value = 0;
        for _ in 0..4 {
            let Some(byte) = self.next_byte() else {
                return Err(self.ended("inside a string"));
            };
            let Some(digit) = char::from(byte).to_digit(16) else {
                return Err(self.not_found("four hexadecimal digits after \\u"));
            };
            value = value * 16 + digit;
            self.at += 1;
        }
        Ok(value)
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn next_byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let taken = self.next_byte() == Some(byte);
        self.at += usize::from(taken);
        taken
    }

    fn take_token(&mut self, byte: u8) -> bool {
        let taken = self.take(byte);
        if taken {
            self.skip_space();
        }
        taken
    }

    fn skip_space(&mut self) {
        while matches!(self.next_byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn ended(&self, place: &str) -> JsonError {
        JsonError::new(self.text.len(), format!("the line ends {place}"))
    }

    fn not_found(&self, expected: &str) -> JsonError {
        let error = JsonError::new(self.at, format!("expected {expected}, found {}", self.describe_next()));
        let rest = self.rest().trim_start_matches(['-', '+']);
        if ["NaN", "nan", "Inf", "inf"].iter().any(|word| rest.starts_with(word)) {
            return error.with_hint("JSON has no NaN and no infinity");
        }
        match self.next_byte() {
            Some(b'\'') => error.with_hint("JSON strings are in double quotes"),
            _ => error,
        }
    }

    fn describe_next(&self) -> String {
        match self.rest().chars().next() {
            None => "the end of the line".to_owned(),
            Some(c) => format!("`{}`", c.escape_debug()),
        }
    }
}

fn lone_surrogate(offset: usize, unit: u32) -> JsonError {
    JsonError::new(offset, format!("the lone surrogate \\u{unit:04x} stands for no character"))
}

/// A name or value from outside as an error shows it: in backquotes, escaped, and shortened when it is long.
pub fn quoted(text: &str) -> String {
    const SHOWN: usize = 40;
    let mut shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// The names of one object so far.
#[derive(Default)]
struct Seen<'a> {
    few: Vec<Cow<'a, str>>,
    many: HashSet<Cow<'a, str>>,
}

impl<'a> Seen<'a> {
    fn contains(&self, name: &str) -> bool {
        if self.many.is_empty() { self.few.iter().any(|seen| seen == name) } else { self.many.contains(name) }
    }

    fn insert(&mut self, name: Cow<'a, str>) {
        if self.many.is_empty() && self.few.len() < FEW_NAMES {
            if self.few.is_empty() {
                self.few.reserve_exact(FEW_NAMES);
            }
            self.few.push(name);
            return;
        }
        self.many.extend(self.few.drain(..));
        self.many.insert(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), JsonError> {
        let mut parser = Parser::new(text);
        parser.raw()?;
        parser.end()
    }

    fn fault(text: &str) -> (usize, String) {
        let error = check(text).expect_err(text);
        (error.offset, error.message)
    }

    #[test]
    fn values_come_back_as_written() {
        for text in ["null", "true", "-0.5e+10", "\"a\\u00e9\"", "[1, 2 ,[]]", "{\"a\" : {\"b\":[{}]}}", "1e400"] {
            let mut parser = Parser::new(text);
            assert_eq!(parser.raw().as_deref(), Ok(text));
            assert_eq!(parser.end(), Ok(()));
        }
    }

    #[test]
    fn strings_are_decoded_and_borrowed_when_they_can_be() {
        assert!(matches!(Parser::new("\"plain é\"").string(), Ok(Cow::Borrowed("plain é"))));
        let escaped = Parser::new(r#""\"\\\/\b\f\n\r\té\ud83d\ude00x""#).string();
        assert_eq!(escaped.as_deref(), Ok("\"\\/\u{8}\u{c}\n\r\té😀x"));
    }

    #[test]
    fn every_fault_has_its_place_and_its_words() {
        for (text, offset, message) in [
            ("", 0, "expected a value, found the end of the line"),
            ("{\"a\":1,\"a\":2}", 7, "the name `a` is given twice"),
            ("{\"a\":1,\"\\u0061\":2}", 7, "the name `a` is given twice"),
            ("[{\"x\":[{\"b\":1,\"b\":1}]}]", 14, "the name `b` is given twice"),
            ("\"\\ud800\"", 1, "the lone surrogate \\ud800 stands for no character"),
            ("\"a\\udc00\"", 2, "the lone surrogate \\udc00 stands for no character"),
            ("\"\\ud800\\ud800\"", 1, "the lone surrogate \\ud800 stands for no character"),
            ("\"\\x\"", 1, "unknown escape `\\x` in a string"),
            ("\"\\u12g4\"", 5, "expected four hexadecimal digits after \\u, found `g`"),
            ("\"a\tb\"", 2, "the control character U+0009 in a string must be escaped"),
            ("\"abc", 4, "the line ends inside a string"),
            ("\"\\ud800\\", 8, "the line ends inside a string"),
            ("tru", 3, "the line ends inside `true`"),
            ("nul0", 0, "expected `null`, found `n`"),
            ("01", 0, "a number may not begin with a zero"),
            ("1.", 2, "expected a digit, found the end of the line"),
            ("1.e5", 2, "expected a digit, found `e`"),
            ("NaN", 0, "expected a value, found `N`"),
            ("-Infinity", 1, "expected a digit, found `I`"),
            ("{\"a\" 1}", 5, "expected `:` after a name, found `1`"),
            ("{a:1}", 1, "expected a name in quotes, found `a`"),
            ("{\"a\":1,}", 7, "expected a name in quotes, found `}`"),
            ("[1,]", 3, "expected a value, found `]`"),
            ("[1 2]", 3, "expected `,` or `]`, found `2`"),
            ("{\"a\":1", 6, "expected `,` or `}`, found the end of the line"),
            ("{} {}", 3, "expected the end of the line, found `{`"),
        ] {
            assert_eq!(fault(text), (offset, message.to_owned()), "{text}");
        }
        let hint = check("[NaN]").unwrap_err().hint;
        assert_eq!(hint.as_deref(), Some("JSON has no NaN and no infinity"));
    }

    #[test]
    fn nesting_is_limited() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(check(&nested(MAX_DEPTH as usize)), Ok(()));
        assert_eq!(fault(&nested(MAX_DEPTH as usize + 1)), (128, "nested deeper than 128 levels".to_owned()));
        assert_eq!(fault(&"{\"a\":".repeat(1_000_000)).0, 128 * 5);
    }

    #[test]
    fn duplicates_are_found_in_large_objects() {
        let mut text: String = (0..1000).map(|n| format!("\"n{n}\":{n},")).collect();
        text.insert(0, '{');
        text.push_str("\"n3\":0}");
        assert_eq!(fault(&text), (text.rfind("\"n3\"").unwrap(), "the name `n3` is given twice".to_owned()));
    }

    #[test]
    fn long_names_are_shortened() {
        assert_eq!(quoted(&"x".repeat(41)), format!("`{}…`", "x".repeat(40)));
        assert_eq!(quoted("a\u{1b}[31m"), "`a\\u{1b}[31m`");
    }
}
