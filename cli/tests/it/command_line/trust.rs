//! Damage that is known stops writes, receipts are written from every door, and no stored text controls the terminal.

use crate::command_line::program::{Place, Run};

const LOG: &str = "memory.holo/log/0000000001.log";

/// A trip with one byte of the failed search's text changed in the log, behind a sound checkpoint.
fn damaged() -> Place {
    let place = Place::with_trip();
    place.run(&["seal", "memory.holo"]).ok();
    place.run(&["query", "memory.holo", "mark 't3' success because 'yes'"]).ok();
    flip(&place);
    place
}

fn flip(place: &Place) {
    let mut log = place.read(LOG);
    let at = log.windows(9).position(|window| window == b"rice=$120").unwrap();
    log[at - 1] ^= 1;
    place.write(LOG, log);
}

#[test]
fn writes_are_refused_once_damage_is_known_and_reads_go_on() {
    let place = damaged();
    let write = ["query", "memory.holo", "mark 't1' failed because 'no'"];
    assert_eq!(place.run(&["verify", "memory.holo"]).status, 1);
    let refused = place.run(&write);
    assert_eq!(refused.status, 3, "{refused:#?}");
    assert!(refused.stderr.contains("writes are refused") && refused.stderr.contains("log page"), "{refused:#?}");
    place.run(&["query", "memory.holo", "count traces"]).ok();
    // The write stands; only closing still says that the log cannot be read.
    let accepted = place.run(&["query", "memory.holo", write[2], "--accept-damage"]);
    assert!(accepted.stdout.contains("marked") && accepted.stderr.contains("damaged: "), "{accepted:#?}");
    let failed = place.run(&["query", "memory.holo", "count traces where status = failed", "--format", "json"]).json();
    assert_eq!(failed["rows"][0]["count"], 2, "{failed}");
    flip(&place);
    place.run(&["verify", "memory.holo"]).ok();
    place.run(&write).ok();
}

