//! Everything that can go wrong, in words a person can act on, with a code a program can rely on.
//!
//! Bad input, bad bytes and full disks are values of [`Error`]; a broken promise of our own is an assertion.
//! [`Error::code`] is stable; the message may improve. [`Error::class`] says what kind of trouble it is, which the
//! command line turns into its exit status.

use crate::item::UnknownName;
use std::path::PathBuf;

/// The result of an operation of the database.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of trouble an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The call, a statement or an input is wrong.
    Input,
    /// The database cannot be opened: missing, locked, of a newer format, damaged.
    Open,
    /// Reading or writing failed, or the disk is full.
    Io,
    /// A limit stopped it.
    Limit,
}

/// An error of the database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no database at the path.
    #[error("there is no database at {}; `holotype create` makes one", path.display())]
    NotFound {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// There is something at the path already.
    #[error("{} exists already; choose another path, or open it instead of creating it", path.display())]
    Exists {
        /// What exists.
        path: PathBuf,
    },
    /// The log is damaged: the database may be opened read-only.
    #[error("the log is damaged: {detail}; open it read-only, or run `holotype verify` to see how far the damage goes")]
    Damaged {
        /// File, page, offset, and what is wrong there.
        detail: String,
    },
    /// Something was forgotten after the snapshot was taken.
    #[error("something was forgotten since this snapshot was taken, which ends it; take a new one")]
    SnapshotForgotten,
    /// A file or record holds something that cannot be.
    #[error("{what}; `holotype verify` shows where, `holotype rebuild` brings derived files back from the log")]
    Corrupt {
        /// What cannot be.
        what: String,
    },
    /// A record of a type this version does not know.
    #[error("the log holds a record of type {kind}, which this version does not know; open it with a newer holotype")]
    UnknownRecord {
        /// The type number.
        kind: u8,
    },
    /// The writer failed earlier; nothing more is written until the database is opened again.
    #[error("an earlier write or sync failed, so nothing more is written: open the database again ({detail})")]
    Poisoned {
        /// What failed.
        detail: String,
    },
    /// The database was opened for reading.
    #[error("the database is open for reading only; open it for writing to change it")]
    ReadOnly,
    /// An attribute has a name that is not one of the known ones.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// Something was named that does not exist.
    #[error("there is no {what} {name}")]
    Missing {
        /// What was looked for: item, episode, page.
        what: &'static str,
        /// How it was named.
        name: String,
    },
    /// `as of` a commit that is not there yet.
    #[error("there is no commit {commit} yet: the newest is {newest}")]
    FutureCommit {
        /// The commit asked for.
        commit: u64,
        /// The newest there is.
        newest: u64,
    },
    /// Something lies before the commit from which on history is kept.
    #[error("{what} lies before commit {since}, from which on history is kept; an archive of the log may hold it")]
    BeforeHistory {
        /// What was asked for.
        what: String,
        /// The commit from which on history is kept.
        since: u64,
    },
    /// The caller's key is taken.
    #[error("the key {key:?} is taken by another {what}; keys are unique in a database")]
    DuplicateKey {
        /// The key.
        key: String,
        /// What holds it.
        what: &'static str,
    },
    /// A trace with the same tool, log and step is there.
    #[error(
        "a trace with tool {tool:?}, log {log_id:?} and step {step} is there already; (tool, log_id, step) is unique"
    )]
    DuplicateTrace {
        /// The tool.
        tool: String,
        /// The log.
        log_id: String,
        /// The step.
        step: u64,
    },
    /// An input is wrong.
    #[error("{0}")]
    Invalid(String),
    /// A vector does not fit the space.
    #[error("{0}")]
    Vector(String),
    /// A pointer does not resolve.
    #[error("the pointer to {target} does not resolve: {reason}")]
    UnresolvedPointer {
        /// What it points to.
        target: String,
        /// Why it does not resolve.
        reason: String,
    },
    /// The hash given with a pointer disagrees with the bytes.
    #[error("the hash given for the pointer to {target} disagrees with the bytes: given {given}, found {found}")]
    HashMismatch {
        /// What it points to.
        target: String,
        /// The hash that was given.
        given: String,
        /// The hash of the bytes.
        found: String,
    },
    /// One or more errors of a statement.
    #[error("{0}")]
    Query(holotype_query::Errors),
    /// A statement or clause that this version parses but does not run.
    #[error("`{what}` is understood but not run yet by this version")]
    NotYet {
        /// The statement or clause.
        what: String,
    },
    /// A line of an import is wrong.
    #[error("{file}:{line}:{column}: {message}")]
    Line {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The column, from 1.
        column: u64,
        /// The stable code of the cause.
        code: &'static str,
        /// What is wrong.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A transaction could not begin in time, because a limit of what is not settled yet stays reached. It may be tried again.
    #[error(
        "{limit} is reached ({used} of {max}) and nothing brought it down in time: try again, let old snapshots go, or raise it"
    )]
    Busy {
        /// The option that sets the limit.
        limit: &'static str,
        /// How much is used.
        used: u64,
        /// How much there may be.
        max: u64,
    },
    /// A limit was reached.
    #[error("{what} is limited to {limit}, and this needs {needed}")]
    Limit {
        /// What is limited.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// What was needed.
        needed: u64,
    },
    /// The work was stopped by its caller.
    #[error("stopped: {0}")]
    Cancelled(&'static str),
    /// A proof cannot be made.
    #[error("{what}")]
    Proof {
        /// Why not.
        what: String,
    },
    /// Storage failed.
    #[error(transparent)]
    Storage(#[from] holotype_storage::Error),
    /// An index failed.
    #[error(transparent)]
    Index(holotype_index::Error),
    /// A file outside the database could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl From<holotype_index::Error> for Error {
    /// A failure of storage is told the same, whoever met it.
    fn from(error: holotype_index::Error) -> Error {
        match error {
            holotype_index::Error::Storage(error) => Error::Storage(error),
            error => Error::Index(error),
        }
    }
}

impl Error {
    /// The stable code of the error, for programs.
    pub fn code(&self) -> &'static str {
        use holotype_storage::Error as Storage;
        match self {
            Error::NotFound { .. } => "not-found",
            Error::Exists { .. } => "exists",
            Error::Damaged { .. } | Error::Corrupt { .. } => "damaged",
            Error::UnknownRecord { .. } => "newer-format",
            Error::SnapshotForgotten => "snapshot-forgotten",
            Error::Poisoned { .. } => "poisoned",
            Error::ReadOnly => "read-only",
            Error::UnknownName(_) => "unknown-name",
            Error::Missing { .. } => "missing",
            Error::FutureCommit { .. } => "future-commit",
            Error::BeforeHistory { .. } => "before-history",
            Error::DuplicateKey { .. } => "duplicate-key",
            Error::DuplicateTrace { .. } => "duplicate-trace",
            Error::Invalid(_) => "invalid",
            Error::Vector(_) => "vector",
            Error::UnresolvedPointer { .. } => "unresolved-pointer",
            Error::HashMismatch { .. } => "hash-mismatch",
            Error::Query(errors) => errors.first().map_or("query", |error| error.code),
            Error::NotYet { .. } => "not-yet",
            Error::Line { code, .. } => code,
            Error::Limit { .. } => "limit",
            Error::Busy { .. } => "busy",
            Error::Cancelled(_) => "cancelled",
            Error::Proof { .. } => "proof",
            Error::Storage(error) => match error {
                Storage::Damaged(_)
                | Storage::DamagedFile { .. }
                | Storage::DamagedFloor { .. }
                | Storage::MissingSegment { .. }
                | Storage::Decode { .. } => "damaged",
                Storage::NewerFormat { .. } => "newer-format",
                Storage::Held { .. } => "locked",
                Storage::NoRoom { .. } => "disk-full",
                Storage::Poisoned { .. } => "poisoned",
                Storage::TooLarge { .. } => "limit",
                Storage::BadOption { .. } => "invalid",
                Storage::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => "disk-full",
                Storage::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => "no-permission",
                _ => "storage",
            },
            Error::Index(_) => "index",
            Error::File { source, .. } => match source.kind() {
                std::io::ErrorKind::StorageFull => "disk-full",
                std::io::ErrorKind::PermissionDenied => "no-permission",
                std::io::ErrorKind::NotFound => "not-found",
                _ => "io",
            },
        }
    }

    /// What kind of trouble it is.
    pub fn class(&self) -> ErrorClass {
        use holotype_storage::Error as Storage;
        match self {
            Error::NotFound { .. } | Error::Damaged { .. } | Error::UnknownRecord { .. } => ErrorClass::Open,
            Error::Corrupt { .. } | Error::Poisoned { .. } | Error::File { .. } => ErrorClass::Io,
            Error::Limit { .. } | Error::Busy { .. } | Error::Cancelled(_) => ErrorClass::Limit,
            Error::Index(_) => ErrorClass::Io,
            Error::Storage(error) => match error {
                Storage::Damaged(_)
                | Storage::DamagedFile { .. }
                | Storage::DamagedFloor { .. }
                | Storage::MissingSegment { .. }
                | Storage::WrongMagic { .. }
                | Storage::NewerFormat { .. }
                | Storage::WrongDatabase { .. }
                | Storage::Held { .. }
                | Storage::NetworkFileSystem { .. } => ErrorClass::Open,
                Storage::BadOption { .. } | Storage::ReservedKind { .. } => ErrorClass::Input,
                Storage::TooLarge { .. } => ErrorClass::Limit,
                _ => ErrorClass::Io,
            },
            _ => ErrorClass::Input,
        }
    }
}
