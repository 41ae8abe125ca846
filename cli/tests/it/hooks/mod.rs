//! Hooks as harnesses call them: golden inputs and what is recorded of them, secrets, the spool, delivery twice, kills.
//!
//! `golden/HARNESS.jsonl` holds one input a line, in the shapes of the harness; `golden/HARNESS.expected` what the
//! memory holds after it and what the hook printed. `HOLOTYPE_UPDATE=1` writes the latter.

mod delivery;
mod secrets;
mod settings;
mod transcripts;
mod uses;

use crate::command_line::program::{Place, Run};
use holotype::{Holotype, Options};
use serde_json::Value;
use std::path::Path;

/// A project with a memory, and a fact in it.
fn project() -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path(".holotype")).unwrap();
    place
}

/// Calls a hook with an input, in which PLACE is the project.
fn hook(place: &Place, harness: &str, input: &str) -> Run {
    let input = input.replace("PLACE", &place.path("").display().to_string().trim_end_matches('/').replace('\\', "/"));
    let run = place.run_with(&["hook", "--for", harness], &input);
    assert_eq!(run.status, 0, "{run:#?}");
    run
}

/// The recorded items, a line each.
fn recorded(place: &Place) -> Vec<Value> {
    let statement = "find items order by commit, item return key, kind, episode, source, speaker, tool, status, text";
    let run = place.run(&["query", ".holotype/memory.holo", statement, "--read-only", "--format", "json"]).ok();
    run.json()["rows"].as_array().unwrap().clone()
}

