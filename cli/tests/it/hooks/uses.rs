//! Use marks: what a session was shown from memory and its answers then quote or cite.

use crate::command_line::program::Place;
use crate::hooks::{hook, project};
use serde_json::{Value, json};

fn event(place: &Place, mut event: Value) -> String {
    event["cwd"] = "PLACE".into();
    let run = hook(place, "claude-code", &event.to_string());
    assert_eq!(run.stderr, "", "{event}");
    run.stdout
}

fn answer(place: &Place, session: &str, said: &str) {
    event(place, json!({"session_id": session, "hook_event_name": "Stop", "last_assistant_message": said}));
}

fn rows(place: &Place, statement: &str) -> Value {
    let args = ["query", ".holotype/memory.holo", statement, "--read-only", "--format", "json"];
    place.run(&args).ok().json()["rows"].clone()
}

fn uses(place: &Place) -> Vec<(String, String)> {
    let rows = rows(place, "find events where op = 'use' order by commit, item return item, because");
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    rows.as_array().unwrap().iter().map(|row| (text(row, "item"), text(row, "because"))).collect()
}

#[test]
fn what_was_injected_or_recalled_and_then_quoted_is_used() {
    let place = project();
    for (id, text) in [
        ("p1", "the staging server listens at port 8080"),
        ("p2", "the kettle in the kitchen is broken again"),
        ("p3", "ask Mara before every release of the app"),
    ] {
        event(
            &place,
            json!({"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt_id": id, "prompt": text}),
        );
    }
    // The beginning of the next session shows the last request, and its answer says the same words.
    let told = event(&place, json!({"session_id": "s2", "hook_event_name": "SessionStart", "source": "startup"}));
    assert!(told.contains("s1/p3"), "{told}");
    answer(&place, "s2", "Let me first ask Mara, before every release of the app needs it.");
    let (item, because) = uses(&place).pop().unwrap();
    assert_eq!(item, "s1/p3");
    assert!(because.starts_with("used in s2/"), "{because}");
    // An answer of the server shows two items; one is cited, the other one is neither cited nor quoted.
    let recalled = "2 found.\n1. [s1/p1] turn: \"the staging server listens at port 8080\"\n2. [s1/p2] turn: \"…\"";
    let call = json!({
        "session_id": "s2", "hook_event_name": "PostToolUse", "tool_name": "mcp__holotype__recall",
        "tool_use_id": "c1", "tool_input": {"query": "staging"},
        "tool_response": [{"type": "text", "text": recalled}],
    });
    event(&place, call.clone());
    event(&place, call);
    answer(&place, "s2", "It is at 8080 [s1/p1].");
    answer(&place, "s2", "It is at 8080 [s1/p1].");
    // An item that the session was not shown is not used, whatever is said.
    answer(&place, "s3", "The kettle in the kitchen is broken again [s1/p2].");
    let used: Vec<String> = uses(&place).into_iter().map(|(item, _)| item).collect();
    assert_eq!(used, ["s1/p3", "s1/p1"]);

    let audit = place.run(&["audit", ".holotype/memory.holo", "--format", "json"]).ok().json();
    let share = audit["used"].as_f64().unwrap() * audit["of"]["used"].as_f64().unwrap();
    assert!((share - 2.0).abs() < 1e-9 && audit["of"]["used"].as_u64() >= Some(3), "{audit}");
    let ranked = rows(&place, "find turns where utility > 0 order by commit return key, utility, reports");
    assert_eq!(
        ranked,
        json!([
            {"key": "s1/p1", "utility": 1.0, "reports": 1},
            {"key": "s1/p3", "utility": 1.0, "reports": 1},
        ])
    );
    place.run(&["verify", ".holotype/memory.holo"]).ok();
}

#[test]
fn a_transcript_tells_of_uses_too() {
    let place = project();
    event(
        &place,
        json!({"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt_id": "p1",
            "prompt": "the staging server listens at port 8080"}),
    );
    let line = |uuid: &str, by: &str, content: Value| {
        json!({"type": by, "uuid": uuid, "sessionId": "s2", "timestamp": "2026-11-20T10:00:00.000Z",
            "message": {"role": by, "content": content}})
        .to_string()
    };
    let lines = [
        line(
            "u1",
            "assistant",
            json!([{"type": "tool_use", "id": "c1", "name": "mcp__holotype__get", "input": {"key": "s1/p1"}}]),
        ),
        line(
            "u2",
            "user",
            json!([{"type": "tool_result", "tool_use_id": "c1", "content": "{\"key\":\"s1/p1\",\"text\":\"…\"}"}]),
        ),
        line("u3", "assistant", json!([{"type": "text", "text": "The staging server listens at port 8080."}])),
    ];
    place.write("t.jsonl", lines.join("\n") + "\n");
    for _ in 0..2 {
        event(
            &place,
            json!({"session_id": "s2", "hook_event_name": "Stop", "transcript_path": "PLACE/t.jsonl",
                "last_assistant_message": "The staging server listens at port 8080."}),
        );
    }
    assert_eq!(uses(&place), [("s1/p1".to_owned(), "used in s2/u3".to_owned())]);
}
