//! Holotype's vector, word and set indexes: hand-written HNSW, BM25 postings, bitmaps.
//!
//! An index is derived data: the log can rebuild all of it. Vectors and words have the same life: committed data goes
//! to an appendable tail, where queries find it at once; full tails become immutable segment files, read in place;
//! segments are merged. A reader holds a list of segments and a view of the tail, so its answers never change.
//!
//! | module | content |
//! |---|---|
//! | [`vectors`] | search over one layer's vectors in one snapshot |
//! | [`segment`] | tail, `.vseg` files, merges |
//! | `hnsw`, `quantize`, `flat`, `signs` | the graph, its scan codes, the exact scan, one by signs first |
//! | [`distance`] | SIMD kernels, selected for the processor at run time |
//! | [`spec`], [`rows`], [`logged`] | dimension, metric and encoding; encoded vectors; those that only the log holds |
//! | [`words`] | text analysis, postings, BM25 |
//! | [`bitmap`], [`hit`] | filters; hits and top-k collection |
//! | [`scorer`] | batch scoring, on the CPU or a GPU |

#[cfg(test)]
mod arrows;
pub mod bitmap;
pub mod distance;
pub mod error;
mod flat;
pub mod hit;
mod hnsw;
pub mod logged;
mod prefetch;
mod quantize;
pub mod rows;
pub mod scorer;
pub mod segment;
mod signs;
pub mod spec;
mod sync;
pub mod vectors;
pub mod words;

pub use error::{Error, Result};
pub use hit::Hit;
pub use logged::{LoggedVectors, Places};
pub use rows::{Rows, RowsView};
pub use segment::{BuildOptions, TailView, VectorSegment, VectorTail, build_segment};
pub use spec::{Encoding, Metric, VectorSpec};
pub use vectors::{Search, SearchOptions, Strategy, VectorIndex};
