//! New items as a caller states them. The engine generates or inherits what is left out.

use crate::model::item::{Kind, Origin, Source, Status};
use crate::model::pointer::{Pointer, Target};
use crate::model::time::Moment;
use crate::records::record::{Field, FieldValue};

/// A trace to record: an event, verbatim.
///
/// Defaults: the next step of the episode, the time of the transaction, a generated key, status `unknown`, the version
/// of the episode.
#[derive(Debug, Clone)]
pub struct NewTrace {
    pub(crate) kind: Kind,
    pub(crate) episode: String,
    pub(crate) key: Option<String>,
    pub(crate) step: Option<u64>,
    pub(crate) time: Option<i64>,
    pub(crate) timeless: bool,
    pub(crate) version: Option<String>,
    pub(crate) status: Option<Status>,
    pub(crate) source: Option<Source>,
    pub(crate) speaker: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) log_id: Option<String>,
    pub(crate) fields: Vec<Field>,
    pub(crate) labels: Vec<String>,
    pub(crate) vector: Option<Vec<f32>>,
}

/// A recall or theme to remember: distilled content with pointers to its evidence.
///
/// Episode, step, time, version, source and status are inherited from the evidence unless they are set. One without
/// labels takes those of its evidence.
#[derive(Debug, Clone)]
pub struct NewRecall {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    pub(crate) key: Option<String>,
    pub(crate) from: Vec<Pointer>,
    pub(crate) children: Vec<Target>,
    pub(crate) ungrounded: bool,
    pub(crate) episode: Option<String>,
    pub(crate) step: Option<u64>,
    pub(crate) time: Option<i64>,
    pub(crate) version: Option<String>,
    pub(crate) status: Option<Status>,
    pub(crate) source: Option<Source>,
    pub(crate) origin: Origin,
    /// Beside the text.
    pub(crate) fields: Vec<Field>,
    pub(crate) labels: Vec<String>,
    pub(crate) utility: Option<f32>,
    pub(crate) return_score: Option<u8>,
    pub(crate) vector: Option<Vec<f32>>,
}

/// Setters that traces and recalls share.
macro_rules! setters {
    () => {
        /// The caller's own key, unique in the database.
        pub fn key(mut self, key: impl Into<String>) -> Self {
            self.key = Some(key.into());
            self
        }

        /// The step in its episode.
        pub fn step(mut self, step: u64) -> Self {
            self.step = Some(step);
            self
        }

        /// The time: a [`Timestamp`](crate::Timestamp), or microseconds since the epoch, UTC.
        pub fn time(mut self, at: impl Moment) -> Self {
            self.time = Some(at.micros());
            self
        }

        /// The version of task, environment or tool schema.
        pub fn version(mut self, version: impl Into<String>) -> Self {
            self.version = Some(version.into());
            self
        }

        /// The status: success, failed or unknown.
        pub fn status(mut self, status: Status) -> Self {
            self.status = Some(status);
            self
        }

        /// The source: user, assistant, tool, environment, document or system.
        pub fn source(mut self, source: Source) -> Self {
            self.source = Some(source);
            self
        }

        /// Adds a field: a text, a number, a truth value, a list or an object. Null is absent.
        pub fn field(mut self, name: impl Into<String>, value: impl Into<serde_json::Value>) -> Self {
            let value = FieldValue::from_json(value.into());
            self.fields.extend(value.map(|value| Field { name: name.into(), value }));
            self
        }

        /// Adds a field of bytes; valid UTF-8 is stored as text.
        pub fn bytes_field(mut self, name: impl Into<String>, value: Vec<u8>) -> Self {
            let value =
                String::from_utf8(value).map_or_else(|error| FieldValue::Bytes(error.into_bytes()), FieldValue::Text);
            self.fields.push(Field { name: name.into(), value });
            self
        }

        /// Adds a label, such as `user:17`. Labels are indexed in every database.
        pub fn label(mut self, label: impl Into<String>) -> Self {
            self.labels.push(label.into());
            self
        }

        /// Its vector in the database's space.
        pub fn vector(mut self, vector: Vec<f32>) -> Self {
            self.vector = Some(vector);
            self
        }
    };
}

