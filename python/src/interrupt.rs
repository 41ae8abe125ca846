//! Ctrl-C: only Python's main thread may handle signals, and only while it is attached to the interpreter.
//!
//! A statement that runs on the calling thread asks now and then ([`Signals::limits`]). A call that waits for another
//! thread looks each time it has waited a little ([`wait`]).

use crate::errors;
use holotype::{Cancel, Limits};
use pyo3::prelude::*;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The time between two looks for signals while another thread works.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The exception that a signal handler raised while the engine ran.
#[derive(Clone, Default)]
pub(crate) struct Signals(Arc<Mutex<Option<PyErr>>>);

impl Signals {
    /// Runs pending signal handlers. True if one of them raised an exception, now or before.
    pub(crate) fn raised(&self) -> bool {
        let mut raised = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if raised.is_none() {
            *raised = Python::attach(|py| py.check_signals().err());
        }
        raised.is_some()
    }

    /// The limits, with a look for signals now and then.
    pub(crate) fn limits(&self, limits: Limits) -> Limits {
        let signals = self.clone();
        limits.stopped_by(move || signals.raised())
    }

    fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Runs the engine on this thread while other Python threads go on. `source` is the statement, for errors.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    source: Option<&str>,
    work: impl FnOnce(&Signals) -> holotype::Result<T> + Send,
) -> PyResult<T> {
    let signals = Signals::default();
    let done = py.detach(|| work(&signals));
    match (signals.take(), done) {
        (Some(raised), _) => Err(raised),
        (None, done) => done.map_err(|error| errors::raise(py, &error, source)),
    }
}

/// Waits for what another thread sends; `None` if it ends without a word. A signal handler that raises cancels the
/// work by `cancel`, if there is a handle, and otherwise ends the waiting alone.
pub(crate) fn wait<T: Send>(py: Python<'_>, from: Receiver<T>, cancel: Option<&Cancel>) -> PyResult<Option<T>> {
    let mut from = from;
    let mut raised = None;
    loop {
        let (back, got) = py.detach(move || {
            let got = from.recv_timeout(LOOK_EVERY);
            (from, got)
        });
        from = back;
        match got {
            Ok(value) => return raised.map_or(Ok(Some(value)), Err),
            Err(RecvTimeoutError::Disconnected) => return raised.map_or(Ok(None), Err),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if raised.is_some() {
            continue;
        }
        if let Err(error) = py.check_signals() {
            let Some(cancel) = cancel else { return Err(error) };
            cancel.cancel();
            raised = Some(error);
        }
    }
}
