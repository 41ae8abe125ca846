//! `holotype-bench`: what the database finds and how fast, as JSON Lines, one object per point.
//!
//! ```text
//! cargo run --release -p holotype-bench -- locomo --data DIR
//! cargo run --release -p holotype-bench -- tiermem --data DIR
//! cargo run --release -p holotype-bench -- tiermem --data DIR --replay 3
//! cargo run --release -p holotype-bench -- router --data DIR
//! cargo run --release -p holotype-bench -- nothing --data DIR
//! cargo run --release -p holotype-bench -- epistemic --data DIR
//! cargo run --release -p holotype-bench -- epistemic --style prose --seed 7
//! cargo run --release -p holotype-bench -- multihop DIR
//! cargo run --release -p holotype-bench -- multihop DIR --extract
//! cargo run --release -p holotype-bench -- multihop --generated 1,2,3
//! cargo run --release -p holotype-bench -- knowledge
//! cargo run --release -p holotype-bench -- ablation --data DIR
//! cargo run --release -p holotype-bench -- answers --data DIR
//! cargo run --release -p holotype-bench -- answers --only languages,alike
//! cargo run --release -p holotype-bench -- upkeep
//! cargo run --release -p holotype-bench -- claims --sizes 6000,100000
//! cargo run --release -p holotype-bench -- vectors --base F.npy --queries F.npy --truth F.npy
//! cargo run --release -p holotype-bench -- vectors --kernels
//! cargo run --release -p holotype-bench -- vectors --writes 1000
//! cargo run --release -p holotype-bench -- vectors --scaling 1,4 --base F.npy --queries F.npy --truth F.npy
//! cargo run --release -p holotype-bench --features peers -- vectors --peers --base F.npy --queries F.npy --truth F.npy
//! cargo run --release -p holotype-bench --features peers -- append --peers
//! cargo run --release -p holotype-bench -- ingest --sizes 10000,50000 --commits 1,100
//! cargo run --release -p holotype-bench -- batch
//! cargo run --release -p holotype-bench --features cuda -- cuda
//! cargo run --release -p holotype-bench -- verify
//! cargo run --release -p holotype-bench -- processes
//! cargo run --release -p holotype-bench -- python --vectors F.f32 --database NEW.holo
//! cargo run --release -p holotype-bench -- language
//! cargo run --release -p holotype-bench -- embed --model DIR
//! cargo run --release -p holotype-bench -- fleet --databases 1000 --items 1000
//! cargo run --release -p holotype-bench -- fleet --data DIR --name NAME
//! cargo run --release -p holotype-bench -- history --append docs/performance.md --commit COMMIT
//! cargo run --release -p holotype-bench -- compare OTHER_BUILD/holotype-bench --pairs 15
//! cargo run --release -p holotype-bench -- smoke
//! ```
//!
//! Data is read from where the caller keeps it; nothing is bundled. `smoke` runs every bench on small data made here.

#[macro_use]
mod output;

