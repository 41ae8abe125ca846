//! Queries whose rows are values of Rust: tuples, column by column, of any statement that gives rows.
//!
//! ```
//! use holotype::{Holotype, Options, params};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let database = Holotype::create(dir.path().join("memory.holo"), Options::default())?;
//! database.query("record call 'UA123 costs $450' in episode 'trip-42' with key = 't1', step = 12", &params! {})?;
//! let params = params! { q: "cost of UA123", most: 3 };
//! let rows: Vec<(String, f32)> = database.query_rows("recall $q limit $most return key, score", &params)?;
//! assert_eq!(rows[0].0, "t1");
//! let (step,): (u64,) = database.query_one("find items where key = $key return step", &params! { key: "t1" })?;
//! assert_eq!(step, 12);
//! # Ok::<(), holotype::Error>(())
//! ```

use crate::core::handle::Holotype;
use crate::read::answer::Output;
use crate::read::snapshot::Snapshot;
use crate::read::typed::FromCells;
use crate::{Error, Result};
use holotype_query::Params;

impl Output {
    /// The rows as typed values: those of a table, or those of an answer in the order of its `return`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the number of columns differs, or for a cell of another type.
    pub fn typed<T: FromCells>(&self) -> Result<Vec<T>> {
        match self {
            Output::Table(table) => table.typed(),
            Output::Answer(answer) => answer.typed(),
        }
    }
}

impl Holotype {
    /// The rows of a script of one statement, a recall included, as values of Rust. A statement that writes is
    /// committed with `sync`.
    ///
    /// # Errors
    /// As [`Holotype::query`]; [`Error::Invalid`] for several statements, another number of columns than the type has,
    /// or a cell of another type. What was written stays written.
    pub fn query_rows<T: FromCells>(&self, script: &str, params: &Params) -> Result<Vec<T>> {
        only(&self.query(script, params)?)?.typed()
    }

    /// The one row of a script of one statement.
    ///
    /// # Errors
    /// As [`Holotype::query_rows`]; [`Error::Missing`] without a row, [`Error::Invalid`] for several.
    pub fn query_one<T: FromCells>(&self, script: &str, params: &Params) -> Result<T> {
        one(self.query_rows(script, params)?, script)
    }
}

impl Snapshot {
    /// The rows of a script of one reading statement, a recall included, as values of Rust.
    ///
    /// # Errors
    /// As [`Snapshot::query`] and [`Holotype::query_rows`].
    pub fn query_rows<T: FromCells>(&self, script: &str, params: &Params) -> Result<Vec<T>> {
        only(&self.query(script, params)?)?.typed()
    }

    /// The one row of a script of one reading statement.
    ///
    /// # Errors
    /// As [`Snapshot::query_rows`]; [`Error::Missing`] without a row, [`Error::Invalid`] for several.
    pub fn query_one<T: FromCells>(&self, script: &str, params: &Params) -> Result<T> {
        one(self.query_rows(script, params)?, script)
    }
}

fn only(outputs: &[Output]) -> Result<&Output> {
    match outputs {
        [output] => Ok(output),
        _ => Err(Error::Invalid(format!("one statement is expected, and this is {}", outputs.len()))),
    }
}

fn one<T>(rows: Vec<T>, script: &str) -> Result<T> {
    let count = rows.len();
    match (count, rows.into_iter().next()) {
        (1, Some(row)) => Ok(row),
        (0, _) => Err(Error::Missing { what: "row of", name: script.to_owned() }),
        _ => Err(Error::Invalid(format!("one row is expected, and the statement gave {count}: {script}"))),
    }
}

/// The parameters of a script: `params! { q: "cost of UA123", v: &vector, most: 3 }`.
///
/// A value is a text, a number, `true` or `false`, a vector of `f32`, a text with its vector as a pair, or a list of
/// texts or whole numbers; [`ParamValue`](crate::query::ParamValue) has the conversions.
#[macro_export]
macro_rules! params {
    ($($name:ident: $value:expr),* $(,)?) => {
        $crate::query::Params::from([
            $((::std::string::String::from(::std::stringify!($name)), $crate::query::ParamValue::from($value)),)*
        ])
    };
}
