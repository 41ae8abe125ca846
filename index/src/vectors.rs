//! One layer's vectors in a snapshot: a list of segments and a view of the tail.
//!
//! Everything here is immutable, so a [`VectorIndex`] always returns the same answer, whatever is committed, sealed or
//! merged meanwhile.
//!
//! Scores are exact: a graph walk compares scan codes, but its hits are rescored from the stored vectors. So scores of
//! different parts are comparable, and a hit keeps its score when its vector moves from the tail to a segment.

mod batch;

use std::collections::HashSet;
use std::sync::Arc;

use crate::bitmap::Bits;
use crate::error::{Error, Result};
use crate::flat;
use crate::hit::{Hit, TopHits};
use crate::hnsw::matching::MatchSet;
use crate::hnsw::search::{Beam, Walker};
use crate::hnsw::search_limit::SearchLimit;
use crate::hnsw::strategy::{EXACT_SCAN_COUNT, FilterPlan, MATCHING_WALK_EF_FACTOR, MIN_FILTERED_CANDIDATES};
use crate::logged::LoggedVectors;
use crate::quantize::LikelyScore;
use crate::rows::{ExactQuery, RowsView};
use crate::scorer::CodedPart;
use crate::segment::id_set::IdSet;
use crate::segment::{SegmentGraph, TailView, VectorSegment};
use crate::spec::VectorSpec;

/// Options of a search.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions<'a> {
    /// The number of candidates that a walk keeps, at least k. More candidates find more and take longer. A walk ends
    /// early once it is unlikely to miss a hit, and keeps up to four times as many candidates if many are about equally
    /// near. An `ef` of the number of vectors makes the walk exhaustive.
    pub ef: usize,
    /// Only these ids may be hits.
    pub filter: Option<&'a Bits>,
    /// Compare all vectors: exact nearest neighbours, at the cost of a scan.
    pub exact: bool,
    /// In a damaged segment, compare the intact vectors and report it ([`Strategy::SkipDamaged`]) instead of failing.
    pub skip_damaged: bool,
}

impl Default for SearchOptions<'_> {
    fn default() -> Self {
        Self { ef: 64, filter: None, exact: false, skip_damaged: false }
    }
}

/// The way in which a segment or the tail was searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// No vector matches the filter.
    Skip,
    /// All vectors were compared.
    Scan,
    /// All matching vectors were compared.
    ScanMatching,
    /// The graph was walked; all vectors match.
    Walk,
    /// The graph was walked, collecting matches.
    WalkCollecting,
    /// The matching part of the graph was walked, stepping over vectors that do not match.
    WalkMatching,
    /// The part is damaged: every intact matching vector was compared. The others count as matching, but not as
    /// compared.
    SkipDamaged,
}

impl Strategy {
    /// The name shown in plans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Scan => "scan",
            Self::ScanMatching => "scan matching",
            Self::Walk => "walk",
            Self::WalkCollecting => "walk, collect matching",
            Self::WalkMatching => "walk matching",
            Self::SkipDamaged => "scan around damage",
        }
    }
}

/// A part of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The segment at this index of the list.
    Segment(usize),
    /// The flat tail.
    Tail,
}

/// The search of one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartSearch {
    /// The part.
    pub part: Part,
    /// The way in which it was searched.
    pub strategy: Strategy,
    /// Vectors in the part.
    pub count: u64,
    /// Vectors that match the filter; for the tail, those compared.
    pub matching: u64,
    /// Distances computed, on codes and on exact vectors.
    pub compared: u64,
    /// An accelerator computed them.
    pub on_device: bool,
}

/// The answer to a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Search {
    /// At most k, best first, each id once.
    pub hits: Vec<Hit>,
    /// The search of each part.
    pub parts: Vec<PartSearch>,
}

/// A layer's vectors in one snapshot. A copy is two pointers.
#[derive(Clone, Debug)]
pub struct VectorIndex {
    spec: VectorSpec,
    segments: Arc<Vec<Arc<VectorSegment>>>,
    tail: TailView,
    /// The log, for segments whose vectors stand there.
    log: Option<Arc<dyn LoggedVectors>>,
}

