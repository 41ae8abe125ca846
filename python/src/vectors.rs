//! Vectors and matrices: arrays of any memory order, stride, byte order and number type, and sequences of numbers.
//!
//! numpy brings an array into rows of `float32` in native byte order before it is read, so that no layout is read as
//! another one. It is imported only for objects that are arrays.
//!
//! | given | taken |
//! |---|---|
//! | array of whole numbers, floats or booleans, or of objects that are numbers | yes |
//! | array with masked values, of complex numbers, texts, times or records | refused |
//! | other objects with `__array__` | as the array that they make |
//! | sequence of numbers | yes |
//! | text, bytes, memory of bytes | refused |

use crate::errors;
use crate::texts::Text;
use crate::values::{member, type_name};
use holotype::embed::HashingEmbedder;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyMapping, PyMemoryView, PyString, PyTuple, PyType};

/// The most numbers of one vector: more than any model gives, and little enough to reserve memory for.
const MAX_NUMBERS: usize = 1 << 20;

/// A vector: an array of one dimension or a sequence of numbers.
pub(crate) fn vector(value: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
    if let Some(array) = array(value)? {
        return of_array(&array);
    }
    if is_bytes_or_text(value)? || value.is_instance_of::<pyo3::types::PyDict>() {
        return Err(refused("vector", "numbers", value));
    }
    if let Ok(found) = value.len()
        && found > MAX_NUMBERS
    {
        let message = format!("vector: {found} numbers are more than any space has");
        return Err(errors::invalid(value.py(), "vector", &message, "give one vector of the model"));
    }
    member("vector", "a numpy array or a sequence of numbers", value)
}

/// The rows of a matrix, at most one more than `most`: an array of two dimensions, or an iterable of vectors in which
/// `None` is none.
pub(crate) fn matrix(value: &Bound<'_, PyAny>, most: usize) -> PyResult<Vec<Option<Vec<f32>>>> {
    let Some(array) = array(value)? else {
        if is_bytes_or_text(value)? || value.cast::<PyMapping>().is_ok() {
            return Err(refused("vectors", "one vector for each text", value));
        }
        return rows_of(value, most);
    };
    // An array of objects that are vectors themselves, as a column of lists becomes.
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    if kind == "O" && array.getattr("ndim")?.extract::<usize>()? == 1 {
        return rows_of(&array, most);
    }
    let plain = in_rows(&array)?;
    let Ok(rows) = plain.cast::<PyArray2<f32>>() else {
        return Err(errors::wrong_type(
            value.py(),
            "vectors: expected an array of two dimensions, one row for each text",
        ));
    };
    let width = rows.shape()[1];
    let (rows, count) = (rows.readonly(), rows.shape()[0]);
    let numbers = rows.as_slice().map_err(|error| errors::wrong_type(value.py(), &format!("vectors: {error}")))?;
    Ok((0..count).map(|row| Some(numbers[row * width..(row + 1) * width].to_vec())).collect())
}

fn rows_of(value: &Bound<'_, PyAny>, most: usize) -> PyResult<Vec<Option<Vec<f32>>>> {
    let row = |row: Bound<'_, PyAny>| if row.is_none() { Ok(None) } else { vector(&row).map(Some) };
    let rows = value.try_iter().map_err(|_| refused("vectors", "one vector for each text", value))?;
    rows.take(most.saturating_add(1)).map(|value| row(value?)).collect()
}

fn of_array(array: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
    // Most are of this form already.
    if let Ok(single) = array.cast_exact::<PyArray1<f32>>()
        && single.is_c_contiguous()
        && single.data().is_aligned()
    {
        return numbers(single);
    }
    let plain = in_rows(array)?;
    match plain.cast::<PyArray1<f32>>() {
        Ok(single) => numbers(single),
        Err(_) => Err(errors::wrong_type(array.py(), "vector: expected an array of one dimension")),
    }
}

fn numbers(array: &Bound<'_, PyArray1<f32>>) -> PyResult<Vec<f32>> {
    let numbers = array.readonly();
    let numbers = numbers.as_slice().map_err(|error| errors::wrong_type(array.py(), &format!("vector: {error}")))?;
    Ok(numbers.to_vec())
}

