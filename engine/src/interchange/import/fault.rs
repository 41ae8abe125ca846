//! Faults of a line with the path of the faulty member, whose column is looked up later.

use crate::interchange::NpyError;
use crate::interchange::json::{Parser, find};
use crate::interchange::reader::{LineError, LineReader};
use crate::{Error, ErrorClass, ItemId};
use std::io::BufRead;

/// A fault of a line.
#[derive(Debug)]
pub(super) struct Fault {
    /// The faulty member, as names and array positions from the line's root; empty for the whole line.
    pub(super) path: Vec<String>,
    /// The column, if it is already known.
    column: Option<u64>,
    code: &'static str,
    message: String,
    hint: Option<String>,
}

/// The failure of importing a line.
#[derive(Debug)]
pub(super) enum Failure {
    /// The line is faulty; the import may continue without it.
    Line(Box<Fault>),
    /// The database or the files failed; the import ends.
    Fatal(Error),
}

impl Fault {
    pub(super) fn new(path: &[&str], code: &'static str, message: impl Into<String>) -> Fault {
        Fault { path: owned(path), column: None, code, message: message.into(), hint: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = Some(hint.into());
        self
    }

    /// The error with its place in the line that was read last.
    pub(super) fn locate<R: BufRead>(mut self, file: &str, line: u64, reader: &LineReader<R>) -> Error {
        let mut column = self.column.unwrap_or(1);
        // A missing member is reported at the object that lacks it.
        while column == 1 && !self.path.is_empty() {
            let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
            column = reader.column_of(&path);
            self.path.pop();
        }
        let file = file.to_owned();
        Error::Line { file, line, column, code: self.code, message: self.message, hint: self.hint }
    }
}

impl Failure {
    /// The failure with this faulty member, if it has none.
    pub(super) fn on(mut self, path: &[&str]) -> Failure {
        if let Failure::Line(fault) = &mut self
            && fault.path.is_empty()
        {
            fault.path = owned(path);
        }
        self
    }

    /// The failure with the line's key of an item instead of the engine's number.
    pub(super) fn naming(mut self, item: ItemId, key: &str) -> Failure {
        if let Failure::Line(fault) = &mut self {
            let number = item.to_string();
            let mut pieces = fault.message.split(&number);
            let mut message = pieces.next().unwrap_or_default().to_owned();
            for piece in pieces {
                let is_longer = piece.starts_with(|c: char| c.is_ascii_digit());
                message.push_str(&if is_longer { number.clone() } else { format!("'{key}'") });
                message.push_str(piece);
            }
            fault.message = message;
        }
        self
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        Failure::Line(Box::new(fault))
    }
}

impl From<&LineError> for Failure {
    fn from(error: &LineError) -> Failure {
        let LineError { column, message, hint, .. } = error.clone();
        Failure::Line(Box::new(Fault { path: Vec::new(), column: Some(column), code: "bad-line", message, hint }))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error.class() {
            ErrorClass::Input if !matches!(error, Error::ReadOnly) => {
                Fault::new(&[], error.code(), error.to_string()).into()
            }
            _ => Failure::Fatal(error),
        }
    }
}

impl From<NpyError> for Failure {
    fn from(error: NpyError) -> Failure {
        match error {
            NpyError::Io { file, source } => Failure::Fatal(Error::File { path: file, source }),
            error => Fault::new(&[], "vector", error.to_string()).into(),
        }
    }
}

/// Adds the faulty member of a line to a failure.
pub(super) trait At<T> {
    fn at(self, path: &[&str]) -> Result<T, Failure>;
}

impl<T, E: Into<Failure>> At<T> for Result<T, E> {
    fn at(self, path: &[&str]) -> Result<T, Failure> {
        self.map_err(|error| error.into().on(path))
    }
}

fn owned(path: &[&str]) -> Vec<String> {
    path.iter().map(|step| (*step).to_owned()).collect()
}

/// The key of a line that could not be read, if it can be found.
pub(super) fn key_in(text: &str) -> Option<String> {
    ["trace", "recall", "theme", "page"].iter().find_map(|kind| {
        let value = text.get(find(text, &[kind, "key"])?..)?;
        Parser::new(value).string().ok().map(|key| key.into_owned())
    })
}
