//! JSON Lines and `.npy` files, which other programs exchange with a database.
//!
//! Each line is one object with one name, its kind:
//!
//! ```text
//! {"holotype":{"interchange":1}}
//! {"episode":{"id":"trip-42","task":"book a flight"}}
//! {"trace":{"key":"t1","episode":"trip-42","step":12,"time":"2026-01-05T10:00:00Z","kind":"call",
//!           "fields":{"text":"UA123 price=$450"},"row":0}} {"commit":{}}
//! ```
//!
//! The parser knows the syntax of a line, not its meaning: it checks names, types, times, numbers and the words of an
//! attribute, and reports each fault with its line and column. The import checks keys, pointers, hashes and vector
//! lengths, and gets the column of a member from [`LineReader::column_of`].
//!
//! Invariants:
//!
//! 1. Reading is strict: unknown members, duplicate names, lone surrogates, numbers that are not JSON, integers above
//!    2^53 that are not strings and times without a zone are refused, never repaired. A `null` member is an absent one.
//! 2. Writing is canonical ([`writer`]): equal lines give equal bytes, and `parse(encode(line)) == line`.
//! 3. No input makes a panic; memory stays within some ten times the longest line, which is at most 64 MiB.

pub mod json;
pub mod line;
pub mod npy;
pub mod reader;
pub mod time;
pub mod vocabulary;
pub mod writer;

mod controllers;
mod export;
mod import;
mod parse;
mod rollouts;
mod routes;
mod triplets;

pub use controllers::export_decisions;
pub use export::{ExportReport, export, export_history};
pub use import::{ImportOptions, ImportReport, LINES_PER_TRANSACTION, import};
pub use json::{JsonError, JsonText};
pub use line::{FieldValue, Line, Pointer, Stated, Unit, VectorRef};

pub use npy::{NpyError, NpyReader, NpyWriter, Precision};
pub use reader::{LineError, LineReader, MAX_LINE_LEN};
pub use rollouts::export_rollouts;
pub use routes::export_routes;
pub use triplets::export_triplets;
pub use writer::{LineWriter, WriteError, encode};

/// The utility of an item, if it was ever given one.
fn utility(attributes: &crate::model::item::Attributes) -> Option<f32> {
    (attributes.utility_count > 0 || attributes.utility != 0.0).then_some(attributes.utility)
}
