//! Holotype's vector, word and set indexes: hand-written HNSW, BM25 postings, bitmaps.
//!
//! An index is derived: all of it can be made again from the log. Each kind has the same life: what is committed goes to
//! an appendable tail and is found at once, tails are sealed into immutable files read in place, and files are merged.
//! A reader holds a list of files and a view of the tail, so its answers never change.
//!
//! | where | what |
//! |---|---|
//! | [`vectors`] | one layer's vectors at one moment, and the search over them |
//! | [`segment`] | the life of vectors: tail, `.vseg` files, merges |
//! | `hnsw`, `quantize`, `flat` | the graph, the codes it is walked on, the exact scan |
//! | [`distance`] | kernels for the machine at hand |
//! | [`spec`], [`rows`] | what a vector is, and how it is kept |
//! | [`nearest`] | the same search, resumed for as long as it is asked |
//! | [`governed`] | the best by similarity and words plus scalar terms |
//! | [`words`] | the same for text: analysis, postings, BM25 |
//! | [`bitmap`], [`hit`] | what filters are asked as, and what a search finds |
//! | [`scorer`] | many queries against many vectors, on the CPU or elsewhere |

pub mod bitmap;
pub mod distance;
pub mod error;
mod flat;
pub mod governed;
pub mod hit;
mod hnsw;
pub mod nearest;
mod quantize;
pub mod rows;
pub mod scorer;
pub mod segment;
pub mod spec;
mod sync;
pub mod vectors;
pub mod words;

pub use error::{Error, Result};
pub use governed::{Certificate, Governed, GovernedOptions, GovernedWeights, ScalarOrder, Scalars};
pub use hit::Hit;
pub use nearest::Nearest;
pub use rows::{Rows, RowsView};
pub use segment::{BuildOptions, TailView, VectorSegment, VectorTail, build_segment};
pub use spec::{Encoding, Metric, VectorSpec};
pub use vectors::{Search, SearchOptions, Strategy, VectorIndex};
