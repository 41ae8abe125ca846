//! BM25 over all segments and tails as over one index.
//!
//! For a query of terms t with weights w, and a document d (Robertson and Zaragoza, *The Probabilistic Relevance
//! Framework*, 2009, with the non-negative idf):
//!
//! ```text
//! score(d) = sum over t of  w_t * idf_t * (k1 + 1) * f / (f + k1 * (1 - b + b * len_d / average))
//! idf_t    = ln(1 + (N - df_t + 1/2) / (df_t + 1/2))          k1 = 1.2, b = 0.75
//! ```
//!
//! f is the weighted frequency of t in d. N, the average length and df are those of all documents below the bound,
//! **regardless of the filter**: a filter narrows the answer and changes no score. A surface takes the idf of its stem
//! (`words::query`).
//!
//! Invariants:
//! 1. Frequencies, lengths and statistics are integers up to the last step, and the contribution of each term is
//!    rounded so that sums are exact ([`Norm`]). So a score is bit-identical for any distribution of documents over
//!    segments and tails, and for both top-k search and look-up.
//! 2. A hit has at least one query term, so its score is above 0.
//!
//! Cost of [`Scorer::top`]: that of `words::scoring::max_score`, or, if the filter is small relative to the postings
//! around its documents, one look-up per document of the filter and list.

mod max_score;
mod newest;
mod reverse_cursor;
mod source;

use crate::bitmap::Bits;
use crate::error::Result;
use crate::hit::{Hit, TopHits};
use crate::words::postings::{Cursor, ONCE};
use crate::words::query::WordQuery;
use crate::words::scoring::max_score::{All, LEAST_WINDOW, Returnable, top_k};
use crate::words::scoring::reverse_cursor::ReverseCursor;
use crate::words::scoring::source::PostingSource;
use crate::words::segment::WordSegment;
use crate::words::tail::WordTail;
use std::ops::Range;

/// Term frequency saturation.
pub const K1: f32 = 1.2;
/// Length normalisation.
pub const B: f32 = 0.75;

/// The cost of one look-up in postings: it decodes a block. Measured.
const LOOKUP_COST: u64 = 32;

/// Filters that match at least this share of documents are applied after top-k search.
const ASKED_LATE: f64 = 0.5;

/// Collection statistics of BM25.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordStats {
    /// N, the number of documents.
    pub documents: u64,
    /// Their total length, in sixteenths of a word.
    pub total_len: u64,
}

impl WordStats {
    /// The average length of a document in words.
    pub fn average_len(&self) -> f64 {
        if self.documents == 0 { 0.0 } else { self.total_len as f64 / self.documents as f64 / f64::from(ONCE) }
    }

    /// The idf of a term with document frequency `df`.
    pub fn idf(&self, df: u64) -> f32 {
        let (all, df) = (self.documents as f64, df as f64);
        ((all - df + 0.5) / (df + 0.5)).ln_1p() as f32
    }
}

/// Statistics of one query term.
#[derive(Clone, Debug, PartialEq)]
pub struct TermStats {
    /// The dictionary key.
    pub key: Box<str>,
    /// Its weight in the query.
    pub weight: f32,
    /// Document frequency.
    pub df: u64,
    /// Inverse document frequency.
    pub idf: f32,
    /// True for a surface, whose stem is another term of the query.
    pub surface: bool,
}

/// The frequencies of a query's terms in a document, and its length in words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Occurrences {
    /// One for each term, in the order of the query.
    pub frequencies: Vec<f32>,
    /// The length in words.
    pub len: f32,
}

impl Occurrences {
    /// Resets it to the empty document.
    pub fn clear(&mut self) {
        self.frequencies.clear();
        self.len = 0.0;
    }

    /// Adds the document at `place` of `others` with a weight. Out of range adds nothing.
    pub fn add(&mut self, others: &OccurrenceTable, place: usize, weight: f32) {
        let (Some(theirs), Some(len)) = (others.frequencies(place), others.doc_lengths.get(place)) else { return };
        self.len += weight * len;
        self.frequencies.resize(self.frequencies.len().max(theirs.len()), 0.0);
        for (mine, theirs) in self.frequencies.iter_mut().zip(theirs) {
            *mine += weight * theirs;
        }
    }
}

/// The [`Occurrences`] of several documents in one allocation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OccurrenceTable {
    terms: usize,
    frequencies: Vec<f32>,
    doc_lengths: Vec<f32>,
}

impl OccurrenceTable {
    /// The frequencies of the document at `place`, in the order of the query's terms.
    pub fn frequencies(&self, place: usize) -> Option<&[f32]> {
        let start = place.checked_mul(self.terms)?;
        self.frequencies.get(start..start.checked_add(self.terms)?)
    }

