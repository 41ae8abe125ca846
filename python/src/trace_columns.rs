//! Many traces given as columns: a list with a value for each trace, or one value for all of them.
//!
//! Reading a dict for each trace costs more than the engine needs to record it. Columns are read one list at a time
//! while the interpreter is held, and become traces on the thread of the transaction, without it.

use crate::drafts::{Field, field, fields_of, labels_of, with_fields};
use crate::errors;
use crate::values::{micros_and_unit, text_of, type_name, warn_of_unit, whole};
use crate::vectors::matrix;
use holotype::embed::HashingEmbedder;
use holotype::{Kind, NewTrace, Source, Status, Transaction};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyFrozenSet, PyMapping, PySet, PyString};
use std::cell::Cell;
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
    fields: Column<Vec<Field>>,
    labels: Column<Vec<String>>,
    /// A column for each field, by name.
    each_field: Vec<Column<Field>>,
    vectors: Option<Vec<Option<Vec<f32>>>>,
}

/// The values of one column.
enum Column<T> {
    /// The same for all traces; `None` is absent.
    Same(Option<T>),
    /// One for each trace.
    Each(Vec<Option<T>>),
}

const NAMES: &str = "text, episode, kind, key, step, time, version, status, source, speaker, tool, log_id, \
                     fields, labels";

impl TraceColumns {
    /// Reads columns by name, and the vectors as the rows of a matrix.
    ///
    /// `each_field` has a column of values for each field, beside `fields` with those of each trace.
    pub(crate) fn read(
        given: &Bound<'_, PyDict>,
        vectors: Option<&Bound<'_, PyAny>>,
        each_field: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<TraceColumns> {
        let py = given.py();
        for name in given.keys() {
            let name = text_of("a column", &name)?;
            if !NAMES.split(", ").any(|known| known == name) {
                let hint = format!("the columns are {NAMES}");
                return Err(errors::invalid(py, "unknown-name", &format!("unknown column {name:?}"), &hint));
            }
        }
        let texts =
            given.get_item("text")?.ok_or_else(|| errors::invalid(py, "invalid", "text is missing", "give texts"))?;
        let texts = texts.try_iter()?.enumerate();
        let texts = texts.map(|(row, text)| text_of(&format!("text[{row}]"), &text?)).collect::<PyResult<Vec<_>>>()?;
        let rows = texts.len();
        let text = |name: &str| column(given, name, rows, text_of);
        let vectors = vectors.map(|vectors| matrix(vectors, rows)).transpose()?;
        if let Some(found) = vectors.as_ref().map(Vec::len).filter(|found| *found != rows) {
            return Err(unequal(py, "vectors", found, rows));
        }
        // One warning for a column.
        let unit = Cell::new(None);
        let time = |_: &str, value: &Bound<'_, PyAny>| {
            let (micros, found) = micros_and_unit(value)?;
            if let Some(found) = found
                && unit.replace(Some(found)).is_none()
            {
                warn_of_unit(value, found)?;
            }
            Ok(micros)
        };
        Ok(TraceColumns {
            episode: text("episode")?,
            kind: named(given, "kind", rows)?,
            key: text("key")?,
            step: column(given, "step", rows, whole)?,
            time: column(given, "time", rows, time)?,
            version: text("version")?,
            status: named(given, "status", rows)?,
            source: named(given, "source", rows)?,
            speaker: text("speaker")?,
            tool: text("tool")?,
            log_id: text("log_id")?,
            fields: column(given, "fields", rows, |_, value| fields_of(value))?,
            labels: column(given, "labels", rows, |_, value| labels_of(value))?,
            each_field: each_field.map_or_else(|| Ok(Vec::new()), |given| field_columns(given, rows))?,
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
        trace = self.log_id.take(row).into_iter().fold(trace, NewTrace::log_id);
        trace = self.labels.take(row).into_iter().flatten().fold(trace, NewTrace::label);
        let each: Vec<Field> = self.each_field.iter_mut().filter_map(|column| column.take(row)).collect();
        trace = with_fields(trace, each);
        Ok(self.fields.take(row).into_iter().fold(trace, with_fields))
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

/// A column of values for each field.
fn field_columns(given: &Bound<'_, PyDict>, rows: usize) -> PyResult<Vec<Column<Field>>> {
    let column = |(name, _): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name = text_of("the name of a field", &name)?;
        column(given, &name, rows, |_, value| field(&name, value))
    };
    given.iter().map(column).collect()
}

/// A column of names of the engine, such as statuses.
fn named<T: FromStr<Err = holotype::UnknownName>>(
    given: &Bound<'_, PyDict>,
    name: &str,
    rows: usize,
) -> PyResult<Column<T>> {
    column(given, name, rows, crate::drafts::parse)
}

/// Reads a column: a text, bytes, a dict or what cannot be iterated is the value of all rows, anything else has a value
/// for each row. `read` is given the name of the column, with the row if it fails.
fn column<T>(
    given: &Bound<'_, PyDict>,
    name: &str,
    rows: usize,
    read: impl Fn(&str, &Bound<'_, PyAny>) -> PyResult<T>,
) -> PyResult<Column<T>> {
    let Some(value) = given.get_item(name)?.filter(|value| !value.is_none()) else { return Ok(Column::Same(None)) };
    if value.is_instance_of::<PySet>() || value.is_instance_of::<PyFrozenSet>() {
        let found = type_name(&value);
        return Err(errors::wrong_type(
            given.py(),
            &format!("{name}: expected a list, found {found}, which has no order"),
        ));
    }
    let is_one = value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyByteArray>()
        || value.cast::<PyMapping>().is_ok();
    let values = if is_one { None } else { value.try_iter().ok() };
    let Some(values) = values else { return Ok(Column::Same(Some(read(name, &value)?))) };
    let mut column = Vec::with_capacity(rows);
    // An iterator without an end is no longer than one more.
    for (row, value) in values.take(rows + 1).enumerate() {
        let value = value?;
        let one = if value.is_none() { None } else { Some(read(name, &value)) };
        let one = one.map(|read_one| read_one.or_else(|_| read(&format!("{name}[{row}]"), &value)));
        column.push(one.transpose()?);
    }
    match column.len() {
        found if found > rows => Err(unequal(given.py(), name, format_args!("more than {rows}"), rows)),
        found if found < rows => Err(unequal(given.py(), name, found, rows)),
        _ => Ok(Column::Each(column)),
    }
}

fn unequal(py: Python<'_>, name: &str, found: impl std::fmt::Display, rows: usize) -> PyErr {
    let hint = "give one value for each text, or one for all";
    errors::invalid(py, "invalid", &format!("{name}: {found} values for {rows} texts"), hint)
}
