//! `holotype audit`: measures of the log, with what a caller's loop counted.

use crate::command_line::program::Place;

/// A trip that was asked about twice: once well, once with the old price.
fn place() -> Place {
    let place = Place::with_trip();
    place.run(&["query", "memory.holo", "recall 'UA123' in episode 'trip-42' limit 1 with receipt"]).ok();
    place.run(&["query", "memory.holo", "mark 't1' failed because 'no'"]).ok();
    place.run(&["query", "memory.holo", "recall 'UA123' in episode 'trip-42' include failed with receipt"]).ok();
    place
}

#[test]
fn the_measures_are_a_table_or_an_object() {
    let place = place();
    let text = place.run(&["audit", "memory.holo"]).ok().stdout;
    assert!(text.starts_with("measure ") && text.contains("epierr_recalls") && text.contains("0.5"), "{text}");
    assert!(text.contains("no costs of steps given"), "{text}");
    let report = place.run(&["audit", "memory.holo", "--format", "json"]).ok().json();
    assert_eq!(report["epierr_recalls"], 0.5, "{report}");
    assert_eq!(report["of"]["epierr_recalls"], 2);
    for name in [
        "epierr_steps",
        "ctu",
        "ctu_per_step",
        "faithfulness",
        "coverage",
        "validity",
        "r_per_step",
        "w_per_step",
        "c_per_episode",
        "p_per_episode",
    ] {
        for part in ["early", "middle", "late"] {
            assert!(report[part].as_object().unwrap().contains_key(name), "{part}.{name}");
        }
        assert!(report.as_object().unwrap().contains_key(name), "{name}");
    }
    for (group, names) in [
        ("epierr", 3),
        ("paths", 4),
        ("tokens", 4),
        ("depth", 2),
        ("latency", 5),
        ("route", 2),
        ("hits", 3),
        ("write_back", 3),
    ] {
        assert_eq!(report[group].as_object().unwrap().len(), names, "{group}");
    }
    assert!(report["latency"]["search"]["p50"].is_null() && !report["notes"].as_array().unwrap().is_empty());
    let statement = place.run(&["query", "memory.holo", "audit in episode 'trip-42'", "--format", "json"]).ok().json();
    assert_eq!(statement["rows"].as_array().unwrap()[1]["value"], 0.5, "{statement}");
}

#[test]
fn costs_come_from_a_file_or_stdin() {
    let place = place();
    let costs = "{\"episode\":\"trip-42\",\"step\":1,\"system\":100,\"history\":20,\"tool\":3,\
                 \"micros\":{\"search\":70}}\n\n\
                 {\"episode\":\"trip-42\",\"step\":2,\"micros\":{\"search\":90,\"expand\":5,\"consolidate\":1}}\n";
    place.write("costs.jsonl", costs);
    let args = ["audit", "memory.holo", "--format", "json", "--episode", "trip-42"];
    let without = place.run(&args).ok().json();
    let report = place.run(&[&args[..], &["--tokens", "costs.jsonl"]].concat()).ok().json();
    assert_eq!(report["ctu"].as_f64().unwrap() - without["ctu"].as_f64().unwrap(), 123.0);
    assert_eq!(report["latency"]["search"]["p50"], 70.0);
    assert_eq!(report["latency"]["search"]["p95"], 90.0);
    let piped = place.run_with(&[&args[..], &["--tokens", "-"]].concat(), costs).ok().json();
    assert_eq!(piped, report);
}

#[test]
fn a_bad_line_is_named_with_its_place() {
    let place = place();
    for (line, why) in [
        ("{\"step\":1}", "no `episode`"),
        ("{\"episode\":\"trip-42\"}", "no `step`"),
        ("{\"episode\":\"trip-42\",\"step\":1,\"user\":1}", "unknown member"),
        ("{\"episode\":\"trip-42\",\"step\":1,\"micros\":{\"gpu\":1}}", "search, expand and consolidate"),
        ("{\"episode\":\"trip-42\",\"step\":1,\"tool\":-1}", "whole number"),
        ("[]", "object"),
    ] {
        place.write("costs.jsonl", format!("\n{line}\n"));
        let run = place.run(&["audit", "memory.holo", "--tokens", "costs.jsonl"]);
        assert_eq!(run.status, 2, "{line}: {run:#?}");
        assert!(run.stderr.contains(why) && run.stderr.contains("costs.jsonl:2:"), "{line}: {run:#?}");
    }
    place.write("costs.jsonl", "{\"episode\":\"nowhere\",\"step\":1}");
    let run = place.run(&["audit", "memory.holo", "--tokens", "costs.jsonl"]);
    assert!(run.status != 0 && run.stderr.contains("no episode 'nowhere'"), "{run:#?}");
    assert!(place.run(&["audit", "memory.holo", "--episode", "x"]).stderr.contains("no episode 'x'"));
}
