//! Phrases of injected text in other languages than English, from a data file.
//!
//! A sentence sets instructions aside if a verb that does so, a word for what was said before and a word for what an
//! agent obeys are near each other, in any order: languages differ in it. Both the phrases and the text are compared as
//! [`plain`](super::plain) writes them.

use super::plain::plain;
use std::collections::HashSet;
use std::sync::LazyLock;

/// The phrases, as the file has them.
const FILE: &str = include_str!("phrases.txt");

/// Words of a sentence within which the three words of a rule are.
const REACH: usize = 12;

/// The phrases of all languages.
static LANGUAGES: LazyLock<Vec<Language>> = LazyLock::new(|| parse(FILE));

/// The beginnings of the words that a phrase or a rule begins with. Most sentences have none of them.
static BEGINNINGS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let spoken = LANGUAGES.iter().filter(|language| !language.has_no_words);
    let entries = spoken.flat_map(|language| language.aside.iter().chain(&language.role).chain(&language.secret));
    entries.filter_map(|entry| entry.split([' ', '*']).next().map(beginning)).collect()
});

/// The first character of the scripts without blanks.
const FIRST_LETTER: char = '\u{3040}';

/// The first three characters of a word.
fn beginning(word: &str) -> &str {
    word.char_indices().nth(3).and_then(|(end, _)| word.get(..end)).unwrap_or(word)
}

/// The phrases of one language.
#[derive(Debug, Default)]
struct Language {
    /// True if an entry may be anywhere in a sentence.
    has_no_words: bool,
    not: Vec<String>,
    aside: Vec<String>,
    earlier: Vec<String>,
    rules: Vec<String>,
    role: Vec<String>,
    secret: Vec<String>,
}

/// The reason that a plain sentence gives with its words, if it instructs in one of the languages.
pub(super) fn reason(sentence: &str, words: &[&str]) -> Option<&'static str> {
    let has_letters = sentence.chars().any(|c| c >= FIRST_LETTER);
    if !has_letters && !words.iter().any(|word| BEGINNINGS.contains(beginning(word))) {
        return None;
    }
    let spoken = words.join(" ");
    LANGUAGES.iter().find_map(|language| language.reason(sentence, words, &spoken))
}

impl Language {
    fn reason(&self, sentence: &str, words: &[&str], spoken: &str) -> Option<&'static str> {
        let text = if self.has_no_words { sentence } else { spoken };
        if self.role.iter().any(|phrase| self.has_phrase(text, phrase)) {
            return Some("gives a new role");
        }
        if self.secret.iter().any(|phrase| self.has_phrase(text, phrase)) {
            return Some("asks for secrecy before the user");
        }
        let sets_aside = match self.has_no_words {
            true => {
                let has_one = |list: &[String]| list.iter().any(|entry| sentence.contains(entry.as_str()));
                self.sets_aside_within(sentence) && has_one(&self.earlier) && has_one(&self.rules)
            }
            false => self.has_all_near(words),
        };
        sets_aside.then_some("sets instructions aside")
    }

    /// True if the text has the phrase, from the beginning of a word to the end of one.
    fn has_phrase(&self, text: &str, phrase: &str) -> bool {
        self.has_no_words && text.contains(phrase)
            || text.match_indices(phrase).any(|(at, _)| {
                let (before, after) = (text.get(..at), text.get(at + phrase.len()..));
                before.is_none_or(|before| before.is_empty() || before.ends_with(' '))
                    && after.is_none_or(|after| after.is_empty() || after.starts_with(' '))
            })
    }

    /// True if a sentence without blanks has a verb that is not negated before it.
    fn sets_aside_within(&self, sentence: &str) -> bool {
        self.aside.iter().flat_map(|verb| sentence.match_indices(verb.as_str())).any(|(at, _)| {
            let before = sentence.get(..at).unwrap_or_default();
            !self.not.iter().any(|negation| before.ends_with(negation.as_str()))
        })
    }

    /// True if a word of each of the three lists is within a few words of a verb.
    fn has_all_near(&self, words: &[&str]) -> bool {
        let is_of = |list: &[String], word: &&str| list.iter().any(|entry| matches(entry, word));
        let is_negated = |at: usize| {
            let beside = words.get(at.saturating_sub(1)..words.len().min(at + 2)).unwrap_or_default();
            beside.iter().any(|word| is_of(&self.not, word))
        };
        let verbs = (0..words.len()).filter(|at| words.get(*at).is_some_and(|word| is_of(&self.aside, word)));
        verbs.filter(|at| !is_negated(*at)).any(|at| {
            let near = words.get(at.saturating_sub(REACH)..words.len().min(at + REACH)).unwrap_or_default();
            [&self.earlier, &self.rules].iter().all(|list| near.iter().any(|word| is_of(list, word)))
        })
    }
}

/// True if a word is the entry, or begins with what is before its `*`.
fn matches(entry: &str, word: &str) -> bool {
    match entry.strip_suffix('*') {
        Some(beginning) => word.starts_with(beginning),
        None => entry == word,
    }
}

/// The languages of a data file. Lines that it does not know are left out; a test holds that there are none.
fn parse(file: &str) -> Vec<Language> {
    let mut languages: Vec<Language> = Vec::new();
    for line in file.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.split_once(": ") {
            None => languages.push(Language { has_no_words: line.starts_with("letters "), ..Language::default() }),
            Some((name, entries)) => {
                let Some(list) = languages.last_mut().and_then(|language| language.list(name)) else { continue };
                let separated =
                    if matches!(name, "role" | "secret") { entries.split(" | ") } else { entries.split(" ") };
                list.extend(separated.map(plain));
            }
        }
    }
    languages
}

impl Language {
    fn list(&mut self, name: &str) -> Option<&mut Vec<String>> {
        Some(match name {
            "not" => &mut self.not,
            "aside" => &mut self.aside,
            "earlier" => &mut self.earlier,
            "rules" => &mut self.rules,
            "role" => &mut self.role,
            "secret" => &mut self.secret,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_whole() {
        assert_eq!(LANGUAGES.len(), 10);
        for line in FILE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let is_begin = line.starts_with("words ") || line.starts_with("letters ");
            let is_known = ["not", "aside", "earlier", "rules", "role", "secret"]
                .iter()
                .any(|name| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(": ")));
            assert!(is_begin || is_known, "{line}");
        }
        for language in LANGUAGES.iter() {
            for list in
                [&language.not, &language.aside, &language.earlier, &language.rules, &language.role, &language.secret]
            {
                assert!(!list.is_empty() && list.iter().all(|entry| !entry.is_empty()), "{language:?}");
            }
        }
    }
}
