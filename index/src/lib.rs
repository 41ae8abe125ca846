//! Holotype's vector, word and set indexes: hand-written HNSW, BM25 postings, bitmaps.

pub mod bitmap;
pub mod distance;
pub mod error;
pub mod spec;

pub use error::{Error, Result};
