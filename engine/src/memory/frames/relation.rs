//! The relation of two aligned statements, for one question: whether they are of one frame, and which of them may
//! stand first because it is newer.
//!
//! | relation | when | the newer one may lead |
//! |---|---|---|
//! | restatement | equal tokens | yes |
//! | variant | replacements, or insertions of common words inside; *anchored* | yes |
//! | near | the same, not anchored, one difference | if its similarity is near that of the seed |
//! | slots | the same, not anchored, several differences | likewise, nearer |
//! | claim | structured claims of one name that the question has whole, in any form (`recall::group`) | yes |
//! | qualified | an insertion at an end, or of a rarer word inside, in texts under 30 tokens | never |
//!
//! **The subject must not differ.** Two statements are of different frames if a differing token of either has its stem
//! in the question, that stem is not among the shared ones, and the token has a digit or a weight of at least
//! [`NAMED_WEIGHT`] ([`NAMED_WEIGHT_LONG`] in long texts, since a record may gain a field that the question names). Of
//! scripts without spaces, pairs of adjacent characters are tested. This one test replaces the extraction of subjects,
//! in any language.
//!
//! A frame is *anchored* if a shared token of the question has a digit, or a weight of at least [`ANCHOR_WEIGHT`] in a
//! layer of [`ANCHOR_DOCUMENTS`] items or more: then the subject is sure, and similarity need not confirm it.
//!
//! The weight of a word is `ln(1 + n / df) / ln(1 + n)`, with n items in the layer and df of them with the word; 1 for
//! a word that the layer lacks.

use crate::Result;
use crate::memory::frames::align::{Alignment, Difference, LONG, align};
use crate::memory::frames::tokens::{FrameText, Token, each_token, pair_hash, stem_hash};
use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Least weight of a token that counts as named by the question.
const NAMED_WEIGHT: f32 = 0.2;
const NAMED_WEIGHT_LONG: f32 = 0.5;
/// Least weight of a shared word of the question that makes the subject sure.
const ANCHOR_WEIGHT: f32 = 0.5;
/// Least number of items of a layer whose weights tell a rare word.
const ANCHOR_DOCUMENTS: u64 = 100;
/// Weight below which an inserted word qualifies nothing.
const LIGHT_WEIGHT: f32 = 0.35;

/// Words of a question that an identifier joins, at most.
const MAX_JOINED: usize = 3;
/// Letters of a part of an identifier that names something alone: `garcia` of `aarav_garcia_1177`.
const MIN_PART_CHARS: usize = 3;

/// The tokens of a question.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    /// Its words by stem, in compared form, and the parts of its identifiers.
    pub(crate) words: HashMap<u32, String, RandomState>,
    /// The stems of its codes: tokens with a letter and a digit.
    pub(crate) codes: Vec<u32>,
    /// Adjacent words as identifiers are written, `departure_time` and `departureTime`, with the stems of the words.
    pub(crate) joined: HashMap<u32, Vec<u32>, RandomState>,
    /// The adjacent pairs of characters of scripts without spaces.
    pairs: HashSet<u32, RandomState>,
}

impl Asked {
    /// The tokens of a question.
    pub(crate) fn new(question: &str) -> Asked {
        let mut asked = Asked::default();
        let mut before: Option<Token> = None;
        let mut last: Vec<(String, u32)> = Vec::new();
        each_token(question, |written, _| {
            let token = written.token();
            if token.is_single {
                last.clear();
            } else {
                last.push((written.folded.to_owned(), token.stem));
                asked.join(&last);
            }
            match (token.is_single, before.filter(|before| before.is_single)) {
                (true, Some(before)) => drop(asked.pairs.insert(pair_hash(before.word, token.word))),
                (true, None) => {}
                (false, _) => asked.add(written.folded, token),
            }
            before = Some(token);
        });
        asked
    }

