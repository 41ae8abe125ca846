//! Events of an agent's session in one form, whichever harness they come from.
//!
//! 1. An event has a key that follows from what the harness sent: the same event twice is one item.
//! 2. Its texts hold no secrets and at most [`EVENT_LEN`] bytes together.

use super::secrets;
use crate::outside::{FIELD, Outside};
use holotype::{Kind, NewTrace, Source, Status};
use serde_json::{Map, Value, json};
use std::path::Path;

/// The most bytes of texts of one event.
const EVENT_LEN: usize = 64 << 10;
/// The most bytes of the arguments of a tool call, and of other fields.
const ARGUMENTS_LEN: usize = 16 << 10;
/// The least number of bytes that a text may have whatever the fields take.
const LEAST_TEXT_LEN: usize = 16 << 10;

/// The outcome of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Success,
    Failed,
    Interrupted,
    Unknown,
}

impl Outcome {
    const ALL: [Outcome; 4] = [Outcome::Success, Outcome::Failed, Outcome::Interrupted, Outcome::Unknown];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Outcome::Success => "success",
            Outcome::Failed => "failed",
            Outcome::Interrupted => "interrupted",
            Outcome::Unknown => "unknown",
        }
    }

    fn parse(text: &str) -> Option<Outcome> {
        Outcome::ALL.into_iter().find(|outcome| outcome.as_str() == text)
    }

    fn status(self) -> Status {
        match self {
            Outcome::Success => Status::Success,
            Outcome::Failed => Status::Failed,
            Outcome::Interrupted | Outcome::Unknown => Status::Unknown,
        }
    }
}

/// The sort of an event.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    /// A turn of the user, or of the agent.
    Turn { by_user: bool },
    /// A tool call.
    Call { tool: String, outcome: Outcome },
    /// The beginning or end of a session, or a compaction.
    Mark { name: String },
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Event {
    /// The session, which is the episode.
    pub(super) session: String,
    /// The key, which begins with the session.
    pub(super) key: String,
    pub(super) what: What,
    pub(super) text: String,
    /// Named fields, in order.
    pub(super) fields: Vec<(String, String)>,
    /// Microseconds since 1970; the time of recording without it.
    pub(super) time: Option<i64>,
}

impl Event {
    /// An event with a text and fields as the harness gave them: secrets are withheld, and long bodies cut.
    pub(super) fn new(session: &str, id: &str, what: What, text: &str, fields: Vec<(String, String)>) -> Event {
        let mut kept = Vec::new();
        let (mut cuts, mut spent) = (Vec::new(), 0);
        for (name, value) in fields {
            let (value, cut) = secrets::withhold_within(&value, ARGUMENTS_LEN);
            cuts.extend(cut.map(|cut| format!("{name}: {cut}")));
            spent += value.len();
            kept.push((name, value));
        }
        let (text, cut) = secrets::withhold_within(text, EVENT_LEN.saturating_sub(spent).max(LEAST_TEXT_LEN));
        cuts.extend(cut.map(|cut| format!("text: {cut}")));
        if !cuts.is_empty() {
            kept.push(("cut".to_owned(), cuts.join("; ")));
        }
        Event { session: session.to_owned(), key: key(session, id), what, text, fields: kept, time: None }
    }

    pub(super) fn at(self, time: Option<i64>) -> Event {
        Event { time, ..self }
    }

    /// Notes the file that a successful call read or wrote, as it is now, so that `holotype check` can tell when it has
    /// become another one.
    pub(super) fn note_file(&mut self, folder: &Path, file: &Path) {
        if !matches!(self.what, What::Call { outcome: Outcome::Success, .. }) {
            return;
        }
        let outside = Outside::of_file(folder, file).map(|outside| outside.to_string());
        // A path that holds a secret is not kept.
        if let Some(outside) = outside.filter(|text| secrets::withhold(text) == *text) {
            self.fields.push((FIELD.to_owned(), outside));
        }
    }

