//! BLAKE3 of bytes that arrive in small pieces.
//!
//! The hasher takes as long for a few bytes as for a kilobyte, and many chunks together take a fraction of the time of
//! separate ones. So small pieces are buffered, and an input that fits the buffer is hashed in one call.

/// The length at which buffered bytes are hashed.
const TOGETHER: usize = 16 << 10;

/// An incremental hasher with the results of `blake3::hash`.
#[derive(Clone, Debug, Default)]
pub struct BufferedHasher {
    waiting: Vec<u8>,
    /// The hasher over the bytes before the buffered ones; `None` until the buffer first overflows.
    begun: Option<Box<blake3::Hasher>>,
}

impl BufferedHasher {
    /// Appends bytes to the input.
    pub fn update(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= TOGETHER {
            self.begun.get_or_insert_default().update(&self.waiting);
            self.waiting.clear();
        }
    }

    /// Removes all bytes and keeps the buffer's capacity.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.begun = None;
    }

    /// The hash of the bytes so far.
    #[must_use]
    pub fn finalize(&self) -> [u8; 32] {
        match &self.begun {
            None => blake3::hash(&self.waiting).into(),
            Some(begun) => begun.as_ref().clone().update(&self.waiting).finalize().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_the_hash_of_the_whole() {
        let bytes: Vec<u8> = (0..5 * TOGETHER).map(|at| (at * 31 + at / 251) as u8).collect();
        let mut hasher = BufferedHasher::default();
        for piece in [1, 32, 1_000, TOGETHER - 1, TOGETHER, TOGETHER + 1, 3 * TOGETHER] {
            hasher.clear();
            let mut end = 0;
            assert_eq!(hasher.finalize(), *blake3::hash(b"").as_bytes());
            for (number, part) in bytes.chunks(piece).enumerate() {
                hasher.update(part);
                end += part.len();
                assert!(hasher.waiting.len() < TOGETHER);
                assert_eq!(hasher.begun.is_some(), end >= TOGETHER, "{end} bytes in pieces of {piece}");
                if number % 97 < 2 || end == bytes.len() {
                    assert_eq!(hasher.finalize(), *blake3::hash(&bytes[..end]).as_bytes(), "{end}, pieces of {piece}");
                }
            }
        }
    }
}
