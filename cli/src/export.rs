//! `holotype export`: a database as JSON Lines.
//!
//! A file appears whole or not at all: it is written beside its place and renamed. One that exists is replaced only
//! with `--overwrite`. What is no regular file, such as a
//! pipe, is written to directly.

mod mif;

use crate::database;
use crate::failure::{Failure, Problem, Status};
use crate::inspect::failed as inspect_failed;
use crate::render::Format;
use crate::signing;
use holotype::credit::CreditOptions;
use holotype::interchange::{self, ExportReport};
use holotype::plural::counted;
use holotype::{Error, Snapshot};
use holotype_inspect::{ExportOptions, Items, export_html, export_stories};
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// The file to write; without it or with `-`, stdout
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Export the log in commit order instead of the present state
    #[arg(long)]
    history: bool,
    /// Export training data instead
    #[arg(long, value_name = "KIND", conflicts_with_all = ["history", "vectors"])]
    training: Option<Training>,
    /// Export the items in use in a format of other programs instead
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["history", "training", "vectors", "condition", "html"])]
    to: Option<Foreign>,
    /// Replace FILE if it exists
    #[arg(long)]
    overwrite: bool,
    /// Write the vectors to this file instead of the lines
    #[arg(long, value_name = "FILE.npy")]
    vectors: Option<PathBuf>,
    /// Write a page that shows the memory and checks its quotes, in one file, without a network
    #[arg(long, value_name = "OUT.html", conflicts_with_all = ["history", "training", "vectors", "file"])]
    html: Option<PathBuf>,
    /// Export the items of this condition, such as "episode = 'trip-42'": each whole, with its evidence, its changes
    /// and what rests on it
    #[arg(long = "where", value_name = "CONDITION", conflicts_with_all = ["history", "training", "vectors"])]
    condition: Option<String>,
    /// Export the state as of this commit, or as of a time such as 2026-03-05T12:00:00Z
    #[arg(long, value_name = "COMMIT|TIME", conflicts_with_all = ["history", "training"])]
    as_of: Option<String>,
    /// With --html: this item, what it rests on, and what would fall with it
    #[arg(long, value_name = "KEY", requires = "html", conflicts_with = "condition")]
    scope: Option<String>,
    /// With --html: the rows of a statement that reads, such as "recall 'the fare to Lisbon'", and what they rest on
    #[arg(long, value_name = "STATEMENT", requires = "html", conflicts_with_all = ["condition", "scope"])]
    query: Option<String>,
    /// With --html: what was written after this commit or time
    #[arg(long, value_name = "COMMIT|TIME", requires = "html", conflicts_with_all = ["condition", "scope", "query"])]
    since: Option<String>,
    /// With --html: items, at most; the newest
    #[arg(long, value_name = "COUNT", default_value_t = 20_000, requires = "html")]
    max_items: u32,
    /// With --html: replace texts by their lengths
    #[arg(long, requires = "html")]
    redact: bool,
    /// With --html: do not pack the data, for browsers that cannot unpack them
    #[arg(long, requires = "html")]
    plain: bool,
}

/// Formats of other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Foreign {
    /// The Memory Interchange Format, version 2
    Mif,
}

/// Kinds of training data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Training {
    /// Queries with positives along provenance and epistemic negatives (HELM A.16)
    Triplets,
    /// Memory writes of kept rollouts with their credit (HiMPO)
    Rollouts,
    /// Labelled decisions of the router with their rewards (TierMem D)
    Router,
    /// Decisions of the controllers of loops with their memory reward (HELM eq. 2)
    Controller,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let database = database::to_read(&args.db)?;
    let newest = database.snapshot();
    let snapshot = match &args.as_of {
        None => newest,
        Some(as_of) => past(&newest, as_of)?,
    };
    if let Some(out) = &args.html {
        write_page(&snapshot, out, args)?;
        return Ok(database::status_of_reading(&database));
    }
    let file = args.file.as_deref().filter(|file| file.as_os_str() != "-");
    let report = match file {
        None => write(&snapshot, io::stdout().lock(), args, Failure::from)?,
        Some(file) => write_file(&snapshot, file, args)?,
    };
    let ExportReport { lines, vectors, .. } = report;
    if file.is_some() {
        let told = match format {
            Format::Json | Format::Jsonl => json!({"lines": lines, "vectors": vectors}).to_string(),
            _ => format!("{} and {} written", counted(lines, "lines"), counted(vectors, "vectors")),
        };
        let _ = writeln!(io::stderr(), "{told}");
    }
    Ok(database::status_of_reading(&database))
}

/// The state as of a commit or a time.
fn past(newest: &Snapshot, as_of: &str) -> Result<Snapshot, Failure> {
    Ok(match as_of.parse() {
        Ok(commit) => newest.as_of(commit)?,
        Err(_) => newest.as_of_time(holotype::time::parse(as_of)?)?,
    })
}

