//! Errors of the engine as the exceptions of `holotype.errors`, with code, hint and place.

use holotype::{Error, ErrorClass};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The exception for an error. `source` is the statement it is about, if there is one: its text is shown with a caret
/// below the place.
pub(crate) fn raise(py: Python<'_>, error: &Error, source: Option<&str>) -> PyErr {
    make(py, error, source).unwrap_or_else(|failed| failed)
}

/// A wrong call, which the engine never saw.
pub(crate) fn invalid(py: Python<'_>, code: &str, message: &str, hint: &str) -> PyErr {
    own(py, (code, "input"), message, hint)
}

/// An error of the package itself, by its code and family.
pub(crate) fn own(py: Python<'_>, (code, family): (&str, &str), message: &str, hint: &str) -> PyErr {
    let details = PyDict::new(py);
    let filled = details.set_item("code", code).and_then(|()| details.set_item("family", family));
    let filled = filled.and_then(|()| details.set_item("hint", hint));
    filled.and_then(|()| build(py, &format!("{message}; {hint}"), &details)).unwrap_or_else(|failed| failed)
}

/// A value of another type than the call takes: a `TypeError`, too.
pub(crate) fn wrong_type(py: Python<'_>, message: &str) -> PyErr {
    let details = PyDict::new(py);
    let filled = details.set_item("code", "type").and_then(|()| details.set_item("family", "input"));
    filled.and_then(|()| build(py, message, &details)).unwrap_or_else(|failed| failed)
}

/// True for an exception of `holotype.errors`.
pub(crate) fn is_own(py: Python<'_>, error: &PyErr) -> bool {
    let kind = py.import("holotype.errors").and_then(|errors| errors.getattr("Error"));
    kind.and_then(|kind| error.value(py).is_instance(&kind)).unwrap_or(false)
}

fn make(py: Python<'_>, error: &Error, source: Option<&str>) -> PyResult<PyErr> {
    let details = PyDict::new(py);
    let mut message = error.to_string();
    // Messages of the engine end with the remedy, behind the last semicolon.
    let mut hint = message.rsplit_once("; ").map(|(_, remedy)| remedy.to_owned());
    match error {
        Error::Query(errors) => {
            message = source.map_or(message, |source| errors.render(source).trim_end().to_owned());
            hint = errors.first().and_then(|first| first.hint.clone());
            let all = errors.iter().map(|one| statement_error(py, one)).collect::<PyResult<Vec<_>>>()?;
            details.set_item("errors", all)?;
        }
        Error::Line { hint: given, .. } => hint.clone_from(given),
        _ => {}
    }
    let place = error.place();
    details.set_item("code", error.code())?;
    details.set_item("family", family(error))?;
    details.set_item("hint", hint)?;
    details.set_item("file", place.file)?;
    details.set_item("line", place.line)?;
    details.set_item("column", place.column)?;
    details.set_item("page", place.page)?;
    details.set_item("offset", place.offset)?;
    build(py, &message, &details)
}

fn build(py: Python<'_>, message: &str, details: &Bound<'_, PyDict>) -> PyResult<PyErr> {
    let exception = py.import("holotype.errors")?.call_method1("_of_engine", (message, details))?;
    Ok(PyErr::from_value(exception))
}

fn family(error: &Error) -> &'static str {
    match (error, error.class()) {
        (Error::Query(_), _) => "query",
        (Error::Limit { what, .. }, _) if what.starts_with("the running time") => "timeout",
        (_, ErrorClass::Input) => "input",
        (_, ErrorClass::Open) => "open",
        (_, ErrorClass::Io) => "storage",
        (_, ErrorClass::Limit) => "limit",
    }
}

/// One error of a statement as a dict.
fn statement_error<'py>(py: Python<'py>, error: &holotype::query::Error) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("code", error.code)?;
    dict.set_item("message", error.message.as_str())?;
    dict.set_item("line", error.line)?;
    dict.set_item("column", error.column)?;
    dict.set_item("expected", &error.expected)?;
    dict.set_item("nearest", error.nearest.as_deref())?;
    dict.set_item("hint", error.hint.as_deref())?;
    Ok(dict)
}
