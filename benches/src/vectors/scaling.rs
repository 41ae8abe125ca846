//! The same queries by one thread and by several, in turn.
//!
//! Each round asks everything with each number of threads, one after the other. `qps` and `p99_us` are medians over the
//! rounds; `scaling` is the median of a round's rate in parts of the same round's rate with the first number of threads.

use super::{Arguments, Questions, pass};
use crate::Result;
use crate::measure::{median_of, quantile_us, round};
use holotype_index::VectorIndex;
use serde_json::json;
use std::time::{Duration, Instant};

/// Passes of a round: one takes a few milliseconds only.
const PASSES: usize = 8;

struct Round {
    qps: f64,
    p99_us: f64,
}

/// Asks with each number of threads in `counts`, keeping `ef` candidates.
pub(super) fn run(
    index: &VectorIndex,
    ef: usize,
    counts: &[usize],
    arguments: &Arguments,
    questions: &Questions,
) -> Result<()> {
    let mut all: Vec<Vec<Round>> = counts.iter().map(|_| Vec::new()).collect();
    for _ in 0..arguments.rounds.max(1) {
        for (threads, rounds) in counts.iter().zip(&mut all) {
            let (started, mut took) = (Instant::now(), Vec::<Duration>::new());
            for _ in 0..PASSES {
                let answered = pass(index, ef, arguments.k, (*threads).max(1), questions)?;
                took.extend(answered.iter().map(|answered| answered.took));
            }
            let qps = took.len() as f64 / started.elapsed().as_secs_f64();
            rounds.push(Round { qps, p99_us: quantile_us(&took, 0.99) });
        }
    }
    for (threads, rounds) in counts.iter().zip(&all) {
        let shares = rounds.iter().zip(&all[0]).map(|(round, first)| round.qps / first.qps).collect();
        let line = json!({
            "bench": "vectors", "engine": "holotype", "phase": "scaling", "threads": threads, "ef": ef,
            "qps": round(median_of(rounds.iter().map(|round| round.qps).collect()), 1),
            "p99_us": median_of(rounds.iter().map(|round| round.p99_us).collect()),
            "scaling": round(median_of(shares), 3), "rounds": rounds.len(),
        });
        println!("{line}");
    }
    Ok(())
}
