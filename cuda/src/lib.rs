//! Batch vector scoring on NVIDIA GPUs for Holotype.
//!
//! The database never needs a GPU: whatever scores batches asks [`scorer`] and always gets one that works. When it is
//! the processor's, the answer says why, so that the caller can write one line about it and go on with the same rows.
//!
//! Without the feature `cuda` nothing of CUDA is compiled in. With it the driver is loaded at run time, so the same
//! binary runs on machines that have none. This version finds and opens devices and has no kernels for them yet.
//!
//! Invariants:
//! 1. Neither [`Device::open`] nor [`scorer`] panics for what a machine lacks: library, driver, device or memory.
//! 2. A scorer gives the rows that [`CpuScorer`](holotype_index::scorer::CpuScorer) gives, up to rounding.

#[cfg(not(feature = "cuda"))]
#[path = "absent.rs"]
mod context;
#[cfg(feature = "cuda")]
#[path = "driver.rs"]
mod context;
mod device;
mod scorer;

pub use device::{Device, Memory, Unavailable};
pub use scorer::{Choice, scorer};
