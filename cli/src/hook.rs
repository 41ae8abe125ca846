//! `holotype hook`: records what happens in an agent's session, called by the harness at each event.
//!
//! ```text
//! stdin, JSON ── read ── withhold secrets ── one transaction: spool, transcript, events ── stdout: context
//!                                    └── no turn in time: .holotype/spool/, synced
//! ```
//!
//! 1. It never blocks an agent: the exit status is 0 whatever happens, also for a wrong command line, and it ends
//!    within [`DEADLINE`].
//! 2. An event that was read is in the database or in the spool when it ends, unless neither can be written.
//! 3. What goes wrong is one line on stderr and one in `hook.log` beside the database.
//! 4. stdout holds what the harness understands, or nothing.

mod event;
mod harness;
mod ignore;
mod log;
mod recipe;
mod record;
mod secrets;
mod session;
mod spool;
mod transcript;
mod used;

pub(crate) use harness::Harness;
pub(crate) use log::last_lines;

use crate::failure::Status;
use crate::place;
use event::Event;
use harness::Call;
use ignore::Ignore;
use std::env;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The most bytes of input.
const INPUT_LEN: u64 = 4 << 20;
/// The time within which a hook ends, less what spooling takes.
const DEADLINE: Duration = Duration::from_millis(1_800);

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// The harness that calls: claude-code, codex, gemini, cursor or generic
    #[arg(long = "for", value_name = "HARNESS")]
    harness: Option<String>,
    /// The name of the event, if the input does not say it; or the input itself, as JSON
    event: Option<String>,
    /// The database [default: HOLOTYPE_DB, the nearest .holotype/ upwards, or the user's data directory]
    #[arg(long, value_name = "PATH")]
    db: Option<PathBuf>,
    /// Print the statements that find what a session is told at its beginning
    #[arg(long)]
    show_recipe: bool,
}

/// The progress of the thread that works, for the one that watches the time.
#[derive(Debug, Default)]
struct Progress {
    /// The folder of spool and log.
    beside: Option<PathBuf>,
    /// Harness and event, for the log.
    name: String,
    /// Events that are in neither database nor spool.
    waiting: Vec<Event>,
}

