//! The life of a layer's vectors: appended to a flat tail, sealed into immutable segments, merged.
//!
//! [`VectorTail`] takes committed vectors and is scanned exactly. [`build_segment`] writes them to a `.vseg` file,
//! [`VectorSegment`] reads one through a memory map, and [`merge_segments`] adds smaller segments to the graph of the
//! largest. The engine decides when, names the files and swaps the lists.

mod block;
pub(crate) mod guard;
pub(crate) mod id_set;
pub mod layout;
mod merge;
mod merged_file;
mod reader;
mod tail;
mod writer;

pub use crate::hnsw::params::{BuildOptions, Progress};
pub use merge::{LINK_BYTES, merge_segments, write_tail};
pub(crate) use reader::SegmentGraph;
pub use reader::VectorSegment;
pub use tail::{TailView, VectorTail};
pub use writer::build_segment;
