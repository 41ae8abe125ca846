//! `holotype compact`: merges derived files into fewer and smaller ones. The log is only read. Where nothing would be
//! gained, the files stay as they are.

use crate::database;
use crate::failure::{Failure, Status};
use crate::render::{self, Format};
use holotype::plural::counted;
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
    database::close(database)?;
    let (before, after) = (counted(report.before, "bytes"), counted(report.after, "bytes"));
    let text = match report.skipped {
        true => format!("nothing to gain: the derived files take {before} and were left as they are"),
        false => format!("the derived files took {before} and now take {after}"),
    };
    let fact = json!({"before": report.before, "after": report.after, "skipped": report.skipped});
    render::write_fact(&mut io::stdout().lock(), &fact, &text, format)?;
    Ok(Status::Done)
}
