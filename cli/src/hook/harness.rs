//! The events that each harness sends to its hooks, read into [`Event`]s, and the form in which it takes context.
//!
//! Input is read tolerantly: the names of events of all harnesses are known to each, a member that is missing or of
//! another type counts as absent, and an event that nobody records is none. Output is exact: Codex refuses a hook whose
//! output has one member more. The shapes are those of the harness versions in `docs/hooks.md`.

use super::event::{Event, Outcome, What, hash16};
use super::secrets;
use holotype::time;
use serde_json::{Value, json};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A program that runs agents and calls hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Harness {
    ClaudeCode,
    Codex,
    Gemini,
    Cursor,
    Generic,
}

impl Harness {
    pub(crate) const ALL: [Harness; 5] =
        [Harness::ClaudeCode, Harness::Codex, Harness::Gemini, Harness::Cursor, Harness::Generic];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Harness::ClaudeCode => "claude-code",
            Harness::Codex => "codex",
            Harness::Gemini => "gemini",
            Harness::Cursor => "cursor",
            Harness::Generic => "generic",
        }
    }
}

impl fmt::Display for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Harness {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Harness::ALL.map(Harness::as_str).join(", ");
        let found = Harness::ALL.into_iter().find(|harness| harness.as_str() == text);
        found.ok_or_else(|| format!("unknown harness {text:?}; expected {}", known()))
    }
}

/// A call of a hook, as it was understood.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) session: String,
    /// The name of the event in the harness's own words.
    pub(super) name: String,
    /// The working folder of the session.
    pub(super) cwd: Option<PathBuf>,
    pub(super) events: Vec<Event>,
    /// The transcript, if this event is one that reads it.
    pub(super) transcript: Option<PathBuf>,
    /// True if the harness takes context now.
    pub(super) injects: bool,
    /// The files that a tool call names.
    pub(super) files: Vec<PathBuf>,
}

/// Reads the input of a hook. `event` is the name given on the command line, for a harness that does not send one.
///
/// # Errors
/// A sentence, if the input says neither which session nor which event.
pub(super) fn read(event: Option<&str>, bytes: &[u8]) -> Result<Call, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| format!("the input is not UTF-8: {error}"))?;
    let text = text.trim_start_matches('\u{feff}');
    let input: Value = serde_json::from_str(text).map_err(|error| format!("the input is not JSON: {error}"))?;
    if !input.is_object() {
        return Err("the input is not a JSON object".to_owned());
    }
    let input = Input(&input);
    let session = input.first(&["session_id", "conversation_id", "thread-id", "session"]);
    let session = session.ok_or("the input names no session: expected session_id, conversation_id or thread-id")?;
    let name = input.first(&["hook_event_name", "type", "event"]).or(event);
    let name = name.ok_or("the input names no event: expected hook_event_name, or the name as an argument")?;
    let folders = input.0.get("workspace_roots").and_then(|roots| roots.get(0)).and_then(Value::as_str);
    let cwd = input.text("cwd").or(folders).map(PathBuf::from);
    let mut call = Call {
        session: session.to_owned(),
        name: name.to_owned(),
        files: files_of(&input, cwd.as_deref()),
        cwd,
        events: Vec::new(),
        transcript: None,
        injects: false,
    };
    read_event(&mut call, &input, &hash16(text));
    let time = input.text("timestamp").and_then(|at| time::parse(at).ok());
    call.events = call.events.into_iter().map(|event| event.at(time)).collect();
    Ok(call)
}

