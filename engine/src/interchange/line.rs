//! The content of one line of the interchange.
//!
//! Plain data, one struct per kind, members in the order in which they are written. An absent member is `None` (or
//! empty); the database decides its meaning. Only the two members with alternative spellings have defaults here
//! (`field` is `text`, `unit` is `bytes`). Words of a fixed set (`kind`, `status`, …) are strings known to be one of
//! [`vocabulary`](super::vocabulary); times are microseconds since the epoch, UTC; hashes are lower-case hexadecimal,
//! 64 digits or the first 16; keys and other names are never empty.

use super::json::{JsonError, JsonText};
use super::parse;
use super::reader::LineError;

/// One line: the name before its object, and the object.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant)] // Lines are handled one at a time; a box around the common ones would cost more.
pub enum Line {
    /// `{"holotype":{…}}`: the version of the interchange, first in an export.
    Header(Header),
    /// `{"space":{…}}`: the embedding space.
    Space(Space),
    /// `{"setting":{…}}`: a setting of the database.
    Setting(Setting),
    /// `{"episode":{…}}`: an episode opened, changed or closed.
    Episode(Episode),
    /// `{"trace":{…}}`: an event, verbatim.
    Trace(Trace),
    /// `{"page":{…}}`: a run of consecutive traces.
    Page(Page),
    /// `{"recall":{…}}`: knowledge distilled from traces.
    Recall(Recall),
    /// `{"theme":{…}}`: a short key that routes a query.
    Theme(Theme),
    /// `{"link":{…}}`: an edge to add.
    Link(Link),
    /// `{"unlink":{…}}`: an edge to remove.
    Unlink(Link),
    /// `{"claim":{…}}`: a name with a value, stated by an item.
    Claim(Claim),
    /// `{"mark":{…}}`: a status or utility given afterwards.
    Mark(Mark),
    /// `{"deactivate":{…}}`: an item retired.
    Deactivate(Deactivate),
    /// `{"redact":{…}}`: a field erased, its hash kept.
    Redact(Redact),
    /// `{"credit":{…}}`: the credit of one memory write.
    Credit(Credit),
    /// `{"receipt":{…}}`: the evidence of an answer.
    Receipt(Receipt),
    /// `{"event":{…}}`: an audited read.
    Event(Event),
    /// `{"commit":{…}}`: the end of a transaction.
    Commit(Commit),
}

impl Line {
    /// Reads the text of one line, without its line ending; `line_no` is for the error.
    pub fn parse(text: &str, line_no: u64) -> Result<Line, LineError> {
        parse::line(text).map_err(|error: JsonError| LineError::locate(text, line_no, error))
    }

    /// The name before the object, such as `trace`.
    pub fn name(&self) -> &'static str {
        match self {
            Line::Header(_) => "holotype",
            Line::Space(_) => "space",
            Line::Setting(_) => "setting",
            Line::Episode(_) => "episode",
            Line::Trace(_) => "trace",
            Line::Page(_) => "page",
            Line::Recall(_) => "recall",
            Line::Theme(_) => "theme",
            Line::Link(_) => "link",
            Line::Unlink(_) => "unlink",
            Line::Claim(_) => "claim",
            Line::Mark(_) => "mark",
            Line::Deactivate(_) => "deactivate",
            Line::Redact(_) => "redact",
            Line::Credit(_) => "credit",
            Line::Receipt(_) => "receipt",
            Line::Event(_) => "event",
            Line::Commit(_) => "commit",
        }
    }

    /// The key of the thing that the line creates, if it has one.
    pub fn key(&self) -> Option<&str> {
        match self {
            Line::Trace(Trace { key, .. })
            | Line::Page(Page { key, .. })
            | Line::Recall(Recall { key, .. })
            | Line::Theme(Theme { key, .. })
            | Line::Receipt(Receipt { key, .. }) => key.as_deref(),
            _ => None,
        }
    }
}

/// Version of the interchange; this build knows [`Header::VERSION`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The version.
    pub interchange: u64,
}

impl Header {
    /// The version that is written, and the only one that is read.
    pub const VERSION: u64 = 1;
}

