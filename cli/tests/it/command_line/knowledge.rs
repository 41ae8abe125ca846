//! Learning and its worth, from a shell: `structure`, `ask`, `reflect`, and `rollouts`.

use crate::command_line::program::{Place, Run};
use serde_json::Value;

/// Lines that are the steps of two trajectories.
const TRAJECTORY: &str = concat!(
    r#"{"episode":"shop","goal":"sort the list","observation":"Kaveri Tower is the shop of Mira Holm.","#,
    r#""action":"open the list","subgoal":"open the list","reward":1}"#,
    "\n\n",
    r#"{"observation":"Mira Holm was born in Velmora.","action":"click price","reward":0.5,"#,
    r#""subgoal":"sort the list by price"}"#,
    "\n",
    r#"{"episode":"shop-2","observation":"The lamp costs $40.","action":"buy the lamp","#,
    r#""subgoal":"buy the cheapest lamp"}"#,
    "\n",
);

/// Two runs of a question: the memory of one holds the answer.
const RUNS: &str = concat!(
    r#"{"group":"g","rollout":"a","step":0,"reward":1,"question":"Where was the Velmora built?","#,
    r#""outcome":"Oslo 1994","think":"Look.","call":"search","observation":"The Velmora was built in Oslo in 1994."}"#,
    "\n",
    r#"{"group":"g","rollout":"a","step":1,"mem":"Oslo, 1994.","think":"Done.","call":"none","observation":"Rain."}"#,
    "\n",
    r#"{"group":"g","rollout":"a","step":2,"mem":"Oslo, 1994.","observation":"Wind."}"#,
    "\n",
    r#"{"group":"g","rollout":"b","step":0,"reward":0,"question":"Where was the Velmora built?","#,
    r#""outcome":"Oslo 1994","observation":"The Velmora is a ship."}"#,
    "\n",
    r#"{"group":"g","rollout":"b","step":1,"mem":"A ship.","observation":"Rain."}"#,
    "\n",
    r#"{"group":"g","rollout":"b","step":2,"mem":"A ship.","observation":"Wind."}"#,
    "\n",
);

