//! Values between Python and the engine: times, durations, vectors and parameters.
//!
//! | Python | parameter |
//! |---|---|
//! | `str`, `bool`, `int`, `float` | itself; also numpy's scalars |
//! | `datetime` with a zone | its RFC 3339 text |
//! | numpy array of one dimension | a vector |
//! | `list`, `tuple` | a vector if all are `float`, otherwise a list |
//! | `{"text": …, "vector": …}`, `{"vector": …}` | a text with its vector, a vector |

use crate::errors;
use holotype::embed::HashingEmbedder;
use holotype::query::{ParamValue, Params};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};

/// Microseconds since the epoch; a `datetime` in UTC for Python, or the `int` outside the years 1 to 9999.
#[derive(Clone, Copy)]
pub(crate) struct Micros(pub(crate) i64);

impl<'py> IntoPyObject<'py> for Micros {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match epoch(py)?.add(duration(py, self.0)?) {
            Err(error) if error.is_instance_of::<PyOverflowError>(py) => Ok(self.0.into_pyobject(py)?.into_any()),
            instant => instant,
        }
    }
}

/// A `timedelta`.
pub(crate) fn duration(py: Python<'_>, micros: i64) -> PyResult<Bound<'_, PyAny>> {
    static TIMEDELTA: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    TIMEDELTA.import(py, "datetime", "timedelta")?.call1((0, 0, micros))
}

/// The first moment of 1970, in UTC.
fn epoch(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static EPOCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = EPOCH.get_or_try_init(py, || -> PyResult<Py<PyAny>> {
        let datetime = py.import("datetime")?;
        let utc = datetime.getattr("timezone")?.getattr("utc")?;
        Ok(datetime.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, utc))?.unbind())
    });
    Ok(made?.bind(py))
}

/// A time given as a `datetime` with a zone, RFC 3339 text, or microseconds since the epoch.
pub(crate) fn micros(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = value.py();
    if let Ok(text) = value.cast::<PyString>() {
        return holotype::time::parse(text.to_str()?).map_err(|error| errors::raise(py, &error, None));
    }
    if is_datetime(value)? {
        return of_datetime(value);
    }
    member("time", "a datetime, RFC 3339 text or microseconds", value)
}

fn is_datetime(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    static DATETIME: PyOnceLock<Py<pyo3::types::PyType>> = PyOnceLock::new();
    value.is_instance(DATETIME.import(value.py(), "datetime", "datetime")?)
}

fn of_datetime(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = value.py();
    if value.getattr("tzinfo")?.is_none() {
        let hint = "give it one, such as datetime.now(timezone.utc)";
        return Err(errors::invalid(py, "invalid", "the datetime has no time zone", hint));
    }
    let since = value.sub(epoch(py)?)?;
    let part = |name| since.getattr(name)?.extract::<i64>();
    Ok((part("days")? * 86_400 + part("seconds")?) * 1_000_000 + part("microseconds")?)
}

/// Reads a value of a dict, naming it if its type is wrong.
pub(crate) fn member<'py, T: FromPyObjectOwned<'py>>(
    name: &str,
    expected: &str,
    value: &Bound<'py, PyAny>,
) -> PyResult<T> {
    value.extract().map_err(|_| {
        let found = value.get_type().name().map_or_else(|_| "another type".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!("{name}: expected {expected}, found {found}"))
    })
}

// ---- vectors ----

/// A vector: a numpy array of one dimension or a sequence of numbers. An array of `float32` is copied once, by memory.
pub(crate) fn vector(value: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
    if is_numpy(value)? {
        return of_array(value);
    }
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err("vector: expected numbers, found text or bytes"));
    }
    member("vector", "a numpy array or a sequence of numbers", value)
}

/// The rows of a matrix: a numpy array of two dimensions, or a sequence of vectors in which `None` is none.
pub(crate) fn matrix(value: &Bound<'_, PyAny>) -> PyResult<Vec<Option<Vec<f32>>>> {
    if !is_numpy(value)? {
        let row = |row: Bound<'_, PyAny>| if row.is_none() { Ok(None) } else { vector(&row).map(Some) };
        return value.try_iter()?.map(|value| row(value?)).collect();
    }
    let single = as_f32(value)?;
    let Ok(array) = single.cast::<PyArray2<f32>>() else {
        return Err(PyTypeError::new_err("vectors: expected an array of two dimensions, one row a vector"));
    };
    let array = array.readonly();
    let width = array.shape()[1].max(1);
    match array.as_slice() {
        Ok(numbers) => Ok(numbers.chunks_exact(width).map(|row| Some(row.to_vec())).collect()),
        Err(_) => Ok(array.as_array().rows().into_iter().map(|row| Some(row.to_vec())).collect()),
    }
}