/// The embedding space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    /// Name of the model.
    pub model: String,
    /// Dimension, at least 1.
    pub dim: u32,
    /// One of [`METRICS`](super::vocabulary::METRICS).
    pub metric: Option<String>,
    /// One of [`ENCODINGS`](super::vocabulary::ENCODINGS).
    pub encoding: Option<String>,
}

/// A setting of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Name, such as `recency.half-life`.
    pub name: String,
    /// Value as text; a JSON number or boolean is taken as its text.
    pub value: String,
}

/// An episode.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Episode {
    /// Its id.
    pub id: String,
    /// Its task.
    pub task: Option<String>,
    /// Version of the task or environment.
    pub version: Option<String>,
    /// True if it is open.
    pub open: Option<bool>,
}

/// An event, verbatim.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// The caller's id.
    pub key: Option<String>,
    /// Id of its episode.
    pub episode: String,
    /// Step in the episode.
    pub step: Option<u64>,
    /// Its time.
    pub time: Option<i64>,
    /// One of [`TRACE_KINDS`](super::vocabulary::TRACE_KINDS).
    pub kind: Option<String>,
    /// One of [`SOURCES`](super::vocabulary::SOURCES).
    pub source: Option<String>,
    /// The tool that was called.
    pub tool: Option<String>,
    /// The id of the tool's log.
    pub log_id: Option<String>,
    /// One of [`STATUSES`](super::vocabulary::STATUSES).
    pub status: Option<String>,
    /// Version of task, environment or tool schema.
    pub version: Option<String>,
    /// The speaker.
    pub speaker: Option<String>,
    /// Fields by name, in the order given, names distinct.
    pub fields: Vec<(String, FieldValue)>,
    /// Its vector.
    pub vector: Option<VectorRef>,
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldValue {
    /// A string.
    Text(String),
    /// Any other JSON value, as written: `"price": 450.50` keeps `450.50`.
    Json(JsonText),
    /// Bytes that are not UTF-8, written `{"base64":"…"}`; bytes that are UTF-8 are [`FieldValue::Text`].
    Bytes(Vec<u8>),
}

impl FieldValue {
    /// Text when the bytes are UTF-8, bytes otherwise.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(|error| FieldValue::Bytes(error.into_bytes()), FieldValue::Text)
    }

    /// The bytes that are stored and that offsets count in.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            FieldValue::Text(text) => text.as_bytes(),
            FieldValue::Json(text) => text.as_str().as_bytes(),
            FieldValue::Bytes(bytes) => bytes,
        }
    }
}

/// The place of a vector.
#[derive(Debug, Clone, PartialEq)]
pub enum VectorRef {
    /// A row of the `.npy` file given for this file.
    Row(u64),
    /// The numbers themselves: at least one, all finite, not all zero.
    Inline(Vec<f32>),
}

/// A run of consecutive traces of one episode.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The caller's id.
    pub key: Option<String>,
    /// Id of its episode.
    pub episode: String,
    /// Key of its first trace.
    pub first: String,
    /// Key of its last trace.
    pub last: String,
    /// One of [`PAGE_STATES`](super::vocabulary::PAGE_STATES).
    pub state: Option<String>,
    /// Hash of its content.
    pub hash: Option<String>,
}

/// A pointer to evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pointer {
    /// A field of an item, or a span of it: `{"key":"t1","field":"text","start":6,"end":16}`.
    Field {
        /// Key of the item.
        key: String,
        /// Name of the field; [`Pointer::FIELD`] when the line names none.
        field: String,
        /// The span, or the whole field.
        span: Option<Span>,
        /// The hash that the bytes must have.
        hash: Option<String>,
    },
    /// A page: `{"page":"p7"}`.
    Page {
        /// Key of the page.
        page: String,
        /// The hash that its content must have.
        hash: Option<String>,
    },
}

impl Pointer {
    /// The default field.
    pub const FIELD: &'static str = "text";

    /// The pointer to the whole field `text` of an item.
    pub fn item(key: impl Into<String>) -> Self {
        Pointer::Field { key: key.into(), field: Self::FIELD.to_owned(), span: None, hash: None }
    }

    /// The key of its item or page.
    pub fn target(&self) -> &str {
        match self {
            Pointer::Field { key, .. } => key,
            Pointer::Page { page, .. } => page,
        }
    }
}

