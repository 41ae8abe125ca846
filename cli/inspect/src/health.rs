//! The health of a memory: statistics, settings, the lease, the largest items; and on request what takes longer.
//!
//! | asked | answers |
//! |---|---|
//! | `verify` | every hash, pointer and derived file (`verify` of the language) |
//! | `audit` | measures of what was read and written (HELM A.6) |
//! | `quotes` | each quote of each item, hashed again: how many hold, and those that do not |
//! | `index` | the recall@10 of vector search, against comparing all vectors, for a sample of them |

use crate::Result;
use crate::rows::{item_of, table};
use crate::views::Query;
use holotype::space::Metric;
use holotype::{Holotype, ItemId, Layer, Snapshot, Verdict};
use serde_json::{Value, json};

/// Quotes that are listed, at most.
const MAX_DANGLING: usize = 100;
/// Questions that the recall of the index is estimated from.
const QUESTIONS: usize = 20;
/// The nearest items that are looked for.
const NEAREST: usize = 10;
/// The difference of similarities that is rounding: indexes compare numbers of fewer bits.
const ROUNDING: f32 = 1e-5;

/// The view.
pub(crate) fn health(database: &Holotype, snapshot: &Snapshot, query: &Query) -> Result<Value> {
    let lease = database.lease()?;
    let asked = |name: &str, view: &dyn Fn() -> Result<Value>| match query.text(name) {
        Some(_) => view(),
        None => Ok(Value::Null),
    };
    Ok(json!({
        "commit": snapshot.commit(),
        "lease": {"held": lease.held, "process": lease.pid, "since": lease.since_us.map(holotype::time::format)},
        "stats": table(snapshot, "show stats")?,
        "settings": table(snapshot, "show settings")?,
        "episodes": table(snapshot, "show episodes")?,
        "largest": table(snapshot, "find items order by tokens desc limit 10 return key, kind, tokens, text")?,
        "unsupported": table(snapshot, "find items where unsupported limit 50 return key, kind, status, text")?,
        "verified": asked("verify", &|| Ok(json!(table(snapshot, "verify")?)))?,
        "audit": asked("audit", &|| Ok(json!(table(snapshot, "audit")?)))?,
        "quotes": asked("quotes", &|| quotes(snapshot))?,
        "index": asked("index", &|| index_recall(snapshot))?,
    }))
}

/// Hashes every quote again.
fn quotes(snapshot: &Snapshot) -> Result<Value> {
    let (mut checked, mut holding, mut dangling) = (0_u64, 0_u64, Vec::new());
    for id in (0..snapshot.len()).map(ItemId) {
        for cited in snapshot.citations(id)? {
            checked += 1;
            match cited.verdict {
                Verdict::Ok => holding += 1,
                verdict if dangling.len() < MAX_DANGLING => dangling.push(json!({
                    "key": snapshot.key_of(id)?, "item": cited.target, "field": cited.field,
                    "verdict": verdict.to_string(),
                })),
                _ => {}
            }
        }
    }
    Ok(json!({"checked": checked, "holding": holding, "dangling": dangling}))
}

/// For a sample of vectors of each layer, how many of the nearest the index finds. One vector is in memory at a time,
/// beside those of the sample.
fn index_recall(snapshot: &Snapshot) -> Result<Value> {
    let Some(space) = snapshot.space()? else { return Ok(json!([])) };
    let mut layers = Vec::new();
    for (layer, noun) in [(Layer::Trace, "traces"), (Layer::Recall, "recalls"), (Layer::Theme, "themes")] {
        let found = format!("find {noun} where not failed and not inactive and not redacted return item");
        let found = table(snapshot, &found)?;
        let ids: Vec<ItemId> = found.iter().filter_map(item_of).collect();
        let mut questions = Vec::new();
        for id in ids.iter().step_by(ids.len().div_ceil(QUESTIONS).max(1)) {
            questions.extend(snapshot.vector(*id)?.map(|vector| Question { vector, nearest: Vec::new() }));
        }
        let mut vectors = 0_u64;
        for id in &ids {
            let Some(vector) = snapshot.vector(*id)? else { continue };
            vectors += 1;
            questions.iter_mut().for_each(|question| question.meet(space.metric, &vector));
        }
        let (mut wanted, mut found) = (0, 0);
        for question in &questions {
            let Some(least) = question.nearest.last() else { continue };
            wanted += question.nearest.len();
            for (id, _) in snapshot.nearest(layer, &question.vector, NEAREST)? {
                let near = snapshot.vector(id)?;
                let is_near = |near: &Vec<f32>| space.metric.similar(&question.vector, near) >= least - ROUNDING;
                found += usize::from(near.as_ref().is_some_and(is_near));
            }
        }
        if wanted > 0 {
            layers.push(json!({
                "layer": layer.to_string(), "vectors": vectors, "questions": questions.len(),
                "recall": found.min(wanted) as f64 / wanted as f64,
            }));
        }
    }
    Ok(json!(layers))
}

/// A vector that is asked for, and the greatest similarities met, in descending order.
struct Question {
    vector: Vec<f32>,
    nearest: Vec<f32>,
}

impl Question {
    fn meet(&mut self, metric: Metric, vector: &[f32]) {
        let similarity = metric.similar(&self.vector, vector);
        let place = self.nearest.partition_point(|met| *met >= similarity);
        if place < NEAREST {
            self.nearest.insert(place, similarity);
            self.nearest.truncate(NEAREST);
        }
    }
}

/// The similarity of two vectors, greater if nearer.
trait Similar {
    fn similar(&self, a: &[f32], b: &[f32]) -> f32;
}

impl Similar for Metric {
    fn similar(&self, a: &[f32], b: &[f32]) -> f32 {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        match self {
            Metric::Cosine => dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(f32::MIN_POSITIVE),
            Metric::Dot => dot(a, b),
            Metric::L2 => -a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f32>(),
        }
    }
}
