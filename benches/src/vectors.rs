//! A segment of vectors: building it, opening it, searching it at each ef, against the true neighbours.
//!
//! | phase | what is measured |
//! |---|---|
//! | build | taking the vectors over and linking them; reading the input and writing the file are left out |
//! | open | opening the file until its first answer; anonymous and file memory after all queries |
//! | search | all queries, passes over and over for a quarter of a second and at least three times |
//!
//! The build runs in a process of its own, so that the memory of the later phases is theirs. `qps` is the best pass by
//! the clock, `cpu_qps` by processor time, which is what an unshared core would give; a query's duration is the best of
//! its passes, which sheds pre-emption. Recall is the share of the true best k that is found; a truth of fewer than k
//! neighbours is filled up with -1. With a filter, the truth is that of what the filter lets through.
//!
//! Other things that the index is judged by have modules of their own: kernels, threads, writes, peers.

mod kernels;
#[cfg(feature = "peers")]
mod peers;
mod scaling;
mod writes;

use crate::Result;
use crate::measure::{anonymous_memory, cpu_time, memory, quantile_us, round};
use crate::npy_table::Table;
use holotype::interchange::NpyReader;
use holotype_index::bitmap::Bits;
use holotype_index::distance::{WANTED, kernels};
use holotype_index::segment::layout;
use holotype_index::{
    BuildOptions, Encoding, Metric, Rows, SearchOptions, TailView, VectorIndex, VectorSegment, VectorSpec,
    build_segment,
};
use holotype_storage::segment_file::{FileIdentity, SegmentFile};
use holotype_storage::vfs::OsVfs;
use rustix::fs::{Advice, fadvise};
use serde_json::json;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub(crate) const IDENTITY: FileIdentity = FileIdentity { database: *b"holotype-bench\0\0", generation: 1, place: 0 };
/// Rows that are read from the base at once.
const READ_ROWS: usize = 4096;
const MIN_PASSES: usize = 3;
const MAX_PASSES: usize = 12;
const MIN_TIME: Duration = Duration::from_millis(250);

/// The files that a search is about.
#[derive(clap::Args)]
struct Data {
    /// The vectors to search: rows of f32 or f16.
    #[arg(long, value_name = "F.npy", required = false, required_unless_present_any = ["kernels", "writes"])]
    base: PathBuf,
    /// The queries, as many numbers a row.
    #[arg(long, value_name = "F.npy", required = false, required_unless_present_any = ["kernels", "writes"])]
    queries: PathBuf,
    /// The true neighbours of each query, best first: int32 rows of the base.
    #[arg(long, value_name = "F.npy", required = false, required_unless_present_any = ["kernels", "writes"])]
    truth: PathBuf,
}

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Instead: measure the distance kernels, of vectors of so many numbers.
    #[arg(long, value_name = "DIM", num_args = 0..=1, default_missing_value = "384", value_parser = clap::value_parser!(u32).range(8..))]
    kernels: Option<u32>,
    /// The part of the compared bytes that lies in memory, in MiB.
    #[arg(long, default_value_t = 256, requires = "kernels", value_parser = clap::value_parser!(u32).range(1..))]
    far_mib: u32,
    /// Instead: write so many vectors into a database while looking for them.
    #[arg(long, value_name = "N", conflicts_with = "kernels")]
    writes: Option<u32>,
    /// So many vectors are in it before.
    #[arg(long, default_value_t = 20_000, requires = "writes")]
    held: u32,
    /// The folder to write in; it must lie on the disk that is meant. Files made there are removed.
    #[arg(long, default_value = ".", requires = "writes")]
    dir: PathBuf,
    /// Only these phases: writes, mixed, mixed-nearest, mixed-index.
    #[arg(long, value_name = "PHASE", value_delimiter = ',', requires = "writes")]
    phases: Vec<String>,
    #[command(flatten)]
    data: Option<Data>,
    /// The number of neighbours that are asked for.
    #[arg(long, default_value_t = 10)]
    k: usize,
    /// The number of candidates that a walk keeps, one point each.
    #[arg(long, value_delimiter = ',', default_values_t = [16, 32, 64, 128, 256])]
    ef: Vec<usize>,
    /// Recalls to reach by the calibration that the segment brings, one point each.
    #[arg(long, value_delimiter = ',')]
    recall: Vec<f32>,
    /// Threads that build and search.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Which vectors may be answers: uint8, one row for all queries or one for each, a flag for each vector.
    #[arg(long, value_name = "F.npy")]
    filter: Option<PathBuf>,
    /// The metric of vectors: cosine, dot or l2.
    #[arg(long, default_value = "cosine", value_parser = metric)]
    metric: Metric,
    /// The encoding of vectors: f32, f16 or i8.
    #[arg(long, default_value = "f16", value_parser = encoding)]
    encoding: Encoding,
    /// Keep the segment here, and do not build it when it is there already.
    #[arg(long, value_name = "FILE")]
    segment: Option<PathBuf>,
    /// Drop the segment from the system's cache before it is opened.
    #[arg(long)]
    cold: bool,
    /// Ask with each number of threads in turn, at the first `--ef`.
    #[arg(long, value_name = "THREADS", value_delimiter = ',')]
    scaling: Vec<usize>,
    /// Ask other libraries too, in turn with ours, on one thread; they are built with `--threads`.
    #[cfg(feature = "peers")]
    #[arg(long, conflicts_with = "filter")]
    peers: bool,
    /// The number of rounds in which everything is asked.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    #[arg(long, hide = true, requires = "segment")]
    build_only: bool,
}

