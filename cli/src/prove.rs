//! `holotype prove`: a proof that an item, as it is shown, is in the log; or that the log continues one whose signed
//! checkpoint was kept. `check-proof` checks both without the database.

use crate::failure::{Failure, Problem, Status};
use crate::render::{self, Format};
use crate::replica::{failed, head_json};
use crate::{database, script, signing};
use holotype::Error;
use holotype_replica::place::Place;
use holotype_replica::push::look;
use holotype_replica::source::Source as _;
use holotype_replica::store::Store as _;
use holotype_replica::{LocalLog, block_on};
use serde_json::json;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// The item, by its key or by `#` and its number
    #[arg(required_unless_present_any = ["since", "against"], conflicts_with_all = ["since", "against"])]
    item: Option<String>,
    /// The file of the signing key, created if missing [default: DB.key, beside the database]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Prove instead that the log continues that of a signed checkpoint, the output of `head --sign`
    #[arg(long, value_name = "CHECKPOINT")]
    since: Option<PathBuf>,
    /// Check instead that the log contains the head of this replica, a folder or file:///FOLDER
    #[arg(long, value_name = "ADDRESS", conflicts_with = "since")]
    against: Option<String>,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    if let Some(address) = &args.against {
        return compare(&args.db, address, format);
    }
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

/// Compares the log with the head of a replica, which lies outside the database.
fn compare(db: &Path, address: &str, format: Format) -> Result<Status, Failure> {
    let place = Place::open(address).map_err(failed)?;
    let found = block_on(look(&place)).map_err(failed)?;
    let (head, _) = found.ok_or_else(|| failed(holotype_replica::Error::NoReplica { place: place.place() }))?;
    let log = LocalLog::open(db, Some(head.head)).map_err(failed)?;
    let (db, commit, newest) = (db.display(), head.head.commit, log.head().commit);
    if log.database() == head.database && log.contains(head.head).map_err(failed)? {
        let text = format!("{db} contains commit {commit}, the head of {address}");
        let json = json!({"contains": true, "head": head_json(&head), "newest": newest.0});
        render::write_fact(&mut io::stdout().lock(), &json, &text, format)?;
        return Ok(Status::Done);
    }
    let problem = if log.database() != head.database {
        Problem::new(Status::Found, "other-database", format!("{address} is a replica of another database than {db}"))
    } else if newest < commit {
        let what = format!("{db} ends at commit {newest}, and {address} has commit {commit}");
        Problem::new(Status::Found, "rolled-back", format!("{what}: it was rolled back, or is an old copy"))
    } else {
        Problem::new(Status::Found, "forged", format!("{db} has another commit {commit} than {address}"))
    };
    Err(problem.hint("`holotype restore` makes a database of the replica").into())
}

/// A proof that cannot be made is a finding: the log is not the one that was signed.
fn not_proven(error: Error) -> Failure {
    match error {
        Error::Proof { what } => Problem::new(Status::Found, "proof", what).into(),
        error => error.into(),
    }
}
