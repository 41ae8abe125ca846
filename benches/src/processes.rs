//! Several processes that write to one database in turns, beside one: commits a second and the longest wait.
//!
//! Each writer is a process of its own that commits one short trace at a time with durability `sync`, for a fixed time.
//! Measured: one exclusive writer, one that takes turns with nobody, and two that alternate.

use crate::Result;
use crate::measure::{median_of, round};
use holotype::{Durability, Holotype, NewTrace, Options};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The time for which each writes, in milliseconds.
    #[arg(long, default_value_t = 2_000)]
    millis: u64,
    /// Rounds of the three measurements; the median ratio counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// The folder for the databases [default: the system's folder for temporary files].
    #[arg(long)]
    dir: Option<PathBuf>,
    /// A writing process: the database.
    #[arg(long, hide = true)]
    child: Option<PathBuf>,
    /// It has the database for itself.
    #[arg(long, hide = true)]
    exclusive: bool,
}

/// The result of some writers beside each other.
struct Rate {
    per_s: f64,
    longest_ms: f64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(path) = &arguments.child {
        return write(path, arguments.millis, arguments.exclusive);
    }
    let dir = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    let (mut ratios, mut shared_ratios) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds.max(1) {
        let alone = writers(&dir, arguments.millis, 1, true)?;
        let one = writers(&dir, arguments.millis, 1, false)?;
        let two = writers(&dir, arguments.millis, 2, false)?;
        for (name, rate) in [("exclusive", &alone), ("one", &one), ("two", &two)] {
            println!(
                "{}",
                json!({"bench": "processes", "writers": name, "commits_per_s": round(rate.per_s, 1),
                    "longest_wait_ms": round(rate.longest_ms, 2)})
            );
        }
        ratios.push(two.per_s / alone.per_s);
        shared_ratios.push(one.per_s / alone.per_s);
    }
    println!(
        "{}",
        json!({"bench": "processes", "two_of_exclusive": round(median_of(ratios), 3),
            "one_of_exclusive": round(median_of(shared_ratios), 3)})
    );
    Ok(())
}

/// Has so many processes write to a new database.
fn writers(dir: &Path, millis: u64, count: usize, exclusive: bool) -> Result<Rate> {
    let dir = tempfile::Builder::new().prefix("holotype-bench-").tempdir_in(dir)?;
    let path = dir.path().join("processes.holo");
    Holotype::create(&path, Options::default())?.close()?;
    let start = || -> Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["processes", "--millis", &millis.to_string(), "--child"]).arg(&path);
        if exclusive {
            command.arg("--exclusive");
        }
        Ok(command.stdout(Stdio::piped()).spawn()?)
    };
    let children = (0..count).map(|_| start()).collect::<Result<Vec<_>>>()?;
    let mut rate = Rate { per_s: 0.0, longest_ms: 0.0 };
    for child in children {
        let output = child.wait_with_output()?;
        if !output.status.success() {
            return Err("a writing process failed".into());
        }
        let said: Value = serde_json::from_slice(&output.stdout)?;
        rate.per_s += said["per_s"].as_f64().unwrap_or_default();
        rate.longest_ms = rate.longest_ms.max(said["longest_ms"].as_f64().unwrap_or_default());
    }
    Ok(rate)
}

/// A writing process.
fn write(path: &Path, millis: u64, exclusive: bool) -> Result<()> {
    let database = Holotype::open(path, Options { exclusive, ..Options::default() })?;
    let (started, mut commits, mut longest) = (Instant::now(), 0_u64, Duration::ZERO);
    while started.elapsed() < Duration::from_millis(millis) {
        let begun = Instant::now();
        let mut transaction = database.begin()?;
        transaction.record(NewTrace::turn("bench", "what was said, in a sentence of some length"))?;
        transaction.commit(Durability::Sync)?;
        longest = longest.max(begun.elapsed());
        commits += 1;
    }
    let per_s = commits as f64 / started.elapsed().as_secs_f64();
    println!("{}", json!({"per_s": per_s, "longest_ms": longest.as_secs_f64() * 1e3}));
    Ok(())
}
