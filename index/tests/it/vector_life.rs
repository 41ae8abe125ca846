//! From the tail to segments to one segment: everything committed is found at every moment, and nothing changes for
//! those who look at an earlier one.

use crate::clusters;
use std::sync::Arc;

use crate::clusters::{IDENTITY, clusters, index, merged, open, options, recall, rows, segment, spec};
use holotype_index::bitmap::Bits;
use holotype_index::segment::layout;
use holotype_index::{
    Encoding, Error, Metric, SearchOptions, Strategy, VectorIndex, VectorSegment, VectorTail, build_segment,
};
use holotype_storage::segment_file::SegmentFile;

#[test]
fn a_pushed_vector_is_found_at_once_and_an_earlier_view_does_not_change() {
    let spec = spec(Metric::Cosine, Encoding::F16);
    let vectors = clusters(300, 41);
    let tail = VectorTail::new(spec);
    let mut earlier = Vec::new();
    for (i, vector) in vectors.iter().enumerate() {
        tail.push(i as u32, vector).unwrap();
        let index = VectorIndex::new(Vec::new(), tail.view()).unwrap();
        let hits = index.search(vector, 1, SearchOptions::default()).unwrap().hits;
        assert_eq!(hits[0].id, i as u32);
        if i % 50 == 0 {
            let answer = index.search(&vectors[0], 7, SearchOptions::default()).unwrap();
            earlier.push((index, answer));
        }
    }
    tail.discard(&tail.view().through(200));
    for (index, answer) in earlier {
        assert_eq!(index.search(&vectors[0], 7, SearchOptions::default()).unwrap(), answer);
    }
}

#[test]
fn views_taken_while_another_thread_pushes_are_whole_prefixes() {
    let tail = VectorTail::new(spec(Metric::Dot, Encoding::F32));
    let vectors = clusters(2000, 42);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (i, vector) in vectors.iter().enumerate() {
                tail.push(i as u32, vector).unwrap();
            }
        });
        let mut seen = 0;
        while seen < vectors.len() {
            let view = tail.view();
            assert!(view.len() >= seen);
            seen = view.len();
            assert!(view.ids().eq(0..seen as u32));
        }
    });
}

#[test]
fn sealing_changes_no_answer() {
    let spec = spec(Metric::L2, Encoding::I8);
    let vectors = clusters(900, 43);
    let tail = VectorTail::new(spec);
    for (i, vector) in vectors.iter().enumerate() {
        tail.push(i as u32, vector).unwrap();
    }
    let before = VectorIndex::new(Vec::new(), tail.view()).unwrap();
    let sealed = tail.view().through(699).to_rows();
    let segment = open(build_segment(sealed, IDENTITY, &options()).unwrap(), &spec);
    tail.discard(&tail.view().through(699));
    let after = VectorIndex::new(vec![Arc::new(segment)], tail.view()).unwrap();
    assert_eq!((before.len(), after.len(), after.tail().len()), (900, 900, 200));
    let ids: Vec<u32> = (0..1000).collect();
    for query in clusters(20, 44) {
        let exact = SearchOptions { exact: true, ..SearchOptions::default() };
        let (a, b) = (before.search(&query, 25, exact).unwrap(), after.search(&query, 25, exact).unwrap());
        assert_eq!(a.hits, b.hits);
        assert_eq!(before.scores(&query, &ids).unwrap(), after.scores(&query, &ids).unwrap());
    }
    assert_eq!(before.vector(3).unwrap(), after.vector(3).unwrap());
}

#[test]
fn searches_that_check_a_segment_as_they_read_it_answer_like_one_that_was_checked() {
    let spec = spec(Metric::Cosine, Encoding::F16);
    let rows = rows(spec, &clusters(3000, 49), |i| i as u32);
    let bytes = build_segment(rows, IDENTITY, &options()).unwrap().into_bytes();
    let open = || {
        let file = SegmentFile::from_bytes(bytes.clone(), layout::KIND, &IDENTITY).unwrap();
        VectorSegment::open(file, &spec).unwrap()
    };
    let checked = open();
    checked.check_all().unwrap();
    let (checked, fresh) = (index(vec![checked]), index(vec![open()]));
    let queries = clusters(60, 50);
    let ask = |index: &VectorIndex, from: usize| -> Vec<_> {
        let turned = queries.iter().cycle().skip(from).take(queries.len());
        turned.map(|query| index.search(query, 10, SearchOptions::default()).unwrap()).collect()
    };
    std::thread::scope(|scope| {
        for from in [0, 15, 30, 45] {
            let (checked, fresh, ask) = (&checked, &fresh, &ask);
            scope.spawn(move || assert_eq!(ask(fresh, from), ask(checked, from)));
        }
    });
    fresh.segments()[0].damage().unwrap();
}

/// One large segment and two small ones, with ids in turn: the ids of the small lie among those of the large.
fn parts() -> (Vec<VectorSegment>, VectorIndex) {
    let spec = spec(Metric::Cosine, Encoding::F16);
    let vectors = clusters(4000, 45);
    let make = |of: &dyn Fn(usize) -> bool| {
        let mut part = holotype_index::Rows::new(spec);
        for (i, vector) in vectors.iter().enumerate().filter(|(i, _)| of(*i)) {
            part.push(i as u32, vector).unwrap();
        }
        segment(&part)
    };
    let parts = vec![make(&|i| i % 4 < 2), make(&|i| i % 4 == 2), make(&|i| i % 4 == 3)];
    (parts, index(vec![segment(&rows(spec, &vectors, |i| i as u32))]))
}

