//! Other libraries on the same vectors, interleaved with ours.
//!
//! All have 16 links a node and choose from 200 candidates. After all are built, each round asks every query of each
//! engine at each ef, one engine after the other, so that whatever else the machine does meets all of them. A line
//! gives an engine at an ef: the median of its rounds. Then, for recalls of 0.95 and 0.99, each engine's rate is read
//! off its curve (logarithm of the rate, linear between the two nearest points), round by round, and ours is divided by
//! theirs: `ratio` is the median over the rounds. A recall that an engine does not reach has no line.
//!
//! | engine | vectors |
//! |---|---|
//! | holotype | as asked for; walked on codes, scored from the mapped file |
//! | usearch-bf16, usearch-i8 | kept so, and scored so |
//! | hnsw_rs-f32 | f32 |

use super::{Arguments, Questions};
use crate::Result;
use crate::measure::{cpu_time, median_of, quantile_us, round};
use hnsw_rs::prelude::{DistDot, DistL2, Distance, Hnsw};
use holotype::interchange::NpyReader;
use holotype_index::{Metric, SearchOptions, VectorIndex};
use serde_json::json;
use std::time::{Duration, Instant};
use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

const LINKS: usize = 16;
const EF_CONSTRUCTION: usize = 200;
/// hnsw_rs keeps no more levels.
const LEVELS: usize = 16;
/// The values of ef for each engine.
const EFS: [usize; 10] = [12, 16, 24, 32, 48, 64, 96, 128, 192, 320];
const RECALLS: [f64; 2] = [0.95, 0.99];

/// An engine that answers with the ids of the nearest.
trait Engine {
    fn name(&self) -> &'static str;
    fn search(&self, query: &[f32], k: usize, ef: usize) -> Result<Vec<u32>>;
}

struct Ours<'a>(&'a VectorIndex);

impl Engine for Ours<'_> {
    fn name(&self) -> &'static str {
        "holotype"
    }

    fn search(&self, query: &[f32], k: usize, ef: usize) -> Result<Vec<u32>> {
        let search = self.0.search(query, k, SearchOptions { ef, ..SearchOptions::default() })?;
        Ok(search.hits.iter().map(|hit| hit.id).collect())
    }
}

struct Usearch(&'static str, Index);

impl Engine for Usearch {
    fn name(&self) -> &'static str {
        self.0
    }

    fn search(&self, query: &[f32], k: usize, ef: usize) -> Result<Vec<u32>> {
        self.1.change_expansion_search(ef);
        Ok(self.1.search(query, k)?.keys.iter().map(|key| *key as u32).collect())
    }
}

struct HnswRs<D: Distance<f32> + Send + Sync>(Hnsw<'static, f32, D>);

impl<D: Distance<f32> + Send + Sync> Engine for HnswRs<D> {
    fn name(&self) -> &'static str {
        "hnsw_rs-f32"
    }

    fn search(&self, query: &[f32], k: usize, ef: usize) -> Result<Vec<u32>> {
        Ok(self.0.search(query, k, ef).iter().map(|found| found.d_id as u32).collect())
    }
}

/// One engine at one ef in one round.
#[derive(Clone, Debug)]
struct Pass {
    recall: f64,
    qps: f64,
    p50_us: f64,
    p99_us: f64,
}