fn keys(place: &Place) -> Vec<String> {
    recorded(place).iter().map(|row| row["key"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn events_of_each_harness_are_recorded_as_expected() {
    for harness in ["claude-code", "codex", "gemini", "cursor", "generic"] {
        let place = project();
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/hooks/golden");
        let inputs = std::fs::read_to_string(golden.join(format!("{harness}.jsonl"))).unwrap();
        let mut lines = Vec::new();
        for input in inputs.lines() {
            let run = hook(&place, harness, input);
            assert_eq!(run.stderr, "", "{harness}: {input}");
            lines.push(format!("printed {}", run.stdout.trim_end()).trim_end().to_owned());
        }
        lines.extend(recorded(&place).iter().map(ToString::to_string));
        let here = place.path("").display().to_string().trim_end_matches('/').to_owned();
        // Marks have the hash of their input in their keys, which holds the path.
        let actual: String =
            lines.iter().map(|line| format!("{}\n", without_hashes(&line.replace(&here, "PLACE")))).collect();
        let expected = golden.join(format!("{harness}.expected"));
        if std::env::var_os("HOLOTYPE_UPDATE").is_some() {
            std::fs::write(&expected, &actual).unwrap();
        }
        assert_eq!(actual, std::fs::read_to_string(&expected).unwrap(), "{harness}");
    }
}

/// A text without hashes of 16 digits.
fn without_hashes(text: &str) -> String {
    let mut out = String::new();
    let mut run = String::new();
    for char in text.chars().chain(['\0']) {
        if char.is_ascii_digit() || ('a'..='f').contains(&char) {
            run.push(char);
            continue;
        }
        out += if run.len() == 16 { "HASH" } else { &run };
        run.clear();
        if char != '\0' {
            out.push(char);
        }
    }
    out
}

#[test]
fn a_hook_never_fails_whatever_it_gets() {
    let place = project();
    for input in ["", "{", "[]", "{}", "{\"session_id\":\"s\"}", "\u{feff}{\"session_id\": 7}", "\0\0"] {
        let run = place.run_with(&["hook", "--for", "claude-code"], input);
        assert_eq!((run.status, run.stdout.as_str()), (0, ""), "{input:?}: {run:#?}");
        assert_eq!(run.stderr.lines().count(), 1, "{input:?}: {run:#?}");
    }
    for args in [&["hook"][..], &["hook", "--for", "nobody"], &["hook", "--bogus"], &["hook", "--for"]] {
        let run = place.run(args);
        assert_eq!(run.status, 0, "{args:?}: {run:#?}");
        assert!(run.stderr.starts_with("holotype hook: "), "{run:#?}");
    }
    let long = format!("{{\"session_id\":\"s\",\"event\":\"prompt\",\"prompt\":\"{}\"}}", "x".repeat(5 << 20));
    let mut command = place.command(&["hook", "--for", "generic"]);
    // The rest of the input is not read, so writing it may fail.
    command.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), long.as_bytes());
    let run = Run::of(child.wait_with_output().unwrap());
    assert_eq!(run.status, 0);
    assert!(run.stderr.contains("longer than 4194304 bytes"), "{run:#?}");
    let log = String::from_utf8(place.read(".holotype/hook.log")).unwrap();
    assert!(log.lines().count() >= 8, "{log}");
}

#[test]
fn what_a_new_session_is_told_is_quoted_and_short_and_in_the_form_of_its_harness() {
    let place = project();
    let told = |harness: &str, session: &str| {
        let input = format!(r#"{{"session_id":"{session}","hook_event_name":"SessionStart","cwd":"PLACE"}}"#);
        hook(&place, harness, &input).stdout
    };
    assert_eq!(told("claude-code", "first"), "", "nothing to say prints nothing");
    for turn in 0..40 {
        let said = format!("turn {turn} {}", "word ".repeat(300));
        hook(&place, "generic", &format!(r#"{{"session":"first","event":"prompt","prompt":"{said}"}}"#));
    }
    let call = r#"{"session":"first","event":"postToolUseFailure",
        "tool_name":"deploy","tool_use_id":"d1","error":"no rights"}"#;
    hook(&place, "generic", call);
    let call = r#"{"session":"first","event":"tool","tool_name":"probe","call_id":"ok1","tool_response":"port 8080"}"#;
    hook(&place, "generic", call);
    let answer = r#"{"session":"first","event":"answer","text":"Deployed to \"staging\" only."}"#;
    hook(&place, "generic", answer);
    place.write("fact.holoq", "remember fact 'staging is at port 8080' from 'first/ok1' with key = 'f1'");
    let statement = String::from_utf8(place.read("fact.holoq")).unwrap();
    place.run(&["query", ".holotype/memory.holo", &statement]).ok();
    for (number, harness) in ["claude-code", "codex", "gemini", "cursor", "generic"].iter().enumerate() {
        let out = told(harness, &format!("session-{number}"));
        let text = match *harness {
            "generic" => out.trim_end().to_owned(),
            "cursor" => {
                let value: Value = serde_json::from_str(&out).unwrap();
                assert_eq!(value.as_object().unwrap().len(), 2);
                assert_eq!(value["continue"], true);
                value["additional_context"].as_str().unwrap().to_owned()
            }
            _ => {
                let value: Value = serde_json::from_str(&out).unwrap();
                // Codex refuses a member more.
                assert_eq!(value.as_object().unwrap().keys().collect::<Vec<_>>(), ["hookSpecificOutput"]);
                let inner = value["hookSpecificOutput"].as_object().unwrap();
                assert_eq!(inner.keys().collect::<Vec<_>>(), ["hookEventName", "additionalContext"]);
                assert_eq!(inner["hookEventName"], "SessionStart");
                inner["additionalContext"].as_str().unwrap().to_owned()
            }
        };
        assert!(text.starts_with("From memory (quoted; verify):\n"), "{text}");
        assert!(text.chars().count() <= 8_000, "{}", text.chars().count());
        assert!(
            text.contains("- last outcome [first/turn-") && text.contains("\"Deployed to 'staging' only.\""),
            "{text}"
        );
        assert!(text.contains("- failed [first/d1]") && text.contains("- fact [f1]"), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("- ")), "{text}");
    }
    assert!(keys(&place).iter().any(|key| key.starts_with("session-0/") && key.ends_with("-told")), "a receipt");
    let recipe = place.run(&["hook", "--show-recipe"]).ok().stdout;
    assert!(recipe.contains("find facts where"), "{recipe}");
}

#[test]
fn the_place_of_the_memory_is_the_nearest_folder_the_variable_or_the_option() {
    let place = project();
    std::fs::create_dir_all(place.path("a/b")).unwrap();
    let input = r#"{"session":"s","event":"prompt","prompt":"PLACED","cwd":"PLACE/a/b"}"#.replace("PLACED", "hello");
    hook(&place, "generic", &input);
    assert_eq!(recorded(&place).len(), 1);
    for (args, variable, path) in [
        (&["hook", "--for", "generic", "--db", "other/x.holo"][..], None, "other/x.holo"),
        (&["hook", "--for", "generic"], Some("third/y.holo"), "third/y.holo"),
    ] {
        let mut command = place.command(args);
        command.envs(variable.map(|path| ("HOLOTYPE_DB", path)));
        command.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = r#"{"session":"s","event":"prompt","prompt":"hello"}"#;
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
        let database = Holotype::open(place.path(path), Options::read_only()).unwrap();
        assert_eq!(database.snapshot().len(), 1, "{path}");
    }
}
