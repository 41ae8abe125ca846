//! Several word segments become one.
//!
//! The dictionaries are merged in one ordered pass; a posting changes only its local id. So a term's frequencies, the
//! documents' lengths and every score stay as they were. The order of the segments and of their ids does not matter.
//!
//! Cost: every posting is decoded and encoded once; memory for one posting list and 4 bytes a document besides the result.

use holotype_storage::segment_file::{FileIdentity, SegmentFileWriter};

use super::analyse::Analyzer;
use super::postings::{List, Posting};
use super::segment::{Builder, Lookup, WordSegment};
use crate::bitmap::Bits;
use crate::error::{Error, Result};

/// A document that the merged segment leaves out.
const DROPPED: u32 = u32::MAX;

/// A segment being read: its next term, and where its documents go.
struct Source<'a> {
    lookup: Lookup<'a>,
    next: u32,
    places: Vec<u32>,
}

impl<'a> Source<'a> {
    fn key(&self) -> Option<&'a [u8]> {
        self.lookup.term(self.next).map(|(key, _)| key)
    }
}

/// The segment of all documents of `segments`, without those that `keep` leaves out.
///
/// # Errors
/// [`Error::Mismatch`] for a segment of another analyser, [`Error::IdOrder`] for a document in two segments,
/// [`Error::Corrupt`] for damage.
pub fn merge_word_segments(
    analyzer: Analyzer,
    segments: &[&WordSegment],
    keep: Option<&Bits>,
    identity: FileIdentity,
) -> Result<SegmentFileWriter> {
    let analyzer = analyzer.id();
    if let Some(other) = segments.iter().find(|segment| segment.analyzer() != analyzer) {
        return Err(Error::Mismatch { expected: analyzer.to_string(), found: other.analyzer().to_string() });
    }
    let mut sources = Vec::with_capacity(segments.len());
    let mut documents = Vec::new();
    for (i, segment) in segments.iter().enumerate() {
        let (ids, lens) = (segment.ids()?, segment.stored_lens()?);
        documents.extend(ids.zip(lens).enumerate().map(|(local, (id, len))| (id, i, local, *len)));
        let places = vec![DROPPED; segment.document_count() as usize];
        sources.push(Source { lookup: segment.lookup()?, next: 0, places });
    }
    documents.sort_unstable_by_key(|(id, ..)| *id);
    if let Some([(previous, ..), (next, ..)]) = documents.array_windows().find(|[a, b]| a.0 == b.0) {
        return Err(Error::IdOrder { previous: *previous, next: *next });
    }
    documents.retain(|(id, ..)| keep.is_none_or(|keep| keep.contains(*id)));
    for (place, (_, source, local, _)) in documents.iter().enumerate() {
        sources[*source].places[*local] = place as u32;
    }
    let ids = documents.iter().map(|(id, ..)| id.to_le_bytes()).collect();
    let lens = documents.iter().map(|(.., len)| *len).collect();
    let mut builder = Builder::new(analyzer, ids, lens);
    drop(documents);

    let mut postings = Vec::new();
    while let Some(key) = sources.iter().filter_map(Source::key).min() {
        postings.clear();
        for source in &mut sources {
            if let Some((found, list)) = source.lookup.term(source.next)
                && found == key
            {
                source.next += 1;
                List::Stored(list).each(u32::MAX, &mut |posting| {
                    let place = source.places.get(posting.local as usize).copied().unwrap_or(DROPPED);
                    if place != DROPPED {
                        postings.push(Posting { local: place, ..posting });
                    }
                })?;
            }
        }
        postings.sort_unstable_by_key(|posting| posting.local);
        builder.term(key, &postings);
    }
    builder.finish(identity)
}
