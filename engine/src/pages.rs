//! Memory pages (TierMem 3.1, B.2): runs of consecutive traces of one episode, closed by token count.
//!
//! A page is closed when its traces reach the limit (the trace that crosses it belongs to it) or when its episode closes.
//! Its hash is the BLAKE3 of its lines, each followed by a line feed, so that it can be checked from an export alone.

use crate::record::{FieldValue, ItemRecord};
use crate::time;

/// The open page of an episode, hashed as its traces arrive, so that closing it reads none of them again.
#[derive(Clone)]
pub(crate) struct OpenPage {
    pub(crate) episode: u32,
    /// The traces hashed so far, in their order.
    pub(crate) traces: Vec<u32>,
    pub(crate) tokens: u64,
    hasher: blake3::Hasher,
}

impl OpenPage {
    /// A page of an episode that nothing is on yet.
    pub(crate) fn new(episode: u32) -> Self {
        OpenPage { episode, traces: Vec::new(), tokens: 0, hasher: blake3::Hasher::new() }
    }

    /// Puts the next trace on the page.
    pub(crate) fn push(&mut self, record: &ItemRecord) {
        hash_line(&mut self.hasher, record);
        self.traces.push(record.id);
        self.tokens += u64::from(record.tokens);
    }

    /// The page's hash.
    pub(crate) fn hash(&self) -> [u8; 32] {
        *self.hasher.finalize().as_bytes()
    }
}

/// Adds a trace's line and its line feed to a page's hash. The line is `[timestamp] speaker: text`; what is unknown is left
/// out.
pub(crate) fn hash_line(hasher: &mut blake3::Hasher, record: &ItemRecord) {
    if let Some(time) = record.time {
        hasher.update(format!("[{}] ", time::format(time)).as_bytes());
    }
    each_part(record, &mut |part| {
        hasher.update(part.as_bytes());
    });
    hasher.update(b"\n");
}

/// What a trace costs in a prompt: the tokens of its line without the timestamp.
pub(crate) fn spoken_tokens(record: &ItemRecord) -> u32 {
    let mut chars = 0;
    each_part(record, &mut |part| chars += part.chars().count());
    crate::tokens::of_chars(chars)
}

/// `speaker: text` in pieces. The tool stands in for a missing speaker, the other fields for a missing text.
fn each_part(record: &ItemRecord, part: &mut dyn FnMut(&str)) {
    if let Some(speaker) = record.speaker.as_ref().or(record.tool.as_ref()) {
        part(speaker);
        part(": ");
    }
    let text = record.text();
    if !text.is_empty() {
        part(text);
        return;
    }
    let mut separator = "";
    for field in &record.fields {
        let (FieldValue::Text(text) | FieldValue::Json(text)) = &field.value else { continue };
        for piece in [separator, &field.name, "=", text] {
            part(piece);
        }
        separator = " ";
    }
}
