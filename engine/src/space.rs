//! The embedding space of a database: which model's vectors it holds, how long they are, how they are compared and kept.

use crate::record::{SpaceRecord, bad_byte};
use crate::{Error, Result};
use holotype_index::VectorSpec;
use holotype_index::spec::MAX_DIM;
pub use holotype_index::{Encoding, Metric};
use std::fmt;

/// An embedding space. A database has one; vectors of another are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    /// The name of the model that makes the vectors.
    pub model: String,
    /// How many numbers a vector has.
    pub dim: usize,
    /// How vectors are compared.
    pub metric: Metric,
    /// How vectors are kept in the index. The log keeps f16 for `f16` and f32 otherwise.
    pub encoding: Encoding,
}

impl Space {
    /// A space of cosine-compared f32 vectors.
    pub fn new(model: impl Into<String>, dim: usize) -> Self {
        Space { model: model.into(), dim, metric: Metric::Cosine, encoding: Encoding::F32 }
    }

    /// The same space with its vectors compared another way.
    pub fn metric(mut self, metric: Metric) -> Self {
        self.metric = metric;
        self
    }

    /// The same space with its vectors kept another way.
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

    /// Checks a vector against the space: its length, and that it holds finite numbers that are not all zero.
    pub fn check_vector(&self, vector: &[f32]) -> Result<()> {
        if vector.len() != self.dim {
            return Err(Error::Vector(format!(
                "the vector has {} numbers; the space {} has {}",
                vector.len(),
                self.model,
                self.dim
            )));
        }
        if let Some(at) = vector.iter().position(|number| !number.is_finite()) {
            return Err(Error::Vector(format!(
                "number {at} of the vector is {}; only finite numbers are kept",
                vector[at]
            )));
        }
        if vector.iter().all(|number| *number == 0.0) {
            return Err(Error::Vector("the vector has length 0, so it points nowhere".to_owned()));
        }
        Ok(())
    }

    /// The bytes of a vector as the log keeps them.
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
                Ok(bytes)
            }
            Encoding::F32 | Encoding::I8 => Ok(vector.iter().flat_map(|number| number.to_le_bytes()).collect()),
        }
    }

    /// The vector that bytes of the log stand for.
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
                what: format!("a stored vector has {} numbers where {} are expected", vector.len(), self.dim),
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

impl From<&Space> for SpaceRecord {
    fn from(space: &Space) -> Self {
        SpaceRecord {
            model: space.model.clone(),
            dim: space.dim as u32,
            metric: space.metric.code(),
            encoding: space.encoding.code(),
        }
    }
}

impl TryFrom<&SpaceRecord> for Space {
    type Error = Error;

    fn try_from(record: &SpaceRecord) -> Result<Self> {
        let metric = [Metric::Cosine, Metric::Dot, Metric::L2]
            .into_iter()
            .find(|metric| metric.code() == record.metric)
            .ok_or_else(|| bad_byte("metric", record.metric))?;
        let encoding = [Encoding::F32, Encoding::F16, Encoding::I8]
            .into_iter()
            .find(|encoding| encoding.code() == record.encoding)
            .ok_or_else(|| bad_byte("encoding", record.encoding))?;
        let space = Space { model: record.model.clone(), dim: record.dim as usize, metric, encoding };
        space.check()?;
        Ok(space)
    }
}
