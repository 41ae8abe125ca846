//! Dicts of the package to new items, pointers and targets of the engine.
//!
//! A member that is `None` counts as absent. An unknown member is an error that names the known ones.

use crate::errors;
use crate::json;
use crate::texts::{Text, string};
use crate::values::{member, micros, text_of, whole};
use crate::vectors::vector;
use holotype::embed::HashingEmbedder;
use holotype::{ItemId, Kind, NewRecall, NewTrace, Pointer, Result, Source, Target, Transaction};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyDictMethods, PyString};
use std::str::FromStr;

/// A trace to record, with its claims.
pub(crate) struct TraceDraft {
    trace: NewTrace,
    claims: Vec<(String, String)>,
    /// The text to embed, if there is no vector yet.
    unembedded: Option<String>,
}

/// A recall or theme to remember, with its claims.
pub(crate) struct RecallDraft {
    pub(crate) recall: NewRecall,
    claims: Vec<(String, String)>,
    unembedded: Option<String>,
}

const TRACE_MEMBERS: &str = "text, episode, kind, key, step, time, version, status, source, speaker, tool, log_id, \
                             fields, labels, vector, claims";
const RECALL_MEMBERS: &str = "text, kind, key, sources, children, ungrounded, episode, step, time, version, status, \
                              source, utility, return_score, fields, labels, vector, claims";

impl TraceDraft {
    /// Reads a trace. `row` is its vector, or that it has none, if that is given elsewhere.
    pub(crate) fn read(given: &Bound<'_, PyDict>, row: Option<Option<Vec<f32>>>) -> PyResult<TraceDraft> {
        let text = required(given, "text")?;
        let episode = required(given, "episode")?;
        let kind: Kind = name_of(given, "kind")?.unwrap_or(Kind::Turn);
        let mut trace = NewTrace::new(kind, episode, text.clone());
        // As `NewTrace::call` of the Rust interface.
        trace = if kind == Kind::Call { trace.source(Source::Tool) } else { trace };
        let (mut claims, mut embedded) = (Vec::new(), row.is_some());
        trace = row.flatten().into_iter().fold(trace, NewTrace::vector);
        for (name, value) in given.iter().filter(|(_, value)| !value.is_none()) {
            let name = text_of("a member", &name)?;
            trace = match name.as_str() {
                "text" | "episode" | "kind" => trace,
                "key" => trace.key(text_of(&name, &value)?),
                "step" => trace.step(whole(&name, &value)?),
                "time" => trace.time(micros(&value)?),
                "version" => trace.version(text_of(&name, &value)?),
                "status" => trace.status(parse(&name, &value)?),
                "source" => trace.source(parse(&name, &value)?),
                "speaker" => trace.speaker(text_of(&name, &value)?),
                "tool" => trace.tool(text_of(&name, &value)?),
                "log_id" => trace.log_id(text_of(&name, &value)?),
                "fields" => with_fields(trace, fields_of(&value)?),
                "labels" => labels_of(&value)?.into_iter().fold(trace, NewTrace::label),
                "vector" => {
                    embedded = true;
                    trace.vector(vector(&value)?)
                }
                "claims" => {
                    claims = claims_of(&value)?;
                    trace
                }
                _ => return Err(unknown(given.py(), &name, TRACE_MEMBERS)),
            };
        }
        Ok(TraceDraft { trace, claims, unembedded: (!embedded).then_some(text) })
    }

    /// The trace, for a call that records it; the built-in embedder of a database makes the vector that is not given.
    pub(crate) fn trace(self, database: &holotype::Holotype) -> NewTrace {
        let space = database.snapshot().space().ok().flatten();
        let embedder = space.and_then(|space| HashingEmbedder::from_name(&space.model));
        embed(self.unembedded, embedder).into_iter().fold(self.trace, NewTrace::vector)
    }

    /// Records it; `embedder` makes the vector that is not given.
    pub(crate) fn record(self, to: &mut Transaction<'_>, embedder: Option<HashingEmbedder>) -> Result<u32> {
        let made = embed(self.unembedded, embedder);
        let trace = made.into_iter().fold(self.trace, NewTrace::vector);
        let id = to.record(trace)?;
        claim(to, id, &self.claims)
    }
}

