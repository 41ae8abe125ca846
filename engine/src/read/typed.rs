//! Typed rows: converts cells to Rust values and rows to tuples.
//!
//! A column of type `T` must be present in every row; one of type `Option<T>` may be absent.

use crate::model::time::{Timestamp, timestamp};
use crate::read::answer::Table;
use crate::read::cell::Cell;
use crate::{Error, Result};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A value that a cell converts to.
pub trait FromCell: Sized {
    /// The expected type, for messages.
    const EXPECTED: &'static str;

    /// Converts a cell. `None` if the cell has another type, or is absent but required.
    fn from_cell(cell: Option<&Cell>) -> Option<Self>;
}

/// A value that the cells of a row convert to, in column order.
pub trait FromCells: Sized {
    /// The number of columns.
    const COLUMNS: usize;

    /// Converts a row.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a cell of another type; the message names its column.
    fn from_cells(columns: &[String], row: &[Option<Cell>]) -> Result<Self>;
}

impl Table {
    /// The rows as typed values.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the number of columns differs, or for a cell of another type.
    pub fn typed<T: FromCells>(&self) -> Result<Vec<T>> {
        if T::COLUMNS != self.columns.len() {
            return Err(Error::Invalid(format!(
                "expected {} {}, but the rows have {}: {}",
                T::COLUMNS,
                if T::COLUMNS == 1 { "column" } else { "columns" },
                self.columns.len(),
                self.columns.join(", ")
            )));
        }
        self.rows.iter().map(|row| T::from_cells(&self.columns, row)).collect()
    }
}

impl<T: FromCell> FromCell for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn from_cell(cell: Option<&Cell>) -> Option<Self> {
        match cell {
            None => Some(None),
            some => T::from_cell(some).map(Some),
        }
    }
}

impl FromCell for Cell {
    const EXPECTED: &'static str = "any value";

    fn from_cell(cell: Option<&Cell>) -> Option<Self> {
        cell.cloned()
    }
}

impl FromCell for String {
    const EXPECTED: &'static str = "a text";

