//! Colours of a statement as it is typed: keywords, texts, numbers, parameters, comments.

use holotype::query::words_of_the_language;
use std::borrow::Cow;

const KEYWORD: &str = "\u{1b}[1m";
const TEXT: &str = "\u{1b}[32m";
const NUMBER: &str = "\u{1b}[36m";
const PARAMETER: &str = "\u{1b}[35m";
const COMMENT: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// The line with colours; only escapes are added.
pub(super) fn coloured(line: &str) -> Cow<'_, str> {
    let mut out = String::with_capacity(line.len() * 2);
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let (colour, len) = piece(first, rest);
        let (piece, behind) = rest.split_at(len);
        match colour {
            Some(colour) => out.extend([colour, piece, PLAIN]),
            None => out.push_str(piece),
        }
        rest = behind;
    }
    if out.len() == line.len() { Cow::Borrowed(line) } else { Cow::Owned(out) }
}

/// The length of the piece at the beginning, and its colour.
fn piece(first: char, text: &str) -> (Option<&'static str>, usize) {
    let while_in = |inside: &dyn Fn(char) -> bool| text.find(|c| !inside(c)).unwrap_or(text.len());
    let in_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    match first {
        '\'' | '"' => (Some(TEXT), quoted(text, first)),
        '$' => (Some(PARAMETER), 1 + text[1..].find(|c| !in_word(c)).unwrap_or(text.len() - 1)),
        '-' if text.starts_with("--") => (Some(COMMENT), text.find('\n').unwrap_or(text.len())),
        c if c.is_ascii_digit() => (Some(NUMBER), while_in(&|c| c.is_alphanumeric() || c == '.')),
        c if c.is_alphabetic() => {
            let len = while_in(&in_word);
            let is_keyword = words_of_the_language().any(|word| word.eq_ignore_ascii_case(&text[..len]));
            (is_keyword.then_some(KEYWORD), len)
        }
        c => (None, c.len_utf8()),
    }
}

/// The length of a quoted text, to the end when it is never closed.
fn quoted(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sort_of_word_has_its_colour() {
        let line = coloured("recall 'x' limit 3 -- why").into_owned();
        assert_eq!(
            line,
            "\u{1b}[1mrecall\u{1b}[0m \u{1b}[32m'x'\u{1b}[0m \u{1b}[1mlimit\u{1b}[0m \u{1b}[36m3\u{1b}[0m \u{1b}[2m-- why\u{1b}[0m"
        );
        assert!(coloured("where tool = $t").contains("\u{1b}[35m$t\u{1b}[0m"));
    }

    #[test]
    fn nothing_but_colours_is_added() {
        for line in ["recall 'it''s' where x.y = \"a\\\"b\"", "é 'offen", "$ -- ", "1.5e3d -7", "", "\u{0}$é"] {
            let mut plain = coloured(line).into_owned();
            for code in [KEYWORD, TEXT, NUMBER, PARAMETER, COMMENT, PLAIN] {
                plain = plain.replace(code, "");
            }
            assert_eq!(plain, line);
        }
    }
}
