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
use crate::hnsw::twins::{NodeMatcher, TwinsView};
use crate::hnsw::visited::Scratch;
use crate::logged::LoggedVectors;
use crate::quantize::LikelyScore;
use crate::rows::{ExactQuery, RowsView};
use crate::scorer::CodedPart;
use crate::segment::id_set::{IdSet, Matcher};
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
            let walkable = &walkable;
            SegmentWalk { segment, walkable, rows: &rows, query, filter, share, ef: options.ef.max(share.k) }
                .run(top)?
        }
    };
    segment.damage()?;
    Ok(PartSearch { part: Part::Segment(at), strategy, count, matching, compared, on_device: false })
}

/// A search of one segment with a graph.
struct SegmentWalk<'a> {
    segment: &'a VectorSegment,
    walkable: &'a SegmentGraph<'a>,
    rows: &'a RowsView<'a>,
    query: &'a ExactQuery,
    /// The ids that may be hits, the segment's ids, and the number of those that match; `None` if all do.
    filter: Option<(&'a Bits, IdSet<'a>, u64)>,
    share: SegmentShare,
    ef: usize,
}

/// If codes cannot tell the best from the others, the next search keeps so many times as many nodes.
const WIDENED: usize = 8;

/// Codes that are compared in the time in which a walk keeps one node more.
const CODES_PER_KEPT: usize = 16;

impl SegmentWalk<'_> {
    /// Walks the graph, and rescores the best candidates from exact vectors. Thousands of vectors may be about as near
    /// as the best by their codes, as twins are that differ by less than a step of the codes: then more are kept, and
    /// at last all are compared.
    fn run(&self, top: &mut TopHits) -> Result<(Strategy, u64)> {
        let code = self.walkable.quantizer.encode_query(self.query.vector());
        let walker = Walker { codes: self.walkable.codes, query: &code };
        self.segment.check_ahead();
        let matching = self.filter.map_or(self.segment.len() as u64, |(_, _, matching)| matching);
        let before = top.clone();
        let (mut times, mut compared) = (1, 0);
        loop {
            let walked = self.segment.pool().with(|scratch| match self.filter {
                None => self.walk(&walker, times, scratch, top),
                Some((filter, members, matching)) => {
                    let (matcher, twins) = (members.matcher(self.rows, filter), self.walkable.graph.twins);
                    let matcher = NodeMatcher { matcher, twins };
                    let matches = MatchSet { members, filter, matcher, count: matching };
                    self.search_matches(&walker, &matches, times, scratch, top)
                }
            });
            compared += walked.compared;
            if !walked.is_open {
                return Ok((walked.strategy, compared));
            }
            top.clone_from(&before);
            times *= WIDENED;
            if (walked.kept * WIDENED * CODES_PER_KEPT) as u64 >= matching {
                return self.compare_all(matching, compared, top);
            }
        }
    }

    fn search_limit(&self, code: &[i8], k: usize, ef: usize) -> SearchLimit {
        SearchLimit::new(self.rows.spec().metric, code, k, ef, self.segment.len())
    }

    fn rescored<'a>(&'a self, matcher: Option<Matcher<'a>>) -> Rescored<'a> {
        let Self { rows, query, walkable, share, .. } = self;
        Rescored { rows, query, likely: walkable.likely(query), k: share.k, twins: walkable.graph.twins, matcher }
    }

    /// Walks over all nodes, keeping `times` as many as usual.
    fn walk(&self, walker: &Walker<'_>, times: usize, scratch: &mut Scratch, top: &mut TopHits) -> Walked {
        let search_limit = self.search_limit(walker.query, self.share.wanted, self.share.ef(self.ef)).widened(times);
        let compared = walker.search(&self.walkable.graph, search_limit, scratch);
        self.rescored(None).offer(&scratch.beam, Strategy::Walk, compared, top)
    }

    /// Searches among the matches of a filter, keeping `times` as many nodes as usual.
    fn search_matches(
        &self,
        walker: &Walker<'_>,
        matches: &MatchSet<'_>,
        times: usize,
        scratch: &mut Scratch,
        top: &mut TopHits,
    ) -> Walked {
        let (graph, segment, rows) = (&self.walkable.graph, self.segment, self.rows);
        let (k, ef, matching) = (self.share.k, self.ef, matches.count);
        let rescored = self.rescored(Some(matches.matcher.matcher));
        let mut compared = 0;
        let mut plan = FilterPlan::choose(matching, segment.len() as u64, ef);
        if let FilterPlan::Collecting(budget) = plan {
            let (near, steps) = walker.descend(graph, scratch);
            let search_limit = self.search_limit(walker.query, k, ef).widened(times);
            let (collected, done) =
                walker.search_collecting(graph, &matches.matcher, near, search_limit, budget, scratch);
            compared += steps + collected;
            if !done {
                plan = FilterPlan::fallback(matching, segment.len() as u64);
            }
        }
        if let FilterPlan::Matching { always } = plan {
            let search_limit = self.search_limit(walker.query, k, ef * MATCHING_WALK_EF_FACTOR);
            let search_limit = search_limit.keeping(MIN_FILTERED_CANDIDATES).widened(times);
            let (walked, done) = walker.search_matching(graph, matches, search_limit, always, scratch);
            compared += walked;
            if done {
                return rescored.offer(&scratch.found, Strategy::WalkMatching, compared, top);
            }
        }
        if let FilterPlan::Collecting(_) = plan {
            return rescored.offer(&scratch.found, Strategy::WalkCollecting, compared, top);
        }
        if matching <= EXACT_SCAN_COUNT.max(k as u64) && !segment.is_logged() {
            compared += flat::scan_positions(rows, self.query, matches.positions(), top);
            return Walked { strategy: Strategy::ScanMatching, compared, kept: 0, is_undecided: false, is_open: false };
        }
        let least = matching.min(EXACT_SCAN_COUNT.max(k as u64)) as usize;
        let kept = ef.max(MIN_FILTERED_CANDIDATES).max(least).saturating_mul(times);
        compared += walker.scan(matches.positions(), kept, scratch);
        let is_full = scratch.found.is_full();
        if !graph.twins.is_empty() {
            // Twins were compared as others were.
            scratch.found.keep_leaders(|position| graph.leader(position));
        }
        let walked = rescored.offer(&scratch.found, Strategy::ScanMatching, compared, top);
        Walked { is_open: is_full && walked.is_undecided, kept, ..walked }
    }

    /// Compares all that match, by exact vectors where their codes do not rule them out.
    fn compare_all(&self, matching: u64, compared: u64, top: &mut TopHits) -> Result<(Strategy, u64)> {
        let (segment, rows, query) = (self.segment, self.rows, self.query);
        let strategy = if self.filter.is_some() { Strategy::ScanMatching } else { Strategy::Scan };
        let bounds = if matching < (segment.len() / flat::SPARSE) as u64 { None } else { segment.bounds(query)? };
        match (self.filter, bounds) {
            (filter, Some(bounds)) => flat::scan_coded(rows, &bounds, query, filter.map(|(filter, _, _)| filter), top),
            (Some((filter, members, _)), None) => {
                flat::scan_positions(rows, query, members.positions(filter), top);
            }
            (None, None) => {
                flat::scan(rows, query, None, top);
            }
        }
        Ok((strategy, compared + matching))
    }
}

