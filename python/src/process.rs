//! The process that opened a database. A forked one has a copy of its memory, and neither its threads nor its locks.
//!
//! Invariant: in a forked process no lock of the parent is waited for, no thread of it is joined and nothing of a
//! database is closed: calls fail with the code `forked`, and what is dropped is left in memory.

use crate::errors;
use pyo3::prelude::*;
use std::path::Path;
use std::process;

/// A process, by its id.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Process(u32);

impl Process {
    pub(crate) fn current() -> Process {
        Process(process::id())
    }

    pub(crate) fn is_current(self) -> bool {
        self == Process::current()
    }

    /// Refuses to work in a forked process.
    pub(crate) fn check(self, py: Python<'_>, path: &Path) -> PyResult<()> {
        if self.is_current() {
            return Ok(());
        }
        let message = format!("{}: the database was opened before this process was forked", path.display());
        Err(errors::own(py, ("forked", "open"), &message, "open it again here"))
    }
}
