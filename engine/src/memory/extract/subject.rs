//! Names of subjects and attributes, and the attributes that change by themselves.

use super::normalise::fold;

/// Words before a noun that do not name it.
const DETERMINERS: [&str; 20] = [
    "the",
    "a",
    "an",
    "its",
    "this",
    "that",
    "our",
    "current",
    "currently",
    "new",
    "latest",
    "updated",
    "present",
    "reported",
    "listed",
    "and",
    "for",
    "also",
    "now",
    "to",
];

/// Words for kinds of things. Before a name they add nothing to it: `hotel Lisbon Garden 42` is `lisbon garden 42`.
const KINDS: [&str; 48] = [
    "flight",
    "hotel",
    "city",
    "server",
    "host",
    "account",
    "user",
    "customer",
    "client",
    "employee",
    "project",
    "meeting",
    "event",
    "restaurant",
    "shop",
    "store",
    "company",
    "share",
    "stock",
    "fund",
    "parcel",
    "package",
    "order",
    "invoice",
    "ticket",
    "issue",
    "train",
    "bus",
    "ship",
    "vessel",
    "station",
    "airport",
    "item",
    "product",
    "article",
    "device",
    "sensor",
    "printer",
    "database",
    "service",
    "course",
    "patient",
    "contract",
    "team",
    "department",
    "branch",
    "town",
    "country",
];

/// Words for a kind that may stand before a proper name.
const MAX_KIND_WORDS: usize = 2;

/// Words in small letters that tell things of one proper name apart: `old Lisbon`, `north Quito`.
const DISTINCTIONS: [&str; 30] = [
    "old", "new", "north", "south", "east", "west", "upper", "lower", "inner", "outer", "central", "greater", "former",
    "first", "second", "third", "last", "previous", "next", "junior", "senior", "left", "right", "front", "back",
    "not", "no", "another", "other", "future",
];

/// Attributes that differ between two readings of an unchanged world.
const VOLATILE: [&str; 43] = [
    "cached",
    "cache",
    "cache hit",
    "from cache",
    "stale",
    "timestamp",
    "ts",
    "now",
    "date retrieved",
    "retrieved",
    "retrieved at",
    "fetched at",
    "checked at",
    "observed at",
    "as of",
    "updated",
    "updated at",
    "last updated",
    "created at",
    "generated at",
    "request id",
    "requestid",
    "trace id",
    "traceid",
    "span id",
    "session id",
    "correlation id",
    "log id",
    "transaction id",
    "uuid",
    "nonce",
    "etag",
    "cursor",
    "offset",
    "attempt",
    "attempts",
    "retries",
    "retry",
    "elapsed",
    "elapsed ms",
    "latency",
    "latency ms",
    "took ms",
];

const PRONOUNS: [&str; 22] = [
    "it",
    "this",
    "that",
    "these",
    "those",
    "he",
    "she",
    "they",
    "we",
    "i",
    "you",
    "there",
    "here",
    "which",
    "who",
    "what",
    "mine",
    "yours",
    "one",
    "something",
    "everything",
    "nothing",
];

/// The one spelling of an attribute: words in lower case, however they were joined, without determiners.
pub(super) fn attribute(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len() + 4);
    let mut before = ' ';
    // A capital without a small letter (`𝕆`) stays as it is and would begin a word at every reading.
    let begins_word = |c: char| c.is_uppercase() && !c.to_lowercase().eq([c]);
    for c in text.chars() {
        if begins_word(c) && before.is_lowercase() {
            spaced.push(' ');
        }
        spaced.push(if matches!(c, '_' | '-' | '\u{2212}' | '.' | '/') { ' ' } else { c });
        before = c;
    }
    settle(&spaced)
}

/// A name in lower case without marks and determiners around it, however they nest: `the "current price"` is `price`.
fn settle(text: &str) -> String {
    let mut settled = fold(text);
    loop {
        let next = fold(strip(&settled));
        if next == settled {
            return settled;
        }
        settled = next;
    }
}

/// The one spelling of a subject. A code behind plain words names it alone: `flight TK129` is `tk129`. So does a proper
/// name behind the word for its kind: `hotel Lisbon Garden 42` is `lisbon garden 42`.
pub(super) fn subject(text: &str) -> String {
    let text = text.replace('_', " ");
    let settled = settle(without_kind(&text));
    let (words, last) = settled.rsplit_once(' ').unwrap_or(("", &settled));
    let is_plain = words.chars().all(|c| c.is_alphabetic() || c == ' ');
    if is_plain && is_code(last) {
        return last.to_owned();
    }
    // `batch ledger batch 9269` names its kind twice.
    let is_kind = |(kind, name): &(&str, &str)| {
        name.contains(char::is_alphabetic) && (KINDS.contains(kind) || name.split(' ').any(|word| word == *kind))
    };
    let named = settled.split_once(' ').filter(is_kind);
    named.map_or(settled.clone(), |(_, name)| settle(name))
}

