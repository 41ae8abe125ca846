//! Does a text say what a sentence made of it says? A check without a model: each number and code of the sentence
//! stands in the text, each name too or in what was asked, and neither denies what the other affirms.
//!
//! It finds what was made up, and cannot tell whether what is left is well put.

use super::{denials, numbers};
use crate::memory::structure::sentences;
use std::collections::BTreeSet;

/// The words of a sentence that the texts it cites lack; `None` if nothing was found.
///
/// ```
/// use holotype::write_back::unsupported;
///
/// let texts = ["UA123 price=$450".to_owned()];
/// assert_eq!(unsupported("UA123 costs $450.", &texts, "price of UA123"), None);
/// assert_eq!(unsupported("UA123 costs $480.", &texts, "price of UA123").as_deref(), Some("no cited span has 480"));
/// ```
pub fn unsupported(sentence: &str, texts: &[String], asked: &str) -> Option<String> {
    let plain = |number: &str| number.replace(',', "").trim_end_matches(".00").to_owned();
    let held: BTreeSet<String> = texts.iter().flat_map(|text| numbers(text).map(plain)).collect();
    let said: BTreeSet<String> = texts.iter().flat_map(|text| words(text)).collect();
    let known: BTreeSet<String> = words(asked).collect();
    for (nth, word) in sentence.split_whitespace().enumerate() {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        let word = word.strip_suffix("'s").or_else(|| word.strip_suffix("\u{2019}s")).unwrap_or(word);
        let lower = word.to_lowercase();
        let parts: Vec<String> = words(word).collect();
        let is_said = parts.iter().all(|part| said.contains(part) || known.contains(part));
        let has_digit = word.contains(|c: char| c.is_ascii_digit());
        let has_letter = word.contains(char::is_alphabetic);
        let missing = match (has_digit, has_letter) {
            // A number of the question is a guess until a span says it.
            (true, false) => numbers(word).map(plain).any(|number| !held.contains(&number)),
            (true, true) => !is_said && !said.iter().any(|known| known.contains(&lower)),
            // A word that begins the sentence is capitalised for that.
            (false, true) => nth > 0 && is_name(word) && !is_said,
            (false, false) => false,
        };
        if missing {
            return Some(format!("no cited span has {word}"));
        }
    }
    let denies = denials(sentence) > 0;
    let is_denied = texts.iter().any(|text| denials(text) > 0);
    let is_short = texts.iter().map(|text| sentences(text).len()).sum::<usize>() <= 1;
    match (denies, is_denied) {
        (true, false) => Some("no cited span denies anything".to_owned()),
        (false, true) if is_short => Some("the cited span denies it".to_owned()),
        _ => None,
    }
}

/// The words of a text, in lower case.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// True for a capitalised word of two letters or more.
fn is_name(word: &str) -> bool {
    word.starts_with(char::is_uppercase) && word.chars().count() > 1
}

#[cfg(test)]
mod tests {
    use super::unsupported;

    #[test]
    fn numbers_names_and_denials_stand_in_the_span() {
        let check = |sentence: &str, text: &str| unsupported(sentence, &[text.to_owned()], "When did Ann move?");
        for (sentence, text) in [
            ("Ann moved to Oslo in 2024.", "I moved to Oslo in May 2024."),
            ("It costs $1,234.", "price=1234.00 USD"),
            ("She did not move.", "Ann didn't move. She likes it."),
            ("The gate is D24.", "gate=D24"),
            ("She moved.", "She moved, and it was not easy. It rained."),
        ] {
            assert_eq!(check(sentence, text), None, "{sentence}");
        }
        for (sentence, text) in [
            ("Ann moved to Bergen.", "I moved to Oslo in May 2024."),
            ("It costs $480.", "price=450 USD"),
            ("She did not move.", "Ann moved."),
            ("She moved.", "Ann did not move."),
            ("Pay to DE00EVIL.", "Invoice 77 of Acme is paid."),
        ] {
            assert!(check(sentence, text).is_some(), "{sentence}");
        }
    }
}
