//! A search that can be resumed: the vectors of an index one after the other, about nearest first.
//!
//! Each part of the index is a source of its own: a graph is walked for as long as it is asked
//! (`hnsw::stream`), a tail and whatever a filter leaves little of are compared at once. A source gives out
//! the best of the few candidates it has scored exactly, and the best of the sources' best is next.
//!
//! | source | order |
//! |---|---|
//! | tail, segment without a graph, `exact` | exact |
//! | few matches of a filter, by their codes | exact up to the error of a code, which the buffer of candidates evens out |
//! | graph | that of a walk with ef = [`SearchOptions::ef`] that never ends |
//!
//! Invariants:
//! 1. Each id is given out once, and in the end every id that the filter lets through.
//! 2. Scores are exact.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::bitmap::Bits;
use crate::error::Result;
use crate::flat;
use crate::hit::{Hit, TopHits};
use crate::hnsw::filter::{Matcher, Members, Plan};
use crate::hnsw::search::{Walker, key, node_of};
use crate::hnsw::stream::Walk;
use crate::hnsw::visited::Scratch;
use crate::rows::{ExactQuery, RowsView};
use crate::segment::{VectorSegment, Walkable};
use crate::vectors::{SearchOptions, VectorIndex};

/// Candidates of a source that are scored exactly before the best of them is given out. So many are found at a time, so that
/// the vectors of the first are on their way while the others are looked for.
const SCORED_AHEAD: usize = 16;

/// A search that goes on for as long as it is asked; see [`VectorIndex::nearest`].
#[derive(Debug)]
pub struct Nearest<'a> {
    query: ExactQuery,
    sources: Vec<Source<'a>>,
}

impl VectorIndex {
    /// The vectors about nearest first, each once, until there are no more. The order is that of a search with
    /// `options.ef`; it is exact where nothing but scans is needed.
    ///
    /// # Errors
    /// What [`VectorSpec::check`](crate::VectorSpec::check) says about the query; a storage error when a segment is
    /// damaged.
    pub fn nearest<'a>(&'a self, query: &[f32], options: SearchOptions<'a>) -> Result<Nearest<'a>> {
        let query = ExactQuery::new(self.spec(), query)?;
        let mut sources = Vec::with_capacity(self.segments().len() + 1);
        for segment in self.segments() {
            sources.extend(Source::of_segment(segment, &query, &options)?);
        }
        let mut all = TopHits::new(self.tail().len());
        let compared = self.tail().scan(&query, options.filter, &mut all);
        sources.push(Source { scored: heap(all), compared, ..Source::new(None, Found::Nothing) });
        Ok(Nearest { query, sources })
    }
}

impl Nearest<'_> {
    /// Distances computed so far, on codes and on exact vectors.
    pub fn compared(&self) -> u64 {
        self.sources.iter().map(Source::compared).sum()
    }
}

impl Nearest<'_> {
    /// The next vector; nothing when all were given out.
    ///
    /// # Errors
    /// A storage error when what was read of a segment is damaged.
    pub fn advance(&mut self) -> Result<Option<Hit>> {
        for source in &mut self.sources {
            source.fill(&self.query);
            source.segment.map_or(Ok(()), VectorSegment::damage)?;
        }
        Ok(self.best())
    }

    fn best(&mut self) -> Option<Hit> {
        let sources = self.sources.iter_mut().filter(|source| !source.scored.is_empty());
        let best = sources.max_by(|a, b| a.scored.peek().cmp(&b.scored.peek()))?;
        Some(best.scored.pop()?.0)
    }
}

/// Ends after the first error.
impl Iterator for Nearest<'_> {
    type Item = Result<Hit>;

    fn next(&mut self) -> Option<Result<Hit>> {
        let next = self.advance().transpose();
        if let Some(Err(_)) = &next {
            self.sources.clear();
        }
        next
    }
}

/// A hit that is greater the better it is.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Better(Hit);

impl Eq for Better {}

impl Ord for Better {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.best_first(&self.0)
    }
}

impl PartialOrd for Better {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn heap(hits: TopHits) -> BinaryHeap<Better> {
    hits.into_sorted().into_iter().map(Better).collect()
}

/// A part of the index, being searched.
#[derive(Debug)]
struct Source<'a> {
    /// Where it reads from; the tail has none.
    segment: Option<&'a VectorSegment>,
    /// Found and scored, and not given out yet.
    scored: BinaryHeap<Better>,
    compared: u64,
    found: Found<'a>,
    /// Positions found and about to be scored.
    to_score: Vec<u32>,
}

/// What is still to be scored.
#[derive(Debug)]
enum Found<'a> {
    Nothing,
    /// Keys of distance and position, nearest first.
    Listed {
        rows: Box<RowsView<'a>>,
        keys: BinaryHeap<Reverse<u64>>,
    },
    Walked(Box<Walked<'a>>),
}

