//! The GPU, or why there is none.

use crate::context::Context;

/// Why no GPU scores.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// This build knows nothing of CUDA.
    #[error("no device: built without the feature `cuda`; build with `--features cuda` to use a GPU")]
    NotCompiled,
    /// The driver's library is not installed.
    #[error("no device: the NVIDIA driver (libcuda) is not installed on this machine")]
    NoDriver,
    /// There is a driver and nothing for it to drive.
    #[error("no device: the NVIDIA driver finds no GPU (see `nvidia-smi`, and CUDA_VISIBLE_DEVICES)")]
    NoDevice,
    /// The driver refused, in its own words.
    #[error("no device: the NVIDIA driver refused: {0}")]
    Driver(String),
    /// There is a GPU, and this version has no kernels to run on it.
    #[error("no kernels: {device} is there, but this version scores on the processor only")]
    NoKernels {
        /// The name of the GPU.
        device: String,
    },
}

/// The memory of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Bytes that nobody uses now.
    pub free_len: u64,
    /// Bytes in all.
    pub total_len: u64,
}

/// An open GPU: the first that the driver shows.
#[derive(Debug)]
pub struct Device {
    name: String,
    context: Context,
}

impl Device {
    /// Opens the first GPU.
    ///
    /// # Errors
    /// [`Unavailable`], on every machine and in every build where there is none to open.
    pub fn open() -> Result<Device, Unavailable> {
        let context = Context::open()?;
        Ok(Device { name: context.name()?, context })
    }

    /// What it is called, such as `NVIDIA H100 80GB HBM3`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How much memory it has, and how much of that is free now.
    ///
    /// # Errors
    /// [`Unavailable::Driver`] when it has stopped to answer.
    pub fn memory(&self) -> Result<Memory, Unavailable> {
        self.context.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_gives_a_device_or_a_reason_and_never_panics() {
        match Device::open() {
            Ok(device) => {
                let memory = device.memory().unwrap();
                assert!(!device.name().is_empty());
                assert!(memory.free_len <= memory.total_len && memory.total_len > 0, "{memory:?}");
            }
            Err(reason) => {
                assert_eq!(reason == Unavailable::NotCompiled, cfg!(not(feature = "cuda")), "{reason}");
                assert!(reason.to_string().starts_with("no device: "), "{reason}");
            }
        }
    }

    #[test]
    fn every_reason_says_what_is_missing() {
        let reasons = [
            (Unavailable::NotCompiled, "--features cuda"),
            (Unavailable::NoDriver, "libcuda"),
            (Unavailable::NoDevice, "CUDA_VISIBLE_DEVICES"),
            (Unavailable::Driver("out of memory".to_owned()), "out of memory"),
            (Unavailable::NoKernels { device: "NVIDIA H100".to_owned() }, "NVIDIA H100"),
        ];
        for (reason, what) in reasons {
            assert!(reason.to_string().contains(what), "{reason}");
        }
    }
}
