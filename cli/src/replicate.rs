//! `holotype replicate`: keeps a copy of the log in a folder or an object store, and moves its head as the log grows.

use crate::failure::{Failure, Status};
use crate::render::{self, Format};
use crate::replica::{claim, failed, head_json, open_log, probed, push_all};
use crate::{database, interrupt, screen};
use holotype::plural::counted;
use holotype_replica::head::RemoteHead;
use holotype_replica::local::LocalFolder;
use holotype_replica::place::Place;
use holotype_replica::push::Replicator;
use holotype_replica::store::Store as _;
use holotype_replica::{Error, LocalLog, block_on};
use serde_json::json;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The folder in a database with what is only there after another writer took its replica over.
const DIVERGED: &str = "diverged";

/// The pause between looks at Ctrl-C.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// The replica: a folder, or file:///FOLDER
    #[arg(long, value_name = "ADDRESS")]
    to: String,
    /// Go on until Ctrl-C
    #[arg(long)]
    follow: bool,
    /// With --follow: the time between two heads, such as 500ms, 1s or 1m
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    interval: Duration,
    /// Remove the objects that no head names any more, such as those with erased content
    #[arg(long)]
    gc: bool,
    /// With --gc: keep objects of this age, for readers that are at work
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    grace: Duration,
    /// The file of the signing key, created if missing [default: DB.key, beside the database]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let place = probed(&args.to)?;
    let log = open_log(&args.db, &place)?;
    let mut replicator = claim(&args.db, &log, &place, args.key.as_deref())?;
    let _deferred = args.follow.then(|| interrupt::defer(1));
    loop {
        let began = Instant::now();
        match round(args, &mut replicator, &log, format) {
            Err(error @ Error::Fenced { .. }) => {
                set_aside(args, &log)?;
                return Err(failed(error));
            }
            // The store is away: local writes go on, and so does the next round.
            Err(error @ Error::Store(_)) if args.follow => database::note(&error.to_string()),
            done => done.map_err(failed)?,
        }
        if !args.follow || !wait(args.interval.saturating_sub(began.elapsed())) {
            return Ok(Status::Done);
        }
        log.refresh().map_err(failed)?;
    }
}

/// Moves the head, removes what it leaves behind, and says so.
fn round(args: &Args, replicator: &mut Replicator<&Place>, log: &LocalLog, format: Format) -> Result<(), Error> {
    let bar = screen::progress("replicating", log.head().position.0, !args.follow);
    let moved = push_all(replicator, log, &mut |position| bar.set_position(position));
    bar.finish_and_clear();
    let moved = moved?;
    let mut swept = None;
    if args.gc {
        swept = Some(block_on(replicator.sweep(log, args.grace.as_secs()))?);
    }
    let has_news = moved.stored_bytes > 0 || swept.is_some_and(|swept| swept.objects > 0);
    let Some(head) = replicator.head().filter(|_| has_news || !args.follow) else { return Ok(()) };
    let mut text = format!(
        "{} holds everything up to commit {}, {} written for {} of the log",
        args.to,
        head.head.commit,
        counted(moved.stored_bytes, "bytes"),
        counted(moved.log_bytes, "bytes")
    );
    if let Some(swept) = swept {
        text += &format!("; {} removed, {}", counted(swept.objects, "objects"), counted(swept.bytes, "bytes"));
    }
    let removed = swept.map(|swept| json!({"objects": swept.objects, "bytes": swept.bytes}));
    let (log_bytes, stored_bytes) = (moved.log_bytes, moved.stored_bytes);
    let head = head_json(head);
    let json = json!({"head": head, "log_bytes": log_bytes, "stored_bytes": stored_bytes, "removed": removed});
    render::write_fact(&mut io::stdout().lock(), &json, &text, format).map_err(|source| Error::Io {
        path: PathBuf::from("the output"),
        action: "write",
        source,
    })
}

/// Waits; false after a Ctrl-C.
fn wait(time: Duration) -> bool {
    let end = Instant::now() + time;
    while !interrupt::asked() && Instant::now() < end {
        std::thread::sleep(PAUSE.min(end.saturating_duration_since(Instant::now())));
    }
    !interrupt::asked()
}

/// Keeps the log of a writer that was fenced in the database, as a replica that `holotype restore` reads.
fn set_aside(args: &Args, log: &LocalLog) -> Result<(), Failure> {
    let folder = LocalFolder::new(args.db.join(DIVERGED).join(format!("{}", log.head().commit)));
    if !folder.is_replica() {
        let place = Place::Folder(folder.clone());
        let mut replicator = claim(&args.db, log, &place, args.key.as_deref())?;
        push_all(&mut replicator, log, &mut |_| {}).map_err(failed)?;
    }
    let (place, commit) = (folder.place(), log.head().commit);
    database::note(&format!(
        "everything up to commit {commit} is in {place}: `holotype restore {place} COPY` makes a database of it"
    ));
    Ok(())
}

/// Makes or continues a backup in a folder of chunks.
pub(crate) fn back_up(db: &Path, folder: &Path, format: Format) -> Result<Status, Failure> {
    let args = Args {
        db: db.to_owned(),
        to: folder.display().to_string(),
        follow: false,
        interval: Duration::ZERO,
        gc: false,
        grace: Duration::ZERO,
        key: None,
    };
    run(&args, format)
}

/// How far a copy is behind, for a person.
pub(crate) fn describe(head: &RemoteHead) -> String {
    format!("commit {} of {}", head.head.commit, holotype::time::format(head.time_us))
}

/// Parses a time such as 500ms, 1s, 10m or 2h.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let wrong = || format!("{text:?}: expected a number with a unit, such as 500ms, 1s, 10m, 2h or 30d");
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit_ms).map(Duration::from_millis).ok_or_else(wrong)
}
