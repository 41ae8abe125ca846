//! JSON files as a sequence of values, one of which is in memory at a time.
//!
//! A file is lines of JSON, or one document. Of a document, the elements of its array are the values; so are those of
//! the arrays in an object that hold what is wanted (`{"conversations": […]}`). Any other object is one value.
//!
//! Invariant: a value is at most [`MAX_VALUE_LEN`] bytes, and one that is broken ends a document, but no file of lines.

use crate::text::Lines;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

/// The longest value of a document, in bytes.
const MAX_VALUE_LEN: u64 = 256 << 20;

/// Takes the values of a file: the number of the line that a value begins in, and its text or the fault of the line.
pub(crate) type Take<'t, E> = dyn FnMut(u64, Result<&str, String>) -> Result<(), E> + 't;

/// The end of reading values.
#[derive(Debug)]
pub(crate) enum Stop<E> {
    /// The file could not be read.
    Io(io::Error),
    /// It is no JSON from this line and column on.
    Broken { line: u64, message: String },
    /// The taker ended it.
    Taker(E),
}

/// Reads the values of a file, line by line if it holds lines.
pub(crate) fn values<E>(mut input: Box<dyn BufRead>, wanted: &[&str], take: &mut Take<'_, E>) -> Result<(), Stop<E>> {
    let is_lines = is_lines(input.fill_buf().map_err(Stop::Io)?);
    if is_lines { lines(input, take) } else { document(input, wanted, take) }
}

/// Reads a file of lines.
pub(crate) fn lines<E>(input: Box<dyn BufRead>, take: &mut Take<'_, E>) -> Result<(), Stop<E>> {
    let mut lines = Lines::new(input);
    while let Some((number, line)) = lines.read().map_err(Stop::Io)? {
        take(number, line).map_err(Stop::Taker)?;
    }
    Ok(())
}

/// True if the first line is a whole object, and another one follows.
fn is_lines(head: &[u8]) -> bool {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    first.starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(first).is_ok() && lines.next().is_some()
}

/// Reads a document.
fn document<E>(input: Box<dyn BufRead>, wanted: &[&str], take: &mut Take<'_, E>) -> Result<(), Stop<E>> {
    let place = Rc::new(Place::default());
    let reader = Placed { input, place: Rc::clone(&place) };
    let mut deserializer = serde_json::Deserializer::from_reader(reader);
    let mut ended = None;
    loop {
        place.begin();
        if deserializer.end().is_ok() {
            return Ok(());
        }
        let seed = Top { wanted, place: &place, take, ended: &mut ended };
        let Err(error) = seed.deserialize(&mut deserializer) else { continue };
        return Err(match (ended.take(), error.is_io()) {
            (Some(error), _) => Stop::Taker(error),
            (None, true) => Stop::Io(error.into()),
            (None, false) => Stop::Broken { line: place.line.get() + 1, message: told(&error) },
        });
    }
}

/// The message without its place, which counts in the element.
fn told(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let end = message.rfind(" at line ").unwrap_or(message.len());
    let expected = if error.is_eof() { "the rest of the file" } else { "JSON" };
    format!("got {}, expected {expected}", &message[..end])
}

/// The place of the reader.
#[derive(Debug, Default)]
struct Place {
    /// Lines that ended.
    line: Cell<u64>,
    /// The line in which the value began.
    start: Cell<Option<u64>>,
    /// Bytes of the value so far.
    len: Cell<u64>,
}

impl Place {
    fn begin(&self) {
        self.start.set(None);
        self.len.set(0);
    }
}

/// Reads byte by byte, as the parser does, and notes the place.
struct Placed {
    input: Box<dyn BufRead>,
    place: Rc<Place>,
}

impl Read for Placed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = self.input.fill_buf()?;
        let (Some(byte), Some(to)) = (available.first().copied(), buffer.first_mut()) else { return Ok(0) };
        *to = byte;
        self.input.consume(1);
        let place = &self.place;
        if byte == b'\n' {
            place.line.set(place.line.get() + 1);
        } else if place.start.get().is_none() && !matches!(byte, b' ' | b'\t' | b'\r' | b',' | b'[' | b']') {
            place.start.set(Some(place.line.get() + 1));
        }
        let len = place.len.get() + 1;
        place.len.set(len);
        if len > MAX_VALUE_LEN {
            let limit = MAX_VALUE_LEN >> 20;
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("one value is longer than {limit} MiB")));
        }
        Ok(1)
    }
}

/// One value of the top, whose elements are taken.
struct Top<'t, 'f, E> {
    wanted: &'t [&'t str],
    place: &'t Place,
    take: &'t mut Take<'f, E>,
    ended: &'t mut Option<E>,
}

