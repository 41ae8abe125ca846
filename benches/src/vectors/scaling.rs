//! The same queries by one thread and by several, in turn.
//!
//! Each round asks everything with each number of threads, one after the other. `qps` and `p99_us` are medians over the
//! rounds; `scaling` is the median of a round's rate in parts of the same round's rate with the first number of
//! threads.

use super::{Arguments, Questions, ask};
use crate::Result;
use crate::measure::{median_of, quantile_us, round};
use holotype_index::VectorIndex;
use serde_json::json;
use std::time::{Duration, Instant};

/// Repetitions of everything in a round: once takes a few milliseconds only, and threads are started for each round.
const TIMES: usize = 32;

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
            let started = Instant::now();
            let answered = ask(index, ef, arguments.k, (*threads).max(1), TIMES, questions)?;
            let qps = answered.len() as f64 / started.elapsed().as_secs_f64();
            let took: Vec<Duration> = answered.iter().map(|answered| answered.took).collect();
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
