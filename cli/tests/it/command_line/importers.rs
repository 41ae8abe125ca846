//! Files of other programs, imported as a user does: what comes back, with its time, speaker and key, and what a second
//! run, a damaged file or another encoding changes.

use crate::command_line::program::{Place, Run};
use serde_json::Value;
use std::path::Path;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/import/tests/fixtures");

fn fixture(name: &str) -> String {
    format!("{FIXTURES}/{name}")
}

fn new_place() -> Place {
    let place = Place::new();
    place.run(&["create", "m.holo"]).ok();
    place
}

/// Imports and gives the report.
#[track_caller]
fn import(place: &Place, format: &str, path: &str, more: &[&str]) -> (Value, Run) {
    let args = [&["import", "m.holo", "--from", format, path, "--format", "json"], more].concat();
    let run = place.run(&args);
    assert!(run.status <= 1, "{run:#?}");
    (run.json(), run)
}

/// The counts `[read, written, versions, known, skipped, unknown, verified]` of a report.
fn counts(report: &Value) -> [u64; 7] {
    ["read", "written", "versions", "known", "skipped", "unknown", "verified"]
        .map(|name| report[name].as_u64().unwrap_or_else(|| panic!("{report}")))
}

/// The rows of a statement, as JSON.
#[track_caller]
fn rows(place: &Place, statement: &str) -> Vec<Value> {
    let run = place.run(&["query", "m.holo", statement, "--format", "jsonl"]).ok();
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    answer["rows"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
}

#[track_caller]
fn row(place: &Place, key: &str) -> Value {
    let columns = "key, kind, text, episode, time, speaker, source, status, tool, active";
    let found = rows(place, &format!("find items where key = '{key}' return {columns}"));
    assert_eq!(found.len(), 1, "{key}: {found:?}");
    found[0].clone()
}

/// The items that each format gives of its fixture; a second run adds nothing.
#[test]
fn each_format_is_imported_once() {
    for (format, path, more, expected) in [
        ("claude-code", "claude-code", &[][..], [15, 11, 0, 0, 1, 1, 0]),
        ("codex", "codex", &[], [18, 6, 0, 0, 6, 1, 0]),
        ("chatgpt", "chatgpt/conversations.json", &[], [11, 8, 0, 0, 2, 1, 1]),
        ("chatgpt", "chatgpt/export.zip", &[], [11, 8, 0, 0, 2, 1, 1]),
        ("claude", "claude/conversations.json", &[], [2, 4, 0, 0, 0, 0, 0]),
        ("openai", "openai/talk.json", &[], [5, 4, 0, 0, 0, 0, 0]),
        ("openai", "openai/many.jsonl", &[], [4, 3, 0, 0, 1, 0, 0]),
        ("anthropic", "anthropic/talk.json", &[], [4, 5, 0, 0, 0, 0, 0]),
        ("server-memory", "server-memory/memory.jsonl", &[], [4, 5, 0, 0, 0, 1, 0]),
        ("mem0", "mem0/memories.json", &[], [3, 3, 0, 0, 0, 0, 0]),
        ("mif", "mif/memories.mif.json", &[], [3, 2, 0, 0, 1, 0, 0]),
        ("letta", "letta/agent.af", &[], [8, 7, 0, 0, 2, 0, 1]),
        ("markdown", "markdown/notes", &[], [3, 4, 0, 0, 1, 0, 2]),
        ("csv", "csv/chat.csv", &["--zone", "Europe/Zurich"], [4, 2, 0, 0, 2, 0, 0]),
        ("csv", "csv/vectors.csv", &["--map", "text=said,vector=embedding,key=label"], [3, 2, 0, 0, 1, 0, 0]),
        ("whatsapp", "whatsapp/_chat.txt", &["--zone", "Europe/Zurich"], [5, 5, 0, 0, 0, 0, 0]),
        ("whatsapp", "whatsapp/android.txt", &["--zone", "UTC", "--map", "order=dmy"], [2, 2, 0, 0, 0, 0, 0]),
        ("slack", "slack", &[], [5, 4, 0, 0, 0, 1, 0]),
    ] {
        let place = new_place();
        let path = fixture(path);
        let dry = import(&place, format, &path, &[more, &["--dry-run"]].concat()).0;
        let (report, run) = import(&place, format, &path, more);
        assert_eq!(counts(&report), expected, "{format} {path}: {run:#?}");
        assert_eq!(counts(&dry)[..6], expected[..6], "a dry run of {format} {path}");
        let items = stats(&place);
        let (again, run) = import(&place, format, &path, more);
        let [read, written, versions, known, ..] = counts(&again);
        assert_eq!((read, written, versions), (expected[0], 0, 0), "{format} {path}: {run:#?}");
        assert_eq!(known, expected[1], "{format} {path}: {run:#?}");
        assert_eq!(stats(&place), items, "{format} {path}: a second run adds nothing");
        place.run(&["verify", "m.holo"]).ok();
    }
}

fn stats(place: &Place) -> Value {
    let stats = place.run(&["stats", "m.holo", "--format", "json"]).ok().json();
    serde_json::json!([stats["items"], stats["edges"], stats["episodes"]])
}

#[test]
fn a_session_keeps_times_speakers_calls_and_branches() {
    let place = new_place();
    import(&place, "claude-code", &fixture("claude-code"), &[]);
    let session = "7b1d2c3e-0000-4000-8000-000000000001";
    let asked = row(&place, &format!("{session}/00000002-aaaa-4000-8000-000000000000"));
    assert_eq!((&asked["speaker"], &asked["time"]), (&"user".into(), &"2026-01-05T10:00:05Z".into()), "{asked}");
    assert_eq!(asked["episode"], session);
    let call = row(&place, &format!("{session}/toolu_1"));
    assert_eq!((&call["kind"], &call["tool"], &call["status"]), (&"call".into(), &"Bash".into(), &"success".into()));
    assert_eq!(row(&place, &format!("{session}/toolu_2"))["status"], "failed");
    assert_eq!(row(&place, &format!("{session}/toolu_3"))["status"], "unknown", "nobody said how it ended");
    let wrapper = row(&place, &format!("{session}/00000001-aaaa-4000-8000-000000000000"));
    assert_eq!((&wrapper["kind"], &wrapper["source"]), (&"observation".into(), &"system".into()));
    assert_eq!(
        row(&place, &format!("{session}/0000001b-aaaa-4000-8000-000000000000"))["episode"],
        format!("{session}/agent-a1")
    );
    let branch = rows(&place, "find traces where fields.branch contains '0000001' return key, text");
    assert_eq!(branch.len(), 1, "{branch:?}");
    assert_eq!(branch[0]["text"], "Try the day train instead.");
    let arguments = rows(&place, "find traces where fields.arguments contains 'timetable lisbon' return key");
    assert_eq!(arguments.len(), 1, "{arguments:?}");
}

#[test]
fn two_logs_of_one_session_are_one() {
    let place = new_place();
    import(&place, "codex", &fixture("codex"), &[]);
    let id = "0199aaaa-bbbb-7ccc-8ddd-000000000002";
    let said = rows(&place, "find turns return key, text, speaker");
    let texts: Vec<&str> = said.iter().filter_map(|row| row["text"].as_str()).collect();
    assert_eq!(texts.len(), 2, "{said:?}");
    for (call, status) in [("call_1", "success"), ("call_2", "failed"), ("call_3", "unknown")] {
        assert_eq!(row(&place, &format!("{id}/{call}"))["status"], status, "{call}");
    }
    let stopped = rows(&place, "find calls where fields.outcome = 'interrupted' return key");
    assert_eq!(stopped.len(), 1, "{stopped:?}");
}

#[test]
fn the_branches_of_a_conversation_are_episodes() {
    let place = new_place();
    import(&place, "chatgpt", &fixture("chatgpt/export.zip"), &[]);
    let main = row(&place, "chatgpt/conv-bread/a2");
    assert_eq!((&main["episode"], &main["time"]), (&"chatgpt/conv-bread".into(), &"2026-01-05T10:00:20.25Z".into()));
    assert_eq!(row(&place, "chatgpt/conv-bread/a1")["episode"], "chatgpt/conv-bread/branch-a1");
    let call = row(&place, "chatgpt/conv-bread/call");
    assert_eq!((&call["tool"], &call["text"], &call["status"]), (&"python".into(), &"720".into(), &"success".into()));
    assert_eq!(rows(&place, "find facts where not ungrounded return key").len(), 1);
    assert_eq!(rows(&place, "find facts where ungrounded return key").len(), 1);
    let question = ["ask", "m.holo", "How long does sourdough prove?", "--mode", "episodic", "--format", "json"];
    let asked = place.run(&question).ok().json();
    assert!(asked["cites"][0].as_str().unwrap().starts_with("chatgpt/conv-bread/"), "{asked}");
}

/// A fact of another memory is believed only as far as its words were said.
#[test]
fn foreign_facts_cite_what_was_said_or_are_ungrounded() {
    let place = new_place();
    import(&place, "claude-code", &fixture("claude-code"), &[]);
    let (report, _) = import(&place, "mem0", &fixture("mem0/memories.json"), &[]);
    assert_eq!(report["verified"], 1, "{report}");
    let grounded = rows(&place, "find facts where not ungrounded return key");
    assert_eq!(grounded.len(), 1, "{grounded:?}");
    assert_eq!(grounded[0]["key"], "mem0/mem-2");
    let fact = row(&place, "mem0/mem-1");
    assert_eq!((&fact["time"], &fact["episode"]), (&"2026-01-05T10:00:00Z".into(), &"mem0/mara".into()), "{fact}");
    let statement = "recall 'which train takes folding bicycles' through facts 5";
    let cited = place.run(&["query", "m.holo", statement, "--format", "json"]).ok().stdout;
    assert!(cited.contains("mem0/mem-2") && cited.contains("00000007-aaaa"), "{cited}");
    let beside = row(&place, "mem0/mem-1/raw");
    assert_eq!(beside["active"], false, "what a fact was read from is kept, and no recall returns it");
}

#[test]
fn other_text_under_a_known_id_is_a_new_version() {
    let place = new_place();
    let talk = |text: &str| format!("[{{\"role\":\"user\",\"id\":\"m1\",\"content\":\"{text}\"}}]");
    place.write("talk.json", talk("the lamp is green"));
    import(&place, "openai", "talk.json", &[]);
    place.write("talk.json", talk("the lamp is amber"));
    let (report, _) = import(&place, "openai", "talk.json", &[]);
    assert_eq!((&report["written"], &report["versions"]), (&1.into(), &1.into()), "{report}");
    let (again, _) = import(&place, "openai", "talk.json", &[]);
    assert_eq!((&again["written"], &again["known"]), (&0.into(), &1.into()), "{again}");
    place.write("talk.json", talk("the lamp is blue"));
    import(&place, "openai", "talk.json", &[]);
    let lamps = rows(&place, "find turns where text contains 'lamp' return key, text, active");
    let active: Vec<&Value> = lamps.iter().filter(|row| row["active"] == true).collect();
    assert_eq!(active.len(), 1, "{lamps:?}");
    assert_eq!(active[0]["text"], "the lamp is blue");

    let memory = |text: &str, time: &str| {
        format!("{{\"id\":\"f\",\"memory\":\"{text}\",\"created_at\":\"{time}\",\"user_id\":\"u\"}}\n")
    };
    place.write("new.jsonl", memory("the attic is let", "2026-02-01T00:00:00Z"));
    place.write("old.jsonl", memory("the attic is free", "2026-01-01T00:00:00Z"));
    import(&place, "mem0", "old.jsonl", &[]);
    assert_eq!(import(&place, "mem0", "new.jsonl", &[]).0["versions"], 1);
    assert_eq!(import(&place, "mem0", "old.jsonl", &[]).0["known"], 1, "an older statement takes nothing back");
    assert_eq!(row(&place, "mem0/f")["text"], "the attic is let");
}

#[test]
fn a_changed_note_keeps_its_facts_grounded() {
    let place = new_place();
    std::fs::create_dir(place.path("notes")).unwrap();
    place.write("notes/tea.md", "# Tea\n\n- [method] Steep for three minutes\n");
    import(&place, "markdown", "notes", &[]);
    place.write("notes/tea.md", "# Tea\n\nIn a warm pot.\n\n- [method] Steep for three minutes\n");
    let (report, _) = import(&place, "markdown", "notes", &[]);
    assert_eq!((&report["written"], &report["versions"]), (&2.into(), &2.into()), "{report}");
    let (again, _) = import(&place, "markdown", "notes", &[]);
    assert_eq!((&again["written"], &again["known"]), (&0.into(), &2.into()), "{again}");
    let found = rows(&place, "recall 'how long to steep tea' through recalls return key, text");
    assert_eq!(found.len(), 1, "{found:?}");
    place.run(&["verify", "m.holo"]).ok();
}

/// Encodings, line ends, and files that end in the middle.
#[test]
fn one_chat_in_any_encoding_is_the_same_chat() {
    let text = std::fs::read_to_string(fixture("whatsapp/_chat.txt")).unwrap();
    let utf16 = |big: bool| -> Vec<u8> {
        let bytes = |unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() };
        format!("\u{feff}{text}").encode_utf16().flat_map(bytes).collect()
    };
    let place = new_place();
    let forms = [
        text.clone().into_bytes(),
        format!("\u{feff}{text}").into_bytes(),
        text.replace('\n', "\r\n").into_bytes(),
        utf16(false),
        utf16(true),
        text.trim_end().as_bytes().to_vec(),
    ];
    for (at, form) in forms.into_iter().enumerate() {
        place.write("chat.txt", form);
        let (report, run) = import(&place, "whatsapp", "chat.txt", &["--zone", "Europe/Zurich"]);
        let expected = if at == 0 { (5, 0) } else { (0, 5) };
        assert_eq!(
            (report["written"].as_u64().unwrap(), report["known"].as_u64().unwrap()),
            expected,
            "{at}: {run:#?}"
        );
    }
    let mast = rows(&place, "find turns where text contains 'mast' return text, time, speaker");
    assert_eq!(mast[0]["text"], "The mast is in the shed\nbehind the green door.");
    assert_eq!((&mast[0]["time"], &mast[0]["speaker"]), (&"2025-12-30T07:00:00Z".into(), &"Ana".into()));
}

