//! Claims of sentences: "the X of Y is V", "Y's X is V", "Y has N X", "Y costs V".

use super::{Claims, MAX_PART_LEN, normalise, subject};

/// The words between a subject with its attribute and the value; longer ones first.
const COPULAS: [&str; 46] = [
    " has been moved to ",
    " has been set to ",
    " was confirmed as ",
    " is confirmed as ",
    " turned out to be ",
    " works out at ",
    " came out as ",
    " came out at ",
    " came in at ",
    " changed from ",
    " moved from ",
    " went from ",
    " rose from ",
    " fell from ",
    " came to ",
    " comes to ",
    " has been changed to ",
    " has been updated to ",
    " has changed to ",
    " was changed to ",
    " was updated to ",
    " is currently ",
    " was set to ",
    " is set to ",
    " is now at ",
    " stands at ",
    " changed to ",
    " moved to ",
    " remains at ",
    " is still ",
    " rose to ",
    " fell to ",
    " dropped to ",
    " increased to ",
    " decreased to ",
    " remains ",
    " is listed as ",
    " is now ",
    " equals ",
    " became ",
    " reads ",
    " is at ",
    " is ",
    " are ",
    " was ",
    " were ",
];

/// The copulas by their first letter, which follows the blank.
static COPULAS_BY_LETTER: [u64; 256] = by_byte(&COPULAS, 1);

/// Verbs whose object is a quantity, a time or a code; the verb is the attribute, except that `costs` states a `price`.
const VERBS: [&str; 22] = [
    "costs",
    "departs",
    "arrives",
    "opens",
    "closes",
    "weighs",
    "measures",
    "expires",
    "starts",
    "begins",
    "ends",
    "leaves",
    "lands",
    "totals",
    "boards",
    "holds",
    "contains",
    "scored",
    "processed",
    "sells",
    "charges",
    "runs",
];

static VERBS_BY_LETTER: [u64; 256] = by_byte(&VERBS, 0);

/// Words that make a sentence no statement of fact.
static DOUBTS: Openings<14> = Openings::new([
    "if ", "whether ", "what ", "when ", "where ", "which ", "who ", "why ", "how ", "maybe ", "perhaps ", "could ",
    "would ", "is ",
]);

/// Words about how sure a speaker is of what follows. A guess claims something too: it loses against what is
/// known by its status and source, and not by being passed over.
static HEDGES: Openings<30> = Openings::new([
    "i believe ",
    "i think ",
    "i guess ",
    "i assume ",
    "i suppose ",
    "i recall ",
    "i remember ",
    "i expect ",
    "i would say ",
    "i'd say ",
    "i'm fairly sure ",
    "i am fairly sure ",
    "i'm pretty sure ",
    "i am pretty sure ",
    "i'm quite sure ",
    "i am quite sure ",
    "i'm sure ",
    "i am sure ",
    "we believe ",
    "we think ",
    "my guess is ",
    "my understanding is ",
    "it seems ",
    "it appears ",
    "it looks like ",
    "as far as i know, ",
    "if i remember correctly, ",
    "from memory, ",
    "probably ",
    "that ",
]);

/// Adverbs before a value.
static ADVERBS: Openings<8> =
    Openings::new(["probably ", "likely ", "presumably ", "apparently ", "currently ", "still ", "now ", "already "]);

/// Words that a text may begin with, and their first letters in both cases.
struct Openings<const N: usize> {
    words: [&'static str; N],
    by_letter: [u64; 256],
}

impl<const N: usize> Openings<N> {
    const fn new(words: [&'static str; N]) -> Self {
        let mut by_letter = by_byte(&words, 0);
        let mut letter = b'a';
        while letter <= b'z' {
            by_letter[letter.to_ascii_uppercase() as usize] |= by_letter[letter as usize];
            letter += 1;
        }
        Openings { words, by_letter }
    }

    /// The first of the words that a text begins with, in any case, and the rest.
    fn split<'t>(&self, text: &'t str) -> Option<(&'static str, &'t str)> {
        let bits = text.bytes().next().map_or(0, |byte| self.by_letter[usize::from(byte)]);
        chosen(&self.words, bits).find_map(|word| {
            let (start, rest) = text.split_at_checked(word.len())?;
            start.eq_ignore_ascii_case(word).then_some((word, rest))
        })
    }

