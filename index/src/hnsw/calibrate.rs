//! Calibration: the recall of each ef, measured while the graph is built.
//!
//! A vector of the graph is a biased query, because links lead to it. So the build holds out a few vectors, queries the
//! graph without them, and links them last. Each is answered by an exact scan and by walks with growing ef, until a
//! walk finds nearly everything. Held-out vectors are realistic queries: near the data, but not in it.
//!
//! An ef between two measured ones is interpolated linearly. Recall is concave in ef, so interpolation errs towards a
//! larger ef.
//!
//! Cost: one comparison of codes per held-out vector and vector, a piece of codes with many held-out vectors at a time,
//! and about 4,000 comparisons on walks per held-out vector.

use super::graph::GraphView;
use super::params::{BuildOptions, Params};
use super::search::Walker;
use super::search_limit::SearchLimit;
use super::twins::Twins;
use super::visited::Scratch;
use crate::error::Result;
use crate::hit::{Hit, TopHits};
use crate::quantize::{CodeBounds, CodeErrors, Codes, Quantizer, sample_positions};
use crate::rows::{ExactQuery, RowsView};
use crate::scorer::{Batch, BatchBounds, BatchQuery, BatchScorer, PartId};

/// The measured values of ef.
const EFS: [u32; 12] = [10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512];

/// At most this many vectors are held out, and at most one in `ONE_IN`.
const QUESTIONS: usize = 512;
const ONE_IN: usize = 32;

/// So many vectors are compared with all others in one pass.
const ASKED_TOGETHER: usize = 128;

/// Recall is measured at this k.
const K: usize = 10;

/// Calibration ends at this recall.
const ENOUGH: f32 = 0.999;

/// An ef and the recall@10 measured with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measured {
    pub(crate) ef: u32,
    pub(crate) recall: f32,
}

/// The exact vectors and codes of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coded<'a> {
    pub(crate) rows: RowsView<'a>,
    pub(crate) quantizer: &'a Quantizer,
    pub(crate) codes: Codes<'a>,
    pub(crate) errors: CodeErrors<'a>,
    /// An upper bound of the vectors' lengths.
    pub(crate) longest: f32,
}

impl<'a> Coded<'a> {
    /// The bounds that the codes prove for a query.
    pub(crate) fn bounds(&self, query: &ExactQuery) -> CodeBounds<'a> {
        let code = self.quantizer.query_code(query.vector());
        CodeBounds::new(self.quantizer, self.codes, self.errors, self.longest, &code)
    }
}

/// The positions that are held out, ascending. They are of nodes on level 0 only, so that upper levels are complete,
/// and without twins.
pub(crate) fn held_back(ids: &[u32], params: &Params, twins: &Twins) -> Vec<u32> {
    let wanted = QUESTIONS.min(ids.len() / ONE_IN);
    let mut positions: Vec<u32> = sample_positions(ids.len(), wanted).map(|at| at as u32).collect();
    let is_single = |at: u32| twins.leader(at) == at && twins.view().of(at).is_empty();
    positions.retain(|position| params.level(ids[*position as usize]) == 0 && is_single(*position));
    positions.sort_unstable();
    positions.dedup();
    positions
}

/// Measures ef by ef with the vectors at `held` as queries, which the graph does not contain.
///
/// # Errors
/// [`Error::Cancelled`](crate::Error::Cancelled).
pub(crate) fn measure(
    coded: &Coded<'_>,
    graph: &GraphView<'_>,
    held: &[u32],
    options: &BuildOptions<'_>,
) -> Result<Vec<Measured>> {
    options.check_cancelled()?;
    let groups: Vec<&[u32]> =
        held.chunks(held.len().div_ceil(options.threads.max(1)).clamp(1, ASKED_TOGETHER)).collect();
    let questions = each(&groups, options.threads, |group, _| Question::all(coded, held, group, options.scorer));
    let questions: Vec<Question> = questions.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    let wanted: usize = questions.iter().map(|question| question.count).sum();
    if wanted == 0 {
        // Any walk visits all of so few vectors.
        return Ok(vec![Measured { ef: EFS[0], recall: 1.0 }]);
    }
    let mut measured: Vec<Measured> = Vec::new();
    for ef in EFS {
        options.check_cancelled()?;
        let ask = |question: &Question, scratch: &mut Scratch| {
            question.found(&coded.rows, coded.codes, graph, ef as usize, scratch)
        };
        let found: usize = each(&questions, options.threads, ask).into_iter().sum();
        // By chance a larger ef may find less; the calibration must ascend.
        let floor = measured.last().map_or(0.0, |last| last.recall);
        let recall = (found as f32 / wanted as f32).max(floor);
        measured.push(Measured { ef, recall });
        if recall >= ENOUGH {
            break;
        }
    }
    Ok(measured)
}

/// The smallest ef that reaches `recall`, or twice the largest measured one; `None` without measurements.
pub(crate) fn ef_for(measured: &[Measured], recall: f32) -> Option<usize> {
    let at = measured.partition_point(|measured| measured.recall < recall);
    let Some(above) = measured.get(at) else {
        return measured.last().map(|last| last.ef as usize * 2);
    };
    let Some(below) = at.checked_sub(1).map(|at| measured[at]) else {
        return Some(above.ef as usize);
    };
    let part = (recall - below.recall) / (above.recall - below.recall);
    let step = f64::from(above.ef.saturating_sub(below.ef)) * f64::from(part);
    // Rounding errors must not add one.
    Some(below.ef as usize + (step - 1e-3).ceil() as usize)
}

