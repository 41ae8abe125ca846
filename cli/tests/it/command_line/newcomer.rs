//! The first hour with the program: messages name the cause and the remedy, counts and ages are readable, and help fits
//! the terminal.

use crate::command_line::program::{Place, Run};

#[test]
fn an_unknown_column_is_never_answered_with_itself_and_the_columns_are_listed() {
    let place = Place::with_trip();
    let run = place.run(&["query", "memory.holo", "find traces return key, fields"]);
    assert_eq!(run.status, 2, "{run:#?}");
    assert!(run.stderr.contains("items have no column `fields`"), "{run:#?}");
    assert!(!run.stderr.contains("did you mean `fields`"), "{run:#?}");
    assert!(run.stderr.contains("`key`, `layer`") && run.stderr.contains("name the field: fields.price"), "{run:#?}");
    place.run(&["query", "memory.holo", "find traces return key, fields.price"]).ok();
}

#[test]
fn a_line_that_is_not_json_is_called_that_with_its_place() {
    let place = Place::with_trip();
    place.write("notes.jsonl", "{\"commit\":{\"number\":1,\"time\":\"2026-01-05T10:07:00Z\"}}\nnot json\n");
    let run = place.run(&["import", "memory.holo", "notes.jsonl"]);
    assert_eq!(run.status, 2, "{run:#?}");
    assert!(run.stderr.contains("notes.jsonl:2:1: this line is not JSON; expected an object such as"), "{run:#?}");
    assert!(run.stderr.contains("hint: ") && run.stderr.contains("one JSON object a line"), "{run:#?}");
    place.write("notes.jsonl", "[1]\n");
    let run = place.run(&["import", "memory.holo", "notes.jsonl"]);
    assert!(run.stderr.contains("notes.jsonl:1:1: this line is an array; expected an object"), "{run:#?}");
}

#[test]
fn help_and_quit_need_no_dot_in_a_session() {
    let place = Place::with_trip();
    let run = place.run_with(&["repl", "memory.holo"], "help\nHELP find;\ncount traces\nexit\ncount recalls\n").ok();
    assert!(run.stdout.contains("lineage") && run.stdout.contains("count traces by tool"), "{run:#?}");
    assert_eq!(run.stdout.lines().filter(|line| *line == "count").count(), 1, "nothing runs after exit: {run:#?}");
    let run = place.run_with(&["repl", "memory.holo"], "quit\nnonsense\n");
    assert_eq!((run.status, run.stdout.as_str()), (0, ""), "{run:#?}");
}

#[test]
fn the_id_of_a_receipt_is_shown_and_can_be_replayed() {
    let place = Place::with_trip();
    let run = place.run(&["query", "memory.holo", "recall 'UA123' with receipt"]).ok();
    assert!(run.stdout.trim_end().ends_with(", receipt rc-1"), "{run:#?}");
    let listed = place.run(&["query", "memory.holo", "find receipts"]).ok();
    assert!(listed.stdout.contains("rc-1"), "{listed:#?}");
    let again = place.run(&["query", "memory.holo", "replay 'rc-1'"]).ok();
    assert!(again.stdout.contains("byte for byte"), "{again:#?}");
}

#[test]
fn ages_are_readable_as_text_and_exact_as_json() {
    let place = Place::with_trip();
    let statement = "find traces where key = 't1' at time '2026-01-05T10:06:13.853094Z' return age";
    let run = place.run(&["query", "memory.holo", statement]).ok();
    assert!(run.stdout.lines().any(|line| line == "6m 13s"), "{run:#?}");
    let json = place.run(&["query", "memory.holo", statement, "--format", "json"]).json();
    assert_eq!(json["rows"][0]["age"], "373853094us");
}

#[test]
fn a_conflict_names_the_key_of_the_newer_item() {
    let place = Place::with_trip();
    let claims = "record call 'the fare is 450' in episode 'trip-42' claims 'fare' = 450
                    with key = 'old', time = '2026-01-05T10:06:00Z';
                  record call 'the fare is now 500' in episode 'trip-42' claims 'fare' = 500
                    with key = 'price', time = '2026-01-05T10:09:00Z'";
    place.run(&["query", "memory.holo", claims]).ok();
    let run = place.run(&["query", "memory.holo", "recall 'the fare' lines none"]).ok();
    assert!(run.stdout.contains("item 'price' contradicts it"), "{run:#?}");
    assert!(!run.stdout.contains("item #"), "{run:#?}");
}

