//! The demo tells its story: both orders, every quote, and what its README and its script say of it.

use crate::command_line::program::{Place, Run};

/// The demo's output without what differs between runs: the hash of the head, places in the log.
fn told() -> (Place, String) {
    let place = Place::new();
    let run = place.run(&["demo"]);
    assert_eq!((run.status, run.stderr.as_str()), (0, ""), "{run:#?}");
    (place, run.stdout)
}

fn section(text: &str, number: u32) -> Vec<&str> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with(&format!("{number}  ")));
    lines.next().unwrap_or_else(|| panic!("there is no section {number} in {text}"));
    lines.take_while(|line| !line.starts_with(char::is_numeric)).filter(|line| !line.is_empty()).collect()
}

#[test]
fn similarity_walks_into_every_trap_and_governed_recall_into_none() {
    let (_place, text) = told();
    let words = |line: &str, nth: usize| line.split_whitespace().nth(nth).unwrap_or_default().to_owned();

    let nearest: Vec<String> = section(&text, 2).iter().take(5).map(|line| words(line, 1)).collect();
    assert_eq!(nearest, ["t56", "t51", "t5", "t39", "t6"]);
    let answers: Vec<String> = [2, 7].iter().map(|at| words(section(&text, 3)[*at], 6)).collect();
    assert_eq!(answers, ["t53", "fare-thu"]);

    for said in [
        "64 traces, 13 recalls and 5 themes, in 10 transactions",
        "\"Ask me before you pay more than 250 EUR a head for one flight.\" And then:",
        "Thursday, 09:15, the question: What does the flight to Lisbon cost now?",
        "0.854  t56  149 EUR        search_flights failed: 504 after 30 s: page incomplete",
        "t51  141 EUR        fare_watch at version v2: taxes not included",
        "t5   about 160 EUR  a guess of the assistant",
        "t39  231 EUR        one day old",
        "t6   189 EUR        three days old",
        "With a metadata filter, status = success and version = 'v3':",
        "0.447  t39  231 EUR  one day old",
        "0.433  t6   189 EUR  three days old",
        "0.432  t53  268 EUR  of today",
        "earlier (Wed 08:05): 231 EUR  t39",
        "earlier (Mon 08:37): 189 EUR  t6",
        "earlier (Tue 07:50): 204 EUR  t24",
        "earlier (Mon 08:36): about 160 EUR  t5",
        "Kept out: t56, it failed; t51, its version is v2 and the reader's v3; fare-mon and\n   fare-wed, superseded.",
        "268 EUR is above the limit. This agent asks first.",
        "├─ t53  search_flights  text[45..62]  \"268 EUR per adult\"             ce6a5f5d  ok",
        "└─ t54  book            text[56..84]  \"268 EUR each, taxes included\"  b6857279  ok",
        "does not show 168 EUR as evidence. The original has no faults.",
    ] {
        assert!(text.contains(said), "{said} is not in\n{text}");
    }
    let fault = section(&text, 5)[1];
    assert!(fault.contains("log/0000000001.log: log page ") && fault.contains("byte offset"), "{fault}");
    assert!(text.lines().all(|line| line.chars().count() <= 96), "{text}");
}

#[test]
fn the_narrative_is_that_of_the_script() {
    let (_place, text) = told();
    let script = include_str!("../../../demo/script.md");
    let block = script.split("```").nth(1).expect("the script holds what is printed");
    let headings = |text: &str| -> Vec<String> {
        let numbered = text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
        numbered.map(str::to_owned).collect()
    };
    assert_eq!(headings(block), headings(&text));
    for number in [1, 6, 7] {
        let prose = |text: &str| -> Vec<String> {
            let lines = section(text, number).into_iter().map(str::trim).filter(|line| !line.starts_with("commit"));
            lines.map(str::to_owned).collect()
        };
        assert_eq!(prose(block), prose(&text), "section {number}");
    }
}

#[test]
fn the_database_that_is_kept_is_the_one_of_the_story_and_the_commands_to_go_on_with_work() {
    let place = Place::new();
    let text = place.run(&["demo", "--keep", "kept.holo"]).ok().stdout;
    let head = section(&text, 6)[0].split_whitespace().last().unwrap();
    assert_eq!(place.run(&["head", "kept.holo", "--format", "json"]).json()["hash"], head);
    let run = place.run(&["verify", "kept.holo", "--head", head]).ok();
    assert!(run.stdout.contains("no faults") && run.stdout.contains("part of this log's past"), "{run:#?}");

    let go_on = section(&text, 7);
    assert_eq!(go_on.len(), 3);
    for line in &go_on[..2] {
        let (words, statement) = line.trim().strip_prefix("holotype ").unwrap().split_once(" \"").unwrap();
        let mut args: Vec<&str> = words.split(' ').collect();
        args.push(statement.trim_end_matches('"'));
        let run = place.run(&args).ok();
        assert!(run.stdout.contains(" ok"), "{run:#?}");
    }
    place.run_with(&["repl", "kept.holo"], "count items\n").ok();

    let run = place.run(&["demo", "--keep", "kept.holo"]);
    assert_eq!(run.status, 2, "{run:#?}");
    assert!(run.stderr.contains("already exists"), "{run:#?}");
    assert_eq!(names_in(&place, "."), ["kept.holo"], "the changed copy is gone");
}

#[test]
fn nothing_is_left_behind_unless_it_is_to_be_kept() {
    let place = Place::new();
    std::fs::create_dir(place.path("tmp")).unwrap();
    let mut command = place.command(&["demo"]);
    command.env("TMPDIR", place.path("tmp"));
    let run = Run::of(command.output().unwrap()).ok();
    assert!(section(&run.stdout, 7)[0].trim().starts_with("holotype demo --keep "), "{run:#?}");
    assert_eq!(names_in(&place, "."), ["tmp"]);
    assert_eq!(names_in(&place, "tmp"), Vec::<String>::new());
}

#[test]
fn as_json_it_is_one_document_with_the_same_values_and_no_prose() {
    let place = Place::new();
    let told = place.run(&["demo", "--format", "json"]).ok().json();
    let keys = |rows: &serde_json::Value| -> Vec<String> {
        rows.as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(keys(&told["similarity"]), ["t56", "t51", "t5", "t39", "t6"]);
    assert_eq!(keys(&told["similarity_with_filter"]["rows"]), ["t39", "t6", "t53"]);
    assert_eq!(told["similarity"][1]["price"], "141 EUR");
    assert_eq!(told["governed_recall"]["answer"]["rows"][0]["key"], "t53");
    assert_eq!(told["evidence"]["citations"][0]["verdict"], "ok");
    assert_eq!(told["changed_byte"]["shown_as_evidence"], false);
    assert_eq!((&told["head"]["commit"], &told["kept"]), (&10.into(), &serde_json::Value::Null));
    assert_eq!(told["surprises"], serde_json::json!([]));
    let line = place.run(&["demo", "--format", "jsonl"]).ok();
    assert_eq!(line.stdout.lines().count(), 1, "{line:#?}");
    assert_eq!(line.json()["happened"]["events"], told["happened"]["events"]);
}

fn names_in(place: &Place, dir: &str) -> Vec<String> {
    let entries = std::fs::read_dir(place.path(dir)).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
