//! Tables and answers as Arrow: one record batch, handed over through the C stream interface.
//!
//! The type of a column follows from its name, whatever the cells are; that of a name that is not known from the cells.
//!
//! | cells of a column | Arrow type |
//! |---|---|
//! | texts | `utf8` |
//! | whole numbers | `int64`; with fractions among them `float64` |
//! | booleans | `bool` |
//! | times | `timestamp[us, UTC]` |
//! | durations | `duration[us]` |
//! | lists | `list<utf8>` |
//! | of several sorts, and none at all | `utf8`, as people read them |
//!
//! `citations` is `list<struct<target, field, start, end, verdict, text>>`.

use crate::answer::cell;
use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, DurationMicrosecondArray, Float64Array, Int64Array, ListArray, RecordBatch,
    RecordBatchIterator, RecordBatchOptions, StringArray, StructArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema};
use holotype::answer::{Answer, Citation, Table};
use holotype::cell::Cell;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// A stream of one batch, in the capsule that Arrow's consumers expect.
pub(crate) fn stream(py: Python<'_>, batch: Result<RecordBatch, ArrowError>) -> PyResult<Bound<'_, PyCapsule>> {
    let batch = batch.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let schema = batch.schema();
    let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new([Ok(batch)], schema)));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// A table as a batch.
pub(crate) fn of_table(table: &Table) -> Result<RecordBatch, ArrowError> {
    let cells = |at: usize| table.rows.iter().map(|row| row.get(at).cloned().flatten()).collect::<Vec<_>>();
    let columns = table.columns.iter().enumerate().map(|(at, name)| (name.clone(), array(name, &cells(at))));
    batch(columns.collect(), table.rows.len())
}

/// The rows of an answer as a batch of these columns.
pub(crate) fn of_answer(answer: &Answer, names: &[&str]) -> Result<RecordBatch, ArrowError> {
    let column = |name: &str| match name {
        "citations" => citations(answer),
        _ => array(name, &answer.rows.iter().map(|row| cell(row, name)).collect::<Vec<_>>()),
    };
    batch(names.iter().map(|name| ((*name).to_owned(), column(name))).collect(), answer.rows.len())
}

fn batch(columns: Vec<(String, ArrayRef)>, rows: usize) -> Result<RecordBatch, ArrowError> {
    let field = |(name, array): &(String, ArrayRef)| Field::new(name, array.data_type().clone(), true);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(schema), arrays, &options)
}

/// The sort of a column's cells.
#[derive(Clone, Copy, PartialEq)]
enum Sort {
    None,
    Text,
    Integer,
    Number,
    Bool,
    Time,
    Duration,
    List,
}

fn sort(cell: &Cell) -> Sort {
    match cell {
        Cell::Integer(_) => Sort::Integer,
        Cell::Number(_) => Sort::Number,
        Cell::Bool(_) => Sort::Bool,
        Cell::Time(_) => Sort::Time,
        Cell::Duration(_) => Sort::Duration,
        Cell::List(_) => Sort::List,
        _ => Sort::Text,
    }
}

/// The sort that holds both.
fn join(a: Sort, b: Sort) -> Sort {
    match (a, b) {
        (Sort::None, one) | (one, Sort::None) => one,
        (a, b) if a == b => a,
        (Sort::Integer, Sort::Number) | (Sort::Number, Sort::Integer) => Sort::Number,
        _ => Sort::Text,
    }
}

/// The sort of a column of this name: of attributes of items, claims, edges and the like, and of what is counted.
fn declared(name: &str) -> Option<Sort> {
    Some(match name {
        "text" | "key" | "layer" | "kind" | "episode" | "page" | "version" | "status" | "source" | "speaker"
        | "tool" | "log_id" | "support" | "origin" | "name" | "value" | "scope" | "edge" | "field" | "op"
        | "because" | "attribute" | "receipt" | "statement" | "hash" | "state" | "task" | "quarantined"
        | "conflict" | "role" | "verdict" | "span" => Sort::Text,
        "item" | "tokens" | "step" | "commit" | "start" | "end" | "since" | "until" | "rows" | "as_of" | "count"
        | "more" => Sort::Integer,
        "score" | "similarity" | "words" | "recency" | "status_score" | "source_score" | "utility_score"
        | "conflict_score" | "trust" | "utility" => Sort::Number,
        "stale" | "active" | "open" => Sort::Bool,
        "time" => Sort::Time,
        "age" => Sort::Duration,
        "relaxed" | "path" | "folded" | "lines" => Sort::List,
        _ => match name.split_once('.')? {
            ("fields", _) => Sort::Text,
            ("mean", _) => Sort::Number,
            ("sum" | "min" | "max", of) => declared(of)?,
            _ => return None,
        },
    })
}

