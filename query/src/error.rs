//! Errors of a script: the place, the mistake and a correction.
//!
//! An error says what was expected, where, the nearest thing that would have done, and
//! a hint. All errors of a script come together, in the order of the source. Codes are
//! stable; messages are not.
//!
//! | code | when |
//! |------|------|
//! | `syntax` | a word or sign that cannot stand here |
//! | `empty` | nothing to run |
//! | `empty-query` | a recall without a question |
//! | `too-long`, `too-deep`, `too-many-errors` | a limit was reached |
//! | `bad-character`, `bad-string`, `bad-number`, `bad-duration`, `bad-time` | the lexer or a literal |
//! | `duplicate-clause` | a clause, part or name written twice |
//! | `misplaced` | words that are right, but not together |
//! | `unknown-attribute`, `unknown-column`, `unknown-setting`, `unknown-profile`, `unknown-value` | a name nobody knows here |
//! | `wrong-type` | a value that cannot be compared with its attribute |
//! | `missing-parameter`, `unused-parameter`, `parameter-type`, `vector-length` | the parameters given |

use std::fmt::{self, Write as _};
use std::ops::Deref;

use crate::span::Span;

/// Errors kept for one script; the last says that there are more.
const MAX_ERRORS: usize = 64;

/// Characters of a long source line that a message shows before the caret, and in all.
const SHOWN_BEFORE: usize = 60;
const SHOWN_IN_ALL: usize = 140;
/// Bytes around the place that hold all that is shown of its line, and more if the line is longer.
const SEEN_LEN: usize = 4 * (SHOWN_IN_ALL + 1);

/// One thing that is wrong with a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// A stable name of the sort of error, such as `syntax`.
    pub code: &'static str,
    /// The mistake, in one clause.
    pub message: String,
    /// The place in the source.
    pub span: Span,
    /// Line of the first character, from 1.
    pub line: u32,
    /// Column of the first character, in characters from 1.
    pub column: u32,
    /// The alternatives at that place: keywords in backquotes, classes in words.
    pub expected: Vec<String>,
    /// The keyword, attribute or value that is written almost so.
    pub nearest: Option<String>,
    /// A correction.
    pub hint: Option<String>,
}

impl Error {
    pub(crate) fn new(code: &'static str, span: Span, message: impl Into<String>) -> Error {
        Error {
            code,
            message: message.into(),
            span,
            line: span.line,
            column: span.column,
            expected: Vec::new(),
            nearest: None,
            hint: None,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn nearest(mut self, nearest: Option<&str>) -> Error {
        self.nearest = nearest.map(str::to_owned);
        self
    }

    pub(crate) fn expected(mut self, expected: impl Into<String>) -> Error {
        self.expected.push(expected.into());
        self
    }

    /// The error with the line of `source` it is about and a caret under the place.
    ///
    /// `source` is the text that was parsed. Control characters of it are shown as
    /// blanks, and a long line only around the place.
    pub fn render(&self, source: &str) -> String {
        let mut out = format!("error[{}]: {}\n", self.code, self.message);
        if self.line > 0 {
            self.render_place(source, &mut out);
        }
        self.render_notes(&mut out);
        out
    }

    fn render_place(&self, source: &str, out: &mut String) {
        let start = source.floor_char_boundary(self.span.start as usize);
        let end = source.floor_char_boundary(self.span.end as usize);
        // A line may be as long as the source, and there may be an error in each of its words: what is too far from the
        // place to be shown is not looked at.
        let first = source.floor_char_boundary(start.saturating_sub(SEEN_LEN));
        let last = source.floor_char_boundary(start + SEEN_LEN);
        let line_start = source[first..start].rfind('\n').map_or(first, |at| first + at + 1);
        let line_end = source[start..last].find('\n').map_or(last, |at| start + at);
        let before = source[line_start..start].chars().count();
        let width = source[start..end.clamp(start, line_end)].chars().count().max(1);

        let length = source[line_start..line_end].chars().count();
        let skipped = if length > SHOWN_IN_ALL { before.saturating_sub(SHOWN_BEFORE) } else { 0 };
        let mut shown: String = source[line_start..line_end]
            .trim_end_matches('\r')
            .chars()
            .skip(skipped)
            .take(SHOWN_IN_ALL)
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        if length > skipped + SHOWN_IN_ALL {
            shown.push('…');
        }
        let mut indent = before - skipped;
        if skipped > 0 {
            shown.insert(0, '…');
            indent += 1;
        }
        let width = width.min((SHOWN_IN_ALL + 1).saturating_sub(indent).max(1));

        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{gutter}--> {}:{}", self.line, self.column);
        let _ = writeln!(out, "{gutter} |");
        let _ = writeln!(out, "{}", format!("{number} | {shown}").trim_end());
        let _ = writeln!(out, "{gutter} | {}{}", " ".repeat(indent), "^".repeat(width));
    }

    fn render_notes(&self, out: &mut String) {
        let _ = match self.expected.as_slice() {
            [] => Ok(()),
            [one] => writeln!(out, "  = expected {one}"),
            many => writeln!(out, "  = expected one of {}", many.join(", ")),
        };
        if let Some(nearest) = &self.nearest {
            let _ = writeln!(out, "  = did you mean `{nearest}`?");
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(out, "  = hint: {hint}");
        }
    }
}

/// On one line: the place, what is wrong, the nearest thing, the hint.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}, column {}: ", self.line, self.column)?;
        }
        f.write_str(&self.message)?;
        match self.expected.as_slice() {
            [] => {}
            [one] => write!(f, "; expected {one}")?,
            many => write!(f, "; expected one of {}", many.join(", "))?,
        }
        if let Some(nearest) = &self.nearest {
            write!(f, "; did you mean `{nearest}`?")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// Everything that is wrong with a script, in the order of the source; never empty.
///
/// At most 64 errors are kept; the last then says that there are more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors(Vec<Error>);

impl Errors {
    /// Every error rendered with its source line, one blank line between them.
    pub fn render(&self, source: &str) -> String {
        let rendered: Vec<String> = self.0.iter().map(|error| error.render(source)).collect();
        rendered.join("\n")
    }
}

impl Deref for Errors {
    type Target = [Error];

    fn deref(&self) -> &[Error] {
        &self.0
    }
}

impl IntoIterator for Errors {
    type Item = Error;
    type IntoIter = std::vec::IntoIter<Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Errors {
    type Item = &'a Error;
    type IntoIter = std::slice::Iter<'a, Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl From<Error> for Errors {
    fn from(error: Error) -> Errors {
        Errors(vec![error])
    }
}

/// One error a line.
impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_char('\n')?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}

/// The errors found so far.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    errors: Vec<Error>,
    closed: bool,
}

impl Collector {
    pub(crate) fn push(&mut self, error: Error) {
        if !self.is_full() {
            self.errors.push(error);
        }
    }

