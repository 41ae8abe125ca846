//! `holotype head`: the end of the log, to be kept elsewhere. `verify --head` shows later whether what it stands for
//! is still there.

use crate::database;
use crate::failure::{Failure, Status};
use crate::render::{self, Format};
use holotype::hex;
use serde_json::json;
use std::io;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let head = database::to_read(&args.db)?.head();
    let (position, commit, hash) = (head.position.0, head.commit.0, hex(&head.hash));
    let text = format!("position  {position}\ncommit    {commit}\nhash      {hash}");
    let json = json!({"position": position, "commit": commit, "hash": hash});
    render::write_fact(&mut io::stdout().lock(), &json, &text, format)?;
    Ok(Status::Done)
}