    /// A text without those of the words that it begins with.
    fn strip<'t>(&self, mut text: &'t str) -> &'t str {
        while let Some((_, rest)) = self.split(text) {
            text = rest;
        }
        text
    }
}

/// Verbs of who tells a value: `the desk lists the gate of UA123 as B12`, `they set it to …`.
const TELLING: [&str; 20] = [
    "lists", "shows", "reports", "gives", "records", "quotes", "puts", "displays", "set", "sets", "listed", "showed",
    "reported", "gave", "recorded", "quoted", "put", "changed", "moved", "marks",
];

static TELLING_BY_LETTER: [u64; 256] = by_byte(&TELLING, 0);

/// For each byte, a bit for each of some words that has it at a place. Comparing every word of a text with each of a
/// list would take a sixth of an ingest.
const fn by_byte<const N: usize>(words: &[&str; N], at: usize) -> [u64; 256] {
    let mut with = [0; 256];
    let mut nth = 0;
    while nth < N {
        with[words[nth].as_bytes()[at] as usize] |= 1 << nth;
        nth += 1;
    }
    with
}

/// Those of some words whose bits are set, in their order.
fn chosen<'w>(words: &'w [&'static str], mut bits: u64) -> impl Iterator<Item = &'static str> + 'w {
    std::iter::from_fn(move || {
        let nth = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        words.get(nth).copied()
    })
}

/// True if a word is one of some.
fn is_one_of(words: &[&'static str], by_letter: &[u64; 256], word: &str) -> bool {
    let bits = word.bytes().next().map_or(0, |byte| by_letter[usize::from(byte)]);
    bits != 0 && chosen(words, bits).any(|other| other == word)
}

/// Words that open a sentence with what it is about: `For flight UA123, the gate is B12`.
static ABOUTS: Openings<8> =
    Openings::new(["for ", "with ", "regarding ", "concerning ", "as for ", "about ", "at ", "on "]);

/// Plain words that a number's name has at most.
const MAX_NAME_WORDS: usize = 3;

/// Words before a name that do not belong to it.
const PARTICLES: [&str; 21] = [
    "up", "of", "for", "with", "about", "on", "to", "the", "a", "an", "at", "in", "by", "is", "was", "are", "has",
    "and", "that", "than", "from",
];

/// Ends of a value that say when or since when.
const TAILS: [&str; 12] = [
    " today",
    " now",
    " yesterday",
    " anymore",
    " this morning",
    " at the moment",
    " as of now",
    " right now",
    " for now",
    " at present",
    " since then",
    " already",
];

/// The thing and the attribute that sentences spoke of last.
#[derive(Default)]
struct Topic<'t> {
    name: &'t str,
    attribute: &'t str,
    /// Sentences since the name was settled. What they name is looked for only where a sentence asks for it.
    unread: Vec<&'t str>,
}

impl<'t> Topic<'t> {
    fn name(&mut self) -> &'t str {
        self.name = self.unread.iter().rev().find_map(|sentence| mention(sentence)).unwrap_or(self.name);
        self.unread.clear();
        self.name
    }

    fn set(&mut self, name: &'t str, attribute: &'t str) {
        (self.name, self.attribute) = (name, attribute);
        self.unread.clear();
    }
}

