//! `loop`: the memory of an agent over standard input and output.

use crate::command_line::program::Place;
use serde_json::Value;

#[test]
fn requests_of_a_text_are_answered_and_json_lines_are_steps() {
    let place = Place::new();
    place.run(&["create", "memory.holo"]).ok();
    let early = place.run_with(&["loop", "memory.holo", "--episode", "new"], "<recall>price</recall>\n").ok();
    assert_eq!(early.stdout, "<memory></memory>\n", "an episode may be asked before anything happened in it");
    let input = "{\"observation\":\"UA123 price=$450\",\"tool\":\"search\",\"status\":\"success\",\"step\":1}\n\
                 I need <recall>price of UA123</recall>, please.\n\
                 {\"observation\":\"It rains.\",\"step\":300,\"request\":\"price of UA123\"}\n\
                 nothing asked\n";
    let run = place.run_with(&["loop", "memory.holo", "--episode", "trip"], input).ok();
    let lines: Vec<&str> = run.stdout.lines().collect();
    let [written, answered, read, plain] = lines[..] else { panic!("{run:#?}") };
    assert_eq!(serde_json::from_str::<Value>(written).unwrap()["done"][0], "WRITE");
    assert!(answered.starts_with("I need <memory>UA123 price=$450 [[CITE tool=search log=trip step=1"), "{answered}");
    assert!(answered.ends_with("</memory>, please."), "{answered}");
    let read: Value = serde_json::from_str(read).unwrap();
    assert_eq!((&read["done"][0], &read["refresh"]["tool"]), (&"READ".into(), &"search".into()), "{read}");
    assert_eq!(plain, "nothing asked");
    let wrong = place.run_with(&["loop", "memory.holo", "--episode", "trip"], "{\"colour\":\"red\"}\n");
    assert!(wrong.status != 0 && wrong.stderr.contains("unknown member `colour`"), "{wrong:#?}");
    let nowhere = place.run(&["ask", "memory.holo", "What does UA123 cost?", "--model", "not a url"]);
    assert!(nowhere.status != 0 && nowhere.stdout.is_empty(), "{nowhere:#?}");
}

#[test]
fn a_step_keeps_its_time_and_speaker() {
    let place = Place::new();
    place.run(&["create", "memory.holo"]).ok();
    let line = concat!(
        r#"{"episode":"chat","observation":"I moved to Oslo.","speaker":"Ann","source":"user","#,
        r#""time":"2026-01-06T00:00:00Z"}"#
    );
    place.run_with(&["structure", "memory.holo", "-"], line).ok();
    let found =
        place.run(&["query", "memory.holo", "find traces return speaker, source, time", "--format", "json"]).ok();
    let row = &found.json()["rows"][0];
    assert_eq!((&row["speaker"], &row["source"]), (&"Ann".into(), &"user".into()), "{row}");
    assert!(row["time"].as_str().is_some_and(|time| time.starts_with("2026-01-06")), "{row}");
    let wrong = place.run_with(&["structure", "memory.holo", "-"], &line.replace("2026-01-06T00:00:00Z", "soon"));
    assert!(wrong.status != 0 && wrong.stderr.contains("<stdin>:1:91"), "{wrong:#?}");
}