/// Builds the peers, asks them and ours in turn, and prints what came of it.
pub(super) fn run(index: &VectorIndex, base: &NpyReader, arguments: &Arguments, questions: &Questions) -> Result<()> {
    let vectors = read(base, arguments.metric)?;
    let queries: Vec<Vec<f32>> = questions.queries.iter().map(|query| prepared(query, arguments.metric)).collect();
    let mut engines: Vec<Box<dyn Engine + '_>> = vec![Box::new(Ours(index))];
    for (name, scalar) in [("usearch-bf16", ScalarKind::BF16), ("usearch-i8", ScalarKind::I8)] {
        engines.push(built(name, arguments.threads, || usearch(name, scalar, &vectors, arguments))?);
    }
    engines.push(built("hnsw_rs-f32", arguments.threads, || Ok(hnsw_rs(&vectors, arguments)))?);
    drop(vectors);
    // passes[engine][ef][round]
    let mut passes = vec![vec![Vec::new(); EFS.len()]; engines.len()];
    for _ in 0..arguments.rounds.max(1) {
        for (at, ef) in EFS.iter().enumerate() {
            for (engine, passes) in engines.iter().zip(&mut passes) {
                passes[at].push(pass(&**engine, &queries, *ef, arguments.k, questions)?);
            }
        }
    }
    for (engine, passes) in engines.iter().zip(&passes) {
        for (ef, rounds) in EFS.iter().zip(passes) {
            let median = |of: fn(&Pass) -> f64| median_of(rounds.iter().map(of).collect());
            let line = json!({
                "bench": "vectors", "engine": engine.name(), "phase": "peers", "threads": 1, "ef": ef, "k": arguments.k,
                "recall": round(median(|pass| pass.recall), 5), "qps": round(median(|pass| pass.qps), 1),
                "p50_us": median(|pass| pass.p50_us), "p99_us": median(|pass| pass.p99_us), "rounds": rounds.len(),
            });
            println!("{line}");
        }
    }
    for recall in RECALLS {
        compare(&engines, &passes, recall);
    }
    Ok(())
}

/// Prints each engine's rate at `recall`, and ours in parts of it.
fn compare(engines: &[Box<dyn Engine + '_>], passes: &[Vec<Vec<Pass>>], recall: f64) {
    let rounds = passes[0][0].len();
    let rates = |passes: &[Vec<Pass>]| -> Option<Vec<f64>> {
        (0..rounds).map(|at| rate_at(passes.iter().map(|rounds| &rounds[at]), recall)).collect()
    };
    let Some(ours) = rates(&passes[0]) else { return };
    for (engine, passes) in engines.iter().zip(passes) {
        let Some(theirs) = rates(passes) else { continue };
        let ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect();
        let line = json!({
            "bench": "vectors", "engine": engine.name(), "phase": "peers-at-recall", "threads": 1,
            "at_recall": recall, "qps": round(median_of(theirs), 1), "rounds": rounds,
            "ratio": round(median_of(ratios.clone()), 3),
            "least_ratio": round(ratios.iter().copied().fold(f64::INFINITY, f64::min), 3),
            "largest_ratio": round(ratios.iter().copied().fold(0.0, f64::max), 3),
        });
        println!("{line}");
    }
}

/// The rate at `recall`, between the points of a curve of growing ef.
fn rate_at<'a>(curve: impl Iterator<Item = &'a Pass>, recall: f64) -> Option<f64> {
    let mut below: Option<&Pass> = None;
    for point in curve {
        if point.recall >= recall {
            let Some(below) = below else { return Some(point.qps) };
            let part = (recall - below.recall) / (point.recall - below.recall);
            return Some((below.qps.ln() * (1.0 - part) + point.qps.ln() * part).exp());
        }
        below = Some(point);
    }
    None
}

/// Asks every query once.
fn pass(engine: &dyn Engine, queries: &[Vec<f32>], ef: usize, k: usize, questions: &Questions) -> Result<Pass> {
    let mut found = Vec::with_capacity(queries.len());
    let mut took = Vec::with_capacity(queries.len());
    let started = Instant::now();
    for query in queries {
        let asked = Instant::now();
        found.push(engine.search(query, k, ef)?);
        took.push(asked.elapsed());
    }
    let wall = started.elapsed();
    let hits =
        found.iter().zip(&questions.truth).map(|(ids, truth)| ids.iter().filter(|id| truth.contains(id)).count());
    let wanted: usize = questions.truth.iter().map(|truth| truth.len()).sum();
    Ok(Pass {
        recall: hits.sum::<usize>() as f64 / wanted.max(1) as f64,
        qps: queries.len() as f64 / wall.as_secs_f64(),
        p50_us: quantile_us(&took, 0.5),
        p99_us: quantile_us(&took, 0.99),
    })
}

