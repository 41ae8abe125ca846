//! Searches of many queries at once under one filter.
//!
//! If the plan of a part is to compare all matching vectors exactly, one pass compares them with all queries
//! ([`BatchScorer`]). Parts whose graph is walked are searched query by query. Every answer is that of a single search,
//! or has a vector that one by signs missed.

use super::{
    Part, PartSearch, Search, SearchOptions, SegmentShare, Source, Strategy, VectorIndex, search_again, search_segment,
};
use crate::bitmap::Bits;
use crate::error::{Error, Result};
use crate::hit::TopHits;
use crate::rows::ExactQuery;
use crate::scorer::{Batch, BatchBounds, BatchQuery, BatchScorer, position_words};

/// Vectors of a part from which comparing them with many queries at once is worth a batch.
const SHARED_FROM: usize = 256;

impl VectorIndex {
    /// Finds the `k` nearest to each of `queries`, as [`VectorIndex::search`] does for one.
    ///
    /// # Errors
    /// As [`VectorIndex::search`], for any of the queries.
    pub fn search_batch(
        &self,
        queries: &[&[f32]],
        k: usize,
        options: SearchOptions<'_>,
        scorer: &dyn BatchScorer,
    ) -> Result<Vec<Search>> {
        let queries: Vec<ExactQuery> =
            queries.iter().map(|query| ExactQuery::new(self.spec, query)).collect::<Result<_>>()?;
        if k == 0 {
            return Ok(vec![Search::default(); queries.len()]);
        }
        let mut tops: Vec<TopHits> = queries.iter().map(|_| TopHits::new(k)).collect();
        let mut parts: Vec<Vec<PartSearch>> = vec![Vec::new(); queries.len()];
        let held = self.len();
        for source in self.sources() {
            let ask = SegmentBatch { source, queries: &queries, k, options: &options };
            if let Some(search) = ask.scan(scorer, &mut tops)? {
                parts.iter_mut().for_each(|parts| parts.push(search));
                continue;
            }
            let share = SegmentShare::of(source.segment.len(), held, k);
            for ((query, top), parts) in queries.iter().zip(&mut tops).zip(&mut parts) {
                parts.push(search_segment(source, query, share, &options, top)?);
            }
        }
        if !self.tail.is_empty() {
            let search = self.scan_tail(&queries, k, options.filter, scorer, &mut tops)?;
            parts.iter_mut().for_each(|parts| parts.push(search));
        }
        let mut answers = Vec::with_capacity(queries.len());
        for ((query, top), mut parts) in queries.iter().zip(tops).zip(parts) {
            let mut hits = top.into_sorted();
            for (source, part) in self.sources().zip(&mut parts) {
                let share = SegmentShare::of(source.segment.len(), held, k);
                if part.strategy == Strategy::Walk && share.is_exhausted(source.segment, &hits)? {
                    hits = search_again(source, part, query, (k, &options), hits)?;
                }
            }
            answers.push(Search { hits, parts });
        }
        Ok(answers)
    }

    /// True if some part is large and a search with these options compares all of it that matches, so that many
    /// queries are better asked at once.
    ///
    /// # Errors
    /// A storage error when a segment is damaged.
    pub fn shares_scan(&self, options: &SearchOptions<'_>) -> Result<bool> {
        for segment in self.segments.iter().filter(|segment| segment.len() >= SHARED_FROM) {
            if segment.damage().is_ok() && (options.exact || segment.walkable()?.is_none()) {
                return Ok(true);
            }
        }
        Ok(self.tail.len() >= SHARED_FROM)
    }

    /// Compares the tail with all queries.
    fn scan_tail(
        &self,
        queries: &[ExactQuery],
        k: usize,
        filter: Option<&Bits>,
        scorer: &dyn BatchScorer,
        tops: &mut [TopHits],
    ) -> Result<PartSearch> {
        let (compared, on_device) = self.tail.scan_batch(queries, k, filter, scorer, tops)?;
        let strategy = if filter.is_some() { Strategy::ScanMatching } else { Strategy::Scan };
        let count = self.tail.len() as u64;
        Ok(PartSearch { part: Part::Tail, strategy, count, matching: compared, compared, on_device })
    }
}

/// A segment, and the queries that it is asked.
struct SegmentBatch<'a> {
    source: Source<'a>,
    queries: &'a [ExactQuery],
    k: usize,
    options: &'a SearchOptions<'a>,
}

impl SegmentBatch<'_> {
    /// Compares all matching vectors with all queries. `None`, and nothing offered, where single searches would walk a
    /// graph or step around damage.
    fn scan(&self, scorer: &dyn BatchScorer, tops: &mut [TopHits]) -> Result<Option<PartSearch>> {
        let (Source { segment, at, log }, options) = (self.source, self.options);
        if segment.damage().is_err() || (!options.exact && segment.walkable()?.is_some()) {
            return Ok(None);
        }
        let members = segment.members()?;
        let count = segment.len() as u64;
        let matching = options.filter.map_or(count, |filter| members.count(filter));
        let filter = options.filter.filter(|_| matching < count);
        let search = |strategy, compared, on_device| PartSearch {
            part: Part::Segment(at),
            strategy,
            count,
            matching,
            compared,
            on_device,
        };
        if filter.is_some() && matching == 0 {
            return Ok(Some(search(Strategy::Skip, 0, false)));
        }
        let words = filter.map(|filter| position_words(segment.len(), members.positions(filter).map(|at| at as usize)));
        let of_segment = |exact| BatchQuery { exact, bounds: BatchBounds::Of(segment) };
        let queries: Vec<BatchQuery<'_>> = self.queries.iter().map(of_segment).collect();
        let batch = Batch {
            part: segment.part_id(),
            rows: segment.rows(log)?,
            matching: words.as_deref(),
            queries: &queries,
            k: self.k,
        };
        // Hits found before damage was detected may be wrong.
        let before = (!segment.is_checked()).then(|| tops.to_vec());
        let on_device = scorer.scan(&batch, tops)?;
        match (segment.damage(), before) {
            (Ok(()), _) => {}
            (Err(Error::Corrupt { .. }), Some(before)) if options.skip_damaged => {
                tops.clone_from_slice(&before);
                return Ok(None);
            }
            (Err(error), _) => return Err(error),
        }
        let strategy = if filter.is_some() { Strategy::ScanMatching } else { Strategy::Scan };
        Ok(Some(search(strategy, matching, on_device)))
    }
}
