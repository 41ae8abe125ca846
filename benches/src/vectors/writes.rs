//! Vectors that are written while others are looked for, through the database's own face.
//!
//! | phase | what |
//! |---|---|
//! | writes | a trace with a vector, committed with `sync`, then a recall that must find it; a plain fdatasync beside |
//! | mixed | nine recalls of ten rows, then a commit without sync, over and over, on one thread |
//! | mixed-nearest | the same with `Snapshot::nearest` instead of recalls, the answers of vector libraries |
//! | mixed-index | the same on the vector index without a database: nine searches, then a new vector in the tail |
//!
//! Operations are counted by the clock and by processor time, which is what an unshared core would give; that of the
//! whole process, background work included. Besides, what a read and a write take of the thread that does them, and
//! what all other threads take a write: checkpoints and merges. At the end of a mix `segments` are the vectors in each,
//! oldest first, those without a graph below zero, and `tail` those in none.
//!
//! The database holds clustered vectors made here, checkpointed before anything is measured. A vector that the next
//! recall does not find is an error.

use super::IDENTITY;
use crate::Result;
use crate::append::text;
use crate::measure::{cpu_time, quantile_us, round, thread_cpu_time};
use crate::random::Random;
use holotype::answer::Output;
use holotype::query::{ParamValue, Params};
use holotype::{Durability, Encoding, Holotype, Layer, NewTrace, Options, Prepared, Snapshot, Space};
use holotype_index::segment::layout;
use holotype_index::{
    BuildOptions, Metric, Rows, SearchOptions, VectorIndex, VectorSegment, VectorSpec, VectorTail, build_segment,
};
use holotype_storage::segment_file::SegmentFile;
use serde_json::json;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const DIM: usize = 384;
const CENTRES: usize = 200;
/// Bytes of a trace's text.
const TEXT: usize = 256;
/// The statement of a vector search.
const NEAREST: &str = "recall near $v through traces 10 by near pool 10 score similarity 1 limit 10";
/// Traces of a commit, while the database is filled.
const BATCH: u32 = 1000;
const READS_A_WRITE: u32 = 9;

/// The phases, in the order in which they run.
const PHASES: [&str; 4] = ["writes", "mixed", "mixed-nearest", "mixed-index"];

/// Fills a database with `held` vectors and writes `count` more, in each of `phases`; in all, where there are none.
pub(super) fn run(dir: &Path, held: u32, count: u32, phases: &[String]) -> Result<()> {
    if let Some(unknown) = phases.iter().find(|phase| !PHASES.contains(&phase.as_str())) {
        return Err(format!("{unknown} is no phase: {} are", PHASES.join(", ")).into());
    }
    let asked_for = |phase: &str| phases.is_empty() || phases.iter().any(|asked| asked == phase);
    let temporary = tempfile::Builder::new().prefix("holotype-bench-").tempdir_in(dir)?;
    let space = Space::new("bench", DIM).encoding(Encoding::F16);
    let database = Holotype::create(temporary.path().join("writes.holo"), Options::with_space(space))?;
    let mut source = Source::new();
    for first in (0..held).step_by(BATCH as usize) {
        let mut transaction = database.begin()?;
        for _ in first..held.min(first + BATCH) {
            let (trace, _) = source.trace("held");
            transaction.record(trace)?;
        }
        transaction.commit(Durability::None)?;
    }
    database.checkpoint()?;
    if asked_for("writes") {
        synced(&database, &mut source, temporary.path(), held, count)?;
    }
    if asked_for("mixed") {
        let statement = database.prepare(NEAREST)?;
        mixed("mixed", &database, &mut source, held, count, |snapshot, vector| {
            nearest(snapshot, &statement, vector).map(|keys| keys.len())
        })?;
    }
    if asked_for("mixed-nearest") {
        mixed("mixed-nearest", &database, &mut source, held, count, |snapshot, vector| {
            Ok(snapshot.nearest(Layer::Trace, &vector, 10)?.len())
        })?;
    }
    database.close()?;
    if asked_for("mixed-index") {
        of_index(&mut source, held, count)?;
    }
    Ok(())
}

