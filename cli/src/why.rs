//! `holotype why` and `holotype show`: the story of one belief, and one item whole.

use crate::database;
use crate::failure::{Failure, Status};
use crate::render::text::printable;
use crate::render::{self, Format};
use holotype::{Holotype, Snapshot};
use serde_json::Value;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// The item: its key, or #NUMBER
    item: String,
    /// Tell it as of this commit
    #[arg(long, value_name = "COMMIT")]
    as_of: Option<u64>,
}

impl Args {
    fn snapshot(&self, database: &Holotype) -> Result<Snapshot, Failure> {
        let snapshot = database.snapshot();
        Ok(match self.as_of {
            Some(commit) => snapshot.as_of(commit)?,
            None => snapshot,
        })
    }
}

/// Tells what an item says, what it rests on, what changed it, and what would fall with it.
pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let database = database::to_read(&args.db)?;
    let story = args.snapshot(&database)?.why(&args.item)?;
    let text = story.to_text().lines().map(printable).collect::<Vec<_>>().join("\n");
    render::write_fact(&mut io::stdout().lock(), story.to_json(), &text, format)?;
    Ok(database::status_of_reading(&database))
}

/// Shows one item whole, with its fields.
pub(crate) fn show(args: &Args, format: Format) -> Result<Status, Failure> {
    let database = database::to_read(&args.db)?;
    let snapshot = args.snapshot(&database)?;
    let item = snapshot.item_to_json(snapshot.item_named(&args.item)?)?;
    let mut text = String::new();
    for (name, value) in item.as_object().into_iter().flatten() {
        match (name.as_str(), value) {
            ("text", _) => {}
            ("fields", Value::Array(fields)) => fields.iter().for_each(|field| {
                let name = field["name"].as_str().unwrap_or_default();
                let said = field["text"].as_str().map_or_else(|| format!("{} bytes", field["bytes"]), printable);
                let _ = writeln!(text, "{:<12} {said}", format!("fields.{name}"));
            }),
            (name, Value::String(said)) => drop(writeln!(text, "{name:<12} {}", printable(said))),
            (name, value) => drop(writeln!(text, "{name:<12} {value}")),
        }
    }
    render::write_fact(&mut io::stdout().lock(), &item, text.trim_end(), format)?;
    Ok(database::status_of_reading(&database))
}
