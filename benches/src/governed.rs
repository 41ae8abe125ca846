//! Governed top-k against the fastest exhaustive ranking we have.
//!
//! Every vector gets a status and a source at random, and an age: log-uniform from a minute to a year, or uniform over
//! three days. The score is that of recall's profile `agent`: similarity, recency that halves in a day, ten times the
//! status, the source. The scan compares all codes in one pass and scores exactly what a code cannot rule out; the
//! search draws from the graph and from blocks by status, source and time. Both run on one thread, in turns, over the
//! same mapped segment, and of each query's passes the fastest counts.
//!
//! | figure | what |
//! |---|---|
//! | agreement | the share of rows that are the same as in the exhaustive ranking |
//! | exact, converged, limited | the share of answers with that certificate |
//! | governed_us, scan_us | medians over the queries |
//! | ratio | of the two medians |

use crate::Result;
use crate::measure::{quantile_us, round};
use crate::random::Random;
use crate::vectors::{IDENTITY, encoding, metric};
use holotype::interchange::NpyReader;
use holotype::{Source, Status};
use holotype_index::segment::layout;
use holotype_index::{
    BuildOptions, Certificate, Encoding, GovernedOptions, GovernedWeights, Metric, Rows, ScalarOrder, Scalars,
    TailView, VectorIndex, VectorSegment, VectorSpec, build_segment,
};
use holotype_storage::segment_file::SegmentFile;
use holotype_storage::vfs::OsVfs;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const MINUTE: i64 = 60_000_000;
const DAY: i64 = 24 * 60 * MINUTE;
const NOW: i64 = 1_770_000_000_000_000;
/// Centres of the vectors that are made where none are given.
const CENTRES: usize = 1000;
/// Directions in which a centre's vectors mostly vary.
const DIRECTIONS: usize = 8;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The vectors: rows of f32 or f16. Without, clustered ones are made.
    #[arg(long, value_name = "F.npy", requires = "queries")]
    base: Option<PathBuf>,
    /// The queries, as many numbers a row.
    #[arg(long, value_name = "F.npy", requires = "base")]
    queries: Option<PathBuf>,
    /// How many vectors are made.
    #[arg(long, default_value_t = 1_000_000)]
    count: u32,
    /// Of how many dimensions.
    #[arg(long, default_value_t = 128)]
    dim: usize,
    /// How many queries are asked at most.
    #[arg(long, default_value_t = 200)]
    ask: usize,
    /// How many rows are asked for.
    #[arg(long, default_value_t = 10)]
    k: usize,
    /// How far the walk looks ahead.
    #[arg(long, default_value_t = GovernedOptions::default().ef)]
    ef: usize,
    /// An answer that has converged is proved when that takes no more visits.
    #[arg(long, default_value_t = GovernedOptions::default().proof)]
    proof: u64,
    /// Passes over the queries.
    #[arg(long, default_value_t = 5)]
    passes: usize,
    /// How vectors are compared: cosine, dot or l2.
    #[arg(long, default_value = "cosine", value_parser = metric)]
    metric: Metric,
    /// How vectors are kept: f32, f16 or i8.
    #[arg(long, default_value = "f16", value_parser = encoding)]
    encoding: Encoding,
    /// Threads that build the segment.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Keep the segment here, and do not build it when it is there already.
    #[arg(long, value_name = "FILE")]
    segment: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let (spec, base, queries) = vectors(arguments)?;
    let temporary = tempfile::tempdir()?;
    let path = arguments.segment.clone().unwrap_or_else(|| temporary.path().join("base.vseg"));
    if !path.exists() {
        build(spec, base, arguments, &path)?;
    }
    let segment = VectorSegment::open(SegmentFile::open(&OsVfs, &path, layout::KIND, &IDENTITY)?, &spec)?;
    let count = segment.len();
    let index = VectorIndex::new(vec![Arc::new(segment)], TailView::empty(spec))?;
    println!(
        "{}",
        json!({ "bench": "governed", "phase": "data", "vectors": count, "dim": spec.dim,
        "metric": spec.metric.name(), "encoding": spec.encoding.name(), "queries": queries.len() })
    );
    for ages in ["log-uniform", "three-days"] {
        println!("{}", rank(&index, count as u32, &queries, ages, arguments)?);
    }
    Ok(())
}

type Made = (VectorSpec, Box<dyn Iterator<Item = Result<Vec<f32>>>>, Vec<Vec<f32>>);

/// The space, the vectors and the queries.
fn vectors(arguments: &Arguments) -> Result<Made> {
    let spec = |dim| VectorSpec::new(dim, arguments.metric, arguments.encoding);
    if let (Some(base), Some(queries)) = (&arguments.base, &arguments.queries) {
        let (base, queries) = (NpyReader::open(base)?, NpyReader::open(queries)?);
        let spec = spec(base.dim())?;
        let read = |reader: &NpyReader, row| -> Result<Vec<f32>> {
            let mut vector = Vec::new();
            reader.read_row(row, &mut vector)?;
            Ok(vector)
        };
        let asked = queries.rows().min(arguments.ask as u64);
        let queries = (0..asked).map(|row| read(&queries, row)).collect::<Result<_>>()?;
        let rows = base.rows();
        return Ok((spec, Box::new((0..rows).map(move |row| read(&base, row))), queries));
    }
    let mut made = Clustered::new(arguments.dim);
    let queries = (0..arguments.ask).map(|_| made.next()).collect();
    let count = arguments.count;
    Ok((spec(arguments.dim)?, Box::new((0..count).map(move |_| Ok(made.next()))), queries))
}

