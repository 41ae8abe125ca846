//! Answers within their limit, huge inputs, and texts of every script.

use super::client::{Session, text};
use serde_json::{Value, json};

const LIMIT: usize = 3_000;

fn sizes(result: &Value) -> (usize, usize) {
    (text(result).chars().count(), result["structuredContent"].to_string().chars().count())
}

#[track_caller]
fn check(result: &Value) {
    let (text, json) = sizes(result);
    assert!(text <= LIMIT && json <= LIMIT, "{text} and {json} characters");
}

#[test]
fn no_answer_is_longer_than_its_limit_and_each_tells_the_way_to_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let limit = LIMIT.to_string();
    let mut session = Session::begin(dir.path(), &["--answer-limit", &limit]);
    let long = format!("The report of the harbour says: {}", "\u{1}\"ä日\\ ".repeat(3_000));
    let key = session.record(json!({"text": long, "source": "user", "episode": "e"}));
    for number in 0..60 {
        let text = format!("Ship number {number} called at the harbour of {number}0 with cargo {}", "x".repeat(150));
        session.record(json!({"text": text, "source": "user", "episode": "e"}));
    }
    for (tool, arguments) in [
        ("recall", json!({"query": "report of the harbour"})),
        ("recall", json!({"query": "ships at the harbour", "budget": 20_000})),
        ("recall", json!({"query": "report of the harbour", "response_format": "detailed"})),
        ("why", json!({"key": key})),
        ("get", json!({"key": key})),
        ("get", json!({"episode": "e"})),
        ("query", json!({"statement": "find traces return key, text"})),
        ("query", json!({"statement": "find traces; show stats; show settings"})),
        ("query", json!({"statement": "recall 'report of the harbour'"})),
        ("forget", json!({"episode": "e", "because": "a long reason ".repeat(300)})),
    ] {
        let result = session.call(tool, arguments.clone());
        assert_ne!(result["isError"], true, "{tool} {arguments}: {}", text(&result));
        check(&result);
    }
    let rows = session.call("query", json!({"statement": "find traces return key, text"}));
    assert_eq!(rows["structuredContent"]["truncated"], true);
    assert!(text(&rows).contains("page with `limit n skip n`"), "{}", text(&rows));
    let error = session.fails("query", json!({"statement": format!("find {}", "y".repeat(100_000))}));
    assert!(error.chars().count() <= LIMIT);
    // A long text is read in pieces, and the pieces are the text.
    let (mut whole, mut offset) = (String::new(), 0);
    loop {
        let piece = session.call("get", json!({"key": key, "offset": offset}));
        check(&piece);
        let row = &piece["structuredContent"]["rows"][0];
        whole += row["text"].as_str().unwrap();
        let Some(next) = row["next_offset"].as_u64() else { break };
        assert!(text(&piece).contains(&format!("`offset` {next}")));
        offset = next;
    }
    assert_eq!(whole, long);
    let mut page = 0;
    let mut listed = 0;
    while page < 61 {
        let rows = session.done("get", json!({"episode": "e", "offset": page}))["rows"].clone();
        let count = rows.as_array().unwrap().len() as u64;
        assert!(count > 0);
        (page, listed) = (page + count, listed + count);
    }
    assert_eq!(listed, 61);
}

#[test]
fn texts_of_every_script_come_back_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::begin(dir.path(), &[]);
    for text in [
        "naïve café — “quoted” ‘single’",
        "東京の天気は晴れです。",
        "مرحبا بالعالم",
        "👩‍👩‍👧‍👦 and \u{1f1e9}\u{1f1ea}",
        "a\u{0}b\u{7f}c\u{2028}d",
        "\"}]} {\"jsonrpc\":\"2.0\"}\n\nContent-Length: 5",
        "\u{10ffff}\u{fffd}",
    ] {
        let key = session.record(json!({"text": text, "source": "user"}));
        let got = session.done("get", json!({"key": key}));
        assert_eq!(got["rows"][0]["text"], text);
        let quoted = json!({"claim": format!("said: {text}"), "quote": text.trim(), "from": key});
        session.done("remember", quoted);
    }
    // A surrogate on its own is no text.
    session.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":1000,\"method\":\"\\ud800\"}\n");
    assert_eq!(session.read()["error"]["code"], -32700);
}

#[test]
fn huge_inputs_are_stored_or_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::begin(dir.path(), &[]);
    let long = "word ".repeat(800_000);
    let key = session.record(json!({"text": long, "source": "document"}));
    let got = session.done("get", json!({"key": key}));
    assert_eq!(got["rows"][0]["length"], long.chars().count());
    let name = "k".repeat(100_000);
    for (tool, arguments) in [
        ("get", json!({"key": name})),
        ("record", json!({"text": "x", "episode": name})),
        ("recall", json!({"query": "x", "episode": name})),
        ("query", json!({"statement": format!("recall '{}", "x".repeat(2_000_000))})),
    ] {
        let result = session.call(tool, arguments);
        let (text, _) = (text(&result), &result);
        assert!(text.chars().count() <= 20_000, "{tool}");
        assert!(tool == "record" || result["isError"] == true, "{tool}: {text}");
    }
    let many: Vec<String> = (0..201).map(|number| format!("k{number}")).collect();
    assert!(session.fails("forget", json!({"keys": many, "because": "x"})).contains("at most 200 keys"));
}