/// Adds the claims of a text; a sentence without a subject of its own is about `about`, or about what the sentence
/// before named.
pub(super) fn extract(about: &str, text: &str, claims: &mut Claims<'_>) {
    let mut topic = Topic::default();
    for sentence in sentences(text) {
        if sentence.ends_with('?') {
            continue;
        }
        let before = claims.found.len();
        for clause in clauses(HEDGES.strip(sentence)) {
            let clause = HEDGES.strip(clause);
            let (lead, clause) = split_lead(clause);
            let clause = HEDGES.strip(clause);
            let about = if lead.is_empty() { about } else { lead };
            if !is_doubted(clause) {
                let _ = copula(about, clause, &mut topic, claims)
                    || told(clause, claims)
                    || numeric(clause, claims)
                    || verb(clause, claims);
            }
        }
        if claims.found.len() == before {
            topic.unread.push(sentence);
        }
    }
}

/// The opening of a clause and the rest: `For flight UA123, …`, `Good news about UA123: …`, `Correction: …`. The
/// opening is empty unless it names a thing.
fn split_lead(clause: &str) -> (&str, &str) {
    if let Some((word, _)) = ABOUTS.split(clause)
        && let Some((lead, rest)) = clause.split_once(", ")
        && let Some(name) = lead.get(word.len()..).filter(|name| name.len() <= MAX_PART_LEN)
        && mention(lead).is_some()
    {
        return (name, rest);
    }
    if !clause.contains(": ") {
        return ("", clause);
    }
    let Some((lead, rest)) = clause.split_once(": ").filter(|(lead, _)| lead.len() <= MAX_PART_LEN) else {
        return ("", clause);
    };
    if !states(rest) {
        return ("", clause);
    }
    let named = [" about ", " on ", " regarding ", " for "].iter().find_map(|word| Some(lead.split_once(word)?.1));
    (named.or_else(|| mention(lead)).unwrap_or_default(), rest)
}

/// The last thing that a sentence names: a run of words with capitals or digits that does not open it, or a code.
fn mention(sentence: &str) -> Option<&str> {
    let is_name = |word: &str| {
        word.starts_with(char::is_uppercase) || subject::is_code(word) || word.starts_with(|c: char| c.is_ascii_digit())
    };
    let mut found = None;
    let mut run: Option<(usize, usize)> = None;
    for (at, word) in subject::words(sentence) {
        let word = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        let opens = at == 0 && !subject::is_code(word);
        if is_name(word) && word != "I" && !opens {
            run = Some((run.map_or(at, |(start, _)| start), at + word.len()));
            found = run;
        } else {
            run = None;
        }
    }
    let (start, end) = found?;
    let name = sentence.get(start..end)?;
    match name.contains(char::is_alphabetic) {
        true => Some(name),
        false => numbered(sentence, start, end),
    }
}

/// A thing named by a number behind plain words: `ledger batch 92` in `We looked up ledger batch 92`.
fn numbered(sentence: &str, start: usize, end: usize) -> Option<&str> {
    let before = sentence.get(..start)?.trim_end();
    let mut first = start;
    for (at, word) in subject::words(before).rev().take(MAX_NAME_WORDS) {
        let is_plain = word.chars().all(|c| c.is_lowercase() || c == '-');
        if !is_plain || at == 0 || PARTICLES.contains(&word) {
            break;
        }
        first = at;
    }
    sentence.get(first..end).filter(|_| first < start)
}

/// The newest value of what a copula is followed by: `not B but V`, `B and is now V`, `V, not B`, `V today`. `None`
/// where only what no longer holds is said.
fn newest(value: &str) -> Option<&str> {
    let mut value = value.trim();
    for turn in [" and is now ", " but is now ", " but now ", " and now ", ", now "] {
        value = value.split_once(turn).map_or(value, |(_, newest)| newest);
    }
    if value.starts_with("not ") || value.starts_with("no longer ") {
        value = value.split_once(" but ")?.1;
    }
    value = ADVERBS.strip(value);
    for turn in [", not ", " instead of ", " rather than ", ", up from ", ", down from ", " (was ", " (previously "] {
        value = value.split_once(turn).map_or(value, |(newest, _)| newest);
    }
    if let Some((head, tail)) = value.split_once(", ")
        && tail.starts_with(char::is_lowercase)
        && tail.contains(' ')
    {
        value = head;
    }
    value = value.trim_end_matches(['.', '!']);
    while let Some(shorter) = TAILS.iter().find_map(|tail| value.strip_suffix(tail)) {
        value = shorter;
    }
    Some(value.trim())
}

