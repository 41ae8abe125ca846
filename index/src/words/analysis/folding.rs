//! Case and accents: the form of a word in which writers do not differ.
//!
//! | script | folded |
//! |---|---|
//! | all | case (`İ` and `ı` are `i`, `ς` is `σ`), stress marks (U+0300 to U+036F that do not compose) |
//! | Latin | all accents; `ß` ss, `æ` ae, `œ` oe, `þ` th, `ø` o, `ł` l, `đ` d |
//! | Greek | all accents |
//! | Cyrillic | `ё` е; `й` and `ї` are letters, not accents, and stay |
//! | Hebrew, Arabic | points; forms of alef, yeh, kaf, hamza carriers and teh marbuta |
//! | of India | nukta; candrabindu is anusvara; in Devanagari a nasal before a consonant is anusvara |
//!
//! Cost: one pass over a word that is not ASCII.

use unicode_normalization::char::{decompose_canonical, is_combining_mark};

/// Lower-cases a text.
pub(crate) fn lower_into(text: &str, lower: &mut String) {
    lower.clear();
    if text.is_ascii() {
        lower.push_str(text);
        lower.make_ascii_lowercase();
        return;
    }
    for sign in text.chars() {
        match sign {
            // Unicode lower-cases it to an i with a combining dot.
            'İ' => lower.push('i'),
            // One sigma at every position of a word.
            'ς' => lower.push('σ'),
            sign => lower.extend(sign.to_lowercase()),
        }
    }
}

/// Writes the folded form of a lower-cased word.
pub(crate) fn fold_into(word: &str, folded: &mut String) {
    folded.clear();
    let mut signs = word.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '\0'..='\x7f' => folded.push(sign),
            'ß' => folded.push_str("ss"),
            'æ' | 'ǽ' => folded.push_str("ae"),
            'œ' => folded.push_str("oe"),
            'þ' => folded.push_str("th"),
            'ø' | 'ǿ' => folded.push('o'),
            'ł' => folded.push('l'),
            'đ' | 'ð' => folded.push('d'),
            'ħ' => folded.push('h'),
            'ı' => folded.push('i'),
            '\u{80}'..='\u{24f}' | '\u{370}'..='\u{3ff}' | '\u{1e00}'..='\u{1fff}' => {
                decompose_canonical(sign, |base| folded.extend((!is_combining_mark(base)).then_some(base)));
            }
            '\u{300}'..='\u{36f}' => {}
            'ё' | 'ѐ' => folded.push('е'),
            'ѝ' => folded.push('и'),
            // Hebrew points.
            '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}' | '\u{5c2}' | '\u{5c4}' | '\u{5c5}' | '\u{5c7}' => {}
            // Arabic points, and letters that writers of Arabic, Persian and Urdu exchange.
            '\u{610}'..='\u{61a}'
            | '\u{64b}'..='\u{65f}'
            | '\u{670}'
            | '\u{6d6}'..='\u{6dc}'
            | '\u{6df}'..='\u{6e4}' => {}
            'آ' | 'أ' | 'إ' | 'ٱ' => folded.push('ا'),
            'ؤ' => folded.push('و'),
            'ئ' | 'ى' | 'ی' | 'ې' | 'ے' => folded.push('ي'),
            'ک' => folded.push('ك'),
            'ة' | 'ۀ' | 'ہ' | 'ۃ' | 'ە' => folded.push('ه'),
            // Devanagari letters with a nukta that compose.
            'ऩ' => folded.push('न'),
            'ऱ' => folded.push('र'),
            'ऴ' => folded.push('ळ'),
            'ङ' | 'ञ' | 'ण' | 'न' | 'म' if takes_anusvara(&mut signs) => folded.push('\u{902}'),
            '\u{900}'..='\u{d7f}' => match (u32::from(sign) - 0x900) % 0x80 {
                0x3c => {}
                0x01 => folded.extend(char::from_u32(u32::from(sign) + 1)),
                _ => folded.push(sign),
            },
            _ => folded.push(sign),
        }
    }
}

/// Consumes a virama that joins a nasal to another consonant.
fn takes_anusvara(after: &mut std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    let mut ahead = after.clone();
    let joins = ahead.next() == Some('\u{94d}') && ahead.next().is_some_and(is_stop_consonant);
    if joins {
        after.next();
    }
    joins
}

/// Devanagari consonants before which a nasal is written as anusvara.
fn is_stop_consonant(sign: char) -> bool {
    matches!(sign, 'क'..='घ' | 'च'..='झ' | 'ट'..='ढ' | 'त'..='ध' | 'प'..='भ')
}

/// Writes the spelling of a word for keyboards without its letters: `mueller` for `müller`, `aarhus` for `århus`.
/// False if the word has no such letter.
pub(crate) fn respell_into(word: &str, spelled: &mut String) -> bool {
    spelled.clear();
    let mut respelled = false;
    for sign in word.chars() {
        let letters = match sign {
            'ä' => "ae",
            'ö' | 'ø' => "oe",
            'ü' => "ue",
            'å' => "aa",
            sign => {
                spelled.push(sign);
                continue;
            }
        };
        spelled.push_str(letters);
        respelled = true;
    }
    respelled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        let (mut lower, mut folded) = (String::new(), String::new());
        lower_into(text, &mut lower);
        fold_into(&lower, &mut folded);
        folded
    }

    #[test]
    fn words_that_writers_spell_in_two_ways() {
        let pairs = [
            ("Straße", "STRASSE"),
            ("İstanbul", "istanbul"),
            ("DİYARBAKIR", "diyarbakır"),
            ("ΟΔΥΣΣΕΑΣ", "Οδυσσέας"),
            ("Besançon", "besancon"),
            ("Phở", "pho"),
            ("Łódź", "lodz"),
            ("Ёлка", "елка"),
            ("за\u{301}мок", "замок"),
            ("مُحَمَّدٌ", "محمد"),
            ("إيران", "ايران"),
            ("کتاب", "كتاب"),
            ("שָׁלוֹם", "שלום"),
            ("हिन्दी", "हिंदी"),
            ("कॉफ़ी", "कॉफी"),
            ("मूँगफली", "मूंगफली"),
        ];
        for (one, other) in pairs {
            assert_eq!(folded(one), folded(other));
        }
        assert_ne!(folded("мой"), folded("мои"), "not an accent");
        let mut spelled = String::new();
        assert!(respell_into("schönberg", &mut spelled));
        assert_eq!(spelled, "schoenberg");
        assert!(!respell_into("réunion", &mut spelled));
    }
}
