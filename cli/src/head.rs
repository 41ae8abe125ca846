//! `holotype head`: the end of the log, to be kept elsewhere. `verify --head` shows later whether what it stands for
//! is still there.

use crate::failure::{Failure, Status};
use crate::render::{self, Format};
use crate::{database, signing};
use holotype::hex;
use serde_json::json;
use std::io::{self, Write as _};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// Print a signed checkpoint of the tree over all records instead, for others to keep
    #[arg(long)]
    sign: bool,
    /// The file of the signing key, created if missing [default: DB.key, beside the database]
    #[arg(long, value_name = "FILE", requires = "sign")]
    key: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let database = database::to_read(&args.db)?;
    if args.sign {
        let snapshot = database.snapshot();
        let key = signing::key(&args.db, args.key.as_deref(), &snapshot.origin())?;
        io::stdout().lock().write_all(snapshot.signed_checkpoint(&key)?.as_bytes())?;
        return Ok(Status::Done);
    }
    let head = database.head();
    let (position, commit, hash) = (head.position.0, head.commit.0, hex(&head.hash));
    let text = format!("position  {position}\ncommit    {commit}\nhash      {hash}");
    let json = json!({"position": position, "commit": commit, "hash": hash});
    render::write_fact(&mut io::stdout().lock(), &json, &text, format)?;
    Ok(Status::Done)
}