    /// The length of the document at `place`, in words.
    pub fn len_of(&self, place: usize) -> Option<f32> {
        self.doc_lengths.get(place).copied()
    }
}

/// The scores of one query.
///
/// It copies from tails when created, and holds no lock.
pub struct Scorer<'a> {
    sources: Vec<PostingSource<'a>>,
    terms: Vec<TermStats>,
    stats: WordStats,
    norm: Norm,
}

impl std::fmt::Debug for Scorer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scorer").field("stats", &self.stats).field("terms", &self.terms).finish_non_exhaustive()
    }
}

/// The documents of a source that pass a filter.
struct Filtered<'s, 'a> {
    source: &'s PostingSource<'a>,
    filter: Option<&'s Bits>,
}

impl Returnable for Filtered<'_, '_> {
    fn is(&self, local: u32) -> bool {
        self.source.id(local).is_some_and(|id| self.filter.is_none_or(|filter| filter.contains(id)))
    }

    fn any_in(&self, window: &Range<u32>) -> bool {
        let ends = window.end.checked_sub(1).map(|last| (self.source.id(window.start), self.source.id(last)));
        match (self.filter, ends) {
            (Some(filter), Some((Some(first), Some(last)))) => filter.count_in(first..last.saturating_add(1)) > 0,
            _ => true,
        }
    }
}

impl<'a> Scorer<'a> {
    pub(crate) fn new(
        query: &WordQuery,
        segments: impl Iterator<Item = &'a WordSegment>,
        tails: impl Iterator<Item = &'a WordTail>,
        bound: u32,
        skip_damaged: bool,
    ) -> Result<Self> {
        let mut sources = Vec::new();
        for segment in segments {
            if skip_damaged && segment.is_damaged() {
                continue;
            }
            match PostingSource::of_segment(segment, query, bound) {
                Err(_) if skip_damaged => {}
                source => sources.push(source?),
            }
        }
        for tail in tails {
            sources.push(PostingSource::of_tail(tail, query, bound));
        }
        let mut stats = WordStats::default();
        for source in &sources {
            stats.documents += u64::from(source.bound);
            stats.total_len += source.total_len;
        }
        let mut terms: Vec<TermStats> = Vec::with_capacity(query.terms().len());
        for (i, term) in query.terms().iter().enumerate() {
            let mut df = 0;
            for source in &sources {
                df += source.df(i)?;
            }
            // A stem precedes its surface.
            let idf = term.stem.and_then(|stem| terms.get(stem)).map_or_else(|| stats.idf(df), |stem| stem.idf);
            terms.push(TermStats { key: term.key.clone(), weight: term.weight, df, idf, surface: term.stem.is_some() });
        }
        let norm = Norm::new(&stats, &terms);
        Ok(Self { sources, terms, stats, norm })
    }

    /// The collection statistics.
    pub fn stats(&self) -> WordStats {
        self.stats
    }

    /// The statistics of each term, in the order of the query.
    pub fn terms(&self) -> &[TermStats] {
        &self.terms
    }

    /// The `k` best documents in `filter` that have a query term: score descending, newer first among equals.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] or a storage error for a damaged segment.
    pub fn top(&self, filter: Option<&Bits>, k: usize) -> Result<Vec<Hit>> {
        let mut top = TopHits::new(k);
        let postings: u64 = self.terms.iter().map(|term| term.df).sum();
        if k == 0 || postings == 0 {
            return Ok(Vec::new());
        }
        let is_few = |filter: &&Bits| {
            let look_ups = filter.count() * self.terms.len() as u64 * LOOKUP_COST;
            look_ups < postings && look_ups < self.around(filter, postings)
        };
        if let Some(few) = filter.filter(is_few) {
            let ids: Vec<u32> = few.iter().collect();
            let hits = ids.iter().zip(self.scores(&ids)?).map(|(&id, score)| Hit { id, score });
            hits.filter(|hit| hit.score > 0.0).for_each(|hit| top.push(hit));
            return Ok(top.into_sorted());
        }
        for source in &self.sources {
            for Hit { id: local, score } in self.top_of(source, filter, k, top.threshold().unwrap_or(0.0))? {
                source.id(local).into_iter().for_each(|id| top.push(Hit { id, score }));
            }
        }
        Ok(top.into_sorted())
    }

    /// About how many of so many postings are near documents of a filter: a search passes over windows without any.
    fn around(&self, filter: &Bits, postings: u64) -> u64 {
        let near = filter.runs(LEAST_WINDOW as usize / 64) * u64::from(LEAST_WINDOW);
        (postings as f64 * (near as f64 / self.stats.documents.max(1) as f64).min(1.0)) as u64
    }

