//! Coverage: is anything in scope what a question names (`default` profile; memory model, section 8: nothing found
//! is an answer)?
//!
//! The names of a question are its words of letters and digits (`UA123`) and its capitalised words, but for those that
//! open a sentence or say when. If half of them or more occur nowhere in scope, neither in a text nor as a speaker, the
//! question is about something else, however near the nearest row is. So it is if one code does not occur whole. A name
//! of five letters or more occurs, too, if a word in scope begins with the same five or differs in a letter or two.
//!
//! In some languages every noun has a capital: where a third of the longer words of the rows do, capitals name nothing.
//!
//! Cost: one look-up in the word index for each name, the texts of [`CODE_TEXTS`] items for a code, and the terms that
//! share two letters with a name that does not occur.

use super::plan::Plan;
use super::select::Selection;
use super::words::WordIndexes;
use crate::Result;
use crate::model::item::{ItemId, Layer};
use crate::model::plural::counted;
use crate::read::snapshot::{Snapshot, is_damage};
use crate::state::attributes::{Column, ValueTest};
use holotype_index::words::WordQuery;

/// Texts that are searched for a code whose parts they have: `UA 123` for `UA123`.
const CODE_TEXTS: usize = 8;
/// Words of rows that tell whether nouns have capitals, their letters, and the share of them.
const CAPITAL_WORDS: usize = 20;
const CAPITAL_LETTERS: usize = 4;
const CAPITAL_SHARE: f64 = 0.35;

/// Names that a note lists.
const MOST_NAMED: usize = 3;

/// Letters that a name needs to be compared with similar words, those of a common beginning, and those of the beginning
/// without which no word is compared.
const SIMILAR_LETTERS: usize = 5;
const COMMON_LETTERS: usize = 5;
const FIRST_LETTERS: usize = 2;
/// Letters from which two may differ; below, one.
const TWO_CHANGES_LETTERS: usize = 7;

/// Titles, whose dot ends no sentence.
const TITLES: [&str; 8] = ["Dr", "Mr", "Mrs", "Ms", "Prof", "St", "Sr", "Jr"];

/// Capitalised words that say when.
const CALENDAR: [&str; 38] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Sept",
    "Oct",
    "Nov",
    "Dec",
    "Mon",
    "Tue",
    "Wed",
    "Thu",
    "Fri",
    "Sat",
    "Sun",
];

/// Words whose `'s` is short for `is` or `us`.
const CONTRACTED: [&str; 14] =
    ["what", "when", "where", "who", "why", "how", "it", "that", "this", "there", "here", "he", "she", "let"];

/// The names of a question. The first word of a sentence has its capital anyway: it is a name if it is a code or owns
/// something (`Ann's`).
pub(super) fn names(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut begins = true;
    let mut rest = text;
    while let Some(start) = rest.find(char::is_alphanumeric) {
        begins |= rest[..start].contains(['.', '!', '?', ':', '\n']);
        rest = &rest[start..];
        let (word, after) = rest.split_at(rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len()));
        let behind = after.strip_prefix("'s").or_else(|| after.strip_prefix('\u{2019}')?.strip_prefix('s'));
        let owns = behind.is_some_and(|behind| !behind.starts_with(char::is_alphanumeric))
            && !CONTRACTED.iter().any(|contracted| contracted.eq_ignore_ascii_case(word));
        let is_title = TITLES.contains(&word);
        let is_capitalised =
            word.starts_with(char::is_uppercase) && word.len() > 1 && !CALENDAR.contains(&word) && !is_title;
        if is_code(word) || (is_capitalised && (owns || !begins)) {
            names.push(word);
        }
        (begins, rest) = (false, if is_title { after.strip_prefix('.').unwrap_or(after) } else { after });
    }
    names
}

/// True for a word of digits and of letters that have a case, but for ordinal numbers (`3rd`): `2015年` is none.
fn is_code(word: &str) -> bool {
    let is_ordinal = ["st", "nd", "rd", "th"]
        .iter()
        .any(|ending| word.strip_suffix(ending).is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit())));
    !is_ordinal
        && word.contains(|c: char| c.is_lowercase() || c.is_uppercase())
        && word.contains(|c: char| c.is_ascii_digit())
}

/// True for a code that names one thing: `UA123`, `4XGCCM`; not `8pm`, `3rd`.
fn is_strict_code(word: &str) -> bool {
    is_code(word) && word.chars().count() >= CAPITAL_LETTERS && word.contains(|c: char| c.is_uppercase())
}

/// True if so many longer words inside of sentences have capitals that capitals name nothing.
fn has_capital_nouns<'t>(texts: impl Iterator<Item = &'t str>) -> bool {
    let (mut words, mut capitals) = (0_usize, 0_usize);
    for text in texts {
        let mut begins = true;
        for word in text.split_whitespace() {
            let letters = word.trim_matches(|c: char| !c.is_alphanumeric());
            if !begins && letters.chars().count() >= CAPITAL_LETTERS && letters.chars().all(char::is_alphabetic) {
                words += 1;
                capitals += usize::from(letters.starts_with(char::is_uppercase));
            }
            begins = word.ends_with(['.', '!', '?', ':']);
        }
    }
    words >= CAPITAL_WORDS && capitals as f64 >= CAPITAL_SHARE * words as f64
}

