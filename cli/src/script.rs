//! Scripts of statements: reading them, opening the database as they need it, running them within limits.

use crate::failure::{Failure, Problem};
use crate::{database, interrupt};
use holotype::answer::Output;
use holotype::query::{Params, Script};
use holotype::{Error, Holotype, Limits};
use std::fs;
use std::io::{self, Read as _};
use std::ops::BitOr;
use std::path::Path;

/// Runs a script within limits, until Ctrl-C.
pub(crate) fn run(database: &Holotype, source: &str, params: &Params, limits: Limits) -> Result<Vec<Output>, Failure> {
    let _deferred = interrupt::defer(1);
    match database.query_within(source, params, &limits.cancelled_by(interrupt::cancel())) {
        Err(Error::Cancelled(_)) if interrupt::asked() => Err(Failure::Interrupted),
        outcome => Ok(outcome.map_err(|error| Problem::of_statement(error, source, None))?),
    }
}

/// Runs scripts within limits, until Ctrl-C; each has an outcome of its own.
pub(crate) fn run_batch(
    database: &Holotype,
    scripts: &[(&str, &Params)],
    limits: Limits,
) -> Vec<Result<Vec<Output>, Failure>> {
    let _deferred = interrupt::defer(1);
    let outcomes = database.query_batch(scripts, &limits.cancelled_by(interrupt::cancel()));
    let outcome = |(outcome, (source, _)): (Result<_, Error>, &(&str, &Params))| match outcome {
        Err(Error::Cancelled(_)) if interrupt::asked() => Err(Failure::Interrupted),
        outcome => Ok(outcome.map_err(|error| Problem::of_statement(error, source, None))?),
    };
    outcomes.into_iter().zip(scripts).map(outcome).collect()
}

/// The access to the database that scripts need.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// A statement writes, if only a receipt.
    pub(crate) writing: bool,
    /// A statement does more than record a trace.
    more_than_records: bool,
    /// A statement gives an answer, which the database may have set to be logged.
    answers: bool,
}

impl Needs {
    /// The access of a session in which anything may be asked.
    pub(crate) const ALL: Needs = Needs { writing: true, more_than_records: true, answers: true };

    /// The access that a script needs. `explain` of a write runs the write and rolls it back.
    pub(crate) fn of(script: &Script) -> Needs {
        let answers = script.verbs().any(|verb| matches!(verb, "recall" | "replay"));
        let more_than_records = script.verbs().any(|verb| verb != "record");
        Needs { writing: script.needs_transaction(), answers, more_than_records }
    }
}

impl BitOr for Needs {
    type Output = Needs;

    fn bitor(self, other: Needs) -> Needs {
        Needs {
            writing: self.writing | other.writing,
            more_than_records: self.more_than_records | other.more_than_records,
            answers: self.answers | other.answers,
        }
    }
}

/// Opens the database for writing only if the statements need that, so that readers run beside a writer. Where every
/// answer is logged, a question needs it too.
pub(crate) fn open_for(path: &Path, needs: Needs, read_only: bool) -> Result<Holotype, Failure> {
    if needs.writing && !read_only {
        return if needs.more_than_records { database::to_write(path) } else { database::to_append(path) };
    }
    let database = database::to_read(path)?;
    if needs.answers && !read_only && database.audits_reads()? {
        drop(database);
        return database::to_write(path);
    }
    Ok(database)
}

/// All of stdin, as text.
pub(crate) fn read_stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).map_err(|error| Problem::io(Path::new("<stdin>"), "read", &error))?;
    text_of(bytes, Path::new("<stdin>"))
}

/// The text of a file, or of stdin for `-`, and the name that errors call it by.
pub(crate) fn read_named(path: &Path) -> Result<(String, String), Failure> {
    if path.as_os_str() == "-" {
        return Ok((read_stdin()?, "<stdin>".to_owned()));
    }
    Ok((read_file(path)?, path.display().to_string()))
}

/// All of a file, as text.
pub(crate) fn read_file(path: &Path) -> Result<String, Failure> {
    text_of(fs::read(path).map_err(|error| Problem::io(path, "read", &error))?, path)
}

fn text_of(bytes: Vec<u8>, path: &Path) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        let message = format!("{}: not UTF-8 from byte {} on", path.display(), error.utf8_error().valid_up_to());
        Problem::input("utf-8", message).file(path.display().to_string()).into()
    })
}
