//! The errors of this crate. Each names the file and says what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::log::Lsn;

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Bytes in a file that differ from those written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// The log page in the file, from 0 (the header page).
    pub page: u64,
    /// The offset in the file of the smallest unit that fails its check.
    pub offset: u64,
    /// The same place as a position in the log.
    pub position: Lsn,
    /// The fault.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: log page {}, byte offset {}: {}", self.file.display(), self.page, self.offset, self.what)
    }
}

/// An error of storage.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call to the operating system failed.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The attempted action, as a verb.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },

    /// Durable bytes have changed.
    #[error(
        "damaged: {0}; `holotype verify` lists all damage, `holotype salvage` writes what can be read into a new \
         database"
    )]
    Damaged(Damage),

    /// A file of the log is missing.
    #[error("{}: log segment {number} is missing; restore this file from a backup", path.display())]
    MissingSegment {
        /// Its expected path.
        path: PathBuf,
        /// Its number.
        number: u64,
    },

    /// The file that states the beginning of the log is damaged.
    #[error("{}: damaged: {what}; restore this file from a backup, or run `holotype salvage`", path.display())]
    DamagedFloor {
        /// The file.
        path: PathBuf,
        /// The fault.
        what: String,
    },

    /// The directory in which a log was to be created already holds one.
    #[error("{}: already holds a log", path.display())]
    LogExists {
        /// The log's directory.
        path: PathBuf,
    },

    /// The file is of another type.
    #[error("{}: not {expected}: it begins with {found:02x?}", path.display())]
    WrongMagic {
        /// The file.
        path: PathBuf,
        /// The expected type.
        expected: &'static str,
        /// Its first bytes.
        found: Vec<u8>,
    },

    /// A newer program wrote the file in a format that this one does not support. Nothing was changed.
    #[error("{}: written by a newer version of holotype: {what}; nothing was changed", path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// The unknown version or features, and what to do.
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

    /// A derived file is missing. Nothing is lost: it is rebuilt from the log.
    #[error("{}: missing; it is rebuilt from the log when the database is next opened for writing", path.display())]
    MissingFile {
        /// Its expected path.
        path: PathBuf,
    },

    /// A derived file is damaged. Nothing is lost: it is rebuilt from the log.
    #[error("{}: damaged: {what}; it is rebuilt from the log \
        when the database is next opened for writing", path.display())]
    DamagedFile {
        /// The file.
        path: PathBuf,
        /// The fault.
        what: String,
    },

    /// Another process writes to the database.
    #[error("{}: {} has the database open for writing; \
        close it there, or open it here read-only", path.display(), process(*pid, command))]
    Held {
        /// The lock file.
        path: PathBuf,
        /// The process that holds it; 0 if unknown.
        pid: u32,
        /// The name of its program; empty if unknown.
        command: String,
    },

    /// A file that this process has open for writing was deleted, or replaced by another file of the same name.
    #[error("{}: was deleted or replaced while this process had the database open for writing, as a restore from \
        a backup does; nothing more is written: close the database and open it again", path.display())]
    Replaced {
        /// The file.
        path: PathBuf,
    },

    /// Another handle kept the turn to write for longer than this one may wait.
    #[error("{}: {} did not give back its turn to write in time; \
        try again, or raise write_timeout", path.display(), process(*pid, command))]
    TurnHeld {
        /// The lock file.
        path: PathBuf,
        /// The process that has the turn; 0 if unknown.
        pid: u32,
        /// The name of its program; empty if unknown.
        command: String,
    },

    /// This process was forked from the one that opened the database, whose locks are not its own.
    #[error("{}: the database was opened before this process was forked; open it again here", path.display())]
    Forked {
        /// The lock file.
        path: PathBuf,
    },

    /// The directory is on a network file system, where locks and syncs cannot be trusted.
    #[error("{}: on a network file system, where locks and syncs cannot be trusted; \
        move the database to a local disk", path.display())]
    NetworkFileSystem {
        /// The directory.
        path: PathBuf,
    },

    /// The checkpoint does not belong to this log, or the log was rolled back to before it.
    #[error("the checkpoint at log position {position} does not fit the log: {why}")]
    CheckpointMismatch {
        /// The checkpoint's position.
        position: Lsn,
        /// The difference.
        why: String,
    },

    /// An option has a value outside its range.
    #[error("{name} is {value}, but must be {allowed}")]
    BadOption {
        /// The option.
        name: &'static str,
        /// The given value.
        value: u64,
        /// The allowed values.
        allowed: &'static str,
    },

    /// Something exceeds its limit.
    #[error("{what} has {len} bytes; the limit is {limit}")]
    TooLarge {
        /// The thing that is too large.
        what: &'static str,
        /// Its length in bytes.
        len: u64,
        /// The limit in bytes.
        limit: u64,
    },

    /// Record types from `0xf0` on are reserved for the log.
    #[error("record type {kind:#04x} is reserved")]
    ReservedKind {
        /// The requested type.
        kind: u8,
    },

    /// No segment could be prepared for the transaction. None of it was written, and the log remains usable.
    #[error("{}: cannot prepare a log segment of {len} bytes: {source}; \
        the transaction can be tried again", path.display())]
    NoRoom {
        /// The segment file.
        path: PathBuf,
        /// Its intended length.
        len: u64,
        /// The system's error.
        source: io::Error,
    },

    /// An earlier write or sync failed: the durable position is unknown until the database is opened again.
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

    /// No record starts at the position, or the position is past the end.
    #[error("log position {lsn}: {why}")]
    NoRecord {
        /// The requested position.
        lsn: Lsn,
        /// The reason.
        why: String,
    },

    /// Bytes that do not decode as the expected type.
    #[error("cannot decode {what}: {why}")]
    Decode {
        /// The expected type.
        what: &'static str,
        /// The reason.
        why: String,
    },

    /// A value that cannot be encoded.
    #[error("cannot encode {what}: {why}")]
    Encode {
        /// The type of the value.
        what: &'static str,
        /// The reason.
        why: String,
    },
}

impl Error {
    /// For `map_err`: the system failed to `action` the file at `path`.
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), action, source }
    }

    /// The error for a damaged derived file.
    pub(crate) fn damaged_file(path: &Path, what: impl Into<String>) -> Self {
        Self::DamagedFile { path: path.to_owned(), what: what.into() }
    }

    /// For `map_err` of a call on a derived file, which may be missing.
    pub(crate) fn derived_io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::NotFound => Self::MissingFile { path: path.to_owned() },
            _ => Self::Io { path: path.to_owned(), action, source },
        }
    }
}

/// An id in hexadecimal.
fn hex(id: &[u8; 16]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A process as messages name it.
fn process(pid: u32, command: &str) -> String {
    match (pid, command) {
        (0, _) => "another process".to_owned(),
        (pid, _) if pid == std::process::id() => format!("another handle of this process ({pid})"),
        (_, "") => format!("process {pid}"),
        _ => format!("process {pid} ({command})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_positions_and_ids() {
        let damage =
            Damage { file: "/db/1.log".into(), page: 3, offset: 12_300, position: Lsn(9), what: "no record".into() };
        assert_eq!(damage.to_string(), "/db/1.log: log page 3, byte offset 12300: no record");
        let mut found = [0; 16];
        found[15] = 0xa5;
        let told = Error::WrongDatabase { path: "/db".into(), expected: [0x1f; 16], found }.to_string();
        assert!(told.contains(&"1f".repeat(16)) && told.contains(&format!("{}a5", "00".repeat(15))), "{told}");
    }
}
