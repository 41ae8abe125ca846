//! Memory pages (TierMem 3.1, B.2): runs of consecutive traces of one episode, closed by token count.
//!
//! A page is closed when its traces reach the limit (the trace that crosses it belongs to it) or when its episode closes.
//! Its hash is the BLAKE3 of its lines, each followed by a line feed, so that it can be checked from an export alone.

use crate::record::{FieldValue, ItemRecord};
use crate::time;

/// The line a trace renders as: `[timestamp] speaker: text`. The tool stands in for a missing speaker; what is unknown
/// is left out.
pub(crate) fn line(record: &ItemRecord) -> String {
    let mut line = String::new();
    if let Some(time) = record.time {
        line.push_str(&format!("[{}] ", time::format(time)));
    }
    if let Some(speaker) = record.speaker.as_ref().or(record.tool.as_ref()) {
        line.push_str(speaker);
        line.push_str(": ");
    }
    let text = record.text();
    if !text.is_empty() {
        line.push_str(text);
        return line;
    }
    let mut first = true;
    for field in &record.fields {
        let value = match &field.value {
            FieldValue::Text(text) | FieldValue::Json(text) => text.as_str(),
            FieldValue::Bytes(_) | FieldValue::Chunks { .. } => continue,
        };
        line.push_str(if first { "" } else { " " });
        line.push_str(&format!("{}={value}", field.name));
        first = false;
    }
    line
}
