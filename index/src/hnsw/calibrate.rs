//! Which ef gives which recall, measured at the seal.
//!
//! The queries are mixtures of two vectors of the segment, three parts to one: near the data, but not of it. Each is
//! answered by a scan, and by walks of growing ef. Real queries may lie further out, so a recall asked for is reached
//! about, not surely.

use super::graph::GraphView;
use super::search::Walker;
use super::visited::Scratch;
use crate::error::Result;
use crate::flat;
use crate::hit::{Hit, TopHits};
use crate::quantize::{Codes, Quantizer, sample_positions};
use crate::rows::{ExactQuery, RowsView};

/// The values of ef that are measured.
const EFS: [usize; 12] = [10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512];

/// Queries asked at each.
const QUERIES: usize = 48;

/// Recall is that of the best so many.
const K: usize = 10;

/// An ef and the recall@10 measured with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measured {
    pub(crate) ef: u32,
    pub(crate) recall: f32,
}

/// Measures ef by ef until recall is perfect.
pub(crate) fn calibrate(
    rows: &RowsView<'_>,
    quantizer: &Quantizer,
    codes: Codes<'_>,
    graph: &GraphView<'_>,
) -> Result<Vec<Measured>> {
    let queries = queries(rows)?;
    let truth: Vec<Vec<Hit>> = queries.iter().map(|query| nearest(rows, query)).collect();
    let wanted: usize = truth.iter().map(Vec::len).sum();
    let mut scratch = Scratch::default();
    let mut measured: Vec<Measured> = Vec::new();
    for ef in EFS {
        let mut found = 0;
        for (query, truth) in queries.iter().zip(&truth) {
            let code = quantizer.encode_query(query.vector());
            let walker = Walker { codes, query: &code };
            walker.search(graph, ef, &mut scratch);
            let mut top = TopHits::new(K);
            for (position, _) in scratch.beam.nodes() {
                top.push(Hit { id: rows.ids()[position as usize], score: query.score(rows, position as usize) });
            }
            found += top.into_sorted().iter().filter(|hit| truth.contains(hit)).count();
        }
        let recall = found as f32 / wanted.max(1) as f32;
        // Chance may let a larger ef find less; what is kept ascends.
        let floor = measured.last().map_or(0.0, |last| last.recall);
        measured.push(Measured { ef: ef as u32, recall: recall.max(floor) });
        if found == wanted {
            break;
        }
    }
    Ok(measured)
}

fn queries(rows: &RowsView<'_>) -> Result<Vec<ExactQuery>> {
    let (dim, count) = (rows.spec().dim, rows.len());
    let (mut near, mut far) = (vec![0.0; dim], vec![0.0; dim]);
    sample_positions(count, QUERIES)
        .zip(sample_positions(count, 2 * QUERIES).skip(QUERIES.min(count / 2)))
        .map(|(at, other)| {
            rows.decode(at, &mut near);
            rows.decode(other, &mut far);
            let mixed: Vec<f32> = near.iter().zip(&far).map(|(a, b)| a * 0.75 + b * 0.25).collect();
            ExactQuery::new(rows.spec(), &mixed)
        })
        .collect()
}

fn nearest(rows: &RowsView<'_>, query: &ExactQuery) -> Vec<Hit> {
    let mut top = TopHits::new(K);
    flat::scan(rows, query, None, &mut top);
    top.into_sorted()
}
