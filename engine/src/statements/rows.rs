//! Streaming rows: an iterator that holds its snapshot and reads each row on demand.
//!
//! The ids that `find` lists are computed first, at four bytes per item; an item is read from the log when its row is
//! pulled. Other statements run completely before the first row.

use crate::model::item::ItemId;
use crate::model::plural::counted;
use crate::read::answer::{Output, Table};
use crate::read::cell::Cell;
use crate::read::item_view::{ItemView, cells};
use crate::read::snapshot::Snapshot;
use crate::read::typed::FromCells;
use crate::state::reader_position::ReaderPosition;
use crate::statements::listing::headings;
use crate::statements::prepared::Prepared;
use crate::statements::{find_rows, read};
use crate::{Error, Result};
use holotype_query::{Name, Params};

/// The rows of one statement, read on demand.
#[derive(Debug)]
pub struct Rows {
    columns: Vec<String>,
    source: Source,
}

/// The cells of a row; `None` for absent values.
pub type RowCells = Vec<Option<Cell>>;

#[derive(Debug)]
enum Source {
    Items(Box<Items>),
    Ready(std::vec::IntoIter<RowCells>),
}

/// Items whose cells are not read yet.
#[derive(Debug)]
pub(crate) struct Items {
    pub(crate) snapshot: Snapshot,
    pub(crate) reader_position: ReaderPosition,
    /// Each with the key it was found by.
    pub(crate) ids: std::vec::IntoIter<(ItemId, Option<String>)>,
    pub(crate) columns: Vec<Name>,
}

impl Items {
    fn next(&mut self) -> Option<Result<RowCells>> {
        let (id, key) = self.ids.next()?;
        let view = ItemView::new(&self.snapshot, &self.reader_position, id);
        Some(view.and_then(|view| cells(&view.found_by(key), &self.columns)))
    }
}

impl Rows {
    /// The names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The rows as typed values.
    pub fn typed<T: FromCells>(self) -> impl Iterator<Item = Result<T>> {
        let columns = self.columns.clone();
        self.map(move |row| {
            if columns.len() != T::COLUMNS {
                return Err(Error::Invalid(format!(
                    "the type reads {}, but the rows have {}",
                    counted(T::COLUMNS as u64, "columns"),
                    columns.len()
                )));
            }
            T::from_cells(&columns, &row?)
        })
    }
}

impl Iterator for Rows {
    type Item = Result<RowCells>;

    fn next(&mut self) -> Option<Result<RowCells>> {
        match &mut self.source {
            Source::Items(items) => items.next(),
            Source::Ready(rows) => rows.next().map(Ok),
        }
    }
}

impl Snapshot {
    /// The rows of a script of one statement that gives a table, one by one. Limits of the snapshot hold for all of
    /// them together.
    ///
    /// # Errors
    /// As [`Snapshot::run`]; [`Error::Invalid`] for a script of several statements and for a recall, whose rows come
    /// with their evidence and are read whole.
    pub fn rows(&self, prepared: &Prepared, params: &Params) -> Result<Rows> {
        let statements = prepared.bind(self, params)?;
        let [statement] = statements.as_slice() else {
            return Err(Error::Invalid(format!("one statement is expected, and this is {}", statements.len())));
        };
        let snapshot = self.metered().into_owned();
        if let Some(items) = find_rows(&snapshot, statement)? {
            return Ok(Rows { columns: headings(&items.columns), source: Source::Items(Box::new(items)) });
        }
        match read(&snapshot, statement)? {
            Output::Table(Table { columns, rows, .. }) => Ok(Rows { columns, source: Source::Ready(rows.into_iter()) }),
            Output::Answer(_) => {
                Err(Error::Invalid("a recall gives an answer with rows of its own, not a table".to_owned()))
            }
        }
    }
}
