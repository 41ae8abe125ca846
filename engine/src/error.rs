//! The errors of the database: a message a person can act on, and a stable code for programs.
//!
//! Bad input, bad bytes and full disks are values of [`Error`]; a violated invariant of the engine itself is an
//! assertion. [`Error::code`] is stable; messages may improve. [`Error::class`] groups errors by cause; the command
//! line derives its exit status from it.

use std::path::PathBuf;

/// The result of an operation of the database.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An unknown name, with the names that are known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} {given:?}; expected one of: {}", known.join(", "))]
pub struct UnknownName {
    /// The kind of name, for example `status`.
    pub what: &'static str,
    /// The given text.
    pub given: String,
    /// All names of that kind.
    pub known: Vec<&'static str>,
}

/// The cause of an error, in four groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The call, a statement or an input file is wrong.
    Input,
    /// The database cannot be opened: it is missing, locked, damaged or of a newer format.
    Open,
    /// Reading or writing failed, or the disk is full.
    Io,
    /// A limit or the caller stopped the operation.
    Limit,
}

/// An error of the database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path holds no database.
    #[error("no database at {}; run `holotype create` to make one", path.display())]
    NotFound {
        /// The path that was opened.
        path: PathBuf,
    },
    /// The database was restored as of an earlier commit, and writing would continue a past that went another way.
    #[error(
        "{} was restored as of commit {commit} and opens read-only; restore it with a new lineage to write to it",
        path.display()
    )]
    Restored {
        /// The path of the database.
        path: PathBuf,
        /// The commit whose state it shows.
        commit: u64,
    },
    /// The database is a copy that follows a replica, whose log only the replica extends.
    #[error("{} follows a replica and opens read-only; restore the replica to write to a copy of it", path.display())]
    Follows {
        /// The path of the database.
        path: PathBuf,
    },
    /// The path to create exists.
    #[error("{} already exists; choose another path, or open the database there", path.display())]
    Exists {
        /// The existing path.
        path: PathBuf,
    },
    /// The log is damaged; the database can still be opened read-only.
    #[error(
        "the log is damaged: {detail}; open the database read-only, \
         or run `holotype verify` to see the extent of the damage"
    )]
    Damaged {
        /// File, log page, offset and fault.
        detail: String,
    },
    /// The log is known to be damaged, and writes would build on it.
    #[error(
        "writes are refused because the log is damaged: {detail}; `holotype salvage` writes what can be read into a \
         new database, `holotype verify` lifts the refusal once the log is restored, `--accept-damage` writes all the \
         same"
    )]
    WritesRefused {
        /// The first fault: file, log page, offset.
        detail: String,
    },
    /// The file of the witness, or its key, does not exist.
    #[error(
        "no witness at {}: nothing shows that the database was not rolled back; restore the file, or take the \
         database as it is with `--accept-witness`",
        path.display()
    )]
    WitnessMissing {
        /// The missing file.
        path: PathBuf,
    },
    /// The log ends before the commit that the witness knows.
    #[error(
        "the database was rolled back: it ends at commit {newest}, and the witness {} has seen commit {witnessed}; \
         restore the newest copy, or, if an older one was restored on purpose, remove the witness and open with \
         `--accept-witness`",
        path.display()
    )]
    RolledBack {
        /// The witness.
        path: PathBuf,
        /// The commit that the witness knows.
        witnessed: u64,
        /// The newest commit of the database.
        newest: u64,
    },
    /// The log is not the one that the witness knows, or the witness is not signed by its key.
    #[error(
        "the database does not match its witness {}: {reason}; restore both from a copy that you trust",
        path.display()
    )]
    Forged {
        /// The witness, or its key.
        path: PathBuf,
        /// The difference.
        reason: String,
    },
    /// A `forget` committed after the snapshot was taken.
    #[error("a forget has committed since this snapshot was taken and has ended it; take a new snapshot")]
    SnapshotForgotten,
    /// A file or record contradicts the format or another file.
    #[error(
        "{what}; run `holotype verify` to locate the fault, `holotype rebuild` to restore derived files from the log"
    )]
    Corrupt {
        /// The contradiction.
        what: String,
    },
    /// The log holds a record of a type that this version does not know.
    #[error("the log holds a record of unknown type {kind}; open the database with a newer version of holotype")]
    UnknownRecord {
        /// The type number.
        kind: u8,
    },
    /// A role, such as a model, replied something else than it was asked for.
    #[error("{0}")]
    Reply(String),
    /// An earlier write failed; this handle refuses further writes.
    #[error("this handle refuses writes because an earlier one failed: {detail}; close it and open the database again")]
    Poisoned {
        /// The earlier failure.
        detail: String,
    },
    /// This thread has a transaction of this database open, for which the call would wait for ever.
    #[error("this thread has a transaction open; commit it or drop it before another call that needs the writer")]
    TransactionOpen,
    /// The database is open read-only.
    #[error("the database is open read-only; open it for writing to change it")]
    ReadOnly,
    /// The setting `audit = reads` wants every answer logged, and the database is open read-only.
    #[error(
        "the setting audit = reads logs every answer, and the database is open read-only; open it for writing to ask"
    )]
    Unaudited,
    /// An unknown name of an attribute value.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// The named item, episode, page, link or receipt does not exist.
    #[error("no {what} {name}")]
    Missing {
        /// The kind of the missing object: item, episode, page.
        what: &'static str,
        /// The name that was given.
        name: String,
    },
    /// `as of` names a future commit.
    #[error("commit {commit} does not exist yet; the newest is {newest}")]
    FutureCommit {
        /// The commit asked for.
        commit: u64,
        /// The newest commit.
        newest: u64,
    },
    /// The request needs history that `retain` removed.
    #[error("{what} precedes commit {since}, where retained history begins; an archive of the log may hold it")]
    BeforeHistory {
        /// The requested commit or record.
        what: String,
        /// The first commit of the retained history.
        since: u64,
    },
    /// A handle that only appends ([`Options::append_only`](crate::Options::append_only)) found derived files that have
    /// to be made again.
    #[error("opening for appending only cannot make derived files again ({reason}); open the database fully once")]
    OpenFully {
        /// Why they have to be made again.
        reason: String,
    },
    /// The key belongs to an item with other content.
    #[error(
        "the key {key:?} belongs to an item with another {member}; a key names one content for ever: {}",
        remedy_of_duplicate("item", key)
    )]
    OtherContent {
        /// The key.
        key: String,
        /// The first member that differs.
        member: String,
    },
    /// Another item or page holds the key.
    #[error(
        "the key {key:?} belongs to another {what}; keys are unique in a database: {}",
        remedy_of_duplicate(what, key)
    )]
    DuplicateKey {
        /// The key.
        key: String,
        /// The kind of its holder.
        what: &'static str,
    },
    /// The database holds a trace with the same tool, log and step.
    #[error("a trace with tool {tool:?}, log {log_id:?} and step {step} exists; (tool, log_id, step) must be unique")]
    DuplicateTrace {
        /// The tool.
        tool: String,
        /// The log.
        log_id: String,
        /// The step.
        step: u64,
    },
    /// An argument is invalid.
    #[error("{0}")]
    Invalid(String),
    /// A vector does not fit the embedding space.
    #[error("{0}")]
    Vector(String),
    /// The embedder gave no vector that can be stored.
    #[error("no vectors from the embedder: {reason}")]
    Embedder {
        /// The reason.
        reason: String,
    },
    /// The vectors of the database are of another model than the embedder's.
    #[error(
        "the vectors of this database are of the model {recorded}, and the embedder is {given}; open it with the \
         embedder {recorded}, or make all vectors anew with `Holotype::reembed` or `holotype reembed`"
    )]
    OtherEmbedder {
        /// The fingerprint in the database.
        recorded: String,
        /// The fingerprint of the embedder.
        given: String,
    },
    /// A pointer names no existing bytes.
    #[error("the pointer to {target} does not resolve: {reason}")]
    UnresolvedPointer {
        /// The item or page it names.
        target: String,
        /// The reason.
        reason: String,
    },
    /// The hash given with a pointer differs from the hash of the bytes.
    #[error("hash mismatch in the pointer to {target}: given {given}, but the bytes have {found}")]
    HashMismatch {
        /// The item or page it names.
        target: String,
        /// The given hash.
        given: String,
        /// The hash of the bytes.
        found: String,
    },
    /// One or more errors of a statement.
    #[error("{0}")]
    Query(holotype_query::Errors),
    /// A line of an imported file is wrong.
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
        /// The fault.
        message: String,
        /// The remedy.
        hint: Option<String>,
    },
    /// A transaction could not begin within `write_timeout` because a limit stayed exhausted. It can be retried.
    #[error(
        "the limit {limit} is exhausted ({used} of {max}) and did not recover within write_timeout; \
         retry, drop old snapshots, or raise the limit"
    )]
    Busy {
        /// The option that sets the limit.
        limit: &'static str,
        /// The present use, in the unit of the option.
        used: u64,
        /// The limit.
        max: u64,
    },
    /// A transaction could not begin in the time that `begin_timeout` was given, because another one did not end. It
    /// can be retried.
    #[error("another transaction is under way and did not end in the given time; retry, or wait longer")]
    WriterBusy,
    /// The operation needs more than a limit allows.
    #[error("{what} is limited to {limit}; this needs {needed}")]
    Limit {
        /// The limited quantity.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// The needed amount.
        needed: u64,
    },
    /// The system has no more memory. [`MemoryReserve`](crate::MemoryReserve) makes this an error.
    #[error("out of memory: it was stopped; give the process more memory, or ask for less and lower `memory_limit`")]
    OutOfMemory,
    /// The caller cancelled the operation, or another thread ended it.
    #[error("stopped: {0}")]
    Cancelled(&'static str),
    /// A derived file could not be written. Everything is committed, and the log holds it.
    #[error("{source}; everything is committed: the next opening for writing makes the file again")]
    Unfinished {
        /// The failure.
        source: Box<Error>,
    },
    /// No proof can be made.
    #[error("{what}")]
    Proof {
        /// The reason.
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
        /// The error of the operating system.
        source: std::io::Error,
    },
}

