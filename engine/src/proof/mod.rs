//! Proofs of items: everything an outsider needs to see that an item, as it is shown, is in the log of this database,
//! and what it rests on too.
//!
//! A proof holds a signed checkpoint of the tree over all records, and records with their paths to its root: the item's
//! own, those that gave it more pointers, those of the items and pages it cites, and the chunks of long fields. It is
//! JSON, so that it can be looked at and checked by a program in any language; `docs/format.md` describes it.
//!
//! ```text
//! tree     the hashes of subtrees, kept in the catalog, and the log behind them
//! prove    making proofs and checkpoints
//! check    checking them, from the proof and the signer's public key alone
//! json     proofs as text
//! ```
//!
//! 1. What is proven is what stands in the log: bytes are handed out as stored, never made again from a state.
//! 2. A redacted record is proven by its hash alone: that it is there, and nothing of what it was; and, where a record
//!    stands in for it, by that one.
//! 3. A proof speaks of the moment of its checkpoint. That the log was not rolled back since, or another one shown to
//!    somebody else, is seen by comparing checkpoints ([`Growth`]).

pub(crate) mod check;
mod json;
mod prove;

pub use check::{Checked, CheckedCitation, CheckedItem, Rejected, check, check_growth};
pub use holotype_storage::proof::checkpoint::TreeHead;
pub use holotype_storage::proof::note::{NoteError, SignerKey, VerifierKey};

use holotype_storage::Hash;

/// A proof that an item is in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// The signed checkpoint the paths lead to.
    pub checkpoint: String,
    /// The item's number.
    pub item: u32,
    /// The item's record first, then those it needs.
    pub records: Vec<ProvenRecord>,
}

/// A record with its path to the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvenRecord {
    /// Its number among all records of the log, from 0.
    pub index: u64,
    /// What its hash is over, or the hash where that was erased.
    pub content: ProvenContent,
    /// The hashes beside the way to the root, from the leaf upwards.
    pub path: Vec<Hash>,
}

/// What is shown of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProvenContent {
    /// All of it, as it stands in the log.
    Stored {
        /// Its first eight bytes: length, type, flags, mark.
        header: [u8; 8],
        /// Its salt.
        salt: [u8; 16],
        /// Its payload.
        payload: Vec<u8>,
    },
    /// Its hash: it was redacted. `item` says whose record it was, which nothing proves.
    Redacted {
        /// The hash `r`.
        hash: Hash,
        /// The item's number.
        item: u32,
    },
}

/// A proof that one checkpoint continues another: that the log between them only grew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Growth {
    /// The signed checkpoint that was kept.
    pub old: String,
    /// The signed checkpoint of now.
    pub new: String,
    /// The hashes that lead from one root to the other.
    pub path: Vec<Hash>,
}