#[test]
fn compacting_never_makes_a_database_larger() {
    let place = Place::with_trip();
    let compact = || place.run(&["compact", "memory.holo", "--format", "json"]).ok().json();
    let first = compact();
    assert!(first["after"].as_u64() <= first["before"].as_u64(), "{first}");
    for _ in 0..3 {
        let again = compact();
        assert!(again["after"].as_u64() <= again["before"].as_u64(), "{again}");
        assert_eq!(again["skipped"], true, "{again}");
    }
    let run = place.run(&["compact", "memory.holo"]).ok();
    assert!(run.stdout.starts_with("nothing to gain: "), "{run:#?}");
    assert_eq!(place.run(&["verify", "memory.holo", "--format", "json"]).ok().json()["clean"], true);
}

#[test]
fn the_statement_verify_says_what_it_did_not_check_and_its_verdict() {
    let place = Place::with_trip();
    let run = place.run(&["query", "memory.holo", "verify log"]).ok();
    let mut last = run.stdout.lines().rev();
    assert_eq!(last.next(), Some("no faults, up to commit 1"), "{run:#?}");
    assert!(last.next().is_some_and(|line| line.starts_with("not checked: ")), "{run:#?}");
    let json = place.run(&["query", "memory.holo", "verify log", "--format", "json"]).ok().json();
    assert_eq!((&json["failed"], &json["notes"][1]), (&false.into(), &"no faults, up to commit 1".into()), "{json}");
    let run = place.run(&["query", "memory.holo", "verify 'r1'"]).ok();
    assert!(run.stdout.ends_with("no faults\n"), "{run:#?}");
}

#[test]
fn a_record_in_a_closed_episode_is_kept_and_says_so() {
    let place = Place::with_trip();
    place.run(&["query", "memory.holo", "close episode 'trip-42'"]).ok();
    let statement = "record turn 'one more thing' in episode 'trip-42' with key = 'late'";
    let run = place.run(&["query", "memory.holo", statement]).ok();
    assert!(run.stdout.contains("episode 'trip-42' is closed"), "{run:#?}");
    let kept = place.run(&["query", "memory.holo", "find traces where key = 'late'"]).ok();
    assert!(kept.stdout.contains("one more thing"), "{kept:#?}");
    let run = place.run(&["query", "memory.holo", "record turn 'new' in episode 'trip-43'"]).ok();
    assert!(!run.stdout.contains("closed"), "{run:#?}");
}

#[test]
fn help_fits_the_terminal_and_breaks_no_word() {
    let place = Place::new();
    let help = |columns: &str, command: &str| -> String {
        let args: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let mut run = place.command(&args);
        run.env("COLUMNS", columns);
        Run::of(run.output().unwrap()).ok().stdout
    };
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let commands = "create import export query repl verify stats audit graph head prove check-proof key checkpoint \
                    seal compact retain backup salvage rebuild credit fmt completions demo";
    for command in std::iter::once("").chain(commands.split_whitespace()) {
        let whole = words(&help("1000", command));
        for columns in ["80", "100"] {
            let text = help(columns, command);
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(widest <= columns.parse().unwrap(), "{command} at {columns}: {widest}\n{text}");
            assert_eq!(words(&text), whole, "{command} at {columns}");
        }
    }
}

#[test]
fn counts_and_nouns_agree() {
    let place = Place::new();
    place.run(&["create", "memory.holo"]).ok();
    let line =
        "{\"trace\":{\"key\":\"t1\",\"episode\":\"e\",\"step\":1,\"kind\":\"turn\",\"fields\":{\"text\":\"hello\"}}}\n";
    place.write("one.jsonl", line);
    let run = place.run(&["import", "memory.holo", "one.jsonl"]).ok();
    assert!(run.stdout.starts_with("1 line added in 1 transaction, "), "{run:#?}");
    assert!(run.stderr.contains("1 text without a vector"), "{run:#?}");
    place.run(&["query", "memory.holo", "record turn 'again' in episode 'e'"]).ok();
    let run = place.run(&["verify", "memory.holo"]).ok();
    assert!(run.stdout.contains(", 2 transactions, 2 items, "), "{run:#?}");
    let run = place.run(&["export", "memory.holo", "all.jsonl", "--vectors", "all.npy"]).ok();
    assert!(run.stderr.contains(" and 2 vectors written"), "{run:#?}");
}

#[test]
fn a_head_that_is_not_in_the_log_is_the_verdict() {
    let place = Place::with_trip();
    let wrong = "0".repeat(64);
    let run = place.run(&["verify", "memory.holo", "--head", &wrong]);
    assert_eq!(run.status, 1, "{run:#?}");
    assert!(!run.stdout.contains("no faults"), "{run:#?}");
    let last = run.stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("the head given is not in this log: "), "{run:#?}");
    let run = place.run(&["verify", "memory.holo", "--head", &format!("9:{wrong}")]);
    assert!(run.status == 1 && run.stdout.contains("rolled back"), "{run:#?}");
}
