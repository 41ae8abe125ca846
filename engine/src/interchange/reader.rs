//! Lines out of a stream, one at a time.
//!
//! A line ends with LF or CRLF; the last one may lack its ending. Lines of only white space are counted and skipped; a
//! byte order mark before the first line is skipped. Memory is that of the longest line, at most [`MAX_LINE_LEN`]; a
//! longer one is reported and skipped without being buffered.
//!
//! Lines and columns count from 1, columns in characters. A bad line does not end the reader: the caller stops, or
//! reports it and continues.

use super::json::{self, JsonError};
use super::line::Line;
use std::io::{self, BufRead, Read as _};

/// The longest line, in bytes without its ending: 64 MiB.
pub const MAX_LINE_LEN: usize = 64 << 20;

/// The capacity to which the buffer shrinks after a longer line.
const KEPT_BUFFER_LEN: usize = 1 << 20;

/// A fault of a line, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}{}", .hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default())]
pub struct LineError {
    /// Number of the line, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
    /// The expected and the found text.
    pub message: String,
    /// The remedy, if there is one.
    pub hint: Option<String>,
}

impl LineError {
    /// Turns the offset of a JSON error into a column of the line.
    pub fn locate(text: &str, line: u64, error: JsonError) -> Self {
        LineError { line, column: column(text, error.offset), message: error.message, hint: error.hint }
    }
}

/// The column, from 1, of a byte offset.
fn column(text: &str, offset: usize) -> u64 {
    let before = text.get(..offset).unwrap_or(text);
    1 + u64::try_from(before.chars().count()).unwrap_or(u64::MAX - 1)
}

/// Reads lines out of any buffered stream.
#[derive(Debug)]
pub struct LineReader<R> {
    input: R,
    line_no: u64,
    bytes_read: u64,
    buffer: Vec<u8>,
    max_len: usize,
}

impl<R: BufRead> LineReader<R> {
    /// A reader at the start of `input`.
    pub fn new(input: R) -> Self {
        LineReader { input, line_no: 0, bytes_read: 0, buffer: Vec::new(), max_len: MAX_LINE_LEN }
    }

