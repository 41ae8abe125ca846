//! Embedders for the engine: a model folder that it reads itself, and Python callables.
//!
//! The engine embeds what comes without a vector by a statement or an import. Texts of the package's own calls are
//! embedded before they reach it.

use crate::errors;
use crate::texts::Text;
use crate::values::member;
use crate::vectors::matrix;
use holotype::Space;
use holotype::embed::{EmbedError, Embedder, HashingEmbedder, StaticEmbedder};
use numpy::PyArray1;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// A static model, read from a folder.
#[pyclass(frozen, module = "holotype._native")]
pub(crate) struct StaticModel(Arc<StaticEmbedder>);

#[pymethods]
impl StaticModel {
    #[new]
    fn open(py: Python<'_>, folder: PathBuf) -> PyResult<StaticModel> {
        let opened = py.detach(|| StaticEmbedder::open(&folder)).map_err(|error| errors::raise(py, &error, None))?;
        Ok(StaticModel(Arc::new(opened)))
    }

    /// The name of the folder.
    #[getter]
    fn name(&self) -> String {
        self.0.name()
    }

    /// The identity of the model: a hash of its files.
    #[getter]
    fn fingerprint(&self) -> String {
        self.0.fingerprint()
    }

    /// The dimension of its vectors.
    #[getter]
    fn dim(&self) -> usize {
        self.0.dimensions()
    }

    /// One array for each text; `None` for a text without a known token.
    fn embed<'py>(&self, py: Python<'py>, texts: Vec<Text>) -> PyResult<Vec<Option<Bound<'py, PyArray1<f32>>>>> {
        let texts: Vec<&str> = texts.iter().map(|text| text.0.as_str()).collect();
        let vectors =
            py.detach(|| self.0.embed_passages(&texts)).map_err(|error| errors::raise(py, &error.into(), None))?;
        Ok(vectors.into_iter().map(|vector| vector.map(|vector| PyArray1::from_vec(py, vector))).collect())
    }
}

/// A Python callable as an embedder of the engine.
#[derive(Debug)]
struct Callable {
    call: Py<PyAny>,
    fingerprint: String,
    space: Space,
}

impl Embedder for Callable {
    fn fingerprint(&self) -> String {
        self.fingerprint.clone()
    }

    fn dimensions(&self) -> usize {
        self.space.dim
    }

    fn name(&self) -> String {
        self.space.model.clone()
    }

    fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        let made = Python::attach(|py| matrix(&self.call.bind(py).call1((texts,))?, texts.len()));
        made.map_err(|error| EmbedError::new(error.to_string()))
    }
}

/// The embedder that the package gives: a [`StaticModel`], the name of a hashing embedder, or a callable with its
/// fingerprint and the parts of its space.
pub(crate) fn embedder(
    value: &Bound<'_, PyAny>,
    space: impl Fn(&Bound<'_, PyAny>) -> PyResult<Space>,
) -> PyResult<Arc<dyn Embedder>> {
    if let Ok(model) = value.cast::<StaticModel>() {
        return Ok(Arc::clone(&model.get().0) as Arc<dyn Embedder>);
    }
    if let Some(hashing) = value.extract::<Text>().ok().and_then(|name| HashingEmbedder::from_name(&name.0)) {
        return Ok(Arc::new(hashing));
    }
    let (call, fingerprint, parts): (Py<PyAny>, String, Bound<'_, PyAny>) =
        member("embedder", "a callable, its fingerprint and its space", value)?;
    Ok(Arc::new(Callable { call, fingerprint, space: space(&parts)? }))
}
