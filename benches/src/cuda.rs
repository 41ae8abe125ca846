//! Batches on a GPU beside the CPU, for the table of `docs/gpu.md`.
//!
//! For each encoding and number of queries: the time of the first batch, which copies the vectors, and the least of
//! some others, on the GPU and on the CPU. Hits are compared. Beside it the rate at which the device copies within its
//! memory, and the share of it at which a batch reads vectors. Without a GPU there is one line that says why.

use crate::Result;
use crate::batch::vectors;
use crate::measure::round;
use holotype_cuda::{DeviceUse, scorer};
use holotype_index::scorer::{BatchScorer, CpuScorer};
use holotype_index::segment::layout::KIND;
use holotype_index::{
    BuildOptions, Encoding, Metric, Search, SearchOptions, TailView, VectorIndex, VectorSegment, VectorSpec,
    VectorTail, build_segment,
};
use holotype_storage::segment_file::{FileIdentity, SegmentFile};
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Vectors.
    #[arg(long, default_value_t = 1_000_000)]
    count: usize,
    /// Dimension.
    #[arg(long, default_value_t = 384)]
    dim: usize,
    /// Batches of each sort, of which the fastest is told.
    #[arg(long, default_value_t = 20)]
    repeats: usize,
    /// Only vectors of this encoding: f16, i8 or f32.
    #[arg(long)]
    encoding: Option<String>,
    /// Neither ask the CPU nor compare its answers, as under a profiler.
    #[arg(long)]
    unchecked: bool,
}

/// Queries of a batch.
const QUERIES: [usize; 6] = [1, 2, 4, 8, 64, 1024];

/// Vectors of a part that is so small that launches take all of the time.
const SMALL: usize = 4096;

const K: usize = 10;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { count, dim, repeats, unchecked, .. } = *arguments;
    let only = arguments.encoding.as_deref();
    let copy_rate = match holotype_cuda::copy_rate() {
        Ok(rate) => rate,
        Err(fault) => {
            println!("{}", json!({"bench": "cuda", "not_run": fault.to_string()}));
            return Ok(());
        }
    };
    let all = vectors(count.max(SMALL), dim, 1);
    let asked = vectors(QUERIES[QUERIES.len() - 1], dim, 2);
    let asked: Vec<&[f32]> = asked.iter().map(Vec::as_slice).collect();
    let encodings = [Encoding::F16, Encoding::I8, Encoding::F32];
    for encoding in encodings.into_iter().filter(|encoding| only.is_none_or(|only| only == encoding.name())) {
        let spec = VectorSpec::new(dim, Metric::Cosine, encoding)?;
        let device = scorer(DeviceUse::WherePossible);
        // The first batch also opens the device.
        for count in [SMALL, count] {
            let index = segment(&all[..count], spec)?;
            for queries in QUERIES {
                let (first_s, best_s, found) = time(&index, &asked[..queries], repeats, device.as_ref())?;
                let cpu_s = match unchecked {
                    true => f64::NAN,
                    false => check(&index, &asked[..queries], &found)?,
                };
                let bytes = (count * dim * encoding.component_len()) as f64;
                let products = (queries * count * dim) as f64;
                let point = json!({
                    "bench": "cuda", "device": device.name(), "encoding": encoding.name(), "vectors": count, "dim": dim,
                    "queries": queries, "first_ms": round(first_s * 1e3, 3), "best_ms": round(best_s * 1e3, 3),
                    "cpu_ms": round(cpu_s * 1e3, 3), "gb_s": round(bytes / best_s / 1e9, 1),
                    "copy_gb_s": round(copy_rate / 1e9, 1), "of_copy": round(bytes / best_s / copy_rate, 3),
                    "tera_products_s": round(products / best_s / 1e12, 3), "usage": format!("{:?}", device.usage()),
                });
                println!("{point}");
            }
        }
    }
    Ok(())
}

/// The seconds that the CPU takes, whose answers must be these.
fn check(index: &VectorIndex, asked: &[&[f32]], found: &[Search]) -> Result<f64> {
    let (first_s, _, want) = time(index, asked, 0, &CpuScorer)?;
    match found.iter().map(|search| &search.hits).eq(want.iter().map(|search| &search.hits)) {
        true => Ok(first_s),
        false => Err("the GPU answers otherwise than the CPU".into()),
    }
}

/// The seconds of the first batch and of the fastest, and the answers.
fn time(
    index: &VectorIndex,
    asked: &[&[f32]],
    repeats: usize,
    by: &dyn BatchScorer,
) -> Result<(f64, f64, Vec<Search>)> {
    let (mut first_s, mut best_s, mut found) = (0.0, f64::INFINITY, Vec::new());
    for repeat in 0..=repeats {
        let started = Instant::now();
        found = index.search_batch(asked, K, SearchOptions::default(), by)?;
        let taken_s = started.elapsed().as_secs_f64();
        match repeat {
            0 => first_s = taken_s,
            _ => best_s = taken_s.min(best_s),
        }
    }
    Ok((first_s, best_s, found))
}

/// All vectors in one segment that is compared as a whole.
fn segment(all: &[Vec<f32>], spec: VectorSpec) -> Result<VectorIndex> {
    let tail = VectorTail::new(spec);
    for (id, vector) in (0..).zip(all) {
        tail.push(id, vector)?;
    }
    let identity = FileIdentity { database: [0; 16], generation: 1, place: 0 };
    let flat = BuildOptions { graph_from: usize::MAX, ..BuildOptions::default() };
    let file = build_segment(tail.view().to_rows(), identity, &flat)?;
    let file = SegmentFile::from_bytes(file.into_bytes(), KIND, &identity)?;
    Ok(VectorIndex::new(vec![Arc::new(VectorSegment::open(file, &spec)?)], TailView::empty(spec))?)
}
