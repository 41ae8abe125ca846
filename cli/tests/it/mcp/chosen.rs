//! A model reads names, descriptions and schemas, and chooses. A matcher without a model does the same for forty tasks.

use super::client::Session;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const TASKS: &[(&str, &str)] = &[
    ("store the message that the user just wrote, verbatim", "record"),
    ("log a call of the search tool with its output", "record"),
    ("write down an observation of the environment", "record"),
    ("store what the assistant said just now", "record"),
    ("record that the test run happened and failed", "record"),
    ("save that the user prefers dark mode as a lasting preference for later sessions", "remember"),
    ("remember the decision to use Postgres, with the quote that proves it", "remember"),
    ("save a lasting fact with exact evidence", "remember"),
    ("a new claim updates the old claim about the rent", "remember"),
    ("save the procedure of a release, proven by a quote", "remember"),
    ("what did the user say about the deadline?", "recall"),
    ("search memory for what was decided about the database", "recall"),
    ("before acting, look for what was tried before", "recall"),
    ("find the earlier and later values of the price", "recall"),
    ("answer a question from memory", "recall"),
    ("search memory as it was at an earlier time", "recall"),
    ("explain the evidence of an item", "why"),
    ("show the sources of an item with their quotes checked", "why"),
    ("what depends on this item?", "why"),
    ("are there contradictions to this item, and what is its history?", "why"),
    ("explain why t12 is missing from the recall", "why"),
    ("read one item in full by its key", "get"),
    ("read the transcript of an episode in order", "get"),
    ("get the whole item r9", "get"),
    ("continue a long item at an offset", "get"),
    ("list the transcript of the last episode", "get"),
    ("mark an item as failed", "mark"),
    ("retract an item that is wrong", "mark"),
    ("give feedback that an item was useful", "mark"),
    ("an item is outdated: make it inactive", "mark"),
    ("the item was useless, say so", "mark"),
    ("erase personal data for ever", "forget"),
    ("a secret was stored; erase it", "forget"),
    ("forget an episode for privacy", "forget"),
    ("confirm the erasure with the token", "forget"),
    ("erase content and all that rests on it", "forget"),
    ("count calls by tool", "query"),
    ("show statistics and settings of the database", "query"),
    ("filter and list traces with a limit", "query"),
    ("run a statement of the query language", "query"),
];

/// The words of a text, cut to their stems.
fn stems(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2);
    words.map(|word| word.to_lowercase().chars().take(5).collect()).collect()
}

/// All that a schema says in words.
fn said(schema: &Value) -> String {
    match schema {
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| *name != "type")
            .map(|(name, value)| format!("{name} {}", said(value)))
            .collect::<Vec<_>>()
            .join(" "),
        Value::Array(values) => values.iter().map(said).collect::<Vec<_>>().join(" "),
        Value::String(text) => text.clone(),
        _ => String::new(),
    }
}

#[test]
fn tasks_are_chosen_right_by_names_and_descriptions() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::begin(dir.path(), &[]);
    let list = session.request("tools/list", json!({}));
    let mut weights: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
    for tool in list["result"]["tools"].as_array().unwrap() {
        let of = |name: &str| stems(tool[name].as_str().unwrap());
        let mut own: BTreeMap<String, f64> = BTreeMap::new();
        for (stems, weight) in
            [(of("name"), 2.0), (of("title"), 1.0), (of("description"), 1.0), (stems(&said(&tool["inputSchema"])), 0.5)]
        {
            stems.into_iter().for_each(|stem| *own.entry(stem).or_default() += weight);
        }
        weights.insert(tool["name"].as_str().unwrap().to_owned(), own);
    }
    let count = weights.len() as f64;
    let rarity = |stem: &str| {
        let tools = weights.values().filter(|own| own.contains_key(stem)).count();
        (1.0 + count / (tools as f64).max(1.0)).ln()
    };
    let mut wrong = Vec::new();
    for (task, expected) in TASKS {
        let stems = stems(task);
        let score = |own: &BTreeMap<String, f64>| -> f64 {
            stems.iter().filter_map(|stem| Some(own.get(stem)? * rarity(stem))).sum()
        };
        let best = weights.iter().max_by(|a, b| score(a.1).total_cmp(&score(b.1))).unwrap();
        if best.0 != expected {
            wrong.push(format!("{task}: {} instead of {expected}", best.0));
        }
    }
    assert_eq!(TASKS.len(), 40);
    assert!(wrong.len() <= 2, "{wrong:#?}");
}

#[test]
fn the_list_is_small_and_always_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::begin(dir.path(), &[]);
    let list = session.request("tools/list", json!({}));
    let bytes = list["result"].to_string().len();
    assert!(bytes <= holotype_mcp::LIST_BYTES, "{bytes} bytes");
    assert_eq!(list["result"], session.request("tools/list", json!({}))["result"]);
    let tools = list["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["record", "remember", "recall", "why", "get", "mark", "forget", "query"]);
    for tool in tools {
        let name = &tool["name"];
        assert!(tool["title"].is_string() && tool["description"].is_string(), "{name}");
        assert_eq!(tool["outputSchema"]["type"], "object", "{name}");
        assert_eq!(tool["annotations"]["openWorldHint"], false, "{name}");
        let properties = tool["inputSchema"]["properties"].as_object().unwrap();
        let required = tool["inputSchema"]["required"].as_array().map_or(0, Vec::len);
        assert!(properties.len() <= 6 && required <= 3, "{name}: {} and {required}", properties.len());
    }
    let hint = |name: &str, hint: &str| {
        tools.iter().find(|tool| tool["name"] == name).and_then(|tool| tool["annotations"][hint].as_bool())
    };
    for name in ["recall", "why", "get"] {
        assert_eq!(hint(name, "readOnlyHint"), Some(true), "{name}");
    }
    assert_eq!(hint("forget", "destructiveHint"), Some(true));
    assert_eq!(hint("record", "destructiveHint"), Some(false));
    // Two servers tell the same, whatever their databases hold.
    let other = tempfile::tempdir().unwrap();
    let mut second = Session::begin(other.path(), &[]);
    assert_eq!(second.request("tools/list", json!({}))["result"], list["result"]);
}
