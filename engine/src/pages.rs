//! Memory pages (TierMem 3.1, B.2): runs of consecutive traces of one episode, closed by token count.
//!
//! A page is closed when its traces reach the limit (the trace that crosses it belongs to it) or when its episode closes.
//! Its hash is the BLAKE3 of its lines, each followed by a line feed, so that it can be checked from an export alone.

use crate::record::{FieldValue, ItemRecord};
use crate::time;
use holotype_storage::buffered_hasher::BufferedHasher;

/// The hash of a page as its traces arrive.
#[derive(Default)]
pub(crate) struct PageHash {
    lines: BufferedHasher,
    /// The newest line's time, and how it is written: a transaction gives all its traces the same.
    time: Option<(i64, String)>,
}

impl PageHash {
    /// Adds a trace's line and its line feed. The line is `[timestamp] speaker: text`; what is unknown is left out.
    pub(crate) fn push(&mut self, record: &ItemRecord) {
        if let Some(time) = record.time {
            let known = self.time.take().filter(|(known, _)| *known == time);
            let (_, written) = self.time.insert(known.unwrap_or_else(|| (time, time::format(time))));
            for piece in ["[", written, "] "] {
                self.lines.update(piece.as_bytes());
            }
        }
        each_part(record, &mut |part| self.lines.update(part.as_bytes()));
        self.lines.update(b"\n");
    }

    /// The hash of the lines so far.
    pub(crate) fn get(&self) -> [u8; 32] {
        self.lines.finalize()
    }
}

/// The open page of an episode, its traces taken in as they arrive, so that closing it reads none of them again.
pub(crate) struct OpenPage {
    pub(crate) episode: u32,
    /// The traces taken in so far, in their order.
    pub(crate) traces: Vec<u32>,
    pub(crate) tokens: u64,
    hash: PageHash,
}

impl OpenPage {
    /// A page of an episode that nothing is on yet, in the room of one that is done with.
    pub(crate) fn begin(done: Option<OpenPage>, episode: u32) -> Self {
        let (mut traces, mut hash) = done.map(|done| (done.traces, done.hash)).unwrap_or_default();
        traces.clear();
        hash.lines.clear();
        OpenPage { episode, traces, tokens: 0, hash }
    }

    /// Puts the next trace on the page.
    pub(crate) fn push(&mut self, record: &ItemRecord) {
        self.hash.push(record);
        self.traces.push(record.id);
        self.tokens += u64::from(record.tokens);
    }

    /// The page's hash.
    pub(crate) fn hash(&self) -> [u8; 32] {
        self.hash.get()
    }
}

/// What a trace costs in a prompt: the tokens of its line without the timestamp.
pub(crate) fn spoken_tokens(record: &ItemRecord) -> u32 {
    let mut chars = 0;
    each_part(record, &mut |part| chars += crate::tokens::chars(part));
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
