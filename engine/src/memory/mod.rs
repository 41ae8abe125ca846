//! The computations of the memory systems, which need no database: credit for memory writes (HiMPO), claims extracted
//! from text, and information density (PlugMem D).

pub mod credit;
pub mod density;
pub mod extract;
