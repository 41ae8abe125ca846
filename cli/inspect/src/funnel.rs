//! The funnel of a recall: how many items each step leaves, and how long it took; from the steps of `explain analyze`.

use serde_json::{Map, Value, json};

/// The steps with a count, in order: `visible`, `left out` by a flaw, a stage of the plan, `answer`.
///
/// A stage has `routable`, `eligible`, `ranked` and `micros`; where it runs more than once, those of all runs together.
pub(crate) fn funnel(steps: &[Value]) -> Value {
    let mut funnel: Vec<Map<String, Value>> = Vec::new();
    for step in steps {
        let (name, detail) = (step["step"].as_str().unwrap_or_default(), step["detail"].as_str().unwrap_or_default());
        match name {
            "visible" | "answer" => funnel.push(part(name, "items", first_number(detail))),
            _ if name.starts_with("exclude ") => {
                funnel.push(part(&name["exclude ".len()..], "left_out", first_number(detail)));
            }
            _ => match stage_count(detail) {
                Some(counts) => add(&mut funnel, name, &counts),
                None => continue,
            },
        }
        if let ("answer", Some(micros), Some(last)) = (name, number_before(detail, " µs"), funnel.last_mut()) {
            last.insert("micros".to_owned(), json!(micros));
        }
    }
    json!(funnel)
}

fn part(name: &str, counted: &str, count: Option<u64>) -> Map<String, Value> {
    Map::from_iter([("step".to_owned(), json!(name)), (counted.to_owned(), json!(count))])
}

/// The counts in a line of a stage.
fn stage_count(detail: &str) -> Option<Vec<(&'static str, u64)>> {
    if let Some(ranked) = number_before(detail, " candidate") {
        return detail.ends_with("ranked").then(|| vec![("ranked", ranked)]);
    }
    if let Some(micros) = detail.strip_prefix("took ").and_then(|detail| number_before(detail, " µs")) {
        return Some(vec![("micros", micros)]);
    }
    Some(vec![("routable", number_before(detail, " routable")?), ("eligible", number_before(detail, " eligible")?)])
}

/// Adds counts to the stage of this name, which begins with its first line.
fn add(funnel: &mut Vec<Map<String, Value>>, name: &str, counts: &[(&'static str, u64)]) {
    let known = funnel.iter().position(|part| part["step"] == name);
    let at = known.unwrap_or_else(|| {
        funnel.push(Map::from_iter([("step".to_owned(), json!(name))]));
        funnel.len() - 1
    });
    for (counted, count) in counts {
        let before = funnel[at].get(*counted).and_then(Value::as_u64).unwrap_or(0);
        funnel[at].insert((*counted).to_owned(), json!(before + count));
    }
}

fn first_number(detail: &str) -> Option<u64> {
    detail.split(' ').next()?.parse().ok()
}

/// The whole number that ends where `after` begins.
fn number_before(detail: &str, after: &str) -> Option<u64> {
    let end = detail.find(after)?;
    detail[..end].rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_funnel_counts_what_each_step_leaves() {
        let step = |(step, detail): (&str, &str)| json!({"step": step, "detail": detail});
        let steps = [
            ("query", "text and vector"),
            ("visible", "74 of 82 items"),
            ("exclude version", "7 items"),
            ("traces", "by linked, near, words, pool 64, rows 5; 58 routable, 54 eligible as rows"),
            ("score", "similarity 1, words 1"),
            ("traces", "near: scan matching (57 of 63 match, 57 compared)"),
            ("traces", "54 candidates ranked"),
            ("traces", "took 130 µs"),
            ("traces", "1 candidate ranked"),
            ("traces", "took 20 µs"),
            ("answer", "10 rows, certificate exact, 1890 µs"),
        ];
        let expected = json!([
            {"step": "visible", "items": 74},
            {"step": "version", "left_out": 7},
            {"step": "traces", "routable": 58, "eligible": 54, "ranked": 55, "micros": 150},
            {"step": "answer", "items": 10, "micros": 1890},
        ]);
        assert_eq!(funnel(&steps.map(step)), expected);
    }
}
