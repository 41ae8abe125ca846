//! Routed recalls and findings as events (TierMem B.8): kept in the log, read back, and labelled.
//!
//! With the setting `audit = reads` an answer that a router decided about leaves an event, and so does every finding
//! that `learn` was given. An event is an inactive trace of the episode [`EVENTS`]: no recall finds it, `forget` erases
//! it. It has no time, so that it moves no reader, and its only content is the field `event`: the byte 0xFF, which is
//! no UTF-8, so that the field has no words and makes no claims, then JSON. No text of a question or of a row is in it.
//!
//! | tool | content |
//! |---|---|
//! | `tiermem.route` | the decision, signals, hits by origin, tokens, rounds, pages, microseconds |
//! | `tiermem.label` | for a route: did the first tier suffice (`c_S`), did raw pages (`c_R`) |
//! | `tiermem.learn` | ADD, UPDATE or SKIP |
//!
//! Of several labels of a route, the last one counts.

use super::learn::finding::{LearnOp, Learned};
use crate::memory::router::{Action, Label, Signals};
use crate::model::item::{ItemId, Kind, Source};
use crate::read::answer::Answer;
use crate::read::escalation::Hits;
use crate::read::snapshot::Snapshot;
use crate::state::attributes::{Column, ValueTest};
use crate::state::pages::{EVENT_TOOLS, EVENTS};
use crate::state::settings;
use crate::write::draft::NewTrace;
use crate::write::transaction::Transaction;
use crate::{Error, Result};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const ROUTE: &str = EVENT_TOOLS[0];
const LABEL: &str = EVENT_TOOLS[1];
const LEARN: &str = EVENT_TOOLS[2];
const FIELD: &str = "event";
/// The first byte of an event.
const MARK: u8 = 0xff;

/// A routed recall, as it was logged (TierMem B.8).
#[derive(Debug, Clone, PartialEq)]
pub struct RouteEvent {
    /// The key of the event.
    pub key: String,
    /// The receipt of the answer, if it has one.
    pub receipt: Option<String>,
    /// The episode of its reader, else of its first row.
    pub episode: Option<String>,
    /// The commit that was read.
    pub commit: u64,
    /// The action taken: under `always` and `never` not the router's.
    pub action: Action,
    /// The router's own decision.
    pub decided: Action,
    /// True if the router failed, which means ESCALATE.
    pub failed: bool,
    /// The estimated probability that the first tier suffices.
    pub sufficiency: Option<f32>,
    /// The signals it decided by.
    pub signals: Signals,
    /// Rows of the first tier by origin.
    pub hits: Hits,
    /// Tokens of the first tier.
    pub first_tokens: u64,
    /// Tokens of all rows.
    pub tokens: u64,
    /// Rounds of the loop.
    pub rounds: u64,
    /// Pages that the loop selected.
    pub pages: u64,
    /// Microseconds until the router had decided.
    pub router_micros: u64,
    /// Microseconds of the whole answer.
    pub micros: u64,
    /// The label: `c_S` and `c_R`, if somebody judged both paths.
    pub label: Option<(bool, bool)>,
}

impl RouteEvent {
    /// The label with its signals, for a fit.
    pub fn label(&self) -> Option<Label> {
        let (summaries_suffice, raw_suffices) = self.label?;
        Some(Label { signals: self.signals, summaries_suffice, raw_suffices })
    }

