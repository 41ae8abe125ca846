//! The embedder that fits a database: its fingerprint, recorded with the first vector that it makes.
//!
//! The setting [`FINGERPRINT`] holds it. A space of the built-in hashing embedder needs no such setting, because the
//! name of its model says all there is to say; a space of vectors that callers bring has no fingerprint until an
//! embedder of its dimension makes one for it.

use crate::model::embed::{Embedder, HashingEmbedder};
use crate::model::plural::counted;
use crate::model::space::Space;
use crate::state::State;
use crate::{Error, Result};
use std::sync::Arc;

/// The setting with the fingerprint of the model that makes the vectors.
pub(crate) const FINGERPRINT: &str = "embedder";

impl State {
    /// The fingerprint of the model of the vectors, as far as it is known.
    pub(crate) fn fingerprint(&self) -> Result<Option<String>> {
        if let Some(stated) = self.setting(FINGERPRINT)? {
            return Ok(Some(stated));
        }
        Ok(self.built_in_embedder()?.map(|embedder| embedder.name()))
    }

    /// The embedder for texts without a vector: the given one, or the built-in one in its own space.
    ///
    /// # Errors
    /// As [`State::check_embedder`].
    pub(crate) fn embedder(&self, given: Option<&Arc<dyn Embedder>>) -> Result<Option<Arc<dyn Embedder>>> {
        if let Some(embedder) = given {
            self.check_embedder(embedder.as_ref())?;
            return Ok(Some(Arc::clone(embedder)));
        }
        if self.setting(FINGERPRINT)?.is_some() {
            return Ok(None);
        }
        Ok(self.built_in_embedder()?.map(|embedder| Arc::new(embedder) as Arc<dyn Embedder>))
    }

    /// Refuses an embedder of another model than the vectors of the database.
    ///
    /// # Errors
    /// [`Error::OtherEmbedder`]; [`Error::Vector`] for another dimension than the space's.
    pub(crate) fn check_embedder(&self, embedder: &dyn Embedder) -> Result<()> {
        let given = embedder.fingerprint();
        if let Some(recorded) = self.fingerprint()?.filter(|recorded| *recorded != given) {
            return Err(Error::OtherEmbedder { recorded, given });
        }
        match self.meta.space.as_deref().map(Space::try_from).transpose()? {
            Some(space) if space.dim != embedder.dimensions() => Err(Error::Vector(format!(
                "the embedder {given} makes vectors of {}; the space {} has {}: open the database with the embedder of \
                 its space, or make all vectors anew with `Holotype::reembed`",
                counted(embedder.dimensions() as u64, "numbers"),
                space.model,
                space.dim
            ))),
            _ => Ok(()),
        }
    }

    fn built_in_embedder(&self) -> Result<Option<HashingEmbedder>> {
        let Some(space) = self.meta.space.as_deref() else { return Ok(None) };
        Ok(HashingEmbedder::from_name(&space.model).filter(|embedder| embedder.dim() == space.dim as usize))
    }
}

/// The canonical form of a fingerprint.
///
/// # Errors
/// [`Error::Invalid`] if it has no characters, more than 512 bytes, or control characters.
pub(crate) fn canonical(fingerprint: &str) -> Result<String> {
    if fingerprint.is_empty() || fingerprint.len() > 512 || fingerprint.contains(char::is_control) {
        return Err(Error::Invalid(format!(
            "the fingerprint {fingerprint:?} of an embedder: expected 1 to 512 bytes without control characters"
        )));
    }
    Ok(fingerprint.to_owned())
}
