//! Answers, rows, tables, items and citations as plain values of Python and back, for `pickle` and `copy`.
//!
//! `__reduce__` names [`restore`] with the sort of object and its state: a dict of what the engine's value has. Objects
//! never change, so a copy within a process is the object itself.

use crate::answer::{Answer, Citation, Row, fields_dict};
use crate::drafts;
use crate::errors;
use crate::json;
use crate::line::Line;
use crate::snapshot::Item;
use crate::table::Table;
use holotype::answer::{
    Answer as EngineAnswer, Citation as EngineCitation, Line as EngineLine, Order, Parts, Refresh, Role,
    Row as EngineRow, Strength, Table as EngineTable,
};
use holotype::cell::Cell;
use holotype::{Fields, ItemId, Reader};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::collections::HashSet;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

/// The value of `__reduce__`: the function that makes the object again, and its arguments.
pub(crate) type Reduced<'py> = (Bound<'py, PyAny>, (&'static str, Bound<'py, PyDict>));

/// A dict of named values.
macro_rules! state {
    ($py:expr, { $($name:literal: $value:expr),+ $(,)? }) => {{
        let dict = PyDict::new($py);
        $(dict.set_item($name, $value)?;)+
        dict
    }};
}
pub(crate) use state;

/// The pickled form of an object.
pub(crate) fn reduced<'py>(py: Python<'py>, sort: &'static str, state: Bound<'py, PyDict>) -> PyResult<Reduced<'py>> {
    Ok((py.import("holotype._native")?.getattr("restore")?, (sort, state)))
}

/// The object of a sort with a state that `__reduce__` gave.
#[pyfunction]
pub(crate) fn restore(py: Python<'_>, sort: &str, state: &Bound<'_, PyDict>) -> PyResult<Py<PyAny>> {
    Ok(match sort {
        "answer" => {
            let json: Option<String> = get(state, "json")?;
            Py::new(py, Answer::restored(answer(state)?, json))?.into_any()
        }
        "row" => {
            let held: Bound<'_, PyDict> = get(state, "answer")?;
            Py::new(py, Row::new(Arc::new(answer(&held)?), 0))?.into_any()
        }
        "line" => Py::new(py, Line::from(line(state)?))?.into_any(),
        "citation" => Py::new(py, Citation::from(citation(state)?))?.into_any(),
        "item" => Py::new(py, Item::restored(state)?)?.into_any(),
        "table" => Py::new(py, Table { inner: Arc::new(table(state)?) })?.into_any(),
        _ => {
            let hint = "read it with the version of the package that wrote it";
            return Err(errors::invalid(py, "invalid", &format!("no object of the sort {sort:?}"), hint));
        }
    })
}

/// A member of a state.
pub(crate) fn get<'py, T: FromPyObjectOwned<'py>>(state: &Bound<'py, PyDict>, name: &str) -> PyResult<T> {
    let value = state.get_item(name)?.ok_or_else(|| unreadable(state.py(), name))?;
    value.extract().map_err(|_| unreadable(state.py(), name))
}

/// A member that is a name of the engine, such as a kind.
fn named<T: FromStr>(state: &Bound<'_, PyDict>, name: &str) -> PyResult<T> {
    get::<String>(state, name)?.parse().map_err(|_| unreadable(state.py(), name))
}

fn maybe_named<T: FromStr>(state: &Bound<'_, PyDict>, name: &str) -> PyResult<Option<T>> {
    let text: Option<String> = get(state, name)?;
    text.map(|text| text.parse().map_err(|_| unreadable(state.py(), name))).transpose()
}

fn unreadable(py: Python<'_>, name: &str) -> PyErr {
    let hint = "read it with the version of the package that wrote it";
    errors::invalid(py, "invalid", &format!("the pickled object has no {name} that can be read"), hint)
}

/// A name that the engine keeps for as long as the process runs. Each is kept once.
pub(crate) fn lasting(name: String) -> &'static str {
    static NAMES: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let names = names.get_or_insert_default();
    if let Some(known) = names.get(name.as_str()) {
        return known;
    }
    let kept: &'static str = name.leak();
    names.insert(kept);
    kept
}

// ---- answers ----

pub(crate) fn answer_state<'py>(py: Python<'py>, answer: &EngineAnswer) -> PyResult<Bound<'py, PyDict>> {
    let rows = answer.rows.iter().map(|row| row_state(py, row)).collect::<PyResult<Vec<_>>>()?;
    of_rows(py, answer, rows)
}