#[derive(Debug)]
struct Walked<'a> {
    segment: &'a VectorSegment,
    rows: RowsView<'a>,
    walkable: Walkable<'a>,
    code: Vec<i8>,
    matcher: Option<Matcher<'a>>,
    walk: Walk<'a>,
    scratch: Scratch,
}

impl<'a> Source<'a> {
    fn new(segment: Option<&'a VectorSegment>, found: Found<'a>) -> Self {
        Self { segment, scored: BinaryHeap::new(), compared: 0, found, to_score: Vec::new() }
    }

    /// A source for the vectors of a segment; nothing when none matches.
    fn of_segment(
        segment: &'a VectorSegment,
        query: &ExactQuery,
        options: &SearchOptions<'a>,
    ) -> Result<Option<Source<'a>>> {
        let rows = segment.rows()?;
        let count = segment.len() as u64;
        let members = segment.members()?;
        let matching = options.filter.map_or(count, |filter| members.count(filter));
        if matching == 0 {
            return Ok(None);
        }
        let filter = options.filter.filter(|_| matching < count);
        let Some(walkable) = (if options.exact { None } else { segment.walkable()? }) else {
            let mut all = TopHits::new(matching as usize);
            let compared = flat::scan(&rows, query, filter, &mut all);
            return Ok(Some(Source { scored: heap(all), compared, ..Source::new(Some(segment), Found::Nothing) }));
        };
        segment.check_ahead();
        let code = walkable.quantizer.encode_query(query.vector());
        // Many matches come along soon enough on a walk over everything.
        let is_walked = match Plan::choose(matching, count, options.ef) {
            Plan::Collecting(patience) => patience.suffices(matching as f64 / count as f64),
            _ => false,
        };
        if let Some(filter) = filter
            && !is_walked
        {
            let keys = compare(&walkable, &code, members, filter);
            let compared = keys.len() as u64;
            let found = Found::Listed { rows: Box::new(rows), keys };
            return Ok(Some(Source { compared, ..Source::new(Some(segment), found) }));
        }
        let matcher = filter.map(|filter| members.matcher(&rows, filter));
        let mut scratch = segment.pool().take();
        let walker = Walker { codes: walkable.codes, query: &code };
        let walk = Walk::start(&walker, walkable.graph, options.ef, &mut scratch);
        let walked = Walked { segment, rows, walkable, code, matcher, walk, scratch };
        Ok(Some(Source::new(Some(segment), Found::Walked(Box::new(walked)))))
    }

    fn compared(&self) -> u64 {
        match &self.found {
            Found::Walked(walked) => self.compared + walked.walk.compared(),
            _ => self.compared,
        }
    }

    /// Finds and scores more candidates, if few are left and there are more.
    fn fill(&mut self, query: &ExactQuery) {
        if self.scored.len() >= SCORED_AHEAD {
            return;
        }
        let rows = match &self.found {
            Found::Nothing => return,
            Found::Listed { rows, .. } => **rows,
            Found::Walked(walked) => walked.rows,
        };
        self.to_score.clear();
        while self.to_score.len() < SCORED_AHEAD
            && let Some(position) = self.found.next()
        {
            query.prefetch(&rows, position as usize);
            self.to_score.push(position);
        }
        self.compared += self.to_score.len() as u64;
        self.scored.extend(self.to_score.iter().map(|position| {
            let score = query.score(&rows, *position as usize);
            Better(Hit { id: rows.id(*position as usize), score })
        }));
    }
}

impl Found<'_> {
    /// The position of the next candidate.
    fn next(&mut self) -> Option<u32> {
        match self {
            Self::Nothing => None,
            Self::Listed { keys, .. } => keys.pop().map(|Reverse(key)| node_of(key)),
            Self::Walked(walked) => walked.next(),
        }
    }
}

impl Walked<'_> {
    /// The next node that matches.
    fn next(&mut self) -> Option<u32> {
        let walker = Walker { codes: self.walkable.codes, query: &self.code };
        loop {
            let (position, _) = self.walk.next(&walker, &mut self.scratch)?;
            if self.matcher.as_ref().is_none_or(|matcher| matcher.matches(position)) {
                return Some(position);
            }
        }
    }
}

/// The scratch memory goes back to where it came from.
impl Drop for Walked<'_> {
    fn drop(&mut self) {
        self.segment.pool().give_back(std::mem::take(&mut self.scratch));
    }
}

/// The codes of everything in `filter`, compared.
fn compare(walkable: &Walkable<'_>, code: &[i8], members: Members<'_>, filter: &Bits) -> BinaryHeap<Reverse<u64>> {
    let positions: Vec<u32> = members.positions(filter).collect();
    let mut distances = Vec::new();
    walkable.codes.distances(code, &positions, &mut distances);
    let keys = positions.iter().zip(&distances).map(|(position, distance)| Reverse(key(*distance, *position)));
    keys.collect()
}
