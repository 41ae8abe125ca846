//! What a statement answers: rows with their evidence, or a table.

use crate::model::item::{ItemId, Kind, Layer, Source, Status, Support};
use crate::model::pointer::Verdict;
use crate::model::time::{self, Timestamp};
use crate::read::cell::{Cell, round};
use crate::read::cite::Cite;
pub use crate::read::escalation::{Command, Escalation, Hits, PageHit, Round, Routing};
use crate::read::fields::Fields;
use crate::state::reader_position::Reader;
use holotype_query::AttributeId as Id;
use serde_json::{Map, Value, json};

/// The result of one statement.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Output {
    /// The answer of a recall.
    Answer(Box<Answer>),
    /// The table of any other statement.
    Table(Table),
}

/// Rows with named columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// The statement's verb.
    pub verb: &'static str,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows; an absent value is `None`.
    pub rows: Vec<Vec<Option<Cell>>>,
    /// Remarks on how the rows were found.
    pub notes: Vec<String>,
    /// A check found damage.
    pub failed: bool,
}

/// The answer to a `recall`.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The commit that was queried.
    pub commit: u64,
    /// The reader position that was used.
    pub at: Reader,
    /// False if what is stored may not answer the question; a note says why. Rows come with it all the same, unless
    /// the recall asks to `abstain`.
    pub answerable: bool,
    /// The strength of the evidence.
    pub strength: Strength,
    /// `exact`, `converged` or `limited`: how certain it is that no better row was missed.
    pub certificate: &'static str,
    /// The stages of the path.
    pub route: Vec<String>,
    /// The flaws that kept items in scope from being rows, with the number of items.
    pub excluded: Vec<(&'static str, u64)>,
    /// Items of the database whose text waits for its vector, so that questions find them by their words alone.
    pub pending: u64,
    /// The tool to call again, if the first row is stale.
    pub refresh: Option<Refresh>,
    /// Rounds of escalation.
    pub rounds: u32,
    /// The router's decision and the rounds, with the clause `escalate`.
    pub escalation: Option<Box<Escalation>>,
    /// Remarks on how the answer was found.
    pub notes: Vec<String>,
    /// The columns requested with `return`.
    pub returns: Option<Vec<String>>,
    /// The rows, best first.
    pub rows: Vec<Row>,
    /// The key of the stored receipt, if one was requested.
    pub receipt: Option<String>,
    /// The keys of the items that a replay took away.
    pub without: Vec<String>,
    /// The elapsed time in microseconds.
    pub micros: u64,
}

/// The tool to call again because the best row is stale (HELM, case 1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refresh {
    /// The tool that the best row came from.
    pub tool: String,
    /// The step it was called at.
    pub last_step: Option<u64>,
}

/// The strength of an answer's evidence.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Strength {
    /// The score of the first row.
    pub top: f32,
    /// Its lead over the second row.
    pub gap: f32,
    /// The share of the query's terms that the rows contain, weighted by rarity.
    pub terms: f32,
}

/// The terms of the governed score S, each already weighted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Parts {
    /// Similarity of vectors.
    pub similarity: f32,
    /// BM25 over the best BM25 of the query.
    pub words: f32,
    /// Recency.
    pub recency: f32,
    /// Status.
    pub status: f32,
    /// Source.
    pub source: f32,
    /// Utility.
    pub utility: f32,
    /// The penalty for a lost claim.
    pub conflict: f32,
    /// The penalty for relaxed exclusions.
    pub relaxed: f32,
}

impl Parts {
    /// The governed score: the sum of the parts.
    pub fn sum(&self) -> f32 {
        let found = self.similarity + self.words + self.recency;
        found + self.status + self.source + self.utility + self.conflict + self.relaxed
    }
}

/// The role of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It answers the query.
    Hit,
    /// `expand` added it as evidence of the row before it.
    Evidence,
}

