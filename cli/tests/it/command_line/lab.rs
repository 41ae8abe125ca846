//! `lab tables`: the shape of the papers' tables from a database and the log of a run.

use crate::command_line::program::Place;
use serde_json::Value;
use std::collections::BTreeMap;

const LOG: &str = include_str!("../../../../docs/lab.md");

/// The lines of the log that the document shows.
fn log() -> String {
    LOG.split("```jsonl\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap().to_owned()
}

fn place() -> Place {
    let place = Place::new();
    place.run(&["create", "memory.holo"]).ok();
    let script = "set audit = reads;
        record call 'search(flight UA123): price = $280' in episode 'e1'
            with tool = 'search', step = 1, status = success;
        record call 'search(flight UA123): price = $450' in episode 'e1'
            with tool = 'search', step = 2, status = success;
        record turn 'The ferry to Naxos leaves at nine.' in episode 'e2' with step = 1;
        close episode 'e2';
        remember summary 'A ferry leaves.' from page 'e2/p1'";
    place.run(&["query", "memory.holo", script]).ok();
    for question in [
        "recall 'price of UA123' in episode 'e1' limit 1 with receipt",
        "recall 'When does the ferry leave?' in episode 'e2' escalate always with receipt",
    ] {
        place.run(&["query", "memory.holo", question]).ok();
    }
    place.write("run.jsonl", log());
    place
}

#[test]
fn every_table_of_the_papers_has_its_columns() {
    let place = place();
    let run = place.run(&["lab", "tables", "memory.holo", "--run", "run.jsonl", "--format", "jsonl"]).ok();
    let tables: BTreeMap<String, Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|table| (table["table"].as_str().unwrap().to_owned(), table["rows"].clone()))
        .collect();
    let names: Vec<&str> = tables.keys().map(String::as_str).collect();
    assert_eq!(names.len(), 15, "{names:?}");
    let helm = &tables["helm-1"][0];
    assert_eq!((&helm["variant"], &helm["SR GAIA (L2)"]), (&"A1".into(), &1.0.into()), "{helm}");
    assert!(helm["CTU"].as_f64().unwrap() > 1220.0, "costs and what was retrieved: {helm}");
    assert_eq!(helm["EpiErr"], 0.0, "{helm}");
    assert_eq!(tables["helm-13"][0]["R/step"], 0.5, "one read, two steps: {}", tables["helm-13"]);
    assert_eq!(tables["helm-14"][0]["Total ms"], 1932.0, "{}", tables["helm-14"]);
    let routed = &tables["tiermem-4"][0];
    assert_eq!((&routed["R-rate"], &routed["Acc.@R"]), (&1.0.into(), &1.0.into()), "{routed}");
    assert!(routed["Tok_in"].as_f64().unwrap() > 0.0, "from the database: {routed}");
    assert_eq!(tables["tiermem-8"][0]["ADD"], 720, "{}", tables["tiermem-8"]);
    assert_eq!(tables["tiermem-13"][2]["category"], "S_wrong_R_correct", "{}", tables["tiermem-13"]);
    assert_eq!(tables["tiermem-13"][2]["correct"], 1);
    assert_eq!((&tables["plugmem-7"][0]["EM"], &tables["plugmem-7"][0]["F1"]), (&1.0.into(), &1.0.into()));
    assert!(tables["plugmem-3"][0]["Info. density"].as_f64().unwrap() > 0.0);
    assert!(tables["plugmem-14"].as_array().unwrap().len() > 2, "{}", tables["plugmem-14"]);
    let himpo = tables["himpo-3"].as_array().unwrap();
    assert_eq!((&himpo[0]["Avg. EM"], &himpo[0]["vs. MemPO"]), (&1.0.into(), &100.0.into()), "{himpo:?}");
    assert_eq!(tables["himpo-4"].as_array().unwrap().len(), 5);
}

#[test]
fn one_table_can_be_asked_for_and_bad_lines_are_told() {
    let place = place();
    let args = ["lab", "tables", "memory.holo", "--run", "run.jsonl", "--table", "helm-2"];
    let run = place.run(&args).ok();
    assert!(run.stdout.starts_with("HELM Table 2: controller ablation\n"), "{}", run.stdout);
    assert!(!run.stdout.contains("Table 13"), "{}", run.stdout);
    for (line, why) in [
        ("{}", "a line has one name"),
        ("{\"poem\":{}}", "unknown name \"poem\""),
        ("{\"route\":{\"system\":\"x\",\"colour\":1}}", "no member \"colour\""),
        ("{\"episode\":{}}", "needs a text `id`"),
    ] {
        place.write("bad.jsonl", format!("\n{line}\n"));
        let run = place.run(&["lab", "tables", "memory.holo", "--run", "bad.jsonl"]);
        assert!(run.status == 2 && run.stderr.contains(why) && run.stderr.contains("bad.jsonl:2:1"), "{run:#?}");
    }
    let run = place.run(&["lab", "tables", "memory.holo", "--run", "run.jsonl", "--table", "helm-9"]);
    assert!(run.status == 2 && run.stderr.contains("no table \"helm-9\""), "{run:#?}");
}
