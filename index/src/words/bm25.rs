//! BM25 over segments and tails as over one index.
//!
//! For a query of terms t with weights w, and a document d (Robertson and Zaragoza, *The Probabilistic Relevance
//! Framework*, 2009, with the idf that is never negative):
//!
//! ```text
//! score(d) = sum over t of  w_t * idf_t * (k1 + 1) * f / (f + k1 * (1 - b + b * len_d / average))
//! idf_t    = ln(1 + (N - df_t + 1/2) / (df_t + 1/2))          k1 = 1.2, b = 0.75
//! ```
//!
//! f is the weighted frequency of t in d. N, the average length and df are those of all documents below the bound, less
//! the excluded ones, **whatever the filter**: a filter narrows the answer and changes no score. A surface takes the idf
//! of its stem (`super::query`).
//!
//! Invariants:
//! 1. Frequencies, lengths and statistics are integers until the last step, and what each term brings is rounded so that
//!    sums are exact ([`Norm`]). So a score is the same to the last bit however the documents are spread over segments and
//!    tails, and whether it was found among the best or looked up for one.
//! 2. A hit has at least one term of the query, so its score is above 0.
//!
//! Cost of [`Scorer::top`]: what `super::best` says; or, when the filter is small against the postings, a look-up of each
//! document of the filter in each list.

use super::backward::Backward;
use super::best::best;
use super::part::Part;
use super::postings::{Cursor, ONCE};
use super::query::WordQuery;
use super::segment::WordSegment;
use super::tail::WordTail;
use crate::bitmap::Bits;
use crate::error::Result;
use crate::hit::{Hit, TopHits};

/// How soon further occurrences stop to count.
pub const K1: f32 = 1.2;
/// How far a document's length counts.
pub const B: f32 = 0.75;

/// Looking a document up costs about as much as walking over this many postings (measured: a block is decoded).
const LOOKUP_COST: u64 = 32;

/// The share of all documents from which on a filter is asked late.
const ASKED_LATE: f64 = 0.5;

/// What BM25 knows of all documents together.
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

    /// The idf of a term that `df` documents hold.
    pub fn idf(&self, df: u64) -> f32 {
        let (all, df) = (self.documents as f64, df as f64);
        ((all - df + 0.5) / (df + 0.5)).ln_1p() as f32
    }
}

/// What BM25 knows of one term of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct TermStats {
    /// What is looked up.
    pub key: Box<str>,
    /// Its weight in the query.
    pub weight: f32,
    /// How many documents hold it.
    pub df: u64,
    /// What a match is worth, before weight and frequency.
    pub idf: f32,
    /// Whether it is a surface, whose stem is another term of the query.
    pub surface: bool,
}

/// How often the terms of a query stand in a document, and its length in words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Occurrences {
    /// One for each term, in the order of the query.
    pub frequencies: Vec<f32>,
    /// The length in words.
    pub len: f32,
}

impl Occurrences {
    /// Makes it the empty document again.
    pub fn clear(&mut self) {
        self.frequencies.clear();
        self.len = 0.0;
    }

    /// Adds the document at a place of `others` with a weight; nothing where there is none.
    pub fn add(&mut self, others: &OccurrenceTable, place: usize, weight: f32) {
        let (Some(theirs), Some(len)) = (others.frequencies(place), others.lens.get(place)) else { return };
        self.len += weight * len;
        self.frequencies.resize(self.frequencies.len().max(theirs.len()), 0.0);
        for (mine, theirs) in self.frequencies.iter_mut().zip(theirs) {
            *mine += weight * theirs;
        }
    }
}

/// The [`Occurrences`] of several documents, in one piece of memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OccurrenceTable {
    terms: usize,
    frequencies: Vec<f32>,
    lens: Vec<f32>,
}

impl OccurrenceTable {
    /// Of the document at a place, one for each term, in the order of the query.
    pub fn frequencies(&self, place: usize) -> Option<&[f32]> {
        let start = place.checked_mul(self.terms)?;
        self.frequencies.get(start..start.checked_add(self.terms)?)
    }

    /// The length of the document at a place, in words.
    pub fn len_of(&self, place: usize) -> Option<f32> {
        self.lens.get(place).copied()
    }
}

/// The scores of one query.
///
/// It reads a tail once, when it is made, and holds no lock.
pub struct Scorer<'a> {
    parts: Vec<Part<'a>>,
    terms: Vec<TermStats>,
    stats: WordStats,
    norm: Norm,
    excluded: Option<&'a Bits>,
}

impl std::fmt::Debug for Scorer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scorer").field("stats", &self.stats).field("terms", &self.terms).finish_non_exhaustive()
    }
}

