//! `holotype reembed`: all vectors made anew by another model.

use crate::database;
use crate::failure::{Failure, Problem, Status};
use crate::render::{self, Format};
use clap::builder::PossibleValuesParser;
use holotype::embed::{Embedder, HashingEmbedder};
use holotype::plural::counted;
use holotype::{Encoding, Options, ReembedOptions, Space};
use serde_json::json;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// The built-in embedder of this name, such as hashing-v1-256, in place of --embedder
    #[arg(long, value_name = "NAME", conflicts_with = "embedder")]
    built_in: Option<String>,
    /// The encoding of vectors in the index
    #[arg(long, default_value = "f32", value_parser = PossibleValuesParser::new(Encoding::NAMES))]
    encoding: String,
    /// The number of texts that are embedded and written at once
    #[arg(long, value_name = "N", default_value_t = ReembedOptions::default().batch)]
    batch: usize,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let embedder = embedder(args)?;
    let database = database::to_write_with(&args.db, Options { embedder: None, ..database::options() })?;
    let encoding = Encoding::from_name(&args.encoding).unwrap_or(Encoding::F32);
    let space = Space::new(embedder.name(), embedder.dimensions()).encoding(encoding);
    let options = ReembedOptions { batch: args.batch, ..ReembedOptions::default() };
    let report = database.reembed(&space, embedder.as_ref(), &options)?;
    database::close(database)?;
    let json = json!({
        "space": space.to_string(), "fingerprint": embedder.fingerprint(), "embedded": report.embedded,
        "without": report.without, "resumed": report.resumed, "commit": report.commit,
    });
    let resumed = match report.resumed {
        0 => String::new(),
        resumed => format!(", {} kept of an interrupted run", counted(resumed, "vectors")),
    };
    let vectors = counted(report.embedded, "vectors");
    let text = format!("{vectors} made in the space {space}{resumed}; seen from commit {}", report.commit);
    render::write_fact(&mut io::stdout().lock(), &json, &text, format)?;
    Ok(Status::Done)
}

fn embedder(args: &Args) -> Result<Arc<dyn Embedder>, Failure> {
    if let Some(embedder) = database::embedder() {
        return Ok(embedder);
    }
    let Some(name) = &args.built_in else {
        let problem = Problem::input("usage", "no model to make the vectors with");
        return Err(problem.hint("give --embedder DIR, the folder of a model, or --built-in hashing-v1-256").into());
    };
    match HashingEmbedder::from_name(name) {
        Some(embedder) => Ok(Arc::new(embedder)),
        None => {
            let problem = Problem::input("usage", format!("{name:?} is no built-in embedder"));
            Err(problem.hint("built in are hashing-v1-N for any dimension N, such as hashing-v1-256").into())
        }
    }
}
