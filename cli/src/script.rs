//! Scripts of statements: reading them, opening the database as they need it, running them within limits.

use crate::failure::{Failure, Problem};
use crate::{database, interrupt};
use holotype::answer::Output;
use holotype::query::Params;
use holotype::query::ast::{Script, Statement};
use holotype::{Error, Holotype, Limits};
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

/// Runs a script within limits, until Ctrl-C.
pub(crate) fn run(database: &Holotype, source: &str, params: &Params, limits: Limits) -> Result<Vec<Output>, Failure> {
    let _heeded = interrupt::heed(1);
    match database.query_within(source, params, &limits.cancelled_by(interrupt::cancel())) {
        Err(Error::Cancelled(_)) if interrupt::asked() => Err(Failure::Interrupted),
        outcome => Ok(outcome.map_err(|error| Problem::of_statement(error, source, None))?),
    }
}

/// Opens the database for writing only if the statements write, so that readers run beside a writer.
pub(crate) fn open_for(path: &Path, writing: bool) -> Result<Holotype, Failure> {
    if writing { database::to_write(path) } else { database::to_read(path) }
}

/// Tests whether a script needs the writer's lock. `explain` of a write does: it runs the write and rolls it back.
pub(crate) fn writes(script: &Script) -> bool {
    script.statements.iter().any(|statement| match &statement.node {
        Statement::Explain(explain) => explain.statement.node.is_write(),
        // The receipt is written to the log.
        Statement::Recall(recall) => recall.clauses.receipt.is_some(),
        statement => statement.is_write(),
    })
}

/// All of stdin, as text.
pub(crate) fn read_stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).map_err(|error| Problem::io(Path::new("<stdin>"), "read", &error))?;
    text_of(bytes, Path::new("<stdin>"))
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