fn lines(run: &Run) -> Vec<Value> {
    run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn shop() -> Place {
    let place = Place::new();
    place.run(&["create", "memory.holo", "--space", "hashing-v1-256"]).ok();
    place.write("steps.jsonl", TRAJECTORY);
    place.run(&["structure", "memory.holo", "steps.jsonl"]).ok();
    place
}

fn query(place: &Place, statement: &str) -> Value {
    place.run(&["query", "memory.holo", statement, "--format", "json"]).ok().json()
}

#[test]
fn trajectories_are_structured_and_a_question_is_answered_with_citations() {
    let place = shop();
    let count = |thing: &str| query(&place, &format!("count {thing}"))["rows"][0]["count"].as_u64().unwrap();
    assert_eq!(["traces", "facts", "procedures", "intents"].map(count), [3, 3, 3, 3]);
    assert!(count("concepts") >= 2);
    let answer = place.run(&["ask", "memory.holo", "Where was Mira Holm born?", "--format", "json"]).ok().json();
    assert_eq!(answer["mode"], "semantic");
    let (text, cites) = (answer["text"].as_str().unwrap(), answer["cites"].as_array().unwrap());
    assert!(text.contains("Mira Holm was born in Velmora.") && !cites.is_empty(), "{answer}");
    assert!(cites.iter().all(|key| text.contains(&format!("[{}]", key.as_str().unwrap()))), "{answer}");
    let how = place.run(&["ask", "memory.holo", "How do I sort the list by price?"]).ok();
    assert!(how.stderr.contains("procedural memory") && how.stdout.contains("click price"), "{how:#?}");
    let none = place.run(&["ask", "memory.holo", "Zqxv?", "--mode", "semantic", "--episode", "shop-2"]).ok();
    assert!(none.stdout.contains("nothing that is known"), "{none:#?}");
}

#[test]
fn a_step_that_cannot_be_read_names_its_line_and_nothing_is_written() {
    let place = shop();
    for (line, told) in [
        (r#"{"action":"x"}"#, "no `observation`"),
        (r#"{"observation":"x","reward":2}"#, "a reward is a number from 0 to 1, not 2"),
        (r#"{"observation":"x","act":"y"}"#, "unknown member `act`"),
        ("nonsense", "expected"),
    ] {
        place.write("bad.jsonl", format!("{{\"episode\":\"e\",\"observation\":\"Fine.\"}}\n{line}\n"));
        let run = place.run(&["structure", "memory.holo", "bad.jsonl"]);
        assert_eq!(run.status, 2, "{run:#?}");
        assert!(run.stderr.contains("bad.jsonl:2:") && run.stderr.contains(told), "{run:#?}");
    }
    let run = place.run_with(&["structure", "memory.holo", "-"], "{\"observation\":\"x\"}\n");
    assert!(run.status == 2 && run.stderr.contains("--episode ID"), "{run:#?}");
    assert_eq!(query(&place, "count traces")["rows"][0]["count"], 3);
}

#[test]
fn a_fact_that_says_the_same_is_merged_and_another_one_added() {
    let place = shop();
    place.run(&["query", "memory.holo", "record call 'The lamp costs $40 today' in episode 'e' with key = 't1'"]).ok();
    let merged = query(&place, "reflect 'The lamp costs $40 today.' from 't1'");
    assert_eq!(merged["rows"][0]["op"], "merged", "{merged}");
    let key = merged["rows"][0]["key"].as_str().unwrap();
    let sources = query(&place, &format!("sources of '{key}' return key"));
    assert_eq!(sources["rows"].as_array().unwrap().len(), 2, "both pointers: {sources}");
    let added = query(&place, "reflect 'Nobody paints a boat on Tuesdays.' from 't1'");
    assert_eq!(added["rows"][0]["op"], "added", "{added}");
}

#[test]
fn runs_are_scored_for_credit_and_kept() {
    let place = shop();
    place.write("runs.jsonl", RUNS);
    let scored = place.run(&["rollouts", "score", "runs.jsonl"]).ok();
    let [first, second, ..] = &lines(&scored)[..] else { panic!("{scored:#?}") };
    assert_eq!(first["template"], "himpo-1:4616c2c34840bf28");
    assert!(second["s_now"].as_f64() > second["s_prev"].as_f64(), "{second}");
    let credited = place.run_with(&["credit", "-", "--db", "memory.holo", "--keep"], &scored.stdout).ok();
    assert!(lines(&credited)[1]["advantage"].as_f64() > Some(0.0), "{credited:#?}");
    // The database has the runs as they were.
    let from_database = place.run(&["rollouts", "score", "memory.holo"]).ok();
    assert_eq!(from_database.stdout, scored.stdout);
    let prompts = lines(&place.run(&["rollouts", "prompts", "memory.holo"]).ok());
    assert_eq!(prompts.len(), 16, "an empty memory has no token to score");
    let hindsight = prompts[4]["prompt"].as_str().unwrap();
    assert!(prompts[4]["score"] == "log_h" && hindsight.contains("The right answer is: Oslo 1994"), "{hindsight}");
    assert_eq!(prompts[4]["continuation"], "Oslo, 1994.");
}

#[test]
fn blame_lands_on_the_planted_fault() {
    let place = Place::new();
    place.write("runs.jsonl", RUNS);
    for (fault, step, module) in
        [("memory", "1", "memory"), ("tool", "0", "observation"), ("observation", "0", "observation")]
    {
        let faulty = place.run(&["rollouts", "intervene", "runs.jsonl", "--fault", fault, "--step", step]).ok();
        let faulty: String =
            faulty.stdout.lines().filter(|line| line.contains("\"a\"")).map(|line| format!("{line}\n")).collect();
        let args = ["rollouts", "blame", "runs.jsonl", "-", "--format", "json"];
        let blame = place.run_with(&args, &faulty).ok().json();
        let row = &blame["rows"][0];
        assert_eq!(
            (row["module"].as_str(), row["step"].to_string().as_str()),
            (Some(module), step),
            "{fault}: {blame}"
        );
        assert!(row["fall"].as_f64() > Some(0.0) && row["share"].as_f64() <= Some(1.0), "{blame}");
    }
    let none = place.run(&["rollouts", "intervene", "runs.jsonl", "--fault", "memory", "--step", "9"]);
    assert!(none.status == 1 && none.stderr.contains("planted in 0 of 2 runs"), "{none:#?}");
}

#[test]
fn credit_is_measured_and_contexts_are_truncated() {
    let place = Place::new();
    place.write("runs.jsonl", RUNS);
    let measured = place.run(&["rollouts", "measure", "runs.jsonl", "--format", "json"]).ok().json();
    let names: Vec<&str> =
        measured["rows"].as_array().unwrap().iter().filter_map(|row| row["measure"].as_str()).collect();
    let all = "faithful_under_bad_tool over_clean drop_localisation delayed_recovery concentration";
    assert_eq!(names.join(" "), all);
    assert!(measured["rows"][4]["value"].as_f64() > Some(0.0), "{measured}");
    let truncated = |policy: &str, budget: &str| {
        let args = ["rollouts", "truncate", "runs.jsonl", "--budget", budget, "--policy", policy, "--format", "json"];
        place.run(&args).ok().json()["rows"][0].clone()
    };
    assert_eq!(truncated("mem_aware", "1000")["fired"], false);
    let aware = truncated("mem_aware", "20");
    assert_eq!((&aware["fired"], &aware["from_step"]), (&Value::Bool(true), &Value::from(1)), "{aware}");
    let naive = truncated("naive_recency", "20");
    assert!(naive["checkpoint"].is_null() && naive["from_step"].as_u64() >= Some(1), "{naive}");
}

#[test]
fn a_run_that_cannot_be_read_names_its_line() {
    let place = Place::with_trip();
    for (line, told) in [
        (r#"{"rollout":"a","step":0,"reward":1}"#, "no `group`"),
        (r#"{"group":"g","rollout":"a","step":0}"#, "already has step 0 on line 1"),
        (r#"{"group":"g","rollout":"a","step":1,"reward":0}"#, "another reward"),
        (r#"{"group":"g","rollout":"a","step":1,"outcome":"Rome"}"#, "another outcome"),
        (r#"{"group":"g","rollout":"b","step":0}"#, "no line gives the reward of group \"g\", rollout \"b\""),
        (r#"{"group":"g","rollout":"a","step":-1}"#, "whole number"),
    ] {
        place.write("bad.jsonl", format!("{}\n{line}\n", RUNS.lines().next().unwrap()));
        let run = place.run(&["rollouts", "measure", "bad.jsonl"]);
        assert_eq!(run.status, 2, "{run:#?}");
        assert!(run.stderr.contains("bad.jsonl:2:") && run.stderr.contains(told), "{told}: {run:#?}");
    }
    let empty = place.run(&["rollouts", "measure", "memory.holo"]);
    assert!(empty.status == 2 && empty.stderr.contains("--keep"), "{empty:#?}");
}