impl RecallDraft {
    pub(crate) fn read(given: &Bound<'_, PyDict>) -> PyResult<RecallDraft> {
        let text = required(given, "text")?;
        let kind: Kind = name_of(given, "kind")?.unwrap_or(Kind::Fact);
        let mut recall = NewRecall::new(kind, text.clone());
        let (mut claims, mut embedded) = (Vec::new(), false);
        for (name, value) in given.iter().filter(|(_, value)| !value.is_none()) {
            let name = text_of("a member", &name)?;
            recall = match name.as_str() {
                "text" | "kind" => recall,
                "key" => recall.key(text_of(&name, &value)?),
                "sources" => {
                    let pointers = value.try_iter()?.map(|one| pointer(&one?)).collect::<PyResult<Vec<_>>>()?;
                    pointers.into_iter().fold(recall, NewRecall::from)
                }
                "children" => {
                    let keys: Vec<Text> = member(&name, "a list of keys", &value)?;
                    keys.into_iter().fold(recall, |recall, Text(key)| recall.child(key))
                }
                "ungrounded" if value.is_truthy()? => recall.ungrounded(),
                "ungrounded" => recall,
                "episode" => recall.episode(text_of(&name, &value)?),
                "step" => recall.step(whole(&name, &value)?),
                "time" => recall.time(micros(&value)?),
                "version" => recall.version(text_of(&name, &value)?),
                "status" => recall.status(parse(&name, &value)?),
                "source" => recall.source(parse(&name, &value)?),
                "utility" => recall.utility(member(&name, "a number", &value)?),
                "return_score" => recall.return_score(member(&name, "a whole number from 1 to 10", &value)?),
                "fields" => with_recall_fields(recall, fields_of(&value)?),
                "labels" => labels_of(&value)?.into_iter().fold(recall, NewRecall::label),
                "vector" => {
                    embedded = true;
                    recall.vector(vector(&value)?)
                }
                "claims" => {
                    claims = claims_of(&value)?;
                    recall
                }
                _ => return Err(unknown(given.py(), &name, RECALL_MEMBERS)),
            };
        }
        Ok(RecallDraft { recall, claims, unembedded: (!embedded).then_some(text) })
    }

    /// Remembers it, or puts it in the place of the item that holds the key `replacing`.
    pub(crate) fn write(
        self,
        to: &mut Transaction<'_>,
        replacing: Option<&str>,
        embedder: Option<HashingEmbedder>,
    ) -> Result<u32> {
        let made = embed(self.unembedded, embedder);
        let recall = made.into_iter().fold(self.recall, NewRecall::vector);
        let id = match replacing {
            Some(key) => to.update(key, recall)?,
            None => to.remember(recall)?,
        };
        claim(to, id, &self.claims)
    }
}

fn embed(text: Option<String>, embedder: Option<HashingEmbedder>) -> Option<Vec<f32>> {
    embedder?.embed(&text?)
}

fn claim(to: &mut Transaction<'_>, id: ItemId, claims: &[(String, String)]) -> Result<u32> {
    for (name, value) in claims {
        to.claim(id, name, value, false, &[])?;
    }
    Ok(id.0)
}

/// An item: an `int` is its number, a `str` its key.
pub(crate) fn target(value: &Bound<'_, PyAny>) -> PyResult<Target> {
    match value.cast::<PyString>() {
        Ok(key) => Ok(Target::Key(string(key, "the key")?)),
        Err(_) if value.is_instance_of::<PyBool>() => {
            Err(errors::wrong_type(value.py(), "item: expected a key or a number, found bool"))
        }
        Err(_) => Ok(Target::Item(ItemId(member("item", "a key or a number", value)?))),
    }
}

