//! Query text to weighted terms.
//!
//! A query is analysed like a document. Every occurrence of a term adds to its weight: a word 1; a whole, a pair or a
//! second reading 1/2; the parts of one word 1/2 together; the joined digits of several groups 2. So a query for
//! `UA123` finds `UA 123` with half the strength of `UA123`.
//!
//! A surface weighs 1/5 **and takes the idf of its stem**: the stem is the evidence that the word occurred, the surface
//! adds only its form. With its own idf, the same evidence would count twice, most of all for rare inflections.

use std::collections::HashMap;

use crate::words::analysis::stop::is_stop_word;
use crate::words::analysis::{Analyzer, Role};

const WORD_WEIGHT: f32 = 1.0;
const WHOLE_WEIGHT: f32 = 0.5;
/// Measured on the Chinese questions of XQuAD: 1/4 and 1 find fewer right texts first.
const PAIR_WEIGHT: f32 = 0.5;
/// The groups of a number say little beside the number.
const JOINED_WEIGHT: f32 = 2.0;
const FOLDED_WEIGHT: f32 = 0.5;
const PARTS_WEIGHT: f32 = 0.5;
const SURFACE_WEIGHT: f32 = 0.2;

/// Distinct query terms in order of first occurrence, with weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WordQuery {
    terms: Vec<QueryTerm>,
}

/// A term of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryTerm {
    /// The dictionary key.
    pub key: Box<str>,
    /// The factor on its BM25 score.
    pub weight: f32,
    /// For a surface, the position of its stem among the query's terms.
    pub stem: Option<usize>,
}

impl WordQuery {
    /// Analyses `text` without its stop words, unless it has only stop words.
    pub fn new(analyzer: &Analyzer, text: &str) -> Self {
        let query = Self::of_words(analyzer, text, &|key| !is_stop_word(analyzer, key));
        if query.is_empty() { Self::of_words(analyzer, text, &|_| true) } else { query }
    }

    fn of_words(analyzer: &Analyzer, text: &str, keep: &dyn Fn(&str) -> bool) -> Self {
        let mut terms: Vec<QueryTerm> = Vec::new();
        let mut places: HashMap<Box<str>, usize> = HashMap::new();
        let (mut word, mut kept) = (0, true);
        let mut left_out = String::new();
        analyzer.start().run(text, &mut |term| {
            if term.role == Role::Word {
                kept = keep(term.key);
                left_out.clear();
                left_out.push_str(if kept { "" } else { term.key });
            }
            // A word of another language that looks like a stop word without its accents (`thé`) is none.
            if !kept && term.role == Role::Surface && !term.key.is_ascii() {
                kept = true;
                word = add(&mut terms, &mut places, &left_out, WORD_WEIGHT, None);
            }
            let depends_on_word = matches!(term.role, Role::Word | Role::Surface | Role::Folded | Role::Part { .. });
            if !kept && depends_on_word {
                return;
            }
            let weight = match term.role {
                Role::Word => WORD_WEIGHT,
                Role::Surface => SURFACE_WEIGHT,
                Role::Folded => FOLDED_WEIGHT,
                Role::Part { of } => PARTS_WEIGHT / f32::from(of),
                Role::Whole => WHOLE_WEIGHT,
                Role::Pair => PAIR_WEIGHT,
                Role::Joined => JOINED_WEIGHT,
            };
            let stem = (term.role == Role::Surface).then_some(word);
            let place = add(&mut terms, &mut places, term.key, weight, stem);
            if term.role == Role::Word {
                word = place;
            }
        });
        Self { terms }
    }

