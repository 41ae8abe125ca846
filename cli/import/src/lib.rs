//! Importers: the logs of agent harnesses, the exports of chats and the memories of other systems, as items.
//!
//! Each format is one reader in `formats`; it turns a file into traces and facts (`entry`) and knows nothing of the
//! database. `intake` counts them and applies the options, `writer` compares them with the database and writes.
//!
//! | module | for |
//! |---|---|
//! | `files`, `text`, `json` | folders, ZIPs, encodings; lines; documents larger than memory |
//! | `time` | the forms of times |
//! | `format`, `guess` | the names of formats; the format that a file looks like |
//! | `evidence` | the trace that holds the words of a foreign fact |
//!
//! Invariants:
//! 1. An import can be run again: an item has the key of its source, and the same text under the same key is known.
//! 2. Other text under the key of a trace is a new version, `KEY@HASH`, which supersedes the one before it. Other text
//!    under the key of a fact updates it.
//! 3. No input ends an import but one that cannot be read at all, and a time without a zone: unknown lines are counted,
//!    wrong ones reported with their place.
//! 4. A foreign fact is never taken for grounded: it is marked `ungrounded`, or cites its own words in a trace.
//! 5. Memory stays within a batch, the longest value, and the calls that wait for their outcome.

mod batch;
mod entry;
mod evidence;
mod files;
mod format;
mod formats;
mod guess;
mod intake;
mod json;
mod map;
mod text;
mod time;
mod writer;

pub use format::Format;
pub use guess::guess;
pub use intake::{Problem, Report};
pub use map::ColumnMap;

use files::Files;
use holotype::{Durability, Holotype};
use intake::Intake;
use jiff::tz::TimeZone;
use std::io;
use std::path::{Path, PathBuf};

/// Options of an import.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Read, compare and count, and write nothing.
    pub dry_run: bool,
    /// Leave out what is older, in microseconds since the epoch.
    pub since: Option<i64>,
    /// The zone of times that state none.
    pub zone: Option<TimeZone>,
    /// The columns of a table.
    pub map: ColumnMap,
    /// The durability of each batch.
    pub durability: Durability,
}

/// The reason why an import ended.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The database refused something.
    #[error(transparent)]
    Database(#[from] holotype::Error),
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Something in a file keeps all of it from being understood.
    #[error("{file}:{line}: {message}")]
    Input {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The thing that was got, and the one that was expected.
        message: String,
    },
    /// The caller ended it.
    #[error("interrupted")]
    Interrupted,
    /// An option is wrong.
    #[error("{0}")]
    Option(String),
    /// The program was built without the reader of this format.
    #[error(
        "this program was built without the format {format}, whose library is large: build it with \
         `cargo build --release -p holotype-cli --features {format}`"
    )]
    Feature {
        /// The format, which is the name of the feature.
        format: Format,
    },
}

/// Imports a file, a folder, a ZIP or standard input (`-`). `progress` is called with the bytes read so far, and ends
/// the import when it returns false.
///
/// # Errors
/// [`ImportError`]; what was committed before it stays, and the import can be run again.
pub fn import(
    database: &Holotype,
    format: Format,
    path: &Path,
    options: &Options,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Report, ImportError> {
    format.check_built()?;
    options.map.check_format(format)?;
    let files = Files::open(path)?;
    let mut intake = Intake::new(database, options, progress);
    formats::read(format, &files, &mut intake)?;
    intake.finish()
}

/// The size in bytes of what an import would read; 0 if it is unknown.
pub fn size(path: &Path) -> u64 {
    // Opening a pipe would take its first bytes.
    let is_kept = path.metadata().is_ok_and(|metadata| metadata.is_file() || metadata.is_dir());
    if is_kept { Files::open(path).map_or(0, |files| files.len()) } else { 0 }
}

/// The zone of that name: `Europe/Zurich`, `UTC`, `+02:00`.
///
/// # Errors
/// [`ImportError::Option`].
pub fn zone(name: &str) -> Result<TimeZone, ImportError> {
    time::zone(name).map_err(ImportError::Option)
}

/// A time in one of the forms that imports understand, in microseconds since the epoch.
///
/// # Errors
/// [`ImportError::Option`].
pub fn moment(text: &str, zone: Option<&TimeZone>) -> Result<i64, ImportError> {
    time::from_text(text, zone).map_err(|fault| ImportError::Option(fault.to_string()))
}

/// Reads a text in a format, drops what it holds and gives the counts; `None` if nothing of it can be read. For tests,
/// which look for panics too.
#[doc(hidden)]
pub fn read_only(format: Format, name: &str, bytes: &[u8]) -> Option<Report> {
    let files = Files::from_bytes(name, bytes.to_vec());
    let options = Options { zone: Some(TimeZone::UTC), ..Options::default() };
    let mut progress = |_| true;
    let mut intake = Intake::without_database(&options, &mut progress);
    formats::read(format, &files, &mut intake).ok()?;
    intake.finish().ok()
}