    /// The next line that is not empty with its number, or `None` at the end. The outer error is the stream's.
    #[allow(clippy::type_complexity)]
    pub fn read(&mut self) -> io::Result<Option<(u64, Result<Line, LineError>)>> {
        loop {
            let ended = match self.fill()? {
                Filled::End => return Ok(None),
                Filled::TooLong => return Ok(Some((self.line_no, Err(self.too_long())))),
                Filled::Line { ended } => ended,
            };
            if self.buffer.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
                continue;
            }
            return Ok(Some((self.line_no, self.parse(ended))));
        }
    }

    /// The number of bytes read from the stream so far.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// The text of the line read last; empty when it was not UTF-8 or too long.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.buffer).unwrap_or_default()
    }

    /// The column, from 1, of a value in the line read last, by member names and array positions: `["recall", "from",
    /// "0", "end"]`. For errors in the meaning of a line; 1 if there is no such value.
    pub fn column_of(&self, path: &[&str]) -> u64 {
        let text = self.text();
        json::find(text, path).map_or(1, |offset| column(text, offset))
    }

    fn parse(&self, ended: bool) -> Result<Line, LineError> {
        let line = self.line_no;
        let text = match std::str::from_utf8(&self.buffer) {
            Ok(text) => text,
            Err(error) => {
                let valid = self.buffer.get(..error.valid_up_to()).unwrap_or_default();
                let before = std::str::from_utf8(valid).unwrap_or_default();
                let fault = if error.error_len().is_none() && !ended {
                    JsonError::new(before.len(), CUT).with_hint(CUT_HINT)
                } else {
                    let byte = self.buffer.get(valid.len()).copied().unwrap_or_default();
                    JsonError::new(before.len(), format!("not UTF-8: byte 0x{byte:02x}"))
                        .with_hint("bytes that are not text are written {\"base64\":\"…\"}")
                };
                return Err(LineError::locate(before, line, fault));
            }
        };
        super::parse::line(text).map_err(|error| {
            // Without a line ending, an error at the very end says that the rest is missing.
            let cut = !ended && error.offset == text.len();
            let error = if cut { JsonError::new(error.offset, CUT).with_hint(CUT_HINT) } else { error };
            LineError::locate(text, line, error)
        })
    }

    fn too_long(&self) -> LineError {
        LineError {
            line: self.line_no,
            column: 1,
            message: format!("longer than {} bytes, the limit of a line", self.max_len),
            hint: Some("split the text over several items".to_owned()),
        }
    }

    /// Fills the buffer with the next line, its ending and a byte order mark taken off.
    fn fill(&mut self) -> io::Result<Filled> {
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BUFFER_LEN);
        // Room for the text and the longest ending.
        let room = u64::try_from(self.max_len).unwrap_or(u64::MAX).saturating_add(2);
        let first = self.line_no == 0;
        let len = self.input.by_ref().take(room).read_until(b'\n', &mut self.buffer)?;
        if len == 0 {
            return Ok(Filled::End);
        }
        self.bytes_read += len as u64;
        self.line_no += 1;
        let ended = self.buffer.pop_if(|last| *last == b'\n').is_some();
        if ended {
            self.buffer.pop_if(|last| *last == b'\r');
        }
        if self.buffer.len() > self.max_len {
            self.buffer = Vec::new();
            if !ended {
                self.bytes_read += self.input.skip_until(b'\n')? as u64;
            }
            return Ok(Filled::TooLong);
        }
        if first && self.buffer.starts_with(b"\xef\xbb\xbf") {
            self.buffer.drain(..3);
        }
        Ok(Filled::Line { ended })
    }
}

