//! How long a text is, in tokens.
//!
//! The estimator is characters / 4, rounded up, and is named with every count that is stored, so that another one can
//! stand beside it.

/// The name of the estimator.
pub const ESTIMATOR: &str = "chars/4";

/// The estimated tokens of a text.
pub fn count(text: &str) -> u32 {
    of_chars(text.chars().count())
}

/// The estimated tokens of so many characters.
pub(crate) fn of_chars(chars: usize) -> u32 {
    u32::try_from(chars.div_ceil(4)).unwrap_or(u32::MAX)
}