#[test]
fn a_truncated_file_gives_what_precedes_the_cut() {
    let place = new_place();
    for (format, path, name) in [
        ("chatgpt", "chatgpt/conversations.json", "c.json"),
        ("claude", "claude/conversations.json", "d.json"),
        ("codex", "codex/2026/02/01/rollout-2026-02-01T09-00-00-0199aaaa-bbbb-7ccc-8ddd-000000000002.jsonl", "r.jsonl"),
        ("slack", "slack/harbour/2026-05-01.json", "s.json"),
    ] {
        let whole = std::fs::read(fixture(path)).unwrap();
        for cut in [0, 1, whole.len() / 2, whole.len() - 2] {
            place.write(name, &whole[..cut]);
            let (report, run) = import(&place, format, name, &[]);
            let is_empty = cut == 0;
            assert_eq!(run.status == 0, is_empty, "{format} at {cut}: {run:#?}");
            assert_eq!(report["problems"].as_u64().unwrap() > 0, !is_empty, "{format} at {cut}: {run:#?}");
            assert!(is_empty || run.stderr.contains(&format!("{name}:")), "{run:#?}");
        }
        // The whole file brings the rest.
        place.write(name, &whole);
        assert_eq!(import(&place, format, name, &[]).1.status, 0);
    }
    place.run(&["verify", "m.holo"]).ok();
}

