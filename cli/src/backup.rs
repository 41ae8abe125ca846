//! `holotype backup`: a copy of the database as of one commit, while others go on writing.

use crate::failure::{Failure, Status};
use crate::render::{self, Format};
use crate::{database, replicate, screen};
use holotype::plural::counted;
use holotype::{Holotype, hex};
use holotype_replica::local::LocalFolder;
use serde_json::json;
use std::io;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// The path of the copy, which must not exist; or the folder of an earlier incremental backup
    dest: PathBuf,
    /// Back up into a folder of compressed chunks, to which the next backup adds what is new
    #[arg(long)]
    incremental: bool,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    if args.incremental || LocalFolder::new(&args.dest).is_replica() {
        return replicate::back_up(&args.db, &args.dest, format);
    }
    let database = open(args)?;
    let bar = screen::progress("copying", 1, true);
    let report = database.backup(&args.dest, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let report = report?;
    database::close(database)?;
    let derived = if report.derived { "" } else { "; its first opening rebuilds the derived files" };
    let text = format!(
        "{} holds everything up to commit {}, {}{derived}",
        args.dest.display(),
        report.head.commit,
        counted(report.bytes, "bytes")
    );
    let head =
        json!({"position": report.head.position.0, "commit": report.head.commit.0, "hash": hex(&report.head.hash)});
    let fact = json!({"head": head, "bytes": report.bytes, "derived": report.derived});
    render::write_fact(&mut io::stdout().lock(), &fact, &text, format)?;
    Ok(Status::Done)
}

/// As the writer when there is none, so that derived files can be copied too; else as a reader beside it.
fn open(args: &Args) -> Result<Holotype, Failure> {
    match Holotype::open(&args.db, database::in_turns()) {
        Err(error) if error.code() == "locked" => database::to_read(&args.db),
        Ok(database) => Ok(database),
        Err(error) => Err(database::about(&args.db, error).into()),
    }
}