/// The state of an answer that has one of the rows alone.
pub(crate) fn row_of_answer<'py>(py: Python<'py>, answer: &EngineAnswer, at: usize) -> PyResult<Bound<'py, PyDict>> {
    of_rows(py, answer, vec![row_state(py, &answer.rows[at])?])
}

fn of_rows<'py>(py: Python<'py>, answer: &EngineAnswer, rows: Vec<Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyDict>> {
    let Reader { episode, step, time, version } = &answer.at;
    Ok(state!(py, {
        "commit": answer.commit,
        "at": (episode, step, time, version),
        "answerable": answer.answerable,
        "strength": (answer.strength.top, answer.strength.gap, answer.strength.terms),
        "certificate": answer.certificate,
        "route": &answer.route,
        "excluded": &answer.excluded,
        "pending": answer.pending,
        "refresh": answer.refresh.as_ref().map(|refresh| (&refresh.tool, refresh.last_step)),
        "rounds": answer.rounds,
        "notes": &answer.notes,
        "returns": &answer.returns,
        "rows": rows,
        "receipt": &answer.receipt,
        "without": &answer.without,
        "micros": answer.micros,
    }))
}

fn answer(state: &Bound<'_, PyDict>) -> PyResult<EngineAnswer> {
    let (episode, step, time, version) = get(state, "at")?;
    let (top, gap, terms) = get(state, "strength")?;
    let excluded: Vec<(String, u64)> = get(state, "excluded")?;
    let refresh: Option<(String, Option<u64>)> = get(state, "refresh")?;
    let rows: Vec<Bound<'_, PyDict>> = get(state, "rows")?;
    Ok(EngineAnswer {
        commit: get(state, "commit")?,
        at: Reader { episode, step, time, version },
        answerable: get(state, "answerable")?,
        strength: Strength { top, gap, terms },
        certificate: lasting(get(state, "certificate")?),
        route: get(state, "route")?,
        excluded: excluded.into_iter().map(|(name, count)| (lasting(name), count)).collect(),
        pending: get(state, "pending")?,
        refresh: refresh.map(|(tool, last_step)| Refresh { tool, last_step }),
        rounds: get(state, "rounds")?,
        // Its record is read from the JSON of the answer.
        escalation: None,
        notes: get(state, "notes")?,
        returns: get(state, "returns")?,
        rows: rows.iter().map(row).collect::<PyResult<_>>()?,
        receipt: get(state, "receipt")?,
        without: get(state, "without")?,
        micros: get(state, "micros")?,
    })
}

fn row_state<'py>(py: Python<'py>, row: &EngineRow) -> PyResult<Bound<'py, PyDict>> {
    let parts = &row.parts;
    let citations = row.citations.iter().map(|one| citation_state(py, one)).collect::<PyResult<Vec<_>>>()?;
    let lines = row.lines.iter().map(|one| line_state(py, one)).collect::<PyResult<Vec<_>>>()?;
    Ok(state!(py, {
        "item": row.item.0,
        "key": &row.key,
        "layer": row.layer.as_str(),
        "kind": row.kind.as_str(),
        "text": &row.text,
        "score": row.score,
        "parts": (
            parts.similarity, parts.words, parts.recency, parts.status, parts.source, parts.utility, parts.conflict,
            parts.relaxed,
        ),
        "status": row.status.map(holotype::Status::as_str),
        "source": row.source.map(holotype::Source::as_str),
        "speaker": &row.speaker,
        "tool": &row.tool,
        "episode": &row.episode,
        "step": row.step,
        "time": row.time,
        "version": &row.version,
        "stale": row.stale,
        "quarantined": &row.quarantined,
        "conflict": row.conflict.map(|item| item.0),
        "conflict_key": &row.conflict_key,
        "support": row.support.as_str(),
        "trust": row.trust,
        "relaxed": &row.relaxed,
        "path": &row.path,
        "folded": &row.folded,
        "lines": lines,
        "more": row.more,
        "tokens": row.tokens,
        "citations": citations,
        "is_evidence": row.role == Role::Evidence,
        "fields": fields_dict(py, &row.fields)?,
    }))
}

