//! Values of one member: what it must be, and what is said when it is not.

use super::super::json::{JsonError, JsonType, Name, Parser, quoted};
use super::super::{time, vocabulary as words};
use std::fmt;

/// The largest integer that every reader of JSON keeps exactly; larger ones are written as strings.
pub(in super::super) const LARGEST_NUMBER: u64 = 1 << 53;

pub(super) type Parsed<T> = Result<T, JsonError>;

/// A member of an object, for errors.
#[derive(Clone, Copy)]
pub(super) struct Member {
    pub(super) of: &'static str,
    pub(super) name: &'static str,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}.{}`", self.of, self.name)
    }
}

impl Member {
    pub(super) fn expected(self, expected: &str, found: &dyn fmt::Display, offset: usize) -> JsonError {
        JsonError::new(offset, format!("{self}: expected {expected}, found {found}"))
    }

    pub(super) fn want(self, p: &Parser<'_>, wanted: JsonType, expected: &str) -> Parsed<usize> {
        let found = p.peek()?;
        if found == wanted { Ok(p.offset()) } else { Err(self.expected(expected, &found, p.offset())) }
    }
}

pub(super) fn object_start(p: &Parser<'_>, kind: &'static str) -> Parsed<usize> {
    let found = p.peek()?;
    if found == JsonType::Object {
        return Ok(p.offset());
    }
    Err(JsonError::new(p.offset(), format!("`{kind}`: expected an object, found {found}")))
}

pub(super) fn unknown(what: &str, name: &Name<'_>, takes: &str, known: &[&str]) -> JsonError {
    let error = JsonError::new(name.offset, format!("unknown {what}: {}", quoted(name.text)));
    error.with_hint(match words::nearest(name.text, known.iter().copied()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("{takes} {}", known.join(", ")),
    })
}

pub(super) fn required<T>(value: Option<T>, offset: usize, kind: &str, name: &str) -> Parsed<T> {
    value.ok_or_else(|| JsonError::new(offset, format!("`{kind}` needs `{name}`")))
}

pub(super) fn text(p: &mut Parser<'_>, at: Member) -> Parsed<String> {
    at.want(p, JsonType::String, "a string")?;
    Ok(p.string()?.into_owned())
}

/// A string that is not empty.
pub(super) fn name(p: &mut Parser<'_>, at: Member) -> Parsed<String> {
    let offset = p.offset();
    let name = text(p, at)?;
    if name.is_empty() { Err(JsonError::new(offset, format!("{at}: is empty"))) } else { Ok(name) }
}

/// A string that is one of the known words.
pub(super) fn word(p: &mut Parser<'_>, at: Member, known: &'static [&'static str]) -> Parsed<String> {
    let offset = p.offset();
    let word = text(p, at)?;
    if known.contains(&word.as_str()) {
        return Ok(word);
    }
    let error = at.expected(&format!("one of {}", known.join(", ")), &quoted(&word), offset);
    Err(match words::nearest(&word, known.iter().copied()) {
        Some(nearest) => error.with_hint(format!("did you mean `{nearest}`?")),
        None => error,
    })
}

/// A string, or the text of a number or boolean.
pub(super) fn scalar(p: &mut Parser<'_>, at: Member) -> Parsed<String> {
    match p.peek()? {
        JsonType::String => text(p, at),
        JsonType::Number | JsonType::Boolean => Ok(p.raw()?.to_owned()),
        found => Err(at.expected("a string, a number or a boolean", &found, p.offset())),
    }
}

pub(super) fn boolean(p: &mut Parser<'_>, at: Member) -> Parsed<bool> {
    at.want(p, JsonType::Boolean, "true or false")?;
    p.boolean()
}

/// A whole number: digits up to 2^53, or a string of digits up to 2^64 - 1.
pub(super) fn integer(p: &mut Parser<'_>, at: Member) -> Parsed<u64> {
    const EXPECTED: &str = "a whole number from 0";
    let (offset, found) = (p.offset(), p.peek()?);
    match found {
        JsonType::Number => {
            let number = p.number()?;
            match number.parse::<u64>() {
                Ok(integer) if integer <= LARGEST_NUMBER => Ok(integer),
                _ if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                    Err(JsonError::new(offset, format!("{at}: {} is above 2^53", quoted(number)))
                        .with_hint("integers above 9007199254740992 are written as strings"))
                }
                _ => Err(at.expected(EXPECTED, &quoted(number), offset)),
            }
        }
        JsonType::String => {
            let digits = p.string()?;
            let plain =
                digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits.len() == 1 || !digits.starts_with('0'));
            match digits.parse::<u64>() {
                Ok(integer) if plain => Ok(integer),
                _ => Err(at.expected(EXPECTED, &format!("the string {}", quoted(&digits)), offset)),
            }
        }
        _ => Err(at.expected(EXPECTED, &found, offset)),
    }
}

