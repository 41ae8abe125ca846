//! `holotype judge`: decisions labelled in the database that made them, exported, fitted to, and decided by.

use crate::command_line::program::Place;

#[test]
fn decisions_are_labelled_exported_fitted_and_used() {
    let place = Place::with_trip();
    place.run(&["query", "memory.holo", "set audit = reads"]).ok();
    for _ in 0..2 {
        place.run(&["query", "memory.holo", "recall 'UA123' escalate with receipt"]).ok();
    }
    let labels = "{\"route\":\"rc-1\",\"c_s\":false,\"c_r\":true}\n{\"route\":\"rc-2\",\"c_s\":true,\"c_r\":true}\n";
    place.write("labels.jsonl", labels);
    let told = place.run(&["judge", "label", "memory.holo", "labels.jsonl"]).ok().stdout;
    assert_eq!(told, "2 routed recalls labelled\n");
    let report = place.run(&["audit", "memory.holo", "--format", "json"]).ok().json();
    assert_eq!(report["of"]["reward"], 2, "{report}");
    place.run(&["export", "memory.holo", "router.jsonl", "--training", "router"]).ok();
    let told = place.run(&["judge", "fit", "router.jsonl", "-o", "judge.json"]).ok().stdout;
    assert!(told.starts_with("fitted to 2 labels: reward "), "{told}");
    place.run(&["judge", "use", "memory.holo", "judge.json"]).ok();
    let fitted = place.run(&["judge", "fit", "router.jsonl", "-o", "judge.json", "--threshold", "0"]).ok();
    assert!(fitted.stdout.contains("0 % escalated"), "{}", fitted.stdout);
    place.run(&["judge", "use", "memory.holo", "judge.json"]).ok();
    let answer = place.run(&["query", "memory.holo", "recall 'UA123' escalate", "--format", "json"]).ok().json();
    assert_eq!(answer["router"]["decided"], "answer", "{answer}");
    place.run(&["judge", "use", "memory.holo", "built-in"]).ok();
}

#[test]
fn what_is_wrong_is_said_with_its_line_and_changes_nothing() {
    let place = Place::with_trip();
    let head = place.run(&["head", "memory.holo"]).ok().stdout;
    for (content, says) in [
        ("{\"route\":\"rc-9\",\"c_s\":true,\"c_r\":true}\n", "rc-9"),
        ("{\"route\":\"rc-1\",\"c_s\":1}\n", "labels.jsonl"),
        ("\n{\"route\":\"rc-1\",\"c_s\":true}\n", "no `c_r`"),
        ("{\"magic\":1}\n", "unknown member"),
    ] {
        place.write("labels.jsonl", content);
        let failed = place.run(&["judge", "label", "memory.holo", "labels.jsonl"]);
        assert_eq!(failed.status, 2, "{content}: {}", failed.stderr);
        assert!(failed.stderr.contains(says), "{content}: {}", failed.stderr);
    }
    for (content, says) in [
        ("{}\n", "`signals` must be an object"),
        ("{\"signals\":{\"magic\":1},\"c_s\":true,\"c_r\":true}\n", "unknown signal"),
        ("{\"signals\":{},\"c_s\":true,\"c_r\":true}\n", "labels of both sorts"),
    ] {
        place.write("labels.jsonl", content);
        let failed = place.run(&["judge", "fit", "labels.jsonl", "-o", "judge.json"]);
        assert_eq!(failed.status, 2, "{content}: {}", failed.stderr);
        assert!(failed.stderr.contains(says), "{content}: {}", failed.stderr);
    }
    place.write("judge.json", "{\"bias\":\"x\"}");
    assert_eq!(place.run(&["judge", "use", "memory.holo", "judge.json"]).status, 2);
    assert_eq!(place.run(&["head", "memory.holo"]).ok().stdout, head);
}
