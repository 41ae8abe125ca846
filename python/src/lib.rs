//! The native module `holotype._native`: the engine behind the Python package.
//!
//! The package's public classes are written in Python (`holotype/`); this module is their narrow floor. Its calls take
//! plain values and dicts, check them, and leave the interpreter to other threads while the engine works.
//!
//! ```text
//! database     opening, statements, maintenance          snapshot   reading a view
//! session      a transaction on a thread of its own      transaction  its calls
//! drafts       dicts to new items and pointers           values     times, parameters
//! vectors      arrays and sequences of numbers           texts      texts
//! trace_columns  lists to many traces                    process    forked processes
//! answer       answers and their rows                    table      tables and cells
//! columns      both as Arrow                             interrupt  Ctrl-C
//! pickle       both as plain values and back
//! errors       engine errors as exceptions               proof      signing keys and proofs
//! embedders    models for the engine
//! roles        models in its other roles                agent     an agent's loop, cited recalls
//! memory_tool  the file-like memory tool of agents      fleet      many databases together
//! knowledge    structuring, guidance, routes, findings  training  credit and information density
//! ```
//!
//! Invariants:
//! 1. No call holds the interpreter while the engine runs, so no thread waits for Python while it holds a lock.
//! 2. A transaction lives on one thread of its own; every Python thread may use it.
//! 3. Closing a database ends its transactions and snapshots: nothing keeps its files open afterwards.

mod agent;
mod answer;
mod changes;
mod columns;
mod database;
mod drafts;
mod embedders;
mod errors;
mod fleet;
mod interrupt;
mod json;
mod knowledge;
mod line;
mod memory_tool;
mod pickle;
mod process;
mod proof;
mod roles;
mod session;
mod snapshot;
mod table;
mod texts;
mod trace_columns;
mod training;
mod transaction;
mod values;
mod vectors;

use holotype::MemoryReserve;
use pyo3::prelude::*;

/// The engine's memory: without any, a statement fails with `OutOfMemory` instead of ending the interpreter.
#[global_allocator]
static MEMORY: MemoryReserve = MemoryReserve::new();

/// The engine behind the package `holotype`.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::agent::{Loop, answer_recalls, cited_recall, decisions};
    #[pymodule_export]
    use super::answer::{Answer, Citation, Row};
    #[pymodule_export]
    use super::changes::Changes;
    #[pymodule_export]
    use super::database::{Database, open, rebuild, salvage};
    #[pymodule_export]
    use super::embedders::EmbeddingModel;
    #[pymodule_export]
    use super::fleet::Fleet;
    #[pymodule_export]
    use super::knowledge::{
        answer_from, choose_mode, extract_pages, guidance, judge, learn, routed, structure, summarise, training,
    };
    #[pymodule_export]
    use super::line::Line;
    #[pymodule_export]
    use super::memory_tool::memory_tool;
    #[pymodule_export]
    use super::pickle::restore;
    #[pymodule_export]
    use super::proof::{check_proof, generate_key, verifier_key};
    #[pymodule_export]
    use super::roles::Model;
    #[pymodule_export]
    use super::snapshot::{Item, Snapshot};
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::training::{credit, deconfound, density, intervene, score};
    #[pymodule_export]
    use super::transaction::Transaction;
    #[pymodule_export]
    use super::values::micros_of;
    #[pymodule_export]
    use super::vectors::hashing_embed;

    #[pymodule_init]
    fn init(_module: &super::Bound<'_, super::PyModule>) -> super::PyResult<()> {
        super::MEMORY.fill();
        Ok(())
    }
}
