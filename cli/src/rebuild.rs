//! `holotype rebuild`: makes derived files anew from the log; segments that prove to be right are kept, unless all are
//! to go.

use crate::database;
use crate::failure::{Failure, Status};
use crate::render::{self, Format};
use holotype::{Holotype, Options};
use serde_json::json;
use std::io;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// Keep nothing, not even segments of vectors and words that match their checksums and the log
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let rebuilt = match args.all {
        true => Holotype::rebuild_all(&args.db, Options::default()),
        false => Holotype::rebuild(&args.db, Options::default()),
    };
    let database = rebuilt.map_err(|error| database::about(&args.db, error))?;
    let kept = database.report().reused;
    let snapshot = database.snapshot();
    let (items, commit) = (snapshot.len(), snapshot.commit());
    database.close()?;
    let but = match kept {
        0 => String::new(),
        1 => ", but for one segment that is right".to_owned(),
        _ => format!(", but for {kept} segments that are right"),
    };
    let text = format!("every derived file was made anew from the log{but}: {items} items, up to commit {commit}");
    let fact = json!({"items": items, "commit": commit, "kept": kept});
    render::write_fact(&mut io::stdout().lock(), &fact, &text, format)?;
    Ok(Status::Done)
}
