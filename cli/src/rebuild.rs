//! `holotype rebuild`: throws every derived file away and makes it anew from the log.

use crate::database;
use crate::failure::{Failure, Status};
use crate::render::{self, Format};
use holotype::{Holotype, Options};
use serde_json::json;
use std::io;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let database = Holotype::rebuild(&args.db, Options::default()).map_err(|error| database::about(&args.db, error))?;
    let snapshot = database.snapshot();
    let (items, commit) = (snapshot.len(), snapshot.commit());
    database.close()?;
    let text = format!("every derived file was made anew from the log: {items} items, up to commit {commit}");
    render::write_fact(&mut io::stdout().lock(), &json!({"items": items, "commit": commit}), &text, format)?;
    Ok(Status::Done)
}
