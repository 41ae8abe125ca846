//! `holotype salvage`: a new database of what can be read of a damaged one.

use crate::database;
use crate::failure::{Failure, Status};
use crate::render::{self, Format};
use serde_json::json;
use std::io;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The damaged database; nothing in it is changed
    db: PathBuf,
    /// Where the new one goes; nothing may be there
    dest: PathBuf,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let report = holotype::salvage(&args.db, &args.dest).map_err(|error| database::about(&args.db, error))?;
    let mut text: Vec<String> = report.lost.iter().map(|lost| format!("lost: {lost}")).collect();
    text.push(format!(
        "{} holds {} items from {} readable records; {} says where they stood and stand",
        args.dest.display(),
        report.items,
        report.records,
        args.dest.join(holotype::POSITIONS).display()
    ));
    let lost = |lost: &holotype::Lost| json!({"position": lost.position, "len": lost.len, "what": lost.what});
    let lost: Vec<_> = report.lost.iter().map(lost).collect();
    let fact = json!({"items": report.items, "records": report.records, "lost": lost});
    render::write_fact(&mut io::stdout().lock(), &fact, &text.join("\n"), format)?;
    Ok(if report.lost.is_empty() { Status::Done } else { Status::Found })
}