/// Part of a field: `start` to `end`, end excluded, `start <= end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first offset.
    pub start: u64,
    /// The offset after the last.
    pub end: u64,
    /// The unit of the offsets.
    pub unit: Unit,
}

/// The unit of a span's offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    /// Bytes of UTF-8, as stored.
    #[default]
    Bytes,
    /// Characters (Unicode scalar values), to be converted.
    Chars,
}

/// Knowledge distilled from traces.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recall {
    /// The caller's id.
    pub key: Option<String>,
    /// One of [`RECALL_KINDS`](super::vocabulary::RECALL_KINDS).
    pub kind: Option<String>,
    /// Its text; absent if it was redacted.
    pub text: Option<String>,
    /// Its evidence.
    pub from: Vec<Pointer>,
    /// One of [`STATUSES`](super::vocabulary::STATUSES).
    pub status: Option<String>,
    /// Its vector.
    pub vector: Option<VectorRef>,
    /// Attributes that are stated instead of inherited.
    pub stated: Stated,
}

/// A short key that routes a query.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Theme {
    /// The caller's id.
    pub key: Option<String>,
    /// One of [`THEME_KINDS`](super::vocabulary::THEME_KINDS).
    pub kind: Option<String>,
    /// Its text; absent if it was redacted.
    pub text: Option<String>,
    /// Keys of the recalls under it.
    pub children: Vec<String>,
    /// Its vector.
    pub vector: Option<VectorRef>,
    /// Attributes that are stated instead of inherited.
    pub stated: Stated,
}

/// Attributes that a recall or theme inherits unless its line states them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stated {
    /// Id of an episode.
    pub episode: Option<String>,
    /// One of [`SOURCES`](super::vocabulary::SOURCES).
    pub source: Option<String>,
    /// Step in the episode.
    pub step: Option<u64>,
    /// Its time.
    pub time: Option<i64>,
    /// Version of task, environment or tool schema.
    pub version: Option<String>,
    /// Mean smoothed credit.
    pub utility: Option<f32>,
    /// 1 to 10, procedures only.
    pub return_score: Option<u8>,
    /// False after prune, merge, supersede or retract.
    pub active: Option<bool>,
    /// True if it is stated to have no evidence.
    pub ungrounded: Option<bool>,
    /// One of [`ORIGINS`](super::vocabulary::ORIGINS).
    pub origin: Option<String>,
    /// Named values beside the text, the order kept.
    pub fields: Vec<(String, FieldValue)>,
}

/// An edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Key of the item it leaves.
    pub from: String,
    /// One of [`EDGES`](super::vocabulary::EDGES).
    pub edge: String,
    /// Its target: `"t1"`, or a pointer as in `from` of a recall.
    pub to: Pointer,
}

/// A name and a value that an item states.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claim {
    /// Key of the item.
    pub key: String,
    /// Name, such as `UA123.price`.
    pub name: String,
    /// Value as text; a JSON number or boolean is taken as its text.
    pub value: String,
    /// One of [`SCOPES`](super::vocabulary::SCOPES).
    pub scope: Option<String>,
    /// The spans in which the item states it.
    pub from: Vec<Pointer>,
    /// Key of the item whose claim won over this one.
    pub won: Option<String>,
}

/// A status, utility or credit given afterwards: at least one of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mark {
    /// Key of the item.
    pub key: String,
    /// One of [`STATUSES`](super::vocabulary::STATUSES).
    pub status: Option<String>,
    /// Utility.
    pub utility: Option<f32>,
    /// The number of reports that the utility is the mean of; 1 where it is not given.
    pub reports: Option<u32>,
    /// Credit.
    pub credit: Option<f32>,
    /// The number of rollouts that the credit is the mean of; 1 where it is not given.
    pub rollouts: Option<u32>,
    /// The reason.
    pub because: Option<String>,
}

/// An item retired.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Deactivate {
    /// Key of the item.
    pub key: String,
    /// Key of the item that replaces it.
    pub by: Option<String>,
    /// The reason.
    pub because: Option<String>,
}

/// A field erased, its hash kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Redact {
    /// Key of the item.
    pub key: String,
    /// The field; the whole item if absent.
    pub field: Option<String>,
    /// Hash of the erased content.
    pub hash: Option<String>,
    /// The reason.
    pub because: Option<String>,
}

