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
//! 1. Frequencies, lengths and statistics are integers until the last step, and a document's terms are added in the
//!    order of the query. So a score is the same to the last bit however the documents are spread over segments and
//!    tails, and whether it was computed for all documents or looked up for one.
//! 2. A hit has at least one term of the query, so its score is above 0.
//!
//! Cost of [`Scorer::top`]: every posting of the query's terms, added up in four bytes a document, which each thread keeps and
//! leaves at zero; or, when the filter is small against the postings, a look-up of each document of the filter in each
//! list. Block entries hold what a block-max search needs to skip more, should lists grow long enough to ask for it.

use std::borrow::Cow;
use std::cell::RefCell;

use super::postings::{Cursor, List, ONCE, Posting};
use super::query::WordQuery;
use super::segment::{Number, WordSegment};
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

/// The documents of one segment or tail below the bound, and their postings of the query's terms.
struct Part<'a> {
    /// Documents before this local id are below the bound.
    bound: u32,
    ids: Cow<'a, [Number]>,
    lens: Cow<'a, [Number]>,
    /// One for each term of the query.
    lists: Vec<Option<List<'a>>>,
    total_len: u64,
    /// Excluded documents among them, ascending.
    excluded: Vec<u32>,
}

/// Scores while they are added up. Between two uses all of them are zero.
#[derive(Default)]
struct Sums {
    scores: Vec<f32>,
    /// The documents whose score is not zero; one may stand here twice.
    met: Vec<u32>,
}

impl Sums {
    fn clear(&mut self) {
        self.scores.clear();
        self.met.clear();
    }
}

thread_local! {
    static SUMS: RefCell<Sums> = RefCell::default();
}

