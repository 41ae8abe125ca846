//! Embedders: text to vectors, by whatever model.
//!
//! [`Embedder`] is the one trait by which the engine embeds items and queries that come without a vector. Set it with
//! [`Options::embedder`](crate::Options::embedder). The engine records the model's fingerprint in the database when it
//! first stores a vector of it, and refuses another model from then on, because vectors of two models say nothing
//! about each other.
//!
//! | embedder | needs |
//! |---|---|
//! | [`HashingEmbedder`] | nothing: good enough to begin |
//! | `StaticEmbedder` (feature `embed-static`) | a model2vec folder on the disk |
//! | `holotype_models::Embeddings` | a server of the OpenAI interface |
//! | your own | one batch function |
//!
//! ```
//! use holotype::embed::{EmbedError, Embedder};
//!
//! /// Counts vowels: a model of five dimensions.
//! #[derive(Debug)]
//! struct Vowels;
//!
//! impl Embedder for Vowels {
//!     fn fingerprint(&self) -> String {
//!         "vowels-1".to_owned()
//!     }
//!
//!     fn dimensions(&self) -> usize {
//!         5
//!     }
//!
//!     fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
//!         let count = |text: &str, vowel| text.chars().filter(|c| *c == vowel).count() as f32;
//!         let vector = |text: &str| ['a', 'e', 'i', 'o', 'u'].map(|vowel| count(text, vowel)).to_vec();
//!         let said = |vector: &Vec<f32>| vector.iter().any(|number| *number > 0.0);
//!         Ok(texts.iter().map(|text| Some(vector(text)).filter(said)).collect())
//!     }
//! }
//!
//! let vectors = Vowels.embed_passages(&["a tree", "hm"]).unwrap();
//! assert_eq!(vectors, [Some(vec![1.0, 2.0, 0.0, 0.0, 0.0]), None]);
//! ```

pub use crate::memory::embedder::{EmbedError, Embedder};
pub use crate::model::hashing::{DEFAULT_DIM, HashingEmbedder};
use crate::model::plural::counted;
use crate::model::space::Space;
#[cfg(feature = "embed-static")]
pub use crate::model::static_embedder::StaticEmbedder;
use crate::{Error, Result};
use std::borrow::Cow;

/// Refuses a space of another dimension than the embedder's.
///
/// # Errors
/// [`Error::Vector`].
pub(crate) fn check_space(space: &Space, embedder: &dyn Embedder) -> Result<()> {
    match (space.dim, embedder.dimensions()) {
        (given, dim) if given == dim => Ok(()),
        (given, dim) => Err(Error::Vector(format!("the space has {given} dimensions, and the embedder {dim}"))),
    }
}

/// A text as a model reads it: behind its speaker, as in a transcript. Who speaks is half of what a turn means, and the
/// text alone often leaves it out ("I went there").
pub(crate) fn spoken<'t>(speaker: Option<&str>, text: &'t str) -> Cow<'t, str> {
    match speaker.filter(|speaker| !speaker.trim().is_empty() && !text.trim().is_empty()) {
        Some(speaker) => Cow::Owned(format!("{speaker}: {text}")),
        None => Cow::Borrowed(text),
    }
}

/// The vectors of texts, as many as texts and of the embedder's dimension.
///
/// # Errors
/// [`Error::Embedder`] if the model fails or breaks that promise.
pub(crate) fn vectors(embedder: &dyn Embedder, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>> {
    let vectors = embedder.embed_passages(texts)?;
    if vectors.len() != texts.len() {
        let (found, given) = (counted(vectors.len() as u64, "vectors"), counted(texts.len() as u64, "texts"));
        return Err(broken(embedder, &format!("{found} for {given}")));
    }
    vectors.iter().flatten().try_for_each(|vector| check(embedder, vector))?;
    Ok(vectors)
}

/// The vector of one text.
///
/// # Errors
/// As [`vectors`].
pub(crate) fn vector(embedder: &dyn Embedder, text: &str) -> Result<Option<Vec<f32>>> {
    Ok(vectors(embedder, &[text])?.into_iter().next().flatten())
}

/// The vector of a question.
///
/// # Errors
/// As [`vectors`].
pub(crate) fn query_vector(embedder: &dyn Embedder, text: &str) -> Result<Option<Vec<f32>>> {
    let vector = embedder.embed_query(text)?;
    vector.iter().try_for_each(|vector| check(embedder, vector))?;
    Ok(vector)
}

fn check(embedder: &dyn Embedder, vector: &[f32]) -> Result<()> {
    if vector.len() != embedder.dimensions() {
        let found = counted(vector.len() as u64, "numbers");
        return Err(broken(embedder, &format!("a vector of {found} instead of {}", embedder.dimensions())));
    }
    match vector.iter().position(|number| !number.is_finite()) {
        Some(at) => Err(broken(embedder, &format!("{} as number {at} of a vector", vector[at]))),
        None => Ok(()),
    }
}

fn broken(embedder: &dyn Embedder, found: &str) -> Error {
    let fingerprint = embedder.fingerprint();
    Error::Embedder { reason: format!("the embedder {fingerprint} gave {found}; correct its embed_passages") }
}
