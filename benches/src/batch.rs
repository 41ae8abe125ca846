//! Many queries under one filter: one by one and in batches.
//!
//! Three levels. The index compares 1,000 queries with all matching of 100,000 vectors, in the tail and in a segment.
//! The engine recalls as often by vector from a database with as many traces that no checkpoint holds yet. Rows are
//! compared before anything is told. A graph over a tenth of the vectors is built by walks alone, and from exact
//! neighbour lists of the same scorer. Times are of the processor: one thread does all of it.

use crate::Result;
use crate::measure::{round, thread_cpu_time};
use crate::random::Random;
use holotype::{Durability, Holotype, NewTrace, Options, Space};
use holotype_index::bitmap::Bits;
use holotype_index::hit::TopHits;
use holotype_index::scorer::{Batch, BatchScorer, CpuScorer};
use holotype_index::segment::layout::KIND;
use holotype_index::{
    BuildOptions, Encoding, Metric, SearchOptions, TailView, VectorIndex, VectorSegment, VectorSpec, VectorTail,
    build_segment,
};
use holotype_storage::segment_file::{FileIdentity, SegmentFile};
use serde_json::json;
use std::sync::Arc;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Vectors.
    #[arg(long, default_value_t = 100_000)]
    pub(crate) count: usize,
    /// Queries.
    #[arg(long, default_value_t = 1_000)]
    pub(crate) queries: usize,
    /// Dimension.
    #[arg(long, default_value_t = 384)]
    pub(crate) dim: usize,
    /// Vectors of a hundred that the filter lets through.
    #[arg(long, default_value_t = 50)]
    pub(crate) percent: usize,
}

/// Hits of a search, and candidates of a recall.
const K: usize = 10;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    for encoding in [Encoding::F32, Encoding::F16, Encoding::I8] {
        for place in ["tail", "segment"] {
            index(arguments, encoding, place)?;
        }
    }
    build(arguments)?;
    recall(arguments)
}

/// The CPU as a scorer that makes neighbour lists, which it never does by itself.
#[derive(Debug)]
struct Lists;

impl BatchScorer for Lists {
    fn name(&self) -> String {
        "cpu, with neighbour lists".to_owned()
    }

    fn scan(&self, batch: &Batch<'_>, tops: &mut [TopHits]) -> holotype_index::Result<bool> {
        CpuScorer.scan(batch, tops)?;
        Ok(true)
    }

    fn makes_neighbour_lists(&self, _: VectorSpec, _: usize) -> bool {
        true
    }
}

/// The build of a graph, and the share of true neighbours that its walks find.
fn build(arguments: &Arguments) -> Result<()> {
    let count = (arguments.count / 10).max(1);
    let spec = VectorSpec::new(arguments.dim, Metric::Cosine, Encoding::F16)?;
    let tail = VectorTail::new(spec);
    for (id, vector) in (0..).zip(vectors(count, arguments.dim, 1)) {
        tail.push(id, &vector)?;
    }
    let rows = tail.view().to_rows();
    let identity = FileIdentity { database: [0; 16], generation: 1, place: 0 };
    let asked = vectors(arguments.queries.min(200), arguments.dim, 2);
    for scorer in [&CpuScorer as &dyn BatchScorer, &Lists] {
        let options = BuildOptions { graph_from: 0, scorer, ..BuildOptions::default() };
        let started = thread_cpu_time();
        let file = build_segment(rows.clone(), identity, &options)?;
        let build_s = (thread_cpu_time() - started).as_secs_f64();
        let file = SegmentFile::from_bytes(file.into_bytes(), KIND, &identity)?;
        let made = VectorIndex::new(vec![Arc::new(VectorSegment::open(file, &spec)?)], TailView::empty(spec))?;
        let (mut found, mut wanted) = (0, 0);
        for query in &asked {
            let exact = made.search(query, K, SearchOptions { exact: true, ..SearchOptions::default() })?;
            let walked = made.search(query, K, SearchOptions { ef: 64, ..SearchOptions::default() })?;
            wanted += exact.hits.len();
            found += walked.hits.iter().filter(|hit| exact.hits.iter().any(|other| other.id == hit.id)).count();
        }
        let point = json!({
            "bench": "batch", "level": "build", "vectors": count, "dim": arguments.dim, "scorer": scorer.name(),
            "build_s": round(build_s, 3), "recall": round(found as f64 / wanted.max(1) as f64, 4),
        });
        println!("{point}");
    }
    Ok(())
}

/// Vectors around some hundred centres.
pub(crate) fn vectors(count: usize, dim: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut centres = Random(99);
    let centres: Vec<Vec<f32>> = (0..200).map(|_| (0..dim).map(|_| centres.normal()).collect()).collect();
    let mut random = Random(seed);
    (0..count).map(|i| centres[i % centres.len()].iter().map(|c| c + random.normal()).collect()).collect()
}