/// "The desk lists the X of Y as V", "they set the X of Y to V", "the page shows an X of V for Y".
fn told(clause: &str, claims: &mut Claims<'_>) -> bool {
    let is_telling = |(_, word): &(usize, &str)| is_one_of(&TELLING, &TELLING_BY_LETTER, word);
    let Some((at, verb)) = subject::words(clause).find(is_telling) else { return false };
    let Some(rest) = clause.get(at + verb.len()..).map(str::trim) else { return false };
    if let Some(rest) = rest.strip_prefix("a ").or_else(|| rest.strip_prefix("an "))
        && let Some((attribute, rest)) = rest.split_once(" of ")
        && let Some((value, name)) = rest.rsplit_once(" for ").or_else(|| rest.rsplit_once(" on "))
    {
        claims.add(name.trim_end_matches('.'), attribute, value);
        return true;
    }
    let ends = [" as ", " to ", " at "].iter().filter_map(|word| rest.rfind(word).map(|at| (at, word.len())));
    let Some((at, len)) = ends.max() else { return false };
    let (Some(left), Some(value)) = (rest.get(..at), rest.get(at + len..)) else { return false };
    let (name, attribute) = parts(left);
    let Some(value) = newest(value).filter(|_| !name.is_empty() && left.len() <= MAX_PART_LEN) else { return false };
    claims.add(name, attribute, value);
    true
}

/// The noun phrase at the end of some words: what follows the last determiner.
fn noun_phrase(words: &str) -> &str {
    let starts = [" the ", " a ", " an ", " its ", " their ", " that "];
    let begin = starts.iter().filter_map(|start| words.rfind(start).map(|at| at + start.len())).max();
    begin.and_then(|begin| words.get(begin..)).unwrap_or(words)
}

/// "the X of Y is V", "Y's X is V", "Y X is V"; with `about`, "the X is V".
///
/// `it` is what was spoken of last.
fn copula<'t>(about: &'t str, clause: &'t str, topic: &mut Topic<'t>, claims: &mut Claims<'_>) -> bool {
    let Some((at, copula)) = first_copula(clause, MAX_PART_LEN) else { return false };
    let (Some(left), Some(value)) = (clause.get(..at), clause.get(at + copula.len()..)) else { return false };
    let left = left.trim();
    let value = if copula.ends_with(" from ") { value.split_once(" to ").map(|(_, to)| to) } else { Some(value) };
    let Some(value) = value else { return false };
    let (mut name, mut attribute) = parts(left);
    if left.len() > MAX_PART_LEN {
        return false;
    }
    if !topic.attribute.is_empty() && ["it", "this", "that"].iter().any(|word| left.eq_ignore_ascii_case(word)) {
        (name, attribute) = (topic.name(), topic.attribute);
    }
    if name.is_empty() {
        name = if about.is_empty() { topic.name() } else { about };
    }
    if !attribute.is_empty() {
        topic.set(name, attribute);
    }
    let Some(value) = newest(value).filter(|value| value.split_whitespace().count() <= 8) else { return false };
    if attribute.is_empty() {
        // "Flight TK129 is delayed": one plain word is its state.
        let is_word = !value.is_empty() && value.trim_end_matches('.').chars().all(char::is_alphabetic);
        if !is_word || subject::is_pronoun(&subject::subject(name)) {
            return false;
        }
        claims.add(name, "state", value);
        return true;
    }
    claims.add(name, attribute, value);
    !name.is_empty()
}

