//! Answers of recalls: rows with their evidence.

use crate::columns;
use crate::json;
use crate::line::Line;
use crate::pickle::{Reduced, answer_state, reduced, row_of_answer, state};
use crate::table::{Table, display, position, to_python};
use crate::values::Micros;
use holotype::answer::{
    Answer as EngineAnswer, Citation as EngineCitation, Output, ROW_COLUMNS, Role, Row as EngineRow,
};
use holotype::cell::Cell;
use holotype::{Fields, ItemId, Source, Status};
use pyo3::exceptions::{PyIndexError, PyNotImplementedError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList, PySlice, PyTuple};
use std::sync::Arc;

/// The answer to a recall: rows, best first, each with its evidence.
#[pyclass(frozen, module = "holotype", sequence)]
pub(crate) struct Answer {
    inner: Arc<EngineAnswer>,
    /// The JSON of an unpickled answer with the record of `escalate`, which `inner` lacks then.
    json: Option<String>,
    rows: PyOnceLock<Py<PyTuple>>,
}

/// One row of an answer.
#[pyclass(frozen, module = "holotype")]
pub(crate) struct Row {
    answer: Arc<EngineAnswer>,
    at: usize,
}

/// A span that a row rests on, read and hashed again for this answer.
#[pyclass(frozen, get_all, eq, hash, module = "holotype")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Citation {
    /// The item or page cited.
    target: String,
    /// The tool of the cited trace.
    tool: Option<String>,
    /// The log of the cited trace.
    log_id: Option<String>,
    /// The step of the cited trace.
    step: Option<u64>,
    /// The field; empty for a page.
    field: String,
    /// The first byte of the span.
    start: u64,
    /// The byte after the span.
    end: u64,
    /// The BLAKE3 of the cited bytes when they were cited, in hex.
    hash: String,
    /// `ok`, `unresolved`, `mismatch` or `redacted`.
    verdict: &'static str,
    /// The bytes as text, if the verdict is `ok`.
    text: Option<String>,
    /// The citation as HELM A.7 writes it; `None` for a page.
    cite: Option<String>,
}

/// The outputs of statements as objects of Python.
pub(crate) fn outputs(py: Python<'_>, outputs: Vec<Output>) -> PyResult<Vec<Py<PyAny>>> {
    let object = |output| match output {
        Output::Answer(answer) => Ok(Py::new(py, Answer::new(*answer))?.into_any()),
        Output::Table(table) => Ok(Py::new(py, Table { inner: Arc::new(table) })?.into_any()),
        _ => Err(PyNotImplementedError::new_err("a sort of output that this package does not know")),
    };
    outputs.into_iter().map(object).collect()
}

impl Answer {
    /// The answer of the engine.
    pub(crate) fn engine(&self) -> Arc<EngineAnswer> {
        Arc::clone(&self.inner)
    }

    fn new(answer: EngineAnswer) -> Answer {
        Answer::restored(answer, None)
    }

    /// An unpickled answer.
    pub(crate) fn restored(answer: EngineAnswer, json: Option<String>) -> Answer {
        Answer { inner: Arc::new(answer), json, rows: PyOnceLock::new() }
    }

    /// The names of the columns that the statement asked for; all without `return`.
    fn columns_of(answer: &EngineAnswer) -> Vec<&str> {
        match &answer.returns {
            Some(names) => names.iter().map(String::as_str).collect(),
            None => ROW_COLUMNS.to_vec(),
        }
    }
}

impl From<EngineCitation> for Citation {
    fn from(citation: EngineCitation) -> Citation {
        let cite = citation.cite();
        let EngineCitation { target, tool, log_id, step, field, start, end, hash, verdict, text } = citation;
        Citation { target, tool, log_id, step, field, start, end, hash, verdict: verdict.as_str(), text, cite }
    }
}

/// The fields of a row as a dict.
pub(crate) fn fields_dict<'py>(py: Python<'py>, fields: &Fields) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in fields.to_json() {
        match fields.bytes(&name) {
            Some(bytes) => dict.set_item(name, PyBytes::new(py, bytes))?,
            None => dict.set_item(name, json::to_python(py, &value)?)?,
        }
    }
    Ok(dict)
}