#[test]
fn a_merge_keeps_everything_and_loses_no_recall() {
    let (parts, whole) = parts();
    let merged = merged(&parts.iter().collect::<Vec<_>>(), None, &options()).unwrap();
    assert_eq!(merged.ids().unwrap(), whole.segments()[0].ids().unwrap());
    assert!(merged.unreachable_ids().unwrap().is_empty());
    let merged = index(vec![merged]);
    let queries = clusters(60, 46);
    let (built, merged_recall) =
        (recall(&whole, &queries, SearchOptions::default()), recall(&merged, &queries, SearchOptions::default()));
    assert!(merged_recall >= 0.95 && merged_recall >= built - 0.02, "{merged_recall} after {built}");
    for query in &queries[..5] {
        let exact = SearchOptions { exact: true, ..SearchOptions::default() };
        assert_eq!(whole.search(query, 20, exact).unwrap().hits, merged.search(query, 20, exact).unwrap().hits);
    }
}

/// Merges 2,100 vectors with a graph and 300 without; each of the latter is multiplied by `times`.
fn extended(metric: Metric, times: f32) -> (VectorSegment, VectorSegment) {
    let spec = spec(metric, Encoding::F16);
    let mut vectors = clusters(2400, 51);
    vectors[2100..].iter_mut().flatten().for_each(|x| *x *= times);
    let base = segment(&rows(spec, &vectors[..2100], |i| i as u32));
    let flat = holotype_index::BuildOptions { graph_from: usize::MAX, ..options() };
    let new = rows(spec, &vectors[2100..], |i| 2100 + i as u32);
    let new = open(build_segment(new, IDENTITY, &flat).unwrap(), &spec);
    let merged = merged(&[&base, &new], None, &options()).unwrap();
    (base, merged)
}

#[test]
fn a_merge_keeps_codes_and_calibration_while_they_fit() {
    for (metric, times, fit) in [(Metric::Cosine, 3.0, true), (Metric::Dot, 1.0, true), (Metric::Dot, 6.0, false)] {
        let (base, merged) = extended(metric, times);
        let section = |segment: &VectorSegment, tag: &[u8; 4]| segment.file().section(*tag).unwrap().to_vec();
        assert_eq!(section(&merged, b"CODE").starts_with(&section(&base, b"CODE")), fit, "{metric:?} {times}");
        assert_eq!(section(&merged, b"CALB"), section(&base, b"CALB"), "2,100 and 2,400 are of one power of two");
        assert!(merged.unreachable_ids().unwrap().is_empty());
        let found = recall(&index(vec![merged]), &clusters(40, 52), SearchOptions::default());
        assert!(found >= 0.95, "{metric:?} {times}: {found}");
    }
}

#[test]
fn what_a_merge_leaves_out_never_comes_back() {
    let (parts, _) = parts();
    for left_out in [11u32, 2] {
        // One in eleven leaves the large graph standing; one in two has it built anew.
        let keep: Bits = (0..4000).filter(|id| id % left_out != 0).collect();
        let merged = merged(&parts.iter().collect::<Vec<_>>(), Some(&keep), &options()).unwrap();
        assert!(merged.ids().unwrap().iter().copied().eq(keep.iter()));
        assert!(merged.unreachable_ids().unwrap().is_empty());
        let merged = index(vec![merged]);
        let recall = recall(&merged, &clusters(40, 47), SearchOptions::default());
        assert!(recall >= 0.95, "without one in {left_out}: {recall}");
        assert_eq!(merged.vector(left_out).unwrap(), None);
    }
    let nothing = merged(&[&parts[0]], Some(&Bits::new()), &options());
    assert!(matches!(nothing, Err(Error::Empty)));
    let twice = merged(&[&parts[0], &parts[0]], None, &options());
    assert!(matches!(twice, Err(Error::IdOrder { .. })));
}

#[test]
fn several_parts_are_searched_each_in_its_way() {
    let (mut parts, whole) = parts();
    let small = parts.pop().unwrap();
    let tail = VectorTail::new(whole.spec());
    for (position, id) in small.ids().unwrap().iter().enumerate() {
        let mut vector = vec![0.0; clusters::DIM];
        small.rows(None).unwrap().decode(position, &mut vector);
        tail.push(*id, &vector).unwrap();
    }
    let several = VectorIndex::new(parts.into_iter().map(Arc::new).collect(), tail.view()).unwrap();
    assert_eq!(several.len(), 4000);
    let queries = clusters(40, 48);
    let search = several.search(&queries[0], 10, SearchOptions::default()).unwrap();
    let strategies: Vec<Strategy> = search.parts.iter().map(|part| part.strategy).collect();
    assert_eq!(strategies, [Strategy::Walk, Strategy::Walk, Strategy::Scan]);
    assert!(recall(&several, &queries, SearchOptions::default()) >= 0.95);
    let filter: Bits = (0..4000).filter(|id| id % 4 == 2).collect();
    let filtered =
        several.search(&queries[0], 10, SearchOptions { filter: Some(&filter), ..SearchOptions::default() }).unwrap();
    let strategies: Vec<Strategy> = filtered.parts.iter().map(|part| part.strategy).collect();
    assert_eq!(strategies, [Strategy::Skip, Strategy::Walk, Strategy::ScanMatching]);
}
