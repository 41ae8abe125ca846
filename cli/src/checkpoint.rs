//! `holotype checkpoint`: moves what the log's tail says into derived files.

use crate::database;
use crate::failure::{Failure, Status};
use crate::render::{self, Format};
use serde_json::json;
use std::io;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let database = database::to_write(&args.db)?;
    database.checkpoint()?;
    let commit = database.head().commit.0;
    database::close(database)?;
    let text = format!("a checkpoint holds everything up to commit {commit}");
    render::write_fact(&mut io::stdout().lock(), &json!({"commit": commit}), &text, format)?;
    Ok(Status::Done)
}