fn row(state: &Bound<'_, PyDict>) -> PyResult<EngineRow> {
    let (similarity, words, recency, status, source, utility, conflict, relaxed) = get(state, "parts")?;
    let names: Vec<String> = get(state, "relaxed")?;
    let citations: Vec<Bound<'_, PyDict>> = get(state, "citations")?;
    let lines: Vec<Bound<'_, PyDict>> = get(state, "lines")?;
    Ok(EngineRow {
        item: ItemId(get(state, "item")?),
        key: get(state, "key")?,
        layer: named(state, "layer")?,
        kind: named(state, "kind")?,
        text: get(state, "text")?,
        score: get(state, "score")?,
        parts: Parts { similarity, words, recency, status, source, utility, conflict, relaxed },
        status: maybe_named(state, "status")?,
        source: maybe_named(state, "source")?,
        speaker: get(state, "speaker")?,
        tool: get(state, "tool")?,
        episode: get(state, "episode")?,
        step: get(state, "step")?,
        time: get(state, "time")?,
        version: get(state, "version")?,
        stale: get(state, "stale")?,
        quarantined: get(state, "quarantined")?,
        conflict: get::<Option<u32>>(state, "conflict")?.map(ItemId),
        conflict_key: get(state, "conflict_key")?,
        support: named(state, "support")?,
        trust: get(state, "trust")?,
        relaxed: names.into_iter().map(lasting).collect(),
        path: get(state, "path")?,
        folded: get(state, "folded")?,
        lines: lines.iter().map(line).collect::<PyResult<_>>()?,
        more: get(state, "more")?,
        tokens: get(state, "tokens")?,
        citations: citations.iter().map(citation).collect::<PyResult<_>>()?,
        role: if get(state, "is_evidence")? { Role::Evidence } else { Role::Hit },
        fields: fields(&get(state, "fields")?)?,
    })
}

fn fields(given: &Bound<'_, PyDict>) -> PyResult<Fields> {
    let (mut values, mut bytes) = (serde_json::Map::new(), Vec::new());
    for (name, value) in drafts::fields_of(given)? {
        match value {
            drafts::FieldValue::Json(value) => drop(values.insert(name, value)),
            drafts::FieldValue::Bytes(value) => bytes.push((name, value)),
        }
    }
    let fields = Fields::from_json(values);
    Ok(bytes.into_iter().fold(fields, |fields, (name, value)| fields.with_bytes(name, value)))
}

pub(crate) fn line_state<'py>(py: Python<'py>, line: &EngineLine) -> PyResult<Bound<'py, PyDict>> {
    let citations = line.citations.iter().map(|one| citation_state(py, one)).collect::<PyResult<Vec<_>>>()?;
    Ok(state!(py, {
        "item": line.item.0,
        "key": &line.key,
        "order": line.order.as_str(),
        "label": &line.label,
        "text": &line.text,
        "status": line.status.map(holotype::Status::as_str),
        "source": line.source.map(holotype::Source::as_str),
        "episode": &line.episode,
        "step": line.step,
        "time": line.time,
        "citations": citations,
    }))
}

fn order(state: &Bound<'_, PyDict>) -> PyResult<Order> {
    let name: String = get(state, "order")?;
    let known = [Order::Earlier, Order::Later, Order::Also].into_iter().find(|order| order.as_str() == name);
    known.ok_or_else(|| unreadable(state.py(), "order"))
}

fn line(state: &Bound<'_, PyDict>) -> PyResult<EngineLine> {
    let citations: Vec<Bound<'_, PyDict>> = get(state, "citations")?;
    Ok(EngineLine {
        item: ItemId(get(state, "item")?),
        key: get(state, "key")?,
        order: order(state)?,
        label: get(state, "label")?,
        text: get(state, "text")?,
        status: maybe_named(state, "status")?,
        source: maybe_named(state, "source")?,
        episode: get(state, "episode")?,
        step: get(state, "step")?,
        time: get(state, "time")?,
        citations: citations.iter().map(citation).collect::<PyResult<_>>()?,
    })
}

fn citation_state<'py>(py: Python<'py>, citation: &EngineCitation) -> PyResult<Bound<'py, PyDict>> {
    Ok(state!(py, {
        "target": &citation.target,
        "tool": &citation.tool,
        "log_id": &citation.log_id,
        "step": citation.step,
        "field": &citation.field,
        "start": citation.start,
        "end": citation.end,
        "hash": &citation.hash,
        "verdict": citation.verdict.as_str(),
        "text": &citation.text,
    }))
}

