//! Seeded clustered vectors, and segments made of them in memory.
#![allow(dead_code, unreachable_pub, reason = "each test file includes it and uses a part")]

use std::path::Path;
use std::sync::Arc;

use holotype_index::bitmap::Bits;
use holotype_index::segment::{layout, merge_segments};
use holotype_index::{
    BuildOptions, Encoding, Metric, Rows, SearchOptions, TailView, VectorIndex, VectorSegment, VectorSpec,
    build_segment,
};
use holotype_storage::segment_file::{FileIdentity, SegmentFile, SegmentFileWriter};
use holotype_storage::vfs::SimVfs;

pub const DIM: usize = 64;

pub const IDENTITY: FileIdentity = FileIdentity { database: [7; 16], generation: 3, place: 1 };

/// xorshift64*.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound
    }

    /// About normal, of variance one.
    pub fn normal(&mut self) -> f32 {
        (0..12).map(|_| (self.next() >> 40) as f32 / (1u64 << 24) as f32).sum::<f32>() - 6.0
    }
}

/// `count` vectors around 40 centres; vector i belongs to centre i % 40.
pub fn clusters(count: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut centres = Random(99);
    let centres: Vec<Vec<f32>> = (0..40).map(|_| (0..DIM).map(|_| centres.normal()).collect()).collect();
    let mut random = Random(seed);
    (0..count).map(|i| centres[i % 40].iter().map(|c| c + 0.7 * random.normal()).collect()).collect()
}

pub fn spec(metric: Metric, encoding: Encoding) -> VectorSpec {
    VectorSpec::new(DIM, metric, encoding).unwrap()
}

pub fn rows(spec: VectorSpec, vectors: &[Vec<f32>], id: impl Fn(usize) -> u32) -> Rows {
    let mut rows = Rows::new(spec);
    for (i, vector) in vectors.iter().enumerate() {
        rows.push(id(i), vector).unwrap();
    }
    rows
}

/// Smaller than the default, to be quick: a graph from 500 vectors on.
pub fn options() -> BuildOptions<'static> {
    BuildOptions { ef_construction: 100, graph_from: 500, ..BuildOptions::default() }
}

pub fn open(file: SegmentFileWriter, spec: &VectorSpec) -> VectorSegment {
    let file = SegmentFile::from_bytes(file.into_bytes(), layout::KIND, &IDENTITY).unwrap();
    VectorSegment::open(file, spec).unwrap()
}

/// The segment that a merge writes.
pub fn merged(
    segments: &[&VectorSegment],
    keep: Option<&Bits>,
    options: &BuildOptions<'_>,
) -> holotype_index::Result<VectorSegment> {
    let (vfs, path) = (SimVfs::new(), Path::new("/merged.vseg"));
    let places = merge_segments(segments, keep, (IDENTITY, None), (&vfs, path), options)?;
    let file = SegmentFile::open(&vfs, path, layout::KIND, &IDENTITY)?;
    Ok(VectorSegment::open(file, &segments[0].spec())?.with_places(places))
}

pub fn segment(rows: &Rows) -> VectorSegment {
    open(build_segment(rows.clone(), IDENTITY, &options()).unwrap(), &rows.spec())
}

pub fn index(segments: Vec<VectorSegment>) -> VectorIndex {
    let tail = TailView::empty(segments[0].spec());
    VectorIndex::new(segments.into_iter().map(Arc::new).collect(), tail).unwrap()
}

/// The share of the true best 10 that the search finds, and whether what it finds is sound: ids unique, in the filter,
/// best first, with the exact scores.
pub fn recall(index: &VectorIndex, queries: &[Vec<f32>], options: SearchOptions<'_>) -> f64 {
    let (mut found, mut wanted) = (0, 0);
    for query in queries {
        let truth = index.search(query, 10, SearchOptions { exact: true, ..options }).unwrap().hits;
        let hits = index.search(query, 10, options).unwrap().hits;
        let ids: Vec<u32> = hits.iter().map(|hit| hit.id).collect();
        let scores = index.scores(query, &ids).unwrap();
        assert!(hits.iter().zip(scores).all(|(hit, score)| score == Some(hit.score)), "scores are exact");
        assert!(hits.is_sorted_by(|a, b| a.best_first(b).is_lt()), "best first, each once");
        assert!(ids.iter().all(|id| options.filter.is_none_or(|filter| filter.contains(*id))), "within the filter");
        found += truth.iter().filter(|hit| ids.contains(&hit.id)).count();
        wanted += truth.len();
    }
    found as f64 / wanted as f64
}
