//! `holotype query`: runs statements and prints what they answer.
//!
//! A script that only reads opens the database beside a writer and changes nothing; one that writes takes the writer's
//! lock.

use crate::failure::{Failure, Problem, Status};
use crate::render::{self, Format};
use crate::screen::Screen;
use crate::{batch, database, limits, model, params, script};
use holotype::query::parse;
use holotype::{HopController, Roles};
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// The statements; with `-`, they are read from stdin
    #[arg(required_unless_present = "batch")]
    statement: Option<String>,
    /// A parameter: `q=TEXT`, `q:=JSON` or `q=@FILE.npy:ROW`; can be repeated
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// Refuse statements that write
    #[arg(long)]
    read_only: bool,
    /// Run the statements in a file of lines {"id","statement","params"}, with one answer a line, in order
    #[arg(long, value_name = "FILE.jsonl", conflicts_with_all = ["statement", "params"])]
    batch: Option<PathBuf>,
    /// The vectors that `row` refers to
    #[arg(long, value_name = "FILE.npy")]
    vectors: Option<PathBuf>,
    #[command(flatten)]
    limits: limits::Args,
    /// Of statements that only read: the router, planner, integrator and ranker of `escalate`, and the controller of
    /// hops
    #[command(flatten)]
    model: model::Args,
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
        Some("-") => script::read_stdin()?,
        statement => statement.unwrap_or_default().to_owned(),
    };
    let parsed = parse(&source).map_err(|errors| Problem::of_errors(errors, &source, None))?;
    let mut params = params::read(&args.params, vectors.as_ref())?;
    params::fit(&mut params, &parsed);

    let needs = script::Needs::of(&parsed);
    let model = args.model.open()?;
    let database = script::open_for(&args.db, needs, args.read_only)?;
    let outputs = match &model {
        None => script::run(&database, &source, &params, args.limits.limits()?)?,
        Some(model) => {
            let roles = Roles::new(model, model).integrator(model).ranker(model);
            let hops: Arc<dyn HopController> = Arc::new(model.clone());
            let ran = database.query_with(&source, &params, &args.limits.limits()?, roles, Some(hops));
            ran.map_err(|error| Problem::of_statement(error, &source, None))?
        }
    };
    let mut out = BufWriter::new(io::stdout().lock());
    render::write(&mut out, &outputs, format.unwrap_or_default(), &Screen::stdout())?;
    out.flush()?;
    database::note_accelerator(&database);
    let status = database::status_of_reading(&database);
    database::close(database)?;
    Ok(if render::found_something(&outputs) { Status::Found } else { status })
}
