//! BLAKE3 of bytes that come in small pieces.
//!
//! The hasher takes as long for a few bytes as for a kilobyte, and many together take a fraction of the time that they
//! take one by one. So the pieces wait until they are worth it, and what is no longer than that is hashed in one go.

/// As many bytes wait to be hashed together.
const TOGETHER: usize = 16 << 10;

/// Gives what `blake3::hash` gives of all bytes so far.
#[derive(Clone, Debug, Default)]
pub struct BufferedHasher {
    waiting: Vec<u8>,
    /// Over what came before those that wait, once there is any.
    begun: Option<Box<blake3::Hasher>>,
}

impl BufferedHasher {
    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= TOGETHER {
            self.begun.get_or_insert_default().update(&self.waiting);
            self.waiting.clear();
        }
    }

    /// Forgets all bytes; the room they took is used again.
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