fn index(arguments: &Arguments, encoding: Encoding, place: &str) -> Result<()> {
    let Arguments { count, queries, dim, percent } = *arguments;
    let spec = VectorSpec::new(dim, Metric::Cosine, encoding)?;
    let tail = VectorTail::new(spec);
    for (id, vector) in (0..).zip(vectors(count, dim, 1)) {
        tail.push(id, &vector)?;
    }
    let made = match place {
        "tail" => VectorIndex::new(Vec::new(), tail.view())?,
        _ => {
            let identity = FileIdentity { database: [0; 16], generation: 1, place: 0 };
            let flat = BuildOptions { graph_from: usize::MAX, ..BuildOptions::default() };
            let file = build_segment(tail.view().to_rows(), identity, &flat)?;
            let file = SegmentFile::from_bytes(file.into_bytes(), KIND, &identity)?;
            VectorIndex::new(vec![Arc::new(VectorSegment::open(file, &spec)?)], TailView::empty(spec))?
        }
    };
    let mut random = Random(5);
    let filter: Bits = (0..count as u32).filter(|_| random.below(100) < percent).collect();
    let asked = vectors(queries, dim, 2);
    let asked: Vec<&[f32]> = asked.iter().map(Vec::as_slice).collect();
    let options = SearchOptions { filter: Some(&filter), ..SearchOptions::default() };
    let started = thread_cpu_time();
    let mut single = Vec::with_capacity(queries);
    for query in &asked {
        single.push(made.search(query, K, options)?);
    }
    let single_s = (thread_cpu_time() - started).as_secs_f64();
    let started = thread_cpu_time();
    let together = made.search_batch(&asked, K, options, &CpuScorer)?;
    let batch_s = (thread_cpu_time() - started).as_secs_f64();
    if single != together {
        return Err("a batch answers otherwise than single searches".into());
    }
    let point = json!({
        "bench": "batch", "level": "index", "place": place, "encoding": encoding.name(), "vectors": count, "dim": dim,
        "queries": queries, "matching": filter.count(), "scorer": CpuScorer.name(),
        "single_ms": round(single_s * 1e3 / queries as f64, 3), "batch_ms": round(batch_s * 1e3 / queries as f64, 3),
        "times": round(single_s / batch_s, 2),
    });
    println!("{point}");
    Ok(())
}

fn recall(arguments: &Arguments) -> Result<()> {
    let Arguments { count, queries, dim, percent } = *arguments;
    let folder = tempfile::tempdir()?;
    let never = u64::MAX;
    let options = Options {
        checkpoint_bytes: never,
        checkpoint_records: never,
        memory_limit: never,
        max_tail_bytes: never,
        max_unsealed_vectors: never,
        ..Options::with_space(Space::new("bench", dim))
    };
    let database = Holotype::create(folder.path().join("batch.holo"), options)?;
    let mut random = Random(5);
    for some in vectors(count, dim, 1).chunks(1_000) {
        let mut transaction = database.begin()?;
        for vector in some {
            let episode = if random.below(100) < percent { "kept" } else { "other" };
            transaction.record(NewTrace::turn(episode, "a short text").vector(vector.clone()))?;
        }
        transaction.commit(Durability::None)?;
    }
    let snapshot = database.snapshot();
    let asked = vectors(queries, dim, 2);
    let begin = |vector: &Vec<f32>| snapshot.recall_near(vector.clone()).in_episode("kept").limit(K as u64);
    let started = thread_cpu_time();
    let single: Vec<_> = asked.iter().map(|vector| begin(vector).run()).collect::<Result<_, _>>()?;
    let single_s = (thread_cpu_time() - started).as_secs_f64();
    let started = thread_cpu_time();
    let together = snapshot.recall_batch(&asked.iter().map(begin).collect::<Vec<_>>());
    let batch_s = (thread_cpu_time() - started).as_secs_f64();
    for (single, together) in single.iter().zip(together) {
        if single.rows != together?.rows {
            return Err("a batch of recalls answers otherwise than single recalls".into());
        }
    }
    let stats = database.stats()?;
    let point = json!({
        "bench": "batch", "level": "recall", "vectors": count, "dim": dim, "queries": queries,
        "rows": single.iter().map(|answer| answer.rows.len()).sum::<usize>(), "scorer": stats.accelerator,
        "single_ms": round(single_s * 1e3 / queries as f64, 3), "batch_ms": round(batch_s * 1e3 / queries as f64, 3),
        "times": round(single_s / batch_s, 2),
    });
    println!("{point}");
    Ok(())
}