impl<R: BufRead> Iterator for LineReader<R> {
    type Item = io::Result<(u64, Result<Line, LineError>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

const CUT: &str = "the file ends in the middle of this line";
const CUT_HINT: &str = "the file was cut short";

enum Filled {
    Line { ended: bool },
    TooLong,
    End,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// Each line's number, and its name or error.
    fn read(bytes: &[u8]) -> Vec<(u64, Result<&'static str, String>)> {
        // A small buffer, so that lines span several.
        LineReader::new(io::BufReader::with_capacity(7, Cursor::new(bytes)))
            .map(|item| item.expect("a stream in memory"))
            .map(|(line_no, line)| (line_no, line.map(|line| line.name()).map_err(|error| error.to_string())))
            .collect()
    }

    const HEADER: &str = "{\"holotype\":{\"interchange\":1}}";
    const COMMIT: &str = "{\"commit\":{}}";

    #[test]
    fn line_endings_empty_lines_and_the_mark_are_tolerated() {
        let file = format!("\u{feff}{HEADER}\r\n\n  \t\r\n{COMMIT}\n \n{COMMIT}");
        assert_eq!(read(file.as_bytes()), [(1, Ok("holotype")), (4, Ok("commit")), (6, Ok("commit"))]);
        assert_eq!(read(b""), []);
        assert_eq!(read(b"\xef\xbb\xbf"), []);
        assert_eq!(read(b"\n\n"), []);
    }

    #[test]
    fn a_bad_line_does_not_end_the_reading() {
        let file = format!("{COMMIT}\n{{\"comit\":{{}}}}\n{COMMIT}\n");
        let fault = "line 2, column 2: unknown kind of line: `comit` (did you mean `commit`?)";
        assert_eq!(read(file.as_bytes()), [(1, Ok("commit")), (2, Err(fault.to_owned())), (3, Ok("commit"))]);
    }

    #[test]
    fn a_line_cut_at_any_byte_is_an_error_at_its_end() {
        let line = "{\"trace\":{\"episode\":\"é\",\"fields\":{\"text\":\"a\\ud83d\\ude00ü\"},\"row\":10}}";
        for len in 1..line.len() {
            let cut = &line.as_bytes()[..len];
            let column = String::from_utf8_lossy(cut).trim_end_matches('\u{fffd}').chars().count() + 1;
            let fault =
                format!("line 1, column {column}: the file ends in the middle of this line (the file was cut short)");
            assert_eq!(read(cut), [(1, Err(fault))], "{}", String::from_utf8_lossy(cut));
            // The same bytes with a line ending are a bad line, and no cut file.
            let ended = read(&[cut, b"\n"].concat());
            assert!(matches!(&ended[..], [(1, Err(fault))] if !fault.contains("cut short")), "{ended:?}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_reported_where_they_stand() {
        let mut file = "{\"mark\":{\"key\":\"é".as_bytes().to_vec();
        file.extend(b"\xff\"}}\n");
        file.extend(COMMIT.as_bytes());
        let fault = "line 1, column 18: not UTF-8: byte 0xff (bytes that are not text are written {\"base64\":\"…\"})";
        assert_eq!(read(&file), [(1, Err(fault.to_owned())), (2, Ok("commit"))]);
    }

    #[test]
    fn a_line_beyond_the_limit_is_passed_over() {
        let filler = " ".repeat(40);
        for (ending, last) in [("\n", "\n"), ("\r\n", "")] {
            let file = format!("{COMMIT}{ending}{filler}{COMMIT}{ending}{COMMIT}{last}");
            let mut reader = LineReader::new(file.as_bytes());
            reader.max_len = COMMIT.len();
            let read: Vec<_> = reader.map(Result::unwrap).map(|(line_no, line)| (line_no, line.is_ok())).collect();
            assert_eq!(read, [(1, true), (2, false), (3, true)]);
        }
        let mut reader = LineReader::new(filler.as_bytes());
        reader.max_len = 39;
        let (line_no, fault) = reader.read().unwrap().unwrap();
        let message = "line 1, column 1: longer than 39 bytes, the limit of a line (split the text over several items)";
        assert_eq!((line_no, fault.unwrap_err().to_string()), (1, message.to_owned()));
        assert!(reader.read().unwrap().is_none());
    }

    #[test]
    fn the_limit_is_64_mib() {
        let line = |len: usize| {
            let text = "x".repeat(len - "{\"theme\":{\"text\":\"\"}}".len());
            format!("{{\"theme\":{{\"text\":\"{text}\"}}}}\n")
        };
        let mut reader = LineReader::new(io::BufReader::new(Cursor::new(line(MAX_LINE_LEN))));
        assert!(reader.read().unwrap().unwrap().1.is_ok());
        let mut reader = LineReader::new(io::BufReader::new(Cursor::new(line(MAX_LINE_LEN + 1))));
        let fault = reader.read().unwrap().unwrap().1.unwrap_err();
        assert_eq!(fault.message, "longer than 67108864 bytes, the limit of a line");
        assert_eq!(reader.text(), "");
    }

    #[test]
    fn later_checks_can_ask_for_a_column() {
        let file = "{\"recall\": {\"text\": \"é\", \"from\": [{\"key\": \"t1\", \"start\": 3, \"end\": 99}]}}\n";
        let mut reader = LineReader::new(file.as_bytes());
        assert_eq!(reader.column_of(&["recall"]), 1);
        reader.read().unwrap().unwrap().1.unwrap();
        let column = file.chars().position(|c| c == '9').unwrap() as u64 + 1;
        assert_eq!(reader.column_of(&["recall", "from", "0", "end"]), column);
        assert_eq!(reader.column_of(&["recall", "key"]), 1);
    }

    #[test]
    fn a_failing_stream_is_no_bad_line() {
        struct Broken;
        impl io::Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("the disk is gone"))
            }
        }
        let error = LineReader::new(io::BufReader::new(Broken)).read().unwrap_err();
        assert_eq!(error.to_string(), "the disk is gone");
    }
}