    /// The top k of one source by local ids, which ascend with ids.
    fn top_of(&self, source: &PostingSource<'_>, filter: Option<&Bits>, k: usize, floor: f32) -> Result<Vec<Hit>> {
        let lists = || -> Vec<ReverseCursor<'_>> {
            let lists = self.terms.iter().zip(&source.lists).filter_map(|(term, list)| Some((term, list.as_ref()?)));
            lists.map(|(term, list)| ReverseCursor::new(list, &source.doc_lengths, self.norm, scale(term))).collect()
        };
        let returnable = Filtered { source, filter };
        // A filter that passes most documents is applied at the end to a few extra hits, instead of to every document
        // that enters the top k temporarily.
        let share = filter.map_or(1.0, |filter| filter.count() as f64 / self.stats.documents.max(1) as f64).min(1.0);
        if share >= ASKED_LATE {
            let enough = (k as f64 + 3.0 * (k as f64 * (1.0 - share)).sqrt()) / share + 2.0;
            let mut hits = top_k(&mut lists(), source.bound, enough as usize, floor, &All)?;
            let are_all = hits.len() < enough as usize;
            hits.retain(|hit| returnable.is(hit.id));
            if are_all || hits.len() >= k {
                hits.truncate(k);
                return Ok(hits);
            }
        }
        top_k(&mut lists(), source.bound, k, floor, &returnable)
    }

    /// The scores of these documents, in their order; 0 for documents without a query term, beyond the bound or
    /// unknown.
    ///
    /// # Errors
    /// As [`Scorer::top`].
    pub fn scores(&self, ids: &[u32]) -> Result<Vec<f32>> {
        let mut scores = vec![0f32; ids.len()];
        self.look_up(ids, &mut |place, term, frequency, len| {
            if let (Some(score), Some(term)) = (scores.get_mut(place), self.terms.get(term)) {
                *score += self.norm.score(scale(term), frequency as f32, len as f32);
            }
        })?;
        Ok(scores)
    }

    /// Term frequencies and lengths of these documents, from which a caller scores combined documents
    /// ([`Scorer::combined`]).
    ///
    /// # Errors
    /// As [`Scorer::top`].
    pub fn occurrences(&self, ids: &[u32]) -> Result<OccurrenceTable> {
        let terms = self.terms.len();
        let (mut doc_lengths, mut frequencies) = (vec![0.0; ids.len()], vec![0.0; ids.len() * terms]);
        for source in &self.sources {
            let held = held(source, ids);
            for (local, place) in &held {
                if let (Some(len), Some(found)) = (source.doc_lengths.get(*local), doc_lengths.get_mut(*place)) {
                    *found = len as f32 / ONCE as f32;
                }
            }
            look_up_in(source, &held, &mut |place, term, frequency, _| {
                if let Some(slot) = frequencies.get_mut(place * terms + term) {
                    *slot = frequency as f32 / ONCE as f32;
                }
            })?;
        }
        Ok(OccurrenceTable { terms, frequencies, doc_lengths })
    }

    /// The score of a document that is the weighted sum of several (the simple BM25F of Robertson, Zaragoza and Taylor,
    /// 2004), with the statistics of this index.
    pub fn combined(&self, document: &Occurrences) -> f32 {
        let average = self.stats.average_len().max(f64::MIN_POSITIVE) as f32;
        let norm = K1 * (1.0 - B + B * document.len / average);
        let of_term = |(term, frequency): (&TermStats, &f32)| {
            if *frequency <= 0.0 { 0.0 } else { term.weight * term.idf * (K1 + 1.0) * frequency / (frequency + norm) }
        };
        self.terms.iter().zip(&document.frequencies).map(of_term).sum()
    }

    /// For each of these documents, the share of the query that it covers: the weighted idf of its terms over that of
    /// all terms, without surfaces; 0 for a query without terms.
    ///
    /// # Errors
    /// As [`Scorer::top`].
    pub fn coverage(&self, ids: &[u32]) -> Result<Vec<f32>> {
        let mut covered = vec![0f32; ids.len()];
        self.look_up(ids, &mut |place, term, _, _| {
            if let (Some(covered), Some(term)) = (covered.get_mut(place), self.terms.get(term)) {
                *covered += evidence(term);
            }
        })?;
        let all = self.all_evidence();
        Ok(covered.into_iter().map(|covered| share(covered, all)).collect())
    }

    /// The share of the query that these documents cover together, as in [`Scorer::coverage`].
    ///
    /// # Errors
    /// As [`Scorer::top`].
    pub fn joint_coverage(&self, ids: &[u32]) -> Result<f32> {
        let mut found = vec![false; self.terms.len()];
        self.look_up(ids, &mut |_, term, _, _| {
            if let Some(found) = found.get_mut(term) {
                *found = true;
            }
        })?;
        let found = self.terms.iter().zip(found).filter(|(_, found)| *found);
        Ok(share(found.map(|(term, _)| evidence(term)).sum(), self.all_evidence()))
    }

    fn all_evidence(&self) -> f32 {
        self.terms.iter().map(evidence).sum()
    }

    /// Calls back with (index in `ids`, term, frequency, length) for each query term of each document, the terms of one
    /// document in the order of the query.
    fn look_up(&self, ids: &[u32], see: &mut dyn FnMut(usize, usize, u32, u32)) -> Result<()> {
        self.sources.iter().try_for_each(|source| look_up_in(source, &held(source, ids), see))
    }
}

