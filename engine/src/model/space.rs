//! The embedding space of a database: model, dimension, metric and encoding of its vectors.

use crate::model::plural::counted;
use crate::{Error, Result};
use holotype_index::VectorSpec;
use holotype_index::spec::MAX_DIM;
pub use holotype_index::{Encoding, Metric};
use std::fmt;

/// An embedding space. A database has one and rejects vectors of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    /// The name of the model that makes the vectors.
    pub model: String,
    /// The dimension.
    pub dim: usize,
    /// The metric.
    pub metric: Metric,
    /// The encoding in the index. The log stores f16 for `f16` and f32 otherwise.
    pub encoding: Encoding,
}

impl Space {
    /// A space of f32 vectors compared by cosine.
    pub fn new(model: impl Into<String>, dim: usize) -> Self {
        Space { model: model.into(), dim, metric: Metric::Cosine, encoding: Encoding::F32 }
    }

    /// The same space with another metric.
    pub fn metric(mut self, metric: Metric) -> Self {
        self.metric = metric;
        self
    }

    /// The same space with another encoding.
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = encoding;
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.model.is_empty() || self.model.len() > 512 {
            return Err(Error::Vector("the space needs a name of 1 to 512 bytes".to_owned()));
        }
        if self.dim == 0 || self.dim > MAX_DIM {
            return Err(Error::Vector(format!("a space has 1 to {MAX_DIM} dimensions, not {}", self.dim)));
        }
        Ok(())
    }

    pub(crate) fn spec(&self) -> VectorSpec {
        VectorSpec { dim: self.dim, metric: self.metric, encoding: self.encoding }
    }

    /// Checks the length of a vector, and that it is finite and not zero.
    pub fn check_vector(&self, vector: &[f32]) -> Result<()> {
        if vector.len() != self.dim {
            return Err(Error::Vector(format!(
                "the vector has {}; the space {} has {}",
                counted(vector.len() as u64, "numbers"),
                self.model,
                self.dim
            )));
        }
        if let Some(at) = vector.iter().position(|number| !number.is_finite()) {
            return Err(Error::Vector(format!(
                "number {at} of the vector is {}; expected a finite number",
                vector[at]
            )));
        }
        if vector.iter().all(|number| *number == 0.0) {
            return Err(Error::Vector("the vector has length 0 and therefore no direction".to_owned()));
        }
        self.check_magnitude(vector)
    }

    /// Refuses a vector that the index could not hold. Every vector passes here before it is appended to the log,
    /// because a record that the index refuses later cannot be applied.
    fn check_magnitude(&self, vector: &[f32]) -> Result<()> {
        self.spec().check(vector).map_err(|error| {
            let metric = self.metric.name();
            Error::Vector(format!("{error} under metric {metric}; scale the vector down, or use metric cosine"))
        })
    }

    /// Refuses stored bytes that are no vector of this space or that the index could not hold.
    pub(crate) fn check_stored(&self, bytes: &[u8]) -> Result<()> {
        self.check_magnitude(&self.decode(bytes)?)
    }

    /// Encodes a vector for the log.
    pub(crate) fn encode(&self, vector: &[f32]) -> Result<Vec<u8>> {
        self.check_vector(vector)?;
        match self.encoding {
            Encoding::F16 => {
                let halves = vector.iter().map(|number| half::f16::from_f32(*number));
                let bytes: Vec<u8> = halves.clone().flat_map(half::f16::to_le_bytes).collect();
                if halves.clone().any(|number| !number.is_finite())
                    || halves.clone().all(|number| number.to_f32() == 0.0)
                {
                    return Err(Error::Vector(
                        "the vector does not fit into f16: its numbers are too large or too small".to_owned(),
                    ));
                }
                // Rounding to f16 may lengthen a vector that passed the check before.
                self.check_stored(&bytes)?;
                Ok(bytes)
            }
            Encoding::F32 | Encoding::I8 => Ok(vector.iter().flat_map(|number| number.to_le_bytes()).collect()),
        }
    }

    /// Decodes a vector of the log.
    pub(crate) fn decode(&self, bytes: &[u8]) -> Result<Vec<f32>> {
        let vector: Vec<f32> = match self.encoding {
            Encoding::F16 => {
                bytes.chunks_exact(2).map(|two| half::f16::from_le_bytes([two[0], two[1]]).to_f32()).collect()
            }
            Encoding::F32 | Encoding::I8 => {
                bytes.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]])).collect()
            }
        };
        if vector.len() != self.dim {
            return Err(Error::Corrupt {
                what: format!(
                    "a stored vector has {} instead of {}",
                    counted(vector.len() as u64, "numbers"),
                    self.dim
                ),
            });
        }
        Ok(vector)
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} x {}, {})", self.model, self.dim, self.encoding.name(), self.metric.name())
    }
}