impl<'a> Scorer<'a> {
    pub(super) fn new(
        query: &WordQuery,
        segments: impl Iterator<Item = &'a WordSegment>,
        tails: impl Iterator<Item = &'a WordTail>,
        bound: u32,
        excluded: Option<&'a Bits>,
        around_damage: bool,
    ) -> Result<Self> {
        let mut parts = Vec::new();
        for segment in segments {
            if around_damage && segment.is_damaged() {
                continue;
            }
            match Part::of_segment(segment, query, bound) {
                Err(_) if around_damage => {}
                part => parts.push(part?),
            }
        }
        for tail in tails {
            parts.push(Part::of_tail(tail, query, bound));
        }
        let excluded = excluded.filter(|excluded| !excluded.is_empty());
        let mut stats = WordStats::default();
        for part in &mut parts {
            part.exclude(excluded);
            stats.documents += u64::from(part.bound) - part.excluded.len() as u64;
            stats.total_len += part.total_len;
        }
        let mut terms: Vec<TermStats> = Vec::with_capacity(query.terms().len());
        for (i, term) in query.terms().iter().enumerate() {
            let mut df = 0;
            for part in &parts {
                df += part.df(i)?;
            }
            // A stem precedes its surface.
            let idf = term.stem.and_then(|stem| terms.get(stem)).map_or_else(|| stats.idf(df), |stem| stem.idf);
            terms.push(TermStats { key: term.key.clone(), weight: term.weight, df, idf, surface: term.stem.is_some() });
        }
        let norm = Norm::new(&stats, &terms);
        Ok(Self { parts, terms, stats, norm, excluded })
    }

    /// What holds for all documents.
    pub fn stats(&self) -> WordStats {
        self.stats
    }

    /// What holds for each term, in the order of the query.
    pub fn terms(&self) -> &[TermStats] {
        &self.terms
    }

    /// The `k` best documents among those of `filter`: score descending, newer first among equals. Documents without any
    /// term of the query are not among them.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] or what a segment's file finds.
    pub fn top(&self, filter: Option<&Bits>, k: usize) -> Result<Vec<Hit>> {
        let mut top = TopHits::new(k);
        let postings: u64 = self.terms.iter().map(|term| term.df).sum();
        if k == 0 || postings == 0 {
            return Ok(Vec::new());
        }
        let few = filter.filter(|filter| filter.count() * self.terms.len() as u64 * LOOKUP_COST < postings);
        if let Some(few) = few {
            let ids: Vec<u32> = few.iter().collect();
            let hits = ids.iter().zip(self.scores(&ids)?).map(|(&id, score)| Hit { id, score });
            hits.filter(|hit| hit.score > 0.0).for_each(|hit| top.push(hit));
            return Ok(top.into_sorted());
        }
        for part in &self.parts {
            for Hit { id: local, score } in self.best_of(part, filter, k, top.threshold().unwrap_or(0.0))? {
                part.id(local).into_iter().for_each(|id| top.push(Hit { id, score }));
            }
        }
        Ok(top.into_sorted())
    }

