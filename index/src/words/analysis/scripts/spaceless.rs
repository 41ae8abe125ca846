//! Runs of scripts without spaces: Han, kana, Thai, Lao, Khmer, Myanmar and their kin.
//!
//! UAX #29 cuts these scripts into single characters with their marks, and katakana into runs. A run gives these terms,
//! with which a part finds its compound in any text:
//!
//! | characters | terms |
//! |---|---|
//! | Han | each as a word, adjacent pairs |
//! | hiragana | adjacent pairs, also with Han beside them; a single kana says little |
//! | katakana, two and more | the run as a word, without a long vowel at its end; its pairs as parts |
//! | other scripts | adjacent pairs as words, each character as a part |
//!
//! A single character alone in a run is a word.
//!
//! Pairs find more than words of a dictionary do. Questions of two words in the other order, over 60 sentences of a few
//! words each, right first with pairs and with ICU4X's segmenter (version 2, models and dictionaries): Thai 98 and 65
//! of 98, Khmer 91 and 35 of 91, Myanmar 91 and 80 of 91, Lao 91 and 61 of 91, Japanese 99 and 95 of 99, Chinese 99
//! and 97 of 99. A segmenter cuts a word in one way beside one word and in another beside another.

use crate::words::analysis::Role;

/// A character with its marks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    pub(crate) start: usize,
    pub(crate) end: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Han,
    Hiragana,
    Katakana,
    Other,
}

/// Appends the units of a segment of UAX #29 that starts at `start` of its text; false if its script has spaces.
pub(crate) fn push_units(segment: &str, start: usize, units: &mut Vec<Unit>) -> bool {
    let mut signs = segment.char_indices();
    let Some(kind) = signs.next().and_then(|(_, sign)| Kind::of_char(sign)) else { return false };
    let end = start + segment.len();
    if kind == Kind::Other || kind == Kind::Han {
        units.push(Unit { start, end, kind });
        return true;
    }
    units.push(Unit { start, end, kind });
    for (at, sign) in signs {
        if let Some(kind) = Kind::of_char(sign) {
            if let Some(last) = units.last_mut() {
                last.end = start + at;
            }
            units.push(Unit { start: start + at, end, kind });
        }
    }
    true
}

impl Kind {
    fn of_char(sign: char) -> Option<Self> {
        match sign {
            '\0'..='\u{dff}' | '\u{ac00}'..='\u{d7ff}' => None,
            '\u{3041}'..='\u{309f}' => Some(Self::Hiragana),
            '\u{30a1}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' => Some(Self::Katakana),
            '\u{3005}'..='\u{3007}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}' => Some(Self::Han),
            // South-East Asian scripts without spaces: Thai, Lao, Myanmar, Khmer, Tai Le to Tai Tham, Tai Viet.
            '\u{e00}'..='\u{eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{1950}'..='\u{1aaf}'
            | '\u{a9e0}'..='\u{a9ff}'
            | '\u{aa60}'..='\u{aadf}' => Some(Self::Other),
            _ => None,
        }
    }
}

/// Passes the terms of a run of adjacent units to `each`.
pub(crate) fn terms(text: &str, run: &[Unit], each: &mut dyn FnMut(&str, Role)) {
    let mut rest = run;
    while let Some(first) = rest.first() {
        let is_other = first.kind == Kind::Other;
        let len = rest.iter().take_while(|unit| (unit.kind == Kind::Other) == is_other).count();
        let (part, after) = rest.split_at(len);
        rest = after;
        if is_other { syllables(text, part, each) } else { characters(text, part, each) }
    }
}

/// Thai and its kin.
fn syllables(text: &str, run: &[Unit], each: &mut dyn FnMut(&str, Role)) {
    if let [unit] = run {
        each(&text[unit.start..unit.end], Role::Word);
        return;
    }
    let of = u8::try_from(run.len()).unwrap_or(u8::MAX);
    for (place, unit) in run.iter().enumerate() {
        if let Some(before) = place.checked_sub(1) {
            each(&text[run[before].start..unit.end], Role::Word);
        }
        each(&text[unit.start..unit.end], Role::Part { of });
    }
}

/// Han and kana.
fn characters(text: &str, run: &[Unit], each: &mut dyn FnMut(&str, Role)) {
    let mut at = 0;
    while at < run.len() {
        let len = run[at..].iter().take_while(|unit| unit.kind == Kind::Katakana).count();
        if len > 1 {
            katakana(text, &run[at..at + len], each);
        } else if run[at].kind != Kind::Hiragana || run.len() == 1 {
            each(&text[run[at].start..run[at].end], Role::Word);
        }
        let next = at + len.max(1);
        if next < run.len() {
            each(&text[run[next - 1].start..run[next].end], Role::Pair);
        }
        at = next;
    }
}

/// A run of katakana: mostly one loanword, or several.
fn katakana(text: &str, run: &[Unit], each: &mut dyn FnMut(&str, Role)) {
    let (first, last) = (run[0], run[run.len() - 1]);
    let word = &text[first.start..last.end];
    let short = if run.len() > 3 { word.strip_suffix('ー').unwrap_or(word) } else { word };
    each(short, Role::Word);
    let of = u8::try_from(run.len() - 1).unwrap_or(u8::MAX);
    if of > 1 {
        run.windows(2).for_each(|pair| each(&text[pair[0].start..pair[1].end], Role::Part { of }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_segmentation::UnicodeSegmentation;

    fn shown(text: &str) -> String {
        let mut units = Vec::new();
        for (start, word) in text.split_word_bound_indices() {
            assert!(push_units(word, start, &mut units));
        }
        let mut shown = Vec::new();
        terms(text, &units, &mut |key, role| {
            shown.push(match role {
                Role::Word => key.to_owned(),
                Role::Pair => format!("&{key}"),
                _ => format!("+{key}"),
            });
        });
        shown.join(" ")
    }

    #[test]
    fn runs_in_terms() {
        let table = [
            ("東", "東"),
            ("東京", "東 &東京 京"),
            ("東京の", "東 &東京 京 &京の"),
            ("すし", "&すし"),
            ("は", "は"),
            ("データ", "データ +デー +ータ"),
            ("サーバー", "サーバ +サー +ーバ +バー"),
            ("東バス", "東 &東バ バス"),
            ("ที่", "ที่"),
            ("กิน", "+กิ กิน +น"),
            ("อาหาร", "+อ อา +า าห +ห หา +า าร +ร"),
        ];
        for (text, wanted) in table {
            assert_eq!(shown(text), wanted);
        }
    }
}
