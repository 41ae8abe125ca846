//! Memory pages (TierMem 3.1, B.2): runs of consecutive traces of one episode, closed by token count.
//!
//! A page is closed when its traces reach the limit (the trace that crosses it belongs to it) or when its episode closes.
//! Its hash is the BLAKE3 of its lines, each followed by a line feed, so that it can be checked from an export alone.

use crate::record::{FieldValue, ItemRecord};
use crate::time;

/// The line a trace renders as: `[timestamp] speaker: text`; what is unknown is left out.
pub(crate) fn line(record: &ItemRecord) -> String {
    match record.time {
        Some(time) => format!("[{}] {}", time::format(time), spoken(record)),
        None => spoken(record),
    }
}

/// `speaker: text`: what an item costs in a prompt. The tool stands in for a missing speaker, the other fields for a
/// missing text.
pub(crate) fn spoken(record: &ItemRecord) -> String {
    let mut line = String::new();
    if let Some(speaker) = record.speaker.as_ref().or(record.tool.as_ref()) {
        line.push_str(speaker);
        line.push_str(": ");
    }
    let text = record.text();
    if !text.is_empty() {
        line.push_str(text);
        return line;
    }
    let named = |(name, value): (&str, &str)| format!("{name}={value}");
    let fields = record.fields.iter().filter_map(|field| match &field.value {
        FieldValue::Text(text) | FieldValue::Json(text) => Some((field.name.as_str(), text.as_str())),
        FieldValue::Bytes(_) | FieldValue::Chunks { .. } => None,
    });
    line.push_str(&fields.map(named).collect::<Vec<_>>().join(" "));
    line
}
