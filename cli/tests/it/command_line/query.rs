//! Answers in every format.

use crate::command_line::program::Place;
use serde_json::Value;

const QUESTION: &str = "recall 'what does UA123 cost?' in episode 'trip-42' limit 2";

#[test]
fn rows_come_with_their_evidence_as_a_tree() {
    let place = Place::with_trip();
    let run = place.run(&["query", "memory.holo", QUESTION]).ok();
    assert!(
        run.stdout.contains("r1  fact, search_flights, trip-42 step 1")
            || run.stdout.contains("r1  fact, trip-42 step 1"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("   └─ t1 text[17..27] \"price=$450\" ok\n"), "{}", run.stdout);
    assert!(run.stdout.contains("   └─ t1 text[0..27] ok\n"), "its own text is not repeated: {}", run.stdout);
    assert!(run.stdout.contains("   similarity 0."), "{}", run.stdout);
    assert!(run.stdout.contains("as of commit 1, read in trip-42, at step 3"), "{}", run.stdout);
    assert!(!run.stdout.contains('\u{1b}'), "no colours in a pipe");
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 100), "{}", run.stdout);

    let mut narrow = place.command(&["query", "memory.holo", QUESTION]);
    let output = narrow.env("COLUMNS", "40").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
}

#[test]
fn an_answer_is_an_envelope_in_json() {
    let place = Place::with_trip();
    let answer = place.run(&["query", "memory.holo", QUESTION, "--format", "json"]).ok().json();
    for member in ["commit", "at", "answerable", "strength", "certificate", "route", "notes", "rows", "micros"] {
        assert!(answer.get(member).is_some(), "{member}: {answer}");
    }
    let rows = answer["rows"].as_array().unwrap();
    let fact = rows.iter().find(|row| row["key"] == "r1").unwrap();
    assert_eq!(fact["citations"][0]["verdict"], "ok");
    assert_eq!(fact["citations"][0]["text"], "price=$450");

    let both = format!("{QUESTION}; count traces");
    let several = place.run(&["query", "memory.holo", &both, "--format", "json"]).ok().json();
    assert_eq!(several[1]["rows"][0]["count"], 3);
    let lines = place.run(&["query", "memory.holo", &both, "--format", "jsonl"]).ok();
    let lines: Vec<Value> = lines.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[1]["verb"]), (2, &"count".into()));
}

#[test]
fn an_answer_is_a_list_and_a_table_in_markdown() {
    let place = Place::with_trip();
    let run = place.run(&["query", "memory.holo", QUESTION, "--format", "markdown"]).ok();
    assert!(run.stdout.starts_with("1. **"), "{}", run.stdout);
    assert!(run.stdout.contains("   - t1 text\\[17..27\\] \"price=$450\" ok\n"), "{}", run.stdout);
    let run =
        place.run(&["query", "memory.holo", "find traces order by step return key, status", "--format", "markdown"]);
    assert_eq!(
        run.ok().stdout,
        "| key | status |\n| --- | --- |\n| t1 | success |\n| t2 | failed |\n| t3 | unknown |\n"
    );
}

