//! `holotype stats`: what a database holds, with its files and limits, as names and values.

use crate::database;
use crate::failure::{Failure, Status};
use crate::render::{self, Format};
use crate::screen::Screen;
use holotype::answer::{Output, Table};
use serde_json::{Map, Value};
use std::io;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let database = database::to_read(&args.db)?;
    let table = database.stats()?.to_table();
    let out = &mut io::stdout().lock();
    match format {
        Format::Json | Format::Jsonl => render::write_fact(out, &object_of(&table), "", format)?,
        _ => render::write(out, &[Output::Table(table)], format, &Screen::stdout())?,
    }
    Ok(database::status_of_reading(&database))
}

/// The rows as one object from name to value.
fn object_of(table: &Table) -> Value {
    let member = |row: &Vec<Option<holotype::cell::Cell>>| match row.as_slice() {
        [Some(name), value] => Some((
            name.to_string().trim_start().to_owned(),
            value.as_ref().map_or(Value::Null, |value| value.to_json()),
        )),
        _ => None,
    };
    table.rows.iter().filter_map(member).collect::<Map<_, _>>().into()
}
