//! Short words in sixteen bytes, found in text eight bytes at a time.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 15 | the bytes, zero-padded |
//! | 15 | 1 | length; plus 128 for a piece of text that is not a single word |
//!
//! Letters are classified eight at a time (SWAR; Lamport, *Multiple byte processing with full-word instructions*,
//! 1975): a byte `b` below 128 is a lower-case letter if the high bit of `b + 31` is set and that of `b + 5` is not,
//! and neither sum carries into the next byte. A byte from 128 on may carry, but it is not a letter, and bytes after
//! the first non-letter do not matter.

/// The maximum length in bytes.
pub(crate) const MAX_LEN: usize = 15;

/// Added to the length of a piece of text.
const PIECE: u64 = 128;
/// The value 1 in each byte.
const EACH: u64 = u64::MAX / 0xff;

/// A short word or piece of text as two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InlineWord {
    low: u64,
    high: u64,
}

impl InlineWord {
    /// The empty word.
    pub(crate) const NOTHING: Self = Self { low: 0, high: 0 };

    /// A word.
    pub(crate) fn word(word: &str) -> Option<Self> {
        let mut bytes = [0; MAX_LEN + 1];
        bytes.get_mut(..word.len()).filter(|_| word.len() <= MAX_LEN)?.copy_from_slice(word.as_bytes());
        let [low, high] = halves(bytes);
        Some(Self { low, high: high | length(word.len() as u64) })
    }

    /// A piece of text. Never equal to a word, even with the same bytes.
    pub(crate) fn piece(text: &str) -> Option<Self> {
        Self::word(text).map(|Self { low, high }| Self { low, high: high | length(PIECE) })
    }

    /// The leading word of ASCII letters, lower-cased, if it is short and only its first letter is upper-case.
    #[inline]
    pub(crate) fn leading(text: &[u8]) -> Option<Self> {
        let [low, high] = match text.first_chunk() {
            Some(bytes) => halves(*bytes),
            None => {
                let mut bytes = [0; MAX_LEN + 1];
                bytes.get_mut(..text.len())?.copy_from_slice(text);
                halves(bytes)
            }
        };
        let first_is_large = (low as u8).is_ascii_uppercase();
        let low = low | u64::from(first_is_large) << 5;
        let in_low = leading_small_letters(low);
        if in_low < 64 {
            return (in_low > 0).then(|| Self { low: low & ((1 << in_low) - 1), high: length(in_low / 8) });
        }
        let in_high = leading_small_letters(high);
        (in_high < 64).then(|| Self { low, high: high & ((1 << in_high) - 1) | length(8 + in_high / 8) })
    }

    /// A hash: the two halves of a product, folded together (Wang Yi, *wyhash*, 2019).
    #[inline]
    pub(crate) fn hash(self, [first, second]: [u64; 2]) -> u64 {
        let product = u128::from(self.low ^ first) * u128::from(self.high ^ second);
        product as u64 ^ (product >> 64) as u64
    }

    /// Its length in bytes.
    #[inline]
    pub(crate) fn len(self) -> usize {
        (self.high >> 56 & !PIECE) as usize
    }

    /// Replaces `text` with the word.
    pub(crate) fn write_into(self, text: &mut String) {
        text.clear();
        let bytes = (u128::from(self.high) << 64 | u128::from(self.low)).to_le_bytes();
        let written = bytes.get(..self.len()).and_then(|bytes| std::str::from_utf8(bytes).ok());
        text.push_str(written.expect("it was made of text"));
    }
}

fn length(len: u64) -> u64 {
    len << 56
}

fn halves(bytes: [u8; MAX_LEN + 1]) -> [u64; 2] {
    let both = u128::from_le_bytes(bytes);
    [both as u64, (both >> 64) as u64]
}

/// Eight times the number of leading lower-case letters.
fn leading_small_letters(bytes: u64) -> u64 {
    let small = bytes.wrapping_add(31 * EACH) & !bytes.wrapping_add(5 * EACH) & !bytes;
    u64::from((!small & (128 * EACH)).trailing_zeros() & !7)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &[u8]) -> Option<String> {
        let small = text.iter().skip(1).take_while(|byte| byte.is_ascii_lowercase()).count();
        let word = text.get(..1 + small).filter(|word| word[0].is_ascii_alphabetic() && word.len() <= MAX_LEN)?;
        Some(String::from_utf8(word.to_ascii_lowercase()).unwrap())
    }

    #[test]
    fn a_leading_word_is_the_one_found_byte_by_byte() {
        let mut shown = String::new();
        let mut check = |text: &[u8]| {
            let found = InlineWord::leading(text).map(|word| {
                word.write_into(&mut shown);
                assert_eq!(InlineWord::word(&shown), Some(word), "{text:?}");
                shown.clone()
            });
            assert_eq!(found, plain(text), "{text:?}");
        };
        // Every byte in every place, before and behind letters of both ends of the alphabet, in short texts and longer
        // ones.
        for byte in 0..=255 {
            for at in 0..18 {
                for len in [at + 1, 15, 16, 17, 24] {
                    for (before, behind) in [(b'a', b'z'), (b'z', b'a'), (b'm', 255)] {
                        let text: Vec<u8> = (0..len.max(at + 1))
                            .map(|place| match place {
                                place if place < at => before,
                                place if place == at => byte,
                                _ => behind,
                            })
                            .collect();
                        check(&text);
                    }
                }
            }
        }
        check(b"");
    }

    #[test]
    fn lengths_and_pieces_tell_words_apart() {
        assert_eq!(InlineWord::word("abcdefghijklmnop"), None);
        assert!(InlineWord::word("abcdefghijklmno").is_some());
        assert_ne!(InlineWord::word("a"), InlineWord::word("a\0"));
        assert_ne!(InlineWord::word("a"), InlineWord::piece("a"));
        assert_eq!(InlineWord::piece("a").unwrap().len(), 1);
    }
}
