//! `holotype follow`: a copy of a database that follows its replica, for readers.

use crate::failure::{Failure, Problem, Status};
use crate::render::{self, Format};
use crate::replica::{failed, head_json};
use crate::replicate::{describe, duration};
use crate::{database, interrupt, signing};
use holotype_replica::follow::Follower;
use holotype_replica::head::RemoteHead;
use holotype_replica::place::Place;
use holotype_replica::{Error, LogCopy, block_on};
use serde_json::json;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The file in the copy with the head up to which it goes.
const FOLLOWS: &str = "FOLLOWS";

const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The replica: a folder, or file:///FOLDER
    from: String,
    /// The copy, created if missing; it opens read-only
    local: PathBuf,
    /// Go on until Ctrl-C, and look for a new head in this interval, such as 1s
    #[arg(long, value_name = "TIME", value_parser = duration)]
    every: Option<Duration>,
    /// The public key that signs the replica's head, or the file that has it
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let place = Place::open(&args.from).map_err(failed)?;
    let key = args.key.as_deref().map(signing::verifier).transpose()?;
    let at = known(&args.local)?;
    let shown = at.as_ref().map(|at| at.head).unwrap_or_default();
    let mut copy = LogCopy::open(&args.local, shown).and_then(LogCopy::held).map_err(failed)?;
    let mut follower = Follower::new(&place, key, at);
    let _deferred = args.every.is_some().then(|| interrupt::defer(1));
    loop {
        let began = Instant::now();
        match block_on(follower.poll(&mut copy)) {
            Ok(Some(head)) => {
                remember(&args.local, &head)?;
                tell(&args.local, &head, format)?;
            }
            Ok(None) if args.every.is_none() => {
                let Some(head) = follower.at() else { return Ok(Status::Done) };
                tell(&args.local, head, format)?;
            }
            Err(error @ Error::Store(_)) if args.every.is_some() => database::note(&error.to_string()),
            done => drop(done.map_err(failed)?),
        }
        let Some(every) = args.every else { return Ok(Status::Done) };
        let end = began + every;
        while !interrupt::asked() && Instant::now() < end {
            std::thread::sleep(PAUSE.min(end.saturating_duration_since(Instant::now())));
        }
        if interrupt::asked() {
            return Ok(Status::Done);
        }
    }
}

fn tell(local: &Path, head: &RemoteHead, format: Format) -> Result<(), Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    let lag_s = (i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(head.time_us)).max(0) / 1_000_000;
    let text = format!("{} holds everything up to {}, {lag_s} s ago", local.display(), describe(head));
    let json = json!({"head": head_json(head), "age_s": lag_s});
    Ok(render::write_fact(&mut io::stdout().lock(), &json, &text, format)?)
}

/// The head up to which the copy goes; `None` for a new copy.
fn known(local: &Path) -> Result<Option<RemoteHead>, Failure> {
    let path = local.join(FOLLOWS);
    match fs::read(&path) {
        Ok(bytes) => RemoteHead::decode(&bytes).map(Some).map_err(failed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if local.join("log").is_dir() {
                let what = format!("{}: a database that follows no replica", local.display());
                return Err(Problem::new(Status::Wrong, "exists", what).hint("name an unused path").into());
            }
            Ok(None)
        }
        Err(error) => Err(Problem::io(&path, "read", &error).into()),
    }
}

/// Writes the head beside the copy, after the copy is durable.
fn remember(local: &Path, head: &RemoteHead) -> Result<(), Failure> {
    let (path, unfinished) = (local.join(FOLLOWS), local.join("FOLLOWS.tmp"));
    let text = head.encode();
    fs::write(&unfinished, text)
        .and_then(|()| fs::rename(&unfinished, &path))
        .map_err(|error| Problem::io(&path, "write", &error).into())
}
