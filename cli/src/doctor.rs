//! `holotype doctor`: one screen that says whether memory works here: the database and who has it, the model, the hooks
//! that are configured, what they did last, the clock, the space taken.
//!
//! It changes nothing. The exit status is 1 if something needs the user.

use crate::database;
use crate::failure::{Failure, Problem, Status};
use crate::hook::{self, Harness};
use crate::init::hook_files;
use crate::place;
use crate::render::{self, Format};
use crate::screen::Screen;
use holotype::answer::{Output, Table};
use holotype::cell::Cell;
use holotype::plural::counted;
use holotype::{Error, Holotype, Options, Space, time};
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Results of hooks that are shown.
const RESULTS: usize = 20;
/// A commit this much later than now, in microseconds, was made by another clock.
const CLOCK_TOLERANCE_US: i64 = 60 * 1_000_000;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database [default: HOLOTYPE_DB, the nearest .holotype/ upwards, or the user's data directory]
    #[arg(long, value_name = "PATH")]
    db: Option<PathBuf>,
}

/// The lines of the screen.
#[derive(Default)]
struct Findings {
    rows: Vec<(&'static str, String)>,
    /// True if something needs the user.
    ill: bool,
}

impl Findings {
    fn say(&mut self, name: &'static str, value: impl Into<String>) {
        self.rows.push((name, value.into()));
    }

    fn complain(&mut self, name: &'static str, value: impl Into<String>) {
        self.ill = true;
        self.say(name, value);
    }
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let current = env::current_dir().map_err(|error| Problem::io(Path::new("."), "find", &error))?;
    let path = place::database(args.db.as_deref(), &current).ok_or_else(|| {
        Problem::input("usage", "there is no .holotype folder around, and the user has no data directory")
            .hint("name a database with --db, or make one with `holotype init`")
    })?;
    let mut findings = Findings::default();
    findings.say("program", format!("holotype {}", env!("CARGO_PKG_VERSION")));
    findings.say("database", path.display().to_string());
    examine(&path, &mut findings);
    let beside = path.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
    spool(&beside, &mut findings);
    hooks(&current, &mut findings);
    for line in hook::last_lines(&beside, RESULTS) {
        findings.say("hook", line);
    }
    let rows = findings.rows.into_iter().map(|(name, value)| vec![Some(Cell::text(name)), Some(Cell::Text(value))]);
    let columns = ["what", "found"].map(str::to_owned).to_vec();
    let table = Table { verb: "doctor", columns, rows: rows.collect(), ..Table::default() };
    render::write(&mut io::stdout().lock(), &[Output::Table(table)], format, &Screen::stdout())?;
    Ok(if findings.ill { Status::Found } else { Status::Done })
}

fn examine(path: &Path, findings: &mut Findings) {
    let database = match Holotype::open(path, Options { read_only: true, ..database::options() }) {
        Ok(database) => database,
        Err(Error::NotFound { .. }) => {
            return findings.say("state", "none yet: the first hook, `record` of the server or `create` makes it");
        }
        Err(error) => return findings.complain("state", format!("cannot be opened: {error}")),
    };
    for fault in database.report().faults() {
        findings.complain("fault", fault);
    }
    if let Some(why) = &database.report().rebuilt {
        findings.complain("derived files", format!("have to be made again, by `holotype rebuild`: {why}"));
    }
    match database.stats() {
        Ok(stats) => {
            let content = &stats.content;
            findings.say("state", format!("commit {}, {}", content.commit, counted(content.items, "items")));
            let space =
                content.space.as_ref().map_or("none: questions are answered by words".to_owned(), Space::to_string);
            findings.say("model", space);
            let pending = match content.pending {
                0 => String::new(),
                pending => format!(", {pending} pending: `holotype embed` fills them"),
            };
            findings.say("vectors", format!("{} of {}{pending}", content.vectors, counted(content.items, "items")));
        }
        Err(error) => findings.complain("state", error.to_string()),
    }
    match database.lease() {
        Ok(lease) if lease.held => {
            let pid = lease.pid.map_or("an unknown process".to_owned(), |pid| format!("process {pid}"));
            let since = lease.since_us.map(|since| format!(" since {}", time::format(since))).unwrap_or_default();
            findings.say("writers", format!("open for writing; {pid} took it last{since}"));
        }
        Ok(_) => findings.say("writers", "none now"),
        Err(error) => findings.complain("writers", error.to_string()),
    }
    clock(&database, findings);
    let bytes = folder_len(path);
    findings.say("space", format!("{:.1} MB", bytes as f64 / 1e6));
}

fn clock(database: &Holotype, findings: &mut Findings) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
    let newest = database.snapshot().clock();
    let shown = format!("now {}, newest commit {}", time::format(now), time::format(newest));
    match newest > now + CLOCK_TOLERANCE_US {
        true => findings.complain("clock", format!("{shown}: the clock was set back since")),
        false => findings.say("clock", shown),
    }
}

fn spool(beside: &Path, findings: &mut Findings) {
    let names = |extension: &str| {
        let entries = fs::read_dir(beside.join("spool")).into_iter().flatten().flatten();
        entries.filter(|entry| entry.path().extension().is_some_and(|found| found == extension)).count()
    };
    let (waiting, wrong) = (names("jsonl"), names("wrong"));
    findings.say("spool", format!("{} waiting for the next hook", counted(waiting as u64, "files")));
    if wrong > 0 {
        findings
            .complain("spool", format!("{} set aside, in {}", counted(wrong as u64, "wrong files"), beside.display()));
    }
}

fn hooks(current: &Path, findings: &mut Findings) {
    let mut found = Vec::new();
    for harness in Harness::ALL {
        let Some(file) = hook_files(harness) else { continue };
        for root in [Some(current.to_owned()), place::home()].into_iter().flatten() {
            let path = root.join(file);
            let text = fs::read_to_string(&path).unwrap_or_default();
            let count = text.matches(&format!("hook --for {harness}")).count();
            if count > 0 {
                found.push(format!("{harness}: {} in {}", counted(count as u64, "hooks"), path.display()));
            }
        }
    }
    found.dedup();
    if found.is_empty() {
        findings.say("hooks", "none configured; `holotype init --for HARNESS` does it");
    }
    for hooks in found {
        findings.say("hooks", hooks);
    }
}

/// The bytes of the files in a folder and below it.
fn folder_len(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let len = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => folder_len(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.map(len).sum()
}
