//! Holotype's vector, word and set indexes: hand-written HNSW, BM25 postings, bitmaps.

pub mod bitmap;
pub mod distance;
pub mod error;
pub mod hit;
pub mod spec;
pub mod words;

pub use error::{Error, Result};
pub use hit::Hit;
