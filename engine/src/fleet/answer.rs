//! Answers of a fleet: rows of several databases, and all that they do not rest on.

use crate::read::answer::Row;
use serde_json::{Map, Value, json};
use std::fmt;
use std::path::{Path, PathBuf};

/// The answer of a fleet to a question.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FleetAnswer {
    /// The rows, best first.
    pub rows: Vec<FleetRow>,
    /// False if no database that was asked may answer the question.
    pub answerable: bool,
    /// The databases that answered, in the order of their paths.
    pub asked: Vec<Asked>,
    /// The databases that were not asked because others promised more, most promising first.
    pub not_asked: Vec<NotAsked>,
    /// Databases and folders that could not be read, and why.
    pub failed: Vec<FleetFailure>,
    /// Databases of which the router has not the newest.
    pub outdated: Vec<Outdated>,
    /// Remarks on how the answer was found.
    pub notes: Vec<String>,
    /// The elapsed time in microseconds.
    pub micros: u64,
}

/// A row of one database.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FleetRow {
    /// The database, as the fleet names it.
    pub database: PathBuf,
    /// The score that rows of several databases are compared by: [`Row::score`], in which the words count as much as
    /// the rows of that database cover the question.
    pub score: f32,
    /// The row, as its database gives it.
    pub row: Row,
}

/// A database that answered.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Asked {
    /// The database.
    pub path: PathBuf,
    /// The commit that was queried.
    pub commit: u64,
    /// Its rows, those that are not among the best of all included.
    pub rows: usize,
    /// The score that the router expected of it; `None` without a router, or if the router does not know it.
    pub expected: Option<f32>,
}

/// A database that was not asked.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NotAsked {
    /// The database.
    pub path: PathBuf,
    /// The score that the router expected of it; `None` if the router does not know it.
    pub expected: Option<f32>,
}

/// A database or a folder that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FleetFailure {
    /// The path.
    pub path: PathBuf,
    /// The stable code of the error.
    pub code: &'static str,
    /// The error.
    pub message: String,
}

/// A database of which the router has not the newest.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outdated {
    /// The database.
    pub path: PathBuf,
    /// The reason.
    pub why: Staleness,
}

/// The reason for which an entry of a router is out of date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Staleness {
    /// The database was written to since. The commit of the entry, and the present one where the database was asked.
    Written {
        /// The commit of the entry.
        routed: u64,
        /// The present commit.
        now: Option<u64>,
    },
    /// The router has no entry of it.
    Unknown,
    /// The router has an entry of it, and it is no longer there.
    Gone,
}

impl FleetFailure {
    pub(super) fn new(path: &Path, error: &crate::Error) -> FleetFailure {
        FleetFailure { path: path.to_owned(), code: error.code(), message: error.to_string() }
    }
}

impl Staleness {
    /// The reason in a word: `written`, `unknown`, `gone`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Staleness::Written { .. } => "written",
            Staleness::Unknown => "unknown",
            Staleness::Gone => "gone",
        }
    }
}

impl fmt::Display for Outdated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.why {
            Staleness::Written { routed, now: Some(now) } => {
                write!(f, "{path} is at commit {now}, the router at {routed}")
            }
            Staleness::Written { routed, now: None } => write!(f, "{path} was written to after commit {routed}"),
            Staleness::Unknown => write!(f, "{path} is not in the router"),
            Staleness::Gone => write!(f, "{path} is in the router and no longer there"),
        }
    }
}

impl fmt::Display for FleetFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display().to_string();
        match self.message.contains(&path) {
            true => write!(f, "{}", self.message),
            false => write!(f, "{path}: {}", self.message),
        }
    }
}

impl FleetRow {
    /// The row as JSON: its database, the score among all databases, and the columns of [`Row::to_json`].
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("database".into(), text_of(&self.database));
        object.insert("fleet_score".into(), crate::read::cell::round(f64::from(self.score)).into());
        if let Value::Object(columns) = self.row.to_json(None) {
            object.extend(columns);
        }
        object.into()
    }
}

impl FleetAnswer {
    /// The answer as JSON.
    pub fn to_json(&self) -> Value {
        let expected = |expected: Option<f32>| expected.map(|expected| crate::read::cell::round(f64::from(expected)));
        let asked = |asked: &Asked| {
            json!({
                "database": text_of(&asked.path), "commit": asked.commit, "rows": asked.rows,
                "expected": expected(asked.expected),
            })
        };
        let not_asked = |one: &NotAsked| json!({"database": text_of(&one.path), "expected": expected(one.expected)});
        let outdated = |one: &Outdated| {
            let (routed, now) = match one.why {
                Staleness::Written { routed, now } => (Some(routed), now),
                _ => (None, None),
            };
            json!({"database": text_of(&one.path), "why": one.why.as_str(), "routed": routed, "now": now})
        };
        let failed = |one: &FleetFailure| json!({"path": text_of(&one.path), "code": one.code, "message": one.message});
        json!({
            "answerable": self.answerable,
            "rows": self.rows.iter().map(FleetRow::to_json).collect::<Vec<_>>(),
            "asked": self.asked.iter().map(asked).collect::<Vec<_>>(),
            "not_asked": self.not_asked.iter().map(not_asked).collect::<Vec<_>>(),
            "failed": self.failed.iter().map(failed).collect::<Vec<_>>(),
            "outdated": self.outdated.iter().map(outdated).collect::<Vec<_>>(),
            "notes": self.notes,
            "micros": self.micros,
        })
    }
}

fn text_of(path: &Path) -> Value {
    path.display().to_string().into()
}