    /// Adds the last two and the last three words as identifiers.
    fn join(&mut self, words: &[(String, u32)]) {
        for count in 2..=MAX_JOINED.min(words.len()) {
            let (texts, stems): (Vec<&str>, Vec<u32>) =
                words[words.len() - count..].iter().map(|(text, stem)| (text.as_str(), *stem)).unzip();
            for identifier in [texts.join("_"), texts.concat()] {
                self.joined.entry(stem_hash(&identifier)).or_insert_with(|| stems.clone());
            }
        }
    }

    fn add(&mut self, folded: &str, token: Token) {
        let is_code = token.has_digit && folded.chars().any(char::is_alphabetic);
        if is_code || folded.contains('_') {
            let parts =
                folded.split(|c: char| !c.is_alphabetic()).filter(|part| part.chars().count() >= MIN_PART_CHARS);
            for part in parts.filter(|part| *part != folded) {
                self.words.entry(stem_hash(part)).or_insert_with(|| part.to_owned());
            }
        }
        if is_code && !self.codes.contains(&token.stem) {
            self.codes.push(token.stem);
        }
        self.words.entry(token.stem).or_insert_with(|| folded.to_owned());
    }

    /// True if the question has every word of a name.
    pub(crate) fn names(&self, name: &[u32]) -> bool {
        !name.is_empty() && name.iter().all(|stem| self.words.contains_key(stem))
    }

    fn has(&self, token: &Token) -> bool {
        !token.is_single && self.words.contains_key(&token.stem)
    }
}

/// The weights of words in the layer of two statements.
pub(crate) trait Weigh {
    /// The number of items of the layer.
    fn documents(&self) -> u64;
    /// The weight of a word of the question, by its stem.
    fn of_question(&self, stem: u32) -> f32;
    /// The weight of the token at a place of the first text, or of the second.
    fn of_text(&mut self, is_second: bool, place: usize) -> Result<f32>;
}

/// A statement to be compared with others of its layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compared<'t> {
    pub(crate) text: &'t FrameText,
    pub(crate) speaker: Option<u32>,
    pub(crate) episode: Option<u32>,
    /// It was spoken in a conversation.
    pub(crate) is_turn: bool,
}

/// The relation of a statement to the seed of its frame. Ranges are of tokens, first those of the seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Relation {
    /// Equal tokens.
    Restatement,
    /// Another value of one frame, whose subject is sure.
    Variant(Vec<Difference>),
    /// Another value of a frame whose subject similarity has to confirm.
    Near(Vec<Difference>),
    /// The same with several differences.
    Slots(Vec<Difference>),
    /// One says more, which may restrict it.
    Qualified(Vec<Difference>),
    /// Both state a claim of one name in another form, and the question has that name whole.
    Claim,
    /// The statement says in other words what the first row says, and is of worse status or source.
    Weaker,
}

impl Relation {
    /// The differences; none for equal tokens and for other words.
    pub(crate) fn differences(&self) -> &[Difference] {
        match self {
            Relation::Variant(found) | Relation::Near(found) | Relation::Slots(found) | Relation::Qualified(found) => {
                found
            }
            Relation::Restatement | Relation::Claim | Relation::Weaker => &[],
        }
    }
}

