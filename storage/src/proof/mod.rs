//! Proofs: that a record is in the log, and that one state of the log continues another.
//!
//! One Merkle tree of the shape of RFC 6962 covers all records of the log, including commit and close records. Its
//! leaves are the records' hashes `r`, and its size is their count. A path of about log2(size) hashes proves to a
//! holder of the tree's root (32 bytes) that a record is in the tree ([`tree`]). The root is published as a *signed
//! checkpoint* ([`checkpoint`]) in the text format of transparency logs, signed with Ed25519 as a *signed note*
//! ([`note`]), so that it can be kept, published and witnessed elsewhere.
//!
//! This module opens no file: paths are computed from hashes of subtrees that the caller provides ([`tree::Subtrees`]),
//! and verified from bytes alone.

pub mod checkpoint;
pub mod note;
pub mod tree;

pub use crate::chain::{Frontier, record_hash as leaf_hash};
