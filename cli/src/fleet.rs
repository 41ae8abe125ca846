//! `holotype fleet`: many databases asked one question.
//!
//! Rows go to the best of all databases. Below them stands what they do not rest on: the databases that were not asked,
//! those that could not be, and where the router is out of date.

use crate::database;
use crate::failure::{Failure, Problem, Status};
use crate::render::{self, Format};
use crate::screen::{Ink, Screen};
use holotype::answer::{Output, Row, Table};
use holotype::cell::Cell;
use holotype::fleet::{Fleet, FleetAnswer, FleetOptions, FleetRecall, FleetRow};
use holotype::plural::counted;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Names of databases, failures and entries that are out of date which are told one by one.
const TOLD: usize = 5;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Ask a question: the best rows of all databases, each with its evidence
    Recall(Recall),
}

#[derive(Debug, clap::Args)]
struct Recall {
    /// The databases: a path, or a pattern in quotes, such as 'users/*.holo' or 'teams/**/*.holo'
    fleet: String,
    /// The question
    question: String,
    /// The router, made by `holotype route build`: only the databases that promise most are asked
    #[arg(long, value_name = "ROUTER")]
    router: Option<PathBuf>,
    /// The number of rows
    #[arg(short, value_name = "ROWS", default_value_t = holotype::fleet::DEFAULT_ROWS)]
    k: usize,
    /// Ask at most this many databases [default: with a router one in twenty, and 16 at least; else all]
    #[arg(long, value_name = "DATABASES")]
    ask: Option<usize>,
    /// Score by this profile in place of each database's own: default, agent, archive or helm
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// The same as --format json
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limits: Limits,
}

/// How much of the machine a fleet may use.
#[derive(Debug, clap::Args)]
pub(crate) struct Limits {
    /// Databases that are open at once, at most [default: by the limit of open files]
    #[arg(long, value_name = "DATABASES")]
    open: Option<usize>,
    /// Threads [default: one a processor]
    #[arg(long, value_name = "THREADS")]
    threads: Option<usize>,
}

pub(crate) fn run(args: &Args, format: Option<Format>) -> Result<Status, Failure> {
    match &args.action {
        Action::Recall(args) => recall(args, format),
    }
}

fn recall(args: &Recall, format: Option<Format>) -> Result<Status, Failure> {
    let format = match (args.json, format) {
        (true, None | Some(Format::Json)) => Format::Json,
        (true, Some(_)) => return Err(Problem::input("usage", "--json and --format name different formats").into()),
        (false, format) => format.unwrap_or_default(),
    };
    let fleet = open(&args.fleet, args.router.as_deref(), &args.limits)?;
    let mut recall = FleetRecall::default().limit(args.k);
    if let Some(databases) = args.ask {
        recall = recall.ask(databases);
    }
    if let Some(profile) = &args.profile {
        recall = recall.profile(profile);
    }
    let answer = fleet.recall(&args.question, &recall)?;
    let out = &mut BufWriter::new(io::stdout().lock());
    match format {
        Format::Table => write_cards(out, &answer, &fleet, &Screen::stdout())?,
        Format::Markdown => render::write(out, &[Output::Table(table(&answer, &fleet))], format, &Screen::stdout())?,
        Format::Json | Format::Jsonl => render::write_fact(out, &answer.to_json(), "", format)?,
    }
    out.flush()?;
    Ok(match (answer.failed.is_empty(), answer.asked.is_empty()) {
        (true, _) => Status::Done,
        (false, false) => Status::Found,
        (false, true) => Status::Unopened,
    })
}

/// Opens the databases of a pattern.
pub(crate) fn open(fleet: &str, router: Option<&Path>, limits: &Limits) -> Result<Fleet, Failure> {
    let mut options = FleetOptions { router: router.map(Path::to_owned), ..FleetOptions::default() };
    let given = database::options();
    options.database.embedder = given.embedder;
    options.database.accept_damage = given.accept_damage;
    options.max_open = limits.open.unwrap_or(options.max_open);
    options.threads = limits.threads.unwrap_or(options.threads);
    Ok(Fleet::open([fleet], options)?)
}

fn write_cards(out: &mut impl Write, answer: &FleetAnswer, fleet: &Fleet, screen: &Screen) -> io::Result<()> {
    let rows: Vec<(String, Row)> = answer.rows.iter().map(named).collect();
    render::write_named(out, &rows, screen)?;
    for note in notes(answer, fleet) {
        for line in render::text::wrap(&note, screen.width) {
            writeln!(out, "{}", screen.paint(Ink::Dim, &line))?;
        }
    }
    Ok(())
}

/// A row under the name of its database, with the score that it has among all.
fn named(found: &FleetRow) -> (String, Row) {
    let mut row = found.row.clone();
    row.parts.words -= row.score - found.score;
    row.score = found.score;
    (format!("{} {}", found.database.display(), row.key), row)
}

/// The rows for a document.
fn table(answer: &FleetAnswer, fleet: &Fleet) -> Table {
    let cells = |found: &FleetRow| {
        let quotes = found.row.citations.iter().filter_map(|citation| Some(format!("\"{}\"", citation.text.as_ref()?)));
        vec![
            Some(Cell::text(found.database.display().to_string())),
            Some(Cell::text(format!("{:.3}", found.score))),
            Some(Cell::text(found.row.key.clone())),
            Some(Cell::text(found.row.text.clone())),
            Some(Cell::text(quotes.collect::<Vec<_>>().join(", "))),
        ]
    };
    Table {
        verb: "recall",
        columns: ["database", "score", "key", "text", "citations"].map(str::to_owned).to_vec(),
        rows: answer.rows.iter().map(cells).collect(),
        notes: notes(answer, fleet),
        failed: false,
    }
}

/// All that the answer does not rest on, and how it was found; the number of rows comes last.
fn notes(answer: &FleetAnswer, fleet: &Fleet) -> Vec<String> {
    let mut notes = Vec::new();
    if !answer.answerable {
        notes.push("what is stored may not answer this question".to_owned());
    }
    notes.extend(answer.notes.iter().cloned());
    notes.extend(answer.failed.iter().take(TOLD).map(|failure| format!("not asked: {failure}")));
    notes.extend(more(answer.failed.len(), "failures"));
    if let Some(router) = fleet.router().filter(|_| !answer.outdated.is_empty()) {
        notes.extend(answer.outdated.iter().take(TOLD).map(|outdated| format!("out of date: {outdated}")));
        notes.extend(more(answer.outdated.len(), "databases"));
        notes.push(format!("`holotype route update` brings {} up to date", router.path().display()));
    }
    if !answer.not_asked.is_empty() {
        let next: Vec<String> = answer.not_asked.iter().take(3).map(|one| one.path.display().to_string()).collect();
        let count = counted(answer.not_asked.len() as u64, "databases");
        notes.push(format!("not asked, because others promise more: {count}, next {}", next.join(", ")));
    }
    let databases = counted(fleet.paths().len() as u64, "databases");
    let rows = counted(answer.rows.len() as u64, "rows");
    notes.push(format!("{rows}, from {} of {databases} asked", answer.asked.len()));
    notes
}

/// That a list goes on.
fn more(count: usize, what: &str) -> Option<String> {
    let left = count.checked_sub(TOLD).filter(|left| *left > 0)?;
    Some(format!("and {} (--format json lists all)", counted(left as u64, &format!("more {what}"))))
}
