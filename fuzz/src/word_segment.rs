//! `.wseg` files with valid checksums and any content: an error when opened or searched, without a panic.

use std::sync::Arc;

use holotype_index::words::{Analyzer, WORD_SEGMENT_KIND, WordIndex, WordSegment, WordTail};

use crate::input::Input;
use crate::sections::{IDENTITY, seal, unseal};

const TAGS: [[u8; 4]; 7] = [*b"HEAD", *b"IDS ", *b"LENS", *b"TERM", *b"TEXT", *b"BLKS", *b"POST"];

/// Seals the sections, opens the segment and asks for words that the seeds hold.
///
/// # Panics
/// When an answer has documents the segment does not hold.
pub fn target(data: &[u8]) {
    let file = seal(&mut Input::new(data), WORD_SEGMENT_KIND, 1, &TAGS);
    let Ok(segment) = WordSegment::open(file) else { return };
    let segment = Arc::new(segment);
    let ids: Vec<u32> = segment.ids().expect("they were checked").collect();
    let whole = segment.verify().is_ok();
    for bound in [u32::MAX, 101] {
        let Ok(index) = WordIndex::new(Analyzer::default(), vec![Arc::clone(&segment)], Vec::new(), bound) else {
            return;
        };
        for query in ["common", "red again", "blue missing", "lisbon"] {
            let Ok(scorer) = index.scorer(&index.query(query)) else {
                assert!(!whole, "a verified segment cannot be asked");
                continue;
            };
            let found = scorer.top(None, 1_000);
            assert!(found.is_ok() || !whole, "a verified segment cannot be read: {found:?}");
            for hit in found.unwrap_or_default() {
                assert!(ids.binary_search(&hit.id).is_ok() && hit.id < bound, "{} is not in the view", hit.id);
            }
            let asked = [0, 2, 100, 598, u32::MAX];
            let _ = (scorer.scores(&asked), scorer.coverage(&asked), scorer.top(None, 1));
        }
    }
}

/// A list with several blocks, and one document.
pub fn seeds() -> Vec<Vec<u8>> {
    let colour = |id: u32| ["red", "green", "blue"][id as usize % 3];
    let many = (0..300).map(|id| (id * 2, format!("common {} {}", colour(id), "again ".repeat(id as usize % 3))));
    let one = vec![(3, "Booked flight UA123 to Lisbon".to_owned())];
    [many.collect(), one].into_iter().map(|documents: Vec<(u32, String)>| seed(&documents)).collect()
}

fn seed(documents: &[(u32, String)]) -> Vec<u8> {
    let tail = WordTail::new(Analyzer::default());
    for (id, text) in documents {
        tail.push(*id, &[(text, 1.0)]).expect("ids ascend");
    }
    let writer = tail.build(u32::MAX, None, IDENTITY).expect("there are documents");
    let mut bytes = Vec::new();
    unseal(writer, WORD_SEGMENT_KIND, &TAGS, &mut bytes);
    bytes
}
