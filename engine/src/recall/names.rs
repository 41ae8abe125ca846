//! Concepts that a question names, found by text (PlugMem 3.2: the tags of a query).
//!
//! A concept has the names of its text: one a line, or separated by `|`; what stands in brackets belongs to no name. A
//! name stands in a question if the question's words, run together, spell it: `UA 123` names `UA123`. Case, white
//! space, marks and plural endings make no difference. A name inside a longer one that is named too is no name:
//! `York` in `New York`.
//!
//! Cost: one search by words among the concepts, and the texts of the best [`POOL`] of them.

use super::plan::Plan;
use super::words::Words;
use crate::Result;
use crate::model::item::{ItemId, Kind, Layer};
use crate::read::snapshot::Snapshot;
use std::collections::HashMap;
use std::ops::Range;

/// Concepts whose names are compared, at most.
const POOL: usize = 64;
/// Words of a name, at most.
const LONGEST: usize = 10;
/// Words of a question that are looked at.
const MOST_WORDS: usize = 256;

/// A concept that a question names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) concept: ItemId,
    /// Its words in the question.
    pub(super) words: Range<usize>,
}

/// The words of a text: lower case, without plural endings.
pub(crate) fn normal_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty() && *word != "s");
    words.take(MOST_WORDS).map(|word| singular(word.to_lowercase())).collect()
}

/// A word without the ending of an English plural.
fn singular(mut word: String) -> String {
    let is_long = word.chars().count() > 3;
    if is_long && word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if is_long && ["sses", "xes", "ches", "shes"].iter().any(|end| word.ends_with(end)) {
        word.truncate(word.len() - 2);
    } else if is_long && word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
    word
}

/// The plural of a name that ends in s without its endings, as [`singular`] leaves the name: `work` of `Workss` and
/// `Workses`, for `Works`.
fn of_plural(word: &str) -> Option<&str> {
    let least = |rest: &&str| rest.chars().count() > 3;
    ["ss", "se"].iter().find_map(|end| word.strip_suffix(end)).filter(least)
}

/// The names that a concept's text states.
pub(crate) fn stated(text: &str) -> impl Iterator<Item = &str> {
    text.split(['|', '\n']).map(str::trim).filter(|name| !name.is_empty())
}

/// The names that a concept's text states, each as its words run together.
fn names(text: &str) -> Vec<String> {
    let mut outside = String::with_capacity(text.len());
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => outside.push(c),
            _ => {}
        }
    }
    let names = stated(&outside).map(|name| normal_words(name).concat());
    names.filter(|name| name.chars().count() > 1).collect()
}

/// A text with a blank between letters and digits: `UA 123` for `UA123`.
pub(crate) fn split_codes(text: &str) -> String {
    let mut split = String::with_capacity(text.len());
    let mut before = ' ';
    for c in text.chars() {
        let meets = |a: char, b: char| a.is_alphabetic() && b.is_ascii_digit();
        if meets(before, c) || meets(c, before) {
            split.push(' ');
        }
        split.push(c);
        before = c;
    }
    split
}

/// The runs of words of a question by what they spell.
fn spelled(words: &[String]) -> HashMap<String, Range<usize>> {
    let mut runs = HashMap::new();
    for from in 0..words.len() {
        let mut run = String::new();
        for (at, word) in words.iter().enumerate().skip(from).take(LONGEST) {
            run.push_str(word);
            runs.entry(run.clone()).or_insert(from..at + 1);
            if let Some(name) = of_plural(word).and_then(|rest| run.get(..run.len() - (word.len() - rest.len()))) {
                runs.entry(name.to_owned()).or_insert(from..at + 1);
            }
        }
    }
    runs
}

/// The concepts that the question of a plan names, in its order.
pub(super) fn named(snapshot: &Snapshot, plan: &Plan, words: &Words<'_>) -> Result<Vec<Named>> {
    let Some(text) = plan.text.as_deref() else { return Ok(Vec::new()) };
    let question = normal_words(text);
    let pairs = question.windows(2).map(<[String]>::concat);
    let joined: Vec<String> = question.iter().cloned().chain(pairs).collect();
    let asked = words.ask(&format!("{text}\n{}\n{}", joined.join(" "), split_codes(text)));
    let Some(scorer) = asked.of(Layer::Theme)? else { return Ok(Vec::new()) };
    let runs = spelled(&question);
    let mut found = Vec::new();
    for hit in scorer.top(Some(&plan.visible), POOL)? {
        let concept = ItemId(hit.id);
        if snapshot.state.attributes.kind(concept)? != Kind::Concept {
            continue;
        }
        let content = snapshot.content(concept)?;
        let spans = names(content.text()).into_iter().filter_map(|name| runs.get(&name).cloned());
        let longest = spans.max_by_key(Range::len).filter(|span| span.len() > 1 || !is_opener(&question[span.start]));
        found.extend(longest.map(|words| Named { concept, words }));
    }
    Ok(outermost(found))
}

