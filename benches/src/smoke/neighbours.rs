//! Clustered vectors with their true neighbours, found by comparing everything in double precision.

use crate::Result;
use crate::npy_table;
use crate::random::Random;
use holotype::interchange::{NpyWriter, Precision};
use std::path::Path;

/// The number of vectors and of queries, and their dimensions.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) count: usize,
    pub(crate) queries: usize,
    pub(crate) dim: usize,
}

/// Enough for a segment to be walked and not scanned.
pub(super) const SMALL: Size = Size { count: 3000, queries: 40, dim: 32 };

const CENTRES: usize = 30;
const K: usize = 10;

/// Writes `base.npy`, `queries.npy`, `truth.npy`, and for a filter on every third vector `filter.npy` and
/// `filtered.npy`.
pub(crate) fn write(dir: &Path, size: Size) -> Result<()> {
    let mut random = Random(11);
    let mut vector = |around: Option<&Vec<f32>>| -> Vec<f32> {
        (0..size.dim).map(|i| around.map_or(0.0, |centre| 1.5 * centre[i]) + random.normal()).collect()
    };
    let centres: Vec<Vec<f32>> = (0..CENTRES).map(|_| vector(None)).collect();
    let mut around =
        |count: usize| -> Vec<Vec<f32>> { (0..count).map(|i| vector(Some(&centres[i % CENTRES]))).collect() };
    let (base, queries) = (around(size.count), around(size.queries));
    for (name, rows) in [("base.npy", &base), ("queries.npy", &queries)] {
        let mut file = NpyWriter::create(dir.join(name), size.dim, Precision::F32)?;
        rows.iter().try_for_each(|row| file.push(row).map(drop))?;
        file.finish()?;
    }
    let lets_through = |id: usize| id.is_multiple_of(3);
    write_truth(&dir.join("truth.npy"), &base, &queries, |_| true)?;
    write_truth(&dir.join("filtered.npy"), &base, &queries, lets_through)?;
    let flags: Vec<u8> = (0..size.count).map(|id| u8::from(lets_through(id))).collect();
    npy_table::write(&dir.join("filter.npy"), "|u1", 1, size.count, &flags)
}

fn write_truth(path: &Path, base: &[Vec<f32>], queries: &[Vec<f32>], of: impl Fn(usize) -> bool) -> Result<()> {
    let mut ids = Vec::new();
    for query in queries {
        let mut scored: Vec<(f64, usize)> =
            base.iter().enumerate().filter(|(id, _)| of(*id)).map(|(id, row)| (cosine(query, row), id)).collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (_, id) in &scored[..K] {
            ids.extend(i32::try_from(*id)?.to_le_bytes());
        }
    }
    npy_table::write(path, "<i4", queries.len(), K, &ids)
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum() };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}
