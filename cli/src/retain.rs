//! `holotype retain`: keeps history from one commit on only, and what is live.

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
    /// The first commit that `as of` goes on to answer for
    #[arg(long, value_name = "COMMIT")]
    since: u64,
    /// Where files of the log that go are copied to first
    #[arg(long, value_name = "DIR")]
    archive: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let database = database::to_write(&args.db)?;
    let report = database.retain(args.since, args.archive.as_deref())?;
    database.close()?;
    let archived = match (&args.archive, report.archived) {
        (Some(dir), bytes) if bytes > 0 => format!("; {bytes} bytes are kept in {}", dir.display()),
        _ => String::new(),
    };
    let text = format!(
        "history is kept from commit {} on: {} records told again, {} items left behind, {} files of the log with {} bytes removed{archived}",
        report.since, report.records, report.left, report.segments, report.bytes
    );
    let fact = json!({
        "since": report.since, "records": report.records, "left": report.left,
        "segments": report.segments, "bytes": report.bytes, "archived": report.archived,
    });
    render::write_fact(&mut io::stdout().lock(), &fact, &text, format)?;
    Ok(Status::Done)
}
