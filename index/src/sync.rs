//! Locks, atomics and threads of the standard library.
//!
//! The feature `shuttle` replaces them with a model checker's, which explores thousands of interleavings
//! (`tests/it/schedules.rs`). Only that test may enable it: these locks do not work outside the model checker.

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};
