//! BLAKE3 of many short inputs at once.
//!
//! BLAKE3 is fast on long inputs because it compresses several of their chunks (1024 bytes) in parallel. A record is
//! rarely longer than a few chunks and would be hashed block after block, at a fifth of that rate. This module
//! compresses the chunks of all inputs in parallel: those with the same number of whole blocks together, as many at
//! once as the machine has lanes.
//!
//! 1. A chunk that is not the last of its input is compressed whole in a lane. Of an input's last chunk, all blocks but
//!    the last are; the last block, which may be short and may be the root, is compressed with the last blocks of all
//!    other inputs.
//! 2. The chunks of one call have the same index in their inputs or, if too few inputs have that many chunks, follow
//!    one another in one input: the compression takes one counter for all lanes, or consecutive counters.
//! 3. Parent nodes are compressed level by level.
//!
//! The results are those of `blake3::hash`, bit for bit (BLAKE3 specification, section 2).
//!
//! The crate `blake3` exposes this compression as `platform`, without a promise of stability, so its version is pinned.

use blake3::platform::{Platform, le_bytes_from_words_32, words_from_le_bytes_32};
use blake3::{BLOCK_LEN, CHUNK_LEN, IncrementCounter};

use crate::chain::Hash;
use crate::compression::{self, Block, IV};

/// Longer inputs have enough chunks to be hashed as fast alone.
pub(crate) const MAX_BATCHED_LEN: usize = 8 * CHUNK_LEN;

/// The greatest number of lanes of any machine.
const MAX_LANES: usize = 16;
/// From this many long inputs on, chunks with equal index fill the lanes as well as the chunks of one input.
const ENOUGH_LANES: usize = 4;
const CHUNK_BLOCKS: usize = CHUNK_LEN / BLOCK_LEN;

const CHUNK_START: u8 = 1;
const CHUNK_END: u8 = 2;
const PARENT: u8 = 4;
const ROOT: u8 = 8;

/// A batch of inputs and, after [`HashBatch::run`], their hashes.
#[derive(Clone, Debug, Default)]
pub(crate) struct HashBatch {
    /// The inputs, each padded with zeros to a whole block.
    bytes: Vec<u8>,
    /// Their chunks by the number of blocks that are compressed in lanes; in order before the run.
    chunks: [Vec<Chunk>; CHUNK_BLOCKS + 1],
    /// The number of chunks of each input.
    widths: Vec<usize>,
    /// The outputs of all chunks, then of each level of parents, and finally of the roots.
    outputs: Vec<Hash>,
    above: Vec<Hash>,
    /// The last block of each input, while it is compressed.
    last_blocks: Vec<Block>,
}

#[derive(Clone, Copy, Debug)]
struct Chunk {
    /// Its start and length in `bytes`.
    start: usize,
    len: usize,
    /// Its index in its input.
    number: usize,
    /// Its index among all chunks.
    slot: usize,
    /// True if it is its whole input.
    is_root: bool,
}

