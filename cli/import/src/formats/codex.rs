//! `codex`: the rollouts below `~/.codex/sessions`, a line an event.
//!
//! A rollout holds two logs of one session: what went to and from the model (`response_item`), and what the screen
//! showed (`event_msg`). A message is in either or in both: it is written as often as the log that has it more often.
//! A call is known by its id, and its outcome by `exec_command_end`, the metadata of its output, or the first line of
//! that. What the harness put into the user's mouth is dropped.

use super::{names, text_at, text_or_json, words};
use crate::entry::{Call, Fact, Outcome, Trace, hash, key};
use crate::files::Files;
use crate::intake::Intake;
use crate::{Format, ImportError};
use holotype::Kind;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Beginnings of messages that the harness wrote in the user's name.
const SCAFFOLDING: [&str; 8] = [
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<collaboration_mode>",
    "<skills_instructions>",
    "<turn_aborted>",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions",
];

pub(crate) fn read(files: &Files, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    for name in names(Format::Codex, files)? {
        let stem = name.rsplit('/').next().unwrap_or(name).trim_end_matches(".jsonl");
        // `rollout-2026-01-05T10-00-00-UUID`: the id is the last 36 characters.
        let id = stem.char_indices().rev().nth(35).map_or(stem, |(at, _)| &stem[at..]);
        let mut rollout = Rollout { id: id.to_owned(), ..Rollout::default() };
        intake.json_lines(files, name, &mut |intake, line, raw| rollout.line(intake, &line, raw))?;
        rollout.end(intake)?;
    }
    Ok(())
}

#[derive(Default)]
struct Rollout {
    id: String,
    cwd: String,
    /// How often each log has a message, by role and text.
    said: HashMap<String, [u32; 2]>,
    messages: u64,
    pending: BTreeMap<u64, Pending>,
    calls: u64,
}

/// A call, with what is known of its end.
struct Pending {
    call: Call,
    outcome: Option<Outcome>,
    output: Option<(String, String)>,
}

/// An event with its time and line.
struct Event<'l> {
    payload: &'l Value,
    time: Option<i64>,
    raw: &'l str,
}

impl Rollout {
    fn line(&mut self, intake: &mut Intake<'_>, line: &Value, raw: &str) -> Result<(), ImportError> {
        intake.count_read();
        let time = intake.time(&line["timestamp"])?;
        // The first rollouts had no envelope.
        let payload = line.get("payload").filter(|payload| payload.is_object()).unwrap_or(line);
        let event = Event { payload, time, raw };
        match text_at(line, "type") {
            "session_meta" => self.meta(payload),
            "response_item" => return self.item(intake, &event),
            "event_msg" => return self.event(intake, &event),
            "compacted" => return self.compacted(intake, &event),
            "turn_context" | "state" | "world_state" | "session_state" => intake.ignore(),
            "message" | "reasoning" | "function_call" | "function_call_output" => return self.item(intake, &event),
            "" if !text_at(line, "id").is_empty() => self.meta(line),
            "" if line.get("record_type").is_some() => intake.ignore(),
            "" => intake.bad("got a line without `type`, expected an event of Codex"),
            name => intake.unknown(name),
        }
        Ok(())
    }

    fn meta(&mut self, payload: &Value) {
        let id = text_at(payload, "id");
        if !id.is_empty() {
            self.id = id.to_owned();
        }
        self.cwd = text_at(payload, "cwd").to_owned();
    }

