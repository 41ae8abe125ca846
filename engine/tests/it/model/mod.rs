//! The engine against a plain model in memory that recomputes everything from scratch: random operations, in
//! transactions that are committed or dropped, with checkpoints, reopening and rebuilding in between.
//!
//! Held to the model: keys, attributes (stated, inherited, support, trust), edges from both ends, pointers, pages, the
//! default reader. Snapshots taken on the way must say at the end what they said at first, and a database that lost
//! every derived file must say what it said before.

mod compare;
mod effects;
mod operation;
mod plain;
mod run;

use operation::op;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use run::Bench;

fn config() -> ProptestConfig {
    let seed = std::env::var("HOLOTYPE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(42);
    let cases = std::env::var("HOLOTYPE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(48);
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 4000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_engine_does_what_the_model_does(ops in vec(op(), 1..90)) {
        Bench::new().assert_agreement(&ops);
    }
}