/// The credit of one memory write in one rollout: the measured members, then the computed ones.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Credit {
    /// The group of rollouts of one task.
    pub group: Option<String>,
    /// The rollout in the group.
    pub rollout: Option<u64>,
    /// The step of the rollout.
    pub step: Option<u64>,
    /// Reward of the rollout.
    pub reward: Option<f64>,
    /// Log-probability of the outcome with the memory before.
    pub s_prev: Option<f64>,
    /// Log-probability of the outcome with the memory after.
    pub s_now: Option<f64>,
    /// Log-probability of the write itself.
    pub log_h: Option<f64>,
    /// Key of the item written.
    pub item: String,
    /// Memory gain (eqs 5 to 7).
    pub delta: Option<f64>,
    /// The gain, standardised (eq. 8).
    pub delta_hat: Option<f64>,
    /// Centred log ratio (eqs 9, 10).
    pub log_rho: Option<f64>,
    /// Effective sharpness (eq. 17).
    pub beta: Option<f64>,
    /// Gate (eq. 11).
    pub gate: Option<f64>,
    /// Advantage (eqs 12, 13).
    pub advantage: Option<f64>,
    /// Advantage, smoothed (eq. 14).
    pub smoothed: Option<f64>,
    /// Advantage of the trajectory (eq. 3).
    pub trajectory_advantage: Option<f64>,
    /// Advantage of each token of the write (eq. 15).
    pub token_advantage: Option<f64>,
}

/// The evidence of an answer, so that it can be replayed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Receipt {
    /// The receipt's own id.
    pub key: Option<String>,
    /// The statement.
    pub statement: String,
    /// Its parameters by name, in the order given, names distinct.
    pub params: Vec<(String, FieldValue)>,
    /// The reader's position.
    pub at: Option<Reader>,
    /// Number of the commit that was read.
    pub commit: Option<u64>,
    /// Keys of the rows, in their order.
    pub items: Vec<String>,
    /// The spans that were shown, with their hashes.
    pub spans: Vec<Pointer>,
}

/// A reader's position.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reader {
    /// Id of the episode.
    pub episode: Option<String>,
    /// Step in the episode.
    pub step: Option<u64>,
    /// Clock time.
    pub time: Option<i64>,
    /// Version.
    pub version: Option<String>,
}

/// An audited read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// The operation, such as `recall`.
    pub op: String,
    /// Its time.
    pub time: Option<i64>,
    /// Id of the reader's episode.
    pub episode: Option<String>,
    /// The reader's step.
    pub step: Option<u64>,
    /// Number of the commit that was read.
    pub commit: Option<u64>,
    /// Keys of the items returned.
    pub items: Vec<String>,
    /// The hash of each returned item.
    pub hashes: Vec<String>,
    /// Tokens returned.
    pub tokens: Option<u64>,
    /// The statement's text, if the audit keeps texts.
    pub text: Option<String>,
    /// The reason.
    pub because: Option<String>,
}

/// The end of a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Commit {
    /// Its number in the database it was exported from.
    pub number: Option<u64>,
    /// When it was committed there.
    pub time: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_text_when_they_are() {
        assert_eq!(FieldValue::from_bytes(b"caf\xc3\xa9".to_vec()), FieldValue::Text("café".to_owned()));
        assert_eq!(FieldValue::from_bytes(vec![0xff]), FieldValue::Bytes(vec![0xff]));
        assert_eq!(FieldValue::Bytes(vec![0xff]).as_bytes(), [0xff]);
        let json = JsonText::new("450.50").map(FieldValue::Json);
        assert_eq!(json.as_ref().map(FieldValue::as_bytes), Some(&b"450.50"[..]));
    }

    #[test]
    fn lines_know_their_name_and_key() {
        let line = Line::Trace(Trace { key: Some("t1".to_owned()), ..Trace::default() });
        assert_eq!((line.name(), line.key()), ("trace", Some("t1")));
        let line = Line::Mark(Mark { key: "t1".to_owned(), ..Mark::default() });
        assert_eq!((line.name(), line.key()), ("mark", None));
        assert_eq!(Pointer::item("t1").target(), "t1");
    }
}