/// Vectors around centres, mostly along a few directions of each.
struct Clustered {
    random: Random,
    dim: usize,
    centres: Vec<Vec<f32>>,
    directions: Vec<Vec<f32>>,
}

impl Clustered {
    fn new(dim: usize) -> Self {
        let mut random = Random(0x5eed);
        let mut normal = |count: usize| -> Vec<Vec<f32>> {
            (0..count).map(|_| (0..dim).map(|_| random.normal()).collect()).collect()
        };
        let (centres, directions) = (normal(CENTRES), normal(CENTRES * DIRECTIONS));
        Self { random, dim, centres, directions }
    }

    fn next(&mut self) -> Vec<f32> {
        let centre = self.random.below(CENTRES);
        let mut vector = self.centres[centre].clone();
        for direction in &self.directions[centre * DIRECTIONS..][..DIRECTIONS] {
            let far = self.random.normal() * 0.5;
            vector.iter_mut().zip(direction).for_each(|(x, d)| *x += far * d);
        }
        for x in vector.iter_mut().take(self.dim) {
            *x += self.random.normal() * 0.1;
        }
        vector
    }
}

fn build(
    spec: VectorSpec,
    base: impl Iterator<Item = Result<Vec<f32>>>,
    arguments: &Arguments,
    path: &Path,
) -> Result<()> {
    let mut rows = Rows::new(spec);
    for (id, vector) in (0..).zip(base) {
        rows.push(id, &vector?)?;
    }
    let options = BuildOptions { threads: arguments.threads.max(1), ..BuildOptions::default() };
    build_segment(&rows, IDENTITY, &options)?.write(&OsVfs, path)?;
    Ok(())
}

/// The scalars of the vectors: statuses and sources evenly, ages as named.
fn scalars(count: u32, ages: &str) -> Result<ScalarOrder> {
    let mut random = Random(0xa9e5);
    let items = (0..count).map(|id| {
        let class = random.below(Status::ALL.len() * Source::ALL.len()) as u16;
        let share = random.share();
        let age = match ages {
            "log-uniform" => (MINUTE as f64 * (365.0 * 24.0 * 60.0f64).powf(share)) as i64,
            _ => (3.0 * DAY as f64 * share) as i64,
        };
        (id, Scalars { class, time: Some(NOW - age), utility: 0.0 })
    });
    Ok(ScalarOrder::new(items)?)
}

/// Those of recall's profile `agent`.
fn weights() -> GovernedWeights {
    let statuses = [0.0, -0.1, -1.0].map(|weight| weight * 10.0);
    let classes = statuses.iter().flat_map(|status| Source::ALL.iter().map(move |source| status + source.weight()));
    GovernedWeights {
        similarity: 1.0,
        classes: classes.collect(),
        recency: 1.0,
        half_life: DAY as f64,
        now: Some(NOW),
        utility: 0.0,
    }
}

fn rank(
    index: &VectorIndex,
    count: u32,
    queries: &[Vec<f32>],
    ages: &str,
    arguments: &Arguments,
) -> Result<serde_json::Value> {
    let (order, weights) = (scalars(count, ages)?, weights());
    let options =
        GovernedOptions { k: arguments.k, ef: arguments.ef, proof: arguments.proof, ..GovernedOptions::default() };
    let mut governed_took = vec![Duration::MAX; queries.len()];
    let mut scan_took = vec![Duration::MAX; queries.len()];
    let (mut same, mut wanted) = (0usize, 0usize);
    let (mut compared, mut drawn, mut visited) = (0, 0, 0);
    let mut certified = [0usize; 3];
    for pass in 0..arguments.passes.max(1) {
        for (at, query) in queries.iter().enumerate() {
            let started = Instant::now();
            let scanned = index.governed_scan(query, &order, &weights, &options)?;
            scan_took[at] = scan_took[at].min(started.elapsed());
            let started = Instant::now();
            let found = index.governed(query, &order, &weights, &options)?;
            governed_took[at] = governed_took[at].min(started.elapsed());
            if pass == 0 {
                same += scanned.hits.iter().filter(|hit| found.hits.contains(hit)).count();
                wanted += scanned.hits.len();
                certified[found.certificate as usize] += 1;
                (compared, drawn, visited) = (compared + found.compared, drawn + found.drawn, visited + found.visited);
                if found.certificate == Certificate::Exact && found.hits != scanned.hits {
                    return Err(format!("query {at} was certified exact and is not").into());
                }
            }
        }
    }
    let of_all = |count: usize| round(count as f64 / queries.len() as f64, 4);
    let mean = |count: u64| round(count as f64 / queries.len() as f64, 1);
    let (governed, scan) = (quantile_us(&governed_took, 0.5), quantile_us(&scan_took, 0.5));
    Ok(json!({
        "bench": "governed", "phase": "rank", "ages": ages, "k": arguments.k, "ef": arguments.ef, "threads": 1,
        "agreement": round(same as f64 / wanted.max(1) as f64, 5), "exact": of_all(certified[0]),
        "converged": of_all(certified[1]), "limited": of_all(certified[2]), "governed_us": governed,
        "governed_p99_us": quantile_us(&governed_took, 0.99), "scan_us": scan, "ratio": round(scan / governed, 2),
        "compared": mean(compared), "drawn": mean(drawn), "visited": mean(visited),
    }))
}
