//! Concepts of a text, found without a model: names, codes, years, quoted titles and a heading, verbatim.
//!
//! A *name* is a run of capitalised words, which may hold small words inside (`Ruler of the Sea`); one word that only
//! begins a sentence is a name if it stands elsewhere too, or can be the subject of the sentence. A *code* has letters
//! and digits (`UA123`). A *title* stands in double quotes. A year is a number of four digits. A *heading* is a short
//! first sentence that the text goes on about: it says it again, in whatever case, or it is all name and its first word
//! comes again. An article before a name is no part of it.
//!
//! A name holds names: of `Media Mogul Rupert Murdoch` the last two words are one, of `Holston River Valley` the first
//! two, and of `Ada Byron of Lake House` those around the small word. `King's College London` and `Masters and Johnson`
//! are names beside those in them. What is no name in fact is seldom found twice, and then leads nowhere.
//!
//! A name that the text gives as another name of the one before it is an alias: both are one concept, divided by `|`,
//! as in `X, also known as Y`, `X (aka Y)`, or initials in brackets, `International Business Machines (IBM)`.

use std::collections::HashSet;
use std::ops::Range;

/// Small words that join capitalised ones to one name. `and`, `in` or `for` as often stand between two names.
const INNER: [&str; 9] = ["of", "de", "la", "le", "&", "van", "von", "der", "du"];
/// The article that may follow one of them: `Ruler of the Sea`.
const ARTICLE: &str = "the";
/// Words that begin a sentence and no name.
const OPENERS: [&str; 64] = [
    "the", "a", "an", "in", "on", "at", "it", "its", "he", "she", "they", "his", "her", "their", "this", "that",
    "these", "those", "there", "as", "and", "but", "or", "for", "from", "to", "of", "by", "with", "after", "before",
    "during", "when", "while", "where", "who", "what", "which", "how", "why", "if", "is", "are", "was", "were", "be",
    "i", "we", "you", "my", "our", "your", "both", "since", "although", "however", "also", "some", "many", "most",
    "other", "one", "two", "not",
];
/// Words of a name, at most.
const LONGEST: usize = 8;

/// A word with the bytes around it.
struct Word<'t> {
    text: &'t str,
    start: usize,
    begins_sentence: bool,
}

fn words(text: &str) -> Vec<Word<'_>> {
    let starts: HashSet<usize> = super::sentences(text).into_iter().map(|sentence| sentence.start).collect();
    let mut words = Vec::new();
    let mut begin = None;
    let mut first = true;
    let ends = text.char_indices().map(|(at, c)| (at, Some(c))).chain([(text.len(), None)]);
    for (at, c) in ends {
        first |= starts.contains(&at);
        let inside = c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '\'' | '’' | '-' | '&'));
        match (begin, inside) {
            (None, true) => begin = Some(at),
            (Some(start), false) => {
                let word = text[start..at].trim_end_matches(['\'', '’', '-']);
                let word = word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(word);
                words.push(Word { text: word, start, begins_sentence: first });
                (begin, first) = (None, false);
            }
            _ => {}
        }
    }
    words
}

fn is_opener(word: &str) -> bool {
    OPENERS.contains(&word.to_lowercase().as_str())
}

/// True if a word that begins a sentence can be the name it is about: a word in lower case follows, and it ends unlike
/// adverbs, participles and nouns of actions do.
fn is_subject(word: &str, next: Option<&Word<'_>>) -> bool {
    const ENDINGS: [&str; 8] = ["ly", "ed", "ing", "ion", "ous", "ful", "ment", "ness"];
    const OTHERS: [&str; 32] = [
        "then", "such", "each", "under", "between", "another", "three", "four", "five", "first", "last", "next",
        "later", "here", "again", "only", "over", "into", "through", "within", "without", "against", "about",
        "despite", "because", "once", "until", "among", "several", "every", "more", "soon",
    ];
    let goes_on = next.is_some_and(|next| !next.begins_sentence && next.text.starts_with(char::is_lowercase));
    let is_other = is_opener(word) || OTHERS.contains(&word.to_lowercase().as_str());
    goes_on && !is_other && word.chars().count() > 3 && !ENDINGS.iter().any(|ending| word.ends_with(ending))
}

fn is_capitalised(word: &str) -> bool {
    word.starts_with(char::is_uppercase)
}

fn is_code(word: &str) -> bool {
    let has = |test: fn(char) -> bool| word.contains(test);
    has(|c| c.is_ascii_digit()) && has(char::is_alphabetic)
}