fn citation(state: &Bound<'_, PyDict>) -> PyResult<EngineCitation> {
    Ok(EngineCitation {
        target: get(state, "target")?,
        tool: get(state, "tool")?,
        log_id: get(state, "log_id")?,
        step: get(state, "step")?,
        field: get(state, "field")?,
        start: get(state, "start")?,
        end: get(state, "end")?,
        hash: get(state, "hash")?,
        verdict: named(state, "verdict")?,
        text: get(state, "text")?,
    })
}

// ---- tables ----

pub(crate) fn table_state<'py>(py: Python<'py>, table: &EngineTable) -> PyResult<Bound<'py, PyDict>> {
    let cells = |row: &Vec<Option<Cell>>| {
        row.iter().map(|cell| cell.as_ref().map(|cell| cell_state(py, cell)).transpose()).collect::<PyResult<Vec<_>>>()
    };
    Ok(state!(py, {
        "verb": table.verb,
        "columns": &table.columns,
        "rows": table.rows.iter().map(cells).collect::<PyResult<Vec<_>>>()?,
        "notes": &table.notes,
        "failed": table.failed,
    }))
}

fn table(state: &Bound<'_, PyDict>) -> PyResult<EngineTable> {
    let rows: Vec<Vec<Option<GivenCell<'_>>>> = get(state, "rows")?;
    let cells = |row: Vec<Option<GivenCell<'_>>>| {
        row.into_iter().map(|given| given.map(|given| cell(&given, 0)).transpose()).collect::<PyResult<Vec<_>>>()
    };
    Ok(EngineTable {
        verb: lasting(get(state, "verb")?),
        columns: get(state, "columns")?,
        rows: rows.into_iter().map(cells).collect::<PyResult<_>>()?,
        notes: get(state, "notes")?,
        failed: get(state, "failed")?,
    })
}

/// The sort of a cell and its value: times and durations in microseconds.
type CellState<'py> = (&'static str, Bound<'py, PyAny>);

/// A [`CellState`] that was unpickled.
type GivenCell<'py> = (String, Bound<'py, PyAny>);

fn cell_state<'py>(py: Python<'py>, cell: &Cell) -> PyResult<CellState<'py>> {
    let whole = |number: i64| PyResult::Ok(number.into_pyobject(py)?.into_any());
    Ok(match cell {
        Cell::Number(number) => ("number", number.into_pyobject(py)?.into_any()),
        Cell::Integer(number) => ("integer", whole(*number)?),
        Cell::Bool(yes) => ("bool", yes.into_pyobject(py)?.to_owned().into_any()),
        Cell::Time(micros) => ("time", whole(*micros)?),
        Cell::Duration(micros) => ("duration", whole(*micros)?),
        Cell::List(cells) => {
            let cells = cells.iter().map(|cell| cell_state(py, cell)).collect::<PyResult<Vec<_>>>()?;
            ("list", PyList::new(py, cells)?.into_any())
        }
        Cell::Json(members) => ("json", json::object_to_python(py, members)?.into_any()),
        other => ("text", other.to_string().into_pyobject(py)?.into_any()),
    })
}

/// Cells of the engine are lists of values at most; a deeper one was never pickled here.
const MAX_DEPTH: usize = 4;

fn cell((sort, value): &GivenCell<'_>, depth: usize) -> PyResult<Cell> {
    let wrong = |_| unreadable(value.py(), "cell");
    Ok(match sort.as_str() {
        "text" => Cell::Text(value.extract().map_err(wrong)?),
        "number" => Cell::Number(value.extract().map_err(wrong)?),
        "integer" => Cell::Integer(value.extract().map_err(wrong)?),
        "bool" => Cell::Bool(value.extract().map_err(wrong)?),
        "time" => Cell::Time(value.extract().map_err(wrong)?),
        "duration" => Cell::Duration(value.extract().map_err(wrong)?),
        "json" => match json::from_python("cell", value)? {
            serde_json::Value::Object(members) => Cell::Json(members),
            _ => return Err(unreadable(value.py(), "cell")),
        },
        "list" if depth < MAX_DEPTH => {
            let cells: Vec<GivenCell<'_>> = value.extract().map_err(wrong)?;
            Cell::List(cells.iter().map(|given| cell(given, depth + 1)).collect::<PyResult<_>>()?)
        }
        _ => return Err(unreadable(value.py(), "cell")),
    })
}
