//! Bytes as hexadecimal digits.

use std::fmt::Write as _;

pub(crate) fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes of lower-case digits; `None` for another text.
pub(crate) fn decode(digits: &str) -> Option<Vec<u8>> {
    let canonical = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
    if !digits.len().is_multiple_of(2) || !digits.bytes().all(canonical) {
        return None;
    }
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

pub(crate) fn decode_array<const LEN: usize>(digits: &str) -> Option<[u8; LEN]> {
    decode(digits)?.try_into().ok()
}
