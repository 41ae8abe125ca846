//! Opening a database, and telling what opening did.

use crate::failure::{Failure, Problem};
use holotype::{Error, Holotype, Options};
use std::io::{self, Write as _};
use std::path::Path;

/// Opens a database to read it: beside a writer, and changing nothing.
pub(crate) fn to_read(path: &Path) -> Result<Holotype, Failure> {
    open(path, Options::read_only())
}

/// Opens a database to write to it.
pub(crate) fn to_write(path: &Path) -> Result<Holotype, Failure> {
    open(path, Options::default())
}

fn open(path: &Path, options: Options) -> Result<Holotype, Failure> {
    let read_only = options.read_only;
    let database = Holotype::open(path, options).map_err(|error| about(path, error))?;
    let report = database.report();
    for line in &report.recovery {
        note(line);
    }
    for transaction in &report.skipped {
        note(&format!("a transaction was left out because it cannot be applied: {transaction}"));
    }
    if let Some(why) = &report.rebuilt {
        let kept = if read_only { " in memory; `holotype rebuild` stores them" } else { "" };
        note(&format!("derived files were rebuilt from the log{kept}: {why}"));
    }
    if let Some(damage) = &report.damage {
        note(&format!("the log is damaged, and nothing after the damage is shown: {damage}"));
    }
    Ok(database)
}

/// The problem of an error of opening the database at `path`.
pub(crate) fn about(path: &Path, error: Error) -> Problem {
    let problem = Problem::from(error);
    match problem.about.file {
        Some(_) => problem,
        None => problem.file(path.display().to_string()),
    }
}

/// Says something on stderr that is no error.
pub(crate) fn note(text: &str) {
    // There is nobody left to tell when that fails.
    let _ = writeln!(io::stderr(), "note: {text}");
}