/// A pointer: an item, or an object with the attributes of `holotype.Pointer`.
pub(crate) fn pointer(value: &Bound<'_, PyAny>) -> PyResult<Pointer> {
    if !value.hasattr("_target")? {
        return Ok(Pointer { target: target(value)?, field: None, span: Default::default(), hash: None });
    }
    let text = |name: &str| {
        let given = value.getattr(name)?;
        if given.is_none() { Ok(None) } else { text_of(name, &given).map(Some) }
    };
    let page = text("page")?;
    let target = match page {
        Some(page) => Target::Page(page),
        None => target(&value.getattr("item")?)?,
    };
    let range = |name: &str| {
        let given = value.getattr(name)?;
        if given.is_none() { Ok(None) } else { member(name, "a pair of whole numbers", &given).map(Some) }
    };
    let span = match (text("quote")?, range("bytes")?, range("chars")?) {
        (Some(quote), _, _) => holotype::Span::Quoting(quote),
        (_, Some((start, end)), _) => holotype::Span::Bytes(start, end),
        (_, _, Some((start, end))) => holotype::Span::Chars(start, end),
        _ => holotype::Span::Whole,
    };
    Ok(Pointer { target, field: text("field")?, span, hash: text("hash")? })
}

/// A field: its name, and a JSON value or bytes.
pub(crate) type Field = (String, FieldValue);

/// The value of a field.
#[derive(Clone)]
pub(crate) enum FieldValue {
    Json(serde_json::Value),
    Bytes(Vec<u8>),
}

/// Adds fields to a trace.
pub(crate) fn with_fields(trace: NewTrace, fields: Vec<Field>) -> NewTrace {
    fields.into_iter().fold(trace, |trace, (name, value)| match value {
        FieldValue::Json(value) => trace.field(name, value),
        FieldValue::Bytes(bytes) => trace.bytes_field(name, bytes),
    })
}

fn with_recall_fields(recall: NewRecall, fields: Vec<Field>) -> NewRecall {
    fields.into_iter().fold(recall, |recall, (name, value)| match value {
        FieldValue::Json(value) => recall.field(name, value),
        FieldValue::Bytes(bytes) => recall.bytes_field(name, bytes),
    })
}

/// The fields of an item, given as a dict.
pub(crate) fn fields_of(value: &Bound<'_, PyAny>) -> PyResult<Vec<Field>> {
    let fields: Bound<'_, PyDict> = member("fields", "a dict", value)?;
    fields.iter().map(|(name, value)| field(&text_of("the name of a field", &name)?, &value)).collect()
}

/// A field of this name.
pub(crate) fn field(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Field> {
    let is_bytes = value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>();
    let value = match is_bytes {
        true => FieldValue::Bytes(value.extract()?),
        false => FieldValue::Json(json::from_python(name, value)?),
    };
    Ok((name.to_owned(), value))
}

/// Labels, given as a list of texts.
pub(crate) fn labels_of(value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if value.is_instance_of::<PyString>() {
        return Err(errors::wrong_type(value.py(), "labels: expected a list of texts, found one str; give [it]"));
    }
    value.try_iter()?.map(|label| text_of("labels", &label?)).collect()
}

fn claims_of(value: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    let dict: Bound<'_, PyDict> = member("claims", "a dict", value)?;
    dict.iter().map(|(name, value)| Ok((text_of("claims", &name)?, text_of("claims", &value)?))).collect()
}

fn required(given: &Bound<'_, PyDict>, name: &str) -> PyResult<String> {
    match given.get_item(name)? {
        Some(value) if !value.is_none() => text_of(name, &value),
        _ => Err(errors::invalid(given.py(), "invalid", &format!("{name} is missing"), "every item needs it")),
    }
}

fn name_of<T: FromStr<Err = holotype::UnknownName>>(given: &Bound<'_, PyDict>, name: &str) -> PyResult<Option<T>> {
    let value = given.get_item(name)?.filter(|value| !value.is_none());
    value.map(|value| parse(name, &value)).transpose()
}

/// Parses a name of the engine, such as a status.
pub(crate) fn parse<T: FromStr<Err = holotype::UnknownName>>(name: &str, value: &Bound<'_, PyAny>) -> PyResult<T> {
    let text = text_of(name, value)?;
    text.parse().map_err(|error: holotype::UnknownName| errors::raise(value.py(), &error.into(), None))
}

fn unknown(py: Python<'_>, name: &str, known: &str) -> PyErr {
    errors::invalid(py, "unknown-name", &format!("unknown member {name:?}"), &format!("the members are {known}"))
}