    fn from_json(key: String, event: &Value) -> Option<RouteEvent> {
        let number = |name: &str| event.get(name).and_then(Value::as_u64);
        let text = |name: &str| event.get(name).and_then(Value::as_str).map(str::to_owned);
        let action = |name: &str| match event.get(name).and_then(Value::as_str) {
            Some("answer") => Some(Action::Answer),
            Some("escalate") => Some(Action::Escalate),
            _ => None,
        };
        let signals = event.get("signals")?;
        let mut values = [0.0; Signals::COUNT];
        for (value, name) in values.iter_mut().zip(Signals::NAMES) {
            *value = signals.get(*name).and_then(Value::as_f64).unwrap_or(0.0) as f32;
        }
        let hits = |at: usize| event.get("hits").and_then(|hits| hits.get(at)).and_then(Value::as_u64).unwrap_or(0);
        Some(RouteEvent {
            key,
            receipt: text("receipt"),
            episode: text("episode"),
            commit: number("commit")?,
            action: action("action")?,
            decided: action("decided")?,
            failed: event.get("failed").and_then(Value::as_bool).unwrap_or(false),
            sufficiency: event.get("sufficiency").and_then(Value::as_f64).map(|value| value as f32),
            signals: Signals::from_values(values),
            hits: Hits { original: hits(0), linked_fact: hits(1), refined: hits(2) },
            first_tokens: number("first_tokens")?,
            tokens: number("tokens")?,
            rounds: number("rounds")?,
            pages: number("pages")?,
            router_micros: number("router_micros")?,
            micros: number("micros")?,
            label: None,
        })
    }
}

/// The label of a routed recall: what both paths were worth (TierMem D.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteLabel {
    /// Its receipt, or the key of its event.
    pub route: String,
    /// `c_S`: the first tier sufficed.
    pub summaries_suffice: bool,
    /// `c_R`: raw pages sufficed.
    pub raw_suffices: bool,
}

/// A finding that `learn` was given, as it was logged (TierMem B.8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnEvent {
    /// The key of the event.
    pub key: String,
    /// The outcome.
    pub op: LearnOp,
    /// The episode of the new recall, or of the one that said it already.
    pub episode: Option<String>,
}

/// The event of an answer; `None` if no router decided about it.
fn route_of(answer: &Answer, snapshot: &Snapshot) -> Result<Option<Value>> {
    let Some(escalation) = &answer.escalation else { return Ok(None) };
    let of_row = || -> Result<Option<String>> {
        let Some(row) = answer.rows.first() else { return Ok(None) };
        episode_of(snapshot, row.item)
    };
    let episode = match &answer.at.episode {
        Some(episode) => Some(episode.clone()),
        None => of_row()?,
    };
    let routing = &escalation.router;
    let values = Signals::NAMES.iter().zip(routing.signals.values());
    let signals: Map<String, Value> = values.map(|(name, value)| ((*name).to_owned(), value.into())).collect();
    let Hits { original, linked_fact, refined } = escalation.hits;
    Ok(Some(json!({
        "commit": answer.commit, "receipt": answer.receipt, "episode": episode,
        "action": routing.action.as_str(), "decided": routing.decided.as_str(),
        "failed": routing.failure.is_some(), "sufficiency": routing.sufficiency, "signals": signals,
        "hits": [original, linked_fact, refined], "first_tokens": escalation.first_tokens,
        "tokens": escalation.tokens, "rounds": escalation.rounds.len(), "pages": escalation.pages.len(),
        "router_micros": escalation.router_micros, "micros": answer.micros,
    })))
}

fn episode_of(snapshot: &Snapshot, item: ItemId) -> Result<Option<String>> {
    let number = snapshot.state.attributes(item)?.episode;
    number.map(|number| Ok(snapshot.state.episode_id(number)?.as_ref().to_owned())).transpose()
}

