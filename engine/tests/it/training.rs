//! Training triplets: positives along provenance, negatives that look alike and are invalid.

use holotype::query::Params;
use holotype::time::FixedClock;
use holotype::{Holotype, Options, interchange};
use holotype_storage::vfs::SimVfs;
use serde_json::Value;
use std::sync::Arc;

const STORY: &str = "
    record call 's(flight UA123): price = $280' in episode 'e' with key = 't1', tool = 's', step = 1,
        status = success, time = '2026-01-01T00:00:00Z';
    record call 's(flight UA123): price = $999' in episode 'e' with key = 't2', tool = 's', step = 2,
        status = failed, time = '2026-01-02T00:00:00Z';
    record call 's(flight UA123): price = $450' in episode 'e' with key = 't3', tool = 's', step = 3,
        status = success, time = '2026-01-03T00:00:00Z';
    record turn 'The weather is fine.' in episode 'e' with key = 't4', step = 4, time = '2026-01-03T00:00:00Z';
    record turn 'A secret.' in episode 'e' with key = 't5', step = 5, time = '2026-01-03T00:00:00Z';
    remember fact 'UA123 costs $450' from 't3', 't5' with key = 'r1';
    remember fact 'Price of UA123: $999' from 't2' with key = 'r2';
    remember theme 'flights' ungrounded with key = 'th';
    link 'r1' parent 'th'";

fn keys(line: &Value, name: &str) -> Vec<String> {
    let key = |item: &Value| format!("{} {}", item["key"].as_str().unwrap(), item["invalid"].as_str().unwrap_or("ok"));
    line[name].as_array().unwrap().iter().map(key).collect()
}

#[test]
fn what_looks_alike_and_is_invalid_is_a_negative() {
    let options = Options { clock: Arc::new(FixedClock(1_767_657_600_000_000)), ..Options::default() };
    let database = Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", options).unwrap();
    database.query(STORY, &Params::new()).unwrap();
    database.query("forget 't5' because 'asked to'", &Params::new()).unwrap();
    let mut out = Vec::new();
    let count = interchange::export_triplets(&database.snapshot(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((count, lines.len()), (2, 2), "{text}");
    let of = |key: &str| lines.iter().find(|line| line["query"]["key"] == key).unwrap();
    assert_eq!(keys(of("r1"), "positives"), ["t3 ok"]);
    assert_eq!(keys(of("th"), "positives"), ["t3 ok", "r1 ok"], "down both levels");
    for query in ["r1", "th"] {
        assert_eq!(keys(of(query), "negatives"), ["t1 conflicted", "t2 failed", "r2 failed"], "{query}");
    }
    assert!(!text.contains("secret") && !text.contains("weather"), "{text}");
    assert!(lines.iter().all(|line| line["query"]["key"] != "r2"), "its only source failed");
}

#[test]
fn what_is_old_or_of_another_version_is_a_negative_of_the_same_topic() {
    let options = Options { clock: Arc::new(FixedClock(1_767_657_600_000_000)), ..Options::default() };
    let database = Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", options).unwrap();
    let script = "
        record call 's(flight UA1): gate = B1' in episode 'e' with key = 'old', step = 1, version = 'v2',
            time = '2025-12-01T00:00:00Z', status = success;
        record call 's(flight UA1): gate = B1' in episode 'e' with key = 'far', step = 2, version = 'v2',
            time = '2025-12-31T00:00:00Z', status = success;
        record call 's(flight UA1): gate = C7' in episode 'e' with key = 'other', step = 298, version = 'v1',
            time = '2026-01-01T00:00:00Z', status = success;
        record call 's(flight UA1): gate = B1' in episode 'e' with key = 'parts', step = 299,
            version = 'v2 tools=9', time = '2026-01-01T00:00:00Z', status = success;
        record call 's(flight UA1): gate = X9' in episode 'e' with key = 'gone', step = 300, version = 'v1',
            time = '2026-01-01T00:00:00Z', status = success;
        record call 's(flight UA2): gate = D4' in episode 'e' with key = 'topic', step = 3, version = 'v1',
            time = '2025-12-01T00:00:00Z', status = success;
        record call 's(flight UA1): gate = B1' in episode 'e' with key = 'now', step = 301, version = 'v2',
            time = '2026-01-01T00:00:00Z', status = success;
        remember fact 'UA1 boards at B1' from 'now' with key = 'r'";
    database.query(script, &Params::new()).unwrap();
    database.query("forget 'gone' because 'asked to'", &Params::new()).unwrap();
    let mut out = Vec::new();
    interchange::export_triplets(&database.snapshot(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1, "{text}");
    assert_eq!(keys(&lines[0], "positives"), ["now ok"]);
    assert_eq!(keys(&lines[0], "negatives"), ["old stale", "far stale", "other foreign-version"]);
    assert_eq!(keys(&lines[0], "distractors"), ["topic ok"], "another flight, which is valid");
    assert!(!text.contains("X9"), "{text}");
}