fn is_year(word: &str) -> bool {
    word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// True for a word alone in square brackets: the id of an element of a page, `[1490] link`.
fn is_bracketed(text: &str, word: &Word<'_>) -> bool {
    let before = text.get(..word.start).is_some_and(|before| before.ends_with('['));
    before && text.get(word.start + word.text.len()..).is_some_and(|after| after.starts_with(']'))
}

/// The concepts of a text, each once, in the order in which they first stand.
pub fn concepts_of(text: &str) -> Vec<String> {
    let words = words(text);
    let mut found: Vec<(usize, String)> = titles(text);
    let quoted: Vec<Range<usize>> = found.iter().map(|(start, title)| *start..start + title.len()).collect();
    let mut held = Held { text, words: &words, found: Vec::new(), before: None };
    let inside: HashSet<&str> =
        words.iter().filter(|word| !word.begins_sentence && is_capitalised(word.text)).map(|word| word.text).collect();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        if (is_code(word.text) || is_year(word.text)) && !is_bracketed(text, word) {
            found.push((word.start, word.text.to_owned()));
        }
        let opens = is_opener(word.text);
        if !is_capitalised(word.text) || (opens && !word.begins_sentence && word.text.chars().count() < 2) {
            continue;
        }
        let first = at - 1;
        let mut last = first;
        while let Some(next) = words.get(last + 1).filter(|_| last - first < LONGEST && joins(text, &words, last)) {
            if is_capitalised(next.text) || is_code(next.text) {
                last += 1;
                continue;
            }
            // Small words belong to a name if a capitalised one follows them.
            let is_inner = |at: usize| words.get(at).is_some_and(|word| INNER.contains(&word.text));
            let follows = |at: usize| is_inner(at) || words.get(at).is_some_and(|word| word.text == ARTICLE);
            let small = match is_inner(last + 1) {
                true => 1 + usize::from(follows(last + 2)),
                false => 0,
            };
            let after = words.get(last + 1 + small).filter(|after| small > 0 && is_capitalised(after.text));
            if after.is_none() || !(last + 1..=last + small).all(|at| joins(text, &words, at)) {
                break;
            }
            last += small + 1;
        }
        let skipped = usize::from(opens && words[first].begins_sentence);
        if let (Some(from), Some(to)) =
            (words.get(first + skipped).filter(|_| first + skipped <= last), words.get(last))
        {
            let alone = first + skipped == last;
            let is_known =
                inside.contains(from.text) || is_code(from.text) || is_subject(from.text, words.get(last + 1));
            let is_name = is_capitalised(from.text)
                && !(alone && (is_opener(from.text) || from.text.chars().count() < 2))
                && (!alone || !from.begins_sentence || is_known);
            if is_name {
                found.push((from.start, text[from.start..to.start + to.text.len()].to_owned()));
                if !quoted.iter().any(|title| title.contains(&from.start)) {
                    held.note(first + skipped..last + 1);
                }
            }
        }
        at = last + 1;
    }
    found.sort_by_key(|(start, _)| *start);
    let mut seen = HashSet::new();
    let all = heading(text).into_iter().chain(with_aliases(text, found)).chain(held.found);
    all.map(|names| without_articles(&names)).filter(|names| seen.insert(names.to_lowercase())).collect()
}

/// Names inside of a name, and names made of two.
struct Held<'t> {
    text: &'t str,
    words: &'t [Word<'t>],
    found: Vec<String>,
    /// The words of the name before.
    before: Option<Range<usize>>,
}

impl Held<'_> {
    fn push(&mut self, words: Range<usize>) {
        let (Some(from), Some(to)) = (self.words.get(words.start), self.words.get(words.end.wrapping_sub(1))) else {
            return;
        };
        self.found.extend(self.text.get(from.start..to.start + to.text.len()).map(str::to_owned));
    }

    fn note(&mut self, name: Range<usize>) {
        let is_inner = |at: usize| self.words.get(at).is_none_or(|word| !is_capitalised(word.text));
        let mut parts: Vec<Range<usize>> = Vec::new();
        for at in name.clone().filter(|at| !is_inner(*at)) {
            match parts.last_mut().filter(|part| part.end == at) {
                Some(part) => part.end = at + 1,
                None => parts.push(at..at + 1),
            }
        }
        for part in &parts {
            if parts.len() > 1 && part.len() > 1 {
                self.push(part.clone());
            }
            let pairs = [part.start..part.start + 2, part.end.saturating_sub(2)..part.end];
            for pair in pairs.into_iter().filter(|_| part.len() > 2) {
                let is_initial = |at: usize| self.words.get(at).is_none_or(|word| word.text.chars().count() < 2);
                if !pair.clone().any(is_initial) {
                    self.push(pair);
                }
            }
        }
        let between = |from: usize, to: usize| {
            let (from, to) = (self.words.get(from)?, self.words.get(to)?);
            self.text.get(from.start + from.text.len()..to.start)
        };
        let mut whole = name.clone();
        if let Some(before) = self.before.take() {
            let between = between(before.end - 1, name.start);
            let is_owned = matches!(between, Some("'s " | "’s " | "' " | "’ "));
            let is_both = between == Some(" and ") && before.len() == 1 && name.len() == 1;
            if is_owned || (before.end + 1 == name.start && is_both) {
                whole.start = before.start;
                self.push(whole.clone());
            }
        }
        self.before = Some(whole).filter(|whole| whole.len() < LONGEST);
    }
}

