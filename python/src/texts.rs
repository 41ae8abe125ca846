//! Texts between Python and the engine.
//!
//! A Python `str` may hold half of a surrogate pair, which no UTF-8 can store. It is refused in every call alike, with
//! its place, and never replaced in silence.

use crate::errors;
use pyo3::exceptions::PyUnicodeEncodeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Characters shown before and after the one that is refused.
const SHOWN: usize = 12;

/// A text that was given as an argument.
pub(crate) struct Text(pub(crate) String);

impl<'a, 'py> FromPyObject<'a, 'py> for Text {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Text> {
        let text = value.cast::<PyString>()?;
        string(&text, "the text").map(Text)
    }
}

/// A text of Python; `name` says which one in an error.
pub(crate) fn string(text: &Bound<'_, PyString>, name: &str) -> PyResult<String> {
    text.to_str().map(str::to_owned).map_err(|error| refused(text, name, error))
}

fn refused(text: &Bound<'_, PyString>, name: &str, error: PyErr) -> PyErr {
    let py = text.py();
    if !error.is_instance_of::<PyUnicodeEncodeError>(py) {
        return error;
    }
    place(text, name, &error).unwrap_or_else(|failed| failed)
}

fn place(text: &Bound<'_, PyString>, name: &str, error: &PyErr) -> PyResult<PyErr> {
    let py = text.py();
    let at: usize = error.value(py).getattr("start")?.extract()?;
    let builtins = py.import("builtins")?;
    let code: u32 = builtins.call_method1("ord", (text.get_item(at)?,))?.extract()?;
    let slice = builtins.call_method1("slice", (at.saturating_sub(SHOWN), at + SHOWN))?;
    let shown: String = builtins.call_method1("ascii", (text.get_item(slice)?,))?.extract()?;
    let message = format!("{name} has half of a surrogate pair (U+{code:04X}) at character {at}, near {shown}");
    let hint = "give text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')";
    Ok(errors::invalid(py, "surrogate", &message, hint))
}
