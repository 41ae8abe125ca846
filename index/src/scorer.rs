//! Batch scoring: many queries against the vectors of one part of an index, a segment or a block of the tail.
//!
//! One query at a time reads the whole part from memory for each of them. A batch reads a piece of it into the cache
//! and compares it with all queries before the next piece. That is a matrix product with the best k kept of each row,
//! which a GPU computes faster, so it is a trait: [`CpuScorer`] is here, the `holotype-cuda` crate has another.
//!
//! Invariant: an implementation offers, for each query, every vector that is among the best k of the part, with the
//! score that [`VectorIndex::search`](crate::VectorIndex::search) gives it. So ids and scores are those of single
//! searches by construction, on the CPU and on a device, unless a single search by signs misses a vector.
//!
//! Cost on the CPU: a part comes from memory once for `QUERIES` queries instead of once for each.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::distance::kernels;
use crate::error::Result;
use crate::flat;
use crate::hit::{Hit, TopHits};
use crate::quantize::CodeBounds;
use crate::rows::{EncodedRows, ExactQuery, RowsView};
use crate::spec::VectorSpec;

/// Scores batches of queries.
pub trait BatchScorer: Send + Sync + std::fmt::Debug {
    /// The device that does the work, for people to read, and why it is not another where one was asked for.
    fn name(&self) -> String;

    /// Offers to `tops[i]` every vector of the part that is among its best [`Batch::k`] for query i. Returns true if an
    /// accelerator found them.
    ///
    /// # Errors
    /// None of its own: a fault of a device is answered by the CPU.
    fn scan(&self, batch: &Batch<'_>, tops: &mut [TopHits]) -> Result<bool>;

    /// True if a single query may profit as well.
    fn takes_single_queries(&self) -> bool {
        false
    }

    /// True if it compares a vector with all of `count` faster than a walk finds its neighbours, so that the build of a
    /// graph asks it for neighbour lists.
    fn makes_neighbour_lists(&self, spec: VectorSpec, count: usize) -> bool {
        let _ = (spec, count);
        false
    }

    /// The use so far.
    fn usage(&self) -> ScorerUsage {
        ScorerUsage::default()
    }
}

/// The number of calls of a scorer, and where it worked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScorerUsage {
    /// Parts that a device scanned.
    pub on_device: u64,
    /// Parts that the CPU scanned.
    pub on_cpu: u64,
    /// Bytes of vectors that the device keeps.
    pub resident_len: u64,
    /// Why the device is not used, or was not at some time.
    pub fault: Option<String>,
}

/// The identity of a part within this process. No two parts ever have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartId(u64);

impl PartId {
    /// An identity that nothing has yet.
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A query of a batch.
#[derive(Clone, Debug)]
pub(crate) struct BatchQuery<'a> {
    pub(crate) exact: &'a ExactQuery,
    pub(crate) bounds: BatchBounds<'a>,
}

/// The bounds that codes of a part prove for a query.
#[derive(Clone, Debug)]
pub(crate) enum BatchBounds<'a> {
    /// The part has no codes.
    None,
    Known(Box<CodeBounds<'a>>),
    /// Those of a part, computed by the scorer that needs them: a device does not.
    Of(&'a dyn CodedPart),
}

/// A part whose vectors may have codes.
pub(crate) trait CodedPart: std::fmt::Debug + Sync {
    /// The bounds that its codes prove for a query; `None` without codes.
    ///
    /// # Errors
    /// A storage error when its file is damaged.
    fn bounds(&self, query: &ExactQuery) -> Result<Option<CodeBounds<'_>>>;
}

impl<'a> BatchQuery<'a> {
    fn bounds(&self) -> Result<Option<CodeBounds<'a>>> {
        match &self.bounds {
            BatchBounds::None => Ok(None),
            BatchBounds::Known(bounds) => Ok(Some(bounds.as_ref().clone())),
            BatchBounds::Of(part) => part.bounds(self.exact),
        }
    }
}

/// Queries, and the part that they are compared with.
#[derive(Debug)]
pub struct Batch<'a> {
    pub(crate) part: PartId,
    pub(crate) rows: RowsView<'a>,
    /// Bit i % 64 of word i / 64 for position i; `None` if all match.
    pub(crate) matching: Option<&'a [u64]>,
    pub(crate) queries: &'a [BatchQuery<'a>],
    pub(crate) k: usize,
}

impl<'a> Batch<'a> {
    /// The part. Its vectors never change.
    pub fn part(&self) -> PartId {
        self.part
    }

    /// The space.
    pub fn spec(&self) -> VectorSpec {
        self.rows.spec()
    }

    /// The number of vectors of the part.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True if the part has no vectors.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The number of vectors to compare.
    pub fn matching_count(&self) -> usize {
        match self.matching {
            None => self.rows.len(),
            Some(words) => words.iter().map(|word| word.count_ones() as usize).sum(),
        }
    }

