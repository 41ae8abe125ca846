//! A generated log: lines in the interchange form with the questions asked about them.

use crate::dataset::{Asked, Question};
use holotype::embed::HashingEmbedder;
use serde_json::{Value, json};

/// 2026-01-01T00:00:00Z in microseconds.
pub(super) const START_US: i64 = 1_767_225_600_000_000;
pub(super) const SECOND_US: i64 = 1_000_000;
pub(super) const DAY_US: i64 = 86_400 * SECOND_US;

/// The lines of one episode, and questions.
pub(super) struct Log {
    episode: String,
    lines: String,
    questions: Vec<Question>,
    steps: u64,
}

impl Log {
    pub(super) fn new(episode: impl Into<String>) -> Log {
        let episode = episode.into();
        let lines = format!("{}\n", json!({"episode": {"id": episode}}));
        Log { episode, lines, questions: Vec::new(), steps: 0 }
    }

    /// Adds the trace of the next step and returns its key. Without `time` the trace has no time.
    pub(super) fn add(&mut self, mut trace: Value, time: Option<i64>, text: &str) -> String {
        let key = format!("{}/{}", self.episode, self.steps);
        trace["key"] = json!(key);
        trace["episode"] = json!(self.episode);
        trace["step"] = json!(self.steps);
        trace["fields"] = json!({ "text": text });
        if let Some(time) = time {
            trace["time"] = json!(holotype::time::format(time));
        }
        self.lines += &format!("{}\n", json!({ "trace": trace }));
        self.steps += 1;
        key
    }

    /// Adds a question with the members of its line.
    pub(super) fn ask(&mut self, text: &str, known: Value) {
        let vector = HashingEmbedder::default().embed(text).unwrap_or_default();
        self.questions.push(Question { text: text.to_owned(), vector, line: known });
    }

    /// The lines and the questions.
    pub(super) fn finish(self) -> (String, Asked) {
        (self.lines, Asked { episode: self.episode, questions: self.questions })
    }
}

/// A successful call of a tool.
pub(super) fn call(tool: &str) -> Value {
    json!({"kind": "call", "source": "tool", "tool": tool, "status": "success"})
}

/// A remark of the user.
pub(super) fn remark() -> Value {
    json!({"kind": "turn", "source": "user", "status": "success", "speaker": "user"})
}
