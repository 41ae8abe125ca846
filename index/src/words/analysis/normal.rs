//! Text in one spelling: NFKC, without invisible characters, with one form of quotes, dashes and digits.
//!
//! 1. Invisible characters are removed: format characters (zero-width space and joiners, bidi marks, soft hyphen),
//!    variation selectors, fillers, tatweel and the enclosing keycap. A zero-width joiner stays after an emoji.
//! 2. NFKC.
//! 3. Apostrophes become `'`, dashes that join words `-`, and decimal digits of all scripts ASCII.
//!
//! Step 1 precedes NFKC because an invisible character keeps a letter and its mark from composing. Neither step
//! distinguishes canonically equivalent texts, so a text and its NFD have the same normal form.
//!
//! Cost: one pass over a chunk that is not ASCII; an allocation only if it changes.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

use crate::words::analysis::emoji::{ZERO_WIDTH_JOINER, is_emoji, is_emoji_modifier};

/// The code point of the zero of each script's decimal digits.
const ZEROS: [u32; 28] = [
    0x0660, 0x06f0, 0x07c0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0b66, 0x0be6, 0x0c66, 0x0ce6, 0x0d66, 0x0de6, 0x0e50,
    0x0ed0, 0x0f20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50,
];

/// The normal form of a text.
pub(crate) fn normalize(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let is_normal = is_nfkc_quick(text.chars()) == IsNormalized::Yes
        && text.chars().all(|sign| sign != ZERO_WIDTH_JOINER && map(sign) == Some(sign));
    if is_normal { Cow::Borrowed(text) } else { Cow::Owned(normal_form(text)) }
}

fn normal_form(text: &str) -> String {
    let mut after_emoji = false;
    let visible = text.chars().filter(|sign| {
        let kept = match *sign {
            ZERO_WIDTH_JOINER => after_emoji,
            sign => !is_invisible(sign),
        };
        // An invisible variation selector may stand between an emoji and its joiner.
        after_emoji = is_emoji(*sign) || is_emoji_modifier(*sign) || (after_emoji && !kept);
        kept
    });
    let mut normal = String::with_capacity(text.len());
    let mut signs = visible.nfkc().peekable();
    while let Some(sign) = signs.next() {
        // The acute accent typed as an apostrophe: NFKC makes a space with a combining acute of it.
        if sign == ' ' && signs.next_if_eq(&'\u{301}').is_some() {
            normal.push('\'');
        } else {
            normal.extend(map(sign));
        }
    }
    normal
}

/// The form of a character of a text in NFKC; `None` if it is removed.
fn map(sign: char) -> Option<char> {
    match sign {
        '\0'..='\u{ac}' => Some(sign),
        '\u{2018}' | '\u{2019}' | '\u{201b}' | '\u{2032}' | '\u{02b9}'..='\u{02bd}' | '\u{55a}' | '\u{5f3}' => {
            Some('\'')
        }
        '\u{5f4}' => Some('"'),
        '\u{2010}'..='\u{2013}' | '\u{2212}' | '\u{5be}' | '\u{30a0}' => Some('-'),
        '\u{66b}' => Some('.'),
        '♯' => Some('#'),
        '\u{66c}' => Some(','),
        // Kept after an emoji only, which `normal_form` decides.
        ZERO_WIDTH_JOINER => Some(sign),
        sign if is_invisible(sign) => None,
        sign => Some(ascii_digit(sign).unwrap_or(sign)),
    }
}

fn is_invisible(sign: char) -> bool {
    is_format_character(sign) || is_filler(sign)
}

/// Characters that direct the layout: joiners, bidi marks, variation selectors, tags.
fn is_format_character(sign: char) -> bool {
    matches!(sign,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Characters that fill a place: tatweel, Hangul fillers, inherent Khmer vowels, the keycap around a digit.
fn is_filler(sign: char) -> bool {
    matches!(sign, '\u{640}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{20e3}' | '\u{3164}' | '\u{ffa0}')
}

/// The ASCII form of a decimal digit of another script.
fn ascii_digit(sign: char) -> Option<char> {
    let code = u32::from(sign);
    if code < ZEROS[0] || code > 0x1c59 {
        return None;
    }
    let zero = ZEROS[..ZEROS.partition_point(|zero| *zero <= code)].last()?;
    char::from_digit(code - zero, 36).filter(char::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_spelling_of_each() {
        let table = [
            ("plain", "plain"),
            ("pass\u{200b}word", "password"),
            ("Daten\u{ad}bank", "Datenbank"),
            ("\u{feff}\u{202a}report\u{202c}", "report"),
            ("e\u{200d}\u{301}", "é"),
            ("کتاب\u{200c}ها", "کتابها"),
            ("كـــرة", "كرة"),
            ("O\u{2019}Brien D\u{b4}Angelo", "O'Brien D'Angelo"),
            ("19\u{2011}20\u{2013}21", "19-20-21"),
            ("٤٥٠ ४५० ๔๕๐ ４５０", "450 450 450 450"),
            ("١٬٢٩٩٫٥", "1,299.5"),
            ("❤\u{fe0f} 1\u{fe0f}\u{20e3}", "❤ 1"),
            ("👩🏽\u{200d}💻 a\u{200d}b", "👩🏽\u{200d}💻 ab"),
            ("key\u{200d}board", "keyboard"),
            ("🏳\u{fe0f}\u{200d}🌈", "🏳\u{200d}🌈"),
            ("ﬁ ① ｶﾞ C♯", "fi 1 ガ C#"),
        ];
        for (text, normal) in table {
            assert_eq!(normalize(text), normal, "{text:?}");
        }
        assert!(matches!(normalize("Málaga"), Cow::Borrowed(_)));
    }

    #[test]
    fn zeros_ascend() {
        assert!(ZEROS.windows(2).all(|pair| pair[0] + 10 <= pair[1]));
    }

    proptest! {
        #[test]
        fn equivalent_texts_have_one_normal_form(
            text in "(\\PC|[a\u{301}\u{323}\u{34f}\u{200d}\u{fe0f}👩é가ά\u{1ffd}]){0,12}",
        ) {
            let (composed, decomposed): (String, String) = (text.nfc().collect(), text.nfd().collect());
            prop_assert_eq!(normalize(&composed), normalize(&text));
            prop_assert_eq!(normalize(&decomposed), normalize(&text));
        }
    }
}
