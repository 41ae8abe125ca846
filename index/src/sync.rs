//! What threads share: locks, atomics and threads of the standard library.
//!
//! Under the feature `shuttle` they are those of a scheduler that runs one thread at a time and decides at each of them who goes
//! on, so that a test tries thousands of interleavings (`tests/schedules.rs`). Nothing else may use that feature: outside
//! of such a test these locks do not work.

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};