    fn from_cell(cell: Option<&Cell>) -> Option<Self> {
        match cell? {
            Cell::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
}

impl FromCell for i64 {
    const EXPECTED: &'static str = "a whole number, a time or a duration in microseconds";

    fn from_cell(cell: Option<&Cell>) -> Option<Self> {
        match cell? {
            Cell::Integer(number) | Cell::Time(number) | Cell::Duration(number) => Some(*number),
            _ => None,
        }
    }
}

impl FromCell for u64 {
    const EXPECTED: &'static str = "a whole number from 0";

    fn from_cell(cell: Option<&Cell>) -> Option<Self> {
        match cell? {
            Cell::Integer(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }
}

impl FromCell for f64 {
    const EXPECTED: &'static str = "a number";

    fn from_cell(cell: Option<&Cell>) -> Option<Self> {
        match cell? {
            Cell::Number(number) => Some(*number),
            Cell::Integer(number) => Some(*number as f64),
            _ => None,
        }
    }
}

impl FromCell for f32 {
    const EXPECTED: &'static str = f64::EXPECTED;

    fn from_cell(cell: Option<&Cell>) -> Option<Self> {
        f64::from_cell(cell).map(|number| number as f32)
    }
}

impl FromCell for u32 {
    const EXPECTED: &'static str = "a whole number from 0 to 4294967295";

    fn from_cell(cell: Option<&Cell>) -> Option<Self> {
        u64::from_cell(cell).and_then(|number| u32::try_from(number).ok())
    }
}

/// A time; other cells have none.
impl FromCell for SystemTime {
    const EXPECTED: &'static str = "a time";

    fn from_cell(cell: Option<&Cell>) -> Option<Self> {
        match cell? {
            Cell::Time(micros) if *micros >= 0 => UNIX_EPOCH.checked_add(Duration::from_micros(micros.unsigned_abs())),
            Cell::Time(micros) => UNIX_EPOCH.checked_sub(Duration::from_micros(micros.unsigned_abs())),
            _ => None,
        }
    }
}

/// A time; other cells have none.
impl FromCell for Timestamp {
    const EXPECTED: &'static str = SystemTime::EXPECTED;

    fn from_cell(cell: Option<&Cell>) -> Option<Self> {
        match cell? {
            Cell::Time(micros) => timestamp(*micros),
            _ => None,
        }
    }
}

impl FromCell for bool {
    const EXPECTED: &'static str = "true or false";

    fn from_cell(cell: Option<&Cell>) -> Option<Self> {
        match cell? {
            Cell::Bool(yes) => Some(*yes),
            _ => None,
        }
    }
}

/// A list; a single value converts to a list of one.
impl<T: FromCell> FromCell for Vec<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn from_cell(cell: Option<&Cell>) -> Option<Self> {
        match cell {
            Some(Cell::List(cells)) => cells.iter().map(|cell| T::from_cell(Some(cell))).collect(),
            one => T::from_cell(one).map(|one| vec![one]),
        }
    }
}

/// Reads the cell of one column.
fn read<T: FromCell>(columns: &[String], row: &[Option<Cell>], at: usize) -> Result<T> {
    let cell = row.get(at).and_then(Option::as_ref);
    T::from_cell(cell).ok_or_else(|| {
        let column = columns.get(at).map_or("?", String::as_str);
        let found = cell.map_or("nothing".to_owned(), |cell| format!("{:?}", cell.to_string()));
        Error::Invalid(format!("column {column} holds {found}, expected {}", T::EXPECTED))
    })
}

/// Reads rows of so many columns as tuples.
macro_rules! tuples {
    ($($count:literal: $($name:ident $at:tt),+;)+) => {
        $(impl<$($name: FromCell),+> FromCells for ($($name,)+) {
            const COLUMNS: usize = $count;

            fn from_cells(columns: &[String], row: &[Option<Cell>]) -> Result<Self> {
                Ok(($(read::<$name>(columns, row, $at)?,)+))
            }
        })+
    };
}

tuples! {
    1: A 0;
    2: A 0, B 1;
    3: A 0, B 1, C 2;
    4: A 0, B 1, C 2, D 3;
    5: A 0, B 1, C 2, D 3, E 4;
    6: A 0, B 1, C 2, D 3, E 4, F 5;
    7: A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
    9: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8;
    10: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9;
    11: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10;
    12: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(columns: &[&str], row: Vec<Option<Cell>>) -> Table {
        Table { columns: columns.iter().map(|name| (*name).to_owned()).collect(), rows: vec![row], ..Table::default() }
    }

    #[test]
    fn rows_become_tuples() {
        let table = table(&["key", "step", "trust"], vec![Some(Cell::text("t1")), None, Some(Cell::Integer(1))]);
        assert_eq!(table.typed::<(String, Option<u64>, f64)>().unwrap(), [("t1".to_owned(), None, 1.0)]);
    }

    #[test]
    fn what_does_not_fit_is_told_by_its_column() {
        let table = table(&["key", "step"], vec![Some(Cell::text("t1")), None]);
        let error = table.typed::<(u64, Option<u64>)>().unwrap_err().to_string();
        assert_eq!(error, "column key holds \"t1\", expected a whole number from 0");
        let error = table.typed::<(String, u64)>().unwrap_err().to_string();
        assert_eq!(error, "column step holds nothing, expected a whole number from 0");
        let error = table.typed::<(String,)>().unwrap_err().to_string();
        assert_eq!(error, "expected 1 column, but the rows have 2: key, step");
    }

    #[test]
    fn lists_are_read_whole_and_one_value_as_a_list() {
        let many = Cell::List(vec![Cell::text("a"), Cell::text("b")]);
        assert_eq!(Vec::<String>::from_cell(Some(&many)).unwrap(), ["a", "b"]);
        assert_eq!(Vec::<String>::from_cell(Some(&Cell::text("a"))).unwrap(), ["a"]);
    }
}