    fn item(&mut self, intake: &mut Intake<'_>, event: &Event<'_>) -> Result<(), ImportError> {
        let payload = event.payload;
        match text_at(payload, "type") {
            "message" => {
                let (role, text) = (text_at(payload, "role"), words(&payload["content"]));
                self.message(intake, event, role, text, 0)
            }
            name @ ("function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call"
            | "tool_search_call") => {
                self.call(event, name);
                self.settle(intake, false)
            }
            "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
                self.output(event);
                self.settle(intake, false)
            }
            "reasoning" | "ghost_snapshot" | "compaction" | "other" => {
                intake.ignore();
                Ok(())
            }
            name => {
                intake.unknown(&format!("response_item {name}"));
                Ok(())
            }
        }
    }

    fn event(&mut self, intake: &mut Intake<'_>, event: &Event<'_>) -> Result<(), ImportError> {
        let payload = event.payload;
        match text_at(payload, "type") {
            "user_message" => self.message(intake, event, "user", text_at(payload, "message").to_owned(), 1),
            "agent_message" => self.message(intake, event, "assistant", text_at(payload, "message").to_owned(), 1),
            "exec_command_end" => {
                let exit = payload["exit_code"].as_i64();
                self.outcome(payload, exit.map(|exit| Outcome::of_success(exit == 0)));
                Ok(())
            }
            "patch_apply_end" => {
                self.outcome(payload, payload["success"].as_bool().map(Outcome::of_success));
                Ok(())
            }
            "mcp_tool_call_end" => {
                let result = &payload["result"];
                let ok = result.get("Ok").map(|ok| ok["isError"] != true && ok["is_error"] != true);
                self.outcome(payload, Some(Outcome::of_success(ok.unwrap_or(false))));
                Ok(())
            }
            "turn_aborted" => {
                for pending in self.pending.values_mut().filter(|pending| pending.output.is_none()) {
                    pending.outcome.get_or_insert(Outcome::Interrupted);
                }
                Ok(())
            }
            "" => {
                intake.bad("got an event_msg without `type`, expected an event of Codex");
                Ok(())
            }
            // The others tell the screen of what is read elsewhere: tokens, deltas, beginnings.
            _ => {
                intake.ignore();
                Ok(())
            }
        }
    }

    /// A message of one of the two logs; the log that has it more often writes it.
    fn message(
        &mut self,
        intake: &mut Intake<'_>,
        event: &Event<'_>,
        role: &str,
        text: String,
        log: usize,
    ) -> Result<(), ImportError> {
        let start = text.trim_start();
        let is_scaffolding = role == "user" && SCAFFOLDING.iter().any(|opening| start.starts_with(opening));
        if start.is_empty() || is_scaffolding || matches!(role, "developer" | "system") {
            intake.ignore();
            return Ok(());
        }
        let counts = self.said.entry(hash(&format!("{role}\0{}", text.trim()))).or_default();
        counts[log] += 1;
        if counts[log] <= counts[1 - log] {
            intake.ignore();
            return Ok(());
        }
        self.settle(intake, false)?;
        self.messages += 1;
        let key = key(&[&self.id, &self.messages.to_string()]);
        intake.trace(Trace::turn(self.id.clone(), key, role, text).time(event.time).raw(event.raw))
    }

    fn call(&mut self, event: &Event<'_>, name: &str) {
        let payload = event.payload;
        let id = match text_at(payload, "call_id") {
            "" => text_at(payload, "id"),
            id => id,
        };
        self.calls += 1;
        let id = if id.is_empty() { format!("call-{}", self.calls) } else { id.to_owned() };
        let tool = match (text_at(payload, "name"), name) {
            ("", "local_shell_call") => "shell",
            ("", "web_search_call") => "web_search",
            ("", _) => name,
            (tool, _) => tool,
        };
        let arguments = [&payload["arguments"], &payload["input"], &payload["action"]];
        let arguments = arguments.into_iter().find(|value| !value.is_null()).map(text_or_json).unwrap_or_default();
        let outcome = match text_at(payload, "status") {
            "incomplete" => Some(Outcome::Interrupted),
            "failed" => Some(Outcome::Failed),
            _ => None,
        };
        // The search runs at the model's side, and its result is never logged.
        let output = (name == "web_search_call").then(|| (String::new(), String::new()));
        let call = Call {
            episode: self.id.clone(),
            key: key(&[&self.id, &id]),
            id,
            tool: tool.to_owned(),
            arguments,
            time: event.time,
            raw: Some(event.raw.to_owned()),
            fields: Vec::new(),
        };
        self.pending.insert(self.calls, Pending { call, outcome, output });
    }

    fn find(&mut self, id: &str) -> Option<&mut Pending> {
        self.pending.values_mut().rev().find(|pending| pending.call.id == id)
    }

    /// The outcome that the screen was told.
    fn outcome(&mut self, payload: &Value, outcome: Option<Outcome>) {
        if let Some(pending) = self.find(text_at(payload, "call_id")) {
            pending.outcome = outcome.or(pending.outcome);
        }
    }

    fn output(&mut self, event: &Event<'_>) {
        let payload = event.payload;
        let id = text_at(payload, "call_id");
        let (text, stated) = output_of(&payload["output"]);
        if self.find(id).is_none() {
            self.call(event, "function_call");
        }
        if let Some(pending) = self.find(id) {
            pending.outcome = pending.outcome.or(stated);
            pending.output = Some((text, event.raw.to_owned()));
        }
    }

    /// Writes the calls that have ended; at the end all of them.
    fn settle(&mut self, intake: &mut Intake<'_>, is_end: bool) -> Result<(), ImportError> {
        // The screen is told of an end before the model or just after it, so the newest call waits for one more event.
        let newest = self.pending.keys().next_back().copied();
        let is_due = |number: &u64, pending: &Pending| {
            is_end || pending.output.is_some() && (pending.outcome.is_some() || Some(*number) != newest)
        };
        let due: Vec<u64> =
            self.pending.iter().filter(|(at, pending)| is_due(at, pending)).map(|(at, _)| *at).collect();
        for number in due {
            let Some(Pending { call, outcome, output }) = self.pending.remove(&number) else { continue };
            let (text, raw) = output.unwrap_or_default();
            let raw = Some(raw.as_str()).filter(|raw| !raw.is_empty() && call.raw.as_deref() != Some(raw));
            intake.trace(call.ended(outcome.unwrap_or(Outcome::Unknown), &text, raw))?;
        }
        Ok(())
    }

    fn compacted(&mut self, intake: &mut Intake<'_>, event: &Event<'_>) -> Result<(), ImportError> {
        let text = text_at(event.payload, "message");
        let mut fact = Fact::new(key(&[&self.id, "compacted", &hash(text)]), text).time(event.time).raw(event.raw);
        fact.kind = Kind::Summary;
        fact.quote.clear();
        intake.fact(fact.episode(self.id.clone()))
    }

    fn end(&mut self, intake: &mut Intake<'_>) -> Result<(), ImportError> {
        self.settle(intake, true)?;
        match self.messages + self.calls {
            0 => Ok(()),
            _ => intake.episode(&self.id, Some(&self.cwd), None),
        }
    }
}