/// The first copula of a text, with its place; of those at one place the first of [`COPULAS`]. Behind more than `most`
/// letters, figures and marks of ASCII none is looked for. One pass over the text: a search for each copula would take
/// a third of an ingest.
fn first_copula(text: &str, most: usize) -> Option<(usize, &'static str)> {
    let mut passed = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte != b' ' {
            passed += usize::from(byte.is_ascii_graphic());
            continue;
        }
        if passed > most {
            return None;
        }
        let next = text.as_bytes().get(at + 1).copied().unwrap_or_default();
        let bits = COPULAS_BY_LETTER[usize::from(next)];
        if bits != 0
            && let Some(rest) = text.get(at..)
            && let Some(copula) = chosen(&COPULAS, bits).find(|copula| rest.starts_with(copula))
        {
            return Some((at, copula));
        }
    }
    None
}

/// True if a text has a copula.
pub(super) fn states(text: &str) -> bool {
    first_copula(text, usize::MAX).is_some()
}

/// Subject and attribute of the words before a copula.
pub(super) fn parts(left: &str) -> (&str, &str) {
    let possessive = ["'s ", "\u{2019}s "].iter().find_map(|mark| left.split_once(mark));
    if let Some((name, attribute)) = possessive {
        return (noun_phrase(name), attribute);
    }
    for preposition in [" of ", " for "] {
        let Some((attribute, name)) = left.split_once(preposition) else { continue };
        let counts =
            attribute.rsplit(' ').next().is_some_and(|word| matches!(word, "number" | "amount" | "count" | "total"));
        if counts && let Some((counted, owner)) = name.split_once(" of ").or_else(|| name.split_once(" for ")) {
            return (owner, counted);
        }
        return (name, noun_phrase(attribute));
    }
    subject::split(left)
}

/// "Batch 9269 has 45,155 records processed", "Batch 9269 has a backlog of 12".
fn numeric(clause: &str, claims: &mut Claims<'_>) -> bool {
    if !clause.contains(" ha") {
        return false;
    }
    let Some((name, rest)) = [" has ", " have ", " had "].iter().find_map(|verb| clause.split_once(verb)) else {
        return false;
    };
    if name.len() > MAX_PART_LEN {
        return false;
    }
    let name = name.trim_end_matches(" now").trim_end_matches(" currently").trim_end_matches(" still");
    let is_article = rest.starts_with("a ") || rest.starts_with("an ");
    let is_value = |value: &str| is_measure(value) || (is_article && value.split_whitespace().count() <= 4);
    if let Some((attribute, value)) = rest.split_once(" of ").filter(|(_, value)| is_value(value)) {
        claims.add(name, attribute, value.trim_end_matches('.'));
        return true;
    }
    let Some((value, attribute)) = rest.split_once(' ').filter(|(value, _)| is_measure(value)) else { return false };
    claims.add(name, attribute, value);
    true
}

/// "Flight TK129 departs at 20:15".
fn verb(clause: &str, claims: &mut Claims<'_>) -> bool {
    let is_verb = |(_, word): &(usize, &str)| is_one_of(&VERBS, &VERBS_BY_LETTER, word);
    let mut near = subject::words(clause).take_while(|(at, _)| *at <= MAX_PART_LEN);
    let Some((at, verb)) = near.find(is_verb) else { return false };
    let (Some(name), Some(rest)) = (clause.get(..at), clause.get(at + verb.len()..)) else { return false };
    let rest = rest.trim();
    let prepositions = ["at ", "on ", "for ", "from ", "to ", "in ", "about "];
    let value = prepositions.iter().find_map(|preposition| rest.strip_prefix(preposition)).unwrap_or(rest);
    if !is_measure(value) {
        return false;
    }
    // A thing that costs 5 has the price 5.
    claims.add(name, if verb == "costs" { "price" } else { verb }, value);
    true
}

/// True if a value has a number in its first two words: a quantity, a date, a time or a code.
fn is_measure(value: &str) -> bool {
    value.len() <= MAX_PART_LEN
        && value.bytes().any(|byte| byte.is_ascii_digit())
        && value.split_whitespace().count() <= 4
        && normalise(value).split(' ').take(2).any(|word| word.bytes().any(|byte| byte.is_ascii_digit()))
}

