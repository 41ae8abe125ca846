//! The pieces that a foreign file is made of, before they are items.

use holotype::{Kind, Source, Status};

/// One event of a foreign log: a message, a call with its outcome, a document.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    pub(crate) kind: Kind,
    pub(crate) episode: String,
    pub(crate) key: String,
    pub(crate) time: Option<i64>,
    pub(crate) text: String,
    pub(crate) speaker: Option<String>,
    pub(crate) source: Source,
    pub(crate) tool: Option<String>,
    pub(crate) status: Option<Status>,
    pub(crate) fields: Vec<(String, String)>,
    /// The line or object it was read from, which no index reads.
    pub(crate) raw: Option<String>,
    pub(crate) vector: Option<Vec<f32>>,
    /// True if it is kept beside a fact and no recall returns it.
    pub(crate) is_beside: bool,
}

impl Trace {
    pub(crate) fn new(
        kind: Kind,
        episode: impl Into<String>,
        key: impl Into<String>,
        text: impl Into<String>,
    ) -> Trace {
        Trace {
            kind,
            episode: episode.into(),
            key: key.into(),
            time: None,
            text: text.into(),
            speaker: None,
            source: Source::Document,
            tool: None,
            status: None,
            fields: Vec::new(),
            raw: None,
            vector: None,
            is_beside: false,
        }
    }

    /// A turn of a role: `user`, `assistant`, `system`, `tool` and their synonyms; any other speaker is a person.
    pub(crate) fn turn(
        episode: impl Into<String>,
        key: impl Into<String>,
        role: &str,
        text: impl Into<String>,
    ) -> Trace {
        let mut trace = Trace::new(Kind::Turn, episode, key, text);
        trace.source = source_of(role);
        trace.speaker = Some(role.to_owned()).filter(|role| !role.is_empty());
        trace
    }

    pub(crate) fn time(mut self, time: Option<i64>) -> Trace {
        self.time = time;
        self
    }

    pub(crate) fn source(mut self, source: Source) -> Trace {
        self.source = source;
        self
    }

    pub(crate) fn raw(mut self, raw: impl Into<String>) -> Trace {
        self.raw = Some(raw.into());
        self
    }

    /// Adds a field, unless it is empty.
    pub(crate) fn field(mut self, name: &str, value: impl Into<String>) -> Trace {
        let value = value.into();
        if !value.is_empty() && name != "text" && !self.fields.iter().any(|(known, _)| known == name) {
            self.fields.push((name.to_owned(), value));
        }
        self
    }

    /// The bytes that it takes in a transaction, roughly.
    pub(crate) fn len(&self) -> usize {
        let fields: usize = self.fields.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.text.len() + fields + self.raw.as_ref().map_or(0, String::len) + self.key.len() + 256
    }
}

/// The source of a role.
pub(crate) fn source_of(role: &str) -> Source {
    match role.to_ascii_lowercase().as_str() {
        "assistant" | "ai" | "model" | "bot" => Source::Assistant,
        "system" | "developer" => Source::System,
        "tool" | "function" | "ipython" => Source::Tool,
        _ => Source::User,
    }
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    Failed,
    /// It was stopped before its end.
    Interrupted,
    Unknown,
}

impl Outcome {
    pub(crate) fn of_success(success: bool) -> Outcome {
        if success { Outcome::Success } else { Outcome::Failed }
    }
}

/// A call that waits for its outcome.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) episode: String,
    pub(crate) key: String,
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) arguments: String,
    pub(crate) time: Option<i64>,
    pub(crate) raw: Option<String>,
    pub(crate) fields: Vec<(String, String)>,
}

impl Call {
    /// The trace of the call with what it gave.
    pub(crate) fn ended(self, outcome: Outcome, output: &str, raw: Option<&str>) -> Trace {
        let mut trace = Trace::new(Kind::Call, self.episode, self.key, output);
        trace.time = self.time;
        trace.source = Source::Tool;
        trace.tool = Some(if self.tool.is_empty() { "unnamed".to_owned() } else { self.tool });
        trace.fields = self.fields;
        trace.status = Some(match outcome {
            Outcome::Success => Status::Success,
            Outcome::Failed => Status::Failed,
            Outcome::Interrupted | Outcome::Unknown => Status::Unknown,
        });
        trace = trace.field("arguments", self.arguments).field("call_id", self.id);
        if outcome == Outcome::Interrupted {
            trace = trace.field("outcome", "interrupted");
        }
        trace.raw = match (self.raw, raw) {
            (Some(call), Some(raw)) => Some(format!("{call}\n{raw}")),
            (call, raw) => call.or_else(|| raw.map(str::to_owned)),
        };
        trace
    }
}

/// A statement of a foreign memory.
#[derive(Debug, Clone)]
pub(crate) struct Fact {
    pub(crate) kind: Kind,
    pub(crate) key: String,
    pub(crate) text: String,
    pub(crate) episode: Option<String>,
    pub(crate) time: Option<i64>,
    /// The words to look for in traces; nothing is looked for if they are empty.
    pub(crate) quote: String,
    /// The trace of this import that says it, with its bytes there.
    pub(crate) evidence: Option<(String, u64, u64)>,
    /// Names of concepts that it mentions.
    pub(crate) mentions: Vec<String>,
    /// The line or object it was read from.
    pub(crate) raw: Option<String>,
}

impl Fact {
    pub(crate) fn new(key: impl Into<String>, text: impl Into<String>) -> Fact {
        let text = text.into();
        Fact {
            kind: Kind::Fact,
            key: key.into(),
            quote: text.clone(),
            text,
            episode: None,
            time: None,
            evidence: None,
            mentions: Vec::new(),
            raw: None,
        }
    }

    pub(crate) fn time(mut self, time: Option<i64>) -> Fact {
        self.time = time;
        self
    }

    pub(crate) fn episode(mut self, episode: impl Into<String>) -> Fact {
        self.episode = Some(episode.into());
        self
    }

    pub(crate) fn raw(mut self, raw: impl Into<String>) -> Fact {
        self.raw = Some(raw.into());
        self
    }
}

/// A key of parts, with slashes between them. One that would be too long ends with its hash.
pub(crate) fn key(parts: &[&str]) -> String {
    let joined: Vec<String> =
        parts.iter().map(|part| part.replace('\0', "").trim_start_matches('~').to_owned()).collect();
    let key = joined.join("/");
    // Room for a version and for `/raw`.
    let longest = holotype_key_len();
    if key.len() <= longest {
        return key;
    }
    let hash = hash(&key);
    let end = key.floor_char_boundary(longest - hash.len() - 1);
    format!("{}#{hash}", &key[..end])
}

const fn holotype_key_len() -> usize {
    holotype::MAX_KEY_LEN - 32
}

/// Sixteen hex digits of the BLAKE3 of a text.
pub(crate) fn hash(text: &str) -> String {
    let mut digits = blake3::hash(text.as_bytes()).to_hex().to_string();
    digits.truncate(16);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_of_bounded_length_and_stay_distinct() {
        assert_eq!(key(&["a", "b"]), "a/b");
        let long = |end: &str| key(&["a", &format!("{}{end}", "é".repeat(400))]);
        assert!(long("x").len() <= holotype_key_len());
        assert_ne!(long("x"), long("y"));
        assert_eq!(key(&["~1.2", "a\0b"]), "1.2/ab");
    }
}
