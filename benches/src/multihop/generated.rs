//! Generated corpora of two hops: the first fact names what the question names, in another way than the question
//! writes it; the second shares no content word with the question, and only a concept leads to it.
//!
//! | type | question | what it needs |
//! |---|---|---|
//! | `bridge` | names one thing, asks for a property of what that leads to | both facts of the chain |
//! | `comparison` | names two things and compares them | the fact of each |
//!
//! Around each chain stand facts about its entities, facts with the words of its question about others, and people who
//! share a name. A tenth of the questions compares. The same seed gives the same corpus.

use crate::Result;
use crate::dataset::{Asked, Question};
use crate::random::Random;
use holotype::embed::HashingEmbedder;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};

const FIRST: [&str; 16] = [
    "Ada", "Bram", "Celia", "Dov", "Elin", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kaia", "Lev", "Mira", "Nils",
    "Oona", "Piet",
];
const PARTS: [&str; 18] = [
    "ba", "cor", "del", "fi", "gu", "hal", "jo", "kem", "lu", "mor", "nu", "pa", "quil", "ro", "sten", "tav", "ve",
    "wyn",
];
const ENDS: [&str; 7] = ["n", "r", "x", "", "v", "l", "d"];

/// A relation in two hops: the question over A, the fact of A and B, and that of B and C.
struct Relation {
    question: &'static str,
    first: &'static str,
    second: &'static str,
    /// Words of the question about another thing.
    decoy: &'static str,
}

const RELATIONS: [Relation; 6] = [
    Relation {
        question: "In which town does the founder of {A} live?",
        first: "{A} was started by {B}.",
        second: "{B} resides at {C}.",
        decoy: "In which town the founder of {X} may live, {Y} asks.",
    },
    Relation {
        question: "Which instrument does the captain of {A} play?",
        first: "{A} sailed under {B}.",
        second: "{B} performs on a {C}.",
        decoy: "The captain of {X} may play an instrument, says {Y}.",
    },
    Relation {
        question: "Which river flows past the place where {A} was born?",
        first: "{A} grew up at {B}.",
        second: "The {C} runs through {B}.",
        decoy: "{Y} was born at the place where a river flows past {X}.",
    },
    Relation {
        question: "What is the price of the spare that {A} needs?",
        first: "{A} takes a {B}.",
        second: "{B} costs {C} kroner.",
        decoy: "The price of the spare that {X} needs is unknown to {Y}.",
    },
    Relation {
        question: "Who owns the company that makes {A}?",
        first: "{A} is a product of {B}.",
        second: "{B} belongs to {C}.",
        decoy: "{Y} owns the company that makes {X}.",
    },
    Relation {
        question: "When was the teacher of {A} given a medal?",
        first: "{A} studied under {B}.",
        second: "{B} received an award during {C}.",
        decoy: "The teacher of {X} was given a medal when {Y} was young.",
    },
];

/// The words that say nothing about what is asked.
const STOP: [&str; 24] = [
    "the", "a", "an", "of", "in", "at", "to", "is", "was", "does", "which", "what", "who", "when", "where", "that",
    "by", "on", "under", "past", "given", "during", "through", "may",
];

/// A corpus that is being made.
struct World {
    random: Random,
    taken: HashSet<String>,
    lines: String,
    concepts: BTreeMap<String, usize>,
    traces: usize,
    episode: String,
}

/// The lines of a corpus with its questions.
pub(super) fn corpus(seed: u64, chains: usize) -> Result<(String, Asked)> {
    let episode = format!("generated-{seed}");
    let mut world = World {
        random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).max(1)),
        taken: HashSet::new(),
        lines: String::new(),
        concepts: BTreeMap::new(),
        traces: 0,
        episode: episode.clone(),
    };
    world.line(&json!({"episode": {"id": episode, "task": "index"}}));
    let mut questions = Vec::new();
    for chain in 0..chains {
        let (kind, text, evidence) = if chain % 10 == 9 { world.comparison() } else { world.bridge(chain) };
        let vector = HashingEmbedder::default().embed(&text).ok_or("a question without words")?;
        let line = json!({"question": text, "type": kind, "evidence": evidence});
        questions.push(Question { text, vector, line });
    }
    Ok((world.lines, Asked { episode, questions }))
}

impl World {
    fn line(&mut self, line: &Value) {
        self.lines += &format!("{line}\n");
    }

