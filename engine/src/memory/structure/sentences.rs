//! Sentences of a text, as byte ranges.
//!
//! A sentence ends with `.`, `!` or `?` (and closing quotes or brackets) before white space and a word that can begin
//! one, or with a line break. Not with the dot of an abbreviation or an initial: `Dr. No`, `J. M. Barrie`.

use std::ops::Range;

/// Abbreviations that a name often follows.
const ABBREVIATIONS: [&str; 25] = [
    "dr", "mr", "mrs", "ms", "st", "jr", "sr", "prof", "gen", "col", "lt", "capt", "vs", "etc", "no", "vol", "mt",
    "ft", "inc", "ltd", "co", "approx", "dept", "est", "fig",
];

/// The sentences of a text, in order, without the white space between them.
pub fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    let marks: Vec<(usize, char)> = text.char_indices().collect();
    let mut nth = 0;
    while let Some(&(at, c)) = marks.get(nth) {
        nth += 1;
        let end = at + c.len_utf8();
        if c == '\n' {
            push(text, start..at, &mut found);
            start = end;
            continue;
        }
        if !matches!(c, '.' | '!' | '?') {
            continue;
        }
        let closing =
            marks[nth..].iter().take_while(|(_, c)| matches!(c, '"' | '\'' | ')' | ']' | '”' | '’' | '.' | '!' | '?'));
        let after = nth + closing.count();
        let end = marks.get(after).map_or(text.len(), |(at, _)| *at);
        let next = marks.get(after..).unwrap_or_default();
        let blanks = next.iter().take_while(|(_, c)| c.is_whitespace()).count();
        let begins = next.get(blanks).is_none_or(|(_, c)| !c.is_lowercase());
        let is_end = next.is_empty() || (blanks > 0 && begins && !(c == '.' && is_abbreviation(&text[start..at])));
        if is_end {
            push(text, start..end, &mut found);
            start = end;
            nth = after;
        }
    }
    push(text, start..text.len(), &mut found);
    found
}

/// True if the dot behind a text ends no sentence: an abbreviation (`Dr.`), an initial (`J.`), letters with dots
/// (`a.m.`, `U.S.`), or the number of a line of a list (`1.`) do.
pub(crate) fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit(|c: char| c.is_whitespace() || matches!(c, '(' | '"')).next().unwrap_or_default();
    let is_initial = word.chars().count() == 1 && word.starts_with(char::is_uppercase);
    let is_dotted = word.contains('.') && word.split('.').all(|part| part.len() == 1 && part.is_ascii());
    let is_dotted = is_dotted && word.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_listed = !word.is_empty() && before.trim() == word && word.bytes().all(|byte| byte.is_ascii_digit());
    is_initial || is_dotted || is_listed || ABBREVIATIONS.contains(&word.to_lowercase().as_str())
}

fn push(text: &str, range: Range<usize>, found: &mut Vec<Range<usize>>) {
    let Some(piece) = text.get(range.clone()) else { return };
    let trimmed = piece.trim();
    if trimmed.chars().any(char::is_alphanumeric) {
        let start = range.start + (piece.len() - piece.trim_start().len());
        found.push(start..start + trimmed.len());
    }
}

#[cfg(test)]
mod tests {
    use super::sentences;

    #[test]
    fn sentences_end_where_they_end() {
        let of = |text: &'static str| sentences(text).into_iter().map(|range| &text[range]).collect::<Vec<_>>();
        assert_eq!(
            of("He left. She (Dr. No) stayed! Why? \"Yes.\" 3.5 m of it"),
            ["He left.", "She (Dr. No) stayed!", "Why?", "\"Yes.\"", "3.5 m of it"]
        );
        assert_eq!(of("By J. M. Barrie. one line\nanother …"), ["By J. M. Barrie. one line", "another …"]);
        assert_eq!(of(" \n. ! "), [""; 0]);
        assert_eq!(of("Ünïcode ist gut. Ökonomie auch."), ["Ünïcode ist gut.", "Ökonomie auch."]);
    }
}
