//! `holotype salvage`: creates a new database from what is readable in a damaged one.

use crate::database;
use crate::failure::{Failure, Status};
use crate::render::{self, Format};
use holotype::plural::counted;
use serde_json::json;
use std::io;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The damaged database; nothing in it is changed
    db: PathBuf,
    /// The path of the new database, which must not exist
    dest: PathBuf,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let report = holotype::salvage(&args.db, &args.dest).map_err(|error| database::about(&args.db, error))?;
    let mut text: Vec<String> = report.lost.iter().map(|lost| format!("lost: {lost}")).collect();
    text.push(format!(
        "{} holds {} from {}; {} lists their old and new positions",
        args.dest.display(),
        counted(report.items, "items"),
        counted(report.records, "readable records"),
        args.dest.join(holotype::POSITIONS).display()
    ));
    let lost = |lost: &holotype::Lost| json!({"position": lost.position, "len": lost.len, "what": lost.what});
    let lost: Vec<_> = report.lost.iter().map(lost).collect();
    let fact = json!({"items": report.items, "records": report.records, "lost": lost});
    render::write_fact(&mut io::stdout().lock(), &fact, &text.join("\n"), format)?;
    Ok(if report.lost.is_empty() { Status::Done } else { Status::Found })
}
