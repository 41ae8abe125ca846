//! Coverage: is anything in scope what a question names (`default` profile; memory model, section 8: nothing found
//! is an answer)?
//!
//! The names of a question are its words of letters and digits (`UA123`) and its capitalised words, but for those that
//! open a sentence or say when. If half of them or more occur nowhere in scope, neither in a text nor as a speaker, the
//! question is about something else, however near the nearest row is.
//!
//! Cost: one look-up in the word index for each name.

use super::plan::Plan;
use super::select::Selection;
use super::words::WordIndexes;
use crate::Result;
use crate::model::item::Layer;
use crate::model::plural::counted;
use crate::read::snapshot::Snapshot;
use crate::state::attributes::{Column, ValueTest};

/// Names that a note lists.
const MOST_NAMED: usize = 3;

/// Capitalised words that say when.
const CALENDAR: [&str; 19] = [
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
        let is_capitalised = word.starts_with(char::is_uppercase) && word.len() > 1 && !CALENDAR.contains(&word);
        let is_code = word.contains(char::is_alphabetic) && word.contains(|c: char| c.is_ascii_digit());
        if is_code || (is_capitalised && (owns || !begins)) {
            names.push(word);
        }
        (begins, rest) = (false, after);
    }
    names
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
    let names = names(text);
    let mut missing = Vec::new();
    for name in &names {
        if !occurs(snapshot, plan, words, name)? {
            missing.push(*name);
        }
    }
    // Looking a name up finds damage. Where words are damaged, a name that is not found may be there all the same.
    let is_damaged = Layer::ALL.iter().any(|layer| snapshot.state.damaged_words(*layer) > 0);
    Ok((!is_damaged && !missing.is_empty() && missing.len() * 2 >= names.len()).then(|| note(&missing)))
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
    let asked = words.ask(Some(name));
    for layer in Layer::ALL {
        if let Some(scorer) = asked.of(*layer)?
            && !scorer.top(Some(&plan.visible), 1)?.is_empty()
        {
            return Ok(true);
        }
    }
    let state = &snapshot.state;
    let Some(speaker) = state.symbol(name)?.map(i64::from) else { return Ok(false) };
    let test = ValueTest::Range(speaker, speaker);
    let said = state.attributes.select_values(Column::Speaker, state.bound(), test)?;
    Ok(!said.and(&plan.visible).is_empty())
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
        assert_eq!(names("What's the gate of UA123? It's late, and who\u{2019}s there? Let's see."), ["UA123"]);
    }
}
