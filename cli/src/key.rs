//! `holotype key`: prints the public part of a database's signing key, which is created if missing.

use crate::failure::{Failure, Status};
use crate::render::{self, Format};
use crate::{database, signing};
use serde_json::json;
use std::io;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// The file of the key [default: DB.key, beside the database]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let origin = database::to_read(&args.db)?.snapshot().origin();
    let key = signing::key(&args.db, args.key.as_deref(), &origin)?.verifier().to_string();
    render::write_fact(&mut io::stdout().lock(), &json!({"key": key}), &key, format)?;
    Ok(Status::Done)
}
