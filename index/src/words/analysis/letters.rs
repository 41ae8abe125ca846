//! Character rules of the analysis.
//!
//! Each is a small pure function over a character or a word; the [module above](super) says where they apply.

use unicode_normalization::char::is_combining_mark;

/// `word` with one kind of apostrophe and without invisible signs.
pub(crate) fn plain_into(word: &str, plain: &mut String) {
    plain.clear();
    plain.extend(word.chars().filter_map(|sign| match sign {
        '\u{2018}' | '\u{2019}' | '\u{02bc}' | '\u{201b}' => Some('\''),
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' => None,
        sign => Some(sign),
    }));
}

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

pub(crate) fn lower_into(text: &str, lower: &mut String) {
    lower.clear();
    if text.is_ascii() {
        lower.push_str(text);
        lower.make_ascii_lowercase();
        return;
    }
    for sign in text.chars() {
        match sign {
            // The dot above would stay behind as a mark of its own.
            'İ' => lower.push('i'),
            // One sigma, wherever in the word it stands.
            'ς' => lower.push('σ'),
            sign => lower.extend(sign.to_lowercase()),
        }
    }
}

/// The Latin word without its accents; false when it has other letters, or no accents.
pub(crate) fn fold_into(word: &str, folded: &mut String) -> bool {
    folded.clear();
    for sign in word.chars() {
        match sign {
            '\0'..='\x7f' => folded.push(sign),
            'ß' => folded.push_str("ss"),
            'æ' => folded.push_str("ae"),
            'œ' => folded.push_str("oe"),
            'þ' => folded.push_str("th"),
            'ø' => folded.push('o'),
            'ł' => folded.push('l'),
            'đ' | 'ð' => folded.push('d'),
            'ı' => folded.push('i'),
            '\u{80}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => {
                unicode_normalization::char::decompose_canonical(sign, |base| {
                    if !is_combining_mark(base) {
                        folded.push(base);
                    }
                });
            }
            sign if is_combining_mark(sign) => {}
            _ => return false,
        }
    }
    !folded.is_empty() && folded != word
}

/// `1,000` and `12,345,678.90`, but not `1,5`.
pub(crate) fn has_grouped_digits(word: &str) -> bool {
    let (whole, fraction) = word.split_once('.').unwrap_or((word, "0"));
    let mut groups = whole.split(',');
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let first = groups.next().is_some_and(|group| group.len() <= 3 && all_digits(group));
    let mut more = 0;
    let rest = groups.all(|group| {
        more += 1;
        group.len() == 3 && all_digits(group)
    });
    first && rest && more > 0 && all_digits(fraction)
}

pub(crate) fn is_joiner(gap: &str) -> bool {
    matches!(gap, "-" | "\u{2010}" | "/" | "\\" | ":" | "." | "@" | "_" | "#" | "&" | "+" | "=" | "~" | "://")
}

pub(crate) fn is_hyphen(gap: &str) -> bool {
    matches!(gap, "-" | "\u{2010}")
}

fn is_currency(sign: char) -> bool {
    matches!(sign, '$' | '¢' | '£' | '¥' | '\u{20a0}'..='\u{20c0}')
}

pub(crate) fn is_prefix(sign: char) -> bool {
    matches!(sign, '#' | '@') || is_currency(sign)
}

pub(crate) fn is_suffix(sign: char) -> bool {
    sign == '%' || is_currency(sign)
}

/// Marks of some scripts count as alphabetic; alone, or on a sign such as `=`, they are no word.
pub(crate) fn has_letter_or_digit(word: &str) -> bool {
    word.is_ascii() || word.chars().any(|sign| sign.is_alphanumeric() && !is_combining_mark(sign))
}

pub(crate) fn is_one_char(text: &str) -> bool {
    text.chars().nth(1).is_none()
}

/// Returns true for a single character of a script without spaces, which UAX #29 leaves alone.
pub(crate) fn is_single_character(word: &str) -> bool {
    !word.is_ascii()
        && is_one_char(word)
        && word
            .chars()
            .all(|sign| sign >= '\u{0e00}' && sign.is_alphabetic() && !sign.is_lowercase() && !sign.is_uppercase())
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
