//! The nouns of the public API: items, edges, pointers, spaces, times, tokens.

pub(crate) mod edge;
pub mod embed;
pub(crate) mod hashing;
pub(crate) mod item;
pub mod plural;
pub(crate) mod pointer;
pub mod quarantine;
pub mod space;
#[cfg(feature = "embed-static")]
pub(crate) mod static_embedder;
pub mod time;
pub mod tokens;
pub(crate) mod version;