/// Builds an engine and prints what that took.
fn built<'a>(
    name: &str,
    threads: usize,
    build: impl FnOnce() -> Result<Box<dyn Engine + 'a>>,
) -> Result<Box<dyn Engine + 'a>> {
    let (started, cpu_before) = (Instant::now(), cpu_time());
    let engine = build()?;
    let (taken, cpu): (Duration, Duration) = (started.elapsed(), cpu_time() - cpu_before);
    let line = json!({
        "bench": "vectors", "engine": name, "phase": "peers-build", "threads": threads,
        "build_s": round(taken.as_secs_f64(), 3), "cpu_s": round(cpu.as_secs_f64(), 3),
    });
    println!("{line}");
    Ok(engine)
}

fn usearch<'a>(
    name: &'static str,
    scalar: ScalarKind,
    vectors: &[Vec<f32>],
    arguments: &Arguments,
) -> Result<Box<dyn Engine + 'a>> {
    let options = IndexOptions {
        dimensions: vectors.first().map_or(0, Vec::len),
        metric: match arguments.metric {
            Metric::Cosine => MetricKind::Cos,
            Metric::Dot => MetricKind::IP,
            Metric::L2 => MetricKind::L2sq,
        },
        quantization: scalar,
        connectivity: LINKS,
        expansion_add: EF_CONSTRUCTION,
        ..IndexOptions::default()
    };
    let index = Index::new(&options)?;
    index.reserve_capacity_and_threads(vectors.len(), arguments.threads.max(1))?;
    let share = vectors.len().div_ceil(arguments.threads.max(1));
    let failed = std::thread::scope(|scope| {
        let workers: Vec<_> = vectors
            .chunks(share)
            .zip((0u64..).step_by(share))
            .map(|(part, first)| {
                let index = &index;
                scope.spawn(move || {
                    let added = part.iter().zip(first..).try_for_each(|(vector, key)| index.add(key, vector));
                    added.map_err(|error| error.to_string())
                })
            })
            .collect();
        workers.into_iter().find_map(|worker| worker.join().expect("adding does not panic").err())
    });
    match failed {
        Some(why) => Err(why.into()),
        None => Ok(Box::new(Usearch(name, index))),
    }
}

fn hnsw_rs<'a>(vectors: &[Vec<f32>], arguments: &Arguments) -> Box<dyn Engine + 'a> {
    fn build<D: Distance<f32> + Send + Sync + 'static>(
        vectors: &[Vec<f32>],
        threads: usize,
        distance: D,
    ) -> Box<dyn Engine> {
        let index = Hnsw::new(LINKS, vectors.len(), LEVELS, EF_CONSTRUCTION, distance);
        let rows: Vec<(&Vec<f32>, usize)> = vectors.iter().zip(0..).collect();
        match threads {
            0 | 1 => rows.iter().for_each(|(row, id)| index.insert((row, *id))),
            _ => index.parallel_insert(&rows),
        }
        Box::new(HnswRs(index))
    }
    match arguments.metric {
        Metric::L2 => build(vectors, arguments.threads, DistL2),
        // Of vectors of length one this is the cosine.
        Metric::Cosine | Metric::Dot => build(vectors, arguments.threads, DistDot),
    }
}

fn read(base: &NpyReader, metric: Metric) -> Result<Vec<Vec<f32>>> {
    let row = |row| -> Result<Vec<f32>> {
        let mut vector = Vec::new();
        base.read_row(row, &mut vector)?;
        Ok(prepared(&vector, metric))
    };
    (0..base.rows()).map(row).collect()
}

/// Of length one under cosine: not every engine sees to that.
fn prepared(vector: &[f32], metric: Metric) -> Vec<f32> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    // A whisker shorter, for rounding must not make a product exceed one.
    let scale = if metric == Metric::Cosine && length > 0.0 { (1.0 - 1e-6) / length } else { 1.0 };
    vector.iter().map(|x| x * scale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_read_off_between_two_points() {
        let at = |recall, qps| Pass { recall, qps, p50_us: 0.0, p99_us: 0.0 };
        let curve = [at(0.90, 1000.0), at(0.96, 100.0), at(0.98, 10.0)];
        let rate = |recall| rate_at(curve.iter(), recall).map(|rate| rate.round());
        assert_eq!([rate(0.5), rate(0.93), rate(0.98)], [Some(1000.0), Some(316.0), Some(10.0)]);
        assert_eq!(rate(0.99), None);
    }
}