fn read_event(call: &mut Call, input: &Input<'_>, raw: &str) {
    let mark = |call: &mut Call, name: &str, text: String| {
        let what = What::Mark { name: name.to_owned() };
        call.events.push(Event::new(&call.session, &format!("{name}-{raw}"), what, &text, Vec::new()));
    };
    match call.name.as_str() {
        "SessionStart" | "sessionStart" | "session-start" => {
            let source = input.first(&["source", "composer_mode"]).unwrap_or("startup");
            let place = call.cwd.as_ref().map(|cwd| format!(" in {}", cwd.display())).unwrap_or_default();
            mark(call, "session-start", format!("session began ({source}){place}"));
            call.injects = true;
        }
        "UserPromptSubmit" | "BeforeAgent" | "beforeSubmitPrompt" | "prompt" => {
            call.events.extend(turn(input, &call.session, true, input.text("prompt")));
        }
        "PostToolUse" | "AfterTool" | "postToolUse" | "tool" => call.events.extend(tool_call(input, call, raw, None)),
        "PostToolUseFailure" | "postToolUseFailure" => {
            let interrupted = input.0.get("is_interrupt").and_then(Value::as_bool) == Some(true)
                || input.text("failure_type").is_some_and(|why| why.contains("interrupt") || why.contains("abort"));
            let outcome = if interrupted { Outcome::Interrupted } else { Outcome::Failed };
            call.events.extend(tool_call(input, call, raw, Some(outcome)));
        }
        "Stop" | "stop" | "AfterAgent" | "afterAgentResponse" | "answer" => {
            let said = input.first(&["last_assistant_message", "prompt_response", "text"]);
            call.events.extend(turn(input, &call.session, false, said));
            call.transcript = input.text("transcript_path").map(PathBuf::from);
        }
        "SubagentStop" => call.transcript = input.text("agent_transcript_path").map(PathBuf::from),
        "PreCompact" | "PreCompress" | "preCompact" => {
            let trigger = input.text("trigger").unwrap_or("auto");
            mark(call, "compaction", format!("the context is compacted ({trigger})"));
            call.transcript = input.text("transcript_path").map(PathBuf::from);
        }
        "PostCompact" => {
            let summary = input.text("compact_summary").unwrap_or("the context was compacted");
            mark(call, "compacted", summary.to_owned());
        }
        "SessionEnd" | "sessionEnd" | "session-end" => {
            let reason = input.text("reason").unwrap_or("other");
            mark(call, "session-end", format!("session ended ({reason})"));
            call.transcript = input.text("transcript_path").map(PathBuf::from);
        }
        // Codex's older notification.
        "agent-turn-complete" => {
            let asked = input.0.get("input-messages").and_then(Value::as_array).into_iter().flatten();
            for asked in asked.filter_map(Value::as_str) {
                call.events.extend(turn(input, &call.session, true, Some(asked)));
            }
            call.events.extend(turn(input, &call.session, false, input.text("last-assistant-message")));
        }
        // Of the many other events a harness may send, none is recorded.
        _ => {}
    }
}

/// A turn, unless nothing was said.
fn turn(input: &Input<'_>, session: &str, by_user: bool, said: Option<&str>) -> Option<Event> {
    let said = said.filter(|said| !said.trim().is_empty())?;
    let hash = hash16(&format!("{by_user}\n{}", said.trim()));
    let of_prompt = input.text("prompt_id").filter(|_| by_user).map(str::to_owned);
    let of_turn = || {
        let turn = input.first(&["turn_id", "generation_id", "turn-id"])?;
        Some(format!("{turn}/{}-{}", if by_user { "prompt" } else { "answer" }, &hash[..8]))
    };
    let id = of_prompt.or_else(of_turn).unwrap_or_else(|| format!("turn-{hash}"));
    Some(Event::new(session, &id, What::Turn { by_user }, said, Vec::new()))
}

fn tool_call(input: &Input<'_>, call: &Call, raw: &str, outcome: Option<Outcome>) -> Option<Event> {
    let tool = input.text("tool_name")?;
    let id = input.first(&["tool_use_id", "call_id"]).map_or_else(|| format!("call-{raw}"), str::to_owned);
    let member = |names: &[&str]| names.iter().find_map(|name| input.0.get(*name)).filter(|value| !value.is_null());
    let result = member(&["tool_response", "tool_output", "error", "error_message"]);
    let outcome = outcome.unwrap_or_else(|| result.map_or(Outcome::Unknown, outcome_of));
    let mut fields = Vec::new();
    if let Some(milliseconds) = member(&["duration_ms", "duration"]).and_then(Value::as_f64) {
        fields.push(("duration_ms".to_owned(), milliseconds.to_string()));
    }
    if let Some(code) = result.and_then(exit_code) {
        fields.push(("exit_code".to_owned(), code.to_string()));
    }
    let answer = ToolAnswer { result, outcome, fields };
    Some(call_event(&call.session, &id, ToolCall { tool, arguments: member(&["tool_input"]), answer }))
}

/// A tool call with its answer.
pub(super) struct ToolCall<'v> {
    pub(super) tool: &'v str,
    pub(super) arguments: Option<&'v Value>,
    pub(super) answer: ToolAnswer<'v>,
}

