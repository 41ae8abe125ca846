//! One layer's vectors as a snapshot sees them: some segments and a view of the tail.
//!
//! Everything here is immutable, so a [`VectorIndex`] answers the same for as long as it is kept, whatever is
//! committed, sealed or merged meanwhile.
//!
//! Scores are exact: a graph walks on scan codes, but what it finds is scored again from the stored vectors. So scores
//! of different parts compare, and an answer does not change when its vector moves from the tail to a segment.

use std::collections::HashSet;
use std::sync::Arc;

use crate::bitmap::Bits;
use crate::error::{Error, Result};
use crate::flat;
use crate::hit::{Hit, TopHits};
use crate::hnsw::filter::{Members, Plan};
use crate::hnsw::matching::Matches;
use crate::hnsw::reach::Reach;
use crate::hnsw::search::{Beam, Walker};
use crate::quantize::Likely;
use crate::rows::{ExactQuery, RowsView};
use crate::segment::{TailView, VectorSegment, Walkable};
use crate::spec::VectorSpec;

/// How a search is done.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions<'a> {
    /// How thoroughly a graph is walked: as a walk would that keeps so many candidates. More find more and take longer. At
    /// least k is used. A walk for the nearest ends as soon as hardly anything can be missing, and keeps up to four times as
    /// many where many are about as near. With as many as there are vectors nothing is missed.
    pub ef: usize,
    /// Only these ids may be answers.
    pub filter: Option<&'a Bits>,
    /// Compare everything: the true nearest, at the price of a scan.
    pub exact: bool,
    /// Where a segment is damaged, compare what is whole of it and say so ([`Strategy::AroundDamage`]) instead of failing.
    pub around_damage: bool,
}

impl Default for SearchOptions<'_> {
    fn default() -> Self {
        Self { ef: 64, filter: None, exact: false, around_damage: false }
    }
}

/// How a part of the index was searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Nothing in it matches the filter.
    Skip,
    /// Every vector was compared.
    Scan,
    /// Every matching vector was compared.
    ScanMatching,
    /// The graph was walked; all vectors match.
    Walk,
    /// The graph was walked and the matches collected on the way.
    WalkCollecting,
    /// The matching part of the graph was walked, stepping over vectors that do not match.
    WalkMatching,
    /// The part is damaged: every matching vector that is as it was written was compared. Those counted as matching and not
    /// as compared could not be.
    AroundDamage,
}

impl Strategy {
    /// The name that plans show.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Scan => "scan",
            Self::ScanMatching => "scan matching",
            Self::Walk => "walk",
            Self::WalkCollecting => "walk, collect matching",
            Self::WalkMatching => "walk matching",
            Self::AroundDamage => "scan around damage",
        }
    }
}

/// A part of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The segment with that place in the list.
    Segment(usize),
    /// The flat tail.
    Tail,
}

/// What was done in a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartSearch {
    /// Which part.
    pub part: Part,
    /// How it was searched.
    pub strategy: Strategy,
    /// Vectors in the part.
    pub count: u64,
    /// Vectors in it that match the filter; for the tail, of those compared.
    pub matching: u64,
    /// Distances computed, on codes and on exact vectors.
    pub compared: u64,
}

/// The answer to a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Search {
    /// At most k, best first, each id once.
    pub hits: Vec<Hit>,
    /// What was done in each part.
    pub parts: Vec<PartSearch>,
}

/// A layer's vectors at one moment. A copy is two pointers.
#[derive(Clone, Debug)]
pub struct VectorIndex {
    spec: VectorSpec,
    segments: Arc<Vec<Arc<VectorSegment>>>,
    tail: TailView,
}

impl VectorIndex {
    /// The vectors of `segments` and `tail`; no id may be in two of them.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when they are not all of one space.
    pub fn new(segments: Vec<Arc<VectorSegment>>, tail: TailView) -> Result<Self> {
        Self::shared(Arc::new(segments), tail)
    }

