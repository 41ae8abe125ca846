//! Memory pages (TierMem 3.1, B.2): runs of consecutive traces of one episode, closed at a token limit.
//!
//! A page closes when its traces reach the limit (the trace that crosses it belongs to the page) or when its episode
//! closes. Its hash is the BLAKE3 of its lines, each followed by a line feed, so that an export alone suffices to
//! check it.

use crate::model::time;
use crate::records::field::LABELS;
use crate::records::record::{FieldValue, ItemRecord};
use holotype_storage::buffered_hasher::BufferedHasher;

/// The episode of events that are kept as traces. Its pages wait for no summary.
pub(crate) const EVENTS: &str = "router:events";
/// The tools of its traces.
pub(crate) const EVENT_TOOLS: [&str; 4] = ["tiermem.route", "tiermem.label", "tiermem.learn", "helm.decision"];

/// True if a trace of this tool is an event. Events have no words, so that logging a read changes no score.
pub(crate) fn is_event(tool: Option<&str>) -> bool {
    tool.is_some_and(|tool| EVENT_TOOLS.contains(&tool))
}

/// Incremental hash of a page.
#[derive(Default)]
pub(crate) struct PageHash {
    lines: BufferedHasher,
    /// The last formatted time: all traces of a transaction share one.
    time: Option<(i64, String)>,
}

impl PageHash {
    /// Adds the line of a trace and a line feed. The line is `[timestamp] speaker: text` without its unknown parts.
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

/// The open page of an episode, hashed incrementally, so that closing it reads no trace again.
pub(crate) struct OpenPage {
    pub(crate) episode: u32,
    /// The traces on the page, in order.
    pub(crate) traces: Vec<u32>,
    pub(crate) tokens: u64,
    hash: PageHash,
}

impl OpenPage {
    /// An empty page of an episode that reuses the allocations of a closed one.
    pub(crate) fn begin(done: Option<OpenPage>, episode: u32) -> Self {
        let (mut traces, mut hash) = done.map(|done| (done.traces, done.hash)).unwrap_or_default();
        traces.clear();
        hash.lines.clear();
        OpenPage { episode, traces, tokens: 0, hash }
    }

    /// Adds the next trace to the page.
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

/// Appends the line of a trace and a line feed, the bytes that [`PageHash`] takes.
pub(crate) fn write_line(record: &ItemRecord, text: &mut String) {
    if let Some(time) = record.time {
        for piece in ["[", &time::format(time), "] "] {
            text.push_str(piece);
        }
    }
    each_part(record, &mut |part| text.push_str(part));
    text.push('\n');
}

/// The prompt cost of a trace: the tokens of its line without the timestamp.
pub(crate) fn spoken_tokens(record: &ItemRecord) -> u32 {
    let mut chars = 0;
    each_part(record, &mut |part| chars += crate::model::tokens::chars(part));
    crate::model::tokens::of_chars(chars)
}

/// The parts of `speaker: text`. The tool replaces a missing speaker, the other fields a missing text.
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
    for field in record.fields.iter().filter(|field| field.name != LABELS) {
        let (FieldValue::Text(text) | FieldValue::Json(text)) = &field.value else { continue };
        for piece in [separator, &field.name, "=", text] {
            part(piece);
        }
        separator = " ";
    }
}
