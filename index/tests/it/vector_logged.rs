//! A merge leaves vectors where the log has them, if it has all of them as they are; searches then read them there.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::{Arc, Mutex};

use crate::clusters::{clusters, index, merged, options, recall, rows, spec};
use holotype_index::bitmap::Bits;
use holotype_index::{
    BuildOptions, Encoding, Error, LoggedVectors, Metric, Rows, SearchOptions, VectorIndex, VectorSegment,
};

/// The bytes of vectors by id; some of them cannot be read.
#[derive(Debug, Default)]
struct Log(Mutex<BTreeMap<u32, Vec<u8>>>);

impl Log {
    fn of(rows: &Rows) -> Arc<Self> {
        let view = rows.view();
        let encoded = view.encoded().unwrap();
        let width = encoded.bytes.len() / rows.len();
        let vectors = rows.ids().iter().zip(encoded.bytes.chunks(width));
        Arc::new(Self(Mutex::new(vectors.map(|(id, bytes)| (*id, bytes.to_vec())).collect())))
    }
}

impl LoggedVectors for Log {
    fn find(&self, id: u32, out: &mut [u8]) -> Option<NonZero<u64>> {
        let place = NonZero::new(u64::from(id) + 1)?;
        self.copy(place, out).then_some(place)
    }

    fn copy(&self, place: NonZero<u64>, out: &mut [u8]) -> bool {
        let vectors = self.0.lock().unwrap();
        let Some(vector) = vectors.get(&(place.get() as u32 - 1)) else { return false };
        out.copy_from_slice(vector);
        true
    }

    fn prefetch(&self, _place: NonZero<u64>, _len: usize) {}
}

fn flat(rows: &Rows) -> VectorSegment {
    let options = BuildOptions { graph_from: usize::MAX, ..options() };
    crate::clusters::open(
        holotype_index::build_segment(rows.clone(), crate::clusters::IDENTITY, &options).unwrap(),
        &rows.spec(),
    )
}

fn linked(segments: &[&VectorSegment], log: Option<&Log>) -> VectorSegment {
    let log = log.map(|log| log as &dyn LoggedVectors);
    merged(segments, None, &BuildOptions { log, ..options() }).unwrap()
}

#[test]
fn answers_are_those_of_vectors_in_the_segment() {
    let vectors = clusters(1500, 61);
    for metric in [Metric::Cosine, Metric::Dot, Metric::L2] {
        for encoding in [Encoding::F32, Encoding::F16] {
            let rows = rows(spec(metric, encoding), &vectors, |i| i as u32 * 2);
            let log = Log::of(&rows);
            let flat = flat(&rows);
            let (own, logged) = (linked(&[&flat], None), linked(&[&flat], Some(&log)));
            assert!(!own.is_logged() && logged.is_logged());
            let vectors_of =
                |segment: &VectorSegment| segment.file().optional_section(*b"VECS").unwrap().map(<[u8]>::len);
            let width = if encoding == Encoding::F32 { 4 } else { 2 };
            assert_eq!((vectors_of(&own), vectors_of(&logged)), (Some(rows.len() * 64 * width), None));
            let (own, logged) = (index(vec![own]), index(vec![logged]).in_log(Arc::clone(&log) as Arc<_>));
            let few: Bits = (0..3000).filter(|id| id % 60 == 0).collect();
            let many: Bits = (0..3000).filter(|id| id % 3 != 0).collect();
            for query in clusters(15, 62) {
                for filter in [None, Some(&few), Some(&many)] {
                    for exact in [false, true] {
                        let options = SearchOptions { filter, exact, ..SearchOptions::default() };
                        let (a, b) = (own.search(&query, 10, options), logged.search(&query, 10, options));
                        assert_eq!(a.unwrap().hits, b.unwrap().hits, "{metric:?} {encoding:?} {exact}");
                    }
                }
                let ids: Vec<u32> = (0..40).collect();
                assert_eq!(own.scores(&query, &ids).unwrap(), logged.scores(&query, &ids).unwrap());
            }
            assert_eq!(own.vector(4).unwrap(), logged.vector(4).unwrap());
            assert!(recall(&logged, &clusters(20, 63), SearchOptions::default()) > 0.98);
        }
    }
}

