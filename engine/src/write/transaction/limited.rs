//! Statements of a transaction within limits: what a statement reads and every record that it writes count, so that one
//! that marks or retires many items ends in time, too. Calls of the Rust API have no limits.

use crate::Result;
use crate::read::limits::{Limits, check_memory};
use crate::write::transaction::Transaction;

impl Transaction<'_> {
    /// Runs one statement. A later one has its own limits.
    pub(crate) fn limited<T>(&mut self, limits: &Limits, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.meter = limits.start();
        let result = self.tick().and_then(|()| run(self));
        self.meter = None;
        result
    }

    /// Fails if the running statement is cancelled or out of time, or if there is no memory.
    pub(super) fn tick(&self) -> Result<()> {
        check_memory()?;
        self.meter.as_ref().map_or(Ok(()), |meter| meter.tick())
    }
}
