//! Batches on a GPU beside the CPU, for the table of `docs/gpu.md`.
//!
//! For each encoding and number of queries: the time of the first batch, which copies the vectors, and the least of
//! some others, on the GPU and on the CPU. Hits are compared. Without a GPU there is one line that says why.

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
    #[arg(long, default_value_t = 10)]
    repeats: usize,
}

/// Queries of a batch.
const QUERIES: [usize; 4] = [1, 8, 64, 1024];

const K: usize = 10;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { count, dim, repeats } = *arguments;
    let all = vectors(count, dim, 1);
    let asked = vectors(QUERIES[3], dim, 2);
    let asked: Vec<&[f32]> = asked.iter().map(Vec::as_slice).collect();
    for encoding in [Encoding::F32, Encoding::F16, Encoding::I8] {
        let spec = VectorSpec::new(dim, Metric::Cosine, encoding)?;
        let index = segment(&all, spec)?;
        let device = scorer(DeviceUse::WherePossible);
        for queries in QUERIES {
            let asked = &asked[..queries];
            let (first_s, best_s, found) = time(&index, asked, repeats, device.as_ref())?;
            let usage = device.usage();
            if usage.on_device == 0 {
                let why = usage.fault.unwrap_or_else(|| "the batch was not given to it".to_owned());
                println!("{}", json!({"bench": "cuda", "not_run": why}));
                return Ok(());
            }
            let (_, cpu_s, want) = time(&index, asked, 1, &CpuScorer)?;
            if found.iter().map(|search| &search.hits).ne(want.iter().map(|search| &search.hits)) {
                return Err("the GPU answers otherwise than the CPU".into());
            }
            let bytes = (count * dim * encoding.component_len()) as f64;
            let products = (queries * count * dim) as f64;
            let point = json!({
                "bench": "cuda", "device": device.name(), "encoding": encoding.name(), "vectors": count, "dim": dim,
                "queries": queries, "first_ms": round(first_s * 1e3, 3), "best_ms": round(best_s * 1e3, 3),
                "cpu_ms": round(cpu_s * 1e3, 3), "gb_s": round(bytes / best_s / 1e9, 1),
                "tera_products_s": round(products / best_s / 1e12, 3), "fault": usage.fault,
            });
            println!("{point}");
        }
    }
    Ok(())
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
    let file = build_segment(&tail.view().to_rows(), identity, &flat)?;
    let file = SegmentFile::from_bytes(file.into_bytes(), KIND, &identity)?;
    Ok(VectorIndex::new(vec![Arc::new(VectorSegment::open(file, &spec)?)], TailView::empty(spec))?)
}