    /// The words of each text without their other forms, and for each text the positions of its terms.
    pub fn from_words<'t>(analyzer: &Analyzer, texts: impl IntoIterator<Item = &'t str>) -> (Self, Vec<Vec<usize>>) {
        let mut terms: Vec<QueryTerm> = Vec::new();
        let mut places: HashMap<Box<str>, usize> = HashMap::new();
        let mut of_texts = Vec::new();
        for text in texts {
            let mut of_text = Vec::new();
            analyzer.start().run(text, &mut |term| {
                if term.role != Role::Word {
                    return;
                }
                let place = *places.entry(term.key.into()).or_insert(terms.len());
                if place == terms.len() {
                    terms.push(QueryTerm { key: term.key.into(), weight: WORD_WEIGHT, stem: None });
                }
                of_text.push(place);
            });
            of_texts.push(of_text);
        }
        (Self { terms }, of_texts)
    }

    /// The parts of a word of letters and digits, `ua` and `123` of `UA123`; `None` if it has none.
    pub fn from_parts(analyzer: &Analyzer, word: &str) -> Option<Self> {
        let parts = analyzer.analyze(word).into_iter().filter(|(_, role)| matches!(role, Role::Part { .. }));
        let terms: Vec<QueryTerm> =
            parts.map(|(key, _)| QueryTerm { key: key.into(), weight: WORD_WEIGHT, stem: None }).collect();
        (!terms.is_empty()).then_some(Self { terms })
    }

    /// One term of an index ([`terms_with_prefix`](crate::words::WordIndex::terms_with_prefix)).
    pub fn from_term(key: &str) -> Self {
        Self { terms: vec![QueryTerm { key: key.into(), weight: WORD_WEIGHT, stem: None }] }
    }

    /// Its terms.
    pub fn terms(&self) -> &[QueryTerm] {
        &self.terms
    }

    /// True if it has no terms.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }
}

/// Adds to the weight of a term, which is new at its first occurrence. Returns its position.
fn add(
    terms: &mut Vec<QueryTerm>,
    places: &mut HashMap<Box<str>, usize>,
    key: &str,
    weight: f32,
    stem: Option<usize>,
) -> usize {
    let place = *places.entry(key.into()).or_insert(terms.len());
    if place == terms.len() {
        terms.push(QueryTerm { key: key.into(), weight: 0.0, stem });
    }
    terms[place].weight += weight;
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::analysis::Stemming;

    fn shown(text: &str) -> Vec<(String, f32, Option<usize>)> {
        let query = WordQuery::new(&Analyzer::new(Stemming::English), text);
        query.terms().iter().map(|term| (term.key.to_string(), term.weight, term.stem)).collect()
    }

    #[test]
    fn weights_by_role() {
        let wanted = [("ua123", 1.0), ("ua", 0.25), ("123", 0.25), ("東", 1.0), ("東京", 0.5), ("京", 1.0)];
        let wanted: Vec<_> = wanted.map(|(key, weight)| (key.to_owned(), weight, None)).into();
        assert_eq!(shown("UA123 東京"), wanted);
        assert_eq!(shown("Málaga")[1], ("=málaga".to_owned(), 0.2, Some(0)));
        assert_eq!(shown("1 299")[2], ("1299".to_owned(), 2.0, None));
        assert_eq!(shown("10:30")[2], ("10:30".to_owned(), 0.5, None));
    }

    #[test]
    fn repeated_terms_add_up_and_surfaces_know_their_stem() {
        let wanted =
            [("b".to_owned(), 1.0, None), ("run".to_owned(), 3.0, None), ("=running".to_owned(), 0.4, Some(1))];
        assert_eq!(shown("b running run running"), wanted);
        assert!(WordQuery::new(&Analyzer::default(), " … ").is_empty());
    }

    #[test]
    fn stop_words_are_left_out_unless_there_are_no_others() {
        let keys = |text| shown(text).into_iter().map(|(key, _, _)| key).collect::<Vec<_>>();
        assert_eq!(keys("What did Joanna's doctor recommend?"), ["joanna", "doctor", "recommend"]);
        assert_eq!(keys("to be or not to be"), ["to", "be", "or", "not"]);
        assert_eq!(keys("the thé"), ["the", "=thé"], "tea");
        let none = WordQuery::new(&Analyzer::new(Stemming::None), "what is it");
        assert_eq!(none.terms().len(), 3, "another language has other stop words");
    }
}
