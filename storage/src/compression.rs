//! BLAKE3's compression of one block each, for many inputs side by side (BLAKE3 specification, section 2.2).
//!
//! The crate `blake3` compresses in parallel only whole blocks with equal flags. The last block of an input may be
//! short and may be the root, so here each block has its own length, chunk number and flags. The state has sixteen
//! words, and so does the block. As many blocks as a vector has lanes are transposed so that one vector holds the same
//! word of all of them, pass through the rounds together, and are transposed back.

use blake3::BLOCK_LEN;
use blake3::platform::{Platform, le_bytes_from_words_64, words_from_le_bytes_64};
use fearless_simd::{Level, Simd, SimdBase, dispatch};

/// The state before an input's first block.
pub(crate) const IV: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

const ROUNDS: usize = 7;
/// The permutation of a block's words between rounds.
const PERMUTATION: [usize; 16] = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];

/// Fewer blocks than this are faster to compress one by one.
const ENOUGH_LANES: usize = 4;

/// Sixteen words for each lane.
type Rows<S> = [<S as Simd>::u32s; 16];

/// A block to compress.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// Eight words of chaining value, four constants, the chunk's number in two words, length, flags.
    state: [u32; 16],
    message: [u32; 16],
}

impl Block {
    /// A block with `len` bytes, padded with zeros, of the chunk with this number.
    #[inline]
    pub(crate) fn new(state: &[u32; 8], bytes: &[u8; BLOCK_LEN], len: u8, chunk: u64, flags: u8) -> Self {
        let [a, b, c, d, e, f, g, h] = *state;
        let [i, j, k, l, ..] = IV;
        let (low, high) = (chunk as u32, (chunk >> 32) as u32);
        Self {
            state: [a, b, c, d, e, f, g, h, i, j, k, l, low, high, len.into(), flags.into()],
            message: words_from_le_bytes_64(bytes),
        }
    }

    /// The new chaining value, once the block was compressed.
    pub(crate) fn output(&self) -> [u32; 8] {
        let [a, b, c, d, e, f, g, h, ..] = self.state;
        [a, b, c, d, e, f, g, h]
    }

    fn compress_alone(&mut self, platform: Platform) {
        let [.., low, high, len, flags] = self.state;
        let mut output = self.output();
        let chunk = u64::from(low) | u64::from(high) << 32;
        platform.compress_in_place(&mut output, &le_bytes_from_words_64(&self.message), len as u8, chunk, flags as u8);
        self.state[..8].copy_from_slice(&output);
    }
}

/// Compresses all blocks.
pub(crate) fn compress(blocks: &mut [Block]) {
    compress_at(Level::new(), blocks);
}

fn compress_at(level: Level, blocks: &mut [Block]) {
    dispatch!(level, simd => compress_all(simd, blocks));
}

#[inline(always)]
fn compress_all<S: Simd>(simd: S, blocks: &mut [Block]) {
    for lanes in blocks.chunks_mut(S::u32s::LEN) {
        if lanes.len() < ENOUGH_LANES {
            let platform = Platform::detect();
            lanes.iter_mut().for_each(|block| block.compress_alone(platform));
        } else {
            compress_lanes(simd, lanes);
        }
    }
}

/// Compresses up to as many blocks as a vector has lanes.
#[inline(always)]
fn compress_lanes<S: Simd>(simd: S, blocks: &mut [Block]) {
    let mut state = turned::<S>(rows_of(simd, blocks, |block| &block.state));
    let mut message = turned::<S>(rows_of(simd, blocks, |block| &block.message));
    for _ in 0..ROUNDS {
        mix::<S>(&mut state, [0, 4, 8, 12], message[0], message[1]);
        mix::<S>(&mut state, [1, 5, 9, 13], message[2], message[3]);
        mix::<S>(&mut state, [2, 6, 10, 14], message[4], message[5]);
        mix::<S>(&mut state, [3, 7, 11, 15], message[6], message[7]);
        mix::<S>(&mut state, [0, 5, 10, 15], message[8], message[9]);
        mix::<S>(&mut state, [1, 6, 11, 12], message[10], message[11]);
        mix::<S>(&mut state, [2, 7, 8, 13], message[12], message[13]);
        mix::<S>(&mut state, [3, 4, 9, 14], message[14], message[15]);
        let before = message;
        for (word, from) in message.iter_mut().zip(PERMUTATION) {
            *word = before[from];
        }
    }
    let (low, high) = state.split_at_mut(8);
    for (low, high) in low.iter_mut().zip(high) {
        *low ^= *high;
    }
    let width = S::u32s::LEN;
    for (at, row) in turned::<S>(state).iter().enumerate() {
        if let Some(block) = blocks.get_mut(at % width) {
            row.store_slice(&mut block.state[at / width * width..][..width]);
        }
    }
}