impl Transaction<'_> {
    /// Stages the event of a routed answer; does nothing for another one.
    pub(crate) fn keep_route(&mut self, answer: &Answer) -> Result<()> {
        match route_of(answer, &self.snapshot()?)? {
            Some(event) => self.keep_event(ROUTE, &event),
            None => Ok(()),
        }
    }

    /// Stages the event of a finding, if the setting `audit` asks for it.
    pub(crate) fn keep_learned(&mut self, learned: &Learned) -> Result<()> {
        if settings::value(self.state()?, "audit")? != "reads" {
            return Ok(());
        }
        let snapshot = self.snapshot()?;
        let episode = learned.item.map(|item| episode_of(&snapshot, item)).transpose()?.flatten();
        self.keep_event(LEARN, &json!({"op": learned.op.as_str(), "episode": episode}))
    }

    /// Labels routed recalls, each named by its receipt or by the key of its event, with what both paths were worth
    /// (TierMem D.2).
    ///
    /// # Errors
    /// [`Error::Missing`] if such a recall was not logged: `set audit = reads` logs them. Then none is labelled.
    pub fn label_routes(&mut self, labels: &[RouteLabel]) -> Result<()> {
        let mut keys: BTreeMap<String, String> = BTreeMap::new();
        for event in self.names()?.routes()? {
            keys.extend(event.receipt.map(|receipt| (receipt, event.key.clone())));
            keys.insert(event.key.clone(), event.key);
        }
        self.atomically(|transaction| {
            for RouteLabel { route, summaries_suffice, raw_suffices } in labels {
                let missing = || Error::Missing { what: "routed recall", name: format!("'{route}'") };
                let key = keys.get(route).ok_or_else(missing)?;
                let event = json!({"route": key, "c_s": summaries_suffice, "c_r": raw_suffices});
                transaction.keep_event(LABEL, &event)?;
            }
            Ok(())
        })
    }

    /// Stages an event.
    pub(crate) fn keep_event(&mut self, tool: &str, event: &Value) -> Result<()> {
        let mut bytes = vec![MARK];
        bytes.extend_from_slice(event.to_string().as_bytes());
        self.atomically(|transaction| {
            let mut trace = NewTrace::new(Kind::Observation, EVENTS, "").tool(tool).source(Source::System);
            trace.timeless = true;
            let id = transaction.record(trace.bytes_field(FIELD, bytes))?;
            transaction.deactivate(id, None, Some("an event, no memory".to_owned()))
        })
    }
}

impl Snapshot {
    /// The routed recalls that were logged, oldest first, with their labels.
    ///
    /// # Errors
    /// Errors of reading the log.
    pub fn routes(&self) -> Result<Vec<RouteEvent>> {
        let mut routes = Vec::new();
        let mut labels: BTreeMap<String, (bool, bool)> = BTreeMap::new();
        for (key, tool, event) in self.kept_events()? {
            let flag = |name: &str| event.get(name).and_then(Value::as_bool);
            match tool.as_str() {
                ROUTE => routes.extend(RouteEvent::from_json(key, &event)),
                LABEL => {
                    let route = event.get("route").and_then(Value::as_str);
                    if let (Some(route), Some(c_s), Some(c_r)) = (route, flag("c_s"), flag("c_r")) {
                        labels.insert(route.to_owned(), (c_s, c_r));
                    }
                }
                _ => {}
            }
        }
        for route in &mut routes {
            route.label = labels.get(&route.key).copied();
        }
        Ok(routes)
    }

    /// The findings that were logged, oldest first.
    ///
    /// # Errors
    /// Errors of reading the log.
    pub fn findings(&self) -> Result<Vec<LearnEvent>> {
        let mut findings = Vec::new();
        for (key, tool, event) in self.kept_events()? {
            let op = match event.get("op").and_then(Value::as_str) {
                Some("add") => LearnOp::Add,
                Some("update") => LearnOp::Update,
                Some("skip") => LearnOp::Skip,
                _ => continue,
            };
            let episode = event.get("episode").and_then(Value::as_str).map(str::to_owned);
            findings.extend((tool == LEARN).then_some(LearnEvent { key, op, episode }));
        }
        Ok(findings)
    }

    /// The key, the tool and the JSON of each event that was not forgotten.
    pub(crate) fn kept_events(&self) -> Result<Vec<(String, String, Value)>> {
        let mut events = Vec::new();
        let Some(episode) = self.state.episode_number(EVENTS)? else { return Ok(events) };
        let number = i64::from(episode);
        let of_episode =
            self.state.attributes.select_values(Column::Episode, self.len(), ValueTest::Range(number, number))?;
        for id in of_episode.iter().map(ItemId) {
            if self.state.attributes(id)?.redacted {
                continue;
            }
            let content = self.content(id)?;
            let Some(tool) = content.tool().filter(|tool| EVENT_TOOLS.contains(tool)) else { continue };
            let bytes = content.field(FIELD).map_or(&[][..], |field| field.value.bytes());
            let Some(event) = bytes.strip_prefix(&[MARK]).and_then(|json| serde_json::from_slice(json).ok()) else {
                continue;
            };
            events.push((self.key_of(id)?, tool.to_owned(), event));
        }
        Ok(events)
    }
}