pub(crate) fn metric(name: &str) -> Result<Metric, String> {
    Metric::from_name(name).ok_or_else(|| "cosine, dot or l2 is expected".to_owned())
}

pub(crate) fn encoding(name: &str) -> Result<Encoding, String> {
    Encoding::from_name(name).ok_or_else(|| "f32, f16 or i8 is expected".to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(dim) = arguments.kernels {
        return kernels::run(dim as usize, arguments.far_mib as usize);
    }
    if let Some(count) = arguments.writes {
        return writes::run(&arguments.dir, arguments.held, count, &arguments.phases);
    }
    let data = arguments.data.as_ref().ok_or("--base, --queries and --truth are expected")?;
    if let Some(wanted) = std::env::var(WANTED).ok().filter(|wanted| wanted != kernels().name()) {
        return Err(format!("this machine has no kernels {wanted}, which {WANTED} names").into());
    }
    let base = NpyReader::open(&data.base)?;
    let spec = VectorSpec::new(base.dim(), arguments.metric, arguments.encoding)?;
    if let (true, Some(path)) = (arguments.build_only, &arguments.segment) {
        return build(&base, spec, arguments.threads.max(1), path);
    }
    let questions = Questions::read(arguments, data, &base)?;
    let temporary = tempfile::tempdir()?;
    let path = arguments.segment.clone().unwrap_or_else(|| temporary.path().join("base.vseg"));
    if !path.exists() {
        build_elsewhere(arguments, data, &path)?;
    }
    let index = open(&path, spec, base.rows(), arguments, &questions)?;
    if let ([_, ..], Some(ef)) = (&arguments.scaling[..], arguments.ef.first()) {
        return scaling::run(&index, *ef, &arguments.scaling, arguments, &questions);
    }
    #[cfg(feature = "peers")]
    if arguments.peers {
        return peers::run(&index, &base, arguments, &questions);
    }
    for ef in &arguments.ef {
        println!("{}", search(&index, *ef, arguments, &questions)?);
    }
    for recall in &arguments.recall {
        let ef = index.ef_for_recall(*recall).ok_or("a segment without a graph has no calibration")?;
        let mut line = search(&index, ef, arguments, &questions)?;
        line["asked_recall"] = json!(round(f64::from(*recall), 5));
        println!("{line}");
    }
    Ok(())
}

/// Queries with their expected answers.
struct Questions {
    queries: Vec<Vec<f32>>,
    truth: Vec<HashSet<u32>>,
    /// None, one for all queries, or one for each.
    filters: Vec<Bits>,
}

impl Questions {
    fn read(arguments: &Arguments, data: &Data, base: &NpyReader) -> Result<Questions> {
        let reader = NpyReader::open(&data.queries)?;
        let mut queries = Vec::new();
        for row in 0..reader.rows() {
            let mut query = Vec::new();
            reader.read_row(row, &mut query)?;
            queries.push(query);
        }
        let filters = match &arguments.filter {
            Some(path) => filters(path, queries.len(), base.rows())?,
            None => Vec::new(),
        };
        let truth = truth(&data.truth, queries.len(), arguments.k, base.rows())?;
        let questions = Questions { queries, truth, filters };
        for (at, truth) in questions.truth.iter().enumerate() {
            if let Some(id) = questions.filter(at).and_then(|filter| truth.iter().find(|id| !filter.contains(**id))) {
                let truth = data.truth.display();
                return Err(format!("{truth}: row {at} names {id}, which the filter excludes: give the neighbours among matching vectors").into());
            }
        }
        Ok(questions)
    }

    fn filter(&self, at: usize) -> Option<&Bits> {
        self.filters.get(if self.filters.len() == 1 { 0 } else { at })
    }
}

fn filters(path: &Path, queries: usize, base: u64) -> Result<Vec<Bits>> {
    let table = Table::flags(path)?;
    if table.columns as u64 != base || (table.rows != 1 && table.rows != queries) {
        let (rows, columns) = (table.rows, table.columns);
        return Err(format!(
            "{}: 1 or {queries} rows of {base} are expected, found {rows} of {columns}",
            path.display()
        )
        .into());
    }
    Ok((0..table.rows).map(|row| table.set_of(row).collect()).collect())
}

fn truth(path: &Path, queries: usize, k: usize, base: u64) -> Result<Vec<HashSet<u32>>> {
    let table = Table::ids(path)?;
    if table.rows != queries || table.columns < k {
        let (rows, columns) = (table.rows, table.columns);
        return Err(format!(
            "{}: {queries} rows of at least {k} are expected, found {rows} of {columns}",
            path.display()
        )
        .into());
    }
    let row = |row| -> Result<HashSet<u32>> {
        let ids = table.ids_of(row).into_iter().take(k).filter(|id| *id != -1);
        ids.map(|id| match u32::try_from(id) {
            Ok(id) if u64::from(id) < base => Ok(id),
            _ => Err(format!("{}: row {row} names {id}; the base has {base} rows", path.display()).into()),
        })
        .collect()
    };
    (0..queries).map(row).collect()
}

/// Runs this program again to build the segment.
fn build_elsewhere(arguments: &Arguments, data: &Data, path: &Path) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("vectors").arg("--build-only").arg("--segment").arg(path);
    command.arg("--base").arg(&data.base).arg("--queries").arg(&data.queries);
    command.arg("--truth").arg(&data.truth);
    command.args(["--metric", arguments.metric.name(), "--encoding", arguments.encoding.name()]);
    command.args(["--threads", &arguments.threads.to_string()]);
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("the build ended with {status}").into()) }
}