/// The sort that holds all cells of a column: the declared one if they are of it.
fn sort_of(name: &str, cells: &[Option<Cell>]) -> Sort {
    let found = cells.iter().flatten().map(sort).fold(Sort::None, join);
    match (declared(name), found) {
        (Some(declared), found) if join(declared, found) == declared => declared,
        (_, Sort::None) => Sort::Text,
        (_, found) => found,
    }
}

fn array(name: &str, cells: &[Option<Cell>]) -> ArrayRef {
    let whole = |cell: &Option<Cell>| match cell {
        Some(Cell::Integer(number) | Cell::Time(number) | Cell::Duration(number)) => Some(*number),
        _ => None,
    };
    let number = |cell: &Option<Cell>| match cell {
        Some(Cell::Number(number)) => Some(*number),
        Some(Cell::Integer(number)) => Some(*number as f64),
        _ => None,
    };
    match sort_of(name, cells) {
        Sort::Integer => Arc::new(cells.iter().map(whole).collect::<Int64Array>()),
        Sort::Number => Arc::new(cells.iter().map(number).collect::<Float64Array>()),
        Sort::Bool => {
            let yes = |cell: &Option<Cell>| if let Some(Cell::Bool(yes)) = cell { Some(*yes) } else { None };
            Arc::new(cells.iter().map(yes).collect::<BooleanArray>())
        }
        Sort::Time => Arc::new(cells.iter().map(whole).collect::<TimestampMicrosecondArray>().with_timezone("UTC")),
        Sort::Duration => Arc::new(cells.iter().map(whole).collect::<DurationMicrosecondArray>()),
        Sort::List => lists(cells),
        Sort::Text | Sort::None => {
            Arc::new(cells.iter().map(|cell| cell.as_ref().map(ToString::to_string)).collect::<StringArray>())
        }
    }
}

fn lists(cells: &[Option<Cell>]) -> ArrayRef {
    let mut builder = ListBuilder::new(StringBuilder::new());
    for cell in cells {
        if let Some(Cell::List(members)) = cell {
            members.iter().for_each(|member| builder.values().append_value(member.to_string()));
        }
        builder.append(cell.is_some());
    }
    Arc::new(builder.finish())
}

fn citations(answer: &Answer) -> ArrayRef {
    let all: Vec<&Citation> = answer.rows.iter().flat_map(|row| &row.citations).collect();
    let texts = |text: fn(&Citation) -> Option<&str>| -> ArrayRef {
        Arc::new(all.iter().map(|one| text(one)).collect::<StringArray>())
    };
    let numbers = |number: fn(&Citation) -> u64| -> ArrayRef {
        Arc::new(all.iter().map(|one| number(one)).collect::<UInt64Array>())
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("target", texts(|one| Some(&one.target))),
        ("field", texts(|one| Some(&one.field))),
        ("start", numbers(|one| one.start)),
        ("end", numbers(|one| one.end)),
        ("verdict", texts(|one| Some(one.verdict.as_str()))),
        ("text", texts(|one| one.text.as_deref())),
    ];
    let fields: Fields =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    let members = StructArray::new(fields.clone(), columns.into_iter().map(|(_, array)| array).collect(), None);
    let offsets = OffsetBuffer::from_lengths(answer.rows.iter().map(|row| row.citations.len()));
    let item = Arc::new(Field::new("item", DataType::Struct(fields), true));
    Arc::new(ListArray::new(item, offsets, Arc::new(members), None))
}
