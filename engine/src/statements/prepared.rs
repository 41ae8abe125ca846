//! Prepared statements: a script parsed and checked once, run as often as one likes, each time with other parameters.
//!
//! ```
//! # use holotype::{Durability, Holotype, NewTrace, Options};
//! use holotype::query::{ParamValue, Params};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let database = Holotype::create(dir.path().join("memory.holo"), Options::default())?;
//! # let mut transaction = database.begin()?;
//! # transaction.record(NewTrace::turn("trip-42", "UA123 costs $450").key("t1").step(12))?;
//! # transaction.commit(Durability::Sync)?;
//! let by_key = database.prepare("find items where key = $key return key, step")?;
//! let params = Params::from([("key".to_owned(), ParamValue::Text("t1".to_owned()))]);
//! let rows: Vec<(String, Option<u64>)> = database.snapshot().typed(&by_key, &params)?;
//! assert_eq!(rows, [("t1".to_owned(), Some(12))]);
//! # Ok::<(), holotype::Error>(())
//! ```

use crate::core::handle::Holotype;
use crate::read::answer::Output;
use crate::read::snapshot::Snapshot;
use crate::read::typed::FromCells;
use crate::{Error, Result};
use holotype_query::plan::Statement;
use holotype_query::{Params, Script, check, check_bound, parse};

/// A script that parses and whose names and types are right. It belongs to no database and no snapshot, and costs
/// nothing to share between threads.
#[derive(Debug, Clone)]
pub struct Prepared {
    source: String,
    script: Script,
}

impl Prepared {
    /// Parses and checks a script.
    ///
    /// # Errors
    /// [`Error::Query`] with every mistake of the script.
    pub fn new(source: &str) -> Result<Prepared> {
        let prepared = Prepared::parsed(source)?;
        check(&prepared.script, None, None).map_err(Error::Query)?;
        Ok(prepared)
    }

    /// A script that parses, to be run at once: names and types are checked together with its parameters.
    pub(crate) fn parsed(source: &str) -> Result<Prepared> {
        let script = parse(source).map_err(Error::Query)?;
        Ok(Prepared { source: source.to_owned(), script })
    }

    /// The script as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The parsed script, with its parameters.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// True if any of the statements writes, be it a receipt: then running the script needs a transaction.
    pub fn writes(&self) -> bool {
        self.script.needs_transaction()
    }

    /// The plans of the statements with the values of their parameters, checked against a database.
    pub(crate) fn bind(&self, snapshot: &Snapshot, params: &Params) -> Result<Vec<Statement>> {
        let dimension = snapshot.state.meta.space.as_ref().map(|space| space.dim as usize);
        check_bound(&self.script, params, dimension).map_err(Error::Query)
    }
}

impl Holotype {
    /// Parses and checks a script, to be run later.
    ///
    /// # Errors
    /// [`Error::Query`] with every mistake of the script.
    pub fn prepare(&self, script: &str) -> Result<Prepared> {
        Prepared::new(script)
    }
}

impl Snapshot {
    /// Parses and checks a script, to be run later on this snapshot or any other.
    ///
    /// # Errors
    /// [`Error::Query`] with every mistake of the script.
    pub fn prepare(&self, script: &str) -> Result<Prepared> {
        Prepared::new(script)
    }

    /// The rows of a script of one statement that gives a table, as values of Rust, column by column.
    ///
    /// # Errors
    /// As [`Snapshot::run`]; [`Error::Invalid`] for a statement that gives no table, another number of columns than the
    /// type has, or a cell of another sort.
    pub fn typed<T: FromCells>(&self, prepared: &Prepared, params: &Params) -> Result<Vec<T>> {
        match self.run(prepared, params)?.as_slice() {
            [Output::Table(table)] => table.typed(),
            [_] => Err(Error::Invalid("this statement gives an answer with rows of its own, not a table".to_owned())),
            outputs => Err(Error::Invalid(format!("one statement is expected, and this is {}", outputs.len()))),
        }
    }
}
