//! `query --batch`: one answer a line, in order, whatever becomes of each.

use crate::command_line::program::{Place, npy};
use serde_json::Value;

#[test]
fn every_line_answers_in_order_and_a_failing_one_makes_the_status_2() {
    let place = Place::new();
    place.write("v.npy", npy(&[&[1.0, 0.0], &[0.0, 1.0]]));
    place.run(&["create", "memory.holo", "--space", "test", "--dim", "2"]).ok();
    place.run_with(
        &["import", "memory.holo", "-", "--vectors", "v.npy"],
        "{\"trace\":{\"key\":\"a\",\"episode\":\"e\",\"kind\":\"turn\",\"fields\":{\"text\":\"the night train\"},\"row\":0}}\n\
         {\"trace\":{\"key\":\"b\",\"episode\":\"e\",\"kind\":\"turn\",\"fields\":{\"text\":\"breakfast\"},\"row\":1}}\n",
    );
    place.write(
        "batch.jsonl",
        "{\"id\":\"q1\",\"statement\":\"recall $q limit 1\",\"params\":{\"q\":{\"text\":\"what?\",\"row\":1}}}\n\
         {\"id\":\"q2\",\"statement\":\"recall near $v limit 1\",\"params\":{\"v\":[1,0]}}\n\
         \n\
         {\"id\":\"q3\",\"statement\":\"recal 'x'\"}\n\
         {\"statement\":\"count traces\",\"params\":{}}\n\
         {\"id\":\"q5\",\"statement\":\"recall $q\",\"params\":{\"q\":{\"text\":\"x\",\"row\":9}}}\n\
         {\"id\":\"q6\",\"statement\":\"find traces where key in $k\",\"params\":{\"k\":[\"b\"]}}\n",
    );
    let run = place.run(&["query", "memory.holo", "--batch", "batch.jsonl", "--vectors", "v.npy"]);
    assert_eq!(run.status, 2, "{run:#?}");
    assert_eq!(run.stderr, "");
    let answers: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<&str> = answers.iter().map(|answer| answer["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["q1", "q2", "q3", "5", "q5", "q6"]);
    assert_eq!(answers[0]["rows"][0]["key"], "b");
    assert_eq!(answers[1]["rows"][0]["key"], "a");
    assert_eq!(answers[2]["error"]["code"], "syntax");
    assert_eq!(answers[3]["rows"][0]["count"], 2);
    assert_eq!((&answers[4]["error"]["line"], &answers[4]["error"]["file"]), (&6.into(), &"batch.jsonl".into()));
    assert!(answers[4]["error"]["message"].as_str().unwrap().contains("no row 9"));
    assert_eq!(answers[5]["rows"][0]["key"], "b");

    let run = place.run(&["query", "memory.holo", "--batch", "batch.jsonl", "--format", "table"]);
    assert_eq!(run.status, 2, "{run:#?}");
    assert!(run.stderr.contains("only --format jsonl fits"), "{run:#?}");
}

#[test]
fn a_batch_that_works_ends_with_0() {
    let place = Place::with_trip();
    let line = "{\"id\":\"m\",\"statement\":\"mark 't1' failed because 'no'\"}\n{\"id\":\"c\",\"statement\":\"count traces where status = failed\"}\n";
    let run = place.run_with(&["query", "memory.holo", "--batch", "-", "--format", "jsonl"], line).ok();
    let last: Value = serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(last["rows"][0]["count"], 2, "a line sees what the lines before it wrote");
}

#[test]
fn each_line_of_a_batch_keeps_to_the_limits() {
    let place = Place::with_trip();
    let lines = "{\"id\":\"much\",\"statement\":\"find traces where text contains 'UA123'\"}\n\
                 {\"id\":\"little\",\"statement\":\"count recalls\"}\n\
                 {\"id\":\"again\",\"statement\":\"find traces where text contains 'UA123'\"}\n";
    let run = place.run_with(&["query", "memory.holo", "--batch", "-", "--max-rows", "1"], lines);
    assert_eq!(run.status, 2, "{run:#?}");
    let answers: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&answers[0]["error"]["code"], &answers[1]["rows"][0]["count"]), (&"limit".into(), &1.into()));
    assert_eq!(answers[2]["error"]["code"], "limit", "each line has the whole limit");
    let run = place.run(&["query", "memory.holo", "--batch", "-", "--timeout", "soon"]);
    assert_eq!(run.status, 2, "{run:#?}");
    assert!(run.stderr.contains("invalid duration"), "{run:#?}");
}