/// A column of a row as a cell; `None` if it is absent, or `citations`, which are no cell.
pub(crate) fn cell(row: &EngineRow, column: &str) -> Option<Cell> {
    let texts = |texts: &[String]| Cell::List(texts.iter().map(Cell::text).collect());
    let part = |number: f32| Some(Cell::Number(f64::from(number)));
    match column {
        "item" => Some(Cell::Integer(row.item.0.into())),
        "key" => Some(Cell::text(&row.key)),
        "layer" => Some(Cell::text(row.layer.as_str())),
        "kind" => Some(Cell::text(row.kind.as_str())),
        "text" => Some(Cell::text(&row.text)),
        "score" => part(row.score),
        "similarity" => part(row.parts.similarity),
        "words" => part(row.parts.words),
        "recency" => part(row.parts.recency),
        "status_score" => part(row.parts.status),
        "source_score" => part(row.parts.source),
        "utility_score" => part(row.parts.utility),
        "conflict_score" => part(row.parts.conflict),
        "status" => row.status.map(|status| Cell::text(status.as_str())),
        "source" => row.source.map(|source| Cell::text(source.as_str())),
        "speaker" => row.speaker.as_ref().map(Cell::text),
        "tool" => row.tool.as_ref().map(Cell::text),
        "episode" => row.episode.as_ref().map(Cell::text),
        "step" => row.step.map(Cell::count),
        "time" => row.time.map(Cell::Time),
        "version" => row.version.as_ref().map(Cell::text),
        "stale" => Some(Cell::Bool(row.stale)),
        "quarantined" => row.quarantined.clone().map(Cell::Text),
        "conflict" => row.conflict_key.as_ref().map(Cell::text),
        "support" => Some(Cell::text(row.support.as_str())),
        "trust" => part(row.trust),
        "relaxed" => Some(Cell::List(row.relaxed.iter().map(|name| Cell::text(*name)).collect())),
        "path" => Some(texts(&row.path)),
        "folded" => Some(texts(&row.folded)),
        "lines" => Some(Cell::List(
            row.lines.iter().map(|line| Cell::Text(format!("{}: {}", line.label, line.text))).collect(),
        )),
        "more" => Some(Cell::count(row.more)),
        "tokens" => Some(Cell::Integer(row.tokens.into())),
        "role" => Some(Cell::text(role(row))),
        // Fields and labels, as `return` asks for them.
        "fields" | "labels" => row.cell(column),
        _ => column.strip_prefix("fields.").and_then(|_| row.cell(column)),
    }
}

fn role(row: &EngineRow) -> &'static str {
    match row.role {
        Role::Hit => "hit",
        Role::Evidence => "evidence",
    }
}

fn citation_dict<'py>(py: Python<'py>, citation: &EngineCitation) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("target", &citation.target)?;
    dict.set_item("field", &citation.field)?;
    dict.set_item("start", citation.start)?;
    dict.set_item("end", citation.end)?;
    dict.set_item("hash", &citation.hash)?;
    dict.set_item("verdict", citation.verdict.as_str())?;
    dict.set_item("text", citation.text.as_deref())?;
    Ok(dict)
}