fn synced(database: &Holotype, source: &mut Source, dir: &Path, held: u32, count: u32) -> Result<()> {
    // The least that a commit writes: the text and the vector.
    let bytes = vec![7u8; TEXT + DIM * 2];
    let raw_file = File::create(dir.join("raw"))?;
    raw_file.write_all_at(&vec![0; bytes.len() * count as usize], 0)?;
    raw_file.sync_all()?;
    let statement = database.prepare(NEAREST)?;
    let (mut commits, mut raws, mut recalls) = (Vec::new(), Vec::new(), Vec::new());
    for at in 0..count {
        let started = Instant::now();
        raw_file.write_all_at(&bytes, u64::from(at) * bytes.len() as u64)?;
        raw_file.sync_data()?;
        raws.push(started.elapsed());
        let key = format!("w{at}");
        let (trace, vector) = source.trace("synced");
        let started = Instant::now();
        let mut transaction = database.begin()?;
        transaction.record(trace.key(key.as_str()))?;
        transaction.commit(Durability::Sync)?;
        commits.push(started.elapsed());
        let started = Instant::now();
        let nearest = nearest(&database.snapshot(), &statement, vector)?;
        recalls.push(started.elapsed());
        if !nearest.contains(&key) {
            return Err(format!("{key} was committed, and the next recall finds {nearest:?}").into());
        }
    }
    let middle = |durations: &[Duration]| quantile_us(durations, 0.5);
    let line = json!({
        "bench": "vectors", "engine": "holotype", "phase": "writes", "held": held, "dim": DIM, "commits": count,
        "p50_us": middle(&commits), "p99_us": quantile_us(&commits, 0.99), "raw_p50_us": middle(&raws),
        "raw_p99_us": quantile_us(&raws, 0.99), "ratio": round(middle(&commits) / middle(&raws), 3),
        "recall_p50_us": middle(&recalls), "found": count,
    });
    println!("{line}");
    Ok(())
}

fn mixed(
    phase: &str,
    database: &Holotype,
    source: &mut Source,
    held: u32,
    count: u32,
    ask: impl Fn(&Snapshot, Vec<f32>) -> Result<usize>,
) -> Result<()> {
    // Making vectors at random takes as long as finding some.
    let asked: Vec<Vec<f32>> = (0..count * READS_A_WRITE).map(|_| source.vector()).collect();
    let traces: Vec<NewTrace> = (0..count).map(|_| source.trace("mixed").0).collect();
    let mut times = Times::start();
    for (trace, vectors) in traces.into_iter().zip(asked.chunks(READS_A_WRITE as usize)) {
        for vector in vectors {
            let vector = vector.clone();
            let asked = Instant::now();
            if ask(&database.snapshot(), vector)? != 10 {
                return Err(format!("{phase}: ten were asked for").into());
            }
            times.reads.push(asked.elapsed());
        }
        times.reads_end();
        let began = Instant::now();
        let mut transaction = database.begin()?;
        transaction.record(trace)?;
        transaction.commit(Durability::None)?;
        times.writes.push(began.elapsed());
        times.write_ends();
    }
    let parts = parts(&database.snapshot())?;
    times.print(phase, held, count, &parts);
    Ok(())
}

/// The vectors of the traces in each segment, below zero where it has no graph, and in the tail.
fn parts(snapshot: &Snapshot) -> Result<(Vec<i64>, i64)> {
    let (mut segments, mut tail) = (Vec::new(), 0);
    for output in snapshot.query("show segments", &Params::new())? {
        let Output::Table(table) = output else { continue };
        for (layer, form, part, items, _) in table.typed::<(String, String, String, u64, Option<u64>)>()? {
            let items = i64::try_from(items)?;
            match (layer.as_str(), form.as_str(), part.as_str()) {
                ("trace", "vectors", "graph") => segments.push(items),
                ("trace", "vectors", "flat") => segments.push(-items),
                ("trace", "vectors", "tail") => tail = items,
                _ => {}
            }
        }
    }
    Ok((segments, tail))
}