fn of_array(value: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
    // Most are of this type already.
    if let Ok(array) = value.cast::<PyArray1<f32>>() {
        return Ok(array.readonly().as_array().to_vec());
    }
    let single = as_f32(value)?;
    let Ok(array) = single.cast::<PyArray1<f32>>() else {
        return Err(PyTypeError::new_err("vector: expected an array of one dimension"));
    };
    Ok(array.readonly().as_array().to_vec())
}

/// True for objects of numpy. numpy itself is not imported for the question.
fn is_numpy(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    static NDARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let kind = value.get_type();
    if let Some(known) = NDARRAY.get(value.py()) {
        return Ok(kind.is(known));
    }
    let is_array = kind.module()?.to_str()? == "numpy" && kind.name()?.to_str()? == "ndarray";
    if is_array {
        NDARRAY.get_or_init(value.py(), || kind.unbind());
    }
    Ok(is_array)
}

/// The array as `float32`: itself if it is one already.
fn as_f32<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let options = PyDict::new(value.py());
    options.set_item("copy", false)?;
    value.call_method("astype", ("float32",), Some(&options))
}

/// The vector of a text by the built-in hashing embedder of that name, as a list; `None` for blank text.
#[pyfunction]
pub(crate) fn hashing_embed(py: Python<'_>, name: &str, text: &str) -> PyResult<Option<Vec<f32>>> {
    match HashingEmbedder::from_name(name) {
        Some(embedder) => Ok(py.detach(|| embedder.embed(text))),
        None => {
            let message = format!("{name:?} is no built-in embedder");
            Err(errors::invalid(py, "invalid", &message, "their names are hashing-v1-N, such as hashing-v1-256"))
        }
    }
}

// ---- parameters ----

/// The parameters of a statement.
pub(crate) fn params(given: Option<&Bound<'_, PyDict>>) -> PyResult<Params> {
    let mut params = Params::new();
    for (name, value) in given.into_iter().flatten() {
        let name: String = member("params", "names that are str", &name)?;
        let value = param(&name, &value)?;
        params.insert(name.trim_start_matches('$').to_owned(), value);
    }
    Ok(params)
}

fn param(name: &str, value: &Bound<'_, PyAny>) -> PyResult<ParamValue> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(ParamValue::Text(text.to_str()?.to_owned()));
    }
    if value.is_instance_of::<PyBool>() {
        return Ok(ParamValue::Bool(value.extract()?));
    }
    if value.is_exact_instance_of::<PyInt>() {
        return number(name, value);
    }
    if is_numpy(value)? {
        return of_array(value).map(ParamValue::Vector);
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return list(name, value);
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        return passage(name, dict);
    }
    if is_datetime(value)? {
        return Ok(ParamValue::Text(holotype::time::format(of_datetime(value)?)));
    }
    number(name, value)
}

/// An integer if it fits, otherwise any number.
fn number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<ParamValue> {
    match value.extract::<i64>() {
        Ok(whole) => Ok(ParamValue::Int(whole)),
        Err(_) => {
            let expected = "a str, number, bool, datetime, vector, list, or a dict with text and vector";
            member(name, expected, value).map(ParamValue::Float)
        }
    }
}

fn list(name: &str, value: &Bound<'_, PyAny>) -> PyResult<ParamValue> {
    let values = value.try_iter()?.collect::<PyResult<Vec<_>>>()?;
    if !values.is_empty() && values.iter().all(|value| value.is_instance_of::<PyFloat>()) {
        return vector(value).map(ParamValue::Vector);
    }
    values.iter().map(|value| param(name, value)).collect::<PyResult<_>>().map(ParamValue::List)
}

/// A vector, or a text with its vector.
fn passage(name: &str, dict: &Bound<'_, PyDict>) -> PyResult<ParamValue> {
    let wrong = || PyTypeError::new_err(format!("{name}: expected a dict with the members text and vector"));
    let vector = vector(&dict.get_item("vector")?.ok_or_else(wrong)?)?;
    match (dict.get_item("text")?, dict.len()) {
        (Some(text), 2) => Ok(ParamValue::TextVector { text: member("text", "a str", &text)?, vector }),
        (None, 1) => Ok(ParamValue::Vector(vector)),
        _ => Err(wrong()),
    }
}