mod ablation;
mod answers;
mod append;
mod batch;
mod claims;
mod cuda;
mod dataset;
mod embed;
mod epistemic;
mod fleet;
mod history;
mod ingest;
mod knowledge;
mod language;
mod locomo;
mod measure;
mod multihop;
mod nothing;
mod npy_table;
mod processes;
mod python;
mod random;
mod reopen;
mod router;
mod smoke;
mod tiermem;
mod upkeep;
mod vectors;
mod verify;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Measures the quality and the speed of the database, as JSON Lines.
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
        /// Make the vectors by the model of this folder, or by the one called `hashing`, in place of the stored ones.
        #[arg(long, value_name = "DIR")]
        embedder: Option<String>,
    },
    /// Summaries or raw pages: evidence and tokens of every policy of TierMem on conversations.
    Tiermem(tiermem::Arguments),
    /// Router decisions on conversations, scored by TierMem's reward.
    Router(router::Arguments),
    /// Questions about a changing world: is the first row right, are the others stale, failed, foreign or guessed?
    Epistemic(epistemic::Arguments),
    /// Each conversation asked its own questions and those of the others: how often is something found?
    Nothing {
        /// The folder, laid out as for `locomo`.
        #[arg(long)]
        data: PathBuf,
    },
    /// The goals of the default recall: newest first, nothing hidden, equal answers, cost; ends with a table.
    Answers(answers::Arguments),
    /// Questions that need several passages: routed recall beside the best one shot of the same size.
    Multihop(multihop::Arguments),
    /// The graph of a large memory: hops, structuring, merging, credit.
    Knowledge(knowledge::Arguments),
    /// HELM's ablations: the default recall without one of its parts, on the questions of `epistemic`.
    Ablation {
        /// The folder, laid out as for `locomo`.
        #[arg(long)]
        data: PathBuf,
    },
    /// Pruning, consolidating, and one failed call with all that rests on it.
    Upkeep(upkeep::Arguments),
    /// Vector search: recall, speed, memory, with and without a filter.
    Vectors(vectors::Arguments),
    /// Many queries under one filter: one by one and in batches.
    Batch(batch::Arguments),
    /// Default recall where many items claim the same thing with other values.
    Claims(claims::Arguments),
    /// Batches on a GPU beside the CPU: times, bandwidth and products a second.
    Cuda(cuda::Arguments),
    /// Durable appends through the public API, beside what the disk can do.
    Append(append::Arguments),
    /// Items with texts and vectors in durable commits, while questions are asked.
    Ingest(ingest::Arguments),
    /// Verifying the log, beside hashing the same records.
    Verify(verify::Arguments),
    /// Processes that write to one database in turns, beside one.
    Processes(processes::Arguments),
    /// The Rust side of `python/bench.py`: the same load and recalls.
    Python(python::Arguments),
    /// The recall language: parsing, planning, looking up, counting, recalling.
    Language(language::Arguments),
    /// The static embedder: short texts a second of one core.
    Embed(embed::Arguments),
    /// Many databases asked together: what a router finds by asking few of them, and how fast.
    Fleet(fleet::Arguments),
    /// The tracked figures, from data made on the spot; with `--append`, as rows of a table.
    History(history::HistoryArguments),
    /// The tracked figures of another build beside those of this one: ratios of interleaved pairs.
    Compare(history::CompareArguments),
    /// Every bench on small data made on the spot, with its figures checked: is all of it sound?
    Smoke,
}

/// The result of a bench.
type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

fn run(bench: Bench) -> Result<()> {
    match bench {
        Bench::Locomo { data, embedder } => locomo::run(&data, embedder.as_deref()),
        Bench::Tiermem(arguments) => tiermem::run(&arguments),
        Bench::Router(arguments) => router::run(&arguments),
        Bench::Nothing { data } => nothing::run(&data),
        Bench::Epistemic(arguments) => epistemic::run(&arguments),
        Bench::Answers(arguments) => answers::run(&arguments),
        Bench::Multihop(arguments) => multihop::run(&arguments),
        Bench::Knowledge(arguments) => knowledge::run(&arguments),
        Bench::Ablation { data } => ablation::run(&data),
        Bench::Upkeep(arguments) => upkeep::run(&arguments),
        Bench::Vectors(arguments) => vectors::run(&arguments),
        Bench::Batch(arguments) => batch::run(&arguments),
        Bench::Claims(arguments) => claims::run(&arguments),
        Bench::Cuda(arguments) => cuda::run(&arguments),
        Bench::Append(arguments) => append::run(&arguments),
        Bench::Ingest(arguments) => ingest::run(&arguments),
        Bench::Verify(arguments) => verify::run(&arguments),
        Bench::Processes(arguments) => processes::run(&arguments),
        Bench::Python(arguments) => python::run(&arguments),
        Bench::Language(arguments) => language::run(&arguments),
        Bench::Embed(arguments) => embed::run(&arguments),
        Bench::Fleet(arguments) => fleet::run(&arguments),
        Bench::History(arguments) => history::run(&arguments),
        Bench::Compare(arguments) => history::compare(&arguments),
        Bench::Smoke => smoke::run(),
    }
}

fn main() -> ExitCode {
    let bench = Arguments::parse().bench;
    match output::until_closed(|| run(bench)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
