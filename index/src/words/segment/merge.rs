//! Merges word segments into one, as a stream.
//!
//! The dictionaries are walked side by side, in term order, and a posting changes only its local id. So frequencies,
//! document lengths and all scores stay the same. Segments may come in any order, with any interleaving of ids.
//!
//! If the segments' id ranges are disjoint and all documents are kept, encoded lists are concatenated
//! ([`EncodedList`]); otherwise postings are decoded and merged.
//!
//! The walk runs twice: first to count, which yields the offsets of all sections, then to write. The first pass reads
//! postings only of segments that lose documents.
//!
//! Cost: every posting is decoded once, and encoded again if it moves relative to others. Memory: the postings of one
//! term, 12 bytes per document, the stream's buffers, and a few MiB of each segment, released as it is read. Memory
//! does not depend on the size of dictionaries or postings.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use holotype_storage::log::Head;
use holotype_storage::segment_file::{FileIdentity, StreamingReader};
use holotype_storage::vfs::Vfs;

use crate::bitmap::Bits;
use crate::error::{Error, Result};
use crate::words::analysis::Analyzer;
use crate::words::postings::StoredU32;
use crate::words::postings::encoded::EncodedList;
use crate::words::postings::{List, Posting, StoredList};
use crate::words::segment::writer::{Builder, Lengths};
use crate::words::segment::{Lookup, WordSegment};

/// Sentinel: the merged segment drops the document.
const DROPPED: u32 = u32::MAX;

/// A segment being merged: its next term, and the new local ids of its documents.
struct Source<'a> {
    lookup: Lookup<'a>,
    reader: StreamingReader<'a>,
    next: u32,
    term: Option<(&'a [u8], StoredList<'a>)>,
    places: Vec<u32>,
    /// The offset of its local ids, if it is the same for all documents.
    shift: Option<u32>,
    /// True if its next term is the current one.
    is_here: bool,
    /// True if all its documents are kept.
    whole: bool,
}

impl<'a> Source<'a> {
    /// The source with its list of the current term, if present.
    fn here(&self) -> Option<(&Self, StoredList<'a>)> {
        self.term.filter(|_| self.is_here).map(|(_, list)| (self, list))
    }

    fn go_to(&mut self, term: u32) {
        if let Some((key, list)) = self.term {
            self.reader.advance(list.stored_len(key));
        }
        self.next = term;
        self.term = self.lookup.term(term);
    }

    fn find_shift(&mut self) {
        let first = self.places.first().copied().unwrap_or(0);
        let in_a_row = self.whole && self.places.iter().zip(first..).all(|(place, wanted)| *place == wanted);
        self.shift = in_a_row.then_some(first);
    }

    /// Calls back with the kept postings of a list, with new local ids.
    fn each_kept(&self, list: StoredList<'_>, see: &mut impl FnMut(Posting)) -> Result<()> {
        List::StoredList(list).each(u32::MAX, &mut |posting| {
            let place = self.places.get(posting.local as usize).copied().unwrap_or(DROPPED);
            if place != DROPPED {
                see(Posting { local: place, ..posting });
            }
        })
    }
}

