//! `.vseg` files with valid checksums and any content: they are refused when opened, or searched without a panic.

use std::num::NonZero;
use std::sync::Arc;

use holotype_index::bitmap::Bits;
use holotype_index::segment::layout::{KIND, VERSION, VERSION_LOGGED};
use holotype_index::{
    BuildOptions, Encoding, LoggedVectors, Metric, Rows, SearchOptions, TailView, VectorIndex, VectorSegment,
    VectorSpec, build_segment,
};

use crate::input::{Input, put_counted};
use crate::sections::{IDENTITY, seal, unseal};

const TAGS: [[u8; 4]; 14] = [
    *b"HEAD", *b"IDS ", *b"VECS", *b"SCAL", *b"CODE", *b"CERR", *b"MEAN", *b"LNK0", *b"UPPR", *b"MEMB", *b"SUMS",
    *b"CALB", *b"SIGN", *b"SEST",
];
const DIM: usize = 3;
/// From this number on the file refers to the log for its vectors; a multiple of nine.
const LOGGED: u8 = 126;

/// A log with the vectors of even ids, all the same and as damaged as they may be.
#[derive(Debug)]
struct EvenLog;

impl LoggedVectors for EvenLog {
    fn find(&self, id: u32, out: &mut [u8]) -> Option<NonZero<u64>> {
        let place = NonZero::new(u64::from(id) + 1).filter(|_| id.is_multiple_of(2))?;
        self.copy(place, out).then_some(place)
    }

    fn copy(&self, place: NonZero<u64>, out: &mut [u8]) -> bool {
        out.fill(place.get() as u8);
        !place.get().is_multiple_of(5)
    }

    fn prefetch(&self, _place: NonZero<u64>, _len: usize) {}
}

/// Seals the sections, opens the segment for the space the first byte picks, and searches it in every way.
///
/// # Panics
/// When an open segment cannot be searched, or finds what is not in it.
pub fn target(data: &[u8]) {
    let mut input = Input::new(data);
    let number = input.byte();
    let spec = specs()[usize::from(number) % 9];
    let version = if number < LOGGED { VERSION } else { VERSION_LOGGED };
    let file = seal(&mut input, KIND, version, &TAGS);
    let Ok(segment) = VectorSegment::open(file, &spec) else { return };
    let ids = segment.ids().expect("they were checked");
    assert_eq!(ids.len(), segment.len());
    // Blocks are checked as they are read, against checksums that the input brings as well.
    let _ = segment.unreachable_ids();
    let _ = segment.ef_for_recall(0.95);
    let index = VectorIndex::new(vec![Arc::new(segment)], TailView::empty(spec)).expect("one space");
    let index = index.in_log(Arc::new(EvenLog));
    let odd: Bits = ids.iter().copied().filter(|id| id % 2 == 1 && *id < 1 << 20).collect();
    for filter in [None, Some(&odd)] {
        for exact in [false, true] {
            let options = SearchOptions { ef: 16, filter, exact, skip_damaged: exact };
            let Ok(found) = index.search(&[1.0, 0.5, -0.5], 5, options) else { continue };
            assert!(found.hits.len() <= 5);
            for hit in &found.hits {
                assert!(ids.binary_search(&hit.id).is_ok(), "{} is not in the segment", hit.id);
                assert!(filter.is_none_or(|filter| filter.contains(hit.id)), "{} does not match", hit.id);
            }
        }
    }
    let asked: Vec<u32> = ids.iter().copied().take(4).chain([u32::MAX]).collect();
    let _ = index.scores(&[0.0, 1.0, 0.0], &asked);
    for id in asked {
        let _ = index.vector(id);
    }
}

/// One segment for each space, with a graph and without.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (number, spec) in specs().into_iter().enumerate() {
        for graph_from in [2, 1_000] {
            let mut rows = Rows::new(spec);
            for i in 0..24_u32 {
                let vector = [(i % 5) as f32 + 0.5, (i % 7) as f32 - 3.0, (i % 3) as f32];
                rows.push(i * 3 + 1, &vector).expect("it fits the space");
            }
            let options = BuildOptions { m: 2, ef_construction: 8, threads: 1, graph_from, ..BuildOptions::default() };
            let writer = build_segment(rows, IDENTITY, &options).expect("there are rows");
            let mut bytes = vec![number as u8];
            unseal(writer, KIND, &TAGS, &mut bytes);
            if graph_from == 2 && spec.encoding != Encoding::I8 {
                seeds.push(logged(&bytes));
            }
            seeds.push(bytes);
        }
    }
    seeds
}

/// The seed without its vectors.
fn logged(seed: &[u8]) -> Vec<u8> {
    let mut input = Input::new(seed);
    let mut bytes = vec![LOGGED + input.byte()];
    for tag in TAGS {
        let mut section = input.counted().to_vec();
        match &tag {
            b"HEAD" => section[60] = 1,
            b"VECS" => section.clear(),
            // The first block is that of the vectors.
            b"SUMS" => drop(section.drain(..4)),
            _ => {}
        }
        put_counted(&section, &mut bytes);
    }
    bytes
}

fn specs() -> [VectorSpec; 9] {
    let metrics = [Metric::Cosine, Metric::Dot, Metric::L2];
    let encodings = [Encoding::F32, Encoding::F16, Encoding::I8];
    std::array::from_fn(|i| VectorSpec { dim: DIM, metric: metrics[i / 3], encoding: encodings[i % 3] })
}