/// One step of a round, on four words of the state.
#[inline(always)]
fn mix<S: Simd>(state: &mut Rows<S>, [a, b, c, d]: [usize; 4], x: S::u32s, y: S::u32s) {
    state[a] += state[b] + x;
    state[d] = rotated::<S>(state[d] ^ state[a], 16);
    state[c] += state[d];
    state[b] = rotated::<S>(state[b] ^ state[c], 12);
    state[a] += state[b] + y;
    state[d] = rotated::<S>(state[d] ^ state[a], 8);
    state[c] += state[d];
    state[b] = rotated::<S>(state[b] ^ state[c], 7);
}

#[inline(always)]
fn rotated<S: Simd>(words: S::u32s, right: u32) -> S::u32s {
    (words >> right) | (words << (32 - right))
}

/// The words of each block as rows: one row per lane with the blocks' first words, then one row per lane with the next
/// words. Unused lanes repeat the last block.
#[inline(always)]
fn rows_of<S: Simd>(simd: S, blocks: &[Block], words: impl Fn(&Block) -> &[u32; 16]) -> Rows<S> {
    let width = S::u32s::LEN;
    let mut rows = [S::u32s::splat(simd, 0); 16];
    for (at, row) in rows.iter_mut().enumerate() {
        let lane = (at % width).min(blocks.len() - 1);
        *row = S::u32s::from_slice(simd, &words(&blocks[lane])[at / width * width..][..width]);
    }
    rows
}

/// Transposes each square of rows, as wide as a vector.
///
/// One step interleaves the first half of a row with the first half of the row half a square below, which gives one
/// row, and their second halves, which give the next. After log2 of the width such steps each column is a row.
#[inline(always)]
fn turned<S: Simd>(mut rows: Rows<S>) -> Rows<S> {
    let width = S::u32s::LEN;
    for _ in 0..width.ilog2() {
        let before = rows;
        for pair in 0..8 {
            let first = pair / (width / 2) * width + pair % (width / 2);
            (rows[2 * pair], rows[2 * pair + 1]) = before[first].interleave(before[first + width / 2]);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The levels that this machine has.
    fn levels() -> Vec<Level> {
        let best = Level::new();
        #[cfg(target_arch = "x86_64")]
        let narrower = [best.as_sse4_2().map(Level::Sse4_2), best.as_avx2().map(Level::Avx2)];
        #[cfg(not(target_arch = "x86_64"))]
        let narrower = [None; 0];
        [best, Level::baseline()].into_iter().chain(narrower.into_iter().flatten()).collect()
    }

    type Parts = ([u32; 8], [u8; BLOCK_LEN], u8, u64, u8);

    fn check(parts: &[Parts]) {
        let expected: Vec<[u32; 8]> = parts
            .iter()
            .map(|(state, bytes, len, chunk, flags)| {
                let mut state = *state;
                Platform::portable().compress_in_place(&mut state, bytes, *len, *chunk, *flags);
                state
            })
            .collect();
        for level in levels() {
            let mut blocks: Vec<Block> = parts
                .iter()
                .map(|(state, bytes, len, chunk, flags)| Block::new(state, bytes, *len, *chunk, *flags))
                .collect();
            compress_at(level, &mut blocks);
            let outputs: Vec<[u32; 8]> = blocks.iter().map(Block::output).collect();
            assert_eq!(outputs, expected, "{} blocks, {level:?}", parts.len());
        }
    }

    #[test]
    fn so_many_blocks_as_leave_lanes_over_have_the_states_of_blake3() {
        let parts: Vec<Parts> = (0..50_u8)
            .map(|at| {
                let bytes = std::array::from_fn(|i| at.wrapping_mul(31).wrapping_add(i as u8));
                (std::array::from_fn(|i| u32::from(at) << i), bytes, at, u64::from(at) << 30, at % 16)
            })
            .collect();
        for count in 0..=parts.len() {
            check(&parts[..count]);
        }
    }

    fn any_parts() -> impl Strategy<Value = Parts> {
        let bytes = proptest::collection::vec(any::<u8>(), BLOCK_LEN);
        (any::<[u32; 8]>(), bytes, 0..=BLOCK_LEN as u8, any::<u64>(), 0..32_u8).prop_map(
            |(state, bytes, len, chunk, flags)| (state, bytes.try_into().unwrap_or([0; BLOCK_LEN]), len, chunk, flags),
        )
    }

    proptest! {
        #[test]
        fn any_blocks_have_the_states_of_blake3(parts in proptest::collection::vec(any_parts(), 0..40)) {
            check(&parts);
        }
    }
}
