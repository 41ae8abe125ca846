//! The role that turns texts into vectors, for the engine and for the memory systems; `model::embed` has the embedders.

use crate::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// An embedder gave no vectors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EmbedError {
    message: String,
}

impl EmbedError {
    /// The error with a message that says what failed and what to do.
    pub fn new(message: impl Into<String>) -> EmbedError {
        EmbedError { message: message.into() }
    }
}

/// A model that turns texts into vectors.
///
/// Calls come from any thread, and inside a write transaction: a slow model holds up other writers meanwhile.
pub trait Embedder: fmt::Debug + Send + Sync {
    /// The identity of the model, at most 512 bytes: two embedders with one fingerprint give the same vector for the
    /// same text.
    fn fingerprint(&self) -> String;

    /// The dimension of its vectors.
    fn dimensions(&self) -> usize;

    /// The vectors of texts of items, in their order; `None` for a text that says nothing, such as a blank one.
    ///
    /// # Errors
    /// [`EmbedError`] if the model gives no vectors; the items are then not written.
    fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError>;

    /// The name that a new space takes from the model; the fingerprint by default.
    fn name(&self) -> String {
        self.fingerprint()
    }

    /// The vector of a question. Models that tell questions and passages apart override it; by default it is
    /// [`Embedder::embed_passages`] of one text.
    ///
    /// # Errors
    /// As [`Embedder::embed_passages`].
    fn embed_query(&self, text: &str) -> Result<Option<Vec<f32>>, EmbedError> {
        Ok(self.embed_passages(&[text])?.into_iter().next().flatten())
    }

    /// A remark for the user that is made once, such as that texts were longer than the model reads; `None` without
    /// one, and after it was taken.
    fn take_note(&self) -> Option<String> {
        None
    }
}

/// An embedder behind a pointer is one too.
impl<E: Embedder + ?Sized> Embedder for Arc<E> {
    fn fingerprint(&self) -> String {
        self.as_ref().fingerprint()
    }

    fn dimensions(&self) -> usize {
        self.as_ref().dimensions()
    }

    fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        self.as_ref().embed_passages(texts)
    }

    fn name(&self) -> String {
        self.as_ref().name()
    }

    fn embed_query(&self, text: &str) -> Result<Option<Vec<f32>>, EmbedError> {
        self.as_ref().embed_query(text)
    }

    fn take_note(&self) -> Option<String> {
        self.as_ref().take_note()
    }
}

impl From<EmbedError> for Error {
    fn from(error: EmbedError) -> Error {
        Error::Embedder { reason: error.message }
    }
}