/// A page cannot be superseded, and an item can.
fn remedy_of_duplicate(what: &str, key: &str) -> String {
    match what {
        "item" => format!("choose another key, or supersede that item by `update '{key}' to TEXT`"),
        _ => "choose another key".to_owned(),
    }
}

/// The place an error is about; a part that does not apply is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorPlace {
    /// The file.
    pub file: Option<String>,
    /// The line in a statement or file, from 1.
    pub line: Option<u64>,
    /// The column, from 1.
    pub column: Option<u64>,
    /// The log page in the file, from 0.
    pub page: Option<u64>,
    /// The byte in the file.
    pub offset: Option<u64>,
}

impl From<holotype_index::Error> for Error {
    /// A storage error keeps its code, also when an index reports it.
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
            Error::Damaged { .. } | Error::WritesRefused { .. } | Error::Corrupt { .. } => "damaged",
            Error::UnknownRecord { .. } => "newer-format",
            Error::WitnessMissing { .. } => "witness-missing",
            Error::RolledBack { .. } => "rolled-back",
            Error::Forged { .. } => "forged",
            Error::SnapshotForgotten => "snapshot-forgotten",
            Error::Poisoned { .. } => "poisoned",
            Error::ReadOnly | Error::Unaudited | Error::Restored { .. } | Error::Follows { .. } => "read-only",
            Error::TransactionOpen => "transaction-open",
            Error::UnknownName(_) => "unknown-name",
            Error::Missing { .. } => "missing",
            Error::FutureCommit { .. } => "future-commit",
            Error::BeforeHistory { .. } => "before-history",
            Error::OpenFully { .. } => "open-fully",
            Error::DuplicateKey { .. } | Error::OtherContent { .. } => "duplicate-key",
            Error::DuplicateTrace { .. } => "duplicate-trace",
            Error::Invalid(_) => "invalid",
            Error::Reply(_) => "reply",
            Error::Vector(_) => "vector",
            Error::Embedder { .. } => "embedder",
            Error::OtherEmbedder { .. } => "other-embedder",
            Error::UnresolvedPointer { .. } => "unresolved-pointer",
            Error::HashMismatch { .. } => "hash-mismatch",
            Error::Query(errors) => errors.first().map_or("query", |error| error.code),
            Error::Line { code, .. } => code,
            Error::Limit { .. } => "limit",
            Error::Busy { .. } | Error::WriterBusy => "busy",
            Error::OutOfMemory => "out-of-memory",
            Error::Cancelled(_) => "cancelled",
            Error::Unfinished { .. } => "unfinished",
            Error::Proof { .. } => "proof",
            Error::Storage(error) => match error {
                Storage::Damaged(_)
                | Storage::DamagedFile { .. }
                | Storage::DamagedFloor { .. }
                | Storage::MissingSegment { .. }
                | Storage::Decode { .. } => "damaged",
                Storage::NewerFormat { .. } => "newer-format",
                Storage::Held { .. } | Storage::TurnHeld { .. } => "locked",
                Storage::Forked { .. } => "forked",
                Storage::Replaced { .. } => "replaced",
                Storage::NoRoom { .. } => "disk-full",
                Storage::Poisoned { .. } => "poisoned",
                Storage::TooLarge { .. } => "limit",
                Storage::BadOption { .. } => "invalid",
                Storage::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => "disk-full",
                Storage::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => "no-permission",
                Storage::Io { source, .. } if source.kind() == std::io::ErrorKind::OutOfMemory => "out-of-memory",
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

    /// The place the error is about, as far as it has one.
    pub fn place(&self) -> ErrorPlace {
        let none = ErrorPlace::default();
        match self {
            Error::NotFound { path }
            | Error::Exists { path }
            | Error::Restored { path, .. }
            | Error::Follows { path }
            | Error::WitnessMissing { path }
            | Error::RolledBack { path, .. }
            | Error::Forged { path, .. }
            | Error::File { path, .. } => ErrorPlace { file: Some(path.display().to_string()), ..none },
            Error::Line { file, line, column, .. } => {
                ErrorPlace { file: Some(file.clone()), line: Some(*line), column: Some(*column), ..none }
            }
            Error::Query(errors) => match errors.first().filter(|error| error.line > 0) {
                Some(first) => ErrorPlace { line: Some(first.line.into()), column: Some(first.column.into()), ..none },
                None => none,
            },
            Error::Storage(holotype_storage::Error::Damaged(damage)) => ErrorPlace {
                file: Some(damage.file.display().to_string()),
                page: Some(damage.page),
                offset: Some(damage.offset),
                ..none
            },
            _ => none,
        }
    }

    /// The group of causes the error belongs to.
    pub fn class(&self) -> ErrorClass {
        use holotype_storage::Error as Storage;
        match self {
            Error::NotFound { .. }
            | Error::Restored { .. }
            | Error::Follows { .. }
            | Error::Damaged { .. }
            | Error::WritesRefused { .. }
            | Error::OpenFully { .. }
            | Error::WitnessMissing { .. }
            | Error::RolledBack { .. }
            | Error::Forged { .. }
            | Error::UnknownRecord { .. } => ErrorClass::Open,
            Error::Corrupt { .. } | Error::Poisoned { .. } | Error::File { .. } | Error::Unfinished { .. } => {
                ErrorClass::Io
            }
            Error::Limit { .. } | Error::Cancelled(_) => ErrorClass::Limit,
            Error::Busy { .. } | Error::WriterBusy | Error::OutOfMemory => ErrorClass::Limit,
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
                | Storage::TurnHeld { .. }
                | Storage::Forked { .. }
                | Storage::Replaced { .. }
                | Storage::NetworkFileSystem { .. } => ErrorClass::Open,
                Storage::BadOption { .. } | Storage::ReservedKind { .. } => ErrorClass::Input,
                Storage::TooLarge { .. } => ErrorClass::Limit,
                _ => ErrorClass::Io,
            },
            _ => ErrorClass::Input,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_their_place() {
        let file = Some("/memory.holo".to_owned());
        let error = Error::NotFound { path: "/memory.holo".into() };
        assert_eq!(error.place(), ErrorPlace { file, ..ErrorPlace::default() });
        let error = Error::Query(holotype_query::parse("find traces\n  whre x").unwrap_err());
        assert_eq!(error.place(), ErrorPlace { line: Some(2), column: Some(3), ..ErrorPlace::default() });
        assert_eq!(Error::ReadOnly.place(), ErrorPlace::default());
    }
}