fn is_doubted(clause: &str) -> bool {
    DOUBTS.split(clause).is_some()
}

/// Sentences: up to a mark followed by a blank, with the mark.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    split_after(text, |text, at, byte| {
        matches!(byte, b'.' | b'!' | b'?')
            && text.as_bytes().get(at + 1).is_none_or(u8::is_ascii_whitespace)
            && !is_abbreviation(text, at)
    })
}

/// A mark behind one letter (`U.S. dollars`, `p.m.`) ends no sentence unless a capital follows.
fn is_abbreviation(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let word_len = before.bytes().rev().take_while(u8::is_ascii_alphabetic).count();
    let next = text.get(at + 1..).unwrap_or_default().trim_start().chars().next();
    word_len == 1 && next.is_some_and(|c| !c.is_uppercase())
}

/// Clauses of a sentence: between semicolons, and before ", and", ", but" and the like.
fn clauses(sentence: &str) -> impl Iterator<Item = &str> {
    split_after(sentence, |text, at, byte| {
        if byte != b',' {
            return byte == b';';
        }
        let behind = text.get(at + 1..).unwrap_or_default();
        let is_joined = [" and ", " but ", " while ", " so ", " though ", " whereas ", " according "];
        is_joined.iter().any(|word| behind.starts_with(word)) || is_opening(text, at)
    })
}

/// "According to the desk, …": what opens a sentence before its first comma.
fn is_opening(text: &str, at: usize) -> bool {
    // Checked first: looking for the first word costs its length at every comma.
    if at > MAX_PART_LEN {
        return false;
    }
    let first = text.get(..at).unwrap_or_default().split(' ').next().unwrap_or_default();
    matches!(
        first,
        "According" | "As" | "In" | "On" | "At" | "After" | "Now" | "Currently" | "Today" | "Update" | "From"
    )
}

/// Parts that end behind each byte `is_end` accepts, trimmed of blanks, commas, semicolons and joining words.
fn split_after(text: &str, is_end: impl Fn(&str, usize, u8) -> bool) -> impl Iterator<Item = &str> {
    let mut start = 0;
    let parts = std::iter::from_fn(move || {
        let rest = text.as_bytes().get(start..).filter(|rest| !rest.is_empty())?;
        let end =
            rest.iter().zip(start..).find(|(byte, at)| is_end(text, *at, **byte)).map_or(text.len(), |(_, at)| at + 1);
        let part = text.get(start..end);
        start = end;
        Some(part)
    });
    parts.flatten().filter_map(|part| {
        let part = part.trim().trim_end_matches([',', ';']);
        let joined = ["and ", "but ", "while ", "so ", "though ", "whereas "];
        Some(joined.iter().find_map(|word| part.strip_prefix(word)).unwrap_or(part)).filter(|part| !part.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Words of copulas and others in any order, against a search for each copula.
        #[test]
        fn the_first_copula_is_that_of_a_search_for_each(picks in prop::collection::vec(0..COPULAS.len() + 4, 0..8)) {
            let others = ["price", " ", "  now", "é"];
            let word = |pick: &usize| COPULAS.iter().chain(&others).nth(*pick).copied();
            let words: Vec<&str> = picks.iter().filter_map(word).collect();
            for text in [words.concat(), words.concat().replace("  ", " "), words.concat().trim().to_owned()] {
                let found = COPULAS.iter().filter_map(|copula| Some((text.find(copula)?, *copula)));
                let first = found.min_by_key(|(at, _)| *at);
                prop_assert_eq!(first_copula(&text, usize::MAX), first);
                let near = first.filter(|(at, _)| text[..*at].bytes().filter(u8::is_ascii_graphic).count() <= 12);
                prop_assert_eq!(first_copula(&text, 12), near);
            }
        }
    }
}
