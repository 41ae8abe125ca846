//! The errors of this crate.

use thiserror::Error;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of an index.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A vector's length is not the space's dimension.
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
        /// The index of the component, from 0.
        position: usize,
        /// The component's value.
        value: f32,
    },

    /// A component or a length that the space's encoding cannot represent.
    #[error("the vector is too long for the encoding {encoding}: {what}")]
    TooLarge {
        /// The space's encoding.
        encoding: &'static str,
        /// The bound that it breaks.
        what: String,
    },

    /// A space that no index supports.
    #[error("a space of {dim} dimensions is not supported; use 1 to {max} dimensions")]
    Space {
        /// The requested dimension.
        dim: usize,
        /// The supported maximum.
        max: usize,
    },

    /// Ids that do not ascend.
    #[error("id {next} follows id {previous}; ids must ascend")]
    IdOrder {
        /// The previous id.
        previous: u32,
        /// The next id, which is not greater.
        next: u32,
    },

    /// A segment was built for another space or analyser.
    #[error("the segment was made for {found}, the index is for {expected}; rebuild the index")]
    Mismatch {
        /// The space or analyser of the index.
        expected: String,
        /// The space or analyser of the segment.
        found: String,
    },

    /// Invalid bytes of a segment file.
    #[error("section {section} is damaged at byte {offset}: {what}; delete the file and run `holotype rebuild`")]
    Corrupt {
        /// The section's tag.
        section: &'static str,
        /// The offset in the section.
        offset: u64,
        /// The fault.
        what: String,
    },

    /// A segment whose vectors stand in the log, where no log was given.
    #[error("the vectors of the segment stand in the log; give the log to the index or to the merge")]
    NoLog,

    /// A segment without entries.
    #[error("a segment needs at least one entry")]
    Empty,

    /// More entries than a segment can hold.
    #[error("a segment holds at most {max} entries, not {found}")]
    TooMany {
        /// The number of entries.
        found: usize,
        /// The greatest number of entries.
        max: usize,
    },

    /// An unsupported number of links.
    #[error("m is {m}; use 2 to {max} links per node")]
    Links {
        /// The requested number.
        m: usize,
        /// The supported maximum.
        max: usize,
    },

    /// The caller asked for a build or a merge to stop.
    #[error("cancelled")]
    Cancelled,

    /// An error of the file.
    #[error(transparent)]
    Storage(#[from] holotype_storage::Error),
}

impl Error {
    /// Damage found in `section` at `offset`.
    pub(crate) fn corrupt(section: &'static str, offset: usize, what: impl Into<String>) -> Self {
        Self::Corrupt { section, offset: offset as u64, what: what.into() }
    }
}