/// `retain` wrote the records of the past again; nothing is left from which to read them once they are zero.
#[test]
fn a_retained_log_with_zeros_is_damaged_at_a_place() {
    let place = Place::with_trip();
    for number in 0..3 {
        place.run(&["query", "memory.holo", &format!("record turn 'sentence {number}' in episode 'e'")]).ok();
    }
    place.run(&["retain", "memory.holo", "--since", "3"]).ok();
    let mut log = place.read(LOG);
    log[4_096..].fill(0);
    place.write(LOG, log);
    for args in [&["verify", "memory.holo"][..], &["query", "memory.holo", "count traces"]] {
        let run = place.run(&[args, &["--format", "json"]].concat());
        let error = run.error();
        assert_eq!((run.status, &error["code"]), (3, &"damaged".into()), "{run:#?}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("0000000001.log: log page 1") && message.contains("holotype salvage"), "{run:#?}");
    }
    let salvaged = place.run(&["salvage", "memory.holo", "rest.holo"]);
    assert!(salvaged.stderr.contains("lost") || salvaged.stdout.contains("lost"), "{salvaged:#?}");
}

#[test]
fn a_receipt_is_written_from_every_door() {
    let place = Place::with_trip();
    place.run(&["query", "memory.holo", "recall 'UA123' with receipt"]).ok();
    place.write("q.jsonl", "{\"id\":\"q1\",\"statement\":\"recall 'UA123' with receipt\"}\n");
    let batch = place.run(&["query", "memory.holo", "--batch", "q.jsonl"]).ok();
    assert!(batch.stdout.contains("\"receipt\":\"rc-2\""), "{batch:#?}");
    place.run_with(&["repl", "memory.holo"], "recall 'UA123' with receipt\n").ok();
    let count = place.run(&["query", "memory.holo", "find receipts", "--format", "json"]).ok().json();
    assert_eq!(count["rows"].as_array().unwrap().len(), 3, "{count}");
    let refused = place.run(&["query", "memory.holo", "recall 'UA123' with receipt", "--read-only"]);
    assert_eq!(refused.status, 2, "{refused:#?}");
    assert!(refused.stderr.contains("open read-only"), "{refused:#?}");
}

#[test]
fn an_audited_read_is_logged_from_every_door_or_refused() {
    let place = Place::with_trip();
    place.run(&["query", "memory.holo", "set audit = reads"]).ok();
    let commit = |place: &Place| place.run(&["head", "memory.holo", "--format", "json"]).json()["commit"].as_u64();
    let before = commit(&place);
    place.run(&["query", "memory.holo", "count traces"]).ok();
    assert_eq!(commit(&place), before, "no answer, no event");
    place.run(&["query", "memory.holo", "recall 'UA123'"]).ok();
    place.write("q.jsonl", "{\"id\":\"q1\",\"statement\":\"recall 'UA123'\"}\n");
    place.run(&["query", "memory.holo", "--batch", "q.jsonl"]).ok();
    assert_eq!(commit(&place), before.map(|commit| commit + 2));
    let refused = place.run(&["query", "memory.holo", "recall 'UA123'", "--read-only"]);
    assert_eq!(refused.status, 2, "{refused:#?}");
    assert!(refused.stderr.contains("audit = reads"), "{refused:#?}");
}

/// Control characters that change colours, move the cursor, set the title or turn the direction of writing.
const OBEYED: &str = "\u{1b}[31mred\u{1b}]0;title\u{7}\rback\u{9b}2J\u{202e}turned\u{2066}x";

fn assert_plain(run: &Run) {
    let obeyed =
        |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    for text in [&run.stdout, &run.stderr] {
        assert!(!text.contains(obeyed), "{run:#?}");
    }
}

#[test]
fn no_stored_text_key_or_message_reaches_the_terminal_to_be_obeyed() {
    let place = Place::new();
    place.run(&["create", "memory.holo"]).ok();
    let text = serde_json::to_string(OBEYED).unwrap();
    let key = serde_json::to_string(&format!("k{OBEYED}")).unwrap();
    let line = format!(
        "{{\"holotype\":{{\"interchange\":1}}}}\n\
         {{\"trace\":{{\"key\":{key},\"episode\":{text},\"step\":1,\"kind\":\"turn\",\"speaker\":{text},\
         \"fields\":{{\"text\":{text}}}}}}}\n\
         {{\"recall\":{{\"key\":\"r1\",\"kind\":\"fact\",\"text\":{text},\"from\":[{{\"key\":{key}}}]}}}}\n"
    );
    place.write("a.jsonl", line);
    assert_plain(&place.run(&["import", "memory.holo", "a.jsonl"]).ok());
    for statement in ["recall 'red'", "find items", "find edges", "verify 'r1'", "history of 'r1'", "sources of 'r1'"] {
        for format in ["table", "markdown"] {
            assert_plain(&place.run(&["query", "memory.holo", statement, "--format", format]));
        }
        let json = place.run(&["query", "memory.holo", statement, "--format", "json"]).ok().json();
        if statement == "find items" {
            assert!(json.to_string().contains("turned"), "{json}");
        }
    }
    let json = place.run(&["query", "memory.holo", "recall 'red' return text", "--format", "json"]).ok().json();
    assert!(json["rows"].to_string().contains("\\u001b[31m"), "JSON keeps what is stored: {json}");
    for args in [
        vec!["query", "memory.holo", "recall 'x' in episode '\u{1b}[31m'"],
        vec!["query", "memory.holo", "find item \u{1b}[31m"],
        vec!["query", "\u{1b}[31m.holo", "count traces"],
        vec!["\u{1b}[31m"],
        vec!["query", "memory.holo", "verify citations in '<memory>A \u{1b}[31m.</memory>'"],
    ] {
        assert_plain(&place.run(&args));
    }
    let proof = place.run(&["prove", "memory.holo", "r1"]).stdout;
    place.write("proof.json", proof);
    let key = place.run(&["key", "memory.holo"]).ok().stdout;
    let checked = place.run(&["check-proof", "proof.json", "--key", key.trim()]).ok();
    assert!(checked.stdout.contains("turned"), "{checked:#?}");
    assert_plain(&checked);
}

/// A copy has the same database id; nothing told the two apart.
#[test]
fn a_copied_directory_says_so_once() {
    let place = Place::new();
    place.run(&["create", "memory.holo"]).ok();
    let (one, other) = (place.path("memory.holo"), place.path("copy.holo"));
    for folder in ["log", "columns", "vectors", "words"] {
        std::fs::create_dir_all(other.join(folder)).unwrap();
    }
    for name in ["LOCK", "catalog.redb", "log/0000000001.log"] {
        std::fs::copy(one.join(name), other.join(name)).unwrap();
    }
    let told = |database: &'static str, statement: &'static str| {
        let ran = place.run(&["query", database, statement]);
        assert_eq!(ran.status, 0, "{ran:#?}");
        ran.stderr.contains("this directory is a copy of another one with the same database id")
    };
    assert!(told("copy.holo", "count traces"));
    assert!(told("copy.holo", "record turn 'here' in episode 'e'"));
    assert!(!told("copy.holo", "record turn 'here' in episode 'e'"));
    assert!(!told("memory.holo", "record turn 'there' in episode 'e'"));
    std::fs::rename(&one, place.path("renamed.holo")).unwrap();
    assert!(!told("renamed.holo", "record turn 'there' in episode 'e'"));
}
