//! `holotype rebuild`: rebuilds derived files from the log. Segments that match their checksums and the log are kept,
//! unless `--all` is given.

use crate::database;
use crate::failure::{Failure, Status};
use crate::render::{self, Format};
use holotype::Holotype;
use holotype::plural::counted;
use serde_json::json;
use std::io;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// Rebuild segments too that match their checksums and the log
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let rebuilt = match args.all {
        true => Holotype::rebuild_all(&args.db, database::options()),
        false => Holotype::rebuild(&args.db, database::options()),
    };
    let database = rebuilt.map_err(|error| database::about(&args.db, error))?;
    let kept = database.report().reused;
    let snapshot = database.snapshot();
    let (items, commit) = (snapshot.len(), snapshot.commit());
    database::close(database)?;
    let but = match kept {
        0 => String::new(),
        _ => format!(", except {} found sound", counted(kept as u64, "segments")),
    };
    let items_in_words = counted(u64::from(items), "items");
    let text = format!("every derived file was rebuilt from the log{but}: {items_in_words}, up to commit {commit}");
    let fact = json!({"items": items, "commit": commit, "kept": kept});
    render::write_fact(&mut io::stdout().lock(), &fact, &text, format)?;
    Ok(Status::Done)
}
