//! Resumable search: the vectors of an index one by one, approximately nearest first.
//!
//! Each part of the index is a source: a graph is walked incrementally (`hnsw::stream`); the tail, and segments with
//! few matches, are scanned at the start. A source returns the best of a few exactly scored candidates, and the
//! iterator returns the best over all sources.
//!
//! | source | order |
//! |---|---|
//! | tail, segment without a graph, `exact` | exact |
//! | few matches of a filter, by codes | exact up to the error of the codes, which the candidate buffer mostly hides |
//! | graph | that of a walk with ef = [`SearchOptions::ef`] |
//!
//! Invariants:
//! 1. The iterator returns every id that passes the filter, exactly once.
//! 2. Scores are exact.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::bitmap::Bits;
use crate::error::Result;
use crate::flat;
use crate::hit::{Hit, TopHits};
use crate::hnsw::search::{Walker, key, node_of};
use crate::hnsw::strategy::FilterPlan;
use crate::hnsw::stream::ResumableWalk;
use crate::hnsw::visited::Scratch;
use crate::rows::{ExactQuery, RowsView};
use crate::segment::id_set::{IdSet, Matcher};
use crate::segment::{SegmentGraph, VectorSegment};
use crate::vectors::{SearchOptions, VectorIndex};

/// Candidates of a source that are scored exactly before the best of them is given out. So many are found at a time, so
/// that the vectors of the first are on their way while the others are looked for.
const SCORED_AHEAD: usize = 16;

/// A resumable search; see [`VectorIndex::nearest`].
#[derive(Debug)]
pub struct Nearest<'a> {
    query: ExactQuery,
    sources: Vec<Source<'a>>,
}

impl VectorIndex {
    /// All vectors, approximately nearest first, each once. The order is that of a search with `options.ef`, and exact
    /// if only scans are needed.
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
        sources.push(Source { scored: heap(all), compared, ..Source::new(None, Pending::Nothing) });
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
    /// The next vector; `None` at the end.
    ///
    /// # Errors
    /// A storage error if damaged bytes were read.
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

/// A hit ordered by quality: the better hit is greater.
#[derive(Clone, Copy, Debug, PartialEq)]
struct BestFirst(Hit);

impl Eq for BestFirst {}

impl Ord for BestFirst {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.best_first(&self.0)
    }
}

impl PartialOrd for BestFirst {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn heap(hits: TopHits) -> BinaryHeap<BestFirst> {
    hits.into_sorted().into_iter().map(BestFirst).collect()
}

/// A segment or the tail being searched.
#[derive(Debug)]
struct Source<'a> {
    /// The segment; `None` for the tail.
    segment: Option<&'a VectorSegment>,
    /// Scored hits not yet returned.
    scored: BinaryHeap<BestFirst>,
    compared: u64,
    pending: Pending<'a>,
    /// Candidates about to be scored.
    to_score: Vec<u32>,
}

/// Candidates not yet scored.
#[derive(Debug)]
enum Pending<'a> {
    Nothing,
    /// Keys of distance and position, nearest first.
    Listed {
        rows: Box<RowsView<'a>>,
        keys: BinaryHeap<Reverse<u64>>,
    },
    GraphSource(Box<GraphSource<'a>>),
}

#[derive(Debug)]
struct GraphSource<'a> {
    segment: &'a VectorSegment,
    rows: RowsView<'a>,
    walkable: SegmentGraph<'a>,
    code: Vec<i8>,
    matcher: Option<Matcher<'a>>,
    walk: ResumableWalk<'a>,
    scratch: Scratch,
}

impl<'a> Source<'a> {
    fn new(segment: Option<&'a VectorSegment>, pending: Pending<'a>) -> Self {
        Self { segment, scored: BinaryHeap::new(), compared: 0, pending, to_score: Vec::new() }
    }

    /// A source for the vectors of a segment; `None` if no vector matches.
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
            return Ok(Some(Source { scored: heap(all), compared, ..Source::new(Some(segment), Pending::Nothing) }));
        };
        segment.check_ahead();
        let code = walkable.quantizer.encode_query(query.vector());
        // A walk over all nodes meets frequent matches soon enough.
        let is_walked = match FilterPlan::choose(matching, count, options.ef) {
            FilterPlan::Collecting(budget) => budget.covers(matching as f64 / count as f64),
            _ => false,
        };
        if let Some(filter) = filter
            && !is_walked
        {
            let keys = compare(&walkable, &code, members, filter);
            let compared = keys.len() as u64;
            let pending = Pending::Listed { rows: Box::new(rows), keys };
            return Ok(Some(Source { compared, ..Source::new(Some(segment), pending) }));
        }
        let matcher = filter.map(|filter| members.matcher(&rows, filter));
        let mut scratch = segment.pool().take();
        let walker = Walker { codes: walkable.codes, query: &code };
        let walk = ResumableWalk::start(&walker, walkable.graph, options.ef, &mut scratch);
        let walked = GraphSource { segment, rows, walkable, code, matcher, walk, scratch };
        Ok(Some(Source::new(Some(segment), Pending::GraphSource(Box::new(walked)))))
    }

    fn compared(&self) -> u64 {
        match &self.pending {
            Pending::GraphSource(walked) => self.compared + walked.walk.compared(),
            _ => self.compared,
        }
    }

    /// Finds and scores more candidates if few are left.
    fn fill(&mut self, query: &ExactQuery) {
        if self.scored.len() >= SCORED_AHEAD {
            return;
        }
        let rows = match &self.pending {
            Pending::Nothing => return,
            Pending::Listed { rows, .. } => **rows,
            Pending::GraphSource(walked) => walked.rows,
        };
        self.to_score.clear();
        while self.to_score.len() < SCORED_AHEAD
            && let Some(position) = self.pending.next()
        {
            query.prefetch(&rows, position as usize);
            self.to_score.push(position);
        }
        self.compared += self.to_score.len() as u64;
        self.scored.extend(self.to_score.iter().map(|position| {
            let score = query.score(&rows, *position as usize);
            BestFirst(Hit { id: rows.id(*position as usize), score })
        }));
    }
}

impl Pending<'_> {
    /// The position of the next candidate.
    fn next(&mut self) -> Option<u32> {
        match self {
            Self::Nothing => None,
            Self::Listed { keys, .. } => keys.pop().map(|Reverse(key)| node_of(key)),
            Self::GraphSource(walked) => walked.next(),
        }
    }
}

impl GraphSource<'_> {
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

/// Returns the scratch memory to its pool.
impl Drop for GraphSource<'_> {
    fn drop(&mut self) {
        self.segment.pool().give_back(std::mem::take(&mut self.scratch));
    }
}

/// Compares the codes of all ids in `filter`.
fn compare(walkable: &SegmentGraph<'_>, code: &[i8], members: IdSet<'_>, filter: &Bits) -> BinaryHeap<Reverse<u64>> {
    let positions: Vec<u32> = members.positions(filter).collect();
    let mut distances = Vec::new();
    walkable.codes.distances(code, &positions, &mut distances);
    let keys = positions.iter().zip(&distances).map(|(position, distance)| Reverse(key(*distance, *position)));
    keys.collect()
}