    /// The best of a part by their local ids, which ascend as ids do.
    fn best_of(&self, part: &Part<'_>, filter: Option<&Bits>, k: usize, floor: f32) -> Result<Vec<Hit>> {
        let lists = || -> Vec<Backward<'_>> {
            let lists = self.terms.iter().zip(&part.lists).filter_map(|(term, list)| Some((term, list.as_ref()?)));
            lists.map(|(term, list)| Backward::new(list, &part.lens, self.norm, scale(term))).collect()
        };
        let may_return = |local| part.id(local).is_some_and(|id| self.may_return(id, filter));
        // Where the filter lets most through, it is asked about a few more than enough in the end, instead of about each
        // that is among the best for a while.
        let share = filter.map_or(1.0, |filter| filter.count() as f64 / self.stats.documents.max(1) as f64).min(1.0);
        if share >= ASKED_LATE {
            let enough = (k as f64 + 3.0 * (k as f64 * (1.0 - share)).sqrt()) / share + 2.0;
            let mut hits = best(&mut lists(), part.bound, enough as usize, floor, |_| true)?;
            let are_all = hits.len() < enough as usize;
            hits.retain(|hit| may_return(hit.id));
            if are_all || hits.len() >= k {
                hits.truncate(k);
                return Ok(hits);
            }
        }
        best(&mut lists(), part.bound, k, floor, may_return)
    }

    /// The best score among the documents of `filter`; 0 when none of them holds a term.
    ///
    /// # Errors
    /// As [`Scorer::top`].
    pub fn best(&self, filter: Option<&Bits>) -> Result<f32> {
        Ok(self.top(filter, 1)?.first().map_or(0.0, |hit| hit.score))
    }

    /// The scores of these documents, in their order; 0 for one without any term, past the bound, excluded or unknown.
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

    /// How often each term of the query stands in each of these documents, and how long they are: what a caller needs to
    /// score documents made of several ([`Scorer::combined`]).
    ///
    /// # Errors
    /// As [`Scorer::top`].
    pub fn occurrences(&self, ids: &[u32]) -> Result<OccurrenceTable> {
        let terms = self.terms.len();
        let mut lens = vec![0.0; ids.len()];
        for part in &self.parts {
            for (id, found) in ids.iter().zip(&mut lens) {
                if let Some(len) = part.local(*id).and_then(|local| part.lens.get(local)) {
                    *found = len as f32 / ONCE as f32;
                }
            }
        }
        let mut frequencies = vec![0.0; ids.len() * terms];
        self.look_up(ids, &mut |place, term, frequency, _| {
            if let Some(slot) = frequencies.get_mut(place * terms + term) {
                *slot = frequency as f32 / ONCE as f32;
            }
        })?;
        Ok(OccurrenceTable { terms, frequencies, lens })
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

    /// For each of these documents, the share of the query that it covers: the weighted idf of the terms it holds over
    /// that of all terms, surfaces left out; 0 for a query without terms.
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

    /// The share of the query that any document covers: how much of what was asked the layer has words for.
    pub fn matched_idf_share(&self) -> f32 {
        let matched = self.terms.iter().filter(|term| term.df > 0);
        share(matched.map(evidence).sum(), self.all_evidence())
    }

    fn all_evidence(&self) -> f32 {
        self.terms.iter().map(evidence).sum()
    }

    fn may_return(&self, id: u32, filter: Option<&Bits>) -> bool {
        filter.is_none_or(|filter| filter.contains(id)) && !self.is_excluded(id)
    }

    fn is_excluded(&self, id: u32) -> bool {
        self.excluded.is_some_and(|excluded| excluded.contains(id))
    }

    /// Shows (place in `ids`, term, frequency, length) for each term that each document holds, the terms of one document
    /// in the order of the query.
    fn look_up(&self, ids: &[u32], see: &mut dyn FnMut(usize, usize, u32, u32)) -> Result<()> {
        for part in &self.parts {
            let mut wanted: Vec<(u32, usize)> = Vec::new();
            for (place, id) in ids.iter().enumerate() {
                if let Some(local) = part.local(*id).filter(|_| !self.is_excluded(*id)) {
                    wanted.push((local, place));
                }
            }
            wanted.sort_unstable();
            for (i, list) in part.lists.iter().enumerate() {
                let Some(list) = list else { continue };
                let mut cursor = Cursor::new(list);
                for (local, place) in &wanted {
                    let frequency = cursor.frequency(*local)?;
                    if frequency > 0 {
                        see(*place, i, frequency, part.len(*local));
                    }
                }
            }
        }
        Ok(())
    }
}

/// What a term brings to a score, from its frequency and the length, both in sixteenths.
///
/// It is a multiple of a grain, of which all terms together bring less than 2^24: so much fits into a float's digits, and
/// sums are exact in whatever order they are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Norm {
    base: f32,
    per_len: f32,
    /// A power of two above all scores together. What is added to it and taken off again comes back as whole grains.
    above: f32,
}

/// Up to this frequency a score rises by more with each sixteenth than rounding takes away.
const RISES: u32 = 1024;

impl Norm {
    fn new(stats: &WordStats, terms: &[TermStats]) -> Self {
        let average = stats.average_len().max(f64::MIN_POSITIVE) * f64::from(ONCE);
        let k1 = K1 * ONCE as f32;
        let most: f32 = terms.iter().map(scale).sum();
        let above = f32::from_bits((most.to_bits() & 0x7f80_0000) + 0x0080_0000);
        Self { base: k1 * (1.0 - B), per_len: (f64::from(k1 * B) / average) as f32, above }
    }

    #[inline(always)]
    pub(super) fn score(&self, scale: f32, frequency: f32, len: f32) -> f32 {
        self.in_grains(self.ungrained(scale, frequency, len))
    }

    /// No term of that scale, with a frequency up to this one, in a document at least so long, brings more.
    pub(super) fn most(&self, scale: f32, frequency: u32, len: f32) -> f32 {
        let most = self.ungrained(scale, frequency as f32, len);
        self.in_grains(if frequency > RISES { most * (1.0 + 1e-6) } else { most })
    }

    #[inline(always)]
    fn ungrained(&self, scale: f32, frequency: f32, len: f32) -> f32 {
        scale * frequency / (frequency + self.base + self.per_len * len)
    }

    /// At least one, so that whatever holds a term has a score.
    #[inline(always)]
    fn in_grains(&self, score: f32) -> f32 {
        let (whole, least) = (self.above + score - self.above, self.above * f32::EPSILON);
        if whole > least { whole } else { least }
    }
}

fn scale(term: &TermStats) -> f32 {
    term.weight * term.idf * (K1 + 1.0)
}

/// What the presence of the term is worth to coverage.
fn evidence(term: &TermStats) -> f32 {
    if term.surface { 0.0 } else { term.weight * term.idf }
}

fn share(part: f32, all: f32) -> f32 {
    if all > 0.0 { (part / all).min(1.0) } else { 0.0 }
}
