//! The errors of replicas. Each says what to do.

use std::io;
use std::path::PathBuf;

use crate::store::StoreError;

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a replica.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another writer took over.
    #[error(
        "fenced: {by} took over the replica with epoch {epoch} at commit {commit}; commits after it that are only here \
         are not in the replica"
    )]
    Fenced {
        /// The writer that took over.
        by: String,
        /// Its epoch.
        epoch: u64,
        /// The commit of its head.
        commit: u64,
        /// The position of its head.
        position: u64,
    },

    /// The log is not a continuation of the replica.
    #[error("the replica ends at commit {commit} of {by}, which this log does not contain: {why}")]
    Diverged {
        /// The commit of the replica's head.
        commit: u64,
        /// The position of the replica's head.
        position: u64,
        /// The writer of the replica's head.
        by: String,
        /// The difference.
        why: String,
    },

    /// The replica is one of another database.
    #[error("the replica is one of {found}, and this database is {expected}; name another folder")]
    OtherDatabase {
        /// The origin of this database.
        expected: String,
        /// The origin in the replica's head.
        found: String,
    },

    /// There is no replica.
    #[error("{place}: there is no replica: it has no head")]
    NoReplica {
        /// The store.
        place: String,
    },

    /// An object of the replica is not what its name or its hash says.
    #[error("replica damaged: {key}: {what}")]
    Damaged {
        /// The object.
        key: String,
        /// The fault.
        what: String,
    },

    /// The head is signed by another key.
    #[error("the replica's head is not signed by the expected key: {0}")]
    Signature(String),

    /// The store fails, or answers in a way that leaves open what it did.
    #[error("{0}; what was acknowledged stays, and the next attempt goes on from there")]
    Store(#[from] StoreError),

    /// The store does not keep a promise that replicas depend on.
    #[error("{place} cannot hold a replica: {why}")]
    Unfit {
        /// The store.
        place: String,
        /// The broken promise.
        why: String,
    },

    /// The time or commit to restore is not in the replica.
    #[error("{0}")]
    NotThere(String),

    /// Something exists where a copy was to be made.
    #[error("{}: exists; name an unused path", .0.display())]
    Exists(PathBuf),

    /// A local file could not be read or written.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The attempted action, as a verb.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },

    /// An error of the log.
    #[error(transparent)]
    Log(#[from] holotype_storage::Error),
}

impl Error {
    pub(crate) fn io(path: &std::path::Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, action, source }
    }

    pub(crate) fn damaged(key: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Damaged { key: key.into(), what: what.into() }
    }

    /// A word for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Fenced { .. } => "fenced",
            Self::Diverged { .. } => "diverged",
            Self::OtherDatabase { .. } => "other-database",
            Self::NoReplica { .. } => "no-replica",
            Self::Damaged { .. } => "replica-damaged",
            Self::Signature(_) => "replica-signature",
            Self::Store(_) => "store",
            Self::Unfit { .. } => "store-unfit",
            Self::NotThere(_) => "not-there",
            Self::Exists(_) => "exists",
            Self::Io { .. } => "io",
            Self::Log(_) => "log",
        }
    }
}
