//! The life of a layer's vectors: appended to a flat tail, sealed into immutable segments, merged.
//!
//! [`VectorTail`] takes what is committed and is scanned exactly. [`build_segment`] makes a `.vseg` of it;
//! [`VectorSegment`] reads one in place, from the mapped file; [`merge_segments`] adds the smaller segments to the
//! largest one's graph. The engine decides when, names the files and swaps the lists.

mod block;
pub(crate) mod guard;
pub mod layout;
mod merge;
mod reader;
mod tail;
mod writer;

pub use merge::merge_segments;
pub use reader::VectorSegment;
pub(crate) use reader::Walkable;
pub use tail::{TailView, VectorTail};
pub use writer::{BuildOptions, Progress, build_segment};