/// The relation of a statement to a seed of the same layer; `None` if they are of different frames.
pub(crate) fn relate(
    asked: &Asked,
    seed: Compared<'_>,
    other: Compared<'_>,
    weigh: &mut impl Weigh,
) -> Result<Option<Relation>> {
    if seed.speaker != other.speaker || seed.text.asks != other.text.asks {
        return Ok(None);
    }
    let (a, b) = (seed.text, other.text);
    let is_long = a.tokens.len().min(b.tokens.len()) >= LONG;
    // Long turns that are alike are drafts and pasted text, not readings of one value.
    if is_long && seed.is_turn {
        return Ok(a.is_equal(b).then_some(Relation::Restatement));
    }
    let differences = match align(a, b) {
        None => return Ok(None),
        Some(Alignment::Equal) => return Ok(Some(Relation::Restatement)),
        Some(Alignment::Differing(differences)) => differences,
    };
    let shared = Shared::new(&a.tokens, &differences);
    let least = if is_long { NAMED_WEIGHT_LONG } else { NAMED_WEIGHT };
    let of_first: Vec<Range<usize>> = differences.iter().map(|difference| difference.first.clone()).collect();
    let of_second: Vec<Range<usize>> = differences.iter().map(|difference| difference.second.clone()).collect();
    if shared.lacks_named(asked, &a.tokens, &of_first, least, weigh)
        || shared.lacks_named(asked, &b.tokens, &of_second, least, weigh)
    {
        return Ok(None);
    }
    let is_asked = |stem: &u32| asked.words.contains_key(stem);
    if (seed.episode != other.episode || shared.count < 2)
        && !shared.stems.iter().any(is_asked)
        && !shared.pairs.iter().any(|pair| asked.pairs.contains(pair))
    {
        return Ok(None);
    }
    if !is_long && is_qualified(a, b, &differences, weigh)? {
        return Ok(Some(Relation::Qualified(differences)));
    }
    let counts_as_rare = weigh.documents() >= ANCHOR_DOCUMENTS;
    let is_anchor = |token: &&Token| {
        asked.has(token) && (token.has_digit || (counts_as_rare && weigh.of_question(token.stem) >= ANCHOR_WEIGHT))
    };
    let is_anchored = outside(&a.tokens, &differences).any(|token| is_anchor(&token));
    Ok(Some(match is_anchored {
        true => Relation::Variant(differences),
        false if differences.len() <= 1 || is_long => Relation::Near(differences),
        false => Relation::Slots(differences),
    }))
}

/// The tokens of the first text outside of the differences.
fn outside<'t>(tokens: &'t [Token], differences: &'t [Difference]) -> impl Iterator<Item = &'t Token> {
    let is_outside = |at: &usize| !differences.iter().any(|difference| difference.first.contains(at));
    (0..tokens.len()).filter(is_outside).filter_map(|at| tokens.get(at))
}

/// The tokens that two texts share.
struct Shared {
    count: usize,
    stems: HashSet<u32, RandomState>,
    pairs: HashSet<u32, RandomState>,
}

impl Shared {
    fn new(tokens: &[Token], differences: &[Difference]) -> Shared {
        let is_outside = |at: usize| !differences.iter().any(|difference| difference.first.contains(&at));
        let mut shared = Shared { count: 0, stems: HashSet::default(), pairs: HashSet::default() };
        for (at, token) in tokens.iter().enumerate().filter(|(at, _)| is_outside(*at)) {
            shared.count += 1;
            shared.stems.insert(token.stem);
            if let Some(next) =
                tokens.get(at + 1).filter(|next| token.is_single && next.is_single && is_outside(at + 1))
            {
                shared.pairs.insert(pair_hash(token.word, next.word));
            }
        }
        shared
    }

    /// True if a differing token of a text is named by the question and not shared.
    fn lacks_named(
        &self,
        asked: &Asked,
        tokens: &[Token],
        differing: &[Range<usize>],
        least: f32,
        weigh: &impl Weigh,
    ) -> bool {
        let pair = |first: usize| -> Option<u32> {
            let (first, second) = (tokens.get(first)?, tokens.get(first + 1)?);
            (first.is_single && second.is_single).then(|| pair_hash(first.word, second.word))
        };
        let is_named_pair =
            |first: usize| pair(first).is_some_and(|pair| asked.pairs.contains(&pair) && !self.pairs.contains(&pair));
        differing.iter().flat_map(Clone::clone).any(|at| match tokens.get(at) {
            Some(token) if token.is_single => at.checked_sub(1).is_some_and(is_named_pair) || is_named_pair(at),
            Some(token) if least < NAMED_WEIGHT_LONG && asked.joined.contains_key(&token.stem) => {
                !self.stems.contains(&token.stem)
            }
            Some(token) => {
                asked.has(token)
                    && !self.stems.contains(&token.stem)
                    && (token.has_digit || weigh.of_question(token.stem) >= least)
            }
            None => false,
        })
    }
}