/// A segment to be searched.
#[derive(Clone, Copy)]
struct Source<'a> {
    segment: &'a VectorSegment,
    /// Its place among the segments.
    at: usize,
    log: Option<&'a dyn LoggedVectors>,
}

impl VectorIndex {
    /// An index over `segments` and `tail`; their ids must be disjoint.
    ///
    /// # Errors
    /// [`Error::Mismatch`] unless all have the same space.
    pub fn new(segments: Vec<Arc<VectorSegment>>, tail: TailView) -> Result<Self> {
        Self::shared(Arc::new(segments), tail)
    }

    /// The same with a shared list of segments.
    ///
    /// # Errors
    /// As [`VectorIndex::new`].
    pub fn shared(segments: Arc<Vec<Arc<VectorSegment>>>, tail: TailView) -> Result<Self> {
        let spec = tail.spec();
        if let Some(other) = segments.iter().find(|segment| segment.spec() != spec) {
            return Err(Error::Mismatch { expected: spec.to_string(), found: other.spec().to_string() });
        }
        Ok(Self { spec, segments, tail, log: None })
    }

    /// The same index, whose vectors stand in `log` where segments do not have them.
    #[must_use]
    pub fn in_log(self, log: Arc<dyn LoggedVectors>) -> Self {
        Self { log: Some(log), ..self }
    }