/// A held-out vector, and the score that a correct hit must reach.
struct Question {
    query: ExactQuery,
    code: Vec<i8>,
    least: f32,
    count: usize,
}

impl Question {
    /// The questions of the vectors at `asked`, compared with all vectors in one pass.
    fn all(coded: &Coded<'_>, held: &[u32], asked: &[u32], scorer: &dyn BatchScorer) -> Result<Vec<Self>> {
        let (rows, quantizer) = (&coded.rows, coded.quantizer);
        let mut vector = vec![0.0; rows.spec().dim];
        let mut queries = Vec::with_capacity(asked.len());
        for position in asked {
            rows.decode(*position as usize, &mut vector);
            queries.push(ExactQuery::new(rows.spec(), &vector)?);
        }
        // Some of the nearest neighbours may be held out too.
        let k = K * 2;
        let mut tops = vec![TopHits::new(k); queries.len()];
        let batched: Vec<BatchQuery<'_>> = queries
            .iter()
            .map(|exact| BatchQuery { exact, bounds: BatchBounds::Known(Box::new(coded.bounds(exact))) })
            .collect();
        let batch = Batch { part: PartId::next(), rows: *rows, matching: None, queries: &batched, k };
        scorer.scan(&batch, &mut tops)?;
        let linked = |hit: &Hit| rows.position(hit.id).is_some_and(|at| held.binary_search(&(at as u32)).is_err());
        let question = |(query, top): (ExactQuery, TopHits)| {
            let nearest: Vec<Hit> = top.into_sorted().into_iter().filter(linked).take(K).collect();
            let least = nearest.last().map_or(f32::INFINITY, |last| last.score);
            Self { code: quantizer.encode_query(query.vector()), query, least, count: nearest.len() }
        };
        drop(batched);
        Ok(queries.into_iter().zip(tops).map(question).collect())
    }

    /// The number of nearest neighbours that a walk finds. Ties with the last of them count.
    fn found(
        &self,
        rows: &RowsView<'_>,
        codes: Codes<'_>,
        graph: &GraphView<'_>,
        ef: usize,
        scratch: &mut Scratch,
    ) -> usize {
        let search_limit = SearchLimit::new(rows.spec().metric, &self.code, K, ef, rows.len());
        Walker { codes, query: &self.code }.search(graph, search_limit, scratch);
        let is_near = |position: &u32| self.query.score(rows, *position as usize) >= self.least;
        let mut found = 0;
        for (node, _) in scratch.beam.nodes() {
            let twins = graph.twins.of(node);
            found += if is_near(&node) { 1 + twins.same_newest_first().take(self.count).count() } else { 0 };
            found += twins.others().filter(is_near).take(self.count).count();
            if found >= self.count {
                break;
            }
        }
        found.min(self.count)
    }
}

/// Applies `work` to each item on `threads` threads; returns results in order.
fn each<T: Sync, R: Send>(items: &[T], threads: usize, work: impl Fn(&T, &mut Scratch) -> R + Sync) -> Vec<R> {
    let part = |items: &[T]| -> Vec<R> {
        let mut scratch = Scratch::default();
        items.iter().map(|item| work(item, &mut scratch)).collect()
    };
    if threads <= 1 || items.is_empty() {
        return part(items);
    }
    let part = &part;
    std::thread::scope(|scope| {
        let start = |items| {
            let worker = std::thread::Builder::new().spawn_scoped(scope, move || part(items));
            // Without another thread this one does the part, and does it now.
            worker.map_err(|_| part(items))
        };
        let workers: Vec<_> = items.chunks(items.len().div_ceil(threads)).map(start).collect();
        let done = workers.into_iter().map(|worker| match worker {
            Ok(worker) => worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(results) => results,
        });
        done.flatten().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ef_lies_on_the_line_between_two_measured() {
        let at = |ef, recall| Measured { ef, recall };
        let measured = [at(10, 0.8), at(20, 0.9), at(40, 0.9), at(80, 0.98)];
        let ef = |recall| ef_for(&measured, recall);
        assert_eq!([ef(0.0), ef(0.8), ef(0.85), ef(0.9)], [Some(10), Some(10), Some(15), Some(20)]);
        assert_eq!([ef(0.94), ef(0.98), ef(0.99), ef(1.0)], [Some(60), Some(80), Some(160), Some(160)]);
        assert_eq!(ef_for(&[], 0.5), None);
        // The file may contain any value.
        let odd = [at(80, 0.5), at(10, f32::NAN), at(7, 0.9)];
        assert!([0.1, 0.7, 0.95].into_iter().all(|recall| ef_for(&odd, recall).is_some()));
    }

    #[test]
    fn few_nodes_of_the_ground_level_are_held_back() {
        let params = Params { m: 16, m0: 32, ef_construction: 100, seed: 7 };
        for (count, most) in [(1usize, 0usize), (31, 0), (640, 20), (100_000, 512)] {
            let ids: Vec<u32> = (5..5 + count as u32).collect();
            let held = held_back(&ids, &params, &Twins::NONE);
            assert!(held.len() <= most && held.len() * 4 >= most * 3, "{} of {count}", held.len());
            assert!(held.is_sorted_by(|a, b| a < b));
            assert!(held.iter().all(|position| params.level(ids[*position as usize]) == 0));
        }
    }

    #[test]
    fn each_item_is_worked_on_once_and_in_order() {
        let items: Vec<usize> = (0..23).collect();
        for threads in [0, 1, 2, 5, 40] {
            assert_eq!(each(&items, threads, |item, _| *item), items);
        }
    }
}
