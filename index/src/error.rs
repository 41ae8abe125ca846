//! Errors of the indexes, with the action that helps.

use thiserror::Error;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an index refused its input or could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A vector of another length than the space's.
    #[error("the vector has {found} dimensions, the space has {expected}")]
    Dimension {
        /// The space's dimension.
        expected: usize,
        /// The vector's length.
        found: usize,
    },

    /// A NaN or an infinity in a vector.
    #[error("the vector's component {position} is {value}; components must be finite")]
    NotFinite {
        /// Which component, from 0.
        position: usize,
        /// What it is.
        value: f32,
    },

    /// A component or a length that the space's encoding cannot hold.
    #[error("the vector is too long to be kept as {encoding}: {what}")]
    TooLarge {
        /// The space's encoding.
        encoding: &'static str,
        /// The bound that it breaks.
        what: String,
    },

    /// A space that no index can be made for.
    #[error("a space of {dim} dimensions is not supported; between 1 and {max} are")]
    Space {
        /// The dimension asked for.
        dim: usize,
        /// The largest that is supported.
        max: usize,
    },

    /// Ids out of order where they have to ascend.
    #[error("id {next} follows id {previous}; ids must ascend")]
    IdOrder {
        /// The id before.
        previous: u32,
        /// The id that does not exceed it.
        next: u32,
    },

    /// Parts that were made for different spaces or analysers.
    #[error("the segment was made for {found}, the index is for {expected}; rebuild the index")]
    Mismatch {
        /// What the index is for.
        expected: String,
        /// What the segment was made for.
        found: String,
    },

    /// Bytes of a segment file that do not mean anything valid.
    #[error("section {section} is damaged at byte {offset}: {what}; delete the file and run `holotype rebuild`")]
    Corrupt {
        /// The section's tag.
        section: &'static str,
        /// Where in the section.
        offset: u64,
        /// What was found and what was expected.
        what: String,
    },

    /// A segment of nothing.
    #[error("there is nothing to make a segment of")]
    Empty,

    /// More entries than a segment can hold.
    #[error("a segment holds at most {max} entries, not {found}")]
    TooMany {
        /// How many there are.
        found: usize,
        /// How many there may be.
        max: usize,
    },

    /// A number of links that no graph is built with.
    #[error("m is {m}; between 2 and {max} links a node are supported")]
    Links {
        /// The number asked for.
        m: usize,
        /// The largest that is supported.
        max: usize,
    },

    /// The caller asked for a build or a merge to stop.
    #[error("cancelled")]
    Cancelled,

    /// The file below failed.
    #[error(transparent)]
    Storage(#[from] holotype_storage::Error),
}

impl Error {
    /// Damage found in `section` at `offset`.
    pub(crate) fn corrupt(section: &'static str, offset: usize, what: impl Into<String>) -> Self {
        Self::Corrupt { section, offset: offset as u64, what: what.into() }
    }
}
