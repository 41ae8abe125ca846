//! `holotype query`: runs statements and prints what they answer.
//!
//! A script that only reads opens the database beside a writer and changes nothing; one that writes takes the writer's
//! lock.

use crate::failure::{Failure, Problem, Status};
use crate::render::{self, Format};
use crate::screen::Screen;
use crate::{batch, database, interrupt, limits, params};
use holotype::answer::Output;
use holotype::query::Params;
use holotype::query::ast::{Script, Statement};
use holotype::query::parse;
use holotype::{Error, Holotype, Limits};
use std::fs;
use std::io::{self, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// The statements; `-` reads them from stdin
    #[arg(required_unless_present = "batch")]
    statement: Option<String>,
    /// A parameter: `q=TEXT`, `q:=JSON`, or `q=@FILE.npy:ROW`; may be given several times
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// Refuse statements that write
    #[arg(long)]
    read_only: bool,
    /// Run the statements of a file of lines {"id","statement","params"}; one answer a line, in order
    #[arg(long, value_name = "FILE.jsonl", conflicts_with_all = ["statement", "params"])]
    batch: Option<PathBuf>,
    /// The vectors that `row` counts in
    #[arg(long, value_name = "FILE.npy")]
    vectors: Option<PathBuf>,
    #[command(flatten)]
    limits: limits::Args,
}

pub(crate) fn run(args: &Args, format: Option<Format>) -> Result<Status, Failure> {
    let vectors = args.vectors.as_deref().map(params::open_vectors).transpose()?;
    if let Some(file) = &args.batch {
        if !matches!(format, None | Some(Format::Jsonl)) {
            return Err(Problem::input("usage", "--batch writes one answer a line: only --format jsonl fits").into());
        }
        return batch::run(&args.db, file, vectors.as_ref(), args.read_only, &args.limits.limits()?);
    }
    let source = match args.statement.as_deref() {
        Some("-") => read_stdin()?,
        statement => statement.unwrap_or_default().to_owned(),
    };
    let script = parse(&source).map_err(|errors| Problem::of_errors(errors, &source, None))?;
    let mut params = params::read(&args.params, vectors.as_ref())?;
    params::fit(&mut params, &script);

    let database = open_for(&args.db, writes(&script) && !args.read_only)?;
    let outputs = run_within(&database, &source, &params, args.limits.limits()?)?;
    let mut out = BufWriter::new(io::stdout().lock());
    render::write(&mut out, &outputs, format.unwrap_or_default(), &Screen::stdout())?;
    out.flush()?;
    database.close()?;
    Ok(if render::found_something(&outputs) { Status::Found } else { Status::Done })
}

/// Runs a script within limits, until Ctrl-C.
pub(crate) fn run_within(
    database: &Holotype,
    source: &str,
    params: &Params,
    limits: Limits,
) -> Result<Vec<Output>, Failure> {
    let _heeded = interrupt::heed(1);
    match database.query_within(source, params, &limits.cancelled_by(interrupt::cancel())) {
        Err(Error::Cancelled(_)) if interrupt::asked() => Err(Failure::Interrupted),
        outcome => Ok(outcome.map_err(|error| Problem::of_statement(error, source, None))?),
    }
}

/// Opens the database as the statements need it.
pub(crate) fn open_for(path: &Path, writing: bool) -> Result<Holotype, Failure> {
    if writing { database::to_write(path) } else { database::to_read(path) }
}

/// Whether some statement of the script needs the writer's lock: `explain` of a write runs it and takes it back.
pub(crate) fn writes(script: &Script) -> bool {
    script.statements.iter().any(|statement| match &statement.node {
        Statement::Explain(explain) => explain.statement.node.is_write(),
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
