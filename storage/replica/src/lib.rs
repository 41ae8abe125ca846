//! Replicas of a log: copies in a folder or an object store that grow with it, that others follow, and from which a
//! database is restored as of any commit.
//!
//! A replica is a handful of objects ([`store`]):
//!
//! ```text
//! head                                    where the replica ends: the one object that changes
//! manifests/EPOCH-POSITION-SERIAL-WRITER  which chunks hold the log up to there; never changes
//! chunks/AB/HASH                          a range of the log's bytes, compressed; never changes
//! ```
//!
//! The **head** ([`head`]) is a signed note. It names a manifest and its hash, the [`manifest`] names the [`chunk`]s
//! and theirs, so whoever has a head can verify everything below it. Nothing has to be listed to read or restore.
//!
//! 1. A head is moved by comparing and swapping alone. The swap acknowledges everything that the head covers.
//! 2. A writer begins by taking the next *epoch* in such a swap. Whoever had the epoch before fails with its next swap:
//!    it is *fenced* ([`Error::Fenced`]).
//! 3. A writer takes over only if its own log contains the head that it finds. So heads are linear: each covers a
//!    prefix of the next.
//! 4. Heads count up in their *serial*. No two heads and no two chunks have the same bytes, so a late answer or a
//!    repeated request changes nothing.
//! 5. Chunks with records that were erased are written again, and the old ones are removed by
//!    [`push::Replicator::sweep`]. It lists first, then proves by a swap that it has the epoch, and only then removes.
//! 6. A follower ([`follow`]) goes forward only, and shows what it copied after the hash chain proved it.
//!
//! Operations are futures that any executor runs, also the explorer of the crash tests, which interleaves them request
//! by request. [`block_on`] runs them in place.

mod block_on;
pub mod chunk;
mod copy;
mod error;
pub mod follow;
pub mod head;
mod hex;
pub mod local;
mod local_log;
pub mod manifest;
pub mod place;
mod plan;
pub mod probe;
pub mod push;
mod restore;
pub mod source;
pub mod store;

pub use block_on::block_on;
pub use copy::LogCopy;
pub use error::{Error, Result};
pub use local_log::LocalLog;
pub use restore::{Origin, Restored, Target, restore};

/// A random number, which tells one session of a writer from others.
///
/// # Errors
/// [`Error::Io`] if the system provides none.
pub fn random_number() -> Result<u64> {
    let failed = |error: getrandom::Error| Error::Io {
        path: std::path::PathBuf::from("the system's random numbers"),
        action: "read",
        source: std::io::Error::other(error),
    };
    getrandom::u64().map_err(failed)
}
