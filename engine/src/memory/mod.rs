//! The computations of the memory systems, which need no database: credit for memory writes (HiMPO), claims extracted
//! from text, information density (PlugMem D), the structuring of trajectories (PlugMem C.1, C.2, C.5), the sufficiency
//! router and the decisions of a write-back (TierMem).

pub mod credit;
pub mod density;
pub(crate) mod embedder;
pub mod extract;
pub(crate) mod frames;
pub mod router;
pub mod structure;
pub mod write_back;