/// A proper name without up to two words in small letters before it, unless one of them tells such names apart.
fn without_kind(text: &str) -> &str {
    let text = text.trim();
    let mut rest = text;
    for _ in 0..=MAX_KIND_WORDS {
        let Some((first, name)) = rest.split_once(' ') else { return text };
        if DETERMINERS.contains(&fold(first).as_str()) {
            rest = name.trim_start();
            continue;
        }
        let is_kind = first.chars().all(char::is_lowercase) && !DISTINCTIONS.contains(&first);
        if !is_kind {
            return text;
        }
        rest = name.trim_start();
        if rest.starts_with(char::is_uppercase) {
            return rest;
        }
    }
    text
}

/// Letters and at least two digits in one word: such a word names one thing.
pub(super) fn is_code(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    digits >= 2
        && word.chars().any(char::is_alphabetic)
        && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '#'))
}

pub(super) fn is_pronoun(subject: &str) -> bool {
    PRONOUNS.contains(&subject)
}

pub(super) fn is_volatile(attribute: &str) -> bool {
    VOLATILE.contains(&attribute)
}

fn strip(mut text: &str) -> &str {
    while let Some((first, rest)) = text.split_once(' ') {
        if !DETERMINERS.contains(&first) {
            break;
        }
        text = rest;
    }
    text
}

/// Splits `flight TK129 departure time` into subject and attribute: the attribute is the run of plain words at the end.
/// A text of plain words only is an attribute without a subject.
pub(super) fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let is_plain = |word: &str| word.chars().all(|c| c.is_lowercase() || c == '_' || c == '-' || c == '\'');
    let mut start = text.len();
    for (index, word) in words(text).rev() {
        if !is_plain(word) {
            break;
        }
        start = index;
    }
    let (subject, attribute) = text.split_at_checked(start).unwrap_or((text, ""));
    let has = ["has the following ", "has the ", "has a ", "has an ", "has "];
    let attribute = has.iter().find_map(|has| attribute.trim_start().strip_prefix(has)).unwrap_or(attribute);
    let subject = subject.trim().trim_end_matches('*');
    match (subject.trim(), attribute.trim()) {
        (subject, "") if !subject.bytes().any(|byte| byte.is_ascii_digit()) => ("", subject),
        // `Flight` in `Flight price` begins a sentence and names nothing.
        (subject, attribute) if !names_something(subject, attribute) => ("", text),
        parts => parts,
    }
}

/// True if a subject has a number, or a capital beyond the first word of a sentence.
fn names_something(subject: &str, attribute: &str) -> bool {
    attribute.is_empty()
        || subject.chars().any(|c| c.is_ascii_digit())
        || subject.chars().filter(|c| c.is_uppercase()).count() > 1
}

/// The words of a text with their offsets: what stands between white space.
pub(super) fn words(text: &str) -> Words<'_> {
    Words { text, from: 0, to: text.len() }
}

/// The words of a text; ASCII is read by bytes, which takes half as long as by characters.
pub(super) struct Words<'t> {
    text: &'t str,
    from: usize,
    to: usize,
}

/// The length of the white space, or of the word, that a text begins with.
fn run(text: &str, is_space: bool) -> usize {
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        let (space, len) = match byte {
            b' ' | 9..=13 => (true, 1),
            0..=127 => (false, 1),
            _ => text
                .get(at..)
                .and_then(|rest| rest.chars().next())
                .map_or((false, 1), |c| (c.is_whitespace(), c.len_utf8())),
        };
        if space != is_space {
            break;
        }
        at += len;
    }
    at
}

impl<'t> Iterator for Words<'t> {
    type Item = (usize, &'t str);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.from..self.to)?;
        let start = self.from + run(rest, true);
        let rest = self.text.get(start..self.to)?;
        let word = rest.get(..run(rest, false)).filter(|word| !word.is_empty())?;
        self.from = start + word.len();
        Some((start, word))
    }
}

impl<'t> DoubleEndedIterator for Words<'t> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.from..self.to)?.trim_end();
        let start = rest.rfind(char::is_whitespace);
        let start = start.and_then(|at| Some(at + rest.get(at..)?.chars().next()?.len_utf8())).unwrap_or(0);
        let word = rest.get(start..).filter(|word| !word.is_empty())?;
        self.to = self.from + start;
        Some((self.to, word))
    }
}
