//! Embedding models from a folder of this machine, on the processor: no server, no network, no accelerator.
//!
//! [`open`] looks at a folder and takes the model that is in it: a transformer of the BERT family as
//! sentence-transformers saves it (all-MiniLM-L6-v2, multilingual-e5, bge-m3 and others), or a static one as model2vec
//! saves it. What it gives is an [`Embedder`] of the engine.
//!
//! | file | concept |
//! |---|---|
//! | `settings` | what the folder says: family, sizes, pooling, lengths, words before texts |
//! | `weights` | the tensors of `model.safetensors`, as they are in the file |
//! | `matrix`, `arithmetic` | products of matrices; softmax, activations, norms |
//! | `encoder` | the transformer, over packed tokens |
//! | `transformer` | tokens, batches, the fingerprint |
//!
//! Vectors are the same on every machine to 1e-5, and not bit by bit: sums are taken in the order that suits the
//! processor. The engine stores them, and no replay of a log embeds again.

mod arithmetic;
mod encoder;
mod matrix;
mod settings;
mod transformer;
mod weights;

pub use transformer::Transformer;

use holotype::embed::{Embedder, StaticEmbedder};
use holotype::{Error, Result};
use std::path::Path;
use std::sync::Arc;

/// A model, of either kind.
#[derive(Debug, Clone)]
pub enum Model {
    /// A transformer.
    Transformer(Arc<Transformer>),
    /// A table of one vector for each token.
    Static(Arc<StaticEmbedder>),
}

/// Reads the model of a folder, of whichever kind it is.
///
/// # Errors
/// As [`Transformer::open`] and [`StaticEmbedder::open`]; [`Error::Invalid`] for a folder that names another kind.
pub fn open(folder: impl AsRef<Path>) -> Result<Model> {
    let folder = folder.as_ref();
    match is_static(folder)? {
        true => Ok(Model::Static(Arc::new(StaticEmbedder::open(folder)?))),
        false => Ok(Model::Transformer(Arc::new(Transformer::open(folder)?))),
    }
}

/// True if the folder holds a static model: its configuration says so, or names no layers.
fn is_static(folder: &Path) -> Result<bool> {
    let path = folder.join("config.json");
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(source) => return Err(Error::File { path, source }),
    };
    let invalid = |error| Error::Invalid(format!("{}: it is no JSON: {error}", path.display()));
    let config: serde_json::Value = serde_json::from_slice(&bytes).map_err(invalid)?;
    let says_static = config["model_type"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("model2vec"));
    Ok(says_static || config["model_type"].is_null())
}

impl Model {
    /// The model as an embedder.
    pub fn embedder(&self) -> Arc<dyn Embedder> {
        match self {
            Model::Transformer(model) => Arc::clone(model) as Arc<dyn Embedder>,
            Model::Static(model) => Arc::clone(model) as Arc<dyn Embedder>,
        }
    }

    /// Its kind, dimension, longest input, pooling and prefixes, as names and values.
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        match self {
            Model::Transformer(model) => model.describe(),
            Model::Static(model) => model.describe(),
        }
    }
}