/// One row of a recall.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The item.
    pub item: ItemId,
    /// Its key.
    pub key: String,
    /// Its layer.
    pub layer: Layer,
    /// Its kind.
    pub kind: Kind,
    /// Its text, as it was written.
    pub text: String,
    /// The governed score.
    pub score: f32,
    /// The score's terms.
    pub parts: Parts,
    /// The outcome.
    pub status: Option<Status>,
    /// The producer.
    pub source: Option<Source>,
    /// The speaker.
    pub speaker: Option<String>,
    /// The tool of a call.
    pub tool: Option<String>,
    /// The episode.
    pub episode: Option<String>,
    /// The step.
    pub step: Option<u64>,
    /// The time, in microseconds since the epoch.
    pub time: Option<i64>,
    /// The version.
    pub version: Option<String>,
    /// True if it is stale for this reader by any criterion.
    pub stale: bool,
    /// The reason why its text is quarantined: it instructs, and its source has no right to.
    pub quarantined: Option<String>,
    /// The item that contradicts a claim of this one and is preferred to it.
    pub conflict: Option<ItemId>,
    /// The key of that item, or its id where it has no key. JSON has the id alone.
    pub conflict_key: Option<String>,
    /// The state of its sources.
    pub support: Support,
    /// The least source weight in its lineage; 0 if a source failed.
    pub trust: f32,
    /// The exclusions it was included despite.
    pub relaxed: Vec<&'static str>,
    /// The match path: channels and items from the query to the row.
    pub path: Vec<String>,
    /// Keys of items with the same words.
    pub folded: Vec<String>,
    /// Other statements of the same frame: earlier, later and qualified ones.
    pub lines: Vec<Line>,
    /// Statements of the frame among the candidates that are not shown.
    pub more: u64,
    /// Its length in tokens.
    pub tokens: u32,
    /// Its evidence, hashed again for this answer.
    pub citations: Vec<Citation>,
    /// Its role.
    pub role: Role,
    /// The fields of its item beside the text, typed as they were written.
    pub fields: Fields,
}

/// The order in time of a line and its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The line is older. That says nothing of its validity.
    Earlier,
    /// The line is newer, and did not replace the row: it is qualified or less similar.
    Later,
    /// Neither is newer.
    Also,
}

impl Order {
    /// The order in a word: `earlier`, `later`, `also`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Order::Earlier => "earlier",
            Order::Later => "later",
            Order::Also => "also",
        }
    }
}

/// Another statement of the frame of a row, as short as it can be told.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The item.
    pub item: ItemId,
    /// Its key.
    pub key: String,
    /// Older or newer than the row.
    pub order: Order,
    /// The order with the time or the step: `earlier (2026-01-01T00:00:00Z)`.
    pub label: String,
    /// The tokens in which it differs from the row, with one token on each side; its whole text where that is shorter.
    pub text: String,
    /// The outcome.
    pub status: Option<Status>,
    /// The producer.
    pub source: Option<Source>,
    /// The episode.
    pub episode: Option<String>,
    /// The step.
    pub step: Option<u64>,
    /// The time, in microseconds since the epoch.
    pub time: Option<i64>,
    /// Its evidence, hashed again for this answer.
    pub citations: Vec<Citation>,
}

impl Line {
    /// The line as JSON; absent values are left out.
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("item".into(), self.item.0.into());
        object.insert("key".into(), self.key.as_str().into());
        object.insert("order".into(), self.order.as_str().into());
        object.insert("text".into(), self.text.as_str().into());
        put(&mut object, "status", self.status.map(Status::as_str));
        put(&mut object, "source", self.source.map(Source::as_str));
        put(&mut object, "episode", self.episode.as_deref());
        put(&mut object, "step", self.step);
        put(&mut object, "time", self.time.map(time::format));
        object.insert("citations".into(), self.citations.iter().map(Citation::to_json).collect());
        object.into()
    }
}

/// A verified pointer of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    /// The item or page cited.
    pub target: String,
    /// The tool of the cited trace.
    pub tool: Option<String>,
    /// The log of the cited trace.
    pub log_id: Option<String>,
    /// The step of the cited trace.
    pub step: Option<u64>,
    /// The field; empty for a page.
    pub field: String,
    /// The first byte of the span.
    pub start: u64,
    /// The byte after the span.
    pub end: u64,
    /// The BLAKE3 of the cited bytes at the time of writing, in hex.
    pub hash: String,
    /// The result of hashing them again.
    pub verdict: Verdict,
    /// The bytes as text; only with the verdict `ok`.
    pub text: Option<String>,
}

