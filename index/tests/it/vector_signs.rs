//! Scans of segments without a graph that begin with signs, beside exact scans.

use crate::clusters::{DIM, IDENTITY, Random, clusters, index, merged, open, recall, rows, spec};
use holotype_index::bitmap::Bits;
use holotype_index::segment::layout;
use holotype_index::{BuildOptions, Encoding, Error, Metric, Rows, SearchOptions, VectorSegment, build_segment};
use holotype_storage::segment_file::{SegmentFile, SegmentFileWriter};

const COUNT: usize = 3000;
const ASKED: usize = 60;

fn flat(rows: &Rows) -> VectorSegment {
    let options = BuildOptions { graph_from: usize::MAX, ..BuildOptions::default() };
    open(build_segment(rows.clone(), IDENTITY, &options).unwrap(), &rows.spec())
}

fn has_signs(segment: &VectorSegment) -> bool {
    segment.file().place_of(*b"SIGN").is_some()
}

/// Vectors around centres, of components that are not alike: a few are far larger than the others, or far from 0.
fn uneven(count: usize, seed: u64) -> Vec<Vec<f32>> {
    let shape = |(at, x): (usize, &f32)| x / (1.0 + at as f32 / 64.0) + if at % 20 == 3 { 1.0 } else { 0.0 };
    clusters(count, seed).iter().map(|vector| vector.iter().enumerate().map(shape).collect()).collect()
}

/// Vectors around centres, of which every fifth has a few components only, and every seventh is ten times as long.
fn mixed(count: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut vectors = clusters(count, seed);
    let mut random = Random(seed + 1);
    for (at, vector) in vectors.iter_mut().enumerate() {
        if at % 5 == 0 {
            vector.iter_mut().for_each(|x| *x *= f32::from(random.below(12) == 0));
            vector[at % DIM] += 1.0;
        }
        if at % 7 == 0 {
            vector.iter_mut().for_each(|x| *x *= 10.0);
        }
    }
    vectors
}

/// Vectors without any order.
fn scattered(count: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut random = Random(seed);
    (0..count).map(|_| (0..DIM).map(|_| random.normal()).collect()).collect()
}

#[test]
fn a_scan_by_signs_finds_what_an_exact_scan_finds() {
    let most: Bits = (0..2 * COUNT as u32).filter(|id| id % 6 != 0).collect();
    let mut signed = Vec::new();
    for (name, make) in [
        ("clusters", clusters as fn(usize, u64) -> Vec<Vec<f32>>),
        ("uneven", uneven),
        ("mixed", mixed),
        ("scattered", scattered),
    ] {
        let (vectors, queries) = (make(COUNT, 51), make(ASKED, 52));
        for (metric, encoding) in
            [(Metric::Cosine, Encoding::F16), (Metric::Dot, Encoding::F32), (Metric::Cosine, Encoding::I8)]
        {
            let segment = flat(&rows(spec(metric, encoding), &vectors, |i| i as u32 * 2));
            if has_signs(&segment) {
                signed.push((name, metric));
            }
            let index = index(vec![segment]);
            for filter in [None, Some(&most)] {
                let found = recall(&index, &queries, SearchOptions { filter, ..SearchOptions::default() });
                assert!(found >= 0.999, "{name} {metric:?} {encoding:?}: {found}");
            }
        }
    }
    assert!(
        signed.contains(&("clusters", Metric::Cosine)) && signed.contains(&("clusters", Metric::Dot)),
        "{signed:?}"
    );
    assert!(signed.iter().any(|(name, _)| *name == "uneven"), "{signed:?}");
    assert!(signed.iter().all(|(name, _)| *name != "scattered"), "they rule hardly any out: {signed:?}");
}

#[test]
fn the_best_of_parts_are_those_of_all() {
    let (vectors, queries) = (clusters(3 * COUNT, 53), clusters(ASKED, 54));
    let part = |at: usize| {
        let part = &vectors[at * COUNT..(at + 1) * COUNT];
        flat(&rows(spec(Metric::Cosine, Encoding::F16), part, |i| (at * COUNT + i) as u32))
    };
    let parts = index((0..3).map(part).collect());
    for k in [1, 10, 500] {
        for query in &queries {
            let found = parts.search(query, k, SearchOptions::default()).unwrap().hits;
            let exact = parts.search(query, k, SearchOptions { exact: true, ..SearchOptions::default() }).unwrap().hits;
            let missed = exact.iter().filter(|hit| !found.contains(hit)).count();
            assert!(missed * 1000 <= k && found.len() == k, "{missed} of {k}");
        }
    }
}