    /// The trace that is recorded.
    pub(super) fn trace(&self) -> NewTrace {
        let (session, text) = (self.session.as_str(), self.text.as_str());
        let mut trace = match &self.what {
            What::Turn { by_user } => {
                let (source, speaker) =
                    if *by_user { (Source::User, "user") } else { (Source::Assistant, "assistant") };
                NewTrace::turn(session, text).source(source).speaker(speaker)
            }
            What::Call { tool, outcome } => {
                let call = NewTrace::call(session, tool, text).status(outcome.status());
                match outcome {
                    Outcome::Interrupted => call.field("outcome", outcome.as_str()),
                    _ => call,
                }
            }
            What::Mark { name } => {
                NewTrace::new(Kind::Observation, session, text).source(Source::System).field("event", name.as_str())
            }
        };
        for (name, value) in &self.fields {
            trace = trace.field(name, value.as_str());
        }
        if let Some(time) = self.time {
            trace = trace.time(time);
        }
        trace.key(&self.key)
    }

    /// A name of what a turn says, by which a hook and a transcript that tell of the same turn find each other.
    pub(super) fn turn_hash(&self) -> Option<String> {
        match self.what {
            What::Turn { by_user } => Some(hash16(&format!("{by_user}\n{}", self.text.trim()))),
            _ => None,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let what = match &self.what {
            What::Turn { by_user } => json!({"turn": if *by_user { "user" } else { "assistant" }}),
            What::Call { tool, outcome } => json!({"call": tool, "outcome": outcome.as_str()}),
            What::Mark { name } => json!({"mark": name}),
        };
        let fields: Map<String, Value> =
            self.fields.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
        json!({
            "session": self.session, "key": self.key, "what": what, "text": self.text, "fields": fields,
            "time": self.time,
        })
    }

    /// The event of [`Event::to_json`]; `None` for anything else.
    pub(super) fn from_json(value: &Value) -> Option<Event> {
        let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        let of = value.get("what")?;
        let named = |name: &str| of.get(name).and_then(Value::as_str);
        let what = if let Some(by) = named("turn") {
            What::Turn { by_user: by == "user" }
        } else if let Some(tool) = named("call") {
            What::Call { tool: tool.to_owned(), outcome: Outcome::parse(named("outcome")?)? }
        } else {
            What::Mark { name: named("mark")?.to_owned() }
        };
        let members = value.get("fields")?.as_object()?.iter();
        let fields: Option<Vec<(String, String)>> =
            members.map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
        Some(Event {
            session: text("session")?,
            key: text("key")?,
            what,
            text: text("text")?,
            fields: fields.unwrap_or_default(),
            time: value.get("time").and_then(Value::as_i64),
        })
    }
}

/// The key of something in a session. A key may have 512 bytes; one that would have more is shortened to its hash.
pub(super) fn key(session: &str, id: &str) -> String {
    let key = format!("{session}/{id}");
    let key = key.trim_start_matches('~').replace('\0', "");
    if key.len() <= holotype::MAX_KEY_LEN { key } else { format!("session-{}", hash16(&key)) }
}

/// The first 16 characters of a text's hash.
pub(super) fn hash16(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_survives_the_spool() {
        let fields = vec![("arguments".to_owned(), "{}".to_owned())];
        for what in [
            What::Turn { by_user: true },
            What::Call { tool: "Bash".to_owned(), outcome: Outcome::Interrupted },
            What::Mark { name: "session-start".to_owned() },
        ] {
            let event = Event::new("s", "1", what, "text", fields.clone()).at(Some(7));
            assert_eq!(Event::from_json(&event.to_json()), Some(event));
        }
        assert_eq!(Event::from_json(&json!({"key": "s/1"})), None);
    }

    #[test]
    fn a_long_event_is_cut_and_says_so() {
        let fields = vec![("arguments".to_owned(), "b".repeat(1 << 20))];
        let what = What::Call { tool: "Read".to_owned(), outcome: Outcome::Success };
        let event = Event::new("s", "1", what, &"a".repeat(1 << 20), fields);
        let total: usize = event.text.len() + event.fields.iter().map(|(_, value)| value.len()).sum::<usize>();
        assert!(total <= EVENT_LEN + 300, "{total}");
        let (name, cut) = event.fields.last().unwrap();
        assert_eq!(name, "cut");
        assert!(cut.contains("arguments: 1048576 bytes, blake3 ") && cut.contains("text: 1048576 bytes"), "{cut}");
    }
}