impl Citation {
    /// The citation in the format of HELM A.7, as [`Cite`] prints it; `None` for a page.
    pub fn cite(&self) -> Option<String> {
        let cite = Cite {
            tool: self.tool.clone().filter(|tool| !tool.is_empty()),
            log: self.log_id.clone()?,
            step: self.step?,
            field: self.field.clone(),
            start: self.start,
            end: self.end,
            hash: Some(self.hash.get(..16)?.to_owned()),
            chars: false,
            is_unit_stated: false,
        };
        Some(cite.to_string())
    }

    fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("target".into(), self.target.as_str().into());
        put(&mut object, "tool", self.tool.as_deref());
        put(&mut object, "log_id", self.log_id.as_deref());
        put(&mut object, "step", self.step);
        if !self.field.is_empty() {
            object.insert("field".into(), self.field.as_str().into());
            object.insert("start".into(), self.start.into());
            object.insert("end".into(), self.end.into());
        }
        object.insert("hash".into(), self.hash.as_str().into());
        object.insert("verdict".into(), self.verdict.as_str().into());
        put(&mut object, "text", self.text.as_deref());
        object.into()
    }
}

fn put<T: Into<Value>>(object: &mut Map<String, Value>, name: &str, value: Option<T>) {
    if let Some(value) = value {
        object.insert(name.into(), value.into());
    }
}

fn number(value: f32) -> Value {
    round(f64::from(value)).into()
}

/// The names of the columns a row of a recall has, in order.
pub const ROW_COLUMNS: &[&str] = holotype_query::attributes::RECALL_COLUMNS;

impl Row {
    /// The time, if it has one that a [`Timestamp`] can have.
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.time.and_then(time::timestamp)
    }

    /// The row as JSON: every column, or those asked for. Absent values are left out.
    pub fn to_json(&self, returns: Option<&[String]>) -> Value {
        let mut all = Map::new();
        all.insert(Id::Item.as_str().into(), self.item.0.into());
        all.insert(Id::Key.as_str().into(), self.key.as_str().into());
        all.insert(Id::Layer.as_str().into(), self.layer.as_str().into());
        all.insert(Id::Kind.as_str().into(), self.kind.as_str().into());
        all.insert(Id::Text.as_str().into(), self.text.as_str().into());
        all.insert(Id::Score.as_str().into(), number(self.score));
        all.insert(Id::Similarity.as_str().into(), number(self.parts.similarity));
        all.insert(Id::Words.as_str().into(), number(self.parts.words));
        all.insert(Id::Recency.as_str().into(), number(self.parts.recency));
        all.insert(Id::StatusScore.as_str().into(), number(self.parts.status));
        all.insert(Id::SourceScore.as_str().into(), number(self.parts.source));
        all.insert(Id::UtilityScore.as_str().into(), number(self.parts.utility));
        all.insert(Id::ConflictScore.as_str().into(), number(self.parts.conflict));
        put(&mut all, Id::Status.as_str(), self.status.map(Status::as_str));
        put(&mut all, Id::Source.as_str(), self.source.map(Source::as_str));
        put(&mut all, Id::Speaker.as_str(), self.speaker.as_deref());
        put(&mut all, Id::Tool.as_str(), self.tool.as_deref());
        put(&mut all, Id::Episode.as_str(), self.episode.as_deref());
        put(&mut all, Id::Step.as_str(), self.step);
        put(&mut all, Id::Time.as_str(), self.time.map(time::format));
        put(&mut all, Id::Version.as_str(), self.version.as_deref());
        all.insert(Id::Stale.as_str().into(), self.stale.into());
        put(&mut all, Id::Quarantined.as_str(), self.quarantined.as_deref());
        put(&mut all, Id::Conflict.as_str(), self.conflict.map(|item| item.0));
        all.insert(Id::Support.as_str().into(), self.support.as_str().into());
        all.insert(Id::Trust.as_str().into(), number(self.trust));
        all.insert(Id::Relaxed.as_str().into(), self.relaxed.iter().copied().collect());
        all.insert(Id::Path.as_str().into(), self.path.iter().map(String::as_str).collect());
        all.insert(Id::Folded.as_str().into(), self.folded.iter().map(String::as_str).collect());
        all.insert(Id::Lines.as_str().into(), self.lines.iter().map(Line::to_json).collect());
        all.insert(Id::More.as_str().into(), self.more.into());
        all.insert(Id::Tokens.as_str().into(), self.tokens.into());
        all.insert(Id::Citations.as_str().into(), self.citations.iter().map(Citation::to_json).collect());
        all.insert(
            Id::Role.as_str().into(),
            match self.role {
                Role::Hit => "hit",
                Role::Evidence => "evidence",
            }
            .into(),
        );
        let Some(returns) = returns else { return all.into() };
        let value = |name: &String| all.get(name).cloned().or_else(|| Some(self.cell(name)?.to_json()));
        returns.iter().filter_map(|name| Some((name.clone(), value(name)?))).collect::<Map<_, _>>().into()
    }

    /// The value of a field, or of a member of one by a path such as `meta.topic`; see [`Fields::get`].
    pub fn field(&self, path: &str) -> Option<Value> {
        self.fields.get(path)
    }

    /// The labels of its item.
    pub fn labels(&self) -> Vec<String> {
        self.fields.labels()
    }
}

