//! Recall where claims compete: the cost of a default recall when many items state the same thing with other values.
//!
//! A memory is made here, the same at every run: calls that state the price of a flight, each flight so many times, a
//! tenth of them failed, in episodes of so many items. A line gives:
//!
//! | figure | meaning |
//! |---|---|
//! | `first_p50_us`, `first_p99_us` | questions about a flight that nobody asked about before |
//! | `p50_us`, `p99_us` | the same questions asked again |
//! | `written_p50_us`, `written_p99_us` | each after one more commit about the flight it asks for |
//! | `…_cpu_p50_us` | the processor time of the same questions, which other programs lengthen less |
//! | `right_first` | share of answers whose first row is the newest call that did not fail |
//! | `cpu_us_item`, `plain_cpu_us_item` | processor time to write an item; the same with `claims = none` |
//! | `extraction_share` | the share of the first that claims cost |

use crate::Result;
use crate::measure::{cpu_time, quantile_us, round, thread_cpu_time};
use crate::random::Random;
use holotype::embed::HashingEmbedder;
use holotype::{Durability, Holotype, NewTrace, Options, Snapshot, Source, Space, Status};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Items in the database, one run for each.
    #[arg(long, value_delimiter = ',', default_value = "6000")]
    sizes: Vec<usize>,
    /// Calls that state the price of one flight.
    #[arg(long, default_value_t = 100)]
    rivals: usize,
    /// Items of an episode.
    #[arg(long, default_value_t = 10_000)]
    episode: usize,
    /// Dimensions of the vectors.
    #[arg(long, default_value_t = 64)]
    dim: usize,
    /// Questions of each kind.
    #[arg(long, default_value_t = 300)]
    questions: usize,
    /// The folder for the databases; by default a temporary folder in the current one.
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Calls of a transaction while the memory is made.
const BATCH: usize = 1_000;
/// Between two calls.
const STEP_US: i64 = 420_000_000;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    for items in &arguments.sizes {
        let dir = match &arguments.dir {
            Some(dir) => tempfile::tempdir_in(dir)?,
            None => tempfile::tempdir_in(".")?,
        };
        measure(arguments, *items, dir.path())?;
    }
    Ok(())
}

fn measure(arguments: &Arguments, items: usize, dir: &Path) -> Result<()> {
    // Without claims only so many are written that their cost shows.
    let sample = items.min(20_000);
    let plain = Calls::write(arguments, sample, &dir.join("plain.holo"), false)?;
    let sampled = Calls::write(arguments, sample, &dir.join("sampled.holo"), true)?;
    let mut calls = Calls::write(arguments, items, &dir.join("claims.holo"), true)?;
    let asked: Vec<usize> = (0..arguments.questions).map(|_| calls.random.below(items)).collect();
    let mut first = Asked::default();
    let mut again = Asked::default();
    for asked_again in [&mut first, &mut again] {
        let snapshot = calls.database.snapshot();
        for nth in &asked {
            asked_again.ask(&calls, &snapshot, *nth)?;
        }
    }
    let mut written = Asked::default();
    for nth in &asked {
        calls.write_one(*nth)?;
        let snapshot = calls.database.snapshot();
        written.ask(&calls, &snapshot, *nth)?;
    }
    let per_item = |calls: &Calls, items: usize| calls.cpu.as_secs_f64() * 1e6 / items as f64;
    let (with, without) = (per_item(&sampled, sample), per_item(&plain, sample));
    let right = first.right + again.right + written.right;
    println!(
        "{}",
        json!({
            "bench": "claims", "items": items, "rivals": arguments.rivals, "episode": arguments.episode,
            "questions": arguments.questions,
            "first_cpu_p50_us": quantile_us(&first.cpu, 0.5), "cpu_p50_us": quantile_us(&again.cpu, 0.5),
            "cpu_p99_us": quantile_us(&again.cpu, 0.99), "written_cpu_p50_us": quantile_us(&written.cpu, 0.5),
            "first_p50_us": quantile_us(&first.times, 0.5), "first_p99_us": quantile_us(&first.times, 0.99),
            "p50_us": quantile_us(&again.times, 0.5), "p99_us": quantile_us(&again.times, 0.99),
            "written_p50_us": quantile_us(&written.times, 0.5), "written_p99_us": quantile_us(&written.times, 0.99),
            "right_first": round(right as f64 / (3 * asked.len()) as f64, 4),
            "cpu_us_item": round(with, 2), "plain_cpu_us_item": round(without, 2),
            "extraction_share": round((with - without) / with, 4),
        })
    );
    calls.database.close()?;
    Ok(())
}