    /// The same of a list of segments that others hold too.
    ///
    /// # Errors
    /// As [`VectorIndex::new`].
    pub fn shared(segments: Arc<Vec<Arc<VectorSegment>>>, tail: TailView) -> Result<Self> {
        let spec = tail.spec();
        if let Some(other) = segments.iter().find(|segment| segment.spec() != spec) {
            return Err(Error::Mismatch { expected: spec.to_string(), found: other.spec().to_string() });
        }
        Ok(Self { spec, segments, tail })
    }

    /// The space.
    pub fn spec(&self) -> VectorSpec {
        self.spec
    }

    /// How many vectors there are.
    pub fn len(&self) -> usize {
        self.segments.iter().map(|segment| segment.len()).sum::<usize>() + self.tail.len()
    }

    /// Whether there are none.
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

    /// The `k` nearest to `query`.
    ///
    /// # Errors
    /// What [`VectorSpec::check`] says about the query; a storage error when a segment is damaged.
    pub fn search(&self, query: &[f32], k: usize, options: SearchOptions<'_>) -> Result<Search> {
        let query = ExactQuery::new(self.spec, query)?;
        let mut top = TopHits::new(k);
        let mut parts = Vec::with_capacity(self.segments.len() + 1);
        if k == 0 {
            return Ok(Search::default());
        }
        let held = self.len();
        for (at, segment) in self.segments.iter().enumerate() {
            let share = Share::of(segment.len(), held, k);
            parts.push(search_segment(segment, at, &query, share, &options, &mut top)?);
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
            });
        }
        let mut hits = top.into_sorted();
        for (segment, part) in self.segments.iter().zip(&mut parts) {
            let share = Share::of(segment.len(), held, k);
            if part.strategy == Strategy::Walk && share.is_used_up(segment, &hits)? {
                hits = search_again(segment, part, &query, k, &options, hits)?;
            }
        }
        Ok(Search { hits, parts })
    }

    /// The ef with which every segment reached `recall` (of the best 10) when it was built; `None` when no segment has
    /// a graph, and every search is exact.
    pub fn ef_for_recall(&self, recall: f32) -> Option<usize> {
        let segments = self.segments.iter();
        segments.filter_map(|segment| segment.ef_for_recall(recall)).max()
    }

    /// The exact scores of `ids`, in their order; `None` for an id without a vector.
    ///
    /// # Errors
    /// What [`VectorSpec::check`] says about the query; a storage error when a segment is damaged.
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
        for segment in self.segments.iter() {
            let (rows, members) = (segment.rows()?, segment.members()?);
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

    /// The vector of `id` as it is kept: rounded to the encoding, and of length one under cosine.
    ///
    /// # Errors
    /// A storage error when a segment is damaged.
    pub fn vector(&self, id: u32) -> Result<Option<Vec<f32>>> {
        let mut vector = vec![0.0; self.spec.dim];
        if let Some((rows, at)) = self.tail.locate(id) {
            rows.view().decode(at, &mut vector);
            return Ok(Some(vector));
        }
        for segment in self.segments.iter() {
            let rows = segment.rows()?;
            if let Some(at) = segment.members()?.position(id) {
                rows.decode(at as usize, &mut vector);
                segment.damage()?;
                return Ok(Some(vector));
            }
        }
        Ok(None)
    }

    /// Whether `id` has a vector.
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

/// How many of the best `k` are looked for in one part of an index. Where ids fall into parts at random, a part with a share
/// p of all vectors has k p of them, give or take the square root of k p (1 - p). Where they do not, a part may turn out to
/// have as many as were looked for in it, and is searched for all of them.
#[derive(Clone, Copy, Debug)]
struct Share {
    k: usize,
    wanted: usize,
}

/// Standard deviations that are looked for besides what is expected.
const DEVIATIONS: f64 = 2.0;

/// No walk keeps fewer candidates.
const LEAST_EF: usize = 16;

impl Share {
    /// All of them.
    fn whole(k: usize) -> Self {
        Self { k, wanted: k }
    }

    /// Those in `count` of `all` vectors.
    fn of(count: usize, all: usize, k: usize) -> Self {
        let (share, most) = (count as f64 / all.max(1) as f64, k as f64);
        let wanted = most * share + DEVIATIONS * (most * share * (1.0 - share)).sqrt();
        Self { k, wanted: (wanted.ceil() as usize).min(k) }
    }

    /// As many candidates for each that is wanted as `ef` are for k.
    fn ef(&self, ef: usize) -> usize {
        (ef as f64 * self.wanted as f64 / self.k as f64).ceil().max(LEAST_EF as f64).min(ef as f64) as usize
    }

    /// Whether fewer than k were looked for in `segment`, and all of them are among the best.
    fn is_used_up(&self, segment: &VectorSegment, hits: &[Hit]) -> Result<bool> {
        if self.wanted == self.k {
            return Ok(false);
        }
        let members = segment.members()?;
        let given = hits.iter().filter(|hit| members.position(hit.id).is_some()).count();
        Ok(given >= self.wanted)
    }
}

/// Searches a segment for all of the best `k`, of which `hits` are known.
fn search_again(
    segment: &VectorSegment,
    part: &mut PartSearch,
    query: &ExactQuery,
    k: usize,
    options: &SearchOptions<'_>,
    hits: Vec<Hit>,
) -> Result<Vec<Hit>> {
    let Part::Segment(at) = part.part else { return Ok(hits) };
    let mut own = TopHits::new(k);
    let again = search_segment(segment, at, query, Share::whole(k), options, &mut own)?;
    *part = PartSearch { compared: again.compared + part.compared, ..again };
    let known: HashSet<u32> = hits.iter().map(|hit| hit.id).collect();
    let mut top = TopHits::new(k);
    let new = own.into_sorted().into_iter().filter(|hit| !known.contains(&hit.id));
    hits.iter().copied().chain(new).for_each(|hit| top.push(hit));
    Ok(top.into_sorted())
}

/// Searches one segment, and offers what it finds to `top`.
fn search_segment(
    segment: &VectorSegment,
    at: usize,
    query: &ExactQuery,
    share: Share,
    options: &SearchOptions<'_>,
    top: &mut TopHits,
) -> Result<PartSearch> {
    if !options.around_damage {
        return search_sound(segment, at, query, share, options, top);
    }
    if segment.damage().is_ok() {
        // What is offered before damage is met may have come from it.
        let before = (!segment.is_checked()).then(|| top.clone());
        match search_sound(segment, at, query, share, options, top) {
            Err(Error::Corrupt { .. }) => *top = before.unwrap_or_else(|| TopHits::new(share.k)),
            done => return done,
        }
    }
    search_around(segment, at, query, options.filter, top)
}

/// Compares what is whole of a damaged segment.
fn search_around(
    segment: &VectorSegment,
    at: usize,
    query: &ExactQuery,
    filter: Option<&Bits>,
    top: &mut TopHits,
) -> Result<PartSearch> {
    let rows = segment.rows()?;
    let (mut matching, mut compared) = (0, 0);
    // The set of ids was checked altogether, the list of them may be what is damaged.
    for (position, id) in segment.members()?.ids().enumerate() {
        if filter.is_some_and(|filter| !filter.contains(id)) {
            continue;
        }
        matching += 1;
        if rows.is_whole(position) {
            compared += 1;
            top.push(Hit { id, score: query.score(&rows, position) });
        }
    }
    let count = segment.len() as u64;
    Ok(PartSearch { part: Part::Segment(at), strategy: Strategy::AroundDamage, count, matching, compared })
}

/// Searches one segment as fast as can be; an error where it is damaged.
fn search_sound(
    segment: &VectorSegment,
    at: usize,
    query: &ExactQuery,
    share: Share,
    options: &SearchOptions<'_>,
    top: &mut TopHits,
) -> Result<PartSearch> {
    let (rows, members) = (segment.rows()?, segment.members()?);
    let count = segment.len() as u64;
    let matching = options.filter.map_or(count, |filter| members.count(filter));
    // A filter that lets everything through is none.
    let filter = options.filter.filter(|_| matching < count);
    let walkable = if options.exact { None } else { segment.walkable()? };
    let by_codes = !options.exact && walkable.is_none() && matching >= count / flat::SPARSE as u64;
    let bounds = if by_codes { segment.bounds(query)? } else { None };
    let (strategy, compared) = match (filter, walkable) {
        (Some(_), _) if matching == 0 => (Strategy::Skip, 0),
        (filter, None) if let Some(bounds) = &bounds => {
            flat::scan_coded(&rows, bounds, query, filter, top);
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
    Ok(PartSearch { part: Part::Segment(at), strategy, count, matching, compared })
}

/// Fewer matches than this are compared exactly; more are compared by their codes first.
const EXACT_MATCHES: u64 = 256;

/// What a scan of codes or a walk over matches keeps at least: where the matches lie far away, many are about as far.
const KEPT: usize = 512;

/// A walk over matches reaches as far as one that keeps so many times ef. Where the query lies far away from them, few paths lead
/// to the nearest.
const AWAY_FACTOR: usize = 2;

/// Walks a segment's graph, and scores the best of what it meets from the exact vectors.
#[allow(clippy::too_many_arguments)]
fn walk_segment(
    segment: &VectorSegment,
    walkable: &Walkable<'_>,
    rows: &RowsView<'_>,
    query: &ExactQuery,
    filter: Option<(&Bits, Members<'_>, u64)>,
    share: Share,
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
            let reach = Reach::new(rows.spec().metric, &code, share.wanted, share.ef(ef), segment.len());
            let compared = walker.search(graph, reach, scratch);
            return (Strategy::Walk, compared + rescore(&scratch.beam, rows, query, likely, k, top));
        };
        let matches = Matches { members, filter, matcher: members.matcher(rows, filter), count: matching };
        let reach = |ef| Reach::new(rows.spec().metric, &code, k, ef, segment.len());
        let mut compared = 0;
        let mut plan = Plan::choose(matching, segment.len() as u64, ef);
        if let Plan::Collecting(patience) = plan {
            let (near, steps) = walker.descend(graph, scratch);
            let (collected, done) =
                walker.search_collecting(graph, &matches.matcher, near, reach(ef), patience, scratch);
            compared += steps + collected;
            if !done {
                plan = Plan::instead(matching, segment.len() as u64);
            }
        }
        if let Plan::Matching { anyway } = plan {
            let reach = reach(ef * AWAY_FACTOR).keeping(KEPT);
            let (walked, done) = walker.search_matching(graph, &matches, reach, anyway, scratch);
            compared += walked;
            if done {
                return (Strategy::WalkMatching, compared + rescore(&scratch.found, rows, query, likely, k, top));
            }
        }
        let strategy = match plan {
            Plan::Collecting(_) => Strategy::WalkCollecting,
            _ if matching <= EXACT_MATCHES.max(k as u64) => {
                compared += flat::scan_positions(rows, query, matches.positions(), top);
                return (Strategy::ScanMatching, compared);
            }
            _ => {
                compared += walker.scan(matches.positions(), ef.max(KEPT), scratch);
                Strategy::ScanMatching
            }
        };
        (strategy, compared + rescore(&scratch.found, rows, query, likely, k, top))
    })
}

/// Scores the best of `found` exactly, nearest by their codes first, until none of the others is likely to be among the
/// best k.
fn rescore(found: &Beam, rows: &RowsView<'_>, query: &ExactQuery, likely: Likely, k: usize, top: &mut TopHits) -> u64 {
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