/// Writes the segment of all documents of `segments` that are in `keep`, or of all if it is `None`, to `path`, with its
/// origin in the log if that is given. Returns its length.
///
/// # Errors
/// [`Error::Mismatch`] for a segment of another analyser, [`Error::IdOrder`] for a document in two segments,
/// [`Error::Corrupt`] for damage, [`Error::TooMany`] past the limits of a segment, [`Error::Cancelled`] once `cancel`
/// is set, and of the disk; `path` is then unchanged.
pub fn merge_word_segments(
    analyzer: Analyzer,
    segments: &[&WordSegment],
    keep: Option<&Bits>,
    (identity, origin): (FileIdentity, Option<Head>),
    (vfs, path): (&dyn Vfs, &Path),
    cancel: Option<&AtomicBool>,
) -> Result<u64> {
    let analyzer = analyzer.id();
    if let Some(other) = segments.iter().find(|segment| segment.analyzer() != analyzer) {
        return Err(Error::Mismatch { expected: analyzer.to_string(), found: other.analyzer().to_string() });
    }
    let mut sources = Vec::with_capacity(segments.len());
    for segment in segments {
        let places = vec![DROPPED; segment.document_count() as usize];
        sources.push(Source {
            lookup: segment.lookup()?,
            reader: segment.file().streaming_reader(),
            next: 0,
            term: None,
            places,
            shift: None,
            is_here: false,
            whole: true,
        });
    }
    let (ids, doc_lengths) = documents(segments, keep, &mut sources)?;

    let mut lengths = Lengths::of_documents(ids.len());
    each_term(&mut sources, cancel, |key, sources| {
        let mut count = 0u64;
        for (source, list) in sources.iter().filter_map(Source::here) {
            match source.whole {
                true => count += u64::from(list.count),
                false => source.each_kept(list, &mut |_| count += 1)?,
            }
        }
        lengths.add(key, count);
        Ok(())
    })?;

    let mut builder = Builder::new(lengths.create(vfs, path, identity, origin)?, analyzer, &ids, doc_lengths)?;
    drop(ids);
    sources.iter_mut().for_each(Source::find_shift);
    let mut postings = Vec::new();
    let mut encoded = EncodedList::default();
    each_term(&mut sources, cancel, |key, sources| {
        let here = || sources.iter().filter_map(Source::here);
        if here().all(|(source, _)| source.shift.is_some()) {
            encoded.begin(here().map(|(_, list)| list.count).sum());
            for (source, list) in here() {
                encoded.append(&list, source.shift.unwrap_or(0), builder.doc_lengths())?;
            }
            return builder.term(key, &encoded);
        }
        postings.clear();
        for (source, list) in here() {
            source.each_kept(list, &mut |posting| postings.push(posting))?;
        }
        postings.sort_unstable_by_key(|posting| posting.local);
        encoded.set(&postings, builder.doc_lengths());
        builder.term(key, &encoded)
    })?;
    Ok(builder.finish()?.finish()?)
}

/// Ids and lengths of the kept documents, by id. Records new local ids in the sources, and sorts the sources by their
/// first document.
fn documents(
    segments: &[&WordSegment],
    keep: Option<&Bits>,
    sources: &mut Vec<Source<'_>>,
) -> Result<(Vec<StoredU32>, Vec<StoredU32>)> {
    let mut runs = Vec::with_capacity(segments.len());
    for (segment, source) in segments.iter().zip(sources.drain(..)) {
        runs.push((segment.stored_ids()?, segment.stored_lens()?, 0, source));
    }
    let count = runs.iter().map(|(ids, ..)| ids.len()).sum();
    let (mut ids, mut doc_lengths) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let id_at = |ids: &[StoredU32], at: usize| ids.get(at).map(|id| u32::from_le_bytes(*id));
    runs.sort_by_key(|(ids, ..)| id_at(ids, 0));
    let mut before = None;
    while let Some((id, run)) =
        runs.iter().enumerate().filter_map(|(run, (ids, _, at, _))| Some((id_at(ids, *at)?, run))).min()
    {
        let (run_ids, run_lens, at, source) = &mut runs[run];
        if let Some(previous) = before.filter(|before| *before >= id) {
            return Err(Error::IdOrder { previous, next: id });
        }
        before = Some(id);
        if keep.is_none_or(|keep| keep.contains(id)) {
            source.places[*at] = ids.len() as u32;
            ids.push(run_ids[*at]);
            doc_lengths.push(run_lens[*at]);
        } else {
            source.whole = false;
        }
        *at += 1;
    }
    sources.extend(runs.into_iter().map(|(.., source)| source));
    Ok((ids, doc_lengths))
}

/// Calls back with every term in order; sources that have it are marked ([`Source::here`]).
fn each_term<'a, F>(sources: &mut [Source<'a>], cancel: Option<&AtomicBool>, mut see: F) -> Result<()>
where
    F: FnMut(&'a [u8], &[Source<'a>]) -> Result<()>,
{
    sources.iter_mut().for_each(|source| source.go_to(0));
    while let Some(key) = sources.iter().filter_map(|source| source.term.map(|(key, _)| key)).min() {
        if cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return Err(Error::Cancelled);
        }
        for source in sources.iter_mut() {
            source.is_here = source.term.is_some_and(|(found, _)| found == key);
        }
        see(key, sources)?;
        for source in sources.iter_mut().filter(|source| source.is_here) {
            source.go_to(source.next + 1);
        }
    }
    Ok(())
}
