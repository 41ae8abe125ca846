//! Rules of the source tree that the compiler does not check, and figures about its structure.
//!
//! The crate has no dependencies, so that it builds in seconds. `tests/it` applies [`rules`] to the workspace; the
//! program `holotype-tidy` prints [`figures`]. Sources are read as text with comments and literals masked ([`source`]),
//! not parsed.

pub mod baseline;
pub mod figures;
pub mod imports;
pub mod locks;
pub mod rules;
pub mod source;
