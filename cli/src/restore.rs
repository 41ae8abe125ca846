//! `holotype restore`: a database from a backup or a replica, as of any commit.

use crate::failure::{Failure, Problem, Status};
use crate::render::{self, Format};
use crate::replica::failed;
use crate::{screen, signing};
use holotype::hex;
use holotype::plural::counted;
use holotype::time;
use holotype_replica::place::Place;
use holotype_replica::{Origin, Restored, Target, restore};
use serde_json::json;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A backup, or a replica: a folder, or file:///FOLDER
    from: String,
    /// The path of the database, which must not exist
    to: PathBuf,
    /// As of the last commit at or before this time, such as 2026-03-05T12:00:00Z; opens read-only
    #[arg(long, value_name = "TIME", conflicts_with = "commit")]
    at: Option<String>,
    /// As of this commit; opens read-only
    #[arg(long, value_name = "COMMIT")]
    commit: Option<u64>,
    /// Make a database that can be written to: a lineage of its own, with an id of its own
    #[arg(long)]
    fork: bool,
    /// The public key that signs the replica's head, or the file that has it
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let target = match (&args.at, args.commit) {
        (Some(at), _) => Target::Time(time::parse(at)?),
        (None, Some(commit)) => Target::Commit(commit),
        (None, None) => Target::Newest,
    };
    let key = args.key.as_deref().map(signing::verifier).transpose()?;
    let origin = origin(&args.from)?;
    let dest = if args.fork { forking(&args.to)? } else { args.to.clone() };
    let bar = screen::progress("restoring", 1, true);
    let restored = restore(&origin, &dest, target, key.as_ref(), &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let restored = restored.map_err(failed)?;
    if args.fork {
        let forked = holotype::fork(&dest, &args.to, restored.shown.position.0);
        fs::remove_dir_all(&dest).map_err(|error| Problem::io(&dest, "remove", &error))?;
        return tell_fork(args, &restored, &forked?, format);
    }
    tell(args, &restored, format)
}

/// The place to restore from: a directory with a log is a database.
fn origin(from: &str) -> Result<Origin<Place>, Failure> {
    if Path::new(from).join("log").is_dir() {
        return Ok(Origin::Directory(from.into()));
    }
    Ok(Origin::Replica(Place::open(from).map_err(failed)?))
}

/// The path of the restored database that a fork is made of.
fn forking(to: &Path) -> Result<PathBuf, Failure> {
    if fs::symlink_metadata(to).is_ok() {
        return Err(failed(holotype_replica::Error::Exists(to.to_owned())));
    }
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(".forking");
    let path = to.with_file_name(name);
    if path.exists() {
        fs::remove_dir_all(&path).map_err(|error| Problem::io(&path, "remove", &error))?;
    }
    Ok(path)
}

fn tell(args: &Args, restored: &Restored, format: Format) -> Result<Status, Failure> {
    let Restored { shown, kept, newest, .. } = restored;
    let mut text = format!(
        "{} holds everything up to commit {} of {}, {}",
        args.to.display(),
        shown.commit,
        time::format(restored.time_us),
        counted(restored.bytes, "bytes")
    );
    if shown != newest {
        text += "; it opens read-only, since later commits exist: --fork makes one to write to";
    }
    if kept != shown {
        text += &format!("; its log goes on to commit {}, with erasures that came after", kept.commit);
    }
    let json = json!({
        "commit": shown.commit.0,
        "position": shown.position.0,
        "hash": hex(&shown.hash),
        "time": time::format(restored.time_us),
        "kept": kept.commit.0,
        "newest": newest.commit.0,
        "root_compared": restored.root_compared,
        "read_only": shown != newest,
        "bytes": restored.bytes,
    });
    render::write_fact(&mut io::stdout().lock(), &json, &text, format)?;
    Ok(Status::Done)
}

fn tell_fork(
    args: &Args,
    restored: &Restored,
    forked: &holotype::SalvageReport,
    format: Format,
) -> Result<Status, Failure> {
    let commit = restored.shown.commit;
    let mut text: Vec<String> = forked.lost.iter().map(|lost| format!("left out: {lost}")).collect();
    text.push(format!(
        "{} continues from commit {commit} as a database of its own, with {}",
        args.to.display(),
        counted(forked.items, "items")
    ));
    let left_out: Vec<String> = forked.lost.iter().map(ToString::to_string).collect();
    let json = json!({"commit": commit.0, "items": forked.items, "left_out": left_out});
    render::write_fact(&mut io::stdout().lock(), &json, &text.join("\n"), format)?;
    Ok(Status::Done)
}