    /// Adds the error behind which there is nothing to look for.
    pub(crate) fn push_last(&mut self, error: Error) {
        self.push(error);
        self.closed = true;
    }

    pub(crate) fn append(&mut self, other: Collector) {
        other.errors.into_iter().for_each(|error| self.push(error));
    }

    /// True if looking for more errors is of no use.
    pub(crate) fn is_full(&self) -> bool {
        self.closed || self.errors.len() == MAX_ERRORS
    }

    /// `value` when nothing was wrong.
    pub(crate) fn finish<T>(self, value: T) -> Result<T, Errors> {
        self.finish_if_some(Some(value))
    }

    /// `value` when nothing was wrong; it is `None` only after an error.
    pub(crate) fn finish_if_some<T>(mut self, value: Option<T>) -> Result<T, Errors> {
        if let Some(value) = value.filter(|_| self.errors.is_empty()) {
            return Ok(value);
        }
        let full = self.errors.len() == MAX_ERRORS;
        // An error without a place, such as an unused parameter, comes last.
        self.errors.sort_by_key(|error| (error.line == 0, error.span.start));
        if full && let Some(last) = self.errors.last_mut() {
            let span = last.span;
            *last = Error::new("too-many-errors", span, "there are more errors than are shown")
                .hint("put the ones above right first");
        }
        Err(Errors(self.errors))
    }
}

/// The candidate that `word` probably misspells: at most a third of its letters (one to
/// three) edited, ignoring case. The first of equals.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let len = word.chars().take(MAX_NEAREST + 1).count();
    if len > MAX_NEAREST {
        return None;
    }
    let word = word.to_lowercase();
    let allowed = (len / 3).clamp(1, 3);
    candidates
        .into_iter()
        // Each letter that one word is longer takes an edit.
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= MAX_NEAREST)
        .map(|candidate| (strsim::osa_distance(&word, candidate), candidate))
        // An edit distance as long as the candidate would match anything.
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Longer words get no suggestion, which also limits the quadratic cost of the edit distance.
const MAX_NEAREST: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: u32, end: u32, column: u32) -> Span {
        Span { start, end, line: 1, column }
    }

    #[test]
    fn the_nearest_word_is_near() {
        let words = ["status", "source", "step"];
        assert_eq!(nearest("statsu", words), Some("status"));
        assert_eq!(nearest("STATUS", words), Some("status"));
        assert_eq!(nearest("price", words), None);
        assert_eq!(nearest("", words), None);
    }

    #[test]
    fn a_place_in_a_long_line_is_shown_with_its_surroundings() {
        let source = "x".repeat(500) + "\u{7}here" + &"y".repeat(500);
        let rendered = Error::new("syntax", at(501, 505, 502), "wrong").render(&source);
        let lines: Vec<&str> = rendered.lines().collect();
        let caret = lines[4].find('^').expect("there is a caret");
        let shown: Vec<char> = lines[3].chars().collect();
        assert_eq!(shown[caret..caret + 4], ['h', 'e', 'r', 'e']);
        assert!(shown.len() < 160, "{}", shown.len());
        assert!(!rendered.contains('\u{7}'));
    }

    #[test]
    fn how_long_a_long_line_is_does_not_matter() {
        let rendered = |around: usize| {
            let source = "é".repeat(around) + "here" + &"𝄞".repeat(around);
            let (start, column) = (2 * around as u32, around as u32 + 1);
            Error::new("syntax", at(start, start + 4, column), "wrong")
                .render(&source)
                .replace(&column.to_string(), "N")
        };
        assert_eq!(rendered(200).lines().nth(3), rendered(100_000).lines().nth(3));
        assert_eq!(rendered(200).lines().nth(4), rendered(100_000).lines().nth(4));
    }

    #[test]
    fn too_many_errors_end_in_one_that_says_so() {
        let mut collector = Collector::default();
        for start in 0..1000 {
            collector.push(Error::new("syntax", at(start, start + 1, start + 1), "wrong"));
        }
        let errors = collector.finish(()).expect_err("there are errors");
        assert_eq!(errors.len(), MAX_ERRORS);
        assert_eq!(errors[MAX_ERRORS - 1].code, "too-many-errors");
    }
}
