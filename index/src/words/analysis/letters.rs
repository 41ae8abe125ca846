//! Character rules of the analysis.
//!
//! Each is a small pure function over a character or a word; the [module above](super) says where they apply.

use unicode_normalization::char::is_combining_mark;

/// The word without `'s` and its like.
pub(crate) fn without_contraction(word: &str) -> &str {
    match word.rsplit_once('\'') {
        Some((stem, end)) if !stem.is_empty() => {
            let falls = ["s", "d", "m", "ll", "re", "ve"].iter().any(|known| end.eq_ignore_ascii_case(known));
            if falls { stem } else { word }
        }
        _ => word,
    }
}

/// Returns true for `v1.2` and `v1.2.3` in lower case.
pub(crate) fn is_version(word: &str) -> bool {
    word.strip_prefix('v').is_some_and(|version| {
        version.contains('.')
            && version.starts_with(|sign: char| sign.is_ascii_digit())
            && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    })
}

/// The number without the zero of two digits: hours, days and months are written with and without it.
pub(crate) fn without_leading_zero(number: &str) -> &str {
    match number.as_bytes() {
        [b'0', b'0'..=b'9'] => &number[1..],
        _ => number,
    }
}

/// The length of the signs after a name that belong to it: `+`, `++`, and after a single letter `#`. Digits may follow
/// those of a single letter (`C++17`), other letters may not (`a+b`).
pub fn name_signs(rest: &str, single_letter: bool) -> usize {
    let len = match rest.as_bytes() {
        [b'+', b'+', ..] => 2,
        [b'+', ..] => 1,
        [b'#', ..] if single_letter => 1,
        _ => return 0,
    };
    let belongs = match rest[len..].chars().next() {
        Some('+' | '#') => false,
        Some('0'..='9') => single_letter && !rest[..len].eq("+"),
        sign => !sign.is_some_and(char::is_alphanumeric),
    };
    if belongs { len } else { 0 }
}

/// The sign before a word that belongs to it: a currency, `#`, `@`, or a dot that is not part of an ellipsis and
/// follows no word.
pub(crate) fn name_prefix(before: &str, word: &str) -> Option<char> {
    let mut signs = before.chars().rev();
    match signs.next()? {
        '.' => {
            let begins = !signs.next().is_some_and(|sign| sign == '.' || sign.is_alphanumeric());
            (begins && word.starts_with(|sign: char| sign.is_ascii_alphabetic())).then_some('.')
        }
        sign => (matches!(sign, '#' | '@') || is_currency(sign)).then_some(sign),
    }
}

pub(crate) fn is_joiner(gap: &str) -> bool {
    matches!(gap, "-" | "/" | "\\" | ":" | "." | "@" | "_" | "#" | "&" | "+" | "=" | "~" | "::" | "->" | "://")
}

pub(crate) fn is_currency(sign: char) -> bool {
    matches!(sign, '$' | '¢' | '£' | '¥' | '\u{20a0}'..='\u{20c0}')
}

pub(crate) fn is_suffix(sign: char) -> bool {
    sign == '%' || is_currency(sign)
}

/// Marks of some scripts count as alphabetic; alone, or on a sign such as `=`, they are no word.
pub(crate) fn has_letter_or_digit(word: &str) -> bool {
    word.chars().any(|sign| sign.is_alphanumeric() && !is_combining_mark(sign))
}

pub(crate) fn is_one_char(text: &str) -> bool {
    text.chars().nth(1).is_none()
}

/// The word of a chunk between white space, if it has only ASCII letters, lower-case except for the first, and only
/// punctuation follows.
pub(crate) fn plain_word(chunk: &str) -> Option<&str> {
    let small = chunk.bytes().skip(1).take_while(u8::is_ascii_lowercase).count();
    let (word, rest) = chunk.split_at_checked(1 + small)?;
    let ends = rest.bytes().all(ends_sentence);
    (ends && word.as_bytes().first().is_some_and(u8::is_ascii_alphabetic)).then_some(word)
}

/// The text after a word, if it is only punctuation followed by white space or the end.
pub(crate) fn after_word(mut text: &[u8]) -> Option<&[u8]> {
    while let [sign, after @ ..] = text {
        if sign.is_ascii_whitespace() {
            return Some(after);
        }
        if !ends_sentence(*sign) {
            return None;
        }
        text = after;
    }
    Some(text)
}

fn ends_sentence(sign: u8) -> bool {
    matches!(sign, b'.' | b',' | b';' | b':' | b'!' | b'?')
}