/// The object as an array; `None` if it is none. numpy is imported for what says that it is one.
fn array<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let is_plain = value.is_exact_instance_of::<PyList>() || value.is_exact_instance_of::<PyTuple>();
    if is_plain || is_bytes_or_text(value)? {
        return Ok(None);
    }
    if is_array(value)? {
        return Ok(Some(value.clone()));
    }
    // Tensors, columns of frames and Arrow's arrays. A class has the method, too, and is no array.
    if value.is_instance_of::<PyType>() || !value.hasattr("__array__")? {
        return Ok(None);
    }
    let made = value.py().import("numpy")?.call_method1("asarray", (value,))?;
    Ok(is_array(&made)?.then_some(made))
}

/// True for arrays of numpy, of its subclasses too. numpy itself is not imported for the question.
pub(crate) fn is_array(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    static NDARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if let Some(known) = NDARRAY.get(value.py()) {
        return value.is_instance(known.bind(value.py()));
    }
    // An array exists only where numpy was imported.
    let modules = value.py().import("sys")?.getattr("modules")?;
    let Ok(numpy) = modules.get_item("numpy") else { return Ok(false) };
    // A module that is being imported has no such name yet.
    let Ok(ndarray) = numpy.getattr("ndarray").and_then(|kind| Ok(kind.cast_into::<PyType>()?)) else {
        return Ok(false);
    };
    let known = NDARRAY.get_or_init(value.py(), || ndarray.unbind());
    value.is_instance(known.bind(value.py()))
}

/// The array as `float32` in C order, aligned and of native byte order: itself if it is that already.
fn in_rows<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let dtype = array.getattr("dtype")?;
    let kind: String = dtype.getattr("kind")?.extract()?;
    if !"biufO".contains(&kind) {
        let message = format!("vector: an array of {dtype} holds no plain numbers");
        return Err(errors::invalid(py, "vector", &message, "convert it with .astype('float32')"));
    }
    if kind == "O" {
        refuse_texts(array)?;
    }
    let numpy = py.import("numpy")?;
    if array.hasattr("mask")? && numpy.call_method1("any", (array.getattr("mask")?,))?.is_truthy()? {
        let hint = "fill them, as array.filled(0) does, or leave the rows out";
        return Err(errors::invalid(py, "vector", "vector: the array has masked values", hint));
    }
    // The base class: a subclass may index and iterate in another way.
    let base = numpy.call_method1("asarray", (array,))?;
    let made = numpy.call_method1("require", (base, "float32", "CA"));
    made.map_err(|error| {
        let message = format!("vector: an array of {dtype} holds something that is no number ({error})");
        errors::invalid(py, "vector", &message, "give numbers alone")
    })
}

/// Refuses texts among objects, which numpy would read as numbers.
fn refuse_texts(array: &Bound<'_, PyAny>) -> PyResult<()> {
    for value in array.getattr("flat")?.try_iter()? {
        let value = value?;
        if value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>() {
            return Err(refused("vector", "numbers", &value));
        }
    }
    Ok(())
}

fn is_bytes_or_text(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>()
    {
        return Ok(true);
    }
    let Ok(memory) = value.cast::<PyMemoryView>() else { return Ok(false) };
    let format: String = memory.getattr("format")?.extract()?;
    Ok(matches!(format.as_str(), "B" | "b" | "c"))
}

fn refused(name: &str, expected: &str, value: &Bound<'_, PyAny>) -> PyErr {
    errors::wrong_type(value.py(), &format!("{name}: expected {expected}, found {}", type_name(value)))
}

/// The vector of a text by the built-in hashing embedder of that name, as a list; `None` for blank text.
#[pyfunction]
pub(crate) fn hashing_embed(py: Python<'_>, name: Text, text: Text) -> PyResult<Option<Vec<f32>>> {
    match HashingEmbedder::from_name(&name.0) {
        Some(embedder) => Ok(py.detach(|| embedder.embed(&text.0))),
        None => {
            let message = format!("{:?} is no built-in embedder", name.0);
            Err(errors::invalid(py, "invalid", &message, "their names are hashing-v1-N, such as hashing-v1-256"))
        }
    }
}
