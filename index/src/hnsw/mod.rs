//! A hierarchical navigable small world graph over the scan codes of one segment.
//!
//! After Malkov and Yashunin, "Efficient and robust approximate nearest neighbor search using hierarchical navigable
//! small world graphs" (2016). Each node is on level 0 and, with probability m^-l, on level l too; on each level it is
//! linked to a few near nodes in different directions. A search goes greedily down the levels and spreads out on
//! level 0, keeping the best ef nodes it has met.
//!
//! What differs from the paper:
//! - Distances are integers over scan codes ([`quantize`](crate::quantize)); what a search finds is scored again.
//! - Levels come from the id, not from a generator, so a node keeps its level through merges, and nodes are linked
//!   highest level first, so the entry point stands from the start.
//! - A walk for the best k ends before all ef nodes are expanded where the answers stand alone ([`reach`]).
//! - At the seal, nodes that cannot be reached from the entry point are linked in ([`build`]).
//!
//! Graph code knows positions and codes, never files or ids.

pub(crate) mod build;
pub(crate) mod calibrate;
pub(crate) mod filter;
pub(crate) mod graph;
pub(crate) mod matching;
pub(crate) mod params;
pub(crate) mod reach;
pub(crate) mod search;
mod select;
pub(crate) mod stream;
pub(crate) mod visited;