/// The documents of a source among some ids: their local ids, ascending, and their indexes in `ids`.
fn held(source: &PostingSource<'_>, ids: &[u32]) -> Vec<(u32, usize)> {
    let found = |(place, id): (usize, &u32)| Some((source.local(*id)?, place));
    if ids.is_sorted() {
        // Sources of a growing index have disjoint ranges of ids, more or less.
        let (start, end) = source.range_of(ids);
        let some = ids.get(start..end).unwrap_or_default();
        return (start..).zip(some).filter_map(found).collect();
    }
    let mut held: Vec<(u32, usize)> = ids.iter().enumerate().filter_map(found).collect();
    held.sort_unstable();
    held
}

/// Calls back with (index in `ids`, term, frequency, length) for each query term of these documents of a source.
fn look_up_in(
    source: &PostingSource<'_>,
    held: &[(u32, usize)],
    see: &mut dyn FnMut(usize, usize, u32, u32),
) -> Result<()> {
    if held.is_empty() {
        return Ok(());
    }
    for (i, list) in source.lists.iter().enumerate() {
        let Some(list) = list else { continue };
        let mut cursor = Cursor::new(list);
        for (local, place) in held {
            let frequency = cursor.frequency(*local)?;
            if frequency > 0 {
                see(*place, i, frequency, source.len(*local));
            }
        }
    }
    Ok(())
}

/// The contribution of a term to a score, from frequency and length, both in sixteenths.
///
/// It is a multiple of a grain, and all terms together are below 2^24 grains, which a float represents exactly. So sums
/// are exact in any order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Norm {
    base: f32,
    per_len: f32,
    /// A power of two above the maximum score. Adding and subtracting it rounds to whole grains.
    above: f32,
}

/// Up to this frequency, a score rises by more per sixteenth than rounding removes.
const RISES: u32 = 1024;

impl Norm {
    fn new(stats: &WordStats, terms: &[TermStats]) -> Self {
        let average = stats.average_len().max(f64::MIN_POSITIVE) * f64::from(ONCE);
        let k1 = K1 * ONCE as f32;
        let upper_bound: f32 = terms.iter().map(scale).sum();
        let above = f32::from_bits((upper_bound.to_bits() & 0x7f80_0000) + 0x0080_0000);
        Self { base: k1 * (1.0 - B), per_len: (f64::from(k1 * B) / average) as f32, above }
    }

    #[inline(always)]
    pub(crate) fn score(&self, scale: f32, frequency: f32, len: f32) -> f32 {
        self.in_grains(self.ungrained(scale, frequency, len))
    }

    /// Upper bound over all frequencies up to `frequency` and lengths from `len`.
    pub(crate) fn upper_bound(&self, scale: f32, frequency: u32, len: f32) -> f32 {
        let upper_bound = self.ungrained(scale, frequency as f32, len);
        self.in_grains(if frequency > RISES { upper_bound * (1.0 + 1e-6) } else { upper_bound })
    }

    #[inline(always)]
    fn ungrained(&self, scale: f32, frequency: f32, len: f32) -> f32 {
        scale * frequency / (frequency + self.base + self.per_len * len)
    }

    /// At least one grain, so every document with a term has a score above 0.
    #[inline(always)]
    fn in_grains(&self, score: f32) -> f32 {
        let (whole, least) = (self.above + score - self.above, self.above * f32::EPSILON);
        if whole > least { whole } else { least }
    }
}

fn scale(term: &TermStats) -> f32 {
    term.weight * term.idf * (K1 + 1.0)
}

/// The weight of the term in coverage.
fn evidence(term: &TermStats) -> f32 {
    if term.surface { 0.0 } else { term.weight * term.idf }
}

fn share(source: f32, all: f32) -> f32 {
    if all > 0.0 { (source / all).min(1.0) } else { 0.0 }
}
