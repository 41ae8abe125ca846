//! The history as changes: an iterator, and waiting for more.

use crate::process::Process;
use crate::values::Micros;
use crate::{errors, interrupt};
use holotype::{Change, CommittedChange, ItemId, Mark};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Changes are read from the log this many at a time, each time without the interpreter.
const MOST_READ: usize = 256;

/// The changes after a commit, oldest first.
#[pyclass(frozen, module = "holotype._native")]
pub(crate) struct Changes {
    process: Process,
    path: PathBuf,
    /// Empty once it is dropped.
    reading: Mutex<Option<holotype::Changes>>,
    /// The last commit that they include.
    #[pyo3(get)]
    until: u64,
}

/// Number and time of the commit, the sort of change, the item, and what else there is to say.
type Given<'py> = (u64, Micros, &'static str, Option<u32>, Bound<'py, PyDict>);

#[pymethods]
impl Changes {
    /// The next changes; none at the end.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Vec<Given<'py>>> {
        self.process.check(py, &self.path)?;
        let read = interrupt::run(py, None, |_| {
            let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
            reading
                .iter_mut()
                .flat_map(Iterator::by_ref)
                .take(MOST_READ)
                .collect::<holotype::Result<Vec<CommittedChange>>>()
        })?;
        read.into_iter().map(|change| given(py, change)).collect()
    }
}

impl Changes {
    pub(crate) fn new(changes: holotype::Changes, path: PathBuf) -> Changes {
        let until = changes.until();
        Changes { process: Process::current(), path, until, reading: Mutex::new(Some(changes)) }
    }
}

impl Drop for Changes {
    /// In a forked process what reads the log is left in memory: dropping it may wait for a lock of the parent.
    fn drop(&mut self) {
        if !self.process.is_current() {
            std::mem::forget(self.reading.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        }
    }
}

fn given<'py>(py: Python<'py>, change: CommittedChange) -> PyResult<Given<'py>> {
    let details = PyDict::new(py);
    let reason = |because: Option<String>| because.map_or(Ok(()), |because| details.set_item("because", because));
    let number = |item: ItemId| Some(item.0);
    let (what, item) = match change.what {
        Change::Added { item, key, kind } => {
            details.set_item("key", key)?;
            details.set_item("kind", kind.as_str())?;
            ("added", number(item))
        }
        Change::Marked { item, mark, because } => {
            match mark {
                Mark::Status(status) => details.set_item("status", status.as_str())?,
                Mark::Utility(utility, reports) => {
                    details.set_item("utility", utility)?;
                    details.set_item("reports", reports)?;
                }
                Mark::Credit(credit, rollouts) => {
                    details.set_item("credit", credit)?;
                    details.set_item("rollouts", rollouts)?;
                }
                Mark::Inactive => details.set_item("active", false)?,
            }
            reason(because)?;
            ("marked", number(item))
        }
        Change::Retired { item, by, because } => {
            details.set_item("by", by.map(|by| by.0))?;
            reason(because)?;
            ("retired", number(item))
        }
        Change::Restored { item, because } => {
            reason(because)?;
            ("restored", number(item))
        }
        Change::Forgotten { item, because } => {
            reason(Some(because))?;
            ("forgotten", number(item))
        }
        Change::Cited { item } => ("cited", number(item)),
        Change::Uncited { item } => ("uncited", number(item)),
        Change::Claimed { item, name, value } => {
            details.set_item("name", name)?;
            details.set_item("value", value)?;
            ("claimed", number(item))
        }
        Change::Rekeyed { key, item } => {
            details.set_item("key", key)?;
            ("rekeyed", number(item))
        }
        Change::Linked { from, edge, to } => {
            details.set_item("edge", edge.as_str())?;
            details.set_item("to", to.0)?;
            ("linked", number(from))
        }
        Change::Unlinked { from, edge, to } => {
            details.set_item("edge", edge.as_str())?;
            details.set_item("to", to.0)?;
            ("unlinked", number(from))
        }
        other => (of_database(&details, other)?, None),
    };
    Ok((change.commit, Micros(change.time), what, item, details))
}

/// A change that is about no item.
fn of_database(details: &Bound<'_, PyDict>, change: Change) -> PyResult<&'static str> {
    Ok(match change {
        Change::Episode { id, open } => {
            details.set_item("id", id)?;
            details.set_item("open", open)?;
            "episode"
        }
        Change::Page { key, summarised } => {
            details.set_item("key", key)?;
            details.set_item("summarised", summarised)?;
            "page"
        }
        Change::Set { name, value } => {
            details.set_item("name", name)?;
            details.set_item("value", value)?;
            "set"
        }
        Change::SpaceDefined(space) => {
            details.set_item("space", (space.model, space.dim, space.metric.name(), space.encoding.name()))?;
            "space"
        }
        Change::Reembedded(space) => {
            details.set_item("space", (space.model, space.dim, space.metric.name(), space.encoding.name()))?;
            "reembedded"
        }
        Change::Receipt { id } => {
            details.set_item("id", id)?;
            "receipt"
        }
        _ => {
            let hint = "install the package of the engine's version";
            return Err(errors::invalid(details.py(), "invalid", "a change of an unknown sort", hint));
        }
    })
}