/// Times of questions.
#[derive(Default)]
struct Asked {
    times: Vec<Duration>,
    cpu: Vec<Duration>,
    right: usize,
}

impl Asked {
    /// Asks for the price that the call `nth` states, in its episode.
    fn ask(&mut self, calls: &Calls, snapshot: &Snapshot, nth: usize) -> Result<()> {
        let flight = calls.flight(nth);
        let question = format!("What is the price of flight UA{flight}?");
        let vector = calls.embed(&question)?;
        let (started, cpu) = (Instant::now(), thread_cpu_time());
        let recall = snapshot.recall(question).near(vector).in_episode(calls.episode(nth)).limit(5);
        let answer = recall.run()?;
        self.times.push(started.elapsed());
        self.cpu.push(thread_cpu_time() - cpu);
        let newest = calls.newest(nth);
        self.right += usize::from(answer.rows.first().is_some_and(|row| Some(row.item.0) == newest));
        Ok(())
    }
}

/// A database of calls.
struct Calls {
    database: Holotype,
    embedder: HashingEmbedder,
    random: Random,
    episode: usize,
    /// Flights of an episode.
    flights: usize,
    /// The number of the newest call about each flight of each episode that did not fail.
    newest: std::collections::HashMap<(usize, usize), u32>,
    written: usize,
    /// Processor time of the writing, the derived data included.
    cpu: Duration,
}

impl Calls {
    fn write(arguments: &Arguments, items: usize, path: &Path, claims: bool) -> Result<Calls> {
        let embedder = HashingEmbedder::new(arguments.dim);
        let database = Holotype::create(path, Options::with_space(Space::new(embedder.name(), arguments.dim)))?;
        if !claims {
            let mut transaction = database.begin()?;
            transaction.set("claims", "none")?;
            transaction.commit(Durability::None)?;
        }
        let flights = (arguments.episode.min(items) / arguments.rivals.max(1)).max(1);
        let mut calls = Calls {
            database,
            embedder,
            random: Random(0x5eed),
            episode: arguments.episode.max(1),
            flights,
            newest: Default::default(),
            written: 0,
            cpu: Duration::ZERO,
        };
        for first in (0..items).step_by(BATCH) {
            let drafts: Vec<NewTrace> = (first..items.min(first + BATCH)).map(|nth| calls.draft(nth)).collect();
            let cpu = cpu_time();
            let mut transaction = calls.database.begin()?;
            for draft in drafts {
                transaction.record(draft)?;
            }
            transaction.commit(Durability::None)?;
            calls.cpu += cpu_time() - cpu;
        }
        let cpu = cpu_time();
        calls.database.checkpoint()?;
        calls.cpu += cpu_time() - cpu;
        Ok(calls)
    }

    fn episode(&self, nth: usize) -> String {
        format!("episode-{}", nth / self.episode)
    }

    fn flight(&self, nth: usize) -> usize {
        // A multiplier without common divisors spreads the calls of a flight over its episode.
        nth * 7_919 % self.flights
    }

    fn newest(&self, nth: usize) -> Option<u32> {
        self.newest.get(&(nth / self.episode, self.flight(nth))).copied()
    }

    fn embed(&self, text: &str) -> Result<Vec<f32>> {
        self.embedder.embed(text).ok_or_else(|| "a text has no words".into())
    }

    /// The next call, about the flight of the call `nth` and in its episode.
    fn draft(&mut self, nth: usize) -> NewTrace {
        let (flight, price) = (self.flight(nth), 100 + self.random.below(900));
        let (status, id) = (self.random.below(10), self.written as u32);
        let status = if status == 0 { Status::Failed } else { Status::Success };
        if status == Status::Success {
            self.newest.insert((nth / self.episode, flight), id);
        }
        self.written += 1;
        let text = format!("The price of flight UA{flight} is ${price}.");
        let vector = self.embedder.embed(&text).unwrap_or_default();
        let call = NewTrace::call(self.episode(nth), "search_flights", text).vector(vector);
        call.status(status).source(Source::Tool).time(STEP_US * i64::from(id))
    }

    /// Writes one more call about the flight of the call `nth`.
    fn write_one(&mut self, nth: usize) -> Result<()> {
        let draft = self.draft(nth);
        let mut transaction = self.database.begin()?;
        transaction.record(draft)?;
        transaction.commit(Durability::None)?;
        Ok(())
    }
}
