//! Other embedded databases that make the same appends durable.
//!
//! | engine | a record is | a commit is durable by |
//! |---|---|---|
//! | sqlite | a row of a table with a number for its key | `journal_mode = WAL`, `synchronous = FULL` |
//! | redb | a key of 8 bytes and its text | `Durability::Immediate` |
//!
//! Neither indexes words, follows where things come from, or makes records tamper-evident: they are the price of a
//! durable row. Writers of one process share redb's handle; with SQLite each has a connection of its own, and waits for
//! the others.

use super::{Arguments, Mode, timed};
use crate::Result;
use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Measures all of them in this mode.
pub(super) fn append(arguments: &Arguments, mode: &Mode, dir: &Path) -> Result<()> {
    sqlite(arguments, mode, &dir.join("sqlite"))?;
    redb(arguments, mode, &dir.join("redb"))
}

fn sqlite(arguments: &Arguments, mode: &Mode, path: &Path) -> Result<()> {
    thread_local! {
        static CONNECTION: RefCell<Option<rusqlite::Connection>> = const { RefCell::new(None) };
    }
    connect(path)?.execute("create table records (number integer primary key, text text not null)", [])?;
    let timed = timed(arguments, mode, |texts| {
        CONNECTION.with_borrow_mut(|connection| {
            let connection = match connection {
                Some(connection) => connection,
                none => none.insert(connect(path)?),
            };
            let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let mut insert = transaction.prepare_cached("insert into records (text) values (?1)")?;
            for text in &texts {
                insert.execute([text])?;
            }
            drop(insert);
            Ok(transaction.commit()?)
        })
    })?;
    println!("{}", timed.line("sqlite", arguments, mode));
    Ok(())
}

fn connect(path: &Path) -> Result<rusqlite::Connection> {
    let connection = rusqlite::Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(60))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    Ok(connection)
}

fn redb(arguments: &Arguments, mode: &Mode, path: &Path) -> Result<()> {
    const RECORDS: redb::TableDefinition<'_, u64, &str> = redb::TableDefinition::new("records");
    let database = redb::Database::create(path)?;
    let next = AtomicU64::new(0);
    let timed = timed(arguments, mode, |texts| {
        let transaction = database.begin_write()?;
        let mut table = transaction.open_table(RECORDS)?;
        for text in &texts {
            table.insert(next.fetch_add(1, Ordering::Relaxed), text.as_str())?;
        }
        drop(table);
        Ok(transaction.commit()?)
    })?;
    println!("{}", timed.line("redb", arguments, mode));
    Ok(())
}