#[test]
fn wrong_lines_are_told_with_their_place_and_end_nothing() {
    let place = new_place();
    place.write(
        "s.jsonl",
        "{\"type\":\"user\",\"sessionId\":\"s\",\"uuid\":\"1\",\"message\":{\"role\":\"user\",\"content\":\"one\"}}\n\
         {broken\n\
         {\"type\":\"user\",\"sessionId\":\"s\",\"uuid\":\"2\",\"timestamp\":\"yesterday\",\
         \"message\":{\"role\":\"user\",\"content\":\"two\"}}\n\
         [1]\n",
    );
    let run = place.run(&["import", "m.holo", "--from", "claude-code", "s.jsonl"]);
    assert_eq!(run.status, 1, "{run:#?}");
    for part in [
        "s.jsonl:2: got '{broken', expected JSON",
        "s.jsonl:3: got 'yesterday', expected a time",
        "s.jsonl:4: got a line without `type`",
        "2 written",
    ] {
        assert!(format!("{}{}", run.stdout, run.stderr).contains(part), "{part}: {run:#?}");
    }
    assert!(row(&place, "s/2")["time"].is_null(), "a time that is none is not made up");
}

#[test]
fn times_without_a_zone_and_dates_of_two_readings_are_asked_for() {
    let place = new_place();
    let run = place.run(&["import", "m.holo", "--from", "whatsapp", &fixture("whatsapp/_chat.txt")]);
    assert!(run.status == 2 && run.stderr.contains("expected --zone NAME"), "{run:#?}");
    let args = ["import", "m.holo", "--from", "whatsapp", &fixture("whatsapp/android.txt"), "--zone", "UTC"];
    let run = place.run(&args);
    assert!(run.status == 2 && run.stderr.contains("--map order=dmy or order=mdy"), "{run:#?}");
    import(&place, "csv", &fixture("csv/chat.csv"), &["--zone", "+02:00", "--since", "2026-09-01T06:30:00Z"]);
    let seen = rows(&place, "find turns return key, time, speaker");
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!((&seen[0]["key"], &seen[0]["speaker"]), (&"csv/chat/2".into(), &"assistant".into()));
}

