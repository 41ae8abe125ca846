//! A context of the first device, through the driver that is loaded at run time.
//!
//! Every function of cudarc panics when the driver's library is not there, even the one that counts devices: so whether
//! it is there is asked before anything else.
#![allow(unsafe_code)]

use crate::device::{Memory, Unavailable};
use cudarc::driver::{CudaContext, DriverError, sys};
use std::sync::Arc;

/// The primary context of a device, kept for as long as this lives.
#[derive(Debug)]
pub(crate) struct Context(Arc<CudaContext>);

impl Context {
    pub(crate) fn open() -> Result<Self, Unavailable> {
        // SAFETY: loading a library runs its initialisers; the names asked for are those of NVIDIA's driver, which the
        // system's loader resolves and which may be loaded at any time from any thread.
        if !unsafe { sys::is_culib_present() } {
            return Err(Unavailable::NoDriver);
        }
        if CudaContext::device_count().map_err(refused)? < 1 {
            return Err(Unavailable::NoDevice);
        }
        CudaContext::new(0).map(Context).map_err(refused)
    }

    pub(crate) fn name(&self) -> Result<String, Unavailable> {
        self.0.name().map_err(refused)
    }

    pub(crate) fn memory(&self) -> Result<Memory, Unavailable> {
        let (free, total) = self.0.mem_get_info().map_err(refused)?;
        Ok(Memory { free_len: free as u64, total_len: total as u64 })
    }
}

fn refused(error: DriverError) -> Unavailable {
    match error.0 {
        sys::CUresult::CUDA_ERROR_NO_DEVICE => Unavailable::NoDevice,
        _ => Unavailable::Driver(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_finds_no_device_has_not_failed() {
        assert_eq!(refused(DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)), Unavailable::NoDevice);
    }
}
