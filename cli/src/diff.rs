//! `holotype diff`: what was added between two commits, and whose standing changed.

use crate::database;
use crate::failure::{Failure, Status};
use crate::render::text::printable;
use crate::render::{self, Format};
use std::io;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// The earlier commit
    from: u64,
    /// The later commit [default: the newest]
    to: Option<u64>,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let database = database::to_read(&args.db)?;
    let snapshot = database.snapshot();
    let found = snapshot.diff(args.from, args.to.unwrap_or(snapshot.commit()))?;
    let text = found.to_text().lines().map(printable).collect::<Vec<_>>().join("\n");
    render::write_fact(&mut io::stdout().lock(), found.to_json(), &text, format)?;
    Ok(database::status_of_reading(&database))
}
