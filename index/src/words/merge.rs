//! Several word segments become one, written as it is made.
//!
//! The dictionaries are walked side by side, in order; a posting changes only its local id. So a term's frequencies, the
//! documents' lengths and every score stay as they were. The order of the segments and of their ids does not matter.
//!
//! Where the segments follow one another, and each keeps its documents, lists are put together as they are
//! (`encoded`); otherwise posting by posting.
//!
//! The walk is made twice: once to count, which says where every section stands, and once to write. The first reads postings
//! only of segments that lose documents.
//!
//! Cost: every posting is decoded once, and encoded where it moves among others. Memory for the postings of one term, 12 bytes a document, the
//! stream's buffers, and a few MiB of each segment, which is let go of as it is read; the size of the dictionaries and of all
//! postings together does not matter.

use std::path::Path;

use holotype_storage::log::Head;
use holotype_storage::segment_file::{FileIdentity, Passage};
use holotype_storage::vfs::Vfs;

use super::analyse::Analyzer;
use super::encoded::Encoded;
use super::postings::{List, Posting, Stored};
use super::segment::{Lookup, Number, WordSegment};
use super::writer::{Builder, Lengths};
use crate::bitmap::Bits;
use crate::error::{Error, Result};

/// A document that the merged segment leaves out.
const DROPPED: u32 = u32::MAX;

/// A segment being read: its next term, and where its documents go.
struct Source<'a> {
    lookup: Lookup<'a>,
    passage: Passage<'a>,
    next: u32,
    term: Option<(&'a [u8], Stored<'a>)>,
    places: Vec<u32>,
    /// By how much its documents move, if that is the same for all.
    shift: Option<u32>,
    /// Whether its next term is the one at hand.
    is_here: bool,
    /// Whether none of its documents is left out.
    whole: bool,
}

impl<'a> Source<'a> {
    /// It, with its list of the term at hand, if it has that.
    fn here(&self) -> Option<(&Self, Stored<'a>)> {
        self.term.filter(|_| self.is_here).map(|(_, list)| (self, list))
    }

    fn go_to(&mut self, term: u32) {
        if let Some((key, list)) = self.term {
            self.passage.passed(list.stored_len(key));
        }
        self.next = term;
        self.term = self.lookup.term(term);
    }

    fn find_shift(&mut self) {
        let first = self.places.first().copied().unwrap_or(0);
        let in_a_row = self.whole && self.places.iter().zip(first..).all(|(place, wanted)| *place == wanted);
        self.shift = in_a_row.then_some(first);
    }

    /// Shows what is kept of a list, with its new places.
    fn each_kept(&self, list: Stored<'_>, see: &mut impl FnMut(Posting)) -> Result<()> {
        List::Stored(list).each(u32::MAX, &mut |posting| {
            let place = self.places.get(posting.local as usize).copied().unwrap_or(DROPPED);
            if place != DROPPED {
                see(Posting { local: place, ..posting });
            }
        })
    }
}

/// Writes the segment of all documents of `segments`, without those that `keep` leaves out, to `path`, with how far of the log
/// they come from if that is given. Returns its length.
///
/// # Errors
/// [`Error::Mismatch`] for a segment of another analyser, [`Error::IdOrder`] for a document in two segments,
/// [`Error::Corrupt`] for damage, [`Error::TooMany`] past the limits of a segment, and of the disk; nothing then stands under
/// `path` that was not there before.
pub fn merge_word_segments(
    analyzer: Analyzer,
    segments: &[&WordSegment],
    keep: Option<&Bits>,
    (identity, origin): (FileIdentity, Option<Head>),
    vfs: &dyn Vfs,
    path: &Path,
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
            passage: segment.file().passage(),
            next: 0,
            term: None,
            places,
            shift: None,
            is_here: false,
            whole: true,
        });
    }
    let (ids, lens) = documents(segments, keep, &mut sources)?;

    let mut lengths = Lengths::of_documents(ids.len());
    each_term(&mut sources, |key, sources| {
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

    let mut builder = Builder::new(lengths.create(vfs, path, identity, origin)?, analyzer, &ids, lens)?;
    drop(ids);
    sources.iter_mut().for_each(Source::find_shift);
    let mut postings = Vec::new();
    let mut encoded = Encoded::default();
    each_term(&mut sources, |key, sources| {
        let here = || sources.iter().filter_map(Source::here);
        if here().all(|(source, _)| source.shift.is_some()) {
            encoded.begin(here().map(|(_, list)| list.count).sum());
            for (source, list) in here() {
                encoded.append(&list, source.shift.unwrap_or(0), builder.lens())?;
            }
            return builder.term(key, &encoded);
        }
        postings.clear();
        for (source, list) in here() {
            source.each_kept(list, &mut |posting| postings.push(posting))?;
        }
        postings.sort_unstable_by_key(|posting| posting.local);
        encoded.set(&postings, builder.lens());
        builder.term(key, &encoded)
    })?;
    Ok(builder.finish()?.finish()?)
}

/// Ids and lengths of the documents that are kept, by id; notes in the sources where each goes, and puts those in the order of
/// their first documents.
fn documents(
    segments: &[&WordSegment],
    keep: Option<&Bits>,
    sources: &mut Vec<Source<'_>>,
) -> Result<(Vec<Number>, Vec<Number>)> {
    let mut runs = Vec::with_capacity(segments.len());
    for (segment, source) in segments.iter().zip(sources.drain(..)) {
        runs.push((segment.stored_ids()?, segment.stored_lens()?, 0, source));
    }
    let count = runs.iter().map(|(ids, ..)| ids.len()).sum();
    let (mut ids, mut lens) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let id_at = |ids: &[Number], at: usize| ids.get(at).map(|id| u32::from_le_bytes(*id));
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
            lens.push(run_lens[*at]);
        } else {
            source.whole = false;
        }
        *at += 1;
    }
    sources.extend(runs.into_iter().map(|(.., source)| source));
    Ok((ids, lens))
}

/// Shows every term of the sources in order; those that have it say so ([`Source::here`]).
fn each_term<'a, F>(sources: &mut [Source<'a>], mut see: F) -> Result<()>
where
    F: FnMut(&'a [u8], &[Source<'a>]) -> Result<()>,
{
    sources.iter_mut().for_each(|source| source.go_to(0));
    while let Some(key) = sources.iter().filter_map(|source| source.term.map(|(key, _)| key)).min() {
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
