//! The new tail of a session's transcript. Hooks are the fast path, the transcript is the safety net: what no hook
//! delivered is recorded from here.
//!
//! Claude Code writes a JSON object a line with a `uuid`; Codex writes `{timestamp, type, payload}` and tells of one
//! call in several lines. Lines that hold nothing to record, and lines of shapes that are not known, are passed over.
//!
//! Only whole lines are read: the harness may be writing the last one. A file that became shorter is read from its
//! beginning; what is recorded already is known by its keys.

use super::event::{Event, Outcome, What, hash16};
use super::harness::{ToolAnswer, ToolCall, call_event, exit_code, outcome_of, result_text};
use holotype::time;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::Path;

/// The most bytes read by one hook; the next one reads on.
const TAIL_LEN: u64 = 4 << 20;
/// The most calls without an answer that are remembered from one reading to the next.
const OPEN_CALLS: usize = 256;

/// The tail of a transcript.
#[derive(Debug, Default)]
pub(super) struct Tail {
    pub(super) events: Vec<Event>,
    /// The offset behind the last line that was read.
    pub(super) offset: u64,
    /// Calls without an answer, by their ids: name and arguments.
    pub(super) open_calls: Map<String, Value>,
}

/// Reads the lines behind an offset.
///
/// # Errors
/// Errors of the file system; one that says so if the path is no regular file.
pub(super) fn read(path: &Path, session: &str, offset: u64, open_calls: Map<String, Value>) -> io::Result<Tail> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("the transcript is no regular file"));
    }
    let mut file = File::open(path)?;
    let start = if file.metadata()?.len() < offset { 0 } else { offset };
    file.seek(SeekFrom::Start(start))?;
    let mut reader = BufReader::new(io::Read::take(file, TAIL_LEN));
    let mut tail = Tail { offset: start, open_calls, ..Tail::default() };
    let mut line = Vec::new();
    loop {
        line.clear();
        let len = reader.read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\n") {
            // A line longer than all that is read at once is passed over, or no hook would ever get behind it.
            tail.offset += if len as u64 == TAIL_LEN { TAIL_LEN } else { 0 };
            break;
        }
        tail.offset += len as u64;
        if let Ok(value) = serde_json::from_slice::<Value>(&line) {
            read_line(&value, session, &mut tail);
        }
    }
    while tail.open_calls.len() > OPEN_CALLS {
        let first = tail.open_calls.keys().next().cloned().unwrap_or_default();
        tail.open_calls.shift_remove(&first);
    }
    Ok(tail)
}

fn read_line(line: &Value, session: &str, tail: &mut Tail) {
    let at = line.get("timestamp").and_then(Value::as_str).and_then(|at| time::parse(at).ok());
    let before = tail.events.len();
    match line.get("payload") {
        Some(payload) => read_codex(line, payload, session, tail),
        None => read_claude(line, session, tail),
    }
    for event in &mut tail.events[before..] {
        event.time = at;
    }
}

