//! Scoring items by codes first, and exactly if the codes do not decide.

use super::order::{GovernedWeights, ScalarOrder};
use super::{Certificate, Governed, GovernedOptions, RunningBest, Search};
use crate::error::Result;
use crate::flat::runs;
use crate::quantize::CodeBounds;
use crate::rows::{ExactQuery, RowsView};
use crate::segment::VectorSegment;
use crate::segment::id_set::IdSet;
use crate::spec::Metric;
use crate::vectors::VectorIndex;

impl VectorIndex {
    /// What [`VectorIndex::governed`] looks for, found by comparing every item: one pass over the codes, and exact
    /// scores where a code cannot decide.
    ///
    /// # Errors
    /// As [`VectorIndex::governed`].
    pub fn governed_scan(
        &self,
        query: &[f32],
        order: &ScalarOrder,
        weights: &GovernedWeights,
        options: &GovernedOptions<'_>,
    ) -> Result<Governed> {
        let mut search = Search::start(self, query, order, weights, options)?;
        if options.k > 0 {
            // Nothing has more scalar terms than the best block.
            let scalar = search.next().map_or(f32::NEG_INFINITY, |(bound, _)| bound);
            search.visitor.scan(order, weights, scalar, &mut search.best)?;
            search.visitor.damage()?;
        }
        search.visited = order.len() as u64;
        Ok(search.finish(Certificate::Exact))
    }
}

/// Items whose scalar terms are on their way while those of one are looked up.
const LOOKED_UP_AHEAD: usize = 16;

/// Visits items wherever their vectors are.
pub(super) struct Visitor<'a> {
    index: &'a VectorIndex,
    query: ExactQuery,
    weight: f32,
    /// The least and the most that a similarity can be, 0 (no vector) among them.
    range: (f32, f32),
    parts: Vec<Part<'a>>,
    distances: Vec<i32>,
    compared: u64,
}

struct Part<'a> {
    segment: &'a VectorSegment,
    members: IdSet<'a>,
    rows: RowsView<'a>,
    coded: Option<CodeBounds<'a>>,
    /// Of the items at hand, those that are here: positions, and with each the id and its scalar terms.
    positions: Vec<u32>,
    items: Vec<(u32, f32)>,
}

impl<'a> Visitor<'a> {
    pub(super) fn new(index: &'a VectorIndex, query: ExactQuery, weight: f32) -> Result<Self> {
        let mut parts = Vec::with_capacity(index.segments().len());
        let mut length = index.tail().longest();
        for segment in index.segments() {
            let coded = segment.bounds(&query)?;
            length = length.max(segment.longest());
            let (rows, members) = (segment.rows()?, segment.members()?);
            parts.push(Part { segment, members, rows, coded, positions: Vec::new(), items: Vec::new() });
        }
        let range = match index.spec().metric {
            Metric::Cosine => (-1.0, 1.0),
            Metric::L2 => (0.0, 1.0),
            Metric::Dot => {
                let own: f64 = query.vector().iter().map(|x| f64::from(*x).powi(2)).sum();
                let most = (own.sqrt() * f64::from(length)) as f32 * (1.0 + 1e-5);
                (-most, most)
            }
        };
        Ok(Self { index, query, weight, range, parts, distances: Vec::new(), compared: 0 })
    }

    /// The most that the similarity of any item can add.
    pub(super) fn most(&self) -> f32 {
        (self.weight * self.range.0).max(self.weight * self.range.1).max(0.0)
    }

    /// True if something that was read is not as it was written.
    pub(super) fn damage(&self) -> Result<()> {
        self.parts.iter().try_for_each(|part| part.segment.damage())
    }

    pub(super) fn compared(&self) -> u64 {
        self.compared
    }

    /// The exact similarities of `ids`, 0 for those without a vector.
    pub(super) fn exact_scores(&mut self, ids: &[u32]) -> Result<Vec<f32>> {
        self.compared += ids.len() as u64;
        let scores = self.index.scores_of(&self.query, ids)?;
        Ok(scores.into_iter().map(|score| score.unwrap_or(0.0)).collect())
    }