fn build(base: &NpyReader, spec: VectorSpec, threads: usize, path: &Path) -> Result<()> {
    let mut rows = Rows::new(spec);
    let (mut taken, mut cpu) = (Duration::ZERO, Duration::ZERO);
    let mut numbers = Vec::new();
    let mut first = 0;
    while first < base.rows() {
        let count = READ_ROWS.min(usize::try_from(base.rows() - first)?);
        base.read_rows(first, count, &mut numbers)?;
        let (started, cpu_before) = (Instant::now(), cpu_time());
        for (row, id) in numbers.chunks_exact(spec.dim).zip(first..) {
            rows.push(u32::try_from(id)?, row)?;
        }
        taken += started.elapsed();
        cpu += cpu_time() - cpu_before;
        first += count as u64;
    }
    let (started, cpu_before) = (Instant::now(), cpu_time());
    let count = rows.len();
    let file = build_segment(rows, IDENTITY, &BuildOptions { threads, ..BuildOptions::default() })?;
    taken += started.elapsed();
    cpu += cpu_time() - cpu_before;
    let resident = memory("VmRSS");
    let disk_bytes = file.write(&OsVfs, path)?;
    let line = json!({
        "bench": "vectors", "engine": "holotype", "phase": "build", "threads": threads,
        "build_s": round(taken.as_secs_f64(), 3), "cpu_s": round(cpu.as_secs_f64(), 3), "disk_bytes": disk_bytes,
        "resident_bytes": resident, "peak_bytes": memory("VmHWM"), "vectors": count, "dim": spec.dim,
        "metric": spec.metric.name(), "encoding": spec.encoding.name(),
    });
    println!("{line}");
    Ok(())
}

