//! The format that a file looks like, by its name and first bytes, for a hint to those who named none.

use crate::Format;
use serde_json::Value;

/// Kinds of lines of the interchange, which is no foreign format.
const OWN: [&str; 17] = [
    "holotype",
    "space",
    "setting",
    "episode",
    "trace",
    "recall",
    "theme",
    "page",
    "link",
    "unlink",
    "claim",
    "mark",
    "deactivate",
    "redact",
    "credit",
    "receipt",
    "event",
];

/// The format that a file looks like; `None` if it may be the interchange, or anything.
pub fn guess(name: &str, head: &[u8]) -> Option<Format> {
    let base = name.rsplit(['/', '\\']).next().unwrap_or(name).to_ascii_lowercase();
    let ends = |ends: &[&str]| ends.iter().any(|end| base.ends_with(end));
    if head.starts_with(b"PAR1") || ends(&[".parquet"]) {
        return Some(Format::Parquet);
    }
    if head.starts_with(b"SQLite format 3\0") {
        return Some(Format::Langgraph);
    }
    if ends(&[".md", ".markdown", ".mdx"]) {
        return Some(Format::Markdown);
    }
    if ends(&[".csv", ".tsv"]) {
        return Some(Format::Csv);
    }
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if !text.starts_with(['{', '[']) || is_chat(text) {
        return is_chat(text).then_some(Format::Whatsapp);
    }
    let line = text.lines().next().unwrap_or_default();
    if let Ok(Value::Object(members)) = serde_json::from_str::<Value>(line) {
        let first = members.keys().next().map_or("", String::as_str);
        if OWN.contains(&first) || first == "commit" {
            return None;
        }
    }
    by_members(&|name| ["\":", "\" :"].iter().any(|end| text.contains(&format!("\"{name}{end}"))), text)
}

/// True for a line that begins with a time in the way of WhatsApp.
fn is_chat(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default().trim_start_matches(['\u{200e}', '[']);
    let date = line.split([',', ' ']).next().unwrap_or_default();
    let is_date =
        date.split(['/', '.']).count() == 3 && date.chars().all(|c| c.is_ascii_digit() || c == '/' || c == '.');
    is_date && (line.contains("] ") || line.contains(" - "))
}

fn by_members(has: &dyn Fn(&str) -> bool, text: &str) -> Option<Format> {
    let all = |names: &[&str]| names.iter().all(|name| has(name));
    let by_shape: [(&[&str], Format); 15] = [
        (&["sessionId", "parentUuid"], Format::ClaudeCode),
        (&["type", "leafUuid"], Format::ClaudeCode),
        (&["type", "payload", "timestamp"], Format::Codex),
        (&["mif_version"], Format::Mif),
        (&["mapping"], Format::Chatgpt),
        (&["chat_messages"], Format::Claude),
        (&["agents", "blocks"], Format::Letta),
        (&["core_memory"], Format::Letta),
        (&["type", "entityType"], Format::ServerMemory),
        (&["type", "relationType"], Format::ServerMemory),
        (&["memory", "user_id"], Format::Mem0),
        (&["memory", "hash"], Format::Mem0),
        (&["results", "memory"], Format::Mem0),
        (&["type", "user", "ts"], Format::Slack),
        (&["type", "text", "ts"], Format::Slack),
    ];
    if let Some((_, format)) = by_shape.iter().find(|(names, _)| all(names)) {
        return Some(*format);
    }
    if !has("role") && !has("messages") {
        return None;
    }
    let is_anthropic = text.contains("\"tool_use\"") || text.contains("\"tool_result\"") || has("system");
    Some(if is_anthropic { Format::Anthropic } else { Format::Openai })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interchange_is_no_foreign_format() {
        for line in
            ["{\"holotype\":{\"interchange\":1}}", "{\"trace\":{\"key\":\"a\"}}", "{\"commit\":{}}", "{}", "", "x"]
        {
            assert_eq!(guess("a.jsonl", line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn first_bytes_tell_the_format() {
        for (text, format) in [
            ("{\"parentUuid\":null,\"sessionId\":\"s\"}", Format::ClaudeCode),
            ("{\"timestamp\":\"\",\"type\":\"session_meta\",\"payload\":{}}", Format::Codex),
            ("[{\"title\":\"x\",\"mapping\":{", Format::Chatgpt),
            ("[{\"uuid\":\"x\",\"chat_messages\":[", Format::Claude),
            ("[{\"role\":\"user\",\"content\":\"x\"}]", Format::Openai),
            ("{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\"}]}]}", Format::Anthropic),
            ("[05/01/2026, 10:00:00] Ana: hi", Format::Whatsapp),
            ("1/5/26, 10:00 AM - Ana: hi", Format::Whatsapp),
        ] {
            assert_eq!(guess("file", text.as_bytes()), Some(format), "{text}");
        }
        assert_eq!(guess("a/b.CSV", b"x,y"), Some(Format::Csv));
    }
}
