//! Holotype's vector, word and set indexes: hand-written HNSW, BM25 postings, bitmaps.

pub mod bitmap;
pub mod distance;
pub mod error;
mod flat;
pub mod hit;
mod hnsw;
mod quantize;
pub mod rows;
pub mod segment;
pub mod spec;
pub mod vectors;
pub mod words;

pub use error::{Error, Result};
pub use hit::Hit;
pub use rows::{Rows, RowsView};
pub use segment::{BuildOptions, TailView, VectorSegment, VectorTail, build_segment};
pub use spec::{Encoding, Metric, VectorSpec};
pub use vectors::{Search, SearchOptions, Strategy, VectorIndex};
