//! Ingest: items with a text, a vector and a source, in durable commits, while questions are asked.
//!
//! For each size and each commit size a database is filled with distinct items made from a seed. A second thread asks
//! a question every 20 ms, by turns a recall with text and vector and a search for the nearest ten. After the last
//! commit the bench waits until all derived data exist, asks again, and closes. A line gives:
//!
//! | figure | meaning |
//! |---|---|
//! | `items_per_s` | items by the time from the first begin to the last acknowledgement |
//! | `p50_commit_ms`, `p99_commit_ms`, `worst_commit_ms` | from begin to acknowledgement |
//! | `cpu_us_item` | processor time of the process until all derived data exist, without the questions', by item |
//! | `load_cpu_us_item` | the same until the last acknowledgement |
//! | `settled_s`, `all_s` | from the last commit until all derived data exist; from the first |
//! | `query_p50_us`, `query_p99_us` | recalls while items were written |
//! | `during_*`, `after_*` | questions of each kind while items were written, and when all derived data existed |
//! | `*_recall_cpu_*` | the processor time of the recalls |
//! | `after_cpu_us` | processor time of a recall, the same again, by vector, by words, of a search |
//! | `recall_during`, `recall_after` | share of the true ten nearest among the ten found |
//! | `recall_fresh`, `fresh_s` | with `--fresh`: the same of files built anew from the log; how long that takes |
//! | `written_bytes_item`, `disk_bytes_item` | bytes given to write calls; bytes of the directory after closing |
//! | `disk_bytes_item_of` | the same for each kind of file |
//! | `peak_mb` | the greatest anonymous memory seen while items were written, above that before the start |
//! | `settling_peak_mb` | the same while derived data were finished, merges included |
//!
//! `--bulk` loads with `bulk_load` instead: nobody asks meanwhile, and `items_per_s` is by the time until all derived
//! data exist, everything is durable and the database has its name.
//!
//! With the feature `sqlite`, which `peers` includes, `--peers` adds SQLite: rows with text, vector and source, words
//! in FTS5, no index of vectors; its questions are by words alone, and its vectors in the encoding of ours.

mod corpus;
#[cfg(feature = "sqlite")]
mod peers;

use crate::Result;
use crate::measure::{anonymous_memory, cpu_time, quantile_us, round, thread_cpu_time};
use corpus::Corpus;
use holotype::{Durability, Encoding, Holotype, Layer, NewTrace, Options, Snapshot, Source, Space};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Between two questions during the load.
const PAUSE: Duration = Duration::from_millis(20);
/// Questions of each kind after the load: enough that pages and blocks that are read for the first time do not decide.
const AFTER: usize = 1000;
/// Searches of which the truth is computed.
const JUDGED: usize = 100;
/// Items of an episode.
const EPISODE: usize = 200;
const K: usize = 10;
/// The kinds of derived files.
const DERIVED: [&str; 4] = ["cseg", "redb", "vseg", "wseg"];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Items in the database, one run for each.
    #[arg(long, alias = "items", value_delimiter = ',', default_value = "10000")]
    sizes: Vec<usize>,
    /// Items of a commit, one run for each.
    #[arg(long, alias = "commit", value_delimiter = ',', default_value = "100")]
    commits: Vec<usize>,
    /// Dimensions of the vectors.
    #[arg(long, default_value_t = 384)]
    dim: usize,
    /// The length of a text in bytes.
    #[arg(long, default_value_t = 300)]
    bytes: usize,
    /// Ask nothing while items are written.
    #[arg(long)]
    quiet: bool,
    /// Load with `bulk_load`.
    #[arg(long)]
    bulk: bool,
    /// Also build all derived files anew from the log, and search those.
    #[arg(long)]
    fresh: bool,
    /// The option `memory_limit` of the database, in MiB.
    #[arg(long, default_value_t = 256)]
    memory_limit: u64,
    /// The value of the setting `claims`: whether claims are extracted from what is written.
    #[arg(long, value_parser = ["extract", "none"])]
    claims: Option<String>,
    /// Measure SQLite, too.
    #[cfg(feature = "sqlite")]
    #[arg(long)]
    peers: bool,
    /// The folder to write in; it must lie on the disk that is meant. Files made there are removed.
    #[arg(long, default_value = ".")]
    dir: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    for items in &arguments.sizes {
        let corpus = Corpus::new(*items, arguments.dim, arguments.bytes, AFTER);
        for per_commit in &arguments.commits {
            let dir = tempfile::Builder::new().prefix("holotype-bench-").tempdir_in(&arguments.dir)?;
            let run = if arguments.bulk { bulk } else { ingest };
            println!("{}", run(&corpus, (*per_commit).max(1), arguments, dir.path())?);
            #[cfg(feature = "sqlite")]
            if arguments.peers {
                println!("{}", peers::ingest(&corpus, (*per_commit).max(1), dir.path())?);
            }
        }
    }
    Ok(())
}