#[test]
fn a_segment_keeps_its_vectors_unless_the_log_has_each_of_them() {
    let rows = rows(spec(Metric::Cosine, Encoding::F16), &clusters(700, 64), |i| i as u32);
    let flat = flat(&rows);
    for change in [|vector: &mut Vec<u8>| vector[5] ^= 1, |vector: &mut Vec<u8>| vector.clear()] {
        let log = Log::of(&rows);
        let mut vectors = log.0.lock().unwrap();
        change(vectors.get_mut(&321).unwrap());
        if vectors[&321].is_empty() {
            vectors.remove(&321);
        }
        drop(vectors);
        assert!(!linked(&[&flat], Some(&log)).is_logged());
    }
    let codes = crate::clusters::rows(spec(Metric::Cosine, Encoding::I8), &clusters(700, 64), |i| i as u32);
    let log = Log::of(&codes);
    assert!(!linked(&[&crate::clusters::segment(&codes)], Some(&log)).is_logged(), "the log has no such encoding");
}

#[test]
fn a_vector_that_cannot_be_read_is_replaced_by_its_code() {
    let rows = rows(spec(Metric::Cosine, Encoding::F16), &clusters(900, 65), |i| i as u32);
    let log = Log::of(&rows);
    let logged = linked(&[&flat(&rows)], Some(&log));
    log.0.lock().unwrap().remove(&77);
    let index = index(vec![logged]).in_log(Arc::clone(&log) as Arc<_>);
    let mut own = vec![0.0; 64];
    rows.view().decode(77, &mut own);
    let hits = index.search(&own, 3, SearchOptions::default()).unwrap().hits;
    assert!(hits[0].id == 77 && hits[0].score > 0.98, "{hits:?}");
    let vector = index.vector(77).unwrap().unwrap();
    assert_ne!(vector, own);
    assert!(vector.iter().zip(&own).all(|(a, b)| (a - b).abs() < 0.01));
}

#[test]
fn a_graph_in_the_log_is_extended_and_needs_its_log() {
    let vectors = clusters(1600, 66);
    let spec = spec(Metric::Cosine, Encoding::F16);
    let all = rows(spec, &vectors, |i| i as u32);
    let (first, second) =
        (rows(spec, &vectors[..1000], |i| i as u32), rows(spec, &vectors[1000..], |i| i as u32 + 1000));
    let log = Log::of(&all);
    let base = linked(&[&flat(&first)], Some(&log));
    let more = flat(&second);
    let without = merged(&[&base, &more], None, &options());
    assert!(matches!(without, Err(Error::NoLog)), "{without:?}");
    let both = linked(&[&base, &more], Some(&log));
    assert!(both.is_logged() && both.unreachable_ids().unwrap().is_empty());
    let lost =
        VectorIndex::new(vec![Arc::new(linked(&[&base, &more], Some(&log)))], holotype_index::TailView::empty(spec));
    assert!(matches!(lost.unwrap().search(&vectors[3], 3, SearchOptions::default()), Err(Error::NoLog)));
    let index = index(vec![both]).in_log(Arc::clone(&log) as Arc<_>);
    assert!(recall(&index, &clusters(20, 67), SearchOptions::default()) > 0.98);
    // A log that changed since takes the vectors back into the segment.
    log.0.lock().unwrap().get_mut(&1500).unwrap()[0] ^= 1;
    let third = linked(&[&base, &more], Some(&log));
    assert!(!third.is_logged());
    assert_eq!(third.rows(None).unwrap().len(), 1600);
}
