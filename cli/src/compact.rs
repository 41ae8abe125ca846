//! `holotype compact`: makes derived files smaller; the log is only read.

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
    let report = database.compact()?;
    database.close()?;
    let text = format!("derived files took {} bytes and take {}", report.before, report.after);
    let fact = json!({"before": report.before, "after": report.after});
    render::write_fact(&mut io::stdout().lock(), &fact, &text, format)?;
    Ok(Status::Done)
}
