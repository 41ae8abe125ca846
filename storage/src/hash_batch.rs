//! BLAKE3 of many short inputs at once.
//!
//! BLAKE3 is quick on long inputs because it compresses several of their chunks side by side. A record is rarely longer than
//! one or two chunks and would be hashed block after block, at a fifth of that rate. Here the inputs stand side by side: those
//! with equally many whole blocks are compressed together, as many at once as the machine has lanes.
//!
//! An input of at most one chunk (1024 bytes) goes through its blocks but the last together with others; the last, which may
//! be short and is the root, follows alone. An input of two chunks goes through its first chunk together with others; the
//! second and the parent of both follow alone. A longer one is left to BLAKE3. The results are those of `blake3::hash`, bit for
//! bit (BLAKE3 specification, section 2).
//!
//! Compressing inputs of one's own side by side is what the crate `blake3` calls its platform, which it does not promise to
//! keep: its version is therefore pinned.

use blake3::platform::{Platform, le_bytes_from_words_32, words_from_le_bytes_32};
use blake3::{BLOCK_LEN, CHUNK_LEN, IncrementCounter};

use crate::chain::Hash;

/// Longer inputs are hashed as fast alone.
pub(crate) const MAX_BATCHED_LEN: usize = 2 * CHUNK_LEN;

/// Inputs compressed in one call: as many as any machine has lanes.
const MAX_LANES: usize = 16;

const IV: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];
const CHUNK_START: u8 = 1;
const CHUNK_END: u8 = 2;
const PARENT: u8 = 4;
const ROOT: u8 = 8;

/// Inputs, and after [`HashBatch::run`] their hashes.
#[derive(Clone, Debug, Default)]
pub(crate) struct HashBatch {
    bytes: Vec<u8>,
    /// Where each input ends.
    ends: Vec<usize>,
    hashes: Vec<Hash>,
    order: Vec<usize>,
}

impl HashBatch {
    /// Forgets all inputs and their hashes.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.hashes.clear();
    }

    /// Adds an input, given in parts.
    pub(crate) fn push(&mut self, parts: &[&[u8]]) {
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.ends.push(self.bytes.len());
    }

    /// Hashes the inputs, in the order they were added.
    pub(crate) fn run(&mut self) -> &[Hash] {
        let platform = Platform::detect();
        let mut order = std::mem::take(&mut self.order);
        let mut hashes = std::mem::take(&mut self.hashes);
        order.clear();
        order.extend(0..self.ends.len());
        hashes.resize(self.ends.len(), Hash::default());
        let blocks = |at: &usize| blocks_together(self.input(*at).len());
        order.sort_by_key(blocks);
        for alike in order.chunk_by(|one, other| blocks(one) == blocks(other)) {
            for lanes in alike.chunks(MAX_LANES) {
                self.run_lanes(platform, lanes, &mut hashes);
            }
        }
        (self.order, self.hashes) = (order, hashes);
        &self.hashes
    }

    /// The hashes, once they are made.
    pub(crate) fn hashes(&self) -> &[Hash] {
        &self.hashes
    }

    fn input(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        let end = self.ends.get(at).copied().unwrap_or(start);
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// Hashes inputs that have equally many blocks to go through together.
    fn run_lanes(&self, platform: Platform, lanes: &[usize], hashes: &mut [Hash]) {
        let Some(&first) = lanes.first() else { return };
        let mut states = [IV; MAX_LANES];
        macro_rules! together {
            ($($blocks:literal)*) => {
                match blocks_together(self.input(first).len()) {
                    $($blocks => self.compress::<{ $blocks * BLOCK_LEN }>(platform, lanes, &mut states),)*
                    _ => {}
                }
            };
        }
        together!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
        for (&at, state) in lanes.iter().zip(states) {
            let input = self.input(at);
            let hash = if input.len() <= CHUNK_LEN {
                let done = blocks_together(input.len()) * BLOCK_LEN;
                let rest = input.get(done..).unwrap_or_default();
                chunk(platform, state, done == 0, rest, 0, ROOT)
            } else if input.len() <= MAX_BATCHED_LEN {
                let rest = input.get(CHUNK_LEN..).unwrap_or_default();
                let second = chunk(platform, IV, true, rest, 1, 0);
                parent_of_all(platform, &state, &second)
            } else {
                words_from_le_bytes_32(blake3::hash(input).as_bytes())
            };
            if let Some(place) = hashes.get_mut(at) {
                *place = le_bytes_from_words_32(&hash);
            }
        }
    }

    /// Compresses the first `N` bytes of each input.
    fn compress<const N: usize>(&self, platform: Platform, lanes: &[usize], states: &mut [[u32; 8]; MAX_LANES]) {
        let mut inputs = [&[0; N]; MAX_LANES];
        let mut count = 0;
        for (place, &at) in inputs.iter_mut().zip(lanes) {
            let Some(input) = self.input(at).first_chunk::<N>() else { return };
            *place = input;
            count += 1;
        }
        let last = if N == CHUNK_LEN { CHUNK_END } else { 0 };
        let mut out = [0; MAX_LANES * 32];
        platform.hash_many(&inputs[..count], &IV, 0, IncrementCounter::No, 0, CHUNK_START, last, &mut out);
        for (state, bytes) in states.iter_mut().zip(out.as_chunks::<32>().0) {
            *state = words_from_le_bytes_32(bytes);
        }
    }
}

