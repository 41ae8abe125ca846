//! JSON values between Python and the engine: the values of fields.
//!
//! | Python | JSON |
//! |---|---|
//! | `None`, `bool`, `int`, `float`, `str`, and numpy's | null, truth value, number, text |
//! | `list`, `tuple`, numpy array | list |
//! | mapping with names that are `str` | object |
//! | `datetime`, `date` | text in RFC 3339 |
//!
//! Numbers that JSON lacks, whole numbers of more than 64 bits and what is nested too deeply are refused with their
//! place.

use crate::errors;
use crate::texts::string;
use crate::values::{of_calendar, type_name};
use crate::vectors::is_array;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use serde_json::{Map, Number, Value};
use std::cell::Cell;

/// The deepest nesting of a value: what reads JSON stops at 128.
const MAX_DEPTH: usize = 100;
/// The most values in one field, nested ones counted: a list that contains one list many times expands beyond memory.
const MAX_VALUES: usize = 1_000_000;

/// The value of a field; `name` says which one in an error.
pub(crate) fn from_python(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    converted(name, value, 0, &Cell::new(MAX_VALUES))
}

/// Converts a value at a depth; `left` counts the values that may still be in the whole.
fn converted(name: &str, value: &Bound<'_, PyAny>, depth: usize, left: &Cell<usize>) -> PyResult<Value> {
    let py = value.py();
    left.set(left.get().checked_sub(1).ok_or_else(|| {
        let message = format!("{name}: more than {MAX_VALUES} values in one field");
        errors::invalid(py, "invalid", &message, "store them as several items, or as bytes")
    })?);
    if value.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(text) = value.cast::<PyString>() {
        return string(text, name).map(Value::String);
    }
    if value.is_instance_of::<PyBool>() {
        return Ok(Value::Bool(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        return whole(name, value);
    }
    if value.is_instance_of::<PyFloat>() {
        return real(name, value);
    }
    if depth == MAX_DEPTH {
        let message = format!("{name} is nested deeper than {MAX_DEPTH}, or contains itself");
        return Err(errors::invalid(py, "invalid", &message, "give a value that is flatter"));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return list(name, value, depth, left);
    }
    if let Ok(members) = value.cast::<PyDict>() {
        return object(name, members.iter(), depth, left);
    }
    if is_array(value)? || has_dtype(value)? {
        // Of numpy: a scalar is one value, an array a list.
        let plain = value.call_method0("tolist")?;
        if plain.is(value) {
            return Err(unknown(name, value));
        }
        return converted(name, &plain, depth + 1, left);
    }
    if let Some(micros) = of_calendar(value)? {
        return Ok(Value::String(holotype::time::format(micros)));
    }
    if let Ok(mapping) = value.cast::<PyMapping>() {
        let mut pairs = Vec::new();
        for pair in mapping.items()? {
            pairs.push(pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?);
        }
        return object(name, pairs.into_iter(), depth, left);
    }
    Err(unknown(name, value))
}

fn has_dtype(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(value.hasattr("dtype")? && value.hasattr("tolist")?)
}

fn whole(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(number) = value.extract::<i64>() {
        return Ok(number.into());
    }
    value.extract::<u64>().map(Value::from).map_err(|_| {
        let message = format!("{name}: a whole number of more than 64 bits");
        errors::invalid(value.py(), "invalid", &message, "store it as a text")
    })
}

fn real(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    let number: f64 = value.extract()?;
    Number::from_f64(number).map(Value::Number).ok_or_else(|| {
        let message = format!("{name}: {number} is no number of JSON");
        errors::invalid(value.py(), "invalid", &message, "leave it out, or store it as a text")
    })
}

fn list(name: &str, value: &Bound<'_, PyAny>, depth: usize, left: &Cell<usize>) -> PyResult<Value> {
    let mut members = Vec::new();
    for (place, member) in value.try_iter()?.enumerate() {
        members.push(converted(&format!("{name}[{place}]"), &member?, depth + 1, left)?);
    }
    Ok(Value::Array(members))
}

fn object<'py>(
    name: &str,
    members: impl Iterator<Item = (Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    depth: usize,
    left: &Cell<usize>,
) -> PyResult<Value> {
    let mut object = Map::new();
    for (member, value) in members {
        let Ok(text) = member.cast::<PyString>() else {
            let found = type_name(&member);
            let message = format!("{name}: the names of an object are str, found {found}");
            return Err(errors::wrong_type(member.py(), &message));
        };
        let text = string(text, name)?;
        let value = converted(&format!("{name}.{text}"), &value, depth + 1, left)?;
        object.insert(text, value);
    }
    Ok(Value::Object(object))
}

fn unknown(name: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let found = type_name(value);
    errors::wrong_type(value.py(), &format!("{name}: expected a value that JSON has, or bytes, found {found}"))
}

/// A JSON value as a value of Python.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(yes) => yes.into_pyobject(py)?.to_owned().into_any(),
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => whole.into_pyobject(py)?.into_any(),
            (_, Some(whole)) => whole.into_pyobject(py)?.into_any(),
            _ => number.as_f64().unwrap_or(f64::NAN).into_pyobject(py)?.into_any(),
        },
        Value::Array(values) => {
            let values = values.iter().map(|value| to_python(py, value)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, values)?.into_any()
        }
        Value::Object(members) => object_to_python(py, members)?.into_any(),
    })
}

/// A JSON object as a dict.
pub(crate) fn object_to_python<'py>(py: Python<'py>, members: &Map<String, Value>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in members {
        dict.set_item(name, to_python(py, value)?)?;
    }
    Ok(dict)
}