/// The output and the line of the log.
#[derive(Debug, Default)]
struct Done {
    output: Option<String>,
    summary: String,
    troubles: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Status {
    if args.show_recipe {
        let _ = io::stdout().write_all(recipe::shown().as_bytes());
        return Status::Done;
    }
    let began = Instant::now();
    let progress = Arc::new(Mutex::new(Progress::default()));
    let (sender, receiver) = mpsc::channel();
    // A panic is told in one line, below.
    std::panic::set_hook(Box::new(|_| {}));
    let (to_work, shared) = (args.clone(), Arc::clone(&progress));
    let worker = thread::Builder::new().name("holotype-hook".into()).spawn(move || {
        let _ = sender.send(work(&to_work, &shared));
    });
    let done = match (worker, receiver.recv_timeout(DEADLINE)) {
        (_, Ok(done)) => done,
        (Ok(_), Err(RecvTimeoutError::Timeout)) => rescue(&progress, "the hook did not end within its time"),
        (Ok(_), Err(RecvTimeoutError::Disconnected)) => rescue(&progress, "the hook broke off: a bug"),
        (Err(error), Err(_)) => rescue(&progress, &format!("cannot start a thread: {error}")),
    };
    if let Some(output) = &done.output {
        // The harness may have gone.
        let _ = writeln!(io::stdout(), "{output}");
    }
    tell(&progress, &done, began.elapsed());
    Status::Done
}

/// A wrong command line of this command: told, and no failure.
pub(crate) fn usage(error: &clap::Error) -> Status {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    let _ = writeln!(io::stderr(), "holotype hook: {first}");
    Status::Done
}

/// True if the command line is one of this command, however wrong.
pub(crate) fn is_called() -> bool {
    env::args_os().nth(1).is_some_and(|first| first == "hook")
}

fn lock(progress: &Mutex<Progress>) -> std::sync::MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

fn work(args: &Args, progress: &Mutex<Progress>) -> Done {
    match try_work(args, progress) {
        Ok(done) => done,
        Err(trouble) => rescue(progress, &trouble),
    }
}

/// Puts what waits into the spool.
fn rescue(progress: &Mutex<Progress>, trouble: &str) -> Done {
    let mut progress = lock(progress);
    let waiting = std::mem::take(&mut progress.waiting);
    let (mut summary, mut troubles) = (String::new(), vec![trouble.to_owned()]);
    if let Some(beside) = progress.beside.as_ref().filter(|_| !waiting.is_empty()) {
        match spool::put(beside, &waiting) {
            Ok(()) => summary = format!("{} spooled", waiting.len()),
            Err(error) => troubles.push(format!("{} lost, the spool cannot be written: {error}", waiting.len())),
        }
    }
    Done { output: None, summary, troubles }
}

fn try_work(args: &Args, progress: &Mutex<Progress>) -> Result<Done, String> {
    let current = env::current_dir().unwrap_or_default();
    lock(progress).beside = place::database(args.db.as_deref(), &current).and_then(|db| beside(&db));
    let harness = args.harness.as_deref().ok_or("--for is missing: claude-code, codex, gemini, cursor or generic")?;
    harness.clone_into(&mut lock(progress).name);
    let harness: Harness = harness.parse()?;
    let given = args.event.as_deref();
    let inline = given.filter(|given| given.trim_start().starts_with('{'));
    let bytes = match inline {
        Some(json) => json.as_bytes().to_vec(),
        None => read_input()?,
    };
    let mut call = harness::read(given.filter(|_| inline.is_none()), &bytes)?;
    if !matches!(harness, Harness::ClaudeCode | Harness::Codex) {
        // The transcripts of others have forms that nobody reads here.
        call.transcript = None;
    }
    let folder = call.cwd.clone().unwrap_or(current);
    let db = place::database(args.db.as_deref(), &folder).ok_or("there is no database: neither --db nor .holotype/")?;
    let beside = beside(&db).ok_or("the path of the database names no folder")?;
    let ignore = Ignore::read(&folder);
    let mut events = std::mem::take(&mut call.events);
    let mut summary = Vec::new();
    if call.files.iter().any(|path| ignore.covers(path)) {
        summary.push(format!("{} ignored", events.len()));
        events.clear();
    }
    if let [file] = &call.files[..] {
        events.iter_mut().for_each(|event| event.note_file(&folder, file));
    }
    {
        let mut progress = lock(progress);
        progress.name = format!("{harness} {}", log::plain(&call.name));
        progress.beside = Some(beside.clone());
        progress.waiting.clone_from(&events);
    }
    if events.is_empty() && call.transcript.is_none() && !call.injects {
        return Ok(Done { summary: summary.join(", "), ..Done::default() });
    }
    let recorded = match record::record(&db, &beside, &call, &events) {
        Ok(recorded) => recorded,
        Err(error) => {
            let mut done = rescue(progress, &error.to_string());
            if call.injects {
                done.output = record::read_context(&db, &call.session).map(|context| told(harness, &call, &context));
            }
            return Ok(done);
        }
    };
    lock(progress).waiting.clear();
    for (count, what) in [
        (recorded.written, "written"),
        (recorded.known, "known"),
        (recorded.used, "used"),
        (recorded.drained, "drained"),
    ] {
        if count > 0 {
            summary.push(format!("{count} {what}"));
        }
    }
    let output = recorded.context.map(|context| told(harness, &call, &context));
    Ok(Done { output, summary: summary.join(", "), troubles: recorded.troubles })
}

fn told(harness: Harness, call: &Call, context: &str) -> String {
    harness::context_output(harness, &call.name, context)
}

/// The folder of spool and log: that of the database.
fn beside(db: &Path) -> Option<PathBuf> {
    let parent = db.parent()?;
    Some(if parent.as_os_str().is_empty() { PathBuf::from(".") } else { parent.to_owned() })
}

fn read_input() -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(INPUT_LEN + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("cannot read the input: {error}"))?;
    if bytes.len() as u64 > INPUT_LEN {
        return Err(format!("the input is longer than {INPUT_LEN} bytes; nothing of it was recorded"));
    }
    Ok(bytes)
}

/// Tells what happened: a line in the log, and one on stderr if something went wrong.
fn tell(progress: &Mutex<Progress>, done: &Done, took: Duration) {
    let progress = lock(progress);
    let trouble = secrets::withhold(&log::plain(&done.troubles.join("; ")));
    if !trouble.is_empty() {
        let _ = writeln!(io::stderr(), "holotype hook: {trouble}");
    }
    let Some(beside) = &progress.beside else { return };
    let outcome = match (done.summary.as_str(), trouble.as_str()) {
        ("", "") => "nothing to record".to_owned(),
        (summary, "") => summary.to_owned(),
        ("", trouble) => format!("error: {trouble}"),
        (summary, trouble) => format!("{summary}; error: {trouble}"),
    };
    log::append(beside, &format!("{} {} ms: {outcome}", progress.name, took.as_millis()));
}
