//! Many traces given as columns: a list with a value for each trace, or one value for all of them.
//!
//! Reading a dict for each trace costs more than the engine needs to record it. Columns are read one list at a time
//! while the interpreter is held, and become traces on the thread of the transaction, without it.

use crate::errors;
use crate::values::{matrix, member, micros};
use holotype::embed::HashingEmbedder;
use holotype::{Kind, NewTrace, Source, Status, Transaction};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use std::str::FromStr;

/// Columns of traces, each as long as `texts`.
pub(crate) struct TraceColumns {
    texts: Vec<String>,
    episode: Column<String>,
    kind: Column<Kind>,
    key: Column<String>,
    step: Column<u64>,
    time: Column<i64>,
    version: Column<String>,
    status: Column<Status>,
    source: Column<Source>,
    speaker: Column<String>,
    tool: Column<String>,
    log_id: Column<String>,
    vectors: Option<Vec<Option<Vec<f32>>>>,
}

/// The values of one column.
enum Column<T> {
    /// The same for all traces; `None` is absent.
    Same(Option<T>),
    /// One for each trace.
    Each(Vec<Option<T>>),
}

const NAMES: &str = "text, episode, kind, key, step, time, version, status, source, speaker, tool, log_id";

impl TraceColumns {
    /// Reads columns by name, and the vectors as the rows of a matrix.
    pub(crate) fn read(given: &Bound<'_, PyDict>, vectors: Option<&Bound<'_, PyAny>>) -> PyResult<TraceColumns> {
        let py = given.py();
        for name in given.keys() {
            let name: String = member("a column", "a name that is a str", &name)?;
            if !NAMES.split(", ").any(|known| known == name) {
                let hint = format!("the columns are {NAMES}");
                return Err(errors::invalid(py, "unknown-name", &format!("unknown column {name:?}"), &hint));
            }
        }
        let texts =
            given.get_item("text")?.ok_or_else(|| errors::invalid(py, "invalid", "text is missing", "give texts"))?;
        let texts: Vec<String> = member("text", "a list of str", &texts)?;
        let rows = texts.len();
        let text = |name: &str| column(given, name, rows, |value| member(name, "a str", value));
        let vectors = vectors.map(matrix).transpose()?;
        if let Some(found) = vectors.as_ref().map(Vec::len).filter(|found| *found != rows) {
            return Err(unequal(py, "vectors", found, rows));
        }
        Ok(TraceColumns {
            episode: text("episode")?,
            kind: named(given, "kind", rows)?,
            key: text("key")?,
            step: column(given, "step", rows, |value| member("step", "a whole number from 0", value))?,
            time: column(given, "time", rows, micros)?,
            version: text("version")?,
            status: named(given, "status", rows)?,
            source: named(given, "source", rows)?,
            speaker: text("speaker")?,
            tool: text("tool")?,
            log_id: text("log_id")?,
            vectors,
            texts,
        })
    }

    /// Records the traces; `embedder` makes the vectors that are not given. Returns their numbers.
    pub(crate) fn record(
        mut self,
        to: &mut Transaction<'_>,
        embedder: Option<HashingEmbedder>,
    ) -> holotype::Result<Vec<u32>> {
        let mut vectors = self.vectors.take().map(Vec::into_iter);
        let texts = std::mem::take(&mut self.texts);
        let mut ids = Vec::with_capacity(texts.len());
        for (row, text) in texts.into_iter().enumerate() {
            let vector = match &mut vectors {
                Some(rows) => rows.next().flatten(),
                None => embedder.and_then(|embedder| embedder.embed(&text)),
            };
            let trace = self.trace(row, text)?;
            ids.push(to.record(vector.into_iter().fold(trace, NewTrace::vector))?.0);
        }
        Ok(ids)
    }

    fn trace(&mut self, row: usize, text: String) -> holotype::Result<NewTrace> {
        let kind = self.kind.take(row).unwrap_or(Kind::Turn);
        let missing = || holotype::Error::Invalid("the episode is missing; every trace needs one".to_owned());
        let episode = self.episode.take(row).ok_or_else(missing)?;
        let mut trace = NewTrace::new(kind, episode, text);
        // As `NewTrace::call` of the Rust interface.
        let source = self.source.take(row).or_else(|| (kind == Kind::Call).then_some(Source::Tool));
        trace = source.into_iter().fold(trace, NewTrace::source);
        trace = self.key.take(row).into_iter().fold(trace, NewTrace::key);
        trace = self.step.take(row).into_iter().fold(trace, NewTrace::step);
        trace = self.time.take(row).into_iter().fold(trace, NewTrace::time);
        trace = self.version.take(row).into_iter().fold(trace, NewTrace::version);
        trace = self.status.take(row).into_iter().fold(trace, NewTrace::status);
        trace = self.speaker.take(row).into_iter().fold(trace, NewTrace::speaker);
        trace = self.tool.take(row).into_iter().fold(trace, NewTrace::tool);
        Ok(self.log_id.take(row).into_iter().fold(trace, NewTrace::log_id))
    }
}

impl<T: Clone> Column<T> {
    fn take(&mut self, row: usize) -> Option<T> {
        match self {
            Column::Same(value) => value.clone(),
            Column::Each(values) => values[row].take(),
        }
    }
}

/// A column of names of the engine, such as statuses.
fn named<T: FromStr<Err = holotype::UnknownName>>(
    given: &Bound<'_, PyDict>,
    name: &str,
    rows: usize,
) -> PyResult<Column<T>> {
    column(given, name, rows, |value| crate::drafts::parse(name, value))
}

/// Reads a column: a list or tuple has a value for each row, anything else is the value of all.
fn column<T>(
    given: &Bound<'_, PyDict>,
    name: &str,
    rows: usize,
    read: impl Fn(&Bound<'_, PyAny>) -> PyResult<T>,
) -> PyResult<Column<T>> {
    let Some(value) = given.get_item(name)?.filter(|value| !value.is_none()) else { return Ok(Column::Same(None)) };
    let is_list = value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>();
    // A numpy array, or another iterable.
    let is_list = is_list || !value.is_instance_of::<PyString>() && value.hasattr("__iter__")?;
    if !is_list {
        return Ok(Column::Same(Some(read(&value)?)));
    }
    let one = |value: PyResult<Bound<'_, PyAny>>| {
        let value = value?;
        if value.is_none() { Ok(None) } else { read(&value).map(Some) }
    };
    let values = value.try_iter()?.map(one).collect::<PyResult<Vec<_>>>()?;
    if values.len() != rows { Err(unequal(given.py(), name, values.len(), rows)) } else { Ok(Column::Each(values)) }
}

fn unequal(py: Python<'_>, name: &str, found: usize, rows: usize) -> PyErr {
    let hint = "give one value for each text, or one for all";
    errors::invalid(py, "invalid", &format!("{name}: {found} values for {rows} texts"), hint)
}
