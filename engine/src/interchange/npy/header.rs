//! Reads and writes the header of a `.npy` file; the parent module documents its layout.

use super::{HEADER_LEN, NpyError, Precision, Result, io_error};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

pub(super) const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Headers are one short dictionary; NumPy itself refuses longer ones.
const MAX_HEADER_TEXT_LEN: usize = 10_000;
/// Start of the header text in version 1.
const TEXT_AT: usize = MAGIC.len() + 2 + 2;

const _: () = assert!(HEADER_LEN.is_multiple_of(64) && TEXT_AT == 10);
/// The header of any `.npy` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpyHeader {
    /// Type of an element, such as `<f4` or `|u1`.
    pub descr: String,
    /// True if the first index runs fastest.
    pub fortran_order: bool,
    /// Length of each dimension.
    pub shape: Vec<u64>,
    /// The offset of the elements in the file.
    pub data_at: u64,
}

impl NpyHeader {
    /// Reads the header of a file; `path` is for errors.
    pub fn read(file: &File, path: &Path) -> Result<Self> {
        let fault = |what, expected: &str, found: String| NpyError::Header {
            file: path.to_owned(),
            what,
            expected: expected.to_owned(),
            found,
        };
        let mut head = [0; TEXT_AT + 2];
        let got = read_up_to(file, &mut head, 0).map_err(|source| io_error(path, source))?;
        let head = head.get(..got).unwrap_or_default();
        let Some(rest) = head.strip_prefix(MAGIC) else {
            let found = format!("{:02x?}", head.get(..MAGIC.len().min(got)).unwrap_or_default());
            return Err(fault("magic", "\\x93NUMPY", found));
        };
        let (text_at, text_len) = match *rest {
            [1, 0, a, b, ..] => (TEXT_AT, usize::from(u16::from_le_bytes([a, b]))),
            [2, 0, a, b, c, d] => {
                (TEXT_AT + 2, usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX))
            }
            [1 | 2, 0, ..] | [] | [_] => {
                return Err(fault("header", "its length", "the end of the file".to_owned()));
            }
            [major, minor, ..] => {
                return Err(fault("version", "1.0 or 2.0", format!("{major}.{minor}")));
            }
        };
        if text_len > MAX_HEADER_TEXT_LEN {
            return Err(fault("header", "at most 10000 bytes", text_len.to_string()));
        }
        let mut text = vec![0; text_len];
        let got = read_up_to(file, &mut text, text_at as u64).map_err(|source| io_error(path, source))?;
        if got < text_len {
            return Err(fault("header", &format!("{text_len} bytes"), format!("{got}, then the end of the file")));
        }
        let dictionary = std::str::from_utf8(&text).ok().filter(|text| text.is_ascii()).and_then(Dictionary::parse);
        let Some(Dictionary { descr: Some(descr), fortran_order: Some(fortran_order), shape: Some(shape) }) =
            dictionary
        else {
            let shown = String::from_utf8_lossy(&text).trim_end().chars().take(120).collect::<String>();
            let expected = "{'descr': …, 'fortran_order': …, 'shape': (…), }";
            return Err(fault("header", expected, format!("{shown:?}")));
        };
        Ok(NpyHeader { descr, fortran_order, shape, data_at: (text_at + text_len) as u64 })
    }
}

/// The header of a file as it is written.
pub(super) fn encode(rows: u64, dim: usize, precision: Precision) -> Vec<u8> {
    let text_len = HEADER_LEN - TEXT_AT;
    let text = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({rows}, {dim}), }}", precision.descr());
    // 20 digits of rows and 5 of dim leave room.
    assert!(text.len() < text_len, "the header text outgrew its room");
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&[1, 0]);
    header.extend_from_slice(&u16::try_from(text_len).unwrap_or(u16::MAX).to_le_bytes());
    header.extend_from_slice(text.as_bytes());
    header.resize(HEADER_LEN - 1, b' ');
    header.push(b'\n');
    header
}

