//! Batch vector scoring on NVIDIA GPUs for Holotype.
//!
//! The database never needs a GPU. Whatever scores batches asks [`scorer`] and gets one that works; where no device can
//! be used, the CPU gives the same rows, and [`ScorerUsage`](holotype_index::scorer::ScorerUsage) says why in one line.
//!
//! Without the feature `cuda` nothing of CUDA is compiled in. With it the driver is loaded at run time, so the same
//! binary runs on machines that have none. The kernels are checked in an emulator and on a GPU, the
//! rest against a device in memory too (`docs/gpu.md`).
//!
//! ```text
//! scorer    device or CPU; faults                       (cost: which is faster; waiting: other threads' queries)
//! executor  kernels and copies of a batch               (bound: which candidates to keep; encode: bytes)
//! memory    parts that stay, least recently used first out; workspace
//! driver    what is asked of a GPU: nvidia (cudarc), or a device in memory (tests)
//! ```
//!
//! Invariants:
//! 1. Nothing here panics for what a machine lacks: library, driver, device or memory.
//! 2. A scorer gives the ids and scores that [`CpuScorer`](holotype_index::scorer::CpuScorer) gives: a device only
//!    finds candidates, all that may be among the best (`bound.rs`), and the CPU's kernels score them.

mod bound;
mod cost;
mod driver;
#[cfg(test)]
mod emulator;
mod encode;
mod executor;
mod memory;
#[cfg(test)]
mod mock;
#[cfg(not(feature = "cuda"))]
#[path = "absent.rs"]
mod nvidia;
#[cfg(feature = "cuda")]
mod nvidia;
mod scorer;
#[cfg(test)]
mod tests;
mod waiting;

pub use driver::Fault;
pub use scorer::{DeviceUse, scorer};

/// Bytes that the first GPU of this machine reads and writes in a second when it copies within its memory. No kernel
/// that reads vectors from there is faster, so benchmarks tell their share of it.
///
/// # Errors
/// There is no device, it has less than 2 GiB of free memory, or it fails.
pub fn copy_rate() -> Result<f64, Fault> {
    nvidia::copy_rate()
}