impl NewTrace {
    /// A trace of an episode with its text.
    pub fn new(kind: Kind, episode: impl Into<String>, text: impl Into<String>) -> Self {
        let text = Field { name: "text".to_owned(), value: FieldValue::Text(text.into()) };
        NewTrace {
            kind,
            episode: episode.into(),
            key: None,
            step: None,
            time: None,
            timeless: false,
            version: None,
            status: None,
            source: None,
            speaker: None,
            tool: None,
            log_id: None,
            fields: vec![text],
            labels: Vec::new(),
            vector: None,
        }
    }

    /// A turn of a conversation.
    pub fn turn(episode: impl Into<String>, text: impl Into<String>) -> Self {
        NewTrace::new(Kind::Turn, episode, text)
    }

    /// A tool call with its outcome.
    pub fn call(episode: impl Into<String>, tool: impl Into<String>, text: impl Into<String>) -> Self {
        NewTrace::new(Kind::Call, episode, text).tool(tool).source(Source::Tool)
    }

    setters!();

    /// The speaker.
    pub fn speaker(mut self, speaker: impl Into<String>) -> Self {
        self.speaker = Some(speaker.into());
        self
    }

    /// The tool that ran.
    pub fn tool(mut self, tool: impl Into<String>) -> Self {
        self.tool = Some(tool.into());
        self
    }

    /// The log it comes from; the id of the episode by default.
    pub fn log_id(mut self, log_id: impl Into<String>) -> Self {
        self.log_id = Some(log_id.into());
        self
    }

    /// States that it has no time: one that is left out is the time of the transaction.
    pub fn without_time(mut self) -> Self {
        self.timeless = true;
        self
    }

    /// Adds a field that is kept as bytes, text or not: no word of it is indexed and no claim extracted. It is for what
    /// a trace was made of, such as the line of a log.
    pub fn kept_field(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.fields.push(Field { name: name.into(), value: FieldValue::Bytes(value.into()) });
        self
    }
}

impl NewRecall {
    /// A recall or theme with its text.
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        NewRecall {
            kind,
            text: text.into(),
            key: None,
            from: Vec::new(),
            children: Vec::new(),
            ungrounded: false,
            episode: None,
            step: None,
            time: None,
            version: None,
            status: None,
            source: None,
            origin: Origin::Original,
            fields: Vec::new(),
            labels: Vec::new(),
            utility: None,
            return_score: None,
            vector: None,
        }
    }

    /// A fact.
    pub fn fact(text: impl Into<String>) -> Self {
        NewRecall::new(Kind::Fact, text)
    }

    /// A theme.
    pub fn theme(text: impl Into<String>) -> Self {
        NewRecall::new(Kind::Theme, text)
    }

    setters!();

    /// Adds a pointer to evidence.
    pub fn from(mut self, pointer: Pointer) -> Self {
        self.from.push(pointer);
        self
    }

    /// Adds a recall as a child of this theme, by its key.
    pub fn child(mut self, key: impl Into<String>) -> Self {
        self.children.push(Target::Key(key.into()));
        self
    }

    /// Declares that the item has no evidence.
    pub fn ungrounded(mut self) -> Self {
        self.ungrounded = true;
        self
    }

    /// The episode it belongs to.
    pub fn episode(mut self, episode: impl Into<String>) -> Self {
        self.episode = Some(episode.into());
        self
    }

    /// The origin: original, linked fact or refined.
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Its utility (HiMPO).
    pub fn utility(mut self, utility: f32) -> Self {
        self.utility = Some(utility);
        self
    }

    /// PlugMem's return score of a procedure, 1 to 10.
    pub fn return_score(mut self, score: u8) -> Self {
        self.return_score = Some(score);
        self
    }
}
