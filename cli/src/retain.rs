//! `holotype retain`: removes the history before a commit or a time, and keeps what is live.

use crate::database;
use crate::failure::{Failure, Problem, Status};
use crate::render::{self, Format};
use holotype::plural::counted;
use holotype::query::Duration;
use serde_json::json;
use std::io;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// The first commit that `as of` can still name
    #[arg(long, value_name = "COMMIT", required_unless_present = "older_than", conflicts_with = "older_than")]
    since: Option<u64>,
    /// Remove the history that is older than this: 90d, 12w, 36h
    #[arg(long, value_name = "AGE")]
    older_than: Option<String>,
    /// Copy the log files to this directory before they are removed
    #[arg(long, value_name = "DIR")]
    archive: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let age = args.older_than.as_deref().map(age).transpose()?;
    let database = database::to_write(&args.db)?;
    let since = match age {
        Some(age) => database.commit_older_than(age)?,
        None => args.since.unwrap_or_default(),
    };
    let report = database.retain(since, args.archive.as_deref())?;
    database::close(database)?;
    let archived = match (&args.archive, report.archived) {
        (Some(dir), bytes) if bytes > 0 => format!("; {} copied to {}", counted(bytes, "bytes"), dir.display()),
        _ => String::new(),
    };
    let is_done = report.records > 0 || report.segments > 0 || report.left > 0;
    let text = if !is_done {
        "nothing is removed: no file of the log can go, or it was cut off there before".to_owned()
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

/// An age in microseconds.
fn age(text: &str) -> Result<u64, Problem> {
    let wrong = |_| Problem::input("usage", format!("invalid age {text:?}")).hint("write 90d, 12w or 36h");
    Ok(text.parse::<Duration>().map_err(wrong)?.micros())
}