#[test]
fn a_file_without_from_is_named_with_its_command() {
    let place = new_place();
    for (format, path) in [
        ("claude-code", "claude-code/-home-mara-trip/7b1d2c3e-0000-4000-8000-000000000001/subagents/agent-a1.jsonl"),
        ("codex", "codex/2026/02/01/rollout-2026-02-01T09-00-00-0199aaaa-bbbb-7ccc-8ddd-000000000002.jsonl"),
        ("chatgpt", "chatgpt/conversations.json"),
        ("claude", "claude/conversations.json"),
        ("openai", "openai/talk.json"),
        ("anthropic", "anthropic/talk.json"),
        ("server-memory", "server-memory/memory.jsonl"),
        ("mem0", "mem0/memories.json"),
        ("mif", "mif/memories.mif.json"),
        ("letta", "letta/agent.af"),
        ("markdown", "markdown/notes/Gooseneck Kettle.md"),
        ("csv", "csv/chat.csv"),
        ("whatsapp", "whatsapp/_chat.txt"),
        ("slack", "slack/harbour/2026-05-01.json"),
    ] {
        let run = place.run(&["import", "m.holo", &fixture(path)]);
        assert_eq!(run.status, 2, "{run:#?}");
        assert!(run.stderr.contains(&format!("--from {format} ")), "{path}: {run:#?}");
    }
    let run = place.run(&["import", "m.holo", &fixture("chatgpt/export.zip")]);
    assert!(run.status == 2 && run.stderr.contains("is a ZIP"), "{run:#?}");
    let run = place.run(&["import", "m.holo", "--from", "gopher", "x"]);
    assert!(run.status == 2 && run.stderr.contains("expected one of:"), "{run:#?}");
    for format in ["parquet", "langgraph"] {
        let path = fixture("csv/chat.csv");
        let run = place.run(&["import", "m.holo", "--from", format, &path]);
        let feature = if cfg!(feature = "parquet") && cfg!(feature = "langgraph") { "expected" } else { "--features" };
        assert!(run.status == 2 && run.stderr.contains(feature), "{run:#?}");
    }
}