#[test]
fn equal_vectors_are_found_newest_first() {
    let one = clusters(1, 55);
    let segment = flat(&rows(spec(Metric::Cosine, Encoding::F32), &vec![one[0].clone(); COUNT], |i| i as u32));
    let found = index(vec![segment]).search(&one[0], 3, SearchOptions::default()).unwrap().hits;
    assert_eq!(found.iter().map(|hit| hit.id).collect::<Vec<_>>(), [2999, 2998, 2997]);
}

#[test]
fn a_merge_writes_the_signs_of_all_its_vectors() {
    let all = rows(spec(Metric::Cosine, Encoding::F16), &clusters(COUNT, 56), |i| i as u32);
    let part = |ids: std::ops::Range<usize>| {
        let vectors = clusters(COUNT, 56);
        flat(&rows(all.spec(), &vectors[ids.clone()], |i| (ids.start + i) as u32))
    };
    let (older, newer) = (part(0..900), part(900..COUNT));
    assert!(!has_signs(&older), "too few");
    let options = BuildOptions { graph_from: usize::MAX, ..BuildOptions::default() };
    let (merged, built) = (merged(&[&older, &newer], None, &options).unwrap(), flat(&all));
    for tag in [b"SIGN", b"SEST"] {
        assert_eq!(merged.file().section(*tag).unwrap(), built.file().section(*tag).unwrap());
    }
}

#[test]
fn a_graph_and_the_metric_l2_have_no_signs() {
    let vectors = clusters(COUNT, 57);
    assert!(!has_signs(&flat(&rows(spec(Metric::L2, Encoding::F16), &vectors, |i| i as u32))));
    assert!(!has_signs(&crate::clusters::segment(&rows(spec(Metric::Cosine, Encoding::F16), &vectors, |i| i as u32))));
}

/// A segment of these vectors whose sections went through `change`.
fn forged(rows: &Rows, change: impl Fn(&[u8; 4], &mut Vec<u8>) -> bool) -> Result<VectorSegment, Error> {
    let whole = flat(rows);
    let mut forged = SegmentFileWriter::new(layout::KIND, layout::VERSION, IDENTITY);
    for tag in [b"HEAD", b"IDS ", b"VECS", b"SIGN", b"SEST", b"CODE", b"CERR", b"MEAN"] {
        let Some(bytes) = whole.file().optional_section(*tag).unwrap() else { continue };
        let mut bytes = bytes.to_vec();
        if change(tag, &mut bytes) {
            forged.section(*tag, bytes);
        }
    }
    let bytes = forged.into_bytes();
    VectorSegment::open(SegmentFile::from_bytes(bytes, layout::KIND, &IDENTITY)?, &rows.spec())
}

#[test]
fn a_segment_may_be_without_signs_but_not_with_others() {
    let rows = rows(spec(Metric::Cosine, Encoding::F16), &clusters(COUNT, 58), |i| i as u32);
    let queries = clusters(ASKED, 59);
    let without = forged(&rows, |tag, _| ![b"SIGN", b"SEST"].contains(&tag)).unwrap();
    assert!(!has_signs(&without));
    assert_eq!(recall(&index(vec![without]), &queries, SearchOptions::default()), 1.0);
    assert!(has_signs(&forged(&rows, |_, _| true).unwrap()));
    for changed in [b"SIGN", b"SEST"] {
        let shorter = forged(&rows, |tag, bytes| {
            bytes.truncate(bytes.len() - if tag == changed { 4 } else { 0 });
            true
        });
        assert!(matches!(shorter, Err(Error::Corrupt { .. })), "{}", changed.escape_ascii());
    }
    assert!(forged(&rows, |tag, _| tag != b"SEST").is_err());
}

#[test]
fn a_flipped_byte_of_signs_is_noticed_when_they_are_opened() {
    let rows = rows(spec(Metric::Cosine, Encoding::F16), &clusters(COUNT, 60), |i| i as u32);
    let options = BuildOptions { graph_from: usize::MAX, ..BuildOptions::default() };
    let bytes = build_segment(rows.clone(), IDENTITY, &options).unwrap().into_bytes();
    for tag in [b"SIGN", b"SEST"] {
        let entry = bytes.windows(4).position(|window| window == tag).unwrap();
        let start = u64::from_le_bytes(bytes[entry + 8..][..8].try_into().unwrap()) as usize;
        for at in [start, start + 100] {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            let file = SegmentFile::from_bytes(flipped, layout::KIND, &IDENTITY).unwrap();
            assert!(VectorSegment::open(file, &rows.spec()).is_err(), "{} at {at}", tag.escape_ascii());
        }
    }
}