/// Reads at an offset until the buffer is full or the file ends, and gives how much was read.
fn read_up_to(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut got = 0;
    while let Some(rest) = buffer.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at + got as u64) {
            Ok(0) => break,
            Ok(len) => got += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// The dictionary of a header: a Python literal with three names.
#[derive(Default)]
struct Dictionary {
    descr: Option<String>,
    fortran_order: Option<bool>,
    shape: Option<Vec<u64>>,
}

impl Dictionary {
    fn parse(text: &str) -> Option<Self> {
        let mut literal = Literal { rest: text };
        let mut dictionary = Dictionary::default();
        literal.token("{").then_some(())?;
        while !literal.token("}") {
            let name = literal.string()?;
            literal.token(":").then_some(())?;
            let again = match name {
                "descr" => dictionary.descr.replace(literal.string()?.to_owned()).is_some(),
                "fortran_order" => dictionary.fortran_order.replace(literal.boolean()?).is_some(),
                "shape" => dictionary.shape.replace(literal.tuple()?).is_some(),
                _ => true,
            };
            if again {
                return None;
            }
            if !literal.token(",") {
                literal.token("}").then_some(())?;
                break;
            }
        }
        literal.rest.trim().is_empty().then_some(dictionary)
    }
}

/// The rest of a Python literal.
struct Literal<'t> {
    rest: &'t str,
}

impl<'t> Literal<'t> {
    fn token(&mut self, token: &str) -> bool {
        match self.rest.trim_start().strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn string(&mut self) -> Option<&'t str> {
        let rest = self.rest.trim_start();
        let quote = rest.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
        let (string, rest) = rest.get(1..)?.split_once(quote)?;
        self.rest = rest;
        Some(string)
    }

    fn boolean(&mut self) -> Option<bool> {
        if self.token("True") {
            return Some(true);
        }
        self.token("False").then_some(false)
    }

    fn tuple(&mut self) -> Option<Vec<u64>> {
        let mut numbers = Vec::new();
        self.token("(").then_some(())?;
        while !self.token(")") {
            let rest = self.rest.trim_start();
            let (digits, after) = rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count());
            numbers.push(digits.parse().ok()?);
            self.rest = after;
            if !self.token(",") {
                self.token(")").then_some(())?;
                break;
            }
        }
        Some(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_widest_header_fits() {
        let bytes = encode(u64::MAX, super::super::MAX_DIM, Precision::F16);
        assert_eq!(bytes.len(), HEADER_LEN);
        let text = std::str::from_utf8(&bytes[TEXT_AT..]).unwrap();
        let dictionary = Dictionary::parse(text).unwrap();
        assert_eq!(dictionary.shape, Some(vec![u64::MAX, 65_536]));
    }

    #[test]
    fn dictionaries() {
        for good in ["{}", "{'shape': ()}", "{'shape': (1,), }", "{'fortran_order':True,'descr':\"|u1\"}"] {
            assert!(Dictionary::parse(good).is_some(), "{good}");
        }
        for bad in ["", "{", "{'shape': (1 2)}", "{'shape': (-1,)}", "{'a': 1}", "{} {}", "{'descr': '<f4}"] {
            assert!(Dictionary::parse(bad).is_none(), "{bad}");
        }
        assert!(Dictionary::parse("{'descr': 'a', 'descr': 'a'}").is_none());
    }

    proptest! {
        #[test]
        fn any_text_is_taken_whole_or_refused(text in "[{}()'a-z<0-9: ,TF\"]{0,40}|.{0,40}") {
            if let Some(dictionary) = Dictionary::parse(&text) {
                prop_assert!(dictionary.descr.is_none_or(|descr| text.contains(&descr)));
                prop_assert!(Dictionary::parse(&format!("{text}}}")).is_none(), "something follows its end");
            }
        }
    }
}