/// The text of an output and the outcome that it states.
fn output_of(output: &Value) -> (String, Option<Outcome>) {
    if let Value::Object(members) = output {
        let text = members.get("content").map(text_or_json).unwrap_or_default();
        return (text, members.get("success").and_then(Value::as_bool).map(Outcome::of_success));
    }
    if output.is_array() {
        return (words(output), None);
    }
    let text = text_or_json(output);
    if text.starts_with('{')
        && let Ok(inner) = serde_json::from_str::<Value>(&text)
        && let (Some(words), Some(metadata)) = (inner["output"].as_str(), inner.get("metadata"))
    {
        let exit = metadata["exit_code"].as_i64();
        return (words.to_owned(), exit.map(|exit| Outcome::of_success(exit == 0)));
    }
    let outcome = exit_code(&text).map(|exit| Outcome::of_success(exit == 0));
    (text, outcome)
}

/// The exit code that the first lines of an output state.
fn exit_code(text: &str) -> Option<i64> {
    text.lines().take(5).find_map(|line| {
        let rest = line.strip_prefix("Exit code: ").or_else(|| line.strip_prefix("Process exited with code "))?;
        rest.trim().parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_output_states_its_outcome_in_many_ways() {
        for (output, text, outcome) in [
            (json!("plain"), "plain", None),
            (json!({"content": "done", "success": false}), "done", Some(Outcome::Failed)),
            (json!(r#"{"output":"ls","metadata":{"exit_code":0}}"#), "ls", Some(Outcome::Success)),
            (json!("Exit code: 2\nOutput:\nno"), "Exit code: 2\nOutput:\nno", Some(Outcome::Failed)),
            (json!([{"type": "input_text", "text": "a"}]), "a", None),
            (json!(null), "", None),
        ] {
            assert_eq!(output_of(&output), (text.to_owned(), outcome), "{output}");
        }
    }
}