/// True if one text has more than the other at an end, or a rarer word more inside: "Suppose", "last year", "not".
fn is_qualified(a: &FrameText, b: &FrameText, differences: &[Difference], weigh: &mut impl Weigh) -> Result<bool> {
    for Difference { first, second } in differences {
        if !first.is_empty() && !second.is_empty() {
            continue;
        }
        let is_at_end = |range: &Range<usize>, text: &FrameText| range.start == 0 || range.end == text.tokens.len();
        if is_at_end(first, a) || is_at_end(second, b) {
            return Ok(true);
        }
        for (is_second, range) in [(false, first), (true, second)] {
            for place in range.clone() {
                if weigh.of_text(is_second, place)? >= LIGHT_WEIGHT {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weights as in a layer of many items, where the words of the list are common.
    struct Weights(&'static [&'static str], FrameText, FrameText);

    impl Weights {
        fn of(&self, word: u32) -> f32 {
            let common = self
                .0
                .iter()
                .any(|common| FrameText::new(common).tokens.iter().any(|t| t.word == word || t.stem == word));
            if common { 0.05 } else { 0.7 }
        }
    }

    impl Weigh for Weights {
        fn documents(&self) -> u64 {
            1_000
        }

        fn of_question(&self, stem: u32) -> f32 {
            self.of(stem)
        }

        fn of_text(&mut self, is_second: bool, place: usize) -> Result<f32> {
            let text = if is_second { &self.2 } else { &self.1 };
            Ok(self.of(text.tokens[place].word))
        }
    }

    fn related(question: &str, seed: &str, other: &str) -> &'static str {
        const COMMON: &[&str] = &["the", "is", "was", "now", "of", "what", "to", "and", "in", "a", "where", "went"];
        let (a, b) = (FrameText::new(seed), FrameText::new(other));
        let compared = |text| Compared { text, speaker: None, episode: Some(1), is_turn: true };
        let mut weights = Weights(COMMON, a.clone(), b.clone());
        match relate(&Asked::new(question), compared(&a), compared(&b), &mut weights).unwrap() {
            None => "none",
            Some(Relation::Restatement) => "restatement",
            Some(Relation::Variant(_)) => "variant",
            Some(Relation::Near(_)) => "near",
            Some(Relation::Slots(_)) => "slots",
            Some(Relation::Qualified(_)) => "qualified",
            Some(Relation::Claim | Relation::Weaker) => "of another form",
        }
    }

    #[test]
    fn a_new_value_is_a_variant() {
        assert_eq!(related("What is the rent?", "The rent is $850.", "The rent is $900."), "variant");
        assert_eq!(related("What is the rent?", "The rent is $850.", "The rent is now $900."), "variant");
        assert_eq!(related("How much do I pay a month?", "The rent is $850.", "The rent is $900."), "near");
        assert_eq!(related("Where is Mary?", "Mary went to the kitchen.", "Mary went to the hall."), "variant");
        assert_eq!(related("家賃はいくら", "家賃は850円です", "家賃は900円です"), "near");
    }

    #[test]
    fn what_the_question_names_must_not_differ() {
        assert_eq!(related("What does UA123 cost?", "UA123 costs $450.", "UA124 costs $450."), "none");
        assert_eq!(related("Where is Mary?", "Mary went to the kitchen.", "John went to the kitchen."), "none");
        assert_eq!(
            related("What was the rent in 2020?", "The rent was $700 in 2020.", "The rent was $900 in 2021."),
            "none"
        );
        assert_eq!(related("東京の天気", "東京の天気は雨です", "大阪の天気は雨です"), "none");
    }

    #[test]
    fn an_addition_qualifies() {
        for other in [
            "Suppose the rent is $700.",
            "The rent is $900 for guests.",
            "The rent is not $900.",
            "Last year the rent is $900.",
        ] {
            assert_eq!(related("What is the rent?", "The rent is $900.", other), "qualified", "{other}");
        }
    }

    #[test]
    fn questions_and_statements_are_apart() {
        assert_eq!(related("rent", "The rent is $900.", "The rent is $900?"), "none");
    }
}