/// The scores of one query.
///
/// It reads a tail once, when it is made, and holds no lock.
pub struct Scorer<'a> {
    parts: Vec<Part<'a>>,
    terms: Vec<TermStats>,
    stats: WordStats,
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
        Ok(Self { parts, terms, stats, excluded })
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
            // Ids ascend with local ids, so the best of a part are told by these, and only of those an id is read.
            let mut best = TopHits::new(k);
            let mut least = top.threshold().unwrap_or(0.0);
            self.score_all(part, &mut |local, score| {
                let hit = Hit { id: local, score };
                if score <= 0.0 || score < least || !best.admits(hit) {
                    return;
                }
                if part.id(local).is_some_and(|id| self.may_return(id, filter)) {
                    best.push(hit);
                    least = best.threshold().map_or(least, |reached| reached.max(least));
                }
            })?;
            for Hit { id: local, score } in best.into_sorted() {
                part.id(local).into_iter().for_each(|id| top.push(Hit { id, score }));
            }
        }
        Ok(top.into_sorted())
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
        let norm = Norm::new(&self.stats);
        let mut scores = vec![0f32; ids.len()];
        self.look_up(ids, &mut |place, term, frequency, len| {
            if let (Some(score), Some(term)) = (scores.get_mut(place), self.terms.get(term)) {
                *score += norm.score(scale(term), frequency, len);
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
                if let Some(len) = part.local(*id).and_then(|local| part.lens.get(local as usize)) {
                    *found = u32::from_le_bytes(*len) as f32 / ONCE as f32;
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

    /// Shows the score of every document of a part that holds a term of the query.
    fn score_all(&self, part: &Part<'_>, see: &mut impl FnMut(u32, f32)) -> Result<()> {
        SUMS.with_borrow_mut(|sums| {
            let added = self.add_up(part, sums);
            if added.is_err() {
                sums.clear();
            }
            added?;
            // Newer ones first: of equals they are kept.
            for local in sums.met.drain(..).rev() {
                if let Some(score) = sums.scores.get_mut(local as usize) {
                    see(local, std::mem::take(score));
                }
            }
            Ok(())
        })
    }

    /// Adds the terms up, in the order of the query.
    fn add_up(&self, part: &Part<'_>, sums: &mut Sums) -> Result<()> {
        let norm = Norm::new(&self.stats);
        if sums.scores.len() < part.bound as usize {
            sums.scores.resize(part.bound as usize, 0.0);
        }
        let Sums { scores, met } = sums;
        let lens: &[Number] = &part.lens;
        for (term, list) in self.terms.iter().zip(&part.lists) {
            let Some(list) = list else { continue };
            let scale = scale(term);
            list.each_block(part.bound, &mut |postings| {
                met.reserve(postings.len());
                for Posting { local, frequency } in postings.iter().copied() {
                    let at = local as usize;
                    if let (Some(score), Some(len)) = (scores.get_mut(at), lens.get(at)) {
                        if *score == 0.0 {
                            met.push(local);
                        }
                        *score += norm.score(scale, frequency, u32::from_le_bytes(*len));
                    }
                }
            })?;
        }
        Ok(())
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

impl<'a> Part<'a> {
    fn of_segment(segment: &'a WordSegment, query: &WordQuery, bound: u32) -> Result<Self> {
        let (ids, lens) = (segment.stored_ids()?, segment.stored_lens()?);
        let count = ids.partition_point(|id| u32::from_le_bytes(*id) < bound);
        let lookup = segment.lookup()?;
        Ok(Self {
            bound: count as u32,
            ids: Cow::Borrowed(ids.get(..count).unwrap_or_default()),
            lens: Cow::Borrowed(lens.get(..count).unwrap_or_default()),
            lists: query.terms().iter().map(|term| lookup.find(&term.key).map(List::Stored)).collect(),
            total_len: segment.total_len_of_first(count)?,
            excluded: Vec::new(),
        })
    }

    fn of_tail(tail: &WordTail, query: &WordQuery, bound: u32) -> Self {
        let index = tail.index_below(bound);
        let count = index.count_below(bound);
        let lists: Vec<Option<List<'a>>> = query
            .terms()
            .iter()
            .map(|term| index.find(&term.key, count).map(|postings| List::Memory(postings.to_vec())))
            .collect();
        let (ids, lens) = index.documents(count);
        Self {
            bound: count as u32,
            ids: Cow::Owned(ids.to_vec()),
            lens: Cow::Owned(lens.to_vec()),
            lists,
            total_len: index.total_len_of_first(count),
            excluded: Vec::new(),
        }
    }

    fn id(&self, local: u32) -> Option<u32> {
        self.ids.get(local as usize).map(|id| u32::from_le_bytes(*id))
    }

    fn len(&self, local: u32) -> u32 {
        self.lens.get(local as usize).map_or(0, |len| u32::from_le_bytes(*len))
    }

    fn local(&self, id: u32) -> Option<u32> {
        place_of(&self.ids, id).map(|local| local as u32)
    }

    /// Takes the excluded documents out of the statistics.
    fn exclude(&mut self, excluded: Option<&Bits>) {
        let Some(excluded) = excluded else { return };
        self.excluded = excluded.iter().filter_map(|id| self.local(id)).collect();
        for local in &self.excluded {
            self.total_len -= u64::from(self.len(*local));
        }
    }

    /// How many documents hold term `i` of the query.
    fn df(&self, i: usize) -> Result<u64> {
        let Some(list) = self.lists.get(i).and_then(Option::as_ref) else {
            return Ok(0);
        };
        let mut df = u64::from(list.count_below(self.bound)?);
        let mut cursor = Cursor::new(list);
        for local in &self.excluded {
            df -= u64::from(cursor.frequency(*local)? > 0);
        }
        Ok(df)
    }
}

/// Where an id stands among ids that ascend. They are close to evenly spread, so the search begins where it would stand if
/// they were, and widens from there.
fn place_of(ids: &[Number], id: u32) -> Option<usize> {
    let at = |place: usize| ids.get(place).map(|id| u32::from_le_bytes(*id));
    let last = ids.len().checked_sub(1)?;
    let (least, most) = (at(0)?, at(last)?);
    if !(least..=most).contains(&id) {
        return None;
    }
    let guess = u64::from(id - least) * last as u64 / u64::from(most - least).max(1);
    let guess = (guess as usize).min(last);
    // What is looked for stands in low..=high.
    let (mut low, mut high, mut width) = (guess, guess, 4);
    while low > 0 && at(low)? > id {
        low = low.saturating_sub(width);
        width *= 2;
    }
    width = 4;
    while high < last && at(high)? < id {
        high = (high + width).min(last);
        width *= 2;
    }
    let found = ids.get(low..=high)?.binary_search_by_key(&id, |id| u32::from_le_bytes(*id));
    found.ok().map(|place| low + place)
}

/// The part of the formula that depends on the length, over frequencies in sixteenths.
struct Norm {
    base: f32,
    per_len: f32,
}

impl Norm {
    fn new(stats: &WordStats) -> Self {
        let average = stats.average_len().max(f64::MIN_POSITIVE) * f64::from(ONCE);
        let k1 = K1 * ONCE as f32;
        Self { base: k1 * (1.0 - B), per_len: (f64::from(k1 * B) / average) as f32 }
    }

    #[inline]
    fn score(&self, scale: f32, frequency: u32, len: u32) -> f32 {
        let frequency = frequency as f32;
        scale * frequency / (frequency + self.base + self.per_len * len as f32)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ids_are_found_where_they_stand(
            ids in proptest::collection::btree_set(prop_oneof![0u32..2_000, any::<u32>()], 0..300),
            others in proptest::collection::vec(prop_oneof![0u32..2_000, any::<u32>()], 20),
        ) {
            let ids: Vec<u32> = ids.into_iter().collect();
            let stored: Vec<Number> = ids.iter().map(|id| id.to_le_bytes()).collect();
            for id in ids.iter().chain(&others) {
                prop_assert_eq!(place_of(&stored, *id), ids.binary_search(id).ok());
            }
        }
    }
}
