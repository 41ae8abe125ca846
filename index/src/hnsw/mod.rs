//! A hierarchical navigable small world graph over the scan codes of one segment.
//!
//! After Malkov and Yashunin, "Efficient and robust approximate nearest neighbor search using hierarchical navigable
//! small world graphs" (2016). Every node is on level 0 and, with probability m^-l, on level l. On each level it is
//! linked to a few near nodes in different directions. A search descends greedily through the levels, then runs a beam
//! search on level 0 that keeps the best ef nodes.
//!
//! Differences from the paper:
//! - Distances are integers over scan codes ([`quantize`](crate::quantize)); hits are rescored from exact vectors.
//! - A node's level is a hash of its id, so it survives merges. Nodes are linked highest level first, so the entry
//!   point never changes during a build.
//! - A walk for the best k stops early if the remaining nodes are too far away ([`search_limit`]).
//! - Vectors with equal codes are one node ([`twins`]).
//! - The build links unreachable nodes to the graph at its end ([`build`]).
//!
//! Graph code knows positions and codes, never files or ids.

pub(crate) mod build;
pub(crate) mod calibrate;
mod connect;
pub(crate) mod graph;
pub(crate) mod matching;
pub(crate) mod neighbours;
pub(crate) mod params;
pub(crate) mod search;
pub(crate) mod search_limit;
mod select;
pub(crate) mod strategy;
pub(crate) mod twins;
pub(crate) mod visited;
