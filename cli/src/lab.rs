//! `holotype lab tables`: the tables of the four papers, from a database with its receipts and the log of a run.
//!
//! The database says what was read, written and routed; the log says what only the run knows: which episodes were
//! solved, which answers are right, what a step cost ([`log`]). A table for which the log has no line is left out.
//! [docs/lab.md](../../../docs/lab.md) describes the lines and the columns.

mod log;
mod tables;

use crate::failure::{Failure, Status};
use crate::render::{self, Format};
use crate::screen::Screen;
use crate::{database, script};
use holotype::answer::{Output, Table};
use serde_json::json;
use std::io::{self, Write as _};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print the tables of the papers that the log of a run has lines for
    Tables {
        /// The database of the run
        db: PathBuf,
        /// The file with what only the run knows, one JSON object a line; `-` is stdin
        #[arg(long, value_name = "LOG")]
        run: PathBuf,
        /// Only these tables, such as helm-1; can be repeated
        #[arg(long, value_name = "NAME")]
        table: Vec<String>,
    },
}

/// A table of a paper.
struct PaperTable {
    name: &'static str,
    title: &'static str,
    table: Table,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let Action::Tables { db, run, table: wanted } = &args.action;
    let (text, name) = script::read_named(run)?;
    let log = log::Log::read(&text, &name)?;
    if let Some(unknown) = wanted.iter().find(|name| !tables::NAMES.contains(&name.as_str())) {
        let known = format!("the tables are {}", tables::NAMES.join(", "));
        return Err(crate::failure::Problem::input("usage", format!("no table {unknown:?}")).hint(known).into());
    }
    let database = database::to_read(db)?;
    let found = tables::all(&database.snapshot(), &log)?;
    let mut out = io::stdout().lock();
    for PaperTable { name, title, table } in found {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| wanted == name) {
            continue;
        }
        match format {
            Format::Json | Format::Jsonl => {
                let fact = json!({"table": name, "title": title, "rows": table.rows_to_json()});
                render::write_fact(&mut out, &fact, "", Format::Jsonl)?;
            }
            _ => {
                writeln!(out, "{title}")?;
                render::write(&mut out, &[Output::Table(table)], format, &Screen::stdout())?;
                writeln!(out)?;
            }
        }
    }
    Ok(database::status_of_reading(&database))
}
