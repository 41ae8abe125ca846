//! A fleet of databases asked together: how much a router finds by asking few of them, and how fast.
//!
//! The generated fleet is made so that routing is not trivially right. Topics come from one pool with skew, so that
//! the common ones are in a tenth of the databases and the rare ones in a few; each database has three to eight of
//! them, also with skew. What happens in a topic of a database happens to one of a few names, and each name is one of
//! several databases. A tenth of the items are about any topic of the pool, whatever the database is about, and half
//! of the words of each text are common words, which every text has. A question has words of one item's topic, common
//! words, and in seven of ten cases the name; in three of ten, only the choice of words separates the databases of a
//! topic. The hashing embedder makes the vectors.
//!
//! `--data` takes passages with their facts and questions instead, as `multihop` does: neighbouring passages of the
//! file are one database.
//!
//! A question asked of all databases gives the ten rows to find; recall is the share of them that a question to few
//! databases finds. Each question is asked once before it is timed, with all databases open.

mod corpus;
mod passages;

use crate::Result;
use crate::measure::{memory, quantile_us, round};
use corpus::Corpus;
use holotype::fleet::{Fleet, FleetAnswer, FleetOptions, FleetRecall, RouteOptions};
use holotype::{Durability, Holotype, NewTrace, Options};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Rows of an answer.
const ROWS: usize = 10;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The number of databases.
    #[arg(long, default_value_t = 60)]
    databases: usize,
    /// Items of each.
    #[arg(long, default_value_t = 100)]
    items: usize,
    /// The number of questions.
    #[arg(long, default_value_t = 100)]
    questions: usize,
    /// Shares of the databases that are asked.
    #[arg(long, value_delimiter = ',', default_value = "0.01,0.02,0.05,0.1")]
    shares: Vec<f64>,
    /// Parts of a database in the router, at most.
    #[arg(long, default_value_t = RouteOptions::default().max_parts)]
    parts: usize,
    /// Threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// The seed of the generator.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Passages and questions: the folder with NAME.jsonl, NAME.f16.npy, NAME.questions.jsonl and the vectors of those.
    #[arg(long, value_name = "DIR", requires = "name")]
    data: Option<PathBuf>,
    /// The NAME of `--data`.
    #[arg(long)]
    name: Option<String>,
    /// Passages of `--data` that are one database.
    #[arg(long, default_value_t = 10)]
    passages: usize,
    /// Keep the databases in this folder, and reuse existing ones.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// A question, with its vector where nothing makes one.
pub(crate) struct Question {
    text: String,
    vector: Option<Vec<f32>>,
}

