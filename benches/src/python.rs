//! The Rust side of `python/bench.py`: the same load and the same recalls, for the program that measures the package.
//!
//! Vectors are read from a file of little-endian `f32`, which numpy's `tofile` writes. Texts, transactions and
//! statements are those of that program.

use crate::Result;
use crate::measure::{cpu_time, quantile_us, round, thread_cpu_time};
use holotype::answer::Output;
use holotype::query::{ParamValue, Params};
use holotype::{Durability, Holotype, Limits, NewTrace, Options, Space};
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Items of a transaction.
const BATCH: usize = 1_000;

const RECALL: &str = "recall $text near $vector in episode $episode limit $limit";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The vectors: little-endian f32, one row after another.
    #[arg(long)]
    vectors: PathBuf,
    /// The length of a vector.
    #[arg(long, default_value_t = 128)]
    dim: usize,
    /// The number of recalls.
    #[arg(long, default_value_t = 500)]
    recalls: usize,
    /// The path of the new database.
    #[arg(long)]
    database: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let bytes = std::fs::read(&arguments.vectors)?;
    let numbers: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number)).collect();
    let vectors: Vec<&[f32]> = numbers.chunks_exact(arguments.dim.max(1)).collect();
    let options = Options::with_space(Space::new("bench", arguments.dim));
    let database = Holotype::create(&arguments.database, options)?;
    load(&database, &vectors)?;
    recall(&database, &vectors, arguments.recalls)?;
    Ok(database.close()?)
}

/// Loads a trace for each vector, in transactions that are not synced, and ends with a checkpoint.
fn load(database: &Holotype, vectors: &[&[f32]]) -> Result<()> {
    let (started, cpu) = (Instant::now(), cpu_time());
    for (batch, rows) in vectors.chunks(BATCH).enumerate() {
        let mut transaction = database.begin()?;
        for (row, vector) in rows.iter().enumerate() {
            let n = batch * BATCH + row;
            let text = format!("turn {n}: we looked at flight {} for {} minutes", n % 997, n * 7 % 1009);
            transaction.record(NewTrace::turn(format!("e{batch}"), text).vector(vector.to_vec()))?;
        }
        transaction.commit(Durability::None)?;
    }
    database.checkpoint()?;
    let seconds = started.elapsed().as_secs_f64();
    let (per_s, cpu_s) = (round(vectors.len() as f64 / seconds, 0), (cpu_time() - cpu).as_secs_f64());
    println!(
        "{}",
        json!({"bench": "python", "what": "load", "items": vectors.len(), "items_per_s": per_s,
            "cpu_s": round(cpu_s, 3)})
    );
    Ok(())
}

fn recall(database: &Holotype, vectors: &[&[f32]], count: usize) -> Result<()> {
    let prepared = database.prepare(RECALL)?;
    let episodes = (vectors.len() / BATCH).max(1);
    let (mut totals, mut around) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let cpu = thread_cpu_time();
    for (n, vector) in vectors.iter().take(count).enumerate() {
        let started = Instant::now();
        let params = Params::from([
            ("text".to_owned(), ParamValue::Text(format!("flight {}", n % 997))),
            ("vector".to_owned(), ParamValue::Vector(vector.to_vec())),
            ("episode".to_owned(), ParamValue::Text(format!("e{}", n % episodes))),
            ("limit".to_owned(), ParamValue::Int(5)),
        ]);
        let outputs = database.run_within(&prepared, &params, &Limits::none())?;
        let Some(Output::Answer(answer)) = outputs.first() else { return Err("the recall gave no answer".into()) };
        let keys: Vec<&str> = answer.rows.iter().map(|row| row.key.as_str()).collect();
        assert!(!keys.is_empty(), "the recall found nothing");
        totals.push(started.elapsed());
        around.push(started.elapsed().saturating_sub(Duration::from_micros(answer.micros)));
    }
    let cpu_us = (thread_cpu_time() - cpu).as_secs_f64() * 1e6 / totals.len().max(1) as f64;
    println!(
        "{}",
        json!({"bench": "python", "what": "recall", "cpu_us": round(cpu_us, 1),
            "p50_us": round(quantile_us(&totals, 0.5), 1), "around_p50_us": round(quantile_us(&around, 0.5), 1)})
    );
    Ok(())
}