fn read_claude(line: &Value, session: &str, tail: &mut Tail) {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let (Some(by), Some(uuid), Some(message)) = (text(line, "type"), text(line, "uuid"), line.get("message")) else {
        return;
    };
    let by_user = by == "user";
    if !(by_user || by == "assistant") || line.get("isMeta").and_then(Value::as_bool) == Some(true) {
        return;
    }
    let mut said = Vec::new();
    match message.get("content") {
        Some(Value::String(text)) => said.push(text.clone()),
        Some(Value::Array(blocks)) => {
            for block in blocks {
                match block.get("type").and_then(Value::as_str) {
                    Some("text") => said.extend(text(block, "text")),
                    Some("tool_use") => note_call(tail, block, "id", "name", block.get("input")),
                    Some("tool_result") => {
                        let whole = line.get("toolUseResult").filter(|result| result.is_object());
                        claude_result(session, block, whole, tail);
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
    let said = said.join("\n");
    if !said.trim().is_empty() && !is_scaffolding(&said) {
        // A prompt that its hook named by `prompt_id` is found by what it says.
        tail.events.push(Event::new(session, &uuid, What::Turn { by_user }, &said, Vec::new()));
    }
}

fn note_call(tail: &mut Tail, call: &Value, id: &str, name: &str, arguments: Option<&Value>) {
    let text = |name: &str| call.get(name).and_then(Value::as_str);
    if let (Some(id), Some(name)) = (text(id), text(name)) {
        let arguments = super::secrets::withhold_json(arguments.unwrap_or(&Value::Null));
        tail.open_calls.insert(id.to_owned(), json!({"tool": name, "arguments": arguments}));
    }
}

fn claude_result(session: &str, block: &Value, whole: Option<&Value>, tail: &mut Tail) {
    let Some(id) = block.get("tool_use_id").and_then(Value::as_str) else { return };
    let failed = block.get("is_error").and_then(Value::as_bool) == Some(true);
    let outcome = match whole.map(outcome_of) {
        Some(Outcome::Interrupted) => Outcome::Interrupted,
        _ if failed => Outcome::Failed,
        _ => Outcome::Success,
    };
    let answer = ToolAnswer { result: block.get("content"), outcome, fields: Vec::new() };
    end_call(session, id, answer, tail);
}

/// The event of a call whose answer is here.
fn end_call(session: &str, id: &str, answer: ToolAnswer<'_>, tail: &mut Tail) {
    let call = tail.open_calls.shift_remove(id).unwrap_or_default();
    let tool = call.get("tool").and_then(Value::as_str).unwrap_or("unknown");
    let arguments = call.get("arguments").filter(|arguments| !arguments.is_null());
    tail.events.push(call_event(session, id, ToolCall { tool, arguments, answer }));
}

fn read_codex(line: &Value, payload: &Value, session: &str, tail: &mut Tail) {
    let text = |name: &str| payload.get(name).and_then(Value::as_str);
    match (line.get("type").and_then(Value::as_str), text("type")) {
        (Some("response_item"), Some("message")) => {
            let by_user = match text("role") {
                Some("user") => true,
                Some("assistant") => false,
                _ => return,
            };
            let said = payload.get("content").map(result_text).unwrap_or_default();
            if !said.trim().is_empty() && !is_scaffolding(&said) {
                let id = format!("rollout-{}", hash16(&line.to_string()));
                tail.events.push(Event::new(session, &id, What::Turn { by_user }, &said, Vec::new()));
            }
        }
        (Some("response_item"), Some("function_call" | "custom_tool_call")) => {
            let given = text("arguments").or(text("input"));
            let parsed = given.and_then(|given| serde_json::from_str(given).ok());
            let arguments = parsed.or_else(|| given.map(Value::from));
            note_call(tail, payload, "call_id", "name", arguments.as_ref());
        }
        (Some("event_msg"), Some("exec_command_end")) => {
            let Some(call) = text("call_id").and_then(|id| tail.open_calls.get_mut(id)) else { return };
            if let (Some(code), Some(call)) = (payload.get("exit_code"), call.as_object_mut()) {
                call.insert("exit_code".to_owned(), code.clone());
            }
        }
        (Some("response_item"), Some("function_call_output" | "custom_tool_call_output")) => {
            let (Some(id), Some(output)) = (text("call_id"), payload.get("output")) else { return };
            let noted = tail.open_calls.get(id).and_then(exit_code);
            let code = noted.or_else(|| exit_code(output));
            let outcome = match code {
                Some(0) => Outcome::Success,
                Some(_) => Outcome::Failed,
                None => outcome_of(output),
            };
            let fields = code.map(|code| ("exit_code".to_owned(), code.to_string())).into_iter().collect();
            end_call(session, id, ToolAnswer { result: Some(output), outcome, fields }, tail);
        }
        _ => {}
    }
}

/// True for what a harness puts into the user's mouth.
fn is_scaffolding(said: &str) -> bool {
    let said = said.trim_start();
    [
        "<command-name>",
        "<command-message>",
        "<local-command-stdout>",
        "<local-command-caveat>",
        "<environment_context>",
        "<user_instructions>",
        "<system-reminder>",
        "<bash-input>",
        "<bash-stdout>",
    ]
    .iter()
    .any(|tag| said.starts_with(tag))
}
