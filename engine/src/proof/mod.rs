//! Proofs of items: everything that an outsider needs to verify that an item and its evidence are in the log of this
//! database.
//!
//! A proof has a signed checkpoint of the tree over all records, and records with their paths to its root: the item's
//! own, those that added pointers to it, those of the items and pages it cites, and the chunks of long fields. It is
//! JSON, so that a program in any language can check it; `docs/format.md` describes the format.
//!
//! ```text
//! tree     the hashes of subtrees in the catalog, and the log after them
//! prove    creating proofs and checkpoints
//! check    checking them with the signer's public key
//! json     proofs as text
//! ```
//!
//! 1. A proof contains the stored bytes of the log, never bytes computed from a state.
//! 2. A redacted record is proven by its hash only, which shows that it exists but not its content, and by its
//!    replacement if it has one.
//! 3. A proof is about the time of its checkpoint. Comparing checkpoints ([`Growth`]) shows whether the log was rolled
//!    back since, or another log was shown to someone else.

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
    /// The signed checkpoint with the root of the paths.
    pub checkpoint: String,
    /// The item's number.
    pub item: u32,
    /// The item's record, then the records of its evidence.
    pub records: Vec<ProvenRecord>,
}

/// A record with its path to the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvenRecord {
    /// Its number among all records of the log, from 0.
    pub index: u64,
    /// The input of its hash, or the hash if the content was erased.
    pub content: ProvenContent,
    /// The sibling hashes on the path to the root, from the leaf upwards.
    pub path: Vec<Hash>,
}

/// The content of a record in a proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProvenContent {
    /// The whole record, as stored in the log.
    Stored {
        /// Its first eight bytes: length, type, flags, mark.
        header: [u8; 8],
        /// Its salt.
        salt: [u8; 16],
        /// Its payload.
        payload: Vec<u8>,
    },
    /// The hash of a redacted record. `item` names its item, which is not proven.
    Redacted {
        /// The hash `r`.
        hash: Hash,
        /// The item's number.
        item: u32,
    },
}

/// A proof that one checkpoint continues another, so that the log between them only grew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Growth {
    /// The earlier signed checkpoint.
    pub old: String,
    /// The present signed checkpoint.
    pub new: String,
    /// The consistency path between the roots.
    pub path: Vec<Hash>,
}
