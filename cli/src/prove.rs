//! `holotype prove`: a proof that an item, as it is shown, is in the log; or that the log continues one whose signed
//! checkpoint was kept. `check-proof` checks both without the database.

use crate::failure::{Failure, Problem, Status};
use crate::{database, script, signing};
use holotype::Error;
use std::io::{self, Write as _};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// The item, by its key or by `#` and its number
    #[arg(required_unless_present = "since", conflicts_with = "since")]
    item: Option<String>,
    /// The file of the signing key, created if missing [default: DB.key, beside the database]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Prove instead that the log continues that of a signed checkpoint, the output of `head --sign`
    #[arg(long, value_name = "CHECKPOINT")]
    since: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<Status, Failure> {
    let snapshot = database::to_read(&args.db)?.snapshot();
    let key = signing::key(&args.db, args.key.as_deref(), &snapshot.origin())?;
    let json = match (&args.since, &args.item) {
        (Some(file), _) => {
            let old = script::read_file(file)?;
            snapshot.prove_growth(&old, &key).map_err(not_proven)?.to_json()
        }
        (None, item) => {
            let item = snapshot.item_named(item.as_deref().unwrap_or_default())?;
            snapshot.prove(item, &key).map_err(not_proven)?.to_json()
        }
    };
    io::stdout().lock().write_all(json.as_bytes())?;
    Ok(Status::Done)
}

/// A proof that cannot be made is a finding: the log is not the one that was signed.
fn not_proven(error: Error) -> Failure {
    match error {
        Error::Proof { what } => Problem::new(Status::Found, "proof", what).into(),
        error => error.into(),
    }
}
