//! The embedding space as a log record.

use crate::model::space::{Encoding, Metric, Space};
use crate::records::record::{SpaceRecord, bad_byte};
use crate::{Error, Result};

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