fn of_index(source: &mut Source, held: u32, count: u32) -> Result<()> {
    let spec = VectorSpec::new(DIM, Metric::Cosine, Encoding::F16)?;
    let mut rows = Rows::new(spec);
    for id in 0..held {
        rows.push(id, &source.vector())?;
    }
    let file = build_segment(rows, IDENTITY, &BuildOptions::default())?.into_bytes();
    let file = SegmentFile::from_bytes(file, layout::KIND, &IDENTITY)?;
    let segments = Arc::new(vec![Arc::new(VectorSegment::open(file, &spec)?)]);
    let tail = VectorTail::new(spec);
    let vectors: Vec<Vec<f32>> = (0..count * (READS_A_WRITE + 1)).map(|_| source.vector()).collect();
    let mut index = VectorIndex::shared(Arc::clone(&segments), tail.view())?;
    let mut times = Times::start();
    for (id, vectors) in (held..).zip(vectors.chunks(READS_A_WRITE as usize + 1)) {
        let Some((new, asked)) = vectors.split_last() else { continue };
        for vector in asked {
            let began = Instant::now();
            index.search(vector, 10, SearchOptions::default())?;
            times.reads.push(began.elapsed());
        }
        times.reads_end();
        let began = Instant::now();
        tail.push(id, new)?;
        index = VectorIndex::shared(Arc::clone(&segments), tail.view())?;
        times.writes.push(began.elapsed());
        times.write_ends();
    }
    times.print("mixed-index", held, count, &(vec![i64::from(held)], i64::from(count)));
    Ok(())
}

/// The latencies of reads and writes, and their processor time.
struct Times {
    started: Instant,
    all_before: Duration,
    /// The processor time of this thread at the end of the last reads or the last write.
    own_before: Duration,
    own_reads: Duration,
    own_writes: Duration,
    reads: Vec<Duration>,
    writes: Vec<Duration>,
}

impl Times {
    fn start() -> Self {
        Self {
            started: Instant::now(),
            all_before: cpu_time(),
            own_before: thread_cpu_time(),
            own_reads: Duration::ZERO,
            own_writes: Duration::ZERO,
            reads: Vec::new(),
            writes: Vec::new(),
        }
    }

    fn own_since(&mut self) -> Duration {
        let now = thread_cpu_time();
        now - std::mem::replace(&mut self.own_before, now)
    }

    fn reads_end(&mut self) {
        let reads = self.own_since();
        self.own_reads += reads;
    }

    fn write_ends(&mut self) {
        let write = self.own_since();
        self.own_writes += write;
    }

    fn print(&self, phase: &str, held: u32, count: u32, (segments, tail): &(Vec<i64>, i64)) {
        let (wall, all) = (self.started.elapsed(), cpu_time() - self.all_before);
        let operations = f64::from(count * (READS_A_WRITE + 1));
        let each = |time: Duration, of: u32| round(time.as_secs_f64() * 1e6 / f64::from(of), 1);
        let line = json!({
            "bench": "vectors", "engine": "holotype", "phase": phase, "held": held, "dim": DIM, "writes": count,
            "operations_per_s": round(operations / wall.as_secs_f64(), 1),
            "operations_per_cpu_s": round(operations / all.as_secs_f64(), 1),
            "read_cpu_us": each(self.own_reads, count * READS_A_WRITE), "write_cpu_us": each(self.own_writes, count),
            "background_cpu_us_a_write": each(all.saturating_sub(self.own_reads + self.own_writes), count),
            "read_p50_us": quantile_us(&self.reads, 0.5), "read_p99_us": quantile_us(&self.reads, 0.99),
            "write_p50_us": quantile_us(&self.writes, 0.5), "write_p99_us": quantile_us(&self.writes, 0.99),
            "segments": segments, "tail": tail,
        });
        println!("{line}");
    }
}

/// The keys of the ten nearest traces.
fn nearest(snapshot: &Snapshot, statement: &Prepared, vector: Vec<f32>) -> Result<Vec<String>> {
    let params = Params::from([("v".to_owned(), ParamValue::Vector(vector))]);
    match snapshot.run(statement, &params)?.pop() {
        Some(Output::Answer(answer)) => Ok(answer.rows.into_iter().map(|row| row.key).collect()),
        _ => Err("a recall gave no answer".into()),
    }
}

/// The source of vectors and texts.
struct Source {
    random: Random,
    centres: Vec<Vec<f32>>,
}

impl Source {
    fn new() -> Self {
        let mut random = Random(9);
        let centres = (0..CENTRES).map(|_| (0..DIM).map(|_| random.normal()).collect()).collect();
        Self { random, centres }
    }

    fn vector(&mut self) -> Vec<f32> {
        let centre = self.random.below(CENTRES);
        self.centres[centre].iter().map(|x| x + self.random.normal()).collect()
    }

    fn trace(&mut self, episode: &str) -> (NewTrace, Vec<f32>) {
        let vector = self.vector();
        (NewTrace::turn(episode, text(TEXT, &mut self.random)).vector(vector.clone()), vector)
    }
}