fn open(
    path: &Path,
    spec: VectorSpec,
    count: u64,
    arguments: &Arguments,
    questions: &Questions,
) -> Result<VectorIndex> {
    if arguments.cold {
        let file = File::open(path)?;
        file.sync_all()?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    let (before, mapped_before) = (anonymous_memory(), memory("RssFile"));
    let started = Instant::now();
    let file = SegmentFile::open(&OsVfs, path, layout::KIND, &IDENTITY)?;
    let segment = VectorSegment::open(file, &spec)?;
    let held = segment.len() as u64;
    let index = VectorIndex::new(vec![Arc::new(segment)], TailView::empty(spec))?;
    let opened = started.elapsed();
    let ask = |at: usize| {
        let options = SearchOptions { filter: questions.filter(at), ..SearchOptions::default() };
        index.search(&questions.queries[at], arguments.k, options)
    };
    if held != count {
        return Err(format!("{}: a segment of {held} vectors; the base has {count}", path.display()).into());
    }
    if !questions.queries.is_empty() {
        ask(0)?;
    }
    let answered = started.elapsed();
    for at in 1..questions.queries.len() {
        ask(at)?;
    }
    let anonymous = anonymous_memory().zip(before).map(|(after, before)| after.saturating_sub(before));
    let line = json!({
        "bench": "vectors", "engine": "holotype", "phase": "open", "open_ms": round(opened.as_secs_f64() * 1e3, 3),
        "first_answer_ms": round(answered.as_secs_f64() * 1e3, 3), "anonymous_bytes": anonymous,
        "mapped_bytes": memory("RssFile").zip(mapped_before).map(|(after, before)| after.saturating_sub(before)),
        "disk_bytes": std::fs::metadata(path)?.len(), "cold": arguments.cold,
    });
    println!("{line}");
    Ok(index)
}

/// The result of one query.
#[derive(Clone, Default)]
struct Answered {
    ids: Vec<u32>,
    took: Duration,
    compared: u64,
    strategy: &'static str,
}

fn search(index: &VectorIndex, ef: usize, arguments: &Arguments, questions: &Questions) -> Result<serde_json::Value> {
    let threads = arguments.threads.max(1);
    let mut best: Vec<Answered> = Vec::new();
    let (mut wall, mut cpu) = (Duration::MAX, Duration::MAX);
    let started = Instant::now();
    for passes in 1..=MAX_PASSES {
        let (pass_started, cpu_before) = (Instant::now(), cpu_time());
        let pass = ask(index, ef, arguments.k, threads, 1, questions)?;
        wall = wall.min(pass_started.elapsed());
        cpu = cpu.min(cpu_time() - cpu_before);
        if best.is_empty() {
            best = pass;
        } else {
            best.iter_mut().zip(pass).for_each(|(best, now)| best.took = best.took.min(now.took));
        }
        if passes >= MIN_PASSES && started.elapsed() >= MIN_TIME {
            break;
        }
    }
    let (found, wanted) = best.iter().zip(&questions.truth).fold((0, 0), |(found, wanted), (answered, truth)| {
        (found + answered.ids.iter().filter(|id| truth.contains(id)).count(), wanted + truth.len())
    });
    let mut strategies: BTreeMap<&str, usize> = BTreeMap::new();
    best.iter().for_each(|answered| *strategies.entry(answered.strategy).or_default() += 1);
    let usual = strategies.iter().max_by_key(|(_, count)| **count).map_or("", |(name, _)| *name);
    let took: Vec<Duration> = best.iter().map(|answered| answered.took).collect();
    let count = best.len() as f64;
    let compared: u64 = best.iter().map(|answered| answered.compared).sum();
    let mut line = json!({
        "bench": "vectors", "engine": "holotype", "phase": "search", "threads": threads, "ef": ef, "k": arguments.k,
        "recall": if wanted == 0 { 1.0 } else { round(found as f64 / wanted as f64, 5) },
        "qps": round(count / wall.as_secs_f64(), 1), "cpu_qps": round(count * threads as f64 / cpu.as_secs_f64(), 1),
        "p50_us": quantile_us(&took, 0.5), "p99_us": quantile_us(&took, 0.99), "strategy": usual,
        "queries": best.len(), "compared": round(compared as f64 / count, 1),
        "kernels": kernels().name(),
    });
    if arguments.filter.is_some() {
        let matching: u64 = (0..best.len()).filter_map(|at| questions.filter(at)).map(Bits::count).sum();
        line["matching_share"] = json!(round(matching as f64 / count / index.len() as f64, 6));
        line["strategies"] = json!(strategies);
    }
    Ok(line)
}

/// Asks every query so many `times`, in order over and over, each thread the next that nobody has taken.
fn ask(
    index: &VectorIndex,
    ef: usize,
    k: usize,
    threads: usize,
    times: usize,
    questions: &Questions,
) -> Result<Vec<Answered>> {
    let (next, count) = (AtomicUsize::new(0), questions.queries.len());
    let work = || -> Result<Vec<(usize, Answered)>, holotype_index::Error> {
        let mut answered = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count * times {
                return Ok(answered);
            }
            let options = SearchOptions { ef, filter: questions.filter(at % count), ..SearchOptions::default() };
            let started = Instant::now();
            let search = index.search(&questions.queries[at % count], k, options)?;
            let took = started.elapsed();
            let ids = search.hits.iter().map(|hit| hit.id).collect();
            let strategy = search.parts.first().map_or("", |part| part.strategy.name());
            let compared = search.parts.iter().map(|part| part.compared).sum();
            answered.push((at, Answered { ids, took, compared, strategy }));
        }
    };
    let parts = if threads == 1 {
        vec![work()]
    } else {
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            workers.into_iter().map(|worker| worker.join().expect("a search does not panic")).collect()
        })
    };
    let mut all = vec![Answered::default(); count * times];
    for part in parts {
        for (at, answered) in part? {
            all[at] = answered;
        }
    }
    Ok(all)
}
