//! `holotype check`: compares what items say about files and commands ([`crate::outside`]) with how these are now.
//!
//! Nothing in a database is ever run unless `--run-commands` says so: memory is data, and may have come from anywhere.
//! A command of an item whose text instructs its reader is not run even then.

use crate::database;
use crate::failure::{Failure, Problem, Status};
use crate::outside::{self, FIELD, Outside, Place};
use crate::render::{self, Format};
use crate::screen::Screen;
use holotype::answer::{Output, Table};
use holotype::cell::Cell;
use holotype::plural::counted;
use holotype::query::Params;
use holotype::{Durability, Edge, Holotype, ItemId, Mark, Snapshot};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// The folder that relative paths are in, and that commands run in
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    /// Run the commands that items name; without it they are listed and not run
    #[arg(long)]
    run_commands: bool,
    /// Show what is unchanged, too
    #[arg(long)]
    all: bool,
    /// Take the items whose source changed out of use; what rests on them is then weakened or unsupported
    #[arg(long)]
    retire: bool,
}

/// The state of what an item names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    Unchanged,
    Changed,
    Missing,
    NotRun,
    /// It could not be compared, in words.
    Unknown(String),
}

impl Found {
    fn words(&self, place: Option<&Place>) -> String {
        let is_file = !matches!(place, Some(Place::Command(_)));
        match self {
            Found::Unchanged => "unchanged".to_owned(),
            Found::Changed if is_file => "changed on disk".to_owned(),
            Found::Changed => "other output".to_owned(),
            Found::Missing => "not on disk".to_owned(),
            Found::NotRun => "not run: --run-commands runs it".to_owned(),
            Found::Unknown(why) => format!("not compared: {why}"),
        }
    }
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    if !args.root.is_dir() {
        let message = format!("--root {} is no folder", args.root.display());
        return Err(Problem::input("usage", message).hint("give the folder that relative paths are in").into());
    }
    let database = if args.retire { database::to_write(&args.db)? } else { database::to_read(&args.db)? };
    let snapshot = database.snapshot();
    let (mut known, mut rows, mut stale) = (BTreeMap::new(), Vec::new(), Vec::new());
    let (mut same, mut not_compared) = (0_u64, 0_u64);
    for named in named(&snapshot)? {
        let outside = Outside::parse(&named.value);
        let found = match &outside {
            None => Found::Unknown(format!("expected file:PATH@git:OID or command:COMMAND@git:OID as fields.{FIELD}")),
            Some(outside) => {
                let is_allowed = args.run_commands && !named.quarantined;
                known.entry(named.value.clone()).or_insert_with(|| compare(outside, &args.root, is_allowed)).clone()
            }
        };
        match found {
            Found::Unchanged => same += 1,
            Found::NotRun | Found::Unknown(_) => not_compared += 1,
            Found::Changed | Found::Missing => stale.push(named.item),
        }
        if args.all || found != Found::Unchanged {
            let place = outside.as_ref().map(|outside| &outside.place);
            let dependents = dependents(&snapshot, named.item)?;
            let words = match named.quarantined && found == Found::NotRun {
                true => "not run: its item instructs its reader".to_owned(),
                false => found.words(place),
            };
            let shown = match place {
                Some(Place::File(path)) => path.clone(),
                Some(Place::Command(command)) => format!("$ {command}"),
                None => named.value,
            };
            let cells = [Cell::Text(named.key), Cell::Text(shown), Cell::Text(words), Cell::count(dependents)];
            rows.push(cells.map(Some).to_vec());
        }
    }
    drop(snapshot);
    let retired = if args.retire { retire(&database, &stale)? } else { 0 };
    let mut notes = vec![format!("{same} unchanged, {} changed, {not_compared} not compared", stale.len())];
    if retired > 0 {
        notes.push(format!("{} out of use now", counted(retired, "items")));
    }
    database::close(database)?;
    let columns = ["key", "outside", "found", "dependents"].map(str::to_owned).to_vec();
    let table = Table { verb: "check", columns, rows, notes, ..Table::default() };
    render::write(&mut io::stdout().lock(), &[Output::Table(table)], format, &Screen::stdout())?;
    Ok(if stale.is_empty() { Status::Done } else { Status::Found })
}

/// An item that names something outside.
struct Named {
    item: ItemId,
    key: String,
    value: String,
    quarantined: bool,
}

/// The items in use that name something outside, in the order in which they were written.
fn named(snapshot: &Snapshot) -> holotype::Result<Vec<Named>> {
    let statement = format!(
        "find items where active = true and has fields.{FIELD} order by item return key, fields.{FIELD}, quarantined"
    );
    let mut named = Vec::new();
    for output in snapshot.query(&statement, &Params::new())? {
        let Output::Table(table) = output else { continue };
        for row in table.rows {
            let mut cells = row.into_iter();
            let (Some(Some(Cell::Text(key))), Some(Some(Cell::Text(value)))) = (cells.next(), cells.next()) else {
                continue;
            };
            let quarantined = matches!(cells.next(), Some(Some(Cell::Bool(true))));
            named.push(Named { item: snapshot.item_named(&key)?, key, value, quarantined });
        }
    }
    Ok(named)
}

fn compare(outside: &Outside, root: &Path, runs_commands: bool) -> Found {
    let judged = |bytes: &[u8]| if outside.is(bytes) { Found::Unchanged } else { Found::Changed };
    match &outside.place {
        Place::File(path) => match outside::bytes_of(root, path) {
            Ok(Some(bytes)) => judged(&bytes),
            Ok(None) => Found::Missing,
            Err(error) => Found::Unknown(error.to_string()),
        },
        Place::Command(_) if !runs_commands => Found::NotRun,
        Place::Command(command) => match output_of(command, root) {
            Ok(bytes) => judged(&bytes),
            Err(error) => Found::Unknown(error.to_string()),
        },
    }
}

/// The standard output of a command in the shell of the system, whatever its exit status.
fn output_of(command: &str, root: &Path) -> io::Result<Vec<u8>> {
    let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut run = Command::new(shell);
    run.args([flag, command]).current_dir(root).stdin(Stdio::null()).stderr(Stdio::null());
    Ok(run.output()?.stdout)
}

/// The number of items that rest on an item.
fn dependents(snapshot: &Snapshot, item: ItemId) -> holotype::Result<u64> {
    Ok((snapshot.linking(item, Edge::Cites)?.len() + snapshot.linking(item, Edge::DerivedFrom)?.len()) as u64)
}

fn retire(database: &Holotype, stale: &[ItemId]) -> holotype::Result<u64> {
    if stale.is_empty() {
        return Ok(0);
    }
    let mut transaction = database.begin()?;
    for item in stale {
        transaction.mark(*item, Mark::Inactive, Some("its source changed on disk".to_owned()))?;
    }
    transaction.commit(Durability::Sync)?;
    Ok(stale.len() as u64)
}
