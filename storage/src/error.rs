//! What can go wrong with durable bytes, each with what a person can act on.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::log::Lsn;

/// The result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Bytes in a file that are not what was written there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// The log page in the file, from 0 (the header page).
    pub page: u64,
    /// The byte in the file where the smallest unit that fails its check begins.
    pub offset: u64,
    /// The same place as a position in the log.
    pub position: Lsn,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: log page {}, byte offset {}: {}", self.file.display(), self.page, self.offset, self.what)
    }
}

/// Why storage could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was tried, as a verb.
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },

    /// Bytes that were durable have changed.
    #[error("damaged: {0}; `holotype verify` lists all damage, and the database still opens read-only up to there")]
    Damaged(Damage),

    /// A file of the log is not there.
    #[error("{}: log segment {number} is missing; restore this file from a backup", path.display())]
    MissingSegment {
        /// Where it should be.
        path: PathBuf,
        /// Its number.
        number: u64,
    },

    /// The file that says where the log begins is not what was written.
    #[error("{}: damaged: {what}; restore this file from a backup, or salvage what the log holds", path.display())]
    DamagedFloor {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },

    /// There is a log already where one was to be created.
    #[error("{}: holds a log already", path.display())]
    LogExists {
        /// The log's directory.
        path: PathBuf,
    },

    /// The file is something else.
    #[error("{}: not {expected}: it begins with {found:02x?}", path.display())]
    WrongMagic {
        /// The file.
        path: PathBuf,
        /// What it should be.
        expected: &'static str,
        /// Its first bytes.
        found: Vec<u8>,
    },

    /// The file was written by a newer program in a way this one cannot take on. Nothing was changed.
    #[error("{}: written by a newer version of holotype: {what}; nothing was changed", path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// The version or the features this program does not know, and what to do.
        what: String,
    },

    /// The file belongs to another database.
    #[error("{}: belongs to database {}, not to {}", path.display(), hex(found), hex(expected))]
    WrongDatabase {
        /// The file.
        path: PathBuf,
        /// The id asked for.
        expected: [u8; 16],
        /// The id in the file.
        found: [u8; 16],
    },

    /// A derived file is not there. It is no loss: everything in it comes from the log.
    #[error("{}: missing; it is rebuilt from the log when the database is next opened for writing", path.display())]
    MissingFile {
        /// Where it should be.
        path: PathBuf,
    },

    /// A derived file is not what was written. It is no loss: everything in it comes from the log.
    #[error("{}: damaged: {what}; it is rebuilt from the log when the database is next opened for writing", path.display())]
    DamagedFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },

    /// Another process writes to the database.
    #[error("{}: process {pid} has the database open for writing; close it there, or open it here read-only", path.display())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// The process that holds it; 0 when it has not said.
        pid: u32,
    },

    /// The directory lies where locks and syncs cannot be trusted.
    #[error("{}: lies on a network file system, where locks and syncs cannot be trusted; move the database to a local disk", path.display())]
    NetworkFileSystem {
        /// The directory.
        path: PathBuf,
    },

    /// The checkpoint does not belong to this log, or the log has been rolled back behind it.
    #[error("the checkpoint at log position {position} does not fit the log: {why}")]
    CheckpointMismatch {
        /// The checkpoint's position.
        position: Lsn,
        /// What differs.
        why: String,
    },

    /// An option has a value outside its range.
    #[error("{name} is {value}, but must be {allowed}")]
    BadOption {
        /// The option.
        name: &'static str,
        /// What was given.
        value: u64,
        /// What is allowed.
        allowed: &'static str,
    },

    /// More than a limit allows.
    #[error("{what} has {len} bytes; the limit is {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its length in bytes.
        len: u64,
        /// The limit in bytes.
        limit: u64,
    },

    /// The record types from `0xf0` on are the log's own.
    #[error("record type {kind:#04x} is reserved")]
    ReservedKind {
        /// The type asked for.
        kind: u8,
    },

    /// No room could be made for the transaction. Nothing of it was written and the log can go on.
    #[error("{}: cannot prepare a log segment of {len} bytes: {source}; the transaction can be tried again", path.display())]
    NoRoom {
        /// The segment file.
        path: PathBuf,
        /// How long it was to be.
        len: u64,
        /// The system's answer.
        source: io::Error,
    },

    /// A write or sync failed before: what is durable is not known until the database is opened again.
    #[error("the log stopped after a failed write ({why}); open the database again")]
    Poisoned {
        /// The failure that stopped it.
        why: Arc<str>,
    },

    /// The log was closed.
    #[error("the log is closed")]
    Closed,

    /// The log was opened for reading only.
    #[error("the log was opened read-only")]
    ReadOnly,

    /// A position that no record starts at, or that lies past the end.
    #[error("log position {lsn}: {why}")]
    NoRecord {
        /// The position asked for.
        lsn: Lsn,
        /// Why there is nothing to read.
        why: String,
    },

    /// Bytes that do not decode as what they should be.
    #[error("cannot decode {what}: {why}")]
    Decode {
        /// The type that was to be decoded.
        what: &'static str,
        /// What is wrong.
        why: String,
    },

    /// A value that cannot be encoded.
    #[error("cannot encode {what}: {why}")]
    Encode {
        /// The type that was to be encoded.
        what: &'static str,
        /// What is wrong.
        why: String,
    },
}

impl Error {
    /// For `map_err`: the system refused `action` on `path`.
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), action, source }
    }

    /// A derived file is not what was written.
    pub(crate) fn damaged_file(path: &Path, what: impl Into<String>) -> Self {
        Self::DamagedFile { path: path.to_owned(), what: what.into() }
    }

    /// For `map_err` where a derived file may be missing.
    pub(crate) fn derived_io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::NotFound => Self::MissingFile { path: path.to_owned() },
            _ => Self::Io { path: path.to_owned(), action, source },
        }
    }
}

/// Sixteen bytes as people compare them.
fn hex(id: &[u8; 16]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_ids_are_told() {
        let damage =
            Damage { file: "/db/1.log".into(), page: 3, offset: 12_300, position: Lsn(9), what: "no record".into() };
        assert_eq!(damage.to_string(), "/db/1.log: log page 3, byte offset 12300: no record");
        let mut found = [0; 16];
        found[15] = 0xa5;
        let told = Error::WrongDatabase { path: "/db".into(), expected: [0x1f; 16], found }.to_string();
        assert!(told.contains(&"1f".repeat(16)) && told.contains(&format!("{}a5", "00".repeat(15))), "{told}");
    }
}
