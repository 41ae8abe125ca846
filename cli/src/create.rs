//! `holotype create`: an empty database.

use crate::database;
use crate::failure::{Failure, Problem, Status};
use crate::render::{self, Format};
use clap::builder::PossibleValuesParser;
use holotype::embed::HashingEmbedder;
use holotype::plural::counted;
use holotype::{Encoding, Holotype, Metric, Options, Space};
use serde_json::json;
use std::io;
use std::path::PathBuf;

/// The name of a space whose model nobody named.
const UNNAMED: &str = "unnamed";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The directory to create
    db: PathBuf,
    /// The dimension of vectors; without it, the first import decides
    #[arg(long, value_name = "N")]
    dim: Option<usize>,
    /// The metric of vectors
    #[arg(long, default_value = "cosine", value_parser = PossibleValuesParser::new(Metric::NAMES))]
    metric: String,
    /// The encoding of vectors in the index
    #[arg(long, default_value = "f32", value_parser = PossibleValuesParser::new(Encoding::NAMES))]
    encoding: String,
    /// The name of the embedding model, such as `all-MiniLM-L6-v2`; `hashing-v1-256` is built in
    #[arg(long, value_name = "NAME")]
    space: Option<String>,
    /// The score profile of statements that do not name one
    #[arg(long, value_parser = ["agent", "archive"])]
    profile: Option<String>,
    /// The size of a log page, a power of two from 4096 to 1048576 [default: 32768]
    #[arg(long, value_name = "BYTES", value_parser = page_size)]
    page_size: Option<u32>,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let mut options = Options { space: space_of(args)?, profile: args.profile.clone(), ..database::options() };
    if let Some(page_size) = args.page_size {
        options.page_size = page_size;
    }
    let database = Holotype::create(&args.db, options).map_err(|error| database::about(&args.db, error))?;
    // That of the arguments, or that of the model of --embedder.
    let space = database.snapshot().space()?;
    database::close(database)?;
    let path = args.db.display().to_string();
    let text = match &space {
        Some(space) => format!("created {path} with the space {space}"),
        None => format!("created {path}; its first import decides the embedding space"),
    };
    let json = json!({"created": path, "space": space.as_ref().map(|space| json!({
        "model": space.model, "dim": space.dim, "metric": space.metric.name(), "encoding": space.encoding.name(),
    }))});
    render::write_fact(&mut io::stdout().lock(), &json, &text, format)?;
    Ok(Status::Done)
}

/// The size of a log page, if it is one.
fn page_size(text: &str) -> Result<u32, String> {
    let size = text.parse().map_err(|_| "a whole number is expected")?;
    if (4096_u32..=1 << 20).contains(&size) && size.is_power_of_two() {
        return Ok(size);
    }
    Err("a power of two from 4096 to 1048576 is expected".to_owned())
}

fn space_of(args: &Args) -> Result<Option<Space>, Failure> {
    let embedder = args.space.as_deref().and_then(HashingEmbedder::from_name);
    let dim = match (args.dim, embedder) {
        (Some(dim), Some(embedder)) if dim != embedder.dim() => {
            let dims = counted(embedder.dim() as u64, "dimensions");
            let message = format!("--space {} has {dims}, not {dim}", embedder.name());
            return Err(Problem::input("usage", message).into());
        }
        (Some(dim), _) => dim,
        (None, Some(embedder)) => embedder.dim(),
        (None, None) if args.space.is_some() => {
            let problem = Problem::input("usage", "--space needs --dim, the dimension of its vectors");
            return Err(problem.hint("the built-in space hashing-v1-256 needs none").into());
        }
        (None, None) => return Ok(None),
    };
    let space = Space::new(args.space.as_deref().unwrap_or(UNNAMED), dim);
    let metric = Metric::from_name(&args.metric).unwrap_or(space.metric);
    let encoding = Encoding::from_name(&args.encoding).unwrap_or(space.encoding);
    Ok(Some(space.metric(metric).encoding(encoding)))
}
