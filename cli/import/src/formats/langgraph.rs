//! `langgraph`: the SQLite file of `SqliteStore`, whose table `store` has a row a value.
//!
//! The prefix of a value is its episode. Of the value, the member that holds words is the text of the fact; without one
//! the value itself is.

use super::{first_text, names};
use crate::entry::{Fact, key};
use crate::files::Files;
use crate::intake::Intake;
use crate::{Format, ImportError};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};
use serde_json::Value;

const PREFIX: &str = "langgraph";

pub(crate) fn read(files: &Files, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    for name in names(Format::Langgraph, files)? {
        intake.in_file(&files.shown(name));
        intake.at(1, 0)?;
        let path =
            files.on_disk(name).ok_or_else(|| intake.error("got no file of its own, expected the path of one"))?;
        let open = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
        let failed = |intake: &Intake<'_>, error: rusqlite::Error| {
            intake.error(format!("got {error}, expected an SQLite file with the table store(prefix, key, value)"))
        };
        let database = open.map_err(|error| failed(intake, error))?;
        let mut statement =
            database.prepare("SELECT * FROM store ORDER BY prefix, key").map_err(|error| failed(intake, error))?;
        let columns: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
        let mut rows = statement.query([]).map_err(|error| failed(intake, error))?;
        let mut number = 0;
        loop {
            let Some(row) = rows.next().map_err(|error| failed(intake, error))? else { break };
            number += 1;
            intake.at(number, 0)?;
            value(intake, &columns, row)?;
        }
    }
    Ok(())
}

fn value(intake: &mut Intake<'_>, columns: &[String], row: &Row<'_>) -> Result<(), ImportError> {
    intake.count_read();
    let cell = |name: &str| {
        let at = columns.iter().position(|column| column == name)?;
        match row.get_ref(at).ok()? {
            ValueRef::Text(text) | ValueRef::Blob(text) => Some(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Integer(number) => Some(number.to_string()),
            ValueRef::Real(number) => Some(number.to_string()),
            ValueRef::Null => None,
        }
    };
    let (Some(prefix), Some(name), Some(stored)) = (cell("prefix"), cell("key"), cell("value")) else {
        intake.bad("got a row without `prefix`, `key` or `value`, expected all three");
        return Ok(());
    };
    // SQLite's own times are those of UTC.
    let stated = cell("updated_at").or_else(|| cell("created_at")).unwrap_or_default();
    let zoned = if stated.contains(' ') && !stated.contains('+') { format!("{stated}Z") } else { stated };
    let time = intake.time_of_text(&zoned)?;
    let parsed: Value = serde_json::from_str(&stored).unwrap_or(Value::Null);
    let text = match first_text(&parsed, &["memory", "content", "text", "data", "fact"]) {
        "" => parsed.as_str().unwrap_or(&stored),
        text => text,
    };
    let fact = Fact::new(key(&[PREFIX, &prefix, &name]), text).time(time).raw(stored.clone());
    intake.fact(fact.episode(format!("{PREFIX}/{prefix}")))
}