#[test]
fn a_citation_in_markdown_is_one_that_a_memory_may_copy() {
    let place = Place::with_trip();
    let tool = "with tool = 'web \"search\"', log_id = 'log 9', step = 7, key = 'w'";
    place.run(&["query", "memory.holo", &format!("record call 'the fare is 45' in episode 'trip-42' {tool}")]).ok();
    let ask = "recall 'what is the fare?' in episode 'trip-42' limit 1";
    let run = place.run(&["query", "memory.holo", ask, "--format", "markdown"]).ok();
    let (_, from) = run.stdout.split_once('`').unwrap();
    let (cite, _) = from.split_once('`').unwrap();
    assert!(cite.starts_with(r#"[[CITE tool="web \"search\"" log="log 9" step=7 field=text start=0 end=14"#), "{cite}");
    let check = "verify citations in $m in episode 'trip-42'";
    let memory = format!("m=<memory>It costs 45. {cite}</memory>");
    let run = place.run(&["query", "memory.holo", check, "--param", &memory]).ok();
    assert!(run.stdout.contains("valid\ncoverage 1.000, validity 1.000"), "{}", run.stdout);
}

#[test]
fn a_stale_first_row_names_the_tool_to_call_again_and_an_empty_answer_what_it_left_out() {
    let place = Place::new();
    place.run(&["create", "memory.holo"]).ok();
    let of = |tool: &str, step: u64, status: &str| {
        format!("in episode 'e' with tool = '{tool}', step = {step}, status = {status}")
    };
    let script = format!(
        "record call 'the fare to Lisbon is 268' {}; record call 'the printer jams' {}",
        of("fares", 3, "success"),
        of("print", 9, "failed"),
    );
    place.run(&["query", "memory.holo", &script]).ok();
    let ask = |statement: &str| place.run(&["query", "memory.holo", statement]).ok().stdout;
    let stale = ask("recall 'what is the fare?' in episode 'e' at step 400");
    assert!(stale.contains("the first row is stale: call fares again, last at step 3\n"), "{stale}");
    let fresh = ask("recall 'what is the fare?' in episode 'e' at step 10");
    assert!(!fresh.contains("stale") && !fresh.contains("left out"), "{fresh}");
    let empty = ask("recall 'does the printer jam?' in episode 'e'");
    assert!(empty.contains("left out: 1 failed\n0 rows"), "{empty}");
}

#[test]
fn no_rows_are_no_error() {
    let place = Place::with_trip();
    let run = place.run(&["query", "memory.holo", "find traces where tool = 'nobody'"]).ok();
    assert_eq!(run.stdout, "no rows\n");
}

#[test]
fn statements_take_parameters_and_come_from_stdin() {
    let place = Place::with_trip();
    let args = ["query", "memory.holo", "-", "--param", "q=UA123", "--param", "n:=1", "--format", "json"];
    let answer = place.run_with(&args, "recall $q\n  limit $n\n").ok().json();
    assert_eq!(answer["rows"].as_array().unwrap().len(), 1);
    let text = "'; mark 't1' failed --";
    place.run(&["query", "memory.holo", "recall $q", "--param", &format!("q={text}")]).ok();
    let failed = place.run(&["query", "memory.holo", "count traces where status = failed", "--format", "json"]).json();
    assert_eq!(failed["rows"][0]["count"], 1, "text never becomes syntax");
}

#[test]
fn a_script_that_fails_writes_nothing() {
    let place = Place::with_trip();
    let run = place.run(&["query", "memory.holo", "mark 't1' failed because 'x'; mark 'nobody' failed because 'x'"]);
    assert_eq!(run.status, 2, "{run:#?}");
    let failed = place.run(&["query", "memory.holo", "count traces where status = failed", "--format", "json"]).json();
    assert_eq!(failed["rows"][0]["count"], 1);
}

#[test]
fn a_text_cannot_take_over_the_terminal() {
    let place = Place::with_trip();
    let write = "record turn $t in episode 'trip-42' with key = 'evil'";
    place.run(&["query", "memory.holo", write, "--param", "t:=\"red \\u001b[31m alert\""]).ok();
    for format in ["table", "markdown"] {
        let run = place.run(&["query", "memory.holo", "find turns return text", "--format", format]).ok();
        assert!(!run.stdout.contains('\u{1b}') && run.stdout.contains("u{1b}"), "{run:#?}");
    }
}

#[test]
fn statements_are_formatted() {
    let place = Place::new();
    let run = place.run_with(&["fmt"], "RECALL  $q LIMIT 5 in episode \"e\" -- why\n").ok();
    assert_eq!(run.stdout, "recall $q in episode 'e' limit 5 -- why\n");
    place.write("ugly.holoq", "count   traces");
    assert_eq!(place.run(&["fmt", "--check", "ugly.holoq"]).status, 1);
    place.write("wrong.holoq", "count traces;\ncuont traces\n");
    let run = place.run(&["fmt", "wrong.holoq"]);
    assert_eq!(run.status, 2, "{run:#?}");
    assert!(run.stderr.starts_with("wrong.holoq:\nerror[syntax]") && run.stderr.contains("--> 2:1"), "{run:#?}");
}

#[test]
fn a_statement_keeps_to_its_limits() {
    let place = Place::with_trip();
    let find = "find traces where text contains 'UA123'";
    for (option, value, status) in [
        ("--max-rows", "1", 5),
        ("--max-rows", "1000", 0),
        ("--max-memory", "1", 5),
        ("--max-memory", "64M", 0),
        ("--timeout", "0ms", 5),
        ("--timeout", "1m", 0),
        ("--timeout", "soon", 2),
        ("--max-memory", "much", 2),
    ] {
        let run = place.run(&["query", "memory.holo", find, option, value, "--format", "json"]);
        assert_eq!(run.status, status, "{option} {value}: {run:#?}");
        if status == 5 {
            assert_eq!(run.error()["code"], "limit", "{run:#?}");
        }
    }
}
