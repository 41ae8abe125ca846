//! Rules of single scripts: stems of inflected and prefixed words, and runs of scripts without spaces.
//!
//! A word is stemmed by the script it ends in, after folding (`folding`): Arabic ([`arabic`]), Devanagari
//! ([`devanagari`]) and Hangul ([`korean`]) by short lists of affixes, Cyrillic and Greek by Snowball's stemmers of
//! Russian and Greek (`stems`). A *variant* is a second reading of a word whose prefix or particle may as well belong
//! to its root. A stem is exact where a list is reliable; a variant costs a term and is weighted lower in queries.
//!
//! Runs of characters need no dictionary ([`spaceless`]).

pub(crate) mod arabic;
pub(crate) mod devanagari;
pub(crate) mod hebrew;
pub(crate) mod korean;
pub(crate) mod spaceless;

/// A script with rules, by the last letter of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    Arabic,
    Cyrillic,
    Devanagari,
    Greek,
    Hangul,
    Hebrew,
    Other,
}

impl Script {
    /// The script of a folded word.
    pub(crate) fn of_word(word: &str) -> Self {
        match word.chars().next_back() {
            Some('\u{370}'..='\u{3ff}') => Self::Greek,
            Some('\u{400}'..='\u{4ff}') => Self::Cyrillic,
            Some('\u{5d0}'..='\u{5f2}') => Self::Hebrew,
            Some('\u{620}'..='\u{6ff}') => Self::Arabic,
            Some('\u{900}'..='\u{97f}') => Self::Devanagari,
            Some('\u{ac00}'..='\u{d7a3}') => Self::Hangul,
            _ => Self::Other,
        }
    }
}

/// Cuts the first of `endings` that `word` has and that leaves at least `least` characters; false if there is none.
fn cut_ending(word: &mut String, endings: &[&str], least: usize) -> bool {
    let cut = endings.iter().find_map(|ending| word.strip_suffix(ending).filter(|rest| has_chars(rest, least)));
    let Some(len) = cut.map(str::len) else { return false };
    word.truncate(len);
    true
}

/// Returns true if `text` has at least `least` characters.
fn has_chars(text: &str, least: usize) -> bool {
    least == 0 || text.chars().nth(least - 1).is_some()
}
