//! Batch vector scoring on NVIDIA GPUs for Holotype.