/// The cost of one run so far.
struct Usage {
    started: Instant,
    cpu: Duration,
    written: u64,
    memory: u64,
}

impl Usage {
    fn start() -> Self {
        let memory = anonymous_memory().unwrap_or_default();
        Self { started: Instant::now(), cpu: cpu_time(), written: written_bytes(), memory }
    }
}

/// Bytes that this process has given to write calls, as Linux tells it; nothing on other systems.
fn written_bytes() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.and_then(|line| line.trim().parse().ok()).unwrap_or_default()
}

fn directory_bytes(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { directory_bytes(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

/// Bytes by item of each kind of file in a directory, the kind being what follows the last dot of its name.
fn bytes_by_kind(dir: &Path, items: f64) -> Result<Value> {
    let mut kinds: BTreeMap<String, f64> = BTreeMap::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let (path, metadata) = (entry.path(), entry.metadata()?);
        if metadata.is_dir() {
            let of_folder = bytes_by_kind(&path, items)?;
            for (kind, bytes) in of_folder.as_object().into_iter().flatten() {
                *kinds.entry(kind.clone()).or_default() += bytes.as_f64().unwrap_or_default();
            }
            continue;
        }
        let kind = path.extension().or(path.file_name()).unwrap_or_default().to_string_lossy().into_owned();
        *kinds.entry(kind).or_default() += round(metadata.len() as f64 / items, 1);
    }
    Ok(json!(kinds))
}

/// Runs some work, and gives the greatest anonymous memory seen meanwhile.
fn peak_while<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut most = 0;
            loop {
                most = most.max(anonymous_memory().unwrap_or_default());
                if done.load(Ordering::Acquire) {
                    return most;
                }
                std::thread::sleep(PAUSE);
            }
        });
        let made = work();
        done.store(true, Ordering::Release);
        (made, watcher.join().unwrap_or_default())
    })
}

/// The options of the database.
fn options(corpus: &Corpus, arguments: &Arguments) -> Options {
    let space = Space::new("bench", corpus.dim).encoding(Encoding::F16);
    Options { memory_limit: arguments.memory_limit << 20, ..Options::with_space(space) }
}

/// Creates the database with the settings of the run.
fn create(corpus: &Corpus, arguments: &Arguments, path: &Path) -> Result<Holotype> {
    let database = Holotype::create(path, options(corpus, arguments))?;
    if let Some(claims) = &arguments.claims {
        let mut transaction = database.begin()?;
        transaction.set("claims", claims)?;
        transaction.commit(Durability::Sync)?;
    }
    Ok(database)
}

