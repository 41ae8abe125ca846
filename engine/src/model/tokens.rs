//! Token counts of texts.
//!
//! The estimator is characters / 4, rounded up. Every stored count names its estimator, so that another one can be
//! added later.

/// The name of the estimator.
pub const ESTIMATOR: &str = "chars/4";

/// The estimated tokens of a text.
pub fn count(text: &str) -> u32 {
    of_chars(chars(text))
}

/// The number of characters. For ASCII texts, which are most and quick to detect, that is the number of bytes.
pub(crate) fn chars(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// The estimated tokens of a number of characters.
pub(crate) fn of_chars(chars: usize) -> u32 {
    u32::try_from(chars.div_ceil(4)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted_and_not_bytes() {
        for (text, tokens) in [("", 0), ("abc", 1), ("abcd", 1), ("abcde", 2), ("äöü€", 1), ("äöü€𝄞", 2)] {
            assert_eq!(count(text), tokens, "{text}");
        }
    }
}
