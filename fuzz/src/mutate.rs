//! Mutations of seeds without a fuzzer: simple, fast and deterministic.
//!
//! They do not use coverage, so they find only defects near the seeds; libFuzzer finds deeper ones.

use crate::explore::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `target` on each seed and then on `count` mutations of seeds. Returns the first input that fails.
///
/// # Errors
/// The input that made the target panic.
pub fn run(target: fn(&[u8]), seeds: &[Vec<u8>], count: u32, seed: u64) -> Result<(), Vec<u8>> {
    let check = |input: &[u8]| catch_unwind(AssertUnwindSafe(|| target(input))).map_err(|_| input.to_vec());
    for input in seeds {
        check(input)?;
    }
    let mut random = Random(seed);
    for _ in 0..count {
        let mut input = random.pick(seeds).cloned().unwrap_or_default();
        for _ in 0..=random.index(3) {
            mutate(&mut input, seeds, &mut random);
        }
        check(&input)?;
    }
    Ok(())
}

/// Bytes and numbers at boundaries.
const EDGES: [&[u8]; 10] =
    [&[0], &[1], &[0x7f], &[0x80], &[0xff], &[0; 4], &[0xff; 4], &[0xff; 8], &[0, 0, 0, 0x80], b"'"];

fn mutate(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = random.index(input.len() + 1);
    let end = (at + 1 + random.index(16)).min(input.len());
    match random.index(8) {
        0 | 1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << random.index(8);
            }
        }
        2 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = random.next() as u8;
            }
        }
        3 => drop(input.drain(at..end)),
        4 => {
            let copy = input[at..end].to_vec();
            let to = random.index(input.len() + 1);
            input.splice(to..to, copy);
        }
        5 => {
            let edge = *random.pick(&EDGES).unwrap_or(&EDGES[0]);
            let end = (at + edge.len()).min(input.len());
            input.splice(at..end, edge.iter().copied());
        }
        6 => {
            let other = random.pick(seeds).map(Vec::as_slice).unwrap_or_default();
            let from = random.index(other.len() + 1);
            let to = (from + random.index(64)).min(other.len());
            input.splice(at..end, other[from..to].iter().copied());
        }
        _ => input.truncate(at),
    }
}
