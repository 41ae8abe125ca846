//! Embedders for the engine: a model folder that it reads itself, and Python callables.
//!
//! The engine embeds what comes without a vector by a statement or an import. Texts of the package's own calls are
//! embedded before they reach it.

use crate::errors;
use crate::texts::Text;
use crate::values::member;
use crate::vectors::matrix;
use holotype::Space;
use holotype::embed::{EmbedError, Embedder, HashingEmbedder};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A model of embeddings, read from a folder.
#[pyclass(frozen, module = "holotype._native")]
pub(crate) struct EmbeddingModel {
    model: Arc<dyn Embedder>,
    described: Vec<(&'static str, String)>,
}

#[cfg(feature = "embed")]
fn read(folder: &Path) -> holotype::Result<EmbeddingModel> {
    let model = holotype_embed::open(folder)?;
    Ok(EmbeddingModel { model: model.embedder(), described: model.describe() })
}

#[cfg(not(feature = "embed"))]
fn read(folder: &Path) -> holotype::Result<EmbeddingModel> {
    let model = Arc::new(holotype::embed::StaticEmbedder::open(folder)?);
    let described = model.describe();
    Ok(EmbeddingModel { model, described })
}

#[pymethods]
impl EmbeddingModel {
    #[new]
    fn open(py: Python<'_>, folder: PathBuf) -> PyResult<EmbeddingModel> {
        py.detach(|| read(&folder)).map_err(|error| errors::raise(py, &error, None))
    }

    /// The name of the folder.
    #[getter]
    fn name(&self) -> String {
        self.model.name()
    }

    /// The identity of the model: a hash of its files.
    #[getter]
    fn fingerprint(&self) -> String {
        self.model.fingerprint()
    }

    /// The dimension of its vectors.
    #[getter]
    fn dim(&self) -> usize {
        self.model.dimensions()
    }

    /// One array for each text; `None` for a text without a known token.
    fn embed<'py>(&self, py: Python<'py>, texts: Vec<Text>) -> PyResult<Vec<Option<Bound<'py, PyArray1<f32>>>>> {
        let texts: Vec<&str> = texts.iter().map(|text| text.0.as_str()).collect();
        let vectors =
            py.detach(|| self.model.embed_passages(&texts)).map_err(|error| errors::raise(py, &error.into(), None))?;
        Ok(vectors.into_iter().map(|vector| vector.map(|vector| PyArray1::from_vec(py, vector))).collect())
    }

    /// The array of a question; `None` for a text without a known token.
    fn embed_query<'py>(&self, py: Python<'py>, text: Text) -> PyResult<Option<Bound<'py, PyArray1<f32>>>> {
        let vector = py.detach(|| self.model.embed_query(&text.0));
        let vector = vector.map_err(|error| errors::raise(py, &error.into(), None))?;
        Ok(vector.map(|vector| PyArray1::from_vec(py, vector)))
    }

    /// Its kind, dimension, longest input, pooling and prefixes, as names and values.
    fn describe(&self) -> Vec<(&'static str, String)> {
        self.described.clone()
    }

    /// A remark that is made once.
    fn take_note(&self) -> Option<String> {
        self.model.take_note()
    }
}

/// A Python callable as an embedder of the engine.
#[derive(Debug)]
struct Callable {
    passages: Py<PyAny>,
    query: Option<Py<PyAny>>,
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
        let made = Python::attach(|py| matrix(&self.passages.bind(py).call1((texts,))?, texts.len()));
        made.map_err(|error| EmbedError::new(error.to_string()))
    }

    fn embed_query(&self, text: &str) -> Result<Option<Vec<f32>>, EmbedError> {
        let Some(query) = &self.query else { return Ok(self.embed_passages(&[text])?.pop().flatten()) };
        let made = Python::attach(|py| {
            let made = query.bind(py).call1((text,))?;
            matrix(PyList::new(py, [made])?.as_any(), 1)
        });
        Ok(made.map_err(|error| EmbedError::new(error.to_string()))?.pop().flatten())
    }
}

/// The embedder that the package gives: an [`EmbeddingModel`], the name of a hashing embedder, or a callable with its
/// fingerprint and the parts of its space.
pub(crate) fn embedder(
    value: &Bound<'_, PyAny>,
    space: impl Fn(&Bound<'_, PyAny>) -> PyResult<Space>,
) -> PyResult<Arc<dyn Embedder>> {
    if let Ok(model) = value.cast::<EmbeddingModel>() {
        return Ok(Arc::clone(&model.get().model));
    }
    if let Some(hashing) = value.extract::<Text>().ok().and_then(|name| HashingEmbedder::from_name(&name.0)) {
        return Ok(Arc::new(hashing));
    }
    let (passages, query, fingerprint, parts): (Py<PyAny>, Option<Py<PyAny>>, String, Bound<'_, PyAny>) =
        member("embedder", "a callable, its fingerprint and its space", value)?;
    Ok(Arc::new(Callable { passages, query, fingerprint, space: space(&parts)? }))
}
