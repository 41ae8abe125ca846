//! `openai` and `anthropic`: messages as programs send them to a model.
//!
//! A file holds one conversation, as an array of messages or an object with `messages`, or many: one object a line, an
//! array of objects. A line with a `role` is a message of the file's own conversation. A conversation without an id is
//! named after its file and its place in it, and a message after its place in the conversation, so that a file that
//! grew adds what is new.

use super::{elements, first_text, names, text_at, text_or_json, words};
use crate::entry::{Call, Outcome, Trace, key};
use crate::files::Files;
use crate::intake::Intake;
use crate::{Format, ImportError};
use serde_json::Value;
use std::collections::BTreeMap;

pub(crate) fn read(format: Format, files: &Files, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    for name in names(format, files)? {
        let stem = match files.is_collection() {
            true => name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned(),
            false => files.stem(),
        };
        let own = format!("{format}/{stem}");
        let mut talk = Talk::new(own.clone());
        let mut others = 0_u64;
        intake.values(files, name, &[], &mut |intake, value, raw| {
            let messages = match &value {
                Value::Array(messages) => Some(messages.as_slice()),
                value => value.get("messages").and_then(Value::as_array).map(Vec::as_slice),
            };
            let Some(messages) = messages else { return talk.message(intake, &value, raw) };
            others += 1;
            let id = first_text(&value, &["id", "custom_id", "conversation_id", "session_id", "thread_id"]);
            let mut other = Talk::new(match id {
                "" => format!("{own}/{others}"),
                id => format!("{format}/{id}"),
            });
            let system = words(&value["system"]);
            if !system.is_empty() {
                intake.trace(Trace::turn(other.episode.clone(), key(&[&other.episode, "system"]), "system", system))?;
            }
            for message in messages {
                other.message(intake, message, &message.to_string())?;
            }
            other.end(intake)
        })?;
        talk.end(intake)?;
    }
    Ok(())
}

/// A conversation.
struct Talk {
    episode: String,
    messages: u64,
    pending: BTreeMap<u64, Call>,
    calls: u64,
}

impl Talk {
    fn new(episode: String) -> Talk {
        Talk { episode, messages: 0, pending: BTreeMap::new(), calls: 0 }
    }

    fn message(&mut self, intake: &mut Intake<'_>, message: &Value, raw: &str) -> Result<(), ImportError> {
        intake.count_read();
        self.messages += 1;
        let role = text_at(message, "role");
        if role.is_empty() {
            match text_at(message, "type") {
                "" => intake.bad("got a value without `role` and `messages`, expected a message"),
                name => intake.unknown(name),
            }
            return Ok(());
        }
        let times = ["created_at", "timestamp", "time", "created"];
        let stated = times.iter().find_map(|name| message.get(*name)).unwrap_or(&Value::Null);
        let time = intake.time(stated)?;
        let name = match first_text(message, &["id", "uuid"]) {
            "" => self.messages.to_string(),
            id => id.to_owned(),
        };
        let own = key(&[&self.episode, &name]);
        let mut raw = Some(raw);
        if matches!(role, "tool" | "function") {
            let id = first_text(message, &["tool_call_id", "name"]);
            return self.result(intake, id, words(&message["content"]), (None, time, raw));
        }
        for block in elements(message, "content").iter().filter(|block| text_at(block, "type") == "tool_result") {
            let stated = block["is_error"].as_bool().map(|is_error| Outcome::of_success(!is_error));
            let text = words(&block["content"]);
            let stated = Some(stated.unwrap_or(Outcome::Success));
            self.result(intake, text_at(block, "tool_use_id"), text, (stated, time, raw.take()))?;
        }
        let text = words(&message["content"]);
        let text = if text.is_empty() { text_at(message, "refusal").to_owned() } else { text };
        if !text.trim().is_empty() {
            let mut turn = Trace::turn(self.episode.clone(), own.clone(), role, text).time(time);
            turn.raw = raw.take().map(str::to_owned);
            intake.trace(turn.field("name", text_at(message, "name")))?;
        }
        self.made(message, &own, time, raw);
        Ok(())
    }

    /// The calls of a message, in the forms of both interfaces.
    fn made(&mut self, message: &Value, parent: &str, time: Option<i64>, mut raw: Option<&str>) {
        let old = message.get("function_call").filter(|call| call.is_object());
        let calls = elements(message, "tool_calls").iter().map(|call| {
            let made = if call["function"].is_object() { &call["function"] } else { &call["custom"] };
            (text_at(call, "id"), made)
        });
        let calls = calls.chain(old.map(|made| (text_at(made, "name"), made)));
        let blocks = elements(message, "content").iter().filter(|block| text_at(block, "type") == "tool_use");
        let calls = calls.chain(blocks.map(|block| (text_at(block, "id"), block)));
        for (id, made) in calls {
            self.calls += 1;
            let arguments = ["arguments", "input"].into_iter().find_map(|name| made.get(name));
            let id = if id.is_empty() { format!("call-{}", self.calls) } else { id.to_owned() };
            let call = Call {
                episode: self.episode.clone(),
                key: key(&[&self.episode, &id]),
                id,
                tool: text_at(made, "name").to_owned(),
                arguments: arguments.map(text_or_json).unwrap_or_default(),
                time,
                raw: raw.take().map(str::to_owned),
                fields: vec![("parent".to_owned(), parent.to_owned())],
            };
            self.pending.insert(self.calls, call);
        }
    }

    /// The outcome of a call: `ended` is its status if one is stated, its time and its message.
    fn result(
        &mut self,
        intake: &mut Intake<'_>,
        id: &str,
        text: String,
        ended: (Option<Outcome>, Option<i64>, Option<&str>),
    ) -> Result<(), ImportError> {
        let (outcome, time, raw) = ended;
        let made = self.pending.iter().find(|(_, call)| call.id == id).map(|(number, _)| *number);
        let call = made.and_then(|number| self.pending.remove(&number)).unwrap_or_else(|| Call {
            episode: self.episode.clone(),
            key: key(&[&self.episode, if id.is_empty() { "call" } else { id }, &self.messages.to_string()]),
            id: id.to_owned(),
            tool: String::new(),
            arguments: String::new(),
            time,
            raw: None,
            fields: Vec::new(),
        });
        intake.trace(call.ended(outcome.unwrap_or(Outcome::Unknown), &text, raw))
    }

    fn end(&mut self, intake: &mut Intake<'_>) -> Result<(), ImportError> {
        for (_, call) in std::mem::take(&mut self.pending) {
            intake.trace(call.ended(Outcome::Unknown, "", None))?;
        }
        Ok(())
    }
}
