//! The demo tells its story: both orders, every quote, and what its README and its script say of it.

use crate::command_line::program::Place;

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
    assert_eq!(nearest, ["t56", "t51", "t5", "t24", "t6"]);
    let answers: Vec<String> = section(&text, 3)[2..5].iter().map(|line| words(line, 6)).collect();
    assert_eq!(answers[0], "fare-thu");
    assert_eq!(answers[1..].iter().filter(|key| *key == "t53" || *key == "t54").count(), 2, "{answers:?}");

    for said in [
        "64 traces, 13 recalls, 5 themes",
        "\"Ask me before you pay more than 250 EUR a head for one flight.\" And then:",
        "Thursday, 09:15, the question: What does the flight to Lisbon cost now?",
        "0.854  t56  149 EUR        search_flights failed: 504 after 30 s: page incomplete",
        "t51  141 EUR        fare_watch at version v2: taxes not included",
        "t5   about 160 EUR  a guess of the assistant",
        "t24  204 EUR        two days old",
        "t6   189 EUR        three days old",
        "Kept out: t56, it failed; t51, its version is v2 and the reader's v3; fare-mon and\n   fare-wed, superseded.",
        "268 EUR is above the limit. This agent asks first.",
        "├─ t53  search_flights  text[33..50]  \"268 EUR per adult\"             ce6a5f5d  ok",
        "└─ t54  book            text[56..84]  \"268 EUR each, taxes included\"  b6857279  ok",
        "does not show 168 EUR as evidence. In demo.holo, verify finds nothing.",
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
fn the_database_is_left_behind_and_the_commands_to_go_on_with_work() {
    let (place, text) = told();
    let head = section(&text, 6)[0].split_whitespace().last().unwrap();
    assert_eq!(place.run(&["head", "demo.holo", "--format", "json"]).json()["hash"], head);
    let run = place.run(&["verify", "demo.holo", "--head", head]).ok();
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
    place.run_with(&["repl", "demo.holo"], "count items\n").ok();
}

#[test]
fn nothing_is_overwritten() {
    let (place, _) = told();
    assert!(place.run(&["demo"]).ok().stdout.contains("Its log is now in demo-2.holo:"));
    let names: Vec<_> = std::fs::read_dir(place.path(".")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "the changed copy is gone: {names:?}");
    let run = place.run(&["demo", "demo.holo"]);
    assert_eq!(run.status, 2, "{run:#?}");
    assert!(run.stderr.contains("already exists"), "{run:#?}");
}