impl Question {
    fn recall(&self) -> FleetRecall {
        let recall = FleetRecall::default().limit(ROWS);
        match &self.vector {
            Some(vector) => recall.near(vector.clone()),
            None => recall,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let temporary = tempfile::tempdir()?;
    let dir = arguments.keep.clone().unwrap_or_else(|| temporary.path().to_owned());
    let folder = dir.join("fleet");
    std::fs::create_dir_all(&folder)?;
    let started = Instant::now();
    let questions = match (&arguments.data, &arguments.name) {
        (Some(data), Some(name)) => passages::make(data, name, arguments.passages, &folder)?,
        _ => generate(arguments, &folder)?,
    };
    let made_s = started.elapsed().as_secs_f64();
    let router = dir.join("router.holo");
    let pattern = folder.join("*.holo");
    let options = |router: Option<&Path>| FleetOptions {
        threads: arguments.threads,
        router: router.map(Path::to_owned),
        ..FleetOptions::default()
    };
    let mut fleet = Fleet::open([&pattern], options(None))?;
    let databases = fleet.paths().len();
    if !router.exists() {
        let started = Instant::now();
        let report = fleet.build_router(&router, RouteOptions { max_parts: arguments.parts }, &mut |_, _| {})?;
        let line = json!({
            "bench": "fleet", "phase": "build", "databases": report.added, "failed": report.failed.len(),
            "made_s": round(made_s, 1), "route_s": round(started.elapsed().as_secs_f64(), 2),
            "fleet_bytes": bytes_of(&folder)?, "router_bytes": bytes_of(&router)?,
        });
        println!("{line}");
    }
    drop(fleet);

    let fleet = Fleet::open([&pattern], options(Some(&router)))?;
    let cold = Instant::now();
    ask(&fleet, &questions[0], 1.0f64.max(databases as f64 * 0.05) as usize)?;
    let cold_ms = cold.elapsed().as_secs_f64() * 1e3;
    let (truth, all_times) = asked(&fleet, &questions, databases)?;
    let all_ms = quantile_us(&all_times, 0.5) / 1e3;
    for share in &arguments.shares {
        let ask = ((databases as f64 * share).floor() as usize).max(1);
        asked(&fleet, &questions, ask)?;
        let (answers, times) = asked(&fleet, &questions, ask)?;
        let recalls: Vec<f64> = truth.iter().zip(&answers).map(|(truth, answer)| recall_of(truth, answer)).collect();
        let best = truth.iter().zip(&answers).filter(|(truth, answer)| same_best(truth, answer)).count();
        let line = json!({
            "bench": "fleet", "phase": "ask", "databases": databases, "asked": ask,
            "share": round(ask as f64 / databases as f64, 4), "questions": questions.len(),
            "recall": round(recalls.iter().sum::<f64>() / recalls.len().max(1) as f64, 4),
            "best_found": round(best as f64 / questions.len().max(1) as f64, 4),
            "p50_ms": round(quantile_us(&times, 0.5) / 1e3, 2), "p95_ms": round(quantile_us(&times, 0.95) / 1e3, 2),
            "all_p50_ms": round(all_ms, 2), "cold_ms": round(cold_ms, 1), "open": fleet.open_count(),
            "threads": arguments.threads, "rss_bytes": memory("VmRSS"),
        });
        println!("{line}");
    }
    update(&pattern, &router, &options(None), arguments.parts)
}

/// The cost of one more item in one database: of the update, and of one that finds nothing to do.
fn update(pattern: &Path, router: &Path, options: &FleetOptions, parts: usize) -> Result<()> {
    let fleet = Fleet::open([pattern], options.clone())?;
    let path = fleet.paths().get(fleet.paths().len() / 2).ok_or("no database")?;
    let database = Holotype::open(path, Options::default())?;
    let mut transaction = database.begin()?;
    transaction.record(NewTrace::turn("update", "one more thing happened today"))?;
    transaction.commit(Durability::Sync)?;
    database.close()?;
    let timed = || -> Result<_> {
        let started = Instant::now();
        let mut fleet = Fleet::open([pattern], options.clone())?;
        let report = fleet.update_router(router, RouteOptions { max_parts: parts }, &mut |_, _| {})?;
        Ok((report, round(started.elapsed().as_secs_f64() * 1e3, 1)))
    };
    let (report, update_ms) = timed()?;
    let (none, none_ms) = timed()?;
    let line = json!({
        "bench": "fleet", "phase": "update", "databases": fleet.paths().len(), "updated": report.updated,
        "unchanged": report.unchanged, "update_ms": update_ms, "updated_after": none.updated, "none_ms": none_ms,
    });
    println!("{line}");
    Ok(())
}

/// Makes a fleet, unless it is there, and questions about it.
fn generate(arguments: &Arguments, folder: &Path) -> Result<Vec<Question>> {
    if arguments.databases == 0 || arguments.items == 0 || arguments.questions == 0 {
        return Err("--databases, --items and --questions need at least 1".into());
    }
    let mut corpus = Corpus::new(arguments.databases, arguments.seed);
    let paths: Vec<PathBuf> = (0..arguments.databases).map(|number| folder.join(format!("{number:06}.holo"))).collect();
    let texts: Vec<Vec<String>> = paths.iter().map(|_| corpus.database(arguments.items)).collect();
    let numbers: Vec<usize> = (0..paths.len()).filter(|number| !paths[*number].exists()).collect();
    let share = numbers.len().div_ceil(arguments.threads.max(1)).max(1);
    std::thread::scope(|scope| -> Result<()> {
        let writers: Vec<_> = numbers
            .chunks(share)
            .map(|numbers| {
                scope.spawn(|| -> holotype::Result<()> {
                    numbers.iter().try_for_each(|number| write(&paths[*number], &texts[*number]))
                })
            })
            .collect();
        for writer in writers {
            writer.join().map_err(|_| "a writer panicked")??;
        }
        Ok(())
    })?;
    Ok((0..arguments.questions).map(|_| Question { text: corpus.question(), vector: None }).collect())
}

fn write(path: &Path, texts: &[String]) -> holotype::Result<()> {
    let database = Holotype::create(path, Options::default().embedder(holotype::embed::HashingEmbedder::default()))?;
    let mut transaction = database.begin()?;
    let traces = texts.iter().map(|text| NewTrace::turn("work", text.clone()));
    transaction.record_all(traces)?;
    transaction.commit(Durability::None)?;
    database.close()
}

fn ask(fleet: &Fleet, question: &Question, ask: usize) -> Result<FleetAnswer> {
    let answer = fleet.recall(&question.text, &question.recall().ask(ask))?;
    match answer.failed.first() {
        Some(failure) => Err(failure.to_string().into()),
        None => Ok(answer),
    }
}

fn asked(fleet: &Fleet, questions: &[Question], most: usize) -> Result<(Vec<FleetAnswer>, Vec<Duration>)> {
    let (mut answers, mut times) = (Vec::new(), Vec::new());
    for question in questions {
        let started = Instant::now();
        let answer = ask(fleet, question, most)?;
        times.push(started.elapsed());
        answers.push(answer);
    }
    Ok((answers, times))
}

/// The share of the best rows of all that were found.
fn recall_of(truth: &FleetAnswer, answer: &FleetAnswer) -> f64 {
    let found: BTreeSet<_> = answer.rows.iter().map(|row| (&row.database, row.row.item)).collect();
    let hits = truth.rows.iter().filter(|row| found.contains(&(&row.database, row.row.item))).count();
    if truth.rows.is_empty() { 1.0 } else { hits as f64 / truth.rows.len() as f64 }
}

fn same_best(truth: &FleetAnswer, answer: &FleetAnswer) -> bool {
    let best = |answer: &FleetAnswer| answer.rows.first().map(|row| (row.database.clone(), row.row.item));
    best(truth) == best(answer)
}

/// Bytes of the files below a folder.
fn bytes_of(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() { bytes_of(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}