/// The reason why what is stored may not answer a question; `None` if nothing speaks against it.
pub(super) fn doubt(
    snapshot: &Snapshot,
    plan: &Plan,
    words: &WordIndexes,
    selection: &Selection,
) -> Result<Option<String>> {
    if selection.rows.is_empty() {
        return Ok(Some("Nothing in scope matches the question.".to_owned()));
    }
    let Some(text) = plan.text.as_deref().filter(|_| plan.weights.groups) else { return Ok(None) };
    let mut names = names(text);
    if has_capital_nouns(selection.rows.iter().map(|row| row.content.text())) {
        names.retain(|name| is_code(name));
    }
    let mut missing = Vec::new();
    for name in &names {
        if !occurs(snapshot, plan, words, name)? {
            missing.push(*name);
        }
    }
    let is_enough = missing.len() * 2 >= names.len() || missing.iter().any(|name| is_strict_code(name));
    // Looking a name up finds damage. Where words are damaged, a name that is not found may be there all the same.
    let is_damaged = Layer::ALL.iter().any(|layer| snapshot.state.damaged_words(*layer) > 0);
    Ok((!is_damaged && !missing.is_empty() && is_enough).then(|| note(&missing)))
}

/// Says that nothing in scope names what a question names.
fn note(missing: &[&str]) -> String {
    let first = missing.get(..MOST_NAMED).unwrap_or(missing).join(", ");
    match missing.len().saturating_sub(MOST_NAMED) {
        0 => format!("Nothing in scope names {first}."),
        more => format!("Nothing in scope names {first} and {}.", counted(more as u64, "more names")),
    }
}

fn occurs(snapshot: &Snapshot, plan: &Plan, words: &WordIndexes, name: &str) -> Result<bool> {
    if is_code(name) {
        return code_occurs(snapshot, plan, words, name);
    }
    let asked = words.ask(Some(name))?;
    for layer in Layer::ALL {
        if let Some(scorer) = asked.of(*layer)?
            && !scorer.top(Some(&plan.visible), 1)?.is_empty()
        {
            return Ok(true);
        }
    }
    let state = &snapshot.state;
    let Some(speaker) = state.symbol(name)?.map(i64::from) else { return nearly_occurs(plan, words, name) };
    let test = ValueTest::Range(speaker, speaker);
    let said = state.attributes.select_values(Column::Speaker, state.bound(), test)?;
    Ok(!said.and(&plan.visible).is_empty() || nearly_occurs(plan, words, name)?)
}

/// True if a word in scope is nearly a name: it begins with the same five letters, or a letter or two differ.
fn nearly_occurs(plan: &Plan, words: &WordIndexes, name: &str) -> Result<bool> {
    let (query, _) = WordQuery::from_words(&words.analyzer(), [name]);
    let [term] = query.terms() else { return Ok(false) };
    let (key, letters) = (&*term.key, term.key.chars().count());
    let beginning = |letters: usize| key.chars().take(letters).collect::<String>();
    if letters < SIMILAR_LETTERS {
        return Ok(false);
    }
    let most = if letters < TWO_CHANGES_LETTERS { 1 } else { 2 };
    let common = beginning(COMMON_LETTERS);
    for layer in Layer::ALL {
        let index = words.index(*layer);
        for other in index.terms_with_prefix(&beginning(FIRST_LETTERS))? {
            let is_near = other.starts_with(&common) || strsim::osa_distance(key, &other) <= most;
            if is_near && !index.scorer(&WordQuery::from_term(&other))?.top(Some(&plan.visible), 1)?.is_empty() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// True if a code occurs whole, or in parts beside each other.
fn code_occurs(snapshot: &Snapshot, plan: &Plan, words: &WordIndexes, code: &str) -> Result<bool> {
    let analyzer = words.analyzer();
    let squeezed =
        |text: &str| text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    let wanted = squeezed(code);
    for layer in Layer::ALL {
        let index = words.index(*layer);
        let (whole, _) = WordQuery::from_words(&analyzer, [code]);
        if !index.scorer(&whole)?.top(Some(&plan.visible), 1)?.is_empty() {
            return Ok(true);
        }
        let Some(parts) = WordQuery::from_parts(&analyzer, code) else { continue };
        for id in index.scorer(&parts)?.newest_with_all(&plan.visible, CODE_TEXTS)? {
            match snapshot.content(ItemId(id)) {
                Ok(content) if squeezed(content.text()).contains(&wanted) => return Ok(true),
                Ok(_) => {}
                Err(error) if is_damage(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::{names, note};

    #[test]
    fn a_note_lists_three_names() {
        assert_eq!(note(&["Ann"]), "Nothing in scope names Ann.");
        assert_eq!(note(&["a1", "b2", "c3", "d4"]), "Nothing in scope names a1, b2, c3 and 1 more name.");
    }

    #[test]
    fn names_are_capitalised_words_and_codes() {
        assert_eq!(names("When did Ann go to New York?"), ["Ann", "New", "York"]);
        assert_eq!(names("what is the price of ua123 in May?"), ["ua123"]);
        assert_eq!(
            names("How many rooms are left? Tell me for Lisbon. Ann's, too: \u{c4}nne\u{2019}s flat."),
            ["Lisbon", "Ann", "\u{c4}nne"]
        );
        assert_eq!(names("Did they meet Dr. Adams on Sept 3rd?"), ["Adams"]);
        assert_eq!(names("What's the gate of UA123? It's late, and who\u{2019}s there? Let's see."), ["UA123"]);
    }
}
