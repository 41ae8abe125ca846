//! Proofs: that a record is in the log, and that one state of the log continues another.
//!
//! Over all records of the log, commit and close records among them, stands one Merkle tree of the shape of RFC 6962,
//! its leaves the records' hashes `r` and its size their count. Whoever holds the tree's root, 32 bytes, can be shown
//! that a record is among them by a path of about log2 of the size hashes ([`tree`]). The root is handed out as a
//! *signed checkpoint* ([`checkpoint`]) in the text form that transparency logs use, signed with Ed25519 as a *signed
//! note* ([`note`]), so that it can be kept, published and witnessed elsewhere.
//!
//! Nothing here opens a file: paths are made from hashes of subtrees that the caller brings ([`tree::Subtrees`]), and
//! checked from bytes alone.

pub mod checkpoint;
pub mod note;
pub mod tree;

pub use crate::chain::record_hash as leaf_hash;