impl HashBatch {
    /// Removes all inputs and their hashes.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.chunks.iter_mut().for_each(Vec::clear);
        self.widths.clear();
        self.outputs.clear();
    }

    /// Adds an input, given in parts. Inlined, so that copying a part of constant length takes no call.
    #[inline]
    pub(crate) fn push<const N: usize>(&mut self, parts: [&[u8]; N]) {
        let start = self.bytes.len();
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.end_input(start);
    }

    /// Ends the input that starts at `start` in `bytes`.
    fn end_input(&mut self, start: usize) {
        let len = self.bytes.len() - start;
        self.bytes.extend_from_slice(&[0; BLOCK_LEN]);
        self.bytes.truncate(start + len.next_multiple_of(BLOCK_LEN).max(BLOCK_LEN));
        let width = len.div_ceil(CHUNK_LEN).max(1);
        for number in 0..width {
            let from = number * CHUNK_LEN;
            let is_last = number + 1 == width;
            let len = (len - from).min(CHUNK_LEN);
            // All blocks of a chunk that another one follows.
            let together = if is_last { len.saturating_sub(1) / BLOCK_LEN } else { CHUNK_BLOCKS };
            let slot = self.outputs.len();
            self.chunks[together].push(Chunk { start: start + from, len, number, slot, is_root: width == 1 });
            self.outputs.push(Hash::default());
        }
        self.widths.push(width);
    }

    /// Hashes the inputs, in the order in which they were added, and consumes them.
    pub(crate) fn run(&mut self) -> &[Hash] {
        let platform = Platform::detect();
        self.run_chunks(platform);
        self.run_last_blocks();
        let mut widths = std::mem::take(&mut self.widths);
        while self.outputs.len() > widths.len() {
            self.run_parents(platform, &mut widths);
        }
        self.widths = widths;
        &self.outputs
    }

    /// Compresses all blocks but the last of each input.
    fn run_chunks(&mut self, platform: Platform) {
        let mut chunks = std::mem::take(&mut self.chunks);
        for (together, chunks) in chunks.iter_mut().enumerate().skip(1) {
            let along = together == CHUNK_BLOCKS && are_few(chunks);
            let counters = if along { IncrementCounter::Yes } else { IncrementCounter::No };
            if !along {
                chunks.sort_unstable_by_key(|chunk| chunk.number);
            }
            let number_after = |chunk: &Chunk| if along { chunk.number + 1 } else { chunk.number };
            for alike in chunks.chunk_by(|one, next| number_after(one) == next.number) {
                for lanes in alike.chunks(lanes_of(platform)) {
                    self.run_lanes(platform, together, lanes, counters);
                }
            }
        }
        self.chunks = chunks;
    }

    /// Compresses this many blocks of each of the given chunks.
    fn run_lanes(&mut self, platform: Platform, blocks: usize, lanes: &[Chunk], counters: IncrementCounter) {
        let mut out = [0; MAX_LANES * 32];
        macro_rules! together {
            ($($blocks:literal)*) => {
                match blocks {
                    $($blocks => self.compress::<{ $blocks * BLOCK_LEN }>(platform, lanes, counters, &mut out),)*
                    _ => {}
                }
            };
        }
        together!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
        for (chunk, output) in lanes.iter().zip(out.as_chunks::<32>().0) {
            self.outputs[chunk.slot] = *output;
        }
    }

    /// Compresses the first `N` bytes of each chunk.
    fn compress<const N: usize>(
        &self,
        platform: Platform,
        lanes: &[Chunk],
        counters: IncrementCounter,
        out: &mut [u8; MAX_LANES * 32],
    ) {
        let mut inputs = [&[0; N]; MAX_LANES];
        for (place, chunk) in inputs.iter_mut().zip(lanes) {
            let Some(input) = self.bytes.get(chunk.start..).and_then(|rest| rest.first_chunk()) else { return };
            *place = input;
        }
        let number = lanes.first().map_or(0, |chunk| chunk.number as u64);
        let last = if N == CHUNK_LEN { CHUNK_END } else { 0 };
        platform.hash_many(
            &inputs[..lanes.len().next_power_of_two()],
            &IV,
            number,
            counters,
            0,
            CHUNK_START,
            last,
            out,
        );
    }

    /// Compresses the last block of each input, which belongs to its last chunk.
    fn run_last_blocks(&mut self) {
        self.last_blocks.clear();
        for (done, chunks) in self.chunks[..CHUNK_BLOCKS].iter().enumerate() {
            let start = if done == 0 { CHUNK_START } else { 0 };
            for chunk in chunks {
                let end = if chunk.is_root { CHUNK_END | ROOT } else { CHUNK_END };
                let at = chunk.start + done * BLOCK_LEN;
                let Some(block) = self.bytes.get(at..).and_then(|rest| rest.first_chunk()) else { return };
                let state = if done == 0 { IV } else { words_from_le_bytes_32(&self.outputs[chunk.slot]) };
                let len = (chunk.len - done * BLOCK_LEN) as u8;
                self.last_blocks.push(Block::new(&state, block, len, chunk.number as u64, start | end));
            }
        }
        compression::compress(&mut self.last_blocks);
        for (chunk, block) in self.chunks[..CHUNK_BLOCKS].iter().flatten().zip(&self.last_blocks) {
            self.outputs[chunk.slot] = le_bytes_from_words_32(&block.output());
        }
    }

    /// Replaces each pair of nodes of an input by their parent; an odd node moves up unchanged. `widths` has the number
    /// of nodes of each input, before and after.
    fn run_parents(&mut self, platform: Platform, widths: &mut [usize]) {
        self.above.clear();
        let mut roots = Vec::new();
        let mut inner = Vec::new();
        let mut rest = self.outputs.as_slice();
        for width in widths {
            let (nodes, others) = rest.split_at(*width);
            let (pairs, left_over) = nodes.as_chunks::<2>();
            let parents = if *width == 2 { &mut roots } else { &mut inner };
            for pair in pairs {
                parents.push((self.above.len(), pair));
                self.above.push(Hash::default());
            }
            self.above.extend_from_slice(left_over);
            *width = width.div_ceil(2);
            rest = others;
        }
        for (parents, flags) in [(roots, PARENT | ROOT), (inner, PARENT)] {
            for lanes in parents.chunks(lanes_of(platform)) {
                let mut inputs = [&[0; BLOCK_LEN]; MAX_LANES];
                for (input, (_, pair)) in inputs.iter_mut().zip(lanes) {
                    let Some(both) = pair.as_flattened().first_chunk() else { return };
                    *input = both;
                }
                let mut out = [0; MAX_LANES * 32];
                platform.hash_many(
                    &inputs[..lanes.len().next_power_of_two()],
                    &IV,
                    0,
                    IncrementCounter::No,
                    flags,
                    0,
                    0,
                    &mut out,
                );
                for ((at, _), parent) in lanes.iter().zip(out.as_chunks::<32>().0) {
                    if let Some(place) = self.above.get_mut(*at) {
                        *place = *parent;
                    }
                }
            }
        }
        std::mem::swap(&mut self.outputs, &mut self.above);
    }
}

