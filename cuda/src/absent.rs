//! No CUDA compiled in: there is no driver.

use crate::driver::{Driver, Fault};

/// Says that there is none.
pub(crate) fn open() -> Result<Box<dyn Driver>, Fault> {
    Err(Fault::NotCompiled)
}

/// Says that there is no device to measure.
pub(crate) fn copy_rate() -> Result<f64, Fault> {
    Err(Fault::NotCompiled)
}