/// Words of which questions are made, which name nothing alone.
fn is_opener(word: &str) -> bool {
    const OPENERS: [&str; 36] = [
        "what", "when", "where", "who", "whom", "whose", "why", "how", "which", "do", "doe", "did", "is", "are", "was",
        "were", "be", "ha", "has", "have", "had", "can", "will", "in", "on", "at", "the", "a", "an", "for", "from",
        "to", "of", "by", "with", "it",
    ];
    OPENERS.contains(&word)
}

/// The names that stand in no other, in order.
fn outermost(mut found: Vec<Named>) -> Vec<Named> {
    let spans: Vec<Range<usize>> = found.iter().map(|named| named.words.clone()).collect();
    let is_inside = |span: &Range<usize>, other: &Range<usize>| {
        other.start <= span.start && span.end <= other.end && span.len() < other.len()
    };
    found.retain(|named| !spans.iter().any(|other| is_inside(&named.words, other)));
    found.sort_by_key(|named| (named.words.start, named.concept));
    found
}

/// True if a question sets two things beside each other, so that each is found at once and hops only cost rows:
/// it says so (`both`, `or`, `in common`), and names two things.
pub(super) fn compares(text: &str, named: &[Named]) -> bool {
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let starts_upper =
        |word: &&str| word.starts_with(char::is_uppercase) || word.starts_with(|c: char| c.is_ascii_digit());
    // Runs of capitalised words after the first word are names; a named concept is one in any case.
    let mut things: Vec<Range<usize>> = Vec::new();
    for (at, word) in words.iter().enumerate().skip(1) {
        if !starts_upper(word) {
            continue;
        }
        match things.last_mut().filter(|last| last.end == at) {
            Some(last) => last.end = at + 1,
            None => things.push(at..at + 1),
        }
    }
    let kept = normal_words_places(&words);
    let spans: Vec<Range<usize>> = named.iter().filter_map(|named| in_words(&kept, &named.words)).collect();
    let in_name = |at: usize| spans.iter().any(|span| span.contains(&at));
    let mut cue = false;
    for (at, word) in words.iter().enumerate().filter(|(at, _)| !in_name(*at)) {
        let word = word.to_lowercase();
        let between = |names: &[Range<usize>]| {
            let (before, after) = (at.checked_sub(1), at + 1);
            let ends = |at: usize| names.iter().any(|name| name.contains(&at));
            let article =
                words.get(after).is_some_and(|next| ["the", "a", "an"].contains(&next.to_lowercase().as_str()));
            before.is_some_and(ends) && ends(after + usize::from(article))
        };
        cue |= match word.as_str() {
            "both" | "same" | "either" | "neither" | "shared" | "share" => true,
            "common" => at > 0 && words[at - 1].eq_ignore_ascii_case("in"),
            "or" | "and" => between(&things) || between(&spans),
            _ => false,
        };
    }
    let mut places: Vec<Range<usize>> = things.into_iter().chain(spans).collect();
    places.sort_by_key(|place| place.start);
    let mut separate = 0;
    let mut end = 0;
    for place in places {
        if separate == 0 || place.start >= end {
            separate += 1;
        }
        end = end.max(place.end);
    }
    cue && separate >= 2
}

/// The places of the words that [`normal_words`] keeps.
fn normal_words_places(words: &[&str]) -> Vec<usize> {
    words.iter().enumerate().filter(|(_, word)| **word != "s").map(|(at, _)| at).collect()
}

fn in_words(kept: &[usize], span: &Range<usize>) -> Option<Range<usize>> {
    Some(*kept.get(span.start)?..*kept.get(span.end.checked_sub(1)?)? + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_without_case_blanks_marks_and_plurals() {
        assert_eq!(names("Ed Wood (film)|The  ED-Wood Story\nUA 123"), ["edwood", "theedwoodstory", "ua123"]);
        let runs = spelled(&normal_words("Which flights of ua123's crews met Ed  wood?"));
        assert!(["flight", "ua123", "crew", "edwood"].iter().all(|name| runs.contains_key(*name)));
        let runs = spelled(&normal_words("Do Velmora Workss and the Jameses use glass?"));
        assert!(["velmorawork", "jame", "glass"].iter().all(|name| runs.contains_key(*name)));
        assert_eq!(names("Velmora Works|James"), ["velmorawork", "jame"]);
        assert_eq!(split_codes("UA123b at 7"), "UA 123 b at 7");
        assert_eq!(normal_words("Boxes, cities, glasses and gas"), ["box", "city", "glass", "and", "gas"]);
    }

    #[test]
    fn a_name_inside_another_is_none() {
        let named = |concept, words| Named { concept: ItemId(concept), words };
        let kept = outermost(vec![named(1, 3..4), named(2, 2..4), named(3, 0..1)]);
        assert_eq!(kept, [named(3, 0..1), named(2, 2..4)]);
    }

    #[test]
    fn two_things_beside_each_other_are_compared() {
        let compares = |text: &str| compares(text, &[]);
        assert!(compares("Who was born first, Arthur Conan Doyle or Penelope Lively?"));
        assert!(compares("Are both Cypress and Ajuga genera?"));
        assert!(compares("What occupation was shared by David Yates and Pietro Germi?"));
        assert!(!compares("What character comes from the same book as Abraham Van Helsing?"));
        assert!(!compares("Where was the founder of Velmora born?"));
        assert!(!compares("Who wrote it, and when?"));
    }
}
