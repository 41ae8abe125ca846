//! Text from memory as quoted data: it cannot end its quotes, begin a line, or turn the direction of writing.

/// The text in double quotes, at most `most` characters of it. Quotes, backslashes, line ends, control characters and
/// those of no width or of direction are escaped as in JSON.
pub(crate) fn quoted(text: &str, most: usize) -> String {
    let mut out = String::with_capacity(text.len().min(most.saturating_mul(4)).saturating_add(2));
    out.push('"');
    let mut rest = text.chars();
    for c in rest.by_ref().take(most) {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_unseen(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    if rest.next().is_some() {
        out.push('…');
    }
    out.push('"');
    out
}

/// True for characters that a reader does not see and that change how he reads others.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

/// At most `most` characters of a text.
pub(crate) fn head(text: &str, most: usize) -> &str {
    match text.char_indices().nth(most) {
        Some((at, _)) => text.get(..at).unwrap_or_default(),
        None => text,
    }
}

/// A name such as a key: on one line, without characters that are not seen.
pub(crate) fn name(text: &str) -> String {
    let quoted = quoted(text, 200);
    match quoted.get(1..quoted.len() - 1) {
        Some(inner) if inner == text && !text.is_empty() && !text.contains([']', '[']) => text.to_owned(),
        _ => quoted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_leave_its_quotes() {
        assert_eq!(quoted("a\"]\n\u{202e}b\\", 99), "\"a\\\"]\\n\\u202eb\\\\\"");
        assert_eq!(quoted("日本語", 2), "\"日本…\"");
        assert_eq!(quoted("\u{e0041}\u{200b}", 9), "\"\\ue0041\\u200b\"");
        assert_eq!((name("t9"), name("a]\n"), name("")), ("t9".into(), "\"a]\\n\"".into(), "\"\"".into()));
        assert_eq!((head("äöü", 2), head("ä", 2)), ("äö", "ä"));
    }
}
