//! Texts that fit: without control characters, wrapped to a width, or cut.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The number of columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The text without what a terminal would obey: line ends are kept, a tab becomes a blank; other control characters,
/// and those that turn the direction of writing, are shown as their code. Every text that is printed for a person goes
/// through here, messages too.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' => shown.push(c),
            '\t' => shown.push(' '),
            '\r' if rest.peek() == Some(&'\n') => {}
            c if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
                shown.extend(c.escape_unicode());
            }
            c => shown.push(c),
        }
    }
    shown
}

/// The text on one line, cut to `columns` with `…` if it is longer.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    let line: String = printable(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if width(&line) <= columns {
        return line;
    }
    let mut kept = head(&line, columns.saturating_sub(1)).trim_end().to_owned();
    kept.push('…');
    kept
}

/// The text in lines of at most `columns`, broken between words; words longer than a line are broken anywhere.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    for paragraph in printable(text).trim_end().split('\n') {
        let mut line = String::new();
        let before = lines.len();
        for word in paragraph.split_whitespace() {
            let mut word = word;
            if !line.is_empty() && width(&line) + 1 + width(word) > columns {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            while width(word) > columns {
                let first = head(word, columns);
                // A character wider than the line stands on a line of its own.
                let len = if first.is_empty() { word.chars().next().map_or(0, char::len_utf8) } else { first.len() };
                let (first, rest) = word.split_at(len);
                lines.push(first.to_owned());
                word = rest;
            }
            line += word;
        }
        if !line.is_empty() || lines.len() == before {
            lines.push(line);
        }
    }
    lines
}

/// The longest beginning of the text that takes at most `columns`.
fn head(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > columns {
            return text.get(..at).unwrap_or_default();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_a_terminal_that_it_would_obey() {
        assert_eq!(printable("a\u{1b}[31mred\r\n\tb\u{7}\u{202e}c"), "a\\u{1b}[31mred\n b\\u{7}\\u{202e}c");
    }

    proptest::proptest! {
        #[test]
        fn whatever_the_text_nothing_is_left_to_obey(
            text in "(\\PC|\\pC|[\u{1b}\r\n\t\u{202a}-\u{202e}\u{2066}-\u{2069}]){0,40}",
        ) {
            let shown = printable(&text);
            let obeyed = |c: char| {
                (c.is_control() && c != '\n') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            };
            proptest::prop_assert!(!shown.contains(obeyed), "{shown:?}");
            proptest::prop_assert_eq!(printable(&shown), shown.clone());
            for line in wrap(&text, 7).iter().chain([&cut(&text, 7)]) {
                proptest::prop_assert!(!line.contains(obeyed) && !line.contains('\n'), "{line:?}");
            }
        }
    }

    #[test]
    fn a_lone_carriage_return_overwrites_nothing() {
        assert_eq!(printable("paid\rowed"), "paid\\u{d}owed");
    }

    #[test]
    fn long_texts_are_cut_by_columns_and_not_by_bytes() {
        assert_eq!(cut("short\n  enough", 20), "short enough");
        assert_eq!(cut("日本語のテキスト", 7), "日本語…");
        assert_eq!(cut("one two three", 8), "one two…");
    }

    #[test]
    fn texts_are_wrapped_between_words() {
        assert_eq!(wrap("The night train to Lisbon", 10), ["The night", "train to", "Lisbon"]);
        assert_eq!(wrap("a\n\nb", 10), ["a", "", "b"]);
        assert_eq!(wrap("x abcdefghij", 4), ["x", "abcd", "efgh", "ij"]);
        assert_eq!(wrap("日本", 1), ["日", "本"]);
        assert_eq!(wrap("", 5), [""]);
    }
}
