//! The record of an escalation in an answer: its router and its rounds (TierMem B.8).

use crate::memory::router::{Action, Signals};
use crate::model::item::ItemId;
use crate::read::cell::round;
use serde_json::{Map, Value, json};

/// The record of a recall with the clause `escalate`.
#[derive(Debug, Clone, PartialEq)]
pub struct Escalation {
    /// The decision of the router.
    pub router: Routing,
    /// The rounds of the loop; empty without an escalation.
    pub rounds: Vec<Round>,
    /// The pages that the loop selected, best first.
    pub pages: Vec<PageHit>,
    /// The facts that the integrator drew from them; empty without one.
    pub facts: Vec<Fact>,
    /// Why planner, integrator or ranker gave nothing.
    pub failures: Vec<String>,
    /// Tokens of the first tier: its rows with the spans they cite.
    pub first_tokens: u64,
    /// Tokens of all rows, with the spans that rows of the first tier cite.
    pub tokens: u64,
    /// Rows by origin: written as they are, and learned from earlier escalations.
    pub hits: Hits,
    /// Microseconds until the router had decided.
    pub router_micros: u64,
}

/// Rows of the first tier by origin (TierMem B.8).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hits {
    /// Original.
    pub original: u64,
    /// Learned (`linked_fact`).
    pub linked_fact: u64,
    /// Refined.
    pub refined: u64,
}

/// A decision of the router.
#[derive(Debug, Clone, PartialEq)]
pub struct Routing {
    /// The action taken: under `always` and `never` not the router's.
    pub action: Action,
    /// The router's own decision.
    pub decided: Action,
    /// The estimated probability that the first tier suffices.
    pub sufficiency: Option<f32>,
    /// The signals it decided by.
    pub signals: Signals,
    /// Why the router failed, if it did; then the decision is ESCALATE.
    pub failure: Option<String>,
}

/// A search that the loop issued.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Command {
    /// Semantic search over summaries.
    Summaries(String),
    /// Keyword search over pages.
    Pages(String),
}

impl Command {
    /// One text for both operators.
    pub fn both(text: &str) -> Vec<Command> {
        vec![Command::Summaries(text.to_owned()), Command::Pages(text.to_owned())]
    }

    /// The text that is searched for.
    pub fn text(&self) -> &str {
        match self {
            Command::Summaries(text) | Command::Pages(text) => text,
        }
    }
}

/// A fact that the integrator drew from a page (TierMem Figure 7), linked to its words without a model (B.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The fact, as a statement.
    pub text: String,
    /// The words that say it, as they stand in the trace.
    pub quote: String,
    /// The page, by its key or as `open page of EPISODE`.
    pub page: String,
    /// The trace on it.
    pub trace: ItemId,
    /// The round that read the page.
    pub round: u32,
}

/// A round of the loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// The searches issued.
    pub commands: Vec<Command>,
    /// The number of pages that the searches found.
    pub pages: u64,
    /// The pages selected in this round that no earlier one selected.
    pub new: Vec<String>,
}

/// A page that the loop selected.
#[derive(Debug, Clone, PartialEq)]
pub struct PageHit {
    /// Its key, or `open page of EPISODE`.
    pub page: String,
    /// Its score against the question.
    pub score: f32,
    /// It was kept for the similarity of a summary that links to it.
    pub protected: bool,
    /// The round that selected it; 0 for the pages linked from the first tier.
    pub round: u32,
    /// The lines of its traces that are rows, in order.
    pub text: String,
    /// The text is the whole page.
    pub whole: bool,
}

impl Escalation {
    /// The members `router`, `rounds` and `pages` of an answer in JSON.
    pub(crate) fn put(&self, object: &mut Map<String, Value>) {
        let number = |value: f32| Value::from(round(f64::from(value)));
        let signals: Map<String, Value> = Signals::NAMES
            .iter()
            .zip(self.router.signals.values())
            .map(|(name, value)| ((*name).to_owned(), number(value)))
            .collect();
        let mut router = Map::new();
        router.insert("action".into(), self.router.action.as_str().into());
        router.insert("decided".into(), self.router.decided.as_str().into());
        router.extend(self.router.sufficiency.map(|value| ("sufficiency".to_owned(), number(value))));
        router.insert("signals".into(), Value::Object(signals));
        router.extend(self.router.failure.as_deref().map(|why| ("failure".to_owned(), why.into())));
        router.insert("first_tokens".into(), self.first_tokens.into());
        router.insert("tokens".into(), self.tokens.into());
        let Hits { original, linked_fact, refined } = self.hits;
        let hits = json!({"original": original, "linked_fact": linked_fact, "refined": refined});
        router.insert("hits".into(), hits);
        object.insert("router".into(), Value::Object(router));
        object.insert("rounds".into(), self.rounds.iter().map(Round::to_json).collect());
        let page = |hit: &PageHit| {
            json!({"page": hit.page, "score": number(hit.score), "protected": hit.protected, "round": hit.round,
                   "text": hit.text, "whole": hit.whole})
        };
        object.insert("pages".into(), self.pages.iter().map(page).collect());
        if !self.facts.is_empty() {
            let fact = |fact: &Fact| {
                json!({"text": fact.text, "quote": fact.quote, "page": fact.page, "trace": fact.trace.0,
                       "round": fact.round})
            };
            object.insert("facts".into(), self.facts.iter().map(fact).collect());
        }
        if !self.failures.is_empty() {
            object.insert("failures".into(), json!(self.failures));
        }
    }
}

impl Round {
    fn to_json(&self) -> Value {
        let command = |command: &Command| match command {
            Command::Summaries(text) => json!({"search": "summaries", "query": text}),
            Command::Pages(text) => json!({"search": "pages", "query": text}),
        };
        let commands: Vec<Value> = self.commands.iter().map(command).collect();
        json!({"commands": commands, "pages": self.pages, "new": self.new})
    }
}
