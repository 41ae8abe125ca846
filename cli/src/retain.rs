//! `holotype retain`: removes the history before a commit, and keeps what is live.

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
    /// The first commit that `as of` can still name
    #[arg(long, value_name = "COMMIT")]
    since: u64,
    /// Copy the log files to this directory before they are removed
    #[arg(long, value_name = "DIR")]
    archive: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let database = database::to_write(&args.db)?;
    let report = database.retain(args.since, args.archive.as_deref())?;
    database::close(database)?;
    let archived = match (&args.archive, report.archived) {
        (Some(dir), bytes) if bytes > 0 => format!("; {} copied to {}", counted(bytes, "bytes"), dir.display()),
        _ => String::new(),
    };
    let is_done = report.records > 0 || report.segments > 0 || report.left > 0;
    let text = if !is_done {
        "nothing is removed: the log is too short for a file of it to go, or was cut off there before".to_owned()
    } else {
        format!(
            "history is kept from commit {} on: {} written again, {} removed, {} with {} removed{archived}",
            report.since,
            counted(report.records, "records"),
            counted(report.left, "items"),
            counted(report.segments, "log files"),
            counted(report.bytes, "bytes")
        )
    };
    let fact = json!({
        "since": report.since, "records": report.records, "left": report.left,
        "segments": report.segments, "bytes": report.bytes, "archived": report.archived,
    });
    render::write_fact(&mut io::stdout().lock(), &fact, &text, format)?;
    Ok(Status::Done)
}
