//! Counterfactual replay: which answers rest on a source, answered by taking it away.

use holotype::answer::{Answer, Output, Table};
use holotype::query::Params;
use holotype::{AnswerChange, Holotype, Options};
use holotype_storage::vfs::SimVfs;
use std::sync::Arc;

const STORY: &str = "
    record call 'search(flight UA123): price = $450' in episode 'trip'
        with key = 't1', tool = 'search', status = success;
    record turn 'Ann likes to fly with UA123.' in episode 'trip' with key = 't2';
    record call 'The hotel Aria has a blue door.' in episode 'trip' with key = 't3', tool = 'book', status = success;
    remember fact 'UA123 costs 450 dollars.' from 't1' with key = 'r1';
    remember fact 'Ann likes UA123, which costs 450 dollars.' from 't1', 't2' with key = 'r2'";

fn database() -> Holotype {
    let database = Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", Options::default()).unwrap();
    database.query(STORY, &Params::new()).unwrap();
    database.query("recall 'What does UA123 cost?' through facts 5 limit 5 with receipt", &Params::new()).unwrap();
    database.query("recall 'Which door has Aria?' through traces 1 limit 1 with receipt", &Params::new()).unwrap();
    database
}

fn run(database: &Holotype, script: &str) -> Output {
    database.query(script, &Params::new()).unwrap_or_else(|error| panic!("{script}: {error}")).pop().unwrap()
}

fn answer(database: &Holotype, script: &str) -> Answer {
    match run(database, script) {
        Output::Answer(answer) => *answer,
        other => panic!("{script}: {other:?}"),
    }
}

fn table(database: &Holotype, script: &str) -> Table {
    match run(database, script) {
        Output::Table(table) => table,
        other => panic!("{script}: {other:?}"),
    }
}

fn cells(table: &Table) -> Vec<Vec<String>> {
    let cell = |cell: &Option<holotype::cell::Cell>| cell.as_ref().map_or("-".to_owned(), ToString::to_string);
    table.rows.iter().map(|row| row.iter().map(cell).collect()).collect()
}

#[test]
fn an_answer_without_a_source_lacks_what_rests_on_it_alone() {
    let database = database();
    let head = database.head();
    let keys = |answer: &Answer| answer.rows.iter().map(|row| row.key.clone()).collect::<Vec<_>>();
    let without = answer(&database, "replay 'rc-1' without 't1'");
    assert_eq!(keys(&without), ["r2"], "r2 has another source");
    assert_eq!(without.without, ["t1"]);
    assert_eq!(without.notes[0], "without t1 receipt rc-1 has other rows; gone: r1");
    let without = answer(&database, "replay 'rc-1' without 't1', 't2'");
    assert!(without.rows.is_empty());
    let without = answer(&database, "replay 'rc-1' without 't3'");
    assert_eq!(without.notes[0], "without t3 the answer of receipt rc-1 is the same");
    assert_eq!(database.head(), head, "nothing is written");
    // The state itself is as it was, and later commits change nothing about the answer of an earlier one.
    database.query("mark 't2' failed; record turn 'UA123 costs a lot.' in episode 'trip'", &Params::new()).unwrap();
    assert_eq!(keys(&answer(&database, "replay 'rc-1' without 't1'")), ["r2"]);
    assert!(answer(&database, "replay 'rc-1'").notes[0].contains("byte for byte"));
}

#[test]
fn the_last_answers_that_change_are_named() {
    let database = database();
    let told = table(&database, "replay last 20 without 't3'");
    let rows = cells(&told);
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0][0].as_str(), rows[0][4].as_str()), ("rc-2", "t3"));
    assert_eq!((rows[1][0].as_str(), rows[1][3].as_str()), ("rc-1", "none"));
    assert_eq!(told.notes, ["answers that change: 1 of 2"]);
    assert_eq!(cells(&table(&database, "replay last 1 without episode 'trip'")).len(), 1);
    // A forgetting and a pruning say it ahead.
    for statement in ["explain forget 't3' because 'asked'", "explain prune traces to 0"] {
        let notes = table(&database, statement).notes.join("; ");
        assert!(notes.contains("these of the newest answers with receipts change, of 2: rc-2"), "{statement}: {notes}");
    }
    let refused = database.query("replay last 2 without each", &Params::new()).unwrap_err().to_string();
    assert!(refused.contains("one answer"), "{refused}");
    assert!(database.query("replay 'rc-9' without 't1'", &Params::new()).unwrap_err().to_string().contains("rc-9"));
}

#[test]
fn blame_is_an_intervention_on_each_source() {
    let database = database();
    let rows = cells(&table(&database, "replay 'rc-1' without each"));
    let keys: Vec<&str> = rows.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(keys, ["t1", "t2"], "what changes most is first");
    assert_eq!((rows[0][3].as_str(), rows[0][4].as_str()), ("rows", "r1"));
    let blamed = database.snapshot().blame_answer("rc-1").unwrap();
    assert!(blamed.windows(2).all(|pair| pair[0].1.change >= pair[1].1.change));
    assert!(blamed.iter().all(|(_, without)| without.change <= AnswerChange::Answerable));
}

#[test]
fn an_answer_that_might_have_been_is_no_read() {
    let database = database();
    database.query("set audit = reads", &Params::new()).unwrap();
    let head = database.head();
    answer(&database, "replay 'rc-1' without 't1'");
    assert_eq!(database.head(), head);
}
