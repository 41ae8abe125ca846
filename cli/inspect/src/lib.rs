//! The inspector: shows why an agent believed something.
//!
//! ```text
//! holotype inspect      server  ->  guard (token, cookie, Host, Origin)  ->  views  ->  Snapshot
//! holotype export --html            export: the same page with its data inside
//! ```
//!
//! Every view is JSON made from one snapshot by statements of the query language; the page draws it. A request reads
//! the newest commit, beside writers, and writes nothing.
//!
//! Invariants:
//! 1. The page asks no other host: its parts are in this crate, and their checksums are pinned (`page`).
//! 2. Nothing is answered without the cookie of this run, or for another Host or Origin (`guard`).
//! 3. Text of the memory reaches the page as data; the page never parses it as HTML.

mod change;
mod export;
mod funnel;
mod guard;
mod health;
mod lists;
mod page;
mod rows;
mod server;
mod views;

pub use export::{ExportOptions, Exported, Items, export_html, export_stories};
pub use server::{Inspector, Running};

/// A failure of the inspector.
#[derive(Debug)]
pub enum Error {
    /// The database failed, or refused a request.
    Database(holotype::Error),
    /// Listening or writing failed.
    Io(std::io::Error),
    /// A request is wrong.
    Invalid(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Database(error) => error.fmt(f),
            Error::Io(error) => error.fmt(f),
            Error::Invalid(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}

impl From<holotype::Error> for Error {
    fn from(error: holotype::Error) -> Self {
        Error::Database(error)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Error::Io(error)
    }
}

/// The result of a call of the inspector.
pub type Result<T> = std::result::Result<T, Error>;