#[cfg(feature = "parquet")]
#[test]
fn a_parquet_table_brings_its_columns_and_vectors() {
    let place = Place::new();
    place.run(&["create", "m.holo", "--dim", "3"]).ok();
    let map = ["--map", "text=said,speaker=who,time=at,key=id,vector=embedding"];
    let path = fixture("parquet/talk.parquet");
    let (report, run) = import(&place, "parquet", &path, &map);
    assert_eq!(counts(&report), [3, 3, 0, 0, 0, 0, 0], "{run:#?}");
    assert_eq!(counts(&import(&place, "parquet", &path, &map).0), [3, 0, 0, 3, 0, 0, 0]);
    let seen = row(&place, "parquet/talk/m2");
    assert_eq!((&seen["time"], &seen["speaker"]), (&"2026-05-01T08:01:00Z".into(), &"assistant".into()));
    let found = rows(&place, "find turns where fields.harbour = 'north' and fields.tons = 12 return text");
    assert_eq!(found[0]["text"], "Which berth is free?");
    let stats = place.run(&["stats", "m.holo", "--format", "json"]).ok().json();
    assert_eq!(stats["vectors"], 3, "{stats}");
    place.write("broken.parquet", "PAR1 no table");
    let run = place.run(&["import", "m.holo", "--from", "parquet", "broken.parquet"]);
    assert!(run.status == 2 && run.stderr.contains("expected a Parquet file"), "{run:#?}");
}

#[cfg(feature = "langgraph")]
#[test]
fn a_store_of_langgraph_brings_its_values() {
    let place = new_place();
    let path = fixture("langgraph/store.db");
    let (report, run) = import(&place, "langgraph", &path, &[]);
    assert_eq!(counts(&report), [3, 3, 0, 0, 0, 0, 0], "{run:#?}");
    assert_eq!(counts(&import(&place, "langgraph", &path, &[]).0), [3, 0, 0, 3, 0, 0, 0]);
    let seen = row(&place, "langgraph/memories.mara/coffee");
    assert_eq!(
        (&seen["text"], &seen["time"]),
        (&"Mara drinks her coffee black".into(), &"2026-03-04T09:00:00Z".into())
    );
    assert_eq!(row(&place, "langgraph/prefs/theme")["text"], "{\"dark\": true}");
    place.write("broken.db", "SQLite format 3\0 and no more");
    let run = place.run(&["import", "m.holo", "--from", "langgraph", "broken.db"]);
    assert!(run.status == 2 && run.stderr.contains("store(prefix, key, value)"), "{run:#?}");
}