/// The heading of a text: its first sentence, if the others go on about it.
fn heading(text: &str) -> Option<String> {
    let mut sentences = super::sentences(text).into_iter();
    let (first, rest) = (sentences.next()?, sentences.next()?.start);
    let mut stated = text.get(first)?.trim_end_matches(['.', ':']);
    stated = stated.split(" (").next().unwrap_or(stated).trim();
    let heading = without_article(stated);
    let words: Vec<&str> = heading.split_whitespace().collect();
    let first = *words.first()?;
    let begins = first.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit());
    if !begins || words.len() > LONGEST || is_opener(first) || heading.contains(['"', '“', '?', '!', ';']) {
        return None;
    }
    let rest = text.get(rest..)?.to_lowercase();
    // A word alone may be a greeting: it counts where it stands within a sentence.
    let least = usize::from(words.len() == 1);
    let again = |part: &str| {
        let part = part.to_lowercase();
        rest.match_indices(&part).filter(|(at, _)| *at >= least).any(|(at, part)| {
            let is_inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            !is_inside(rest[..at].chars().next_back()) && !is_inside(rest[at + part.len()..].chars().next())
        })
    };
    let is_all_name =
        words.iter().all(|word| !word.starts_with(char::is_lowercase) || INNER.contains(word) || *word == ARTICLE);
    let is_said_again = again(heading) || (is_all_name && again(first.trim_end_matches(',')));
    is_said_again.then(|| heading.to_owned())
}

/// Names without the articles before them.
fn without_articles(names: &str) -> String {
    names.split('|').map(without_article).collect::<Vec<_>>().join("|")
}

fn without_article(name: &str) -> &str {
    let rest = ["The ", "A ", "An "].iter().find_map(|article| name.strip_prefix(article));
    rest.filter(|rest| rest.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit())).unwrap_or(name)
}

/// The names, each with its aliases. A name without them is left out where the same text gives it some.
fn with_aliases(text: &str, found: Vec<(usize, String)>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut end = 0;
    for (start, name) in found {
        let between = text.get(end..start).unwrap_or_default();
        let last = all.last_mut().filter(|last| start >= end && is_alias(last, between, &name));
        end = end.max(start + name.len());
        match last {
            Some(last) => *last += &format!("|{name}"),
            None => all.push(name),
        }
    }
    let aliased: HashSet<String> = all
        .iter()
        .filter(|names| names.contains('|'))
        .flat_map(|names| names.split('|').map(str::to_lowercase))
        .collect();
    all.retain(|name| name.contains('|') || !aliased.contains(&name.to_lowercase()));
    all
}

/// True if the words between two names say that the second is another one of the first.
fn is_alias(names: &str, between: &str, name: &str) -> bool {
    let between =
        between.trim_start_matches(['"', '”', ',', ' ', '(']).trim_end_matches(['"', '“', ' ']).to_lowercase();
    let is_known = |between: &str| {
        let between = between.trim_end_matches(" the").trim_end_matches(" as");
        ["also known", "better known", "commonly known", "also called", "aka", "a.k.a."].contains(&between)
    };
    let first = names.split('|').next().unwrap_or(names);
    let initials: String =
        first.split([' ', '-']).filter(|word| is_capitalised(word)).filter_map(|word| word.chars().next()).collect();
    let is_short = name.chars().count() > 1 && name == initials;
    is_known(&between) || (between.is_empty() && is_short && first.contains(' '))
}

