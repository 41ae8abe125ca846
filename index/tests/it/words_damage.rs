//! Bytes that are not what was written are an error or change nothing. They never cause a panic or another answer.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::words_model::*;
use holotype_index::words::{Analyzer, WORD_SEGMENT_KIND, WordIndex, WordSegment};
use holotype_index::{Hit, Result};
use holotype_storage::segment_file::{SegmentFile, SegmentFileWriter};
use holotype_storage::vfs::OsVfs;
use proptest::prelude::*;

const TAGS: [[u8; 4]; 7] = [*b"HEAD", *b"IDS ", *b"LENS", *b"TERM", *b"TEXT", *b"BLKS", *b"POST"];

/// Enough documents that one list has several blocks.
fn small() -> Vec<u8> {
    let text =
        |id: u32| format!("common {} {}", ["red", "green", "blue"][id as usize % 3], "again ".repeat(id as usize % 3));
    let documents: Vec<Document> = (0..300).map(|id| Document { id: id * 2, pieces: vec![(text(id), 1.0)] }).collect();
    tail_of(Analyzer::default(), &documents).build(u32::MAX, None, IDENTITY).unwrap().into_bytes()
}

/// Everything that a segment can be asked.
fn answers(bytes: Vec<u8>) -> Result<Vec<Vec<Hit>>> {
    let file = SegmentFile::from_bytes(bytes, WORD_SEGMENT_KIND, &IDENTITY)?;
    let segment = Arc::new(WordSegment::open(file)?);
    let mut answers = Vec::new();
    for bound in [u32::MAX, 301] {
        let index = WordIndex::new(Analyzer::default(), vec![segment.clone()], vec![], bound)?;
        for query in ["common", "red again", "blue missing", "green"] {
            let scorer = index.scorer(&index.query(query))?;
            answers.push(scorer.top(None, usize::MAX)?);
            scorer.scores(&[0, 2, 250, 598])?;
        }
    }
    segment.verify()?;
    Ok(answers)
}

#[test]
fn every_flipped_byte_is_noticed_or_harmless() {
    let bytes = small();
    let wanted = answers(bytes.clone()).unwrap();
    let mut noticed = 0;
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        match answers(flipped) {
            Ok(found) => assert_eq!(found, wanted, "byte {at}"),
            Err(error) => noticed += usize::from(!error.to_string().is_empty()),
        }
    }
    assert_eq!(noticed, bytes.len());
}

#[test]
fn every_cut_is_noticed() {
    let bytes = small();
    for len in 0..bytes.len() {
        assert!(answers(bytes[..len].to_vec()).is_err(), "{len}");
    }
}

fn sections() -> Vec<Vec<u8>> {
    let file = SegmentFile::from_bytes(small(), WORD_SEGMENT_KIND, &IDENTITY).unwrap();
    TAGS.iter().map(|tag| file.section(*tag).unwrap().to_vec()).collect()
}

fn sealed(sections: Vec<Vec<u8>>) -> Vec<u8> {
    let mut writer = SegmentFileWriter::new(WORD_SEGMENT_KIND, 1, IDENTITY);
    for (tag, bytes) in TAGS.iter().zip(sections) {
        writer.section(*tag, bytes);
    }
    writer.into_bytes()
}

/// Checksums that fit do not make a file good: the content is checked by itself.
#[test]
fn every_flipped_bit_under_a_good_checksum_is_survived() {
    let sections = sections();
    assert!(sections.iter().all(|section| !section.is_empty()));
    let (mut refused, mut read) = (0, 0);
    for (i, section) in sections.iter().enumerate() {
        for at in 0..section.len() {
            let mut changed = sections.clone();
            changed[i][at] ^= 1 << (at % 8);
            match answers(sealed(changed)) {
                Ok(_) => read += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > read, "{refused} refused, {read} read");
}

/// Checks the properties of hits of any segment: finite scores, best first, each id once and below the bound.
fn assert_hits(answers: &[Vec<Hit>]) {
    for (nth, hits) in answers.iter().enumerate() {
        let bound = if nth < answers.len() / 2 { u32::MAX } else { 301 };
        let ids: BTreeSet<u32> = hits.iter().map(|hit| hit.id).collect();
        assert_eq!(ids.len(), hits.len(), "{hits:?}");
        assert!(ids.iter().all(|id| *id < bound), "{hits:?}");
        assert!(hits.iter().all(|hit| hit.score.is_finite()), "{hits:?}");
        assert!(hits.is_sorted_by(|a, b| a.score >= b.score), "{hits:?}");
    }
}

proptest! {
    #[test]
    fn any_sections_are_survived(
        which in 0usize..7,
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        at in any::<proptest::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut sections = sections();
        let at = at.index(sections[which].len());
        if cut {
            sections[which].truncate(at);
        }
        sections[which].splice(at.., bytes);
        match answers(sealed(sections)) {
            Ok(found) => assert_hits(&found),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

#[test]
fn a_segment_survives_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("1.wseg");
    let analyzer = Analyzer::default();
    let documents = [Document { id: 3, pieces: vec![("written to a real file".into(), 1.0)] }];
    let vfs = OsVfs;
    let len = tail_of(analyzer, &documents).build(u32::MAX, None, IDENTITY).unwrap().write(&vfs, &path).unwrap();
    let open = |path: &Path| -> Result<WordSegment> {
        WordSegment::open(SegmentFile::open(&vfs, path, WORD_SEGMENT_KIND, &IDENTITY)?)
    };
    let segment = open(&path).unwrap();
    segment.verify().unwrap();
    assert_eq!((segment.file_len(), segment.document_count()), (len, 1));
    assert_eq!(segment.ids().unwrap().collect::<Vec<_>>(), [3]);
    let index = WordIndex::new(analyzer, vec![Arc::new(segment)], vec![], 4).unwrap();
    assert_eq!(index.top(&index.query("files"), None, 1).unwrap().len(), 1);
    assert!(open(&folder.path().join("2.wseg")).is_err());
}

/// Damage met while decoding postings fails that query; the next one is answered without the segment.
#[test]
fn a_damaged_segment_is_left_out_once_it_is_known() {
    let sound = Document { id: 9_000, pieces: vec![("common and sound".into(), 1.0)] };
    let sound = segment_of(Analyzer::default(), [&sound]);
    let index = |segments| WordIndex::new(Analyzer::default(), segments, vec![], u32::MAX).unwrap();
    let ask = |index: &WordIndex| index.top(&index.query("common red again"), None, usize::MAX);
    let alone = ask(&index(vec![sound.clone()])).unwrap();
    let (sections, mut failed) = (sections(), 0);
    for at in 0..sections[6].len() {
        let mut changed = sections.clone();
        changed[6][at] ^= 0x80;
        for bytes in [sealed(changed), {
            let mut bytes = sealed(sections.clone());
            let place = bytes.len() - sections[6].len().next_multiple_of(64) + at;
            bytes[place] ^= 0x80;
            bytes
        }] {
            let file = SegmentFile::from_bytes(bytes, WORD_SEGMENT_KIND, &IDENTITY).unwrap();
            let segment = Arc::new(WordSegment::open(file).unwrap());
            let around = index(vec![segment.clone(), sound.clone()]).skip_damaged();
            if ask(&around).is_err() {
                failed += 1;
                assert!(segment.is_damaged());
            }
            assert_eq!(segment.is_damaged(), ask(&around).unwrap() == alone, "byte {at}");
        }
    }
    assert!(failed > 0);
}