#[pymethods]
impl Answer {
    /// The rows, best first.
    #[getter]
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let made = self.rows.get_or_try_init(py, || {
            let row = |at| Py::new(py, Row { answer: Arc::clone(&self.inner), at });
            let rows = (0..self.inner.rows.len()).map(row).collect::<PyResult<Vec<_>>>()?;
            PyTuple::new(py, rows).map(Bound::unbind)
        })?;
        Ok(made.bind(py).clone())
    }

    /// The names of the columns: those of `return`, or all.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        Answer::columns_of(&self.inner)
    }

    /// The commit that was asked.
    #[getter]
    fn commit(&self) -> u64 {
        self.inner.commit
    }

    /// The reader's position: `episode`, `step`, `time` and `version`.
    #[getter]
    fn at<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("episode", self.inner.at.episode.as_deref())?;
        dict.set_item("step", self.inner.at.step)?;
        dict.set_item("time", self.inner.at.time.map(Micros))?;
        dict.set_item("version", self.inner.at.version.as_deref())?;
        Ok(dict)
    }

    /// False if what is stored may not answer the question; a note says why.
    #[getter]
    fn answerable(&self) -> bool {
        self.inner.answerable
    }

    /// The strength of the evidence: `top`, `gap` and `terms`.
    #[getter]
    fn strength<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("top", self.inner.strength.top)?;
        dict.set_item("gap", self.inner.strength.gap)?;
        dict.set_item("terms", self.inner.strength.terms)?;
        Ok(dict)
    }

    /// The certainty that no better row was missed: `exact`, `converged` or `limited`.
    #[getter]
    fn certificate(&self) -> &'static str {
        self.inner.certificate
    }

    /// The stages of the path.
    #[getter]
    fn route(&self) -> Vec<String> {
        self.inner.route.clone()
    }

    /// The number of items in scope that each flaw kept from being rows, by the name of the flaw.
    #[getter]
    fn excluded<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, count) in &self.inner.excluded {
            dict.set_item(name, count)?;
        }
        Ok(dict)
    }

    /// Items whose text waits for its vector, so that questions find them by their words alone.
    #[getter]
    fn pending(&self) -> u64 {
        self.inner.pending
    }

    /// The tool to call again because the best row is stale, as `tool` and `last_step`.
    #[getter]
    fn refresh<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(refresh) = &self.inner.refresh else { return Ok(None) };
        let dict = PyDict::new(py);
        dict.set_item("tool", &refresh.tool)?;
        dict.set_item("last_step", refresh.last_step)?;
        Ok(Some(dict))
    }

    /// The record of `escalate`: `router`, `rounds`, `pages`, and the `facts` and `failures` of roles, as in JSON;
    /// `None` without that clause.
    #[getter]
    fn escalation<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        if self.inner.escalation.is_none() && self.json.is_none() {
            return Ok(None);
        }
        let json = py.import("json")?.call_method1("loads", (self.to_json(),))?;
        let dict = PyDict::new(py);
        for name in ["router", "rounds", "pages"] {
            dict.set_item(name, json.get_item(name)?)?;
        }
        for name in ["facts", "failures"] {
            // JSON leaves an empty list out.
            let list = json.call_method1("get", (name,))?;
            let list = if list.is_none() { PyList::empty(py).into_any() } else { list };
            dict.set_item(name, list)?;
        }
        Ok(Some(dict))
    }

    /// Remarks on how the answer was found.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.inner.notes.clone()
    }

    /// The id of the stored receipt, if one was asked for.
    #[getter]
    fn receipt(&self) -> Option<&str> {
        self.inner.receipt.as_deref()
    }

    /// The elapsed time in the engine, in microseconds.
    #[getter]
    fn micros(&self) -> u64 {
        self.inner.micros
    }

    /// The rows as dicts, by column name.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        (0..self.inner.rows.len()).map(|at| Row { answer: Arc::clone(&self.inner), at }.to_dict(py)).collect()
    }

    /// The whole answer as JSON text, as the command line prints it.
    fn to_json(&self) -> String {
        self.json.clone().unwrap_or_else(|| self.inner.to_json(None).to_string())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer may ask for a schema, and a producer may ignore that.
        drop(requested_schema);
        columns::stream(py, columns::of_answer(&self.inner, &Answer::columns_of(&self.inner)))
    }

    fn __len__(&self) -> usize {
        self.inner.rows.len()
    }

    /// A row, or the rows of a slice as a tuple.
    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = index.cast::<PySlice>() {
            return self.rows(py)?.as_any().get_item(slice);
        }
        let at = position(index.extract()?, self.inner.rows.len()).filter(|at| *at < self.inner.rows.len());
        let at = at.ok_or_else(|| PyIndexError::new_err("there is no such row"))?;
        Ok(Bound::new(py, Row { answer: Arc::clone(&self.inner), at })?.into_any())
    }

    fn __contains__(&self, row: &Bound<'_, PyAny>) -> bool {
        row.cast::<Row>().is_ok_and(|row| self.inner.rows.contains(row.get().row()))
    }

    fn __reversed__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("builtins")?.call_method1("reversed", (self.rows(py)?,))
    }

    /// The place of the first row that equals this one.
    #[pyo3(signature = (value, start=0, stop=isize::MAX))]
    fn index(&self, py: Python<'_>, value: &Bound<'_, PyAny>, start: isize, stop: isize) -> PyResult<usize> {
        self.rows(py)?.call_method1("index", (value, start, stop))?.extract()
    }

    /// The number of rows that equal this one.
    fn count(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.rows(py)?.call_method1("count", (value,))?.extract()
    }

    fn __eq__(&self, other: &Self) -> bool {
        match (&self.json, &other.json) {
            (None, None) => self.inner == other.inner,
            _ => self.to_json() == other.to_json(),
        }
    }

    fn __hash__(&self) -> u64 {
        self.inner.commit ^ (self.inner.rows.len() as u64) << 32
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let state = answer_state(py, &self.inner)?;
        let has_record = self.inner.escalation.is_some() || self.json.is_some();
        state.set_item("json", has_record.then(|| self.to_json()))?;
        reduced(py, "answer", state)
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: Bound<'py, Self>, memo: Bound<'py, PyAny>) -> Bound<'py, Self> {
        // It never changes, so that there is nothing to remember.
        drop(memo);
        slf
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.rows(py)?.try_iter()?.into_any())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        display(slf.as_any(), "answer_text")
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        display(slf.as_any(), "answer_html")
    }
}

