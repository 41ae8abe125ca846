//! Graphs that are built from exact neighbour lists, as a scorer on a fast device makes them.

use crate::clusters::{DIM, IDENTITY, clusters, merged, open, options, rows, spec};
use holotype_index::hit::TopHits;
use holotype_index::scorer::{Batch, BatchScorer, CpuScorer};
use holotype_index::{
    BuildOptions, Encoding, Metric, Result, SearchOptions, TailView, VectorIndex, VectorSegment, VectorSpec,
    build_segment,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A device that makes lists, and fails after some batches. Its work is the CPU's.
#[derive(Debug)]
struct Lister {
    batches: AtomicUsize,
    fails_after: usize,
}

impl Lister {
    fn new(fails_after: usize) -> Self {
        Self { batches: AtomicUsize::new(0), fails_after }
    }
}

impl BatchScorer for Lister {
    fn name(&self) -> String {
        "lists".to_owned()
    }

    fn scan(&self, batch: &Batch<'_>, tops: &mut [TopHits]) -> Result<bool> {
        CpuScorer.scan(batch, tops)?;
        Ok(self.batches.fetch_add(1, Ordering::Relaxed) < self.fails_after)
    }

    fn makes_neighbour_lists(&self, _: VectorSpec, _: usize) -> bool {
        true
    }
}

const COUNT: usize = 1800;

fn built(options: &BuildOptions<'_>) -> Vec<u8> {
    let spec = spec(Metric::Cosine, Encoding::F32);
    build_segment(rows(spec, &clusters(COUNT, 3), |i| i as u32), IDENTITY, options).unwrap().into_bytes()
}

/// The share of true neighbours that walks find.
fn recall(segment: VectorSegment) -> f64 {
    let spec = segment.spec();
    let index = VectorIndex::new(vec![Arc::new(segment)], TailView::empty(spec)).unwrap();
    let queries = clusters(200, 77);
    let (mut found, mut wanted) = (0, 0);
    for query in &queries {
        let exact = index.search(query, 10, SearchOptions { exact: true, ..SearchOptions::default() }).unwrap();
        let walked = index.search(query, 10, SearchOptions { ef: 24, ..SearchOptions::default() }).unwrap();
        wanted += exact.hits.len();
        found += walked.hits.iter().filter(|hit| exact.hits.iter().any(|other| other.id == hit.id)).count();
    }
    found as f64 / wanted as f64
}

fn segment(bytes: Vec<u8>) -> VectorSegment {
    let file = holotype_storage::segment_file::SegmentFile::from_bytes(
        bytes,
        holotype_index::segment::layout::KIND,
        &IDENTITY,
    );
    VectorSegment::open(file.unwrap(), &spec(Metric::Cosine, Encoding::F32)).unwrap()
}

#[test]
fn lists_give_a_graph_that_walks_as_well() {
    assert_eq!(clusters(1, 3)[0].len(), DIM);
    let lister = Lister::new(usize::MAX);
    let without = recall(segment(built(&options())));
    let with = recall(segment(built(&BuildOptions { scorer: &lister, ..options() })));
    assert!(lister.batches.load(Ordering::Relaxed) >= COUNT / 512, "no lists were asked for");
    assert!(with >= without - 0.01, "{with} with lists, {without} without");
}

#[test]
fn equal_input_gives_equal_bytes_with_lists_too() {
    let build = || built(&BuildOptions { threads: 1, scorer: &Lister::new(usize::MAX), ..options() });
    assert!(build() == build());
}

#[test]
fn a_device_that_fails_during_a_build_is_not_asked_again() {
    // One batch of calibration, one of lists, then the failure.
    for fails_after in [0, 1, 2] {
        let lister = Lister::new(fails_after);
        let found = recall(segment(built(&BuildOptions { threads: 1, scorer: &lister, ..options() })));
        assert!(found > 0.9, "{found}");
        let asked = lister.batches.load(Ordering::Relaxed);
        assert!(asked <= fails_after + 4, "asked {asked} times, {fails_after} of them well");
    }
}

#[test]
fn a_graph_that_grows_uses_lists_for_its_new_vectors() {
    let spec = spec(Metric::Cosine, Encoding::F32);
    let vectors = clusters(COUNT, 3);
    let part = |from: usize, to: usize, options: &BuildOptions<'_>| {
        let part = rows(spec, &vectors[from..to], |i| (from + i) as u32);
        open(build_segment(part, IDENTITY, options).unwrap(), &spec)
    };
    let large = part(0, 1500, &options());
    let flat = BuildOptions { graph_from: usize::MAX, ..options() };
    let small = part(1500, COUNT, &flat);
    let lister = Lister::new(usize::MAX);
    let options = BuildOptions { scorer: &lister, graph_from: 0, ..options() };
    let merged = merged(&[&large, &small], None, &options).unwrap();
    assert!(lister.batches.load(Ordering::Relaxed) > 0);
    let found = recall(merged);
    assert!(found > 0.9, "{found}");
}