/// How many blocks of an input are compressed together with those of others.
fn blocks_together(len: usize) -> usize {
    match len {
        0..=CHUNK_LEN => len.saturating_sub(1) / BLOCK_LEN,
        len if len <= MAX_BATCHED_LEN => CHUNK_LEN / BLOCK_LEN,
        _ => 0,
    }
}

/// The root over two chunks.
fn parent_of_all(platform: Platform, first: &[u32; 8], second: &[u32; 8]) -> [u32; 8] {
    let mut both = [0; BLOCK_LEN];
    both[..32].copy_from_slice(&le_bytes_from_words_32(first));
    both[32..].copy_from_slice(&le_bytes_from_words_32(second));
    let mut root = IV;
    platform.compress_in_place(&mut root, &both, BLOCK_LEN as u8, 0, PARENT | ROOT);
    root
}

/// Goes through the rest of a chunk to its end.
fn chunk(platform: Platform, mut state: [u32; 8], is_start: bool, rest: &[u8], number: u64, at_end: u8) -> [u32; 8] {
    let count = rest.len().div_ceil(BLOCK_LEN).max(1);
    let mut flags = if is_start { CHUNK_START } else { 0 };
    for at in 0..count {
        let from = rest.get(at * BLOCK_LEN..).unwrap_or_default();
        let len = from.len().min(BLOCK_LEN);
        let mut block = [0; BLOCK_LEN];
        block[..len].copy_from_slice(&from[..len]);
        if at + 1 == count {
            flags |= CHUNK_END | at_end;
        }
        platform.compress_in_place(&mut state, &block, len as u8, number, flags);
        flags = 0;
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn input(len: usize, seed: usize) -> Vec<u8> {
        (0..len).map(|at| (at * 31 + seed * 7 + at / 251) as u8).collect()
    }

    fn check(lens: &[usize]) {
        let inputs: Vec<Vec<u8>> = lens.iter().enumerate().map(|(seed, &len)| input(len, seed)).collect();
        let mut batch = HashBatch::default();
        for round in 0..2 {
            batch.clear();
            for input in &inputs {
                let (one, other) = input.split_at(input.len() / 3);
                batch.push(&[one, other]);
            }
            let expected: Vec<Hash> = inputs.iter().map(|input| blake3::hash(input).into()).collect();
            assert_eq!(batch.run(), expected, "lengths {lens:?}, round {round}");
            assert_eq!(batch.hashes(), expected);
        }
    }

    #[test]
    fn every_length_has_the_hash_of_blake3() {
        check(&[]);
        for len in 0..=MAX_BATCHED_LEN + 70 {
            check(&[len]);
        }
        for len in [0, 1, 63, 64, 65, 121, 128, 129, 225, 1023, 1024, 1025, 1049, 2047, 2048, 2049, 5000] {
            check(&vec![len; 37]);
        }
    }

    proptest! {
        #[test]
        fn any_mixture_has_the_hashes_of_blake3(lens in proptest::collection::vec(0..2300_usize, 0..60)) {
            check(&lens);
        }
    }
}
