//! The word index.

pub mod analyse;

pub use analyse::{Analyzer, AnalyzerId, Stemming};
