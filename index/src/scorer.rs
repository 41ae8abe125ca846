//! Batch scoring: many queries against many vectors.
//!
//! Consolidation, evaluation and ground truth compare every query with every vector. That is a matrix product, which a
//! GPU computes faster, so it is a trait. The CPU implementation is here; the `holotype-cuda` crate has another.
//!
//! Scores are ordered as [`Hit`]s are. All implementations return the same ids up to rounding.

use crate::distance::kernels;
use crate::error::{Error, Result};
use crate::hit::{Hit, TopHits};
use crate::spec::{Metric, VectorSpec};

/// Scores batches of queries against a set of vectors.
pub trait BatchScorer: Send + Sync + std::fmt::Debug {
    /// What does the work, for people to read.
    fn name(&self) -> String;

    /// The best `k` of `vectors` for each query, by the score of `spec`'s metric. Both are rows of `spec.dim` floats,
    /// prepared by [`VectorSpec::prepare`]; a hit's id is the row.
    ///
    /// # Errors
    /// [`Error::Dimension`] when either is not a whole number of rows.
    fn top_k(&self, spec: &VectorSpec, queries: &[f32], vectors: &[f32], k: usize) -> Result<Vec<Vec<Hit>>>;
}

/// The kernels of this machine's processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuScorer;

/// Rows of vectors that are compared with all queries before the next: they stay in the cache meanwhile.
const BLOCK: usize = 128;

impl BatchScorer for CpuScorer {
    fn name(&self) -> String {
        format!("cpu ({})", kernels().name())
    }

    fn top_k(&self, spec: &VectorSpec, queries: &[f32], vectors: &[f32], k: usize) -> Result<Vec<Vec<Hit>>> {
        let dim = spec.dim;
        for rows in [queries, vectors] {
            if rows.len() % dim != 0 {
                return Err(Error::Dimension { expected: dim, found: rows.len() % dim });
            }
        }
        let mut tops: Vec<TopHits> = queries.chunks_exact(dim).map(|_| TopHits::new(k)).collect();
        let mut scores = [0f32; BLOCK];
        for (block, rows) in vectors.chunks(BLOCK * dim).enumerate() {
            let scores = &mut scores[..rows.len() / dim];
            for (query, top) in queries.chunks_exact(dim).zip(&mut tops) {
                match spec.metric {
                    Metric::Cosine | Metric::Dot => kernels().dot_f32_rows(query, rows, scores),
                    Metric::L2 => kernels().l2_f32_rows(query, rows, scores),
                }
                for (row, raw) in scores.iter().enumerate() {
                    top.push(Hit { id: (block * BLOCK + row) as u32, score: spec.score(*raw) });
                }
            }
        }
        Ok(tops.into_iter().map(TopHits::into_sorted).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{ExactQuery, Rows};
    use crate::spec::Encoding;

    #[test]
    fn a_batch_scores_as_single_queries_do() {
        for metric in [Metric::Cosine, Metric::Dot, Metric::L2] {
            let spec = VectorSpec::new(5, metric, Encoding::F32).unwrap();
            let given = |i: u32| -> Vec<f32> { (0..5).map(|d| ((i * 7 + d * 3) as f32 * 0.7).sin()).collect() };
            let mut rows = Rows::new(spec);
            let mut vectors = Vec::new();
            for id in 0..300 {
                rows.push(id, &given(id)).unwrap();
                vectors.extend(spec.prepare(&given(id)));
            }
            let queries: Vec<f32> = (400..404).flat_map(|i| spec.prepare(&given(i))).collect();
            let answers = CpuScorer.top_k(&spec, &queries, &vectors, 9).unwrap();
            for (i, answer) in (400..404).zip(answers) {
                let query = ExactQuery::new(spec, &given(i)).unwrap();
                let mut top = TopHits::new(9);
                crate::flat::scan(&rows.view(), &query, None, &mut top);
                assert_eq!(answer, top.into_sorted());
            }
        }
    }

    #[test]
    fn half_a_row_is_refused() {
        let spec = VectorSpec::new(2, Metric::Dot, Encoding::F32).unwrap();
        assert!(matches!(CpuScorer.top_k(&spec, &[1.0; 3], &[1.0; 4], 1), Err(Error::Dimension { .. })));
        assert!(CpuScorer.top_k(&spec, &[], &[1.0; 4], 1).unwrap().is_empty());
    }
}