/// Writes the page of a memory to a file of its own.
fn write_page(snapshot: &Snapshot, out: &Path, args: &Args) -> Result<(), Failure> {
    let items = match (&args.condition, &args.scope, &args.query, &args.since) {
        (Some(condition), ..) => Items::Where(condition.clone()),
        (_, Some(key), ..) => Items::Around(key.clone()),
        (_, _, Some(statement), _) => Items::Found(statement.clone()),
        (_, _, _, Some(since)) => Items::Since(past(snapshot, since)?.commit()),
        _ => Items::All,
    };
    let note = signing::key(&args.db, None, &snapshot.origin()).and_then(|key| Ok(snapshot.signed_checkpoint(&key)?));
    if note.is_err() {
        database::note("the file has no signed head: there is no key beside the database, and none could be made");
    }
    let note = note.ok();
    let (max_items, redact, plain) = (args.max_items, args.redact, args.plain);
    let options = ExportOptions { items, max_items, redact, plain, note };
    let page = export_html(snapshot, &options).map_err(inspect_failed)?;
    replace(out, args.overwrite, |file| Ok(file.write_all(page.html.as_bytes())?))?;
    let left_out = if page.left_out > 0 { format!(", {} left out", page.left_out) } else { String::new() };
    let _ = writeln!(io::stderr(), "{}{left_out} in {}", counted(page.items, "items"), out.display());
    Ok(())
}

/// Writes to `out`; `failed` makes a failure of it.
fn write(
    snapshot: &Snapshot,
    out: impl Write,
    args: &Args,
    failed: impl FnOnce(io::Error) -> Failure,
) -> Result<ExportReport, Failure> {
    let mut out = Watched::new(BufWriter::with_capacity(1 << 18, out));
    if args.to == Some(Foreign::Mif) {
        return match mif::write(snapshot, &mut out).and_then(|done| Ok(out.flush().map(|()| done)?)) {
            Ok((lines, vectors)) => Ok(ExportReport { lines, vectors }),
            Err(mif::Fault::Output(error)) => Err(failed(error)),
            Err(mif::Fault::Database(error)) => Err(error.into()),
        };
    }
    let done = match args.training {
        Some(Training::Triplets) => {
            interchange::export_triplets(snapshot, &mut out).map(|lines| ExportReport { lines, vectors: 0 })
        }
        Some(Training::Rollouts) => interchange::export_rollouts(snapshot, &mut out, &CreditOptions::default()),
        Some(Training::Router) => interchange::export_routes(snapshot, &mut out),
        Some(Training::Controller) => interchange::export_decisions(snapshot, &mut out),
        None if args.condition.is_some() => return write_stories(snapshot, out, args, failed),
        None if args.history => interchange::export_history(snapshot, &mut out, args.vectors.as_deref()),
        None => interchange::export(snapshot, &mut out, args.vectors.as_deref()),
    };
    let done = done.and_then(|report| {
        out.flush().map_err(|source| Error::File { path: PathBuf::new(), source })?;
        Ok(report)
    });
    match done {
        Err(Error::File { source, .. }) if out.failed => Err(failed(source)),
        done => Ok(done?),
    }
}

/// Writes the items of a condition, one line each.
fn write_stories(
    snapshot: &Snapshot,
    mut out: Watched<impl Write>,
    args: &Args,
    failed: impl FnOnce(io::Error) -> Failure,
) -> Result<ExportReport, Failure> {
    let condition = args.condition.as_deref().unwrap_or_default();
    let written =
        export_stories(snapshot, condition, &mut |story| writeln!(out, "{story}").map_err(holotype_inspect::Error::Io));
    match written.and_then(|lines| out.flush().map(|()| lines).map_err(holotype_inspect::Error::Io)) {
        Ok(lines) => Ok(ExportReport { lines, vectors: 0 }),
        Err(holotype_inspect::Error::Io(error)) => Err(failed(error)),
        Err(error) => Err(inspect_failed(error)),
    }
}

fn write_file(snapshot: &Snapshot, file: &Path, args: &Args) -> Result<ExportReport, Failure> {
    let failed = |action| move |error: io::Error| Failure::from(Problem::io(file, action, &error));
    if fs::metadata(file).is_ok_and(|metadata| !metadata.is_file()) {
        let out = File::options().write(true).open(file).map_err(failed("write"))?;
        return write(snapshot, out, args, failed("write"));
    }
    replace(file, args.overwrite, |out| write(snapshot, &*out, args, failed("write")))
}

/// Writes a file that appears whole or not at all; one that exists is replaced only where `overwrite` says so.
fn replace<T>(file: &Path, overwrite: bool, write: impl FnOnce(&mut File) -> Result<T, Failure>) -> Result<T, Failure> {
    let failed = |action| move |error: io::Error| Failure::from(Problem::io(file, action, &error));
    if !overwrite && fs::symlink_metadata(file).is_ok() {
        let problem = Problem::new(Status::Wrong, "exists", format!("{}: the file exists", file.display()));
        return Err(problem.hint("name another file, or pass --overwrite to replace it").into());
    }
    let mut name = file.as_os_str().to_owned();
    name.push(".partial");
    let partial = PathBuf::from(name);
    let mut out = File::create(&partial).map_err(failed("write"))?;
    let written = write(&mut out).and_then(|report| {
        out.sync_all().map_err(failed("sync"))?;
        fs::rename(&partial, file).map_err(failed("rename the finished file to"))?;
        Ok(report)
    });
    if written.is_err() {
        let _ = fs::remove_file(&partial);
    }
    written
}

/// Output that remembers whether it was the one to fail: the engine does not know what it is called.
struct Watched<W> {
    out: W,
    failed: bool,
}

impl<W: Write> Watched<W> {
    fn new(out: W) -> Self {
        Watched { out, failed: false }
    }

    fn watch<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        self.failed |= done.is_err();
        done
    }
}

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.out.write(bytes);
        self.watch(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.out.flush();
        self.watch(done)
    }
}
