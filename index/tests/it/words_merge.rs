//! A merge changes no answer: the merged segment is, byte for byte, the one that all documents would have made at once.

use std::path::Path;
use std::sync::Arc;

use crate::words_model::*;
use holotype_index::Error;
use holotype_index::bitmap::Bits;
use holotype_index::words::{Analyzer, BulkWords, Stemming, WordIndex, WordSegment, merge_word_segments};
use holotype_storage::vfs::{SimVfs, Vfs};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn merging_is_building_at_once(
        analyzer in analyzer(),
        documents in documents(40),
        places in proptest::collection::vec(0usize..4, 40),
        keep in proptest::option::of(proptest::collection::btree_set(0u32..160, 0..100)),
        query in text(),
    ) {
        let part = |place: usize| {
            documents.iter().zip(&places).filter(move |(_, at)| **at == place).map(|(document, _)| document)
        };
        let parts: Vec<Arc<WordSegment>> = (0..4).map(|place| segment_of(analyzer, part(place))).collect();
        let parts: Vec<&WordSegment> = parts.iter().map(|part| &**part).collect();
        let keep: Option<Bits> = keep.map(|keep| keep.into_iter().collect());
        let merged = merged(analyzer, &parts, keep.as_ref()).unwrap();

        let kept: Vec<Document> =
            documents.into_iter().filter(|document| keep.as_ref().is_none_or(|keep| keep.contains(document.id))).collect();
        let at_once = tail_of(analyzer, &kept).build(u32::MAX, None, IDENTITY).unwrap();
        prop_assert_eq!(&merged, &at_once.into_bytes());

        let merged = segment_from(merged);
        merged.verify().unwrap();
        let after = WordIndex::new(analyzer, vec![merged], vec![], u32::MAX).unwrap();
        let wanted = naive(analyzer, &kept, u32::MAX, &query);
        let hits = after.top(&after.query(&query), None, usize::MAX).unwrap();
        prop_assert!(agrees(&hits, &wanted.hits));
    }

    /// Whatever the segments before were of, and whatever was analysed before.
    #[test]
    fn building_in_bulk_is_building(
        analyzers in proptest::collection::vec(analyzer(), 3),
        documents in documents(60),
        analysed in 0_usize..4,
    ) {
        let mut bulk = BulkWords::new(analyzers[0]);
        for (round, (part, analyzer)) in documents.chunks(25).zip(analyzers).enumerate() {
            let wanted = tail_of(analyzer, part).build(u32::MAX, None, IDENTITY).unwrap();
            let tail = Arc::into_inner(tail_of(analyzer, part)).unwrap();
            if round == analysed {
                tail.catch_up_some();
            }
            prop_assert_eq!(bulk.build(tail, u32::MAX, IDENTITY).unwrap().into_bytes(), wanted.into_bytes());
        }
    }

    #[test]
    fn a_tail_builds_what_it_keeps(
        documents in documents(40),
        bound in 0u32..120,
        keep in proptest::collection::btree_set(0u32..120, 0..100),
    ) {
        let analyzer = Analyzer::default();
        let keep: Bits = keep.into_iter().collect();
        let built = tail_of(analyzer, &documents).build(bound, Some(&keep), IDENTITY).unwrap();
        let kept = documents.iter().filter(|document| document.id < bound && keep.contains(document.id));
        let wanted = tail_of(analyzer, kept).build(u32::MAX, None, IDENTITY).unwrap();
        prop_assert_eq!(built.into_bytes(), wanted.into_bytes());
    }
}

/// The bytes of the file that a merge writes.
fn merged(analyzer: Analyzer, parts: &[&WordSegment], keep: Option<&Bits>) -> Result<Vec<u8>, Error> {
    let (vfs, path) = (SimVfs::new(), Path::new("/merged.wseg"));
    let len = merge_word_segments(analyzer, parts, keep, (IDENTITY, None), (&vfs, path), None);
    let len = len.inspect_err(|_| assert!(vfs.list(Path::new("/")).unwrap().is_empty(), "what failed is removed"))?;
    let bytes = vfs.bytes(path).unwrap();
    assert_eq!(bytes.len() as u64, len);
    Ok(bytes)
}

fn segment_from(bytes: Vec<u8>) -> Arc<WordSegment> {
    let kind = holotype_index::words::WORD_SEGMENT_KIND;
    let file = holotype_storage::segment_file::SegmentFile::from_bytes(bytes, kind, &IDENTITY).unwrap();
    Arc::new(WordSegment::open(file).unwrap())
}

#[test]
fn a_merge_that_is_cancelled_leaves_no_file() {
    let document = |id| Document { id, pieces: vec![("some text".into(), 1.0)] };
    let analyzer = Analyzer::default();
    let (a, b) = (segment_of(analyzer, [&document(1)]), segment_of(analyzer, [&document(2)]));
    let (vfs, cancel) = (SimVfs::new(), std::sync::atomic::AtomicBool::new(true));
    let place = (&vfs as &dyn Vfs, Path::new("/merged.wseg"));
    let ended = merge_word_segments(analyzer, &[&a, &b], None, (IDENTITY, None), place, Some(&cancel));
    assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
    assert!(vfs.list(Path::new("/")).unwrap().is_empty());
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let english = Analyzer::new(Stemming::English);
    let none = Analyzer::new(Stemming::None);
    let document = |id| Document { id, pieces: vec![("some text".into(), 1.0)] };
    let (a, b) = (segment_of(english, [&document(1)]), segment_of(none, [&document(2)]));
    let mismatch = merged(english, &[&a, &b], None).unwrap_err();
    assert!(matches!(&mismatch, Error::Mismatch { .. }), "{mismatch}");
    assert!(mismatch.to_string().contains("analyser 2 (none)"), "{mismatch}");
    let twice = merged(english, &[&a, &a], None).unwrap_err();
    assert!(matches!(twice, Error::IdOrder { previous: 1, next: 1 }));
    assert!(matches!(WordIndex::new(english, vec![a, b], vec![], 9), Err(Error::Mismatch { .. })));
    let tails = vec![tail_of(none, [])];
    assert!(matches!(WordIndex::new(english, vec![], tails, 9), Err(Error::Mismatch { .. })));
}

#[test]
fn nothing_merges_to_nothing() {
    let empty = segment_from(merged(Analyzer::default(), &[], None).unwrap());
    assert_eq!((empty.document_count(), empty.term_count()), (0, 0));
    let index = WordIndex::new(Analyzer::default(), vec![empty], vec![], u32::MAX).unwrap();
    assert_eq!(index.top(&index.query("anything"), None, 10).unwrap(), []);
}