impl Answer {
    /// The answer as a JSON object under the caller's id; `docs/query-language.md` lists its members.
    pub fn to_json(&self, id: Option<&str>) -> Value {
        let mut at = Map::new();
        put(&mut at, "episode", self.at.episode.as_deref());
        put(&mut at, "step", self.at.step);
        put(&mut at, "time", self.at.time.map(time::format));
        put(&mut at, "version", self.at.version.as_deref());
        let mut object = Map::new();
        put(&mut object, "id", id);
        object.insert("commit".into(), self.commit.into());
        object.insert("at".into(), at.into());
        object.insert("answerable".into(), self.answerable.into());
        object.insert(
            "strength".into(),
            json!({"top": number(self.strength.top), "gap": number(self.strength.gap), "terms": number(self.strength.terms)}),
        );
        object.insert("certificate".into(), self.certificate.into());
        object.insert("route".into(), self.route.iter().map(String::as_str).collect());
        match &self.escalation {
            Some(escalation) => escalation.put(&mut object),
            None => drop(object.insert("rounds".into(), self.rounds.into())),
        }
        object.insert("notes".into(), self.notes.iter().map(String::as_str).collect());
        object.insert("rows".into(), self.rows.iter().map(|row| row.to_json(self.returns.as_deref())).collect());
        if !self.excluded.is_empty() {
            let excluded = self.excluded.iter().map(|(name, count)| ((*name).to_owned(), Value::from(*count)));
            object.insert("excluded".into(), Value::Object(excluded.collect()));
        }
        if self.pending > 0 {
            object.insert("pending".into(), self.pending.into());
        }
        if let Some(Refresh { tool, last_step }) = &self.refresh {
            object.insert("refresh".into(), json!({"tool": tool, "last_step": last_step}));
        }
        put(&mut object, "receipt", self.receipt.as_deref());
        if !self.without.is_empty() {
            object.insert("without".into(), self.without.iter().map(String::as_str).collect());
        }
        object.insert("micros".into(), self.micros.into());
        object.into()
    }
}

impl Table {
    /// The rows as JSON objects; absent values are left out.
    pub fn rows_to_json(&self) -> Vec<Value> {
        let object = |row: &Vec<Option<Cell>>| {
            let cells =
                self.columns.iter().zip(row).filter_map(|(name, cell)| Some((name.clone(), cell.as_ref()?.to_json())));
            Value::Object(cells.collect())
        };
        self.rows.iter().map(object).collect()
    }
}