    /// The positions to compare: bit i % 64 of word i / 64 for position i, `len` bits; `None` for all of them.
    pub fn matching(&self) -> Option<&'a [u64]> {
        self.matching
    }

    /// The vectors as they are encoded; `None` if some of them are damaged.
    pub fn encoded(&self) -> Option<EncodedRows<'a>> {
        self.rows.encoded()
    }

    /// The number of queries.
    pub fn query_count(&self) -> usize {
        self.queries.len()
    }

    /// A query, prepared by [`VectorSpec::prepare`].
    ///
    /// # Panics
    /// If there is no such query.
    pub fn query(&self, query: usize) -> &'a [f32] {
        self.queries[query].exact.vector()
    }

    /// The number of vectors that each query asks for.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Scores a candidate of a query as a single search does, and offers it.
    ///
    /// # Panics
    /// If there is no such query or position.
    pub fn offer(&self, query: usize, position: usize, top: &mut TopHits) {
        let score = self.queries[query].exact.score(&self.rows, position);
        top.push(Hit { id: self.rows.id(position), score });
    }
}

/// The kernels of this machine's processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuScorer;

/// Queries that are compared with a piece before the next one: their codes and best hits stay in the cache.
const QUERIES: usize = 128;

/// Bytes of a piece: what the second-level cache holds beside the queries.
const PIECE_LEN: usize = 64 << 10;

/// Positions of a word of the filter; a piece is a whole number of them.
const WORD: usize = 64;

impl BatchScorer for CpuScorer {
    fn name(&self) -> String {
        format!("cpu ({})", kernels().name())
    }

    fn scan(&self, batch: &Batch<'_>, tops: &mut [TopHits]) -> Result<bool> {
        let spec = batch.spec();
        let mut scratch = Scratch::default();
        for (queries, tops) in batch.queries.chunks(QUERIES).zip(tops.chunks_mut(QUERIES)) {
            let bounds: Vec<_> = queries.iter().map(BatchQuery::bounds).collect::<Result<_>>()?;
            let coded = bounds.first().is_some_and(Option::is_some);
            let width = if coded { spec.dim } else { spec.dim * spec.encoding.component_len() };
            let step = (PIECE_LEN / width / WORD).clamp(1, 16) * WORD;
            for start in (0..batch.len()).step_by(step) {
                let end = batch.len().min(start + step);
                scratch.list(batch.matching, start, end);
                if scratch.count == 0 {
                    continue;
                }
                for ((query, bounds), top) in queries.iter().zip(&bounds).zip(&mut *tops) {
                    scratch.scan(&batch.rows, start..end, (query.exact, bounds.as_ref()), top);
                }
            }
        }
        Ok(false)
    }
}

/// The piece that is being compared.
#[derive(Default)]
struct Scratch {
    /// The positions that match, where not all do.
    positions: Vec<u32>,
    /// The number of matches.
    count: usize,
    distances: Vec<i32>,
}

impl Scratch {
    /// Begins with the positions from `start` to `end`, where `start` begins a word.
    fn list(&mut self, matching: Option<&[u64]>, start: usize, end: usize) {
        self.positions.clear();
        self.count = end - start;
        let Some(words) = matching else { return };
        for (word, first) in words[start / WORD..end.div_ceil(WORD)].iter().zip((start..).step_by(WORD)) {
            let mut left = *word;
            while left != 0 {
                self.positions.push(first as u32 + left.trailing_zeros());
                left &= left - 1;
            }
        }
        self.count = self.positions.len();
    }

    /// Compares the piece with a query, with the bounds of its codes where there are any.
    fn scan(
        &mut self,
        rows: &RowsView<'_>,
        Range { start, end }: Range<usize>,
        (query, bounds): (&ExactQuery, Option<&CodeBounds<'_>>),
        top: &mut TopHits,
    ) {
        let all = self.count == end - start;
        let by_codes = self.count >= (end - start) / flat::SPARSE;
        match (bounds, top.threshold()) {
            (Some(bounds), Some(threshold)) if by_codes => {
                // Rows in order cost less each than rows at positions, but for all of the piece.
                let in_order = self.count * 4 >= (end - start) * 3;
                match in_order {
                    true => bounds.distances_from(start, end - start, &mut self.distances),
                    false => bounds.distances(&self.positions, &mut self.distances),
                }
                let cutoff = bounds.cutoff(threshold);
                let mut offer = |position: u32, distance: i32| {
                    let may_be_best = distance <= cutoff
                        && top.threshold().is_none_or(|least| bounds.similarity(position, distance).1 >= least);
                    if may_be_best {
                        let score = query.score(rows, position as usize);
                        top.push(Hit { id: rows.id(position as usize), score });
                    }
                };
                let distances = &self.distances;
                let positions = self.positions.iter().copied();
                match (all, in_order) {
                    (true, _) => (start as u32..).zip(distances).for_each(|(at, distance)| offer(at, *distance)),
                    (_, true) => positions.for_each(|at| offer(at, distances[at as usize - start])),
                    _ => positions.zip(distances).for_each(|(at, distance)| offer(at, *distance)),
                }
            }
            _ if all => {
                flat::scan(&rows.slice(start, end), query, None, top);
            }
            _ => {
                flat::scan_positions(rows, query, self.positions.iter().copied(), top);
            }
        }
    }
}

/// The bit vector of positions, of which there are `len`.
pub(crate) fn position_words(len: usize, positions: impl Iterator<Item = usize>) -> Vec<u64> {
    let mut words = vec![0u64; len.div_ceil(WORD)];
    positions.for_each(|position| words[position / WORD] |= 1 << (position % WORD));
    words
}