/// An export in the format of others comes back: the same texts, times and ids.
#[test]
fn a_document_of_mif_goes_out_and_comes_back() {
    let place = new_place();
    let (report, run) = import(&place, "mif", &fixture("mif/memories.mif.json"), &[]);
    assert_eq!(counts(&report), [3, 2, 0, 0, 1, 0, 0], "{run:#?}");
    let seen = row(&place, "mif/6f1c1f0e-7a4b-4c1e-9d2a-000000000002");
    assert_eq!((&seen["time"], &seen["episode"]), (&"2026-03-05T08:30:00Z".into(), &"mif".into()));
    assert_eq!(row(&place, "mif/6f1c1f0e-7a4b-4c1e-9d2a-000000000001")["episode"], "mif/planner/trip-42");
    place.run(&["query", "m.holo", "record turn 'the train is late' in episode 'e' with key = 't'"]).ok();
    place.run(&["query", "m.holo", "remember fact 'trains are late' from 't' with key = 'r'"]).ok();
    place.run(&["export", "m.holo", "out.mif.json", "--to", "mif"]).ok();
    let document: Value = serde_json::from_slice(&place.read("out.mif.json")).unwrap();
    assert_eq!(document["mif_version"], "2.0");
    let memories = document["memories"].as_array().unwrap();
    let of = |key: &str| memories.iter().find(|memory| memory["external_id"] == key).unwrap();
    let mara = of("mif/6f1c1f0e-7a4b-4c1e-9d2a-000000000001");
    assert_eq!(mara["id"], "6f1c1f0e-7a4b-4c1e-9d2a-000000000001");
    assert_eq!(mara["entities"].as_array().unwrap().len(), 2, "{mara}");
    assert_eq!(of("r")["related_memory_ids"][0], of("t")["id"]);
    for memory in memories {
        for member in ["id", "content", "created_at"] {
            assert!(memory[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {memory}");
        }
    }
    place.run(&["create", "n.holo"]).ok();
    let run = place.run(&["import", "n.holo", "--from", "mif", "out.mif.json", "--format", "json"]).ok();
    assert_eq!(run.json()["written"], memories.len(), "{run:#?}");
    assert_eq!(place.run(&["export", "m.holo", "--to", "mif", "--history"]).status, 2);
}

#[test]
fn standard_input_is_a_file_too() {
    let place = new_place();
    let talk = std::fs::read_to_string(fixture("openai/talk.json")).unwrap();
    let run = place.run_with(&["import", "m.holo", "--from", "openai", "-"], &talk).ok();
    assert!(run.stdout.contains("4 written"), "{run:#?}");
    let missing = place.run(&["import", "m.holo", "--from", "openai", "nowhere.json"]);
    assert!(missing.status == 4 && missing.stderr.contains("nowhere.json"), "{missing:#?}");
    assert!(Path::new(FIXTURES).is_dir());
}

/// An item that was forgotten does not come back with the next run.
#[test]
fn what_was_forgotten_stays_forgotten() {
    let place = new_place();
    import(&place, "openai", &fixture("openai/talk.json"), &[]);
    place.run(&["query", "m.holo", "forget 'openai/talk/5' because 'asked to'"]).ok();
    let (report, run) = import(&place, "openai", &fixture("openai/talk.json"), &[]);
    assert_eq!(report["written"], 0, "{run:#?}");
    assert!(row(&place, "openai/talk/5")["text"].as_str().is_none_or(str::is_empty));
}

#[test]
fn what_an_item_was_read_from_is_kept_and_not_searched() {
    let place = new_place();
    import(&place, "claude-code", &fixture("claude-code"), &[]);
    let found = rows(&place, "recall 'gitBranch' through traces by words return key");
    assert_eq!(found.len(), 0, "{found:?}");
    let exported = place.run(&["export", "m.holo"]).ok().stdout;
    assert!(exported.contains("gitBranch"), "{exported}");
}