/// True if few of the inputs of these whole chunks have more than one chunk.
fn are_few(chunks: &[Chunk]) -> bool {
    chunks.iter().filter(|chunk| chunk.number == 0).count() < ENOUGH_LANES
}

/// The number of lanes of this machine. A call with fewer inputs costs as much as the next power of two: unused lanes
/// take zeros.
fn lanes_of(platform: Platform) -> usize {
    platform.simd_degree().min(MAX_LANES)
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
                batch.push([one, other]);
            }
            let expected: Vec<Hash> = inputs.iter().map(|input| blake3::hash(input).into()).collect();
            assert_eq!(batch.run(), expected, "lengths {lens:?}, round {round}");
        }
    }

    #[test]
    fn every_length_has_the_hash_of_blake3() {
        check(&[]);
        for len in 0..=MAX_BATCHED_LEN + 70 {
            check(&[len]);
        }
        for len in [0, 1, 63, 64, 65, 121, 128, 129, 225, 1023, 1024, 1025, 1049, 2047, 2048, 2049, 5000, 8192, 20_000]
        {
            for count in [2, 3, 4, 5, 37] {
                check(&vec![len; count]);
            }
        }
    }

    proptest! {
        #[test]
        fn any_mixture_of_short_ones_has_the_hashes_of_blake3(lens in proptest::collection::vec(0..300_usize, 0..60)) {
            check(&lens);
        }

        #[test]
        fn any_mixture_has_the_hashes_of_blake3(lens in proptest::collection::vec(0..9000_usize, 0..40)) {
            check(&lens);
        }
    }
}
