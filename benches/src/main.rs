//! `holotype-bench`: what the database finds and how fast, as JSON Lines, one object per point.
//!
//! ```text
//! cargo run --release -p holotype-bench -- locomo --data DIR
//! cargo run --release -p holotype-bench -- epistemic --data DIR
//! ```
//!
//! Data is read from where the caller keeps it; nothing is bundled. `smoke` runs every bench on small data made here.

mod dataset;
mod epistemic;
mod locomo;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// What the database finds and how fast, as JSON Lines.
#[derive(Parser)]
#[command(name = "holotype-bench", version)]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Evidence recall on conversations: how much of what answers a question fits a token budget.
    Locomo {
        /// The folder with NAME.jsonl, NAME.f16.npy, NAME.questions.jsonl and NAME.questions.f16.npy.
        #[arg(long)]
        data: PathBuf,
    },
    /// Questions about a changing world: is the first row right, are the others stale, failed, foreign or guessed?
    Epistemic {
        /// The folder, laid out as for `locomo`.
        #[arg(long)]
        data: PathBuf,
    },
}

/// What a bench may fail with.
type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

fn main() -> ExitCode {
    let done = match Arguments::parse().bench {
        Bench::Locomo { data } => locomo::run(&data),
        Bench::Epistemic { data } => epistemic::run(&data),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