impl Row {
    pub(crate) fn new(answer: Arc<EngineAnswer>, at: usize) -> Row {
        Row { answer, at }
    }

    fn row(&self) -> &EngineRow {
        &self.answer.rows[self.at]
    }
}

#[pymethods]
impl Row {
    /// The number of the item.
    #[getter]
    fn item(&self) -> u32 {
        self.row().item.0
    }

    /// Its key.
    #[getter]
    fn key(&self) -> &str {
        &self.row().key
    }

    /// Its layer: `trace`, `recall` or `theme`.
    #[getter]
    fn layer(&self) -> &'static str {
        self.row().layer.as_str()
    }

    /// Its kind, such as `turn` or `fact`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.row().kind.as_str()
    }

    /// Its text, as it was written.
    #[getter]
    fn text(&self) -> &str {
        &self.row().text
    }

    /// The governed score.
    #[getter]
    fn score(&self) -> f32 {
        self.row().score
    }

    /// The terms of the score, weighted, by name.
    #[getter]
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let parts = &self.row().parts;
        let dict = PyDict::new(py);
        dict.set_item("similarity", parts.similarity)?;
        dict.set_item("words", parts.words)?;
        dict.set_item("recency", parts.recency)?;
        dict.set_item("status", parts.status)?;
        dict.set_item("source", parts.source)?;
        dict.set_item("utility", parts.utility)?;
        dict.set_item("conflict", parts.conflict)?;
        dict.set_item("relaxed", parts.relaxed)?;
        Ok(dict)
    }

    /// The outcome: `success`, `unknown` or `failed`.
    #[getter]
    fn status(&self) -> Option<&'static str> {
        self.row().status.map(Status::as_str)
    }

    /// The producer, such as `user` or `tool`.
    #[getter]
    fn source(&self) -> Option<&'static str> {
        self.row().source.map(Source::as_str)
    }

    /// The speaker.
    #[getter]
    fn speaker(&self) -> Option<&str> {
        self.row().speaker.as_deref()
    }

    /// The tool of a call.
    #[getter]
    fn tool(&self) -> Option<&str> {
        self.row().tool.as_deref()
    }

    /// The episode.
    #[getter]
    fn episode(&self) -> Option<&str> {
        self.row().episode.as_deref()
    }

    /// The step in its episode.
    #[getter]
    fn step(&self) -> Option<u64> {
        self.row().step
    }

    /// The time, in UTC.
    #[getter]
    fn time(&self) -> Option<Micros> {
        self.row().time.map(Micros)
    }

    /// The version of task, environment or tool schema.
    #[getter]
    fn version(&self) -> Option<&str> {
        self.row().version.as_deref()
    }

    /// True if it is stale for this reader.
    #[getter]
    fn stale(&self) -> bool {
        self.row().stale
    }

    /// The reason why its text is quarantined: it instructs, and its source has no right to. `None` otherwise.
    #[getter]
    fn quarantined(&self) -> Option<&str> {
        self.row().quarantined.as_deref()
    }

    /// The key of the item that contradicts a claim of this one and is preferred to it.
    #[getter]
    fn conflict(&self) -> Option<String> {
        let row = self.row();
        row.conflict_key.clone().or_else(|| row.conflict.map(|ItemId(id)| format!("#{id}")))
    }

    /// The state of its sources: `supported`, `weakened` or `unsupported`.
    #[getter]
    fn support(&self) -> &'static str {
        self.row().support.as_str()
    }

    /// The least source weight in its lineage; 0 if a source failed.
    #[getter]
    fn trust(&self) -> f32 {
        self.row().trust
    }

    /// The exclusions it was included despite.
    #[getter]
    fn relaxed(&self) -> Vec<&'static str> {
        self.row().relaxed.clone()
    }

    /// Channels and items from the query to the row.
    #[getter]
    fn path(&self) -> Vec<String> {
        self.row().path.clone()
    }

    /// Keys of items with the same words.
    #[getter]
    fn folded(&self) -> Vec<String> {
        self.row().folded.clone()
    }

    /// Other statements of the same frame: earlier, later and qualified ones.
    #[getter]
    fn lines(&self) -> Vec<Line> {
        self.row().lines.iter().cloned().map(Line::from).collect()
    }

    /// The number of statements of the frame among the candidates that are not shown.
    #[getter]
    fn more(&self) -> u64 {
        self.row().more
    }

    /// Its length in tokens.
    #[getter]
    fn tokens(&self) -> u32 {
        self.row().tokens
    }

    /// Its evidence, hashed again for this answer.
    #[getter]
    fn citations(&self) -> Vec<Citation> {
        self.row().citations.iter().cloned().map(Citation::from).collect()
    }

    /// The fields of its item beside the text, by name: of the types that JSON has, or `bytes` for what is no text.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        fields_dict(py, &self.row().fields)
    }

    /// The labels of its item.
    #[getter]
    fn labels(&self) -> Vec<String> {
        self.row().labels()
    }

    /// `hit`, or `evidence` if `expand` added it.
    #[getter]
    fn role(&self) -> &'static str {
        role(self.row())
    }

    /// The row as a dict, by column name.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for column in Answer::columns_of(&self.answer) {
            if column == "citations" {
                let citations = self.row().citations.iter().map(|one| citation_dict(py, one));
                dict.set_item(column, citations.collect::<PyResult<Vec<_>>>()?)?;
            } else {
                dict.set_item(column, to_python(py, cell(self.row(), column).as_ref())?)?;
            }
        }
        Ok(dict)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.row() == other.row()
    }

    fn __hash__(&self) -> u64 {
        self.row().item.0.into()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduced(py, "row", state!(py, { "answer": row_of_answer(py, &self.answer, self.at)? }))
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: Bound<'py, Self>, memo: Bound<'py, PyAny>) -> Bound<'py, Self> {
        // It never changes, so that there is nothing to remember.
        drop(memo);
        slf
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        display(slf.as_any(), "row_text")
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        display(slf.as_any(), "row_html")
    }
}

#[pymethods]
impl Citation {
    /// The citation as a dict.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        Ok(state!(py, {
            "target": &self.target,
            "tool": &self.tool,
            "log_id": &self.log_id,
            "step": self.step,
            "field": &self.field,
            "start": self.start,
            "end": self.end,
            "hash": &self.hash,
            "verdict": self.verdict,
            "text": &self.text,
        }))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduced(py, "citation", self.to_dict(py)?)
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: Bound<'py, Self>, memo: Bound<'py, PyAny>) -> Bound<'py, Self> {
        // It never changes, so that there is nothing to remember.
        drop(memo);
        slf
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        display(slf.as_any(), "citation_text")
    }
}
