//! `letta`: an agent file (`.af`) with agents, their messages and their memory blocks.
//!
//! `send_message` is the assistant's word and not a call; what the harness packed as JSON is unpacked. Each line of a
//! block is a fact, ungrounded unless a trace holds its words.

use super::{elements, first_text, names, text_at, text_or_json, words};
use crate::entry::{Call, Fact, Outcome, Trace, hash, key};
use crate::files::Files;
use crate::intake::Intake;
use crate::{Format, ImportError};
use holotype::{Kind, Source};
use serde_json::Value;
use std::collections::BTreeMap;

const PREFIX: &str = "letta";
/// The call by which an agent speaks.
const SPEAK: &str = "send_message";

pub(crate) fn read(files: &Files, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    for name in names(Format::Letta, files)? {
        intake.values(files, name, &[], &mut |intake, value, _| file(intake, &value))?;
    }
    Ok(())
}

fn file(intake: &mut Intake<'_>, value: &Value) -> Result<(), ImportError> {
    let agents = elements(value, "agents");
    if agents.is_empty() && !value["messages"].is_array() {
        intake.count_read();
        intake.bad("got a value without `agents` and `messages`, expected an agent file of Letta");
        return Ok(());
    }
    // The first version had one agent, at the top.
    let first = if agents.is_empty() { std::slice::from_ref(value) } else { agents };
    for agent in first {
        let id = first_text(agent, &["id", "name"]);
        let id = if id.is_empty() { "agent" } else { id };
        let mut talk = Talk { id, episode: format!("{PREFIX}/{id}"), pending: BTreeMap::new(), calls: 0 };
        intake.episode(&talk.episode, Some(first_text(agent, &["name", "description"])), None)?;
        for (at, message) in elements(agent, "messages").iter().enumerate() {
            talk.message(intake, at, message)?;
        }
        talk.end(intake)?;
        for block in elements(agent, "core_memory") {
            memory(intake, id, block)?;
        }
    }
    for block in elements(value, "blocks") {
        memory(intake, "block", block)?;
    }
    Ok(())
}

/// A memory block: each line is a statement.
fn memory(intake: &mut Intake<'_>, agent: &str, block: &Value) -> Result<(), ImportError> {
    intake.count_read();
    let label = text_at(block, "label");
    let id = if text_at(block, "id").is_empty() { label } else { text_at(block, "id") };
    let time = intake.time(&block["updated_at"])?;
    for line in text_at(block, "value").lines().map(str::trim).filter(|line| !line.is_empty()) {
        let key = key(&[PREFIX, agent, id, &hash(line)]);
        let mut fact = Fact::new(key, format!("{label}: {line}")).time(time).episode(format!("{PREFIX}/blocks"));
        fact.quote = line.trim_start_matches(['-', '*', ' ']).to_owned();
        intake.fact(fact.raw(block.to_string()))?;
    }
    Ok(())
}

struct Talk<'t> {
    id: &'t str,
    episode: String,
    pending: BTreeMap<u64, Call>,
    calls: u64,
}

impl Talk<'_> {
    fn message(&mut self, intake: &mut Intake<'_>, at: usize, message: &Value) -> Result<(), ImportError> {
        intake.count_read();
        let time = intake.time(&message["created_at"])?;
        let name = match text_at(message, "id") {
            "" => format!("message-{at}"),
            id => id.to_owned(),
        };
        let own = key(&[PREFIX, self.id, &name]);
        let text = match words(&message["content"]) {
            text if text.is_empty() => text_at(message, "text").to_owned(),
            text => text,
        };
        let raw = message.to_string();
        match text_at(message, "role") {
            "tool" => self.result(intake, message, &text, &raw),
            "" => {
                intake.bad("got a message without `role`, expected user, assistant, system or tool");
                Ok(())
            }
            "system" => {
                intake.ignore();
                Ok(())
            }
            role => {
                let said = self.made(message, &own, time);
                // An agent that speaks by a call keeps its thoughts in the text.
                let text = match said {
                    Some(said) => said,
                    None => unpacked(&text),
                };
                if text.trim().is_empty() {
                    return Ok(());
                }
                let is_event = text.starts_with("{\"type\"");
                let turn = Trace::turn(self.episode.clone(), own, role, text).time(time).raw(raw);
                match is_event {
                    true => {
                        intake.trace(Trace { kind: Kind::Observation, source: Source::System, speaker: None, ..turn })
                    }
                    false => intake.trace(turn.field("name", text_at(message, "name"))),
                }
            }
        }
    }

    /// Notes the calls of a message, and gives the words of the one by which the agent speaks.
    fn made(&mut self, message: &Value, parent: &str, time: Option<i64>) -> Option<String> {
        let mut said = None;
        for made in elements(message, "tool_calls") {
            let function = if made["function"].is_object() { &made["function"] } else { made };
            let arguments = function.get("arguments").map(text_or_json).unwrap_or_default();
            if text_at(function, "name") == SPEAK
                && let Ok(inner) = serde_json::from_str::<Value>(&arguments)
                && let Some(words) = inner["message"].as_str()
            {
                said = Some(words.to_owned());
                continue;
            }
            self.calls += 1;
            let id = text_at(made, "id");
            let id = if id.is_empty() { format!("call-{}", self.calls) } else { id.to_owned() };
            let call = Call {
                episode: self.episode.clone(),
                key: key(&[PREFIX, self.id, &id]),
                id,
                tool: text_at(function, "name").to_owned(),
                arguments,
                time,
                raw: Some(made.to_string()),
                fields: vec![("parent".to_owned(), parent.to_owned())],
            };
            self.pending.insert(self.calls, call);
        }
        said
    }

    fn result(&mut self, intake: &mut Intake<'_>, message: &Value, text: &str, raw: &str) -> Result<(), ImportError> {
        let returned = elements(message, "tool_returns").first();
        let stated = returned.map(|returned| text_at(returned, "status")).unwrap_or_default().to_owned();
        let packed = serde_json::from_str::<Value>(text).ok();
        let status = packed.as_ref().map(|packed| text_at(packed, "status")).unwrap_or_default();
        let outcome = match (stated.as_str(), status) {
            ("success", _) | (_, "OK") => Outcome::Success,
            ("error", _) | (_, "Failed") => Outcome::Failed,
            _ => Outcome::Unknown,
        };
        let id = text_at(message, "tool_call_id");
        let made = self.pending.iter().find(|(_, call)| call.id == id).map(|(number, _)| *number);
        let Some(call) = made.and_then(|number| self.pending.remove(&number)) else {
            // The receipt of what the agent said.
            intake.ignore();
            return Ok(());
        };
        intake.trace(call.ended(outcome, &unpacked(text), Some(raw)))
    }

    fn end(&mut self, intake: &mut Intake<'_>) -> Result<(), ImportError> {
        for (_, call) in std::mem::take(&mut self.pending) {
            intake.trace(call.ended(Outcome::Unknown, "", None))?;
        }
        Ok(())
    }
}

/// The words of a text that the harness packed as JSON; an event of the harness stays as it is.
fn unpacked(text: &str) -> String {
    let Some(packed) = serde_json::from_str::<Value>(text).ok().filter(Value::is_object) else {
        return text.to_owned();
    };
    match text_at(&packed, "type") {
        "user_message" | "" => match &packed["message"] {
            Value::Null => text.to_owned(),
            message => text_or_json(message),
        },
        _ => text.to_owned(),
    }
}