/// The outcome of a search in a graph.
struct Walked {
    strategy: Strategy,
    compared: u64,
    /// The number of nodes that were kept.
    kept: usize,
    /// None of the kept nodes is unlikely to be a hit.
    is_undecided: bool,
    /// That, and there may be others as near that were not kept.
    is_open: bool,
}

/// So many nodes, and so many for each hit, all likely hits by their codes, are more than there are by chance.
const MANY_UNDECIDED: usize = 64;
const MANY_UNDECIDED_PER_HIT: usize = 4;

/// The exact vectors of candidates, with what bounds and filters them.
struct Rescored<'a> {
    rows: &'a RowsView<'a>,
    query: &'a ExactQuery,
    likely: LikelyScore,
    k: usize,
    /// The twins of candidates, which are candidates, too.
    twins: TwinsView<'a>,
    /// Tests twins, if not all match.
    matcher: Option<Matcher<'a>>,
}

impl Rescored<'_> {
    /// Scores the best of `found` exactly, nearest by their codes first, until none of the others is likely to be among
    /// the best k. `compared` distances were computed before.
    fn offer(&self, found: &Beam, strategy: Strategy, compared: u64, top: &mut TopHits) -> Walked {
        let Self { rows, query, likely, k, .. } = self;
        let mut to_come = found.nodes().map(|(position, _)| position as usize);
        to_come.by_ref().take(query.ahead()).for_each(|position| query.prefetch(rows, position));
        let (mut scored, mut nodes, mut is_undecided) = (0, 0, true);
        for (node, distance) in found.nodes() {
            if scored >= *k as u64 && top.threshold().is_some_and(|threshold| likely.most(distance) < threshold) {
                is_undecided = false;
                break;
            }
            nodes += 1;
            to_come.next().into_iter().for_each(|position| query.prefetch(rows, position));
            let twins = self.twins.of(node);
            if twins.is_empty() {
                self.score(node, top);
                scored += 1;
                continue;
            }
            let matching = |position: &u32| self.matcher.is_none_or(|matcher| matcher.matches(*position));
            // Of equal vectors the newest are the hits.
            let same = twins.same_newest_first().chain([node]).filter(matching).take(*k);
            for position in same.chain(twins.others().filter(matching)) {
                self.score(position, top);
                scored += 1;
            }
        }
        // Of a few more than k nodes, all are scored anyway.
        is_undecided &= nodes >= MANY_UNDECIDED.max(MANY_UNDECIDED_PER_HIT * k);
        let is_open = is_undecided && found.is_full();
        Walked { strategy, compared: compared + scored, kept: nodes, is_undecided, is_open }
    }

    fn score(&self, position: u32, top: &mut TopHits) {
        let (rows, position) = (self.rows, position as usize);
        top.push(Hit { id: rows.id(position), score: self.query.score(rows, position) });
    }
}