    fn one<'l>(&mut self, list: &[&'l str]) -> &'l str {
        list[self.random.below(list.len())]
    }

    /// A word that no other name has.
    fn word(&mut self) -> String {
        loop {
            let mut word = String::new();
            for _ in 0..3 {
                word += self.one(&PARTS);
                word += self.one(&ENDS);
            }
            if self.taken.insert(word.clone()) {
                return word[..1].to_uppercase() + &word[1..];
            }
        }
    }

    /// The name of a person, a thing of two words, a code, or a single word.
    fn name(&mut self) -> String {
        let word = self.word();
        match self.random.below(4) {
            0 => format!("{} {word}", self.one(&FIRST)),
            1 => format!("{word} {}", self.one(&["Works", "Hall", "Mill", "Line"])),
            2 => format!("{}{}", word[..2].to_uppercase(), 1_000 + self.taken.len()),
            _ => word,
        }
    }

    /// A passage with one fact, or several, and the concepts of each; the key of the passage.
    fn passage(&mut self, facts: &[(String, Vec<&str>)]) -> String {
        let key = format!("{}-t{}", self.episode, self.traces);
        self.traces += 1;
        let text = facts.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join(" ");
        self.line(&json!({"trace": {"key": key, "episode": self.episode, "kind": "observation", "source": "document",
            "status": "success", "fields": {"text": text}}}));
        let mut start = 0;
        for (nth, (text, concepts)) in facts.iter().enumerate() {
            let fact = format!("{key}.{nth}");
            let from = json!([{"key": key, "start": start, "end": start + text.len()}]);
            self.line(&json!({"recall": {"key": fact, "kind": "fact", "text": text, "from": from}}));
            start += text.len() + 1;
            for concept in concepts {
                let concept = self.concept(concept);
                self.line(&json!({"link": {"from": fact, "edge": "mentions", "to": concept}}));
            }
        }
        key
    }

    /// The key of a concept, written when there is none of the name.
    fn concept(&mut self, name: &str) -> String {
        let next = self.concepts.len();
        let known = self.concepts.get(name).copied();
        let nth = known.unwrap_or(next);
        let key = format!("{}-c{nth}", self.episode);
        if known.is_none() {
            self.concepts.insert(name.to_owned(), nth);
            self.line(&json!({"theme": {"key": key, "kind": "concept", "text": name, "ungrounded": true}}));
        }
        key
    }

    /// A name as a question writes it, with the concept's text and how the fact says it.
    fn asked(&mut self, chain: usize, name: &str) -> (String, String, String) {
        let same = |asked: String| (asked, name.to_owned(), name.to_owned());
        match chain % 5 {
            0 => same(name.to_owned()),
            1 => same(name.to_lowercase()),
            2 => same(name.replace(' ', "")),
            3 => same(format!("{name}s")),
            _ => {
                let alias = self.word();
                (alias.clone(), format!("{name}|{alias}"), format!("{name}, also known as {alias},"))
            }
        }
    }

    fn bridge(&mut self, chain: usize) -> (&'static str, String, Vec<String>) {
        let relation = &RELATIONS[self.random.below(RELATIONS.len())];
        let a = self.name();
        let (asked, concept, said) = self.asked(chain, &a);
        let text = relation.question.replace("{A}", &asked);
        let fill = |text: &str, b: &str, c: &str| text.replace("{A}", &said).replace("{B}", b).replace("{C}", c);
        // First names repeat, but not within a chain.
        let (b, c, second) = loop {
            let (b, c) = (self.name(), self.name());
            let second = fill(relation.second, &b, &c);
            if !shares_word(&text, &second) {
                break (b, c, second);
            }
        };
        let first = fill(relation.first, &b, &c);
        let mut order = [0, 1];
        if self.random.below(2) == 0 {
            order.reverse();
        }
        let mut evidence = vec![String::new(); 2];
        for which in order {
            let mut facts = match which {
                0 => vec![(first.clone(), vec![concept.as_str(), b.as_str()])],
                _ => vec![(second.clone(), vec![b.as_str(), c.as_str()])],
            };
            let other = self.name();
            if self.random.below(3) == 0 {
                facts.push((format!("It is painted {}.", self.one(&["red", "green", "grey"])), vec![]));
            }
            if self.random.below(3) == 0 {
                let subject = if which == 0 { a.clone() } else { b.clone() };
                let of = if which == 0 { &concept } else { &b };
                facts.push((format!("{subject} was seen beside {other}."), vec![of.as_str(), other.as_str()]));
            }
            evidence[which] = self.passage(&facts);
        }
        self.beside(&a, &concept, &b, relation.decoy);
        ("bridge", text, evidence)
    }

    /// Other facts about a chain's entities, and facts with the words of its question.
    fn beside(&mut self, a: &str, concept: &str, b: &str, decoy: &str) {
        for _ in 0..1 + self.random.below(3) {
            let (goods, other) = (self.one(&["lamps", "ropes", "clocks", "boots", "maps"]), self.name());
            self.passage(&[(format!("{a} came with {goods} from {other}."), vec![concept, &other])]);
            let (game, other) = (self.one(&["chess", "tennis", "the lottery", "cards"]), self.name());
            self.passage(&[(format!("{b} won at {game} against {other}."), vec![b, &other])]);
        }
        let other = self.name();
        for _ in 0..3 {
            let stranger = self.name();
            let text = decoy.replace("{X}", &other).replace("{Y}", &stranger);
            self.passage(&[(text, vec![&other, &stranger])]);
        }
    }

    fn comparison(&mut self) -> (&'static str, String, Vec<String>) {
        let (a, b) = (self.name(), self.name());
        let mut evidence = Vec::new();
        for name in [&a, &b] {
            let year = (1_800 + self.random.below(200)).to_string();
            let fact = (format!("{name} opened in {year}."), vec![name.as_str(), year.as_str()]);
            evidence.push(self.passage(&[fact]));
            let other = self.name();
            self.passage(&[(format!("{name} stands beside {other}."), vec![name, &other])]);
        }
        ("comparison", format!("Which opened first, {a} or {b}?"), evidence)
    }
}

/// True if two texts share a content word.
fn shares_word(question: &str, fact: &str) -> bool {
    let words = |text: &str| -> HashSet<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
        words.filter(|word| !word.is_empty() && !STOP.contains(&word.as_str())).collect()
    };
    !words(question).is_disjoint(&words(fact))
}
