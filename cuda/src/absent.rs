//! No CUDA compiled in: there is no context, and none can be made.

use crate::device::{Memory, Unavailable};

/// Of no value, so that whatever would follow from a device is known never to happen.
#[derive(Debug)]
pub(crate) enum Context {}

impl Context {
    pub(crate) fn open() -> Result<Self, Unavailable> {
        Err(Unavailable::NotCompiled)
    }

    pub(crate) fn name(&self) -> Result<String, Unavailable> {
        match *self {}
    }

    pub(crate) fn memory(&self) -> Result<Memory, Unavailable> {
        match *self {}
    }
}