/// The answer of a tool call.
pub(super) struct ToolAnswer<'v> {
    pub(super) result: Option<&'v Value>,
    pub(super) outcome: Outcome,
    pub(super) fields: Vec<(String, String)>,
}

/// The event of a tool call.
pub(super) fn call_event(session: &str, id: &str, call: ToolCall<'_>) -> Event {
    let ToolCall { tool, arguments, answer: ToolAnswer { result, outcome, mut fields } } = call;
    let mut text = String::new();
    if let Some(arguments) = arguments {
        let arguments = compact(&secrets::withhold_json(arguments));
        text.clone_from(&arguments);
        fields.insert(0, ("arguments".to_owned(), arguments));
    }
    if let Some(result) = result {
        let result = result_text(&secrets::withhold_json(result));
        text = if text.is_empty() { result } else { format!("{text}\n→ {result}") };
    }
    Event::new(session, id, What::Call { tool: tool.to_owned(), outcome }, &text, fields)
}

fn compact(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The answer of a tool as text: the parts that hold text, or else the JSON.
pub(super) fn result_text(result: &Value) -> String {
    match result {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(result_text).collect::<Vec<_>>().join("\n"),
        Value::Object(members) => {
            let texts: Vec<String> =
                ["text", "stdout", "stderr", "output", "llmContent", "content", "aggregated_output", "error"]
                    .iter()
                    .filter_map(|name| members.get(*name))
                    .filter(|value| value.is_string() || value.is_array())
                    .map(result_text)
                    .filter(|text| !text.is_empty())
                    .collect();
            if texts.is_empty() { result.to_string() } else { texts.join("\n") }
        }
        value => value.to_string(),
    }
}

/// The outcome that a result tells of itself.
pub(super) fn outcome_of(result: &Value) -> Outcome {
    let member = |name: &str| result.get(name).filter(|value| !value.is_null());
    if member("interrupted").and_then(Value::as_bool) == Some(true) {
        return Outcome::Interrupted;
    }
    let is_error = ["is_error", "isError"].iter().any(|name| member(name).and_then(Value::as_bool) == Some(true));
    let fails = member("success").and_then(Value::as_bool) == Some(false);
    let error = member("error").is_some_and(|error| error.as_str() != Some("") && error.as_bool() != Some(false));
    match is_error || fails || error || exit_code(result).is_some_and(|code| code != 0) {
        true => Outcome::Failed,
        false => Outcome::Success,
    }
}

/// The exit code in a result: a member of it, of its `metadata`, or of the JSON that it is as a text.
pub(super) fn exit_code(result: &Value) -> Option<i64> {
    let code = |value: &Value| ["exit_code", "exitCode"].iter().find_map(|name| value.get(*name)?.as_i64());
    code(result).or_else(|| code(result.get("metadata")?)).or_else(|| {
        let text = result.as_str().filter(|text| text.starts_with('{'))?;
        let inner: Value = serde_json::from_str(text).ok()?;
        code(&inner).or_else(|| code(inner.get("metadata")?))
    })
}

/// The files that the arguments of a tool call name.
fn files_of(input: &Input<'_>, cwd: Option<&Path>) -> Vec<PathBuf> {
    let Some(arguments) = input.0.get("tool_input") else { return Vec::new() };
    let named = ["file_path", "path", "notebook_path", "absolute_path", "target_file", "filename"];
    let named = named.iter().filter_map(|name| arguments.get(*name)?.as_str()).map(Path::new);
    named.map(|path| cwd.map_or_else(|| path.to_owned(), |cwd| cwd.join(path))).collect()
}

/// The output that gives a harness context at an event.
pub(super) fn context_output(harness: Harness, event: &str, context: &str) -> String {
    match harness {
        Harness::ClaudeCode | Harness::Codex | Harness::Gemini => {
            json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": context}}).to_string()
        }
        Harness::Cursor => json!({"additional_context": context, "continue": true}).to_string(),
        Harness::Generic => context.to_owned(),
    }
}

/// The object that a harness sent.
struct Input<'v>(&'v Value);

impl<'v> Input<'v> {
    fn text(&self, name: &str) -> Option<&'v str> {
        self.0.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    fn first(&self, names: &[&str]) -> Option<&'v str> {
        names.iter().find_map(|name| self.text(name))
    }
}