pub(super) fn bounded(p: &mut Parser<'_>, at: Member, least: u64, most: u64) -> Parsed<u64> {
    let offset = p.offset();
    let integer = integer(p, at)?;
    if (least..=most).contains(&integer) {
        return Ok(integer);
    }
    Err(at.expected(&format!("a whole number from {least} to {most}"), &integer, offset))
}

pub(super) fn return_score(p: &mut Parser<'_>, at: Member) -> Parsed<u8> {
    Ok(u8::try_from(bounded(p, at, 1, 10)?).unwrap_or(u8::MAX))
}

pub(super) fn double(p: &mut Parser<'_>, at: Member) -> Parsed<f64> {
    number(p, at, |number: &f64| number.is_finite())
}

/// A whole number of 32 bits.
pub(super) fn small(p: &mut Parser<'_>, at: Member) -> Parsed<u32> {
    let offset = p.offset();
    let number = integer(p, at)?;
    u32::try_from(number).map_err(|_| JsonError::new(offset, format!("{at}: {number} is above 4294967295")))
}

/// A number in single precision, rounded once from its text.
pub(super) fn single(p: &mut Parser<'_>, at: Member) -> Parsed<f32> {
    number(p, at, |number: &f32| number.is_finite())
}

pub(super) fn number<T: std::str::FromStr>(p: &mut Parser<'_>, at: Member, finite: impl Fn(&T) -> bool) -> Parsed<T> {
    let offset = at.want(p, JsonType::Number, "a number")?;
    let text = p.number()?;
    let number = text.parse().ok().filter(|number| finite(number));
    number.ok_or_else(|| JsonError::new(offset, format!("{at}: {} is too large", quoted(text))))
}

pub(super) fn instant(p: &mut Parser<'_>, at: Member) -> Parsed<i64> {
    let offset = p.offset();
    let text = text(p, at)?;
    time::parse(&text).map_err(|error| JsonError::new(offset, format!("{at}: {}: {error}", quoted(&text))))
}

/// A hash: 64 hexadecimal digits or the first 16, made lower case.
pub(super) fn hash(p: &mut Parser<'_>, at: Member) -> Parsed<String> {
    let offset = p.offset();
    let hash = text(p, at)?;
    let plain = matches!(hash.len(), 16 | 64) && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    if plain {
        return Ok(hash.to_ascii_lowercase());
    }
    Err(at.expected("64 hexadecimal digits, or the first 16", &quoted(&hash), offset))
}

pub(super) fn list<'a, T>(
    p: &mut Parser<'a>,
    at: Member,
    element: impl Fn(&mut Parser<'a>, Member) -> Parsed<T>,
) -> Parsed<Vec<T>> {
    let mut list = Vec::new();
    at.want(p, JsonType::Array, "an array")?;
    p.array(|p, _| {
        list.push(element(p, at)?);
        Ok(())
    })?;
    Ok(list)
}