fn ingest(corpus: &Corpus, per_commit: usize, arguments: &Arguments, dir: &Path) -> Result<Value> {
    let path = dir.join("ingest.holo");
    let database = create(corpus, arguments, &path)?;
    let usage = Usage::start();
    let done = AtomicBool::new(false);
    let (commits, loaded, asked) = std::thread::scope(|scope| {
        let asker = (!arguments.quiet).then(|| scope.spawn(|| ask_during(&database, corpus, &done)));
        let commits = fill(&database, corpus, per_commit, Durability::Sync);
        let loaded = (usage.started.elapsed(), cpu_time() - usage.cpu);
        done.store(true, Ordering::Release);
        let asked = asker.map(|asker| asker.join().expect("the asker does not panic")).transpose();
        (commits, loaded, asked.map(Option::unwrap_or_default).map_err(|error| error.to_string()))
    });
    let (commits, mut asked) = (commits?, asked?);
    asked.memory = asked.memory.max(anonymous_memory().unwrap_or_default());
    let waited = Instant::now();
    let (settled, settling) = peak_while(|| database.checkpoint());
    settled?;
    let (built, all) = (waited.elapsed(), usage.started.elapsed());
    let items = corpus.texts.len() as f64;
    let own = asked.cpu;
    let per_item = |time: Duration| round(time.saturating_sub(own).as_secs_f64() * 1e6 / items, 1);
    let cpu = cpu_time() - usage.cpu;
    let megabytes = |bytes: u64| round(bytes.saturating_sub(usage.memory) as f64 / 1e6, 1);
    let after = ask_after(&database.snapshot(), corpus)?;
    asked.judge(corpus);
    database.close()?;
    let milliseconds = |share| round(quantile_us(&commits, share) / 1e3, 3);
    let mut line = json!({
        "bench": "ingest", "engine": "holotype", "items": corpus.texts.len(), "commit": per_commit,
        "items_per_s": round(items / loaded.0.as_secs_f64(), 1),
        "p50_commit_ms": milliseconds(0.5), "p99_commit_ms": milliseconds(0.99), "worst_commit_ms": milliseconds(1.0),
        "cpu_us_item": per_item(cpu), "load_cpu_us_item": per_item(loaded.1),
        "settled_s": round(built.as_secs_f64(), 3), "all_s": round(all.as_secs_f64(), 2),
        "written_bytes_item": round((written_bytes() - usage.written) as f64 / items, 0),
        "disk_bytes_item": round(directory_bytes(&path)? as f64 / items, 0),
        "disk_bytes_item_of": bytes_by_kind(&path, items)?,
        "peak_mb": megabytes(asked.memory), "settling_peak_mb": megabytes(settling),
    });
    asked.write_into("during", &mut line);
    after.write_into("after", &mut line);
    if arguments.fresh {
        let (fresh, took) = build_anew(corpus, arguments, &path)?;
        line["recall_fresh"] = json!(fresh.share());
        line["fresh_s"] = json!(round(took.as_secs_f64(), 2));
    }
    Ok(line)
}

/// Loads with `bulk_load`, and asks when the database has its name.
fn bulk(corpus: &Corpus, per_commit: usize, arguments: &Arguments, dir: &Path) -> Result<Value> {
    let path = dir.join("bulk.holo");
    let usage = Usage::start();
    let (database, peak) = peak_while(|| -> Result<Holotype, String> {
        let load = Holotype::bulk_load(&path, options(corpus, arguments)).map_err(|error| error.to_string())?;
        fill(load.database(), corpus, per_commit, Durability::None).map_err(|error| error.to_string())?;
        load.finish().map_err(|error| error.to_string())
    });
    let database = database?;
    let (all, cpu) = (usage.started.elapsed(), cpu_time() - usage.cpu);
    let after = ask_after(&database.snapshot(), corpus)?;
    database.close()?;
    let items = corpus.texts.len() as f64;
    let mut line = json!({
        "bench": "ingest", "engine": "holotype bulk_load", "items": corpus.texts.len(), "commit": per_commit,
        "items_per_s": round(items / all.as_secs_f64(), 1), "all_s": round(all.as_secs_f64(), 2),
        "cpu_us_item": round(cpu.as_secs_f64() * 1e6 / items, 1),
        "written_bytes_item": round((written_bytes() - usage.written) as f64 / items, 0),
        "disk_bytes_item": round(directory_bytes(&path)? as f64 / items, 0),
        "peak_mb": round(peak.saturating_sub(usage.memory) as f64 / 1e6, 1),
    });
    after.write_into("after", &mut line);
    Ok(line)
}

