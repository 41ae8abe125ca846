//! Transcripts as the safety net: what no hook delivered is recorded from them, and nothing twice.

use crate::command_line::program::Place;
use crate::hooks::{hook, keys, project, recorded};

fn claude(uuid: &str, by: &str, content: &str) -> String {
    format!(
        r#"{{"type":"{by}","uuid":"{uuid}","parentUuid":null,"sessionId":"s","timestamp":"2026-11-20T10:00:00.000Z",
        "message":{{"role":"{by}","content":{content}}}}}"#
    )
    .replace('\n', " ")
}

fn stop(said: &str) -> String {
    format!(
        r#"{{"session_id":"s","transcript_path":"PLACE/t.jsonl","cwd":"PLACE","hook_event_name":"Stop",
        "last_assistant_message":"{said}"}}"#
    )
}

fn texts(place: &Place) -> Vec<String> {
    recorded(place).iter().map(|row| row["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_transcript_adds_what_no_hook_delivered_and_nothing_twice() {
    let place = project();
    hook(
        &place,
        "claude-code",
        r#"{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"go on","cwd":"PLACE"}"#,
    );
    let call = r#"{"session_id":"s","hook_event_name":"PostToolUse","tool_name":"Bash",
        "tool_input":{"command":"ls"},"tool_response":{"stdout":"a"},"tool_use_id":"c1","cwd":"PLACE"}"#;
    hook(&place, "claude-code", call);
    let mut transcript = vec![
        claude("u1", "user", r#""go on""#),
        claude(
            "u2",
            "assistant",
            r#"[{"type":"text","text":"I look."},{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"ls"}},
                {"type":"tool_use","id":"c2","name":"Read","input":{"file_path":"x"}}]"#,
        ),
        claude(
            "u3",
            "user",
            r#"[{"type":"tool_result","tool_use_id":"c1","content":"a"},
                {"type":"tool_result","tool_use_id":"c2","content":"no such file","is_error":true}]"#,
        ),
        claude("u4", "user", r#""<command-name>/clear</command-name>""#),
        r#"{"type":"file-history-snapshot","snapshot":{}}"#.to_owned(),
        "not json".to_owned(),
        claude("u5", "assistant", r#"[{"type":"text","text":"Done."}]"#),
        claude("u6", "user", r#""go on""#),
    ];
    place.write("t.jsonl", transcript.join("\n") + "\n");
    for _ in 0..2 {
        assert_eq!(hook(&place, "claude-code", &stop("Done.")).stderr, "");
    }
    // The hook delivered the first `go on`; the second is another turn.
    let turn = keys(&place)[0].clone();
    assert!(turn.starts_with("s/turn-"), "{turn}");
    assert_eq!(keys(&place), [turn.as_str(), "s/c1", "s/u2", "s/c2", "s/u5", "s/u6"]);
    assert_eq!(recorded(&place)[3]["status"], "failed");
    assert_eq!(recorded(&place)[3]["tool"], "Read");

    // The last line is half written: it is read once it is whole.
    let last = claude("u7", "assistant", r#"[{"type":"text","text":"More."}]"#);
    place.write("t.jsonl", transcript.join("\n") + "\n" + &last[..20]);
    hook(&place, "claude-code", &stop("More."));
    transcript.push(last);
    place.write("t.jsonl", transcript.join("\n") + "\n");
    hook(
        &place,
        "claude-code",
        r#"{"session_id":"s","transcript_path":"PLACE/t.jsonl","cwd":"PLACE",
        "hook_event_name":"SessionEnd","reason":"clear"}"#,
    );
    assert_eq!(texts(&place).iter().filter(|text| *text == "More.").count(), 1, "{:?}", texts(&place));
}

#[test]
fn without_the_memory_of_a_session_the_transcript_is_read_again_and_is_known() {
    let place = project();
    place.write("t.jsonl", claude("u1", "user", r#""one""#) + "\n" + &claude("u2", "assistant", r#""two""#) + "\n");
    hook(&place, "claude-code", &stop("two"));
    let before = keys(&place);
    assert_eq!(before, ["s/u1", "s/u2"]);
    std::fs::remove_dir_all(place.path(".holotype/sessions")).unwrap();
    let end = stop("two").replace("\"Stop\"", "\"PreCompact\"");
    hook(&place, "claude-code", &end);
    assert_eq!(keys(&place)[..2], before[..]);
    assert_eq!(keys(&place).len(), 3, "the mark of the compaction");
}

#[test]
fn a_rollout_of_codex_tells_how_calls_ended() {
    let place = project();
    let line = |kind: &str, payload: &str| {
        format!(r#"{{"timestamp":"2026-11-20T10:00:00Z","type":"{kind}","payload":{payload}}}"#).replace('\n', " ")
    };
    let rollout = [
        line("session_meta", r#"{"id":"s"}"#),
        line(
            "response_item",
            r#"{"type":"message","role":"user","content":[
            {"type":"input_text","text":"<environment_context>x</environment_context>"}]}"#,
        ),
        line(
            "response_item",
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"build it"}]}"#,
        ),
        line("event_msg", r#"{"type":"user_message","message":"build it"}"#),
        line(
            "response_item",
            r#"{"type":"function_call","name":"shell","arguments":"{\"command\":[\"make\"]}","call_id":"k1"}"#,
        ),
        line("event_msg", r#"{"type":"exec_command_end","call_id":"k1","exit_code":2,"aggregated_output":"no rule"}"#),
        line("response_item", r#"{"type":"function_call_output","call_id":"k1","output":"no rule"}"#),
        line(
            "response_item",
            r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"It fails."}]}"#,
        ),
    ];
    place.write("t.jsonl", rollout.join("\n") + "\n");
    hook(&place, "codex", &stop("It fails.").replace("\"cwd\"", "\"turn_id\":\"t1\",\"cwd\""));
    assert_eq!(texts(&place), ["build it", "{\"command\":[\"make\"]}\n→ no rule", "It fails."]);
    let call = &recorded(&place)[1];
    assert_eq!((call["key"].as_str(), call["status"].as_str()), (Some("s/k1"), Some("failed")));
}

#[test]
fn a_transcript_that_is_missing_or_a_folder_costs_no_event() {
    let place = project();
    let run = hook(&place, "claude-code", &stop("said").replace("t.jsonl", "none.jsonl"));
    assert!(run.stderr.contains("none.jsonl"), "{run:#?}");
    hook(&place, "claude-code", &stop("other").replace("t.jsonl", ".holotype"));
    assert_eq!(texts(&place), ["said", "other"]);
}