    /// Offers each of `ids` that can be among the best.
    pub(super) fn visit(
        &mut self,
        ids: &[u32],
        order: &ScalarOrder,
        weights: &GovernedWeights,
        best: &mut RunningBest<'_>,
    ) -> Result<()> {
        let most = self.most();
        for part in &mut self.parts {
            part.positions.clear();
            part.items.clear();
        }
        let threshold = best.threshold();
        let mut to_come = ids.iter();
        to_come.by_ref().take(LOOKED_UP_AHEAD).for_each(|id| order.prefetch(*id));
        for id in ids {
            to_come.next().into_iter().for_each(|id| order.prefetch(*id));
            if !best.lets_through(*id) {
                continue;
            }
            let terms = order.terms(*id, weights);
            if terms + most < threshold {
                continue;
            }
            let place = self.parts.iter_mut().find_map(|part| Some((part.members.position(*id)?, part)));
            match place {
                Some((position, part)) => {
                    part.positions.push(position);
                    part.items.push((*id, terms));
                }
                None => {
                    let similarity = match self.index.tail().locate(*id) {
                        Some((rows, at)) => self.query.score(&rows.view(), at),
                        None => 0.0,
                    };
                    self.compared += 1;
                    best.offer(*id, self.weight * similarity + terms);
                }
            }
        }
        for at in 0..self.parts.len() {
            self.compare(at, best)?;
        }
        Ok(())
    }

    /// Compares the items at hand of a part.
    fn compare(&mut self, at: usize, best: &mut RunningBest<'_>) -> Result<()> {
        let Self { parts, query, weight, distances, compared, .. } = self;
        let Part { rows, coded, positions, items, .. } = &parts[at];
        *compared += positions.len() as u64;
        if let Some(coded) = coded {
            coded.distances(positions, distances);
        }
        for (i, (position, (id, terms))) in positions.iter().zip(items).enumerate() {
            if let Some(coded) = coded {
                let (least, most) = coded.similarity(*position, distances[i]);
                if (*weight * least).max(*weight * most) + terms < best.threshold() {
                    continue;
                }
                *compared += 1;
            }
            best.offer(*id, *weight * query.score(rows, *position as usize) + terms);
        }
        Ok(())
    }

    /// Offers every item of `order` that can be among the best. None has more scalar terms than `scalar`, so most of
    /// the rows are done with by their codes alone.
    pub(super) fn scan(
        &mut self,
        order: &ScalarOrder,
        weights: &GovernedWeights,
        scalar: f32,
        best: &mut RunningBest<'_>,
    ) -> Result<()> {
        let mut met = 0;
        let Self { parts, query, weight, distances, compared, .. } = self;
        for Part { rows, coded, .. } in parts.iter() {
            let ids = rows.ids();
            rows.touch_ids(0, ids.len());
            *compared += ids.len() as u64;
            for run in runs(ids.len()) {
                let (start, ids) = (run.start, &ids[run]);
                let mut cutoff = i32::MAX;
                if let Some(coded) = coded {
                    coded.distances_from(start, ids.len(), distances);
                    if *weight > 0.0 {
                        cutoff = coded.cutoff((best.threshold() - scalar) / *weight);
                    }
                }
                met += order.count_among(ids);
                for (i, id) in ids.iter().enumerate() {
                    let position = (start + i) as u32;
                    let mut reach = f32::INFINITY;
                    if let Some(coded) = coded {
                        if distances[i] > cutoff {
                            continue;
                        }
                        let (least, most) = coded.similarity(position, distances[i]);
                        reach = (*weight * least).max(*weight * most);
                    }
                    if !best.lets_through(*id) || !order.contains(*id) {
                        continue;
                    }
                    let terms = order.terms(*id, weights);
                    if reach + terms < best.threshold() {
                        continue;
                    }
                    *compared += u64::from(coded.is_some());
                    best.offer(*id, *weight * query.score(rows, position as usize) + terms);
                }
            }
        }
        if met < order.len() {
            self.scan_rest(order, weights, best);
        }
        Ok(())
    }

    /// The items that are in no segment.
    fn scan_rest(&mut self, order: &ScalarOrder, weights: &GovernedWeights, best: &mut RunningBest<'_>) {
        for id in order.ids() {
            let stored = self.parts.iter().any(|part| part.members.position(*id).is_some());
            if stored || !best.lets_through(*id) {
                continue;
            }
            let similarity = match self.index.tail().locate(*id) {
                Some((rows, at)) => self.query.score(&rows.view(), at),
                None => 0.0,
            };
            self.compared += 1;
            best.offer(*id, self.weight * similarity + order.terms(*id, weights));
        }
    }
}