    /// The segments to be searched.
    fn sources(&self) -> impl Iterator<Item = Source<'_>> {
        let log = self.log.as_deref();
        self.segments.iter().enumerate().map(move |(at, segment)| Source { segment, at, log })
    }

    /// The space.
    pub fn spec(&self) -> VectorSpec {
        self.spec
    }

    /// The number of vectors.
    pub fn len(&self) -> usize {
        self.segments.iter().map(|segment| segment.len()).sum::<usize>() + self.tail.len()
    }

    /// True if it is empty.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.tail.is_empty()
    }

    /// The segments.
    pub fn segments(&self) -> &[Arc<VectorSegment>] {
        &self.segments
    }

    /// The tail.
    pub fn tail(&self) -> &TailView {
        &self.tail
    }

    /// Finds the `k` nearest to `query`.
    ///
    /// # Errors
    /// Errors of [`VectorSpec::check`] for the query; a storage error when a segment is damaged.
    pub fn search(&self, query: &[f32], k: usize, options: SearchOptions<'_>) -> Result<Search> {
        let query = ExactQuery::new(self.spec, query)?;
        let mut top = TopHits::new(k);
        let mut parts = Vec::with_capacity(self.segments.len() + 1);
        if k == 0 {
            return Ok(Search::default());
        }
        let held = self.len();
        for source in self.sources() {
            let share = SegmentShare::of(source.segment.len(), held, k);
            parts.push(search_segment(source, &query, share, &options, &mut top)?);
        }
        if !self.tail.is_empty() {
            let compared = self.tail.scan(&query, options.filter, &mut top);
            parts.push(PartSearch {
                part: Part::Tail,
                strategy: match options.filter {
                    None => Strategy::Scan,
                    Some(_) => Strategy::ScanMatching,
                },
                count: self.tail.len() as u64,
                matching: compared,
                compared,
                on_device: false,
            });
        }
        let mut hits = top.into_sorted();
        for (source, part) in self.sources().zip(&mut parts) {
            let share = SegmentShare::of(source.segment.len(), held, k);
            if part.strategy == Strategy::Walk && share.is_exhausted(source.segment, &hits)? {
                hits = search_again(source, part, &query, (k, &options), hits)?;
            }
        }
        Ok(Search { hits, parts })
    }

    /// The ef with which every segment reached `recall` (of the best 10) when it was built; `None` if no segment has a
    /// graph, so that every vector is scanned.
    pub fn ef_for_recall(&self, recall: f32) -> Option<usize> {
        let segments = self.segments.iter();
        segments.filter_map(|segment| segment.ef_for_recall(recall)).max()
    }

    /// The exact scores of `ids`, in their order; `None` for an id without a vector.
    ///
    /// # Errors
    /// Errors of [`VectorSpec::check`] for the query; a storage error when a segment is damaged.
    pub fn scores(&self, query: &[f32], ids: &[u32]) -> Result<Vec<Option<f32>>> {
        self.scores_of(&ExactQuery::new(self.spec, query)?, ids)
    }

    /// The exact scores of `ids` for a prepared query.
    pub(crate) fn scores_of(&self, query: &ExactQuery, ids: &[u32]) -> Result<Vec<Option<f32>>> {
        let mut scores: Vec<Option<f32>> = ids
            .iter()
            .map(|id| {
                let (rows, at) = self.tail.locate(*id)?;
                Some(query.score(&rows.view(), at))
            })
            .collect();
        let mut found: Vec<(usize, usize)> = Vec::with_capacity(ids.len());
        for Source { segment, log, .. } in self.sources() {
            let (rows, members) = (segment.rows(log)?, segment.members()?);
            let unscored = ids.iter().zip(&scores).enumerate().filter(|(_, (_, score))| score.is_none());
            found.clear();
            found.extend(unscored.filter_map(|(at, (id, _))| Some((at, members.position(*id)? as usize))));
            let mut to_come = found.iter().map(|(_, position)| *position);
            to_come.by_ref().take(query.ahead()).for_each(|position| query.prefetch(&rows, position));
            for (at, position) in &found {
                to_come.next().into_iter().for_each(|position| query.prefetch(&rows, position));
                scores[*at] = Some(query.score(&rows, *position));
            }
            segment.damage()?;
        }
        Ok(scores)
    }

    /// The vector of `id` as stored: rounded to the encoding, and normalised under cosine.
    ///
    /// # Errors
    /// A storage error when a segment is damaged.
    pub fn vector(&self, id: u32) -> Result<Option<Vec<f32>>> {
        let mut vector = vec![0.0; self.spec.dim];
        if let Some((rows, at)) = self.tail.locate(id) {
            rows.view().decode(at, &mut vector);
            return Ok(Some(vector));
        }
        for Source { segment, log, .. } in self.sources() {
            let rows = segment.rows(log)?;
            if let Some(at) = segment.members()?.position(id) {
                rows.decode(at as usize, &mut vector);
                segment.damage()?;
                return Ok(Some(vector));
            }
        }
        Ok(None)
    }

    /// True if `id` has a vector.
    ///
    /// # Errors
    /// A storage error when a segment is damaged.
    pub fn contains(&self, id: u32) -> Result<bool> {
        if self.tail.locate(id).is_some() {
            return Ok(true);
        }
        for segment in self.segments.iter() {
            if segment.members()?.position(id).is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The number of the best `k` hits to search for in one part of an index. If ids are distributed over parts at random,
/// a part with a share p of all vectors has k p hits with a standard deviation of sqrt(k p (1 - p)). If a part returns
/// as many as were searched for, the distribution may not be random, and the part is searched again for all `k`.
#[derive(Clone, Copy, Debug)]
struct SegmentShare {
    k: usize,
    wanted: usize,
}

/// Standard deviations searched beyond the expected number of hits.
const DEVIATIONS: f64 = 2.0;

/// The smallest ef of a walk.
const LEAST_EF: usize = 16;

impl SegmentShare {
    /// All k hits.
    fn whole(k: usize) -> Self {
        Self { k, wanted: k }
    }

    /// The share of a part with `count` of `all` vectors.
    fn of(count: usize, all: usize, k: usize) -> Self {
        let (share, most) = (count as f64 / all.max(1) as f64, k as f64);
        let wanted = most * share + DEVIATIONS * (most * share * (1.0 - share)).sqrt();
        Self { k, wanted: (wanted.ceil() as usize).min(k) }
    }

    /// ef scaled from k hits to the hits wanted from this part.
    fn ef(&self, ef: usize) -> usize {
        (ef as f64 * self.wanted as f64 / self.k as f64).ceil().max(LEAST_EF as f64).min(ef as f64) as usize
    }

    /// True if all hits wanted from `segment`, fewer than k, are in the answer, so that it may have more.
    fn is_exhausted(&self, segment: &VectorSegment, hits: &[Hit]) -> Result<bool> {
        if self.wanted == self.k {
            return Ok(false);
        }
        let members = segment.members()?;
        let given = hits.iter().filter(|hit| members.position(hit.id).is_some()).count();
        Ok(given >= self.wanted)
    }
}

/// Searches a segment again, for all `k` hits, and merges them with `hits`.
fn search_again(
    source: Source<'_>,
    part: &mut PartSearch,
    query: &ExactQuery,
    (k, options): (usize, &SearchOptions<'_>),
    hits: Vec<Hit>,
) -> Result<Vec<Hit>> {
    let mut own = TopHits::new(k);
    let again = search_segment(source, query, SegmentShare::whole(k), options, &mut own)?;
    *part = PartSearch { compared: again.compared + part.compared, ..again };
    let known: HashSet<u32> = hits.iter().map(|hit| hit.id).collect();
    let mut top = TopHits::new(k);
    let new = own.into_sorted().into_iter().filter(|hit| !known.contains(&hit.id));
    hits.iter().copied().chain(new).for_each(|hit| top.push(hit));
    Ok(top.into_sorted())
}

/// Searches one segment and offers its hits to `top`.
fn search_segment(
    source: Source<'_>,
    query: &ExactQuery,
    share: SegmentShare,
    options: &SearchOptions<'_>,
    top: &mut TopHits,
) -> Result<PartSearch> {
    if !options.skip_damaged {
        return search_intact(source, query, share, options, top);
    }
    if source.segment.damage().is_ok() {
        // Hits found before the damage was detected may be wrong.
        let before = (!source.segment.is_checked()).then(|| top.clone());
        match search_intact(source, query, share, options, top) {
            Err(Error::Corrupt { .. }) => *top = before.unwrap_or_else(|| TopHits::new(share.k)),
            done => return done,
        }
    }
    search_skipping_damage(source, query, options.filter, top)
}

/// Compares the intact vectors of a damaged segment.
fn search_skipping_damage(
    Source { segment, at, log }: Source<'_>,
    query: &ExactQuery,
    filter: Option<&Bits>,
    top: &mut TopHits,
) -> Result<PartSearch> {
    let rows = segment.rows(log)?;
    let (mut matching, mut compared) = (0, 0);
    // The id set is verified when opened; the id list may be damaged.
    for (position, id) in segment.members()?.ids().enumerate() {
        if filter.is_some_and(|filter| !filter.contains(id)) {
            continue;
        }
        matching += 1;
        // Of a file that was cut, blocks that were verified before may be lost.
        if !segment.file().is_cut() && rows.is_whole(position) {
            compared += 1;
            top.push(Hit { id, score: query.score(&rows, position) });
        }
    }
    let count = segment.len() as u64;
    let strategy = Strategy::SkipDamaged;
    Ok(PartSearch { part: Part::Segment(at), strategy, count, matching, compared, on_device: false })
}

/// Searches one segment; fails if it is damaged.
fn search_intact(
    Source { segment, at, log }: Source<'_>,
    query: &ExactQuery,
    share: SegmentShare,
    options: &SearchOptions<'_>,
    top: &mut TopHits,
) -> Result<PartSearch> {
    let (rows, members) = (segment.rows(log)?, segment.members()?);
    let count = segment.len() as u64;
    let matching = options.filter.map_or(count, |filter| members.count(filter));
    // A filter that matches everything costs nothing.
    let filter = options.filter.filter(|_| matching < count);
    let walkable = if options.exact { None } else { segment.walkable()? };
    // A vector in the log is read only if its code does not rule it out.
    let by_codes = match segment.is_logged() {
        true => walkable.is_none(),
        false => !options.exact && walkable.is_none() && matching >= count / flat::SPARSE as u64,
    };
    let bounds = if by_codes { segment.bounds(query)? } else { None };
    let (strategy, compared) = match (filter, walkable) {
        (Some(_), _) if matching == 0 => (Strategy::Skip, 0),
        (filter, None) if let Some(bounds) = &bounds => {
            match segment.signs()? {
                Some(signs) => signs.scan((&rows, bounds), query, filter, segment.longest(), top),
                None => flat::scan_coded(&rows, bounds, query, filter, top),
            }
            (if filter.is_some() { Strategy::ScanMatching } else { Strategy::Scan }, matching)
        }
        (None, None) => (Strategy::Scan, flat::scan(&rows, query, None, top)),
        (Some(filter), None) => {
            let positions = members.positions(filter);
            (Strategy::ScanMatching, flat::scan_positions(&rows, query, positions, top))
        }
        (filter, Some(walkable)) => {
            let filter = filter.map(|filter| (filter, members, matching));
            walk_segment(segment, &walkable, &rows, query, filter, share, options.ef.max(share.k), top)
        }
    };
    segment.damage()?;
    Ok(PartSearch { part: Part::Segment(at), strategy, count, matching, compared, on_device: false })
}

/// Walks a segment's graph, and rescores the best candidates from exact vectors.
#[allow(clippy::too_many_arguments)]
fn walk_segment(
    segment: &VectorSegment,
    walkable: &SegmentGraph<'_>,
    rows: &RowsView<'_>,
    query: &ExactQuery,
    filter: Option<(&Bits, IdSet<'_>, u64)>,
    share: SegmentShare,
    ef: usize,
    top: &mut TopHits,
) -> (Strategy, u64) {
    let k = share.k;
    let code = walkable.quantizer.encode_query(query.vector());
    let walker = Walker { codes: walkable.codes, query: &code };
    let likely = walkable.likely(query);
    let graph = &walkable.graph;
    segment.check_ahead();
    segment.pool().with(|scratch| {
        let Some((filter, members, matching)) = filter else {
            let search_limit = SearchLimit::new(rows.spec().metric, &code, share.wanted, share.ef(ef), segment.len());
            let compared = walker.search(graph, search_limit, scratch);
            return (Strategy::Walk, compared + rescore(&scratch.beam, rows, query, likely, k, top));
        };
        let matches = MatchSet { members, filter, matcher: members.matcher(rows, filter), count: matching };
        let search_limit = |ef| SearchLimit::new(rows.spec().metric, &code, k, ef, segment.len());
        let mut compared = 0;
        let mut plan = FilterPlan::choose(matching, segment.len() as u64, ef);
        if let FilterPlan::Collecting(budget) = plan {
            let (near, steps) = walker.descend(graph, scratch);
            let (collected, done) =
                walker.search_collecting(graph, &matches.matcher, near, search_limit(ef), budget, scratch);
            compared += steps + collected;
            if !done {
                plan = FilterPlan::fallback(matching, segment.len() as u64);
            }
        }
        if let FilterPlan::Matching { always } = plan {
            let search_limit = search_limit(ef * MATCHING_WALK_EF_FACTOR).keeping(MIN_FILTERED_CANDIDATES);
            let (walked, done) = walker.search_matching(graph, &matches, search_limit, always, scratch);
            compared += walked;
            if done {
                return (Strategy::WalkMatching, compared + rescore(&scratch.found, rows, query, likely, k, top));
            }
        }
        let strategy = match plan {
            FilterPlan::Collecting(_) => Strategy::WalkCollecting,
            _ if matching <= EXACT_SCAN_COUNT.max(k as u64) && !segment.is_logged() => {
                compared += flat::scan_positions(rows, query, matches.positions(), top);
                return (Strategy::ScanMatching, compared);
            }
            _ => {
                let kept = ef.max(MIN_FILTERED_CANDIDATES).max(matching.min(EXACT_SCAN_COUNT.max(k as u64)) as usize);
                compared += walker.scan(matches.positions(), kept, scratch);
                Strategy::ScanMatching
            }
        };
        (strategy, compared + rescore(&scratch.found, rows, query, likely, k, top))
    })
}

/// Scores the best of `found` exactly, nearest by their codes first, until none of the others is likely to be among the
/// best k.
fn rescore(
    found: &Beam,
    rows: &RowsView<'_>,
    query: &ExactQuery,
    likely: LikelyScore,
    k: usize,
    top: &mut TopHits,
) -> u64 {
    let mut to_come = found.nodes().map(|(position, _)| position as usize);
    to_come.by_ref().take(query.ahead()).for_each(|position| query.prefetch(rows, position));
    let mut scored = 0;
    for (position, distance) in found.nodes() {
        if scored >= k as u64 && top.threshold().is_some_and(|threshold| likely.most(distance) < threshold) {
            break;
        }
        to_come.next().into_iter().for_each(|position| query.prefetch(rows, position));
        top.push(Hit { id: rows.id(position as usize), score: query.score(rows, position as usize) });
        scored += 1;
    }
    scored
}
