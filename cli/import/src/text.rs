//! Text files of any Unicode encoding, as UTF-8, and their lines.
//!
//! A byte order mark decides between UTF-8 and UTF-16; without one, a zero among the first two bytes means UTF-16.
//! Anything else is passed on as it is, and a line that is not UTF-8 is a fault of that line alone.
//!
//! Invariants:
//! 1. Memory stays within [`MAX_LINE_LEN`] and one buffer, whatever the file holds.
//! 2. A last line without a line end is a line.

use std::io::{self, BufRead, BufReader, Read};

/// The longest line that is read, in bytes; the rest of a longer one is passed over.
pub(crate) const MAX_LINE_LEN: usize = 24 << 20;
/// Bytes read at once.
const BUFFER_LEN: usize = 1 << 16;

/// Reads a file as UTF-8 without a byte order mark.
pub(crate) fn decode(input: impl Read + 'static) -> io::Result<Box<dyn BufRead>> {
    let mut input = BufReader::with_capacity(BUFFER_LEN, input);
    let head = input.fill_buf()?;
    let (mark, big_endian) = match head {
        [0xef, 0xbb, 0xbf, ..] => (3, None),
        [0xff, 0xfe, ..] => (2, Some(false)),
        [0xfe, 0xff, ..] => (2, Some(true)),
        [0, second, ..] if *second != 0 => (0, Some(true)),
        [first, 0, ..] if *first != 0 => (0, Some(false)),
        _ => (0, None),
    };
    input.consume(mark);
    Ok(match big_endian {
        None => Box::new(input),
        Some(big_endian) => {
            let decoder = Utf16 { input, big_endian, units: Vec::new(), decoded: Vec::new(), at: 0 };
            Box::new(BufReader::with_capacity(BUFFER_LEN, decoder))
        }
    })
}

/// UTF-16 as UTF-8; half a pair becomes U+FFFD.
struct Utf16<R> {
    input: R,
    big_endian: bool,
    /// The first half of a pair whose second half is not read yet.
    units: Vec<u16>,
    decoded: Vec<u8>,
    at: usize,
}

impl<R: BufRead> Utf16<R> {
    fn fill(&mut self) -> io::Result<()> {
        self.decoded.clear();
        self.at = 0;
        let mut bytes = Vec::with_capacity(BUFFER_LEN);
        self.input.by_ref().take(BUFFER_LEN as u64 & !1).read_to_end(&mut bytes)?;
        let is_end = bytes.is_empty();
        let mut units = std::mem::take(&mut self.units);
        let pairs = bytes.chunks(2).map(|pair| match (pair, self.big_endian) {
            ([high, low], true) | ([low, high], false) => u16::from_be_bytes([*high, *low]),
            _ => 0xfffd,
        });
        units.extend(pairs);
        if !is_end && units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit)) {
            self.units.extend(units.pop());
        }
        for decoded in char::decode_utf16(units) {
            let decoded = decoded.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.decoded.extend_from_slice(decoded.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Utf16<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.decoded.len() {
            self.fill()?;
            // One more time: a first half alone decodes to nothing yet.
            if self.decoded.is_empty() && !self.units.is_empty() {
                self.fill()?;
            }
        }
        let rest = self.decoded.get(self.at..).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        self.at += len;
        Ok(len)
    }
}

/// The lines of a file.
pub(crate) struct Lines {
    input: Box<dyn BufRead>,
    number: u64,
    buffer: Vec<u8>,
}

impl Lines {
    pub(crate) fn new(input: Box<dyn BufRead>) -> Lines {
        Lines { input, number: 0, buffer: Vec::new() }
    }

    /// The next line that is not blank with its number, or the reason why it cannot be read.
    pub(crate) fn read(&mut self) -> io::Result<Option<(u64, Result<&str, String>)>> {
        loop {
            self.buffer.clear();
            let limit = MAX_LINE_LEN as u64 + 1;
            let len = self.input.by_ref().take(limit).read_until(b'\n', &mut self.buffer)?;
            if len == 0 {
                return Ok(None);
            }
            self.number += 1;
            if len > MAX_LINE_LEN && !self.buffer.ends_with(b"\n") {
                self.pass_over()?;
                let limit = MAX_LINE_LEN >> 20;
                return Ok(Some((self.number, Err(format!("got a longer line, expected at most {limit} MiB")))));
            }
            let end = self.buffer.trim_ascii_end().len();
            self.buffer.truncate(end);
            if self.buffer.iter().any(|byte| *byte != 0 && !byte.is_ascii_whitespace()) {
                break;
            }
        }
        let text = std::str::from_utf8(&self.buffer).map_err(|error| {
            let byte = self.buffer.get(error.valid_up_to()).copied().unwrap_or_default();
            format!("got the byte {byte:#04x} at column {}, expected UTF-8 or UTF-16", error.valid_up_to() + 1)
        });
        Ok(Some((self.number, text)))
    }

    /// Passes over the rest of a line.
    fn pass_over(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.input.fill_buf()?;
            let (len, is_end) = match buffer.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            };
            self.input.consume(len);
            if is_end {
                return Ok(());
            }
        }
    }
}

/// The first `chars` characters of a text, on one line, for a message.
pub(crate) fn shown(text: &str, chars: usize) -> String {
    let mut shown: String = text.chars().take(chars).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(chars).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<(u64, Result<String, String>)> {
        let mut lines = Lines::new(decode(io::Cursor::new(bytes.to_vec())).unwrap());
        let mut all = Vec::new();
        while let Some((number, line)) = lines.read().unwrap() {
            all.push((number, line.map(str::to_owned)));
        }
        all
    }

    fn utf16(text: &str, big_endian: bool) -> Vec<u8> {
        let bytes = |unit: u16| if big_endian { unit.to_be_bytes() } else { unit.to_le_bytes() };
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn one_text_has_the_same_lines_in_every_encoding() {
        let text = "a 🙂 b\r\n\r\nc";
        let expected = vec![(1, Ok("a 🙂 b".to_owned())), (3, Ok("c".to_owned()))];
        assert_eq!(lines(text.as_bytes()), expected);
        assert_eq!(lines(format!("\u{feff}{text}").as_bytes()), expected);
        for big_endian in [false, true] {
            assert_eq!(lines(&utf16(text, big_endian)), expected);
            assert_eq!(lines(&utf16(&format!("\u{feff}{text}"), big_endian)), expected);
        }
    }

    #[test]
    fn a_pair_across_two_buffers_is_one_character() {
        let text = format!("{}🙂", "x".repeat(BUFFER_LEN / 2 - 2));
        let expected = vec![(1, Ok(text.clone()))];
        assert_eq!(lines(&utf16(&format!("\u{feff}{text}"), false)), expected);
    }

    #[test]
    fn what_is_no_text_is_a_fault_of_its_line() {
        let all = lines(b"a\n\xff\nb");
        assert_eq!(all[1], (2, Err("got the byte 0xff at column 1, expected UTF-8 or UTF-16".to_owned())));
        assert_eq!(all[2], (3, Ok("b".to_owned())));
        assert_eq!(lines(b""), []);
        let long = [vec![b'x'; MAX_LINE_LEN + 9], b"\nb".to_vec()].concat();
        let all = lines(&long);
        assert!(all[0].1.is_err());
        assert_eq!(all[1], (2, Ok("b".to_owned())));
    }
}