impl<E> Top<'_, '_, E> {
    fn take<D: serde::de::Error>(&mut self, text: &str) -> Result<(), D> {
        let line = self.place.start.get().unwrap_or_else(|| self.place.line.get() + 1);
        let taken = (self.take)(line, Ok(text));
        self.place.begin();
        taken.map_err(|error| {
            *self.ended = Some(error);
            D::custom("stopped")
        })
    }

    fn scalar<D: serde::de::Error>(mut self, text: impl fmt::Display) -> Result<(), D> {
        self.take(&text.to_string())
    }
}

impl<'de, E> DeserializeSeed<'de> for Top<'_, '_, E> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, E> Visitor<'de> for Top<'_, '_, E> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        self.place.begin();
        while let Some(element) = elements.next_element::<Box<RawValue>>()? {
            self.take(element.get())?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        let start = self.place.start.get();
        let (mut rest, mut is_streamed) = (String::new(), false);
        while let Some(name) = members.next_key::<String>()? {
            if self.wanted.contains(&name.as_str()) {
                is_streamed = true;
                let Top { wanted, place, take, ended } = &mut self;
                members.next_value_seed(Top { wanted: &wanted[..0], place, take: &mut **take, ended })?;
                continue;
            }
            let value = members.next_value::<Box<RawValue>>()?;
            rest.push(if rest.is_empty() { '{' } else { ',' });
            rest += &serde_json::to_string(&name).map_err(A::Error::custom)?;
            rest.push(':');
            rest += value.get();
        }
        if is_streamed {
            return Ok(());
        }
        rest += if rest.is_empty() { "{}" } else { "}" };
        self.place.start.set(start);
        self.take(&rest)
    }

    fn visit_bool<D: serde::de::Error>(self, value: bool) -> Result<(), D> {
        self.scalar(value)
    }

    fn visit_i64<D: serde::de::Error>(self, value: i64) -> Result<(), D> {
        self.scalar(value)
    }

    fn visit_u64<D: serde::de::Error>(self, value: u64) -> Result<(), D> {
        self.scalar(value)
    }

    fn visit_f64<D: serde::de::Error>(self, value: f64) -> Result<(), D> {
        self.scalar(value)
    }

    fn visit_str<D: serde::de::Error>(self, value: &str) -> Result<(), D> {
        self.scalar(serde_json::Value::from(value))
    }

    fn visit_unit<D: serde::de::Error>(self) -> Result<(), D> {
        self.scalar("null")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, wanted: &[&str]) -> (Vec<(u64, String)>, Option<String>) {
        let mut all = Vec::new();
        let input = Box::new(io::Cursor::new(text.as_bytes().to_vec()));
        let mut take = |line: u64, value: Result<&str, String>| {
            all.push((line, value.map_or_else(|fault| fault, str::to_owned)));
            Ok::<(), ()>(())
        };
        let ended = match values(input, wanted, &mut take) {
            Ok(()) => None,
            Err(Stop::Broken { line, message }) => Some(format!("{line}: {message}")),
            Err(other) => panic!("{other:?}"),
        };
        (all, ended)
    }

    #[test]
    fn a_document_and_lines_have_the_same_values() {
        let expected = [r#"{"a":1}"#, r#"{"a":[2]}"#];
        for (text, lines) in [
            ("{\"a\":1}\n{\"a\":[2]}\n", [1, 2]),
            ("[{\"a\":1},\n\n{\"a\":[2]}]", [1, 3]),
            ("\n[\n{\"a\":1}\n,{\"a\":[2]}\n]\n", [3, 4]),
            ("{\"n\": 1, \"conversations\": [{\"a\":1},{\"a\":[2]}], \"m\": 2}", [1, 1]),
            ("{\"a\":1} {\"a\":[2]}", [1, 1]),
        ] {
            let (all, ended) = read(text, &["conversations"]);
            let all: Vec<(u64, &str)> = all.iter().map(|(line, value)| (*line, value.as_str())).collect();
            assert_eq!(all, [(lines[0], expected[0]), (lines[1], expected[1])], "{text}");
            assert_eq!(ended, None);
        }
    }

    #[test]
    fn what_precedes_a_break_is_read() {
        let (all, ended) = read("[{\"a\":1},\n{\"a\":", &[]);
        assert_eq!(all, [(1, "{\"a\":1}".to_owned())]);
        assert_eq!(ended.unwrap(), "2: got EOF while parsing a value, expected the rest of the file");
        let (all, ended) = read("[1, \"x\", null]", &[]);
        assert_eq!(all.len(), 3);
        assert_eq!(ended, None);
        assert_eq!(read("", &[]), (vec![], None));
        assert!(read("hello", &[]).1.unwrap().starts_with("1: got expected value"));
    }
}
