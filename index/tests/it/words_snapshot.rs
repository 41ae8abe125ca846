//! A view of a tail keeps its answers while documents are pushed behind it, and a bound in the past gives the answers
//! of the past.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::words_model::*;
use holotype_index::words::{Analyzer, MAX_QUEUED_LEN, WordIndex, WordTail};
use holotype_index::{Error, Hit};
use proptest::prelude::*;

fn view(tail: &Arc<WordTail>, bound: u32) -> WordIndex {
    WordIndex::new(tail.analyzer(), vec![], vec![tail.clone()], bound).unwrap()
}

fn answers(index: &WordIndex) -> Vec<Vec<Hit>> {
    let queries = ["common", "number 7 of 3", "rare", "common rare words"];
    queries.iter().map(|query| index.top(&index.query(query), None, 20).unwrap()).collect()
}

fn document(id: u32) -> Document {
    let rare = if id.is_multiple_of(97) { "rare" } else { "" };
    Document { id, pieces: vec![(format!("common words {rare}, number {} of {}", id % 13, id % 5), 1.0)] }
}

proptest! {
    #[test]
    fn a_bound_in_the_past_gives_the_answers_of_the_past(
        documents in documents(40),
        places in proptest::collection::vec(any::<u8>(), 40),
        query in text(),
    ) {
        let analyzer = Analyzer::default();
        let now = spread(analyzer, &documents, &places, u32::MAX);
        for bound in documents.iter().map(|document| document.id).step_by(5) {
            let then: Vec<Document> =
                documents.iter().filter(|document| document.id < bound).cloned().collect();
            let wanted = naive(analyzer, &then, u32::MAX, &query);
            let index = now.clone().at(bound);
            let hits = index.top(&index.query(&query), None, usize::MAX).unwrap();
            prop_assert!(agrees(&hits, &wanted.hits));
        }
    }
}

#[test]
fn views_keep_their_answers_while_pushes_go_on() {
    let analyzer = Analyzer::default();
    let tail = Arc::new(WordTail::new(analyzer));
    let bounds = [1, 50, 51, 300, 1000];
    let wanted: Vec<Vec<Vec<Hit>>> = bounds
        .iter()
        .map(|bound| {
            let documents: Vec<Document> = (0..*bound).map(document).collect();
            answers(&view(&tail_of(analyzer, &documents), u32::MAX))
        })
        .collect();
    (0..1000).for_each(|id| push(&tail, &document(id)));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut rounds = 0;
                    while !done.load(Ordering::Acquire) || rounds == 0 {
                        for (bound, wanted) in bounds.iter().zip(&wanted) {
                            assert_eq!(&answers(&view(&tail, *bound)), wanted, "bound {bound}");
                        }
                        rounds += 1;
                    }
                })
            })
            .collect();
        (1000..6000).for_each(|id| push(&tail, &document(id)));
        // A reader of the newest document makes the queue be worked off beside the others.
        assert_eq!(view(&tail, 6000).stats().unwrap().documents, 6000);
        done.store(true, Ordering::Release);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
    let (documents, all): (Vec<Document>, _) = ((0..6000).map(document).collect(), u32::MAX);
    assert_eq!(answers(&view(&tail, all)), answers(&view(&tail_of(analyzer, &documents), all)));
}

/// A tail that became a segment is still read by the snapshot that saw it; both answer alike.
#[test]
fn a_sealed_tail_answers_like_its_segment() {
    let analyzer = Analyzer::default();
    let old: Vec<Document> = (0..400).map(document).collect();
    let new: Vec<Document> = (400..500).map(document).collect();
    let (sealed, active) = (tail_of(analyzer, &old), tail_of(analyzer, &new));
    let before = WordIndex::new(analyzer, vec![], vec![sealed.clone(), active.clone()], 450).unwrap();
    let wanted = answers(&before);
    let segment = opened(sealed.build(400, None, IDENTITY).unwrap());
    let after = WordIndex::new(analyzer, vec![segment], vec![active.clone()], 450).unwrap();
    push(&active, &document(500));
    assert_eq!(answers(&before), wanted);
    assert_eq!(answers(&after), wanted);
}

#[test]
fn ids_must_ascend() {
    let tail = WordTail::new(Analyzer::default());
    tail.push(5, &[("five", 1.0)]).unwrap();
    for id in [0, 4, 5] {
        let refused = tail.push(id, &[("again", 1.0)]);
        assert!(matches!(refused, Err(Error::IdOrder { previous: 5, next }) if next == id));
    }
    tail.push(9, &[]).unwrap();
    assert_eq!((tail.document_count(), tail.last_id()), (2, Some(9)));
    assert_eq!(view(&Arc::new(tail), 10).stats().unwrap().documents, 2);
}

/// The queue is bounded: past its limit the pusher analyses, and the text is no longer held.
#[test]
fn a_full_queue_is_worked_off() {
    let tail = WordTail::new(Analyzer::default());
    let text = "the same words again ".repeat(20_000);
    let pushes = (MAX_QUEUED_LEN / text.len() + 10) as u32;
    for id in 0..pushes {
        let waiting = tail.push(id, &[(&text, 1.0)]).unwrap();
        assert!(waiting <= MAX_QUEUED_LEN);
        assert_eq!(waiting, tail.queued_len());
        let alone = text.len() * (id as usize + 1);
        assert!(alone > MAX_QUEUED_LEN || waiting == alone, "nobody analyses before it is too much");
    }
    assert!(tail.byte_len() < 2 * MAX_QUEUED_LEN, "{}", tail.byte_len());
    while tail.catch_up_some() {}
    assert_eq!((tail.queued_len(), tail.document_count()), (0, pushes as usize));
    assert!(tail.byte_len() < 64 << 10);
}

#[test]
fn weights_repeat_a_piece() {
    let analyzer = Analyzer::default();
    let weighted = Document { id: 1, pieces: vec![("speaker".into(), 3.0), ("said so".into(), 1.0)] };
    let repeated = Document { id: 1, pieces: vec![("speaker speaker speaker said so".into(), 1.0)] };
    let other = Document { id: 2, pieces: vec![("a speaker of nothing".into(), 1.0)] };
    let top = |first: &Document| {
        let index = view(&tail_of(analyzer, [first, &other]), u32::MAX);
        index.top(&index.query("who is the speaker"), None, 5).unwrap()
    };
    assert_eq!(top(&weighted), top(&repeated));
    let nothing = Document { id: 1, pieces: vec![("speaker".into(), f32::NAN), ("speaker".into(), -1.0)] };
    assert_eq!(top(&nothing).len(), 1);
}
