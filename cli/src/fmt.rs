//! `holotype fmt`: statements in their canonical form.

use crate::failure::{Failure, Problem, Status};
use crate::script;
use holotype::query::{format, parse};
use std::io::{self, Write as _};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file with the statements; without it, stdin
    file: Option<PathBuf>,
    /// Print nothing, and exit with status 1 if the file is not in canonical form
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &Args) -> Result<Status, Failure> {
    let name = args.file.as_ref().map(|file| file.display().to_string());
    let source = match &args.file {
        Some(file) => script::read_file(file)?,
        None => script::read_stdin()?,
    };
    let script = parse(&source).map_err(|errors| Problem::of_errors(errors, &source, name.as_deref()))?;
    let formatted = format(&script);
    if args.check {
        return Ok(if formatted == source { Status::Done } else { Status::Found });
    }
    io::stdout().lock().write_all(formatted.as_bytes())?;
    Ok(Status::Done)
}