/// True if only blanks, dots of initials or brackets' insides part a word from the next.
fn joins(text: &str, words: &[Word<'_>], at: usize) -> bool {
    let (Some(word), Some(next)) = (words.get(at), words.get(at + 1)) else { return false };
    let between = text.get(word.start + word.text.len()..next.start).unwrap_or("|");
    let is_initial = word.text.chars().count() == 1 && between.trim_end() == ".";
    !next.begins_sentence && (between.chars().all(|c| c == ' ') || is_initial)
}

/// Titles in double quotes of at most [`LONGEST`] words.
fn titles(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open = None;
    for (at, c) in text.char_indices().filter(|(_, c)| matches!(c, '"' | '“' | '”')) {
        match open.take() {
            Some(start) => {
                let title = text.get(start..at).unwrap_or_default().trim_end_matches([',', '.']);
                let count = title.split_whitespace().count();
                if (1..=LONGEST).contains(&count) && title.contains(char::is_alphabetic) {
                    found.push((start, title.to_owned()));
                }
            }
            None => open = Some(at + c.len_utf8()),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::concepts_of;

    #[test]
    fn names_codes_years_and_titles_are_concepts() {
        assert_eq!(
            concepts_of("Ed Wood is a 1994 film by Tim Burton, starring Johnny Depp as Ed Wood."),
            ["Ed Wood", "1994", "Tim Burton", "Johnny Depp"]
        );
        assert_eq!(
            concepts_of("The song \"Thinking Out Loud\" left UA123 for the Battle of Stones River. It won."),
            ["Thinking Out Loud", "UA123", "Battle of Stones River", "Stones River"]
        );
        assert_eq!(concepts_of("Peter Pan was written by J. M. Barrie's friend."), ["Peter Pan", "J. M. Barrie"]);
        assert_eq!(concepts_of("Originally it was red. Then it ends. Painted in 3 sizes. Music!"), [""; 0]);
        assert_eq!(
            concepts_of("Quilmor was started by Jolun. Benfi resides at Gulu."),
            ["Quilmor", "Jolun", "Benfi", "Gulu"]
        );
        assert_eq!(concepts_of("In Bergen and Oslo it is cold."), ["Bergen", "Oslo", "Bergen and Oslo"]);
        assert_eq!(
            concepts_of("The Velmora, also known as Old Bay, lies far. Old Bay is old. It is \"Big Rock\" (aka Tam)."),
            ["Velmora|Old Bay", "Big Rock|Tam"]
        );
        assert_eq!(
            concepts_of("Today International Business Machines (IBM) met Bob (UK) and Jo, called Al."),
            [
                "Today International Business Machines",
                "IBM",
                "Bob",
                "UK",
                "Jo",
                "Al",
                "Today International",
                "Business Machines"
            ]
        );
        assert_eq!(
            concepts_of("The European Space Agency (ESA) met."),
            ["European Space Agency|ESA", "European Space", "Space Agency"]
        );
        assert_eq!(concepts_of("In Oslo the Ruler of the Sea met him. Oslo is cold."), ["Oslo", "Ruler of the Sea"]);
    }

    #[test]
    fn names_hold_names_and_make_others() {
        let has = |text: &str, wanted: &[&str]| {
            let found = concepts_of(text);
            assert!(wanted.iter().all(|name| found.iter().any(|known| known == name)), "{text}: {found:?}");
        };
        has("It was Media Mogul Rupert Murdoch.", &["Media Mogul Rupert Murdoch", "Rupert Murdoch"]);
        has("They met at Holston River Valley.", &["Holston River Valley", "Holston River", "River Valley"]);
        has("He met Ada Byron of Lake House.", &["Ada Byron of Lake House", "Ada Byron", "Lake House"]);
        has("He was at King's College London.", &["King", "College London", "King's College London"]);
        has("It was about Masters and Johnson.", &["Masters", "Johnson", "Masters and Johnson"]);
        assert_eq!(concepts_of("It was by J. M. Barrie."), ["J. M. Barrie"]);
    }

    #[test]
    fn a_heading_is_a_concept() {
        let first = |text: &str| concepts_of(text).into_iter().next();
        for (text, heading) in [
            ("Village accountant. The village accountant keeps the books.", "Village accountant"),
            ("The Prince and Me (film). The Prince and Me is a film.", "Prince and Me"),
            ("Newark, New Jersey. Newark ( or locally ) is a city.", "Newark, New Jersey"),
            ("Sarod\nThe sarod is an instrument.", "Sarod"),
        ] {
            assert_eq!(first(text).as_deref(), Some(heading), "{text}");
        }
        for text in ["Ann left early. Ann was tired.", "Yes. Yes, it is so.", "Sarod.", "It is so. It is so."] {
            assert!(!concepts_of(text).iter().any(|name| text.starts_with(&format!("{name}."))), "{text}");
        }
    }
}