/// Removes the derived files, opens the database, which builds them from the log, and searches it. Also returns how
/// long building took.
fn build_anew(corpus: &Corpus, arguments: &Arguments, path: &Path) -> Result<(Asked, Duration)> {
    remove_derived(path)?;
    let started = Instant::now();
    let database = Holotype::open(path, options(corpus, arguments))?;
    database.checkpoint()?;
    let took = started.elapsed();
    let asked = ask_after(&database.snapshot(), corpus)?;
    database.close()?;
    Ok((asked, took))
}

fn remove_derived(dir: &Path) -> Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_derived(&path)?;
        } else if path.extension().is_some_and(|kind| DERIVED.iter().any(|derived| kind == *derived)) {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Writes all items; returns how long each commit took.
fn fill(database: &Holotype, corpus: &Corpus, per_commit: usize, durability: Durability) -> Result<Vec<Duration>> {
    let mut commits = Vec::with_capacity(corpus.texts.len().div_ceil(per_commit));
    for first in (0..corpus.texts.len()).step_by(per_commit) {
        let items = first..(first + per_commit).min(corpus.texts.len());
        let traces: Vec<NewTrace> = items.map(|item| trace(corpus, item)).collect();
        let started = Instant::now();
        let mut transaction = database.begin()?;
        for trace in traces {
            transaction.record(trace)?;
        }
        transaction.commit(durability)?;
        commits.push(started.elapsed());
    }
    Ok(commits)
}

fn trace(corpus: &Corpus, item: usize) -> NewTrace {
    let episode = format!("episode-{}", item / EPISODE);
    NewTrace::turn(episode, corpus.texts[item].as_str()).source(Source::User).vector(corpus.vector(item))
}

/// Questions that were asked, and what they cost.
#[derive(Default)]
struct Asked {
    recalls: Vec<Duration>,
    /// Processor time of the same.
    recall_cpu: Vec<Duration>,
    nearest: Vec<Duration>,
    /// Of each search: the question, the items found, and of how many.
    given: Vec<(usize, HashSet<u32>, usize)>,
    found: usize,
    wanted: usize,
    /// Processor time of the thread that asked.
    cpu: Duration,
    /// The same for each kind of question that was asked when all was written.
    cpu_of: BTreeMap<&'static str, Duration>,
    memory: u64,
}

impl Asked {
    /// Asks by recall, with a text and a vector.
    fn recall(&mut self, snapshot: &Snapshot, corpus: &Corpus, at: usize) -> Result<()> {
        let question = &corpus.questions[at % corpus.questions.len()];
        let vector = question.vector.clone();
        let (started, cpu) = (Instant::now(), thread_cpu_time());
        let answer = snapshot.recall(question.text.as_str()).near(vector).run()?;
        self.recalls.push(started.elapsed());
        self.recall_cpu.push(thread_cpu_time() - cpu);
        if answer.rows.is_empty() && !snapshot.is_empty() {
            return Err("a recall found nothing".into());
        }
        Ok(())
    }

    /// Asks for the nearest items.
    fn nearest(&mut self, snapshot: &Snapshot, corpus: &Corpus, at: usize) -> Result<()> {
        let question = &corpus.questions[at % corpus.questions.len()];
        let started = Instant::now();
        let found = snapshot.nearest(Layer::Trace, &question.vector, K)?;
        self.nearest.push(started.elapsed());
        self.given.push((at, found.into_iter().map(|(id, _)| id.0).collect(), snapshot.len() as usize));
        Ok(())
    }

    /// Counts which of the true nearest were found, in a sample of the searches.
    fn judge(&mut self, corpus: &Corpus) {
        let step = self.given.len().div_ceil(JUDGED).max(1);
        for (at, found, count) in self.given.iter().step_by(step) {
            let question = &corpus.questions[at % corpus.questions.len()];
            let truth = corpus.nearest(&question.vector, *count, K);
            self.found += truth.iter().filter(|item| found.contains(item)).count();
            self.wanted += truth.len();
        }
    }

    fn write_into(&self, when: &str, line: &mut Value) {
        let milliseconds = |times: &[Duration], share| round(quantile_us(times, share) / 1e3, 3);
        for (name, times) in [("recall", &self.recalls), ("recall_cpu", &self.recall_cpu), ("nearest", &self.nearest)] {
            if times.is_empty() {
                continue;
            }
            if (when, name) == ("during", "recall") {
                line["query_p50_us"] = json!(quantile_us(times, 0.5));
                line["query_p99_us"] = json!(quantile_us(times, 0.99));
            }
            line[format!("{when}_{name}_p50_ms")] = json!(milliseconds(times, 0.5));
            line[format!("{when}_{name}_p99_ms")] = json!(milliseconds(times, 0.99));
        }
        for (kind, cpu) in &self.cpu_of {
            line[format!("{when}_cpu_us")][*kind] = json!(round(cpu.as_secs_f64() * 1e6 / AFTER as f64, 1));
        }
        if self.wanted > 0 {
            line[format!("recall_{when}")] = json!(self.share());
        }
    }

    /// The share of the true nearest that were found.
    fn share(&self) -> f64 {
        round(self.found as f64 / self.wanted.max(1) as f64, 4)
    }
}

/// Asks until the load is done.
fn ask_during(database: &Holotype, corpus: &Corpus, done: &AtomicBool) -> Result<Asked, String> {
    let mut asked = Asked::default();
    let ask = |asked: &mut Asked, at: usize| -> Result<()> {
        let snapshot = database.snapshot();
        if snapshot.is_empty() {
            return Ok(());
        }
        asked.recall(&snapshot, corpus, at)?;
        asked.nearest(&snapshot, corpus, at)
    };
    let cpu = thread_cpu_time();
    let mut at = 0;
    while !done.load(Ordering::Acquire) {
        ask(&mut asked, at).map_err(|error| error.to_string())?;
        asked.memory = asked.memory.max(anonymous_memory().unwrap_or_default());
        at += 1;
        std::thread::sleep(PAUSE);
    }
    asked.cpu = thread_cpu_time() - cpu;
    Ok(asked)
}

fn ask_after(snapshot: &Snapshot, corpus: &Corpus) -> Result<Asked> {
    type Ask<'a> = &'a mut dyn FnMut(usize) -> Result<()>;
    let mut asked = Asked::default();
    let mut other = Asked::default();
    let question = |at: usize| &corpus.questions[at % corpus.questions.len()];
    let kinds: [(&str, Ask<'_>); 5] = [
        ("recall", &mut |at| asked.recall(snapshot, corpus, at)),
        ("again", &mut |at| other.recall(snapshot, corpus, at)),
        ("vector", &mut |at| Ok(snapshot.recall_near(question(at).vector.clone()).run().map(drop)?)),
        ("words", &mut |at| Ok(snapshot.recall(question(at).text.as_str()).run().map(drop)?)),
        ("nearest", &mut |at| Ok(snapshot.nearest(Layer::Trace, &question(at).vector, K).map(drop)?)),
    ];
    let mut cpu_of = BTreeMap::new();
    for (kind, ask) in kinds {
        let cpu = thread_cpu_time();
        (0..AFTER).try_for_each(ask)?;
        cpu_of.insert(kind, thread_cpu_time() - cpu);
    }
    asked.cpu_of = cpu_of;
    for at in 0..AFTER {
        asked.nearest(snapshot, corpus, at)?;
    }
    asked.judge(corpus);
    Ok(asked)
}
