//! Lines of a row: the other statements of its frame.

use crate::answer::Citation;
use crate::pickle::{Reduced, line_state, reduced};
use crate::values::Micros;
use holotype::answer::Line as EngineLine;
use holotype::{Source, Status};
use pyo3::prelude::*;

/// Another statement of the frame of a row, as short as it can be told.
#[pyclass(frozen, module = "holotype")]
pub(crate) struct Line {
    inner: EngineLine,
}

impl From<EngineLine> for Line {
    fn from(inner: EngineLine) -> Line {
        Line { inner }
    }
}

#[pymethods]
impl Line {
    /// The item's number.
    #[getter]
    fn item(&self) -> u32 {
        self.inner.item.0
    }

    /// Its key.
    #[getter]
    fn key(&self) -> &str {
        &self.inner.key
    }

    /// Its place in time beside the row: `earlier`, `later` or `also`.
    #[getter]
    fn order(&self) -> &'static str {
        self.inner.order.as_str()
    }

    /// The order with the time or the step.
    #[getter]
    fn label(&self) -> &str {
        &self.inner.label
    }

    /// The words in which it differs from the row; its whole text where that is shorter.
    #[getter]
    fn text(&self) -> &str {
        &self.inner.text
    }

    /// The outcome: `success`, `unknown` or `failed`.
    #[getter]
    fn status(&self) -> Option<&'static str> {
        self.inner.status.map(Status::as_str)
    }

    /// The producer, such as `user` or `tool`.
    #[getter]
    fn source(&self) -> Option<&'static str> {
        self.inner.source.map(Source::as_str)
    }

    /// The episode.
    #[getter]
    fn episode(&self) -> Option<&str> {
        self.inner.episode.as_deref()
    }

    /// The step in its episode.
    #[getter]
    fn step(&self) -> Option<u64> {
        self.inner.step
    }

    /// The time, in UTC.
    #[getter]
    fn time(&self) -> Option<Micros> {
        self.inner.time.map(Micros)
    }

    /// Its evidence, hashed again for this answer.
    #[getter]
    fn citations(&self) -> Vec<Citation> {
        self.inner.citations.iter().cloned().map(Citation::from).collect()
    }

    fn __repr__(&self) -> String {
        let EngineLine { label, key, text, .. } = &self.inner;
        format!("<{label} {key} {text:?}>")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduced(py, "line", line_state(py, &self.inner)?)
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: Bound<'py, Self>, memo: Bound<'py, PyAny>) -> Bound<'py, Self> {
        // It never changes, so that there is nothing to remember.
        drop(memo);
        slf
    }
}
