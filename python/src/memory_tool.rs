//! The file-like memory tool of agents: the input of a call in, its text out.

use crate::database::Database;
use crate::interrupt;
use crate::json;
use crate::texts::Text;
use holotype::memory_tool::MemoryTool;
use pyo3::prelude::*;

/// Runs a call of the memory tool; returns its text, and true if it was refused.
#[pyfunction]
pub(crate) fn memory_tool(
    py: Python<'_>,
    database: &Database,
    episode: Text,
    input: &Bound<'_, PyAny>,
) -> PyResult<(String, bool)> {
    let input = json::from_python("the input of the memory tool", input)?;
    let tool = MemoryTool::new(database.writable(py)?, episode.0);
    let answer = interrupt::run(py, None, |_| tool.call(&input))?;
    Ok((answer.text, answer.is_error))
}
