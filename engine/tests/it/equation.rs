//! HELM's equation (1), written down once more: under the profile `helm` every row of a recall has that score, to 1e-6.

use crate::random::Random;
use holotype::query::FlawKind;
use holotype::{Durability, Holotype, NewTrace, Options, Source, Space, Status};
use holotype_storage::vfs::SimVfs;
use std::collections::HashMap;
use std::sync::Arc;

const DIM: usize = 12;
const TRACES: u64 = 60;
const HOUR: i64 = 3_600_000_000;
const DAY: f64 = 24.0 * HOUR as f64;

/// The weights of HELM's Table 11, and ours where the paper gives none.
const STATUS: [(Status, f64); 3] = [(Status::Success, 0.0), (Status::Unknown, -0.1), (Status::Failed, -1.0)];
const SOURCE: [(Source, f64); 6] = [
    (Source::Tool, 1.0),
    (Source::Environment, 0.9),
    (Source::User, 0.8),
    (Source::Document, 0.7),
    (Source::Assistant, 0.5),
    (Source::System, 0.3),
];

fn vector(random: &mut Random) -> Vec<f32> {
    (0..DIM).map(|_| random.below(2001) as f32 / 1000.0 - 1.0).collect()
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn a_row_has_the_score_of_equation_1() {
    for seed in 1..=20 {
        let mut random = Random(seed);
        let options = Options::with_space(Space::new("test", DIM));
        let database = Holotype::create_on(Arc::new(SimVfs::new()), "/db", options).unwrap();
        let mut transaction = database.begin().unwrap();
        let mut expected = HashMap::new();
        let (query, now) = (vector(&mut random), TRACES as i64 * 5 * HOUR);
        for nth in 0..TRACES {
            let (vector, time) = (vector(&mut random), (nth as i64 + 1) * 5 * HOUR);
            let ((status, of_status), (source, of_source)) = (*random.one(&STATUS), *random.one(&SOURCE));
            let recency = (-std::f64::consts::LN_2 * (now - time) as f64 / DAY).exp();
            expected.insert(format!("t{nth}"), cosine(&query, &vector) + recency + 10.0 * of_status + of_source);
            let trace = NewTrace::turn("e", format!("remark {nth}")).key(format!("t{nth}")).vector(vector);
            transaction.record(trace.status(status).source(source).time(time)).unwrap();
        }
        transaction.commit(Durability::None).unwrap();
        let snapshot = database.snapshot();
        let recall = snapshot.recall_near(query).in_episode("e").profile("helm").include([FlawKind::Failed]);
        let rows = recall.limit(TRACES).run().unwrap().rows;
        assert!(rows.len() as u64 > TRACES / 2, "seed {seed}: {} rows", rows.len());
        for row in &rows {
            let (found, expected) = (f64::from(row.score), expected[&row.key]);
            assert!((found - expected).abs() <= 1e-6 * expected.abs().max(1.0), "seed {seed}: {row:?}, not {expected}");
        }
        assert!(rows.is_sorted_by(|a, b| a.score >= b.score), "seed {seed}");
    }
}
