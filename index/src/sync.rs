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

/// Starts a thread of a scope; `None` if the system has no more of them.
pub(crate) fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Option<thread::ScopedJoinHandle<'scope, T>> {
    #[cfg(feature = "shuttle")]
    return Some(scope.spawn(work));
    #[cfg(not(feature = "shuttle"))]
    thread::Builder::new().spawn_scoped(scope, work).ok()
}
