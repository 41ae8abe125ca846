//! `holotype seal`: closes the open log page, so that the chain of pages covers everything committed.

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
    database.seal()?;
    let head = database.head();
    database::close(database)?;
    let text = format!("every log page up to commit {} is sealed", head.commit);
    render::write_fact(&mut io::stdout().lock(), &json!({"commit": head.commit.0}), &text, format)?;
    Ok(Status::Done)
}
