//! `audit --density`: bits of decision a token of memory, from a file.

use crate::command_line::program::Place;

const DECISIONS: &str = r#"{"base":0.25,"mem":1,"tokens":20,"budget":100,"actions":{"base":[0.25,0.75],"mem":[1,0]}}
{"base":0.5,"mem":0.5,"tokens":80,"budget":200}

{"base":0.75,"mem":0.25,"tokens":50,"budget":200,"actions":{"base":[0.75,0.25],"mem":[0.25,0.75],"oracle":[0.5,0.5]}}
"#;

#[test]
fn decisions_have_a_density_and_a_curve() {
    let place = Place::new();
    place.write("decisions.jsonl", DECISIONS);
    let found = place.run(&["audit", "--density", "decisions.jsonl", "--format", "json"]).ok().json();
    // The base rate is 0.5, so that 0.005 is added to each probability.
    let pmi = [(1.005_f64 / 0.255).log2(), 0.0, (0.255_f64 / 0.755).log2()];
    let close = |found: &serde_json::Value, value: f64| (found.as_f64().unwrap() - value).abs() < 1e-12;
    assert!(close(&found["pmi"], pmi.iter().sum()), "{found}");
    assert!(close(&found["density"], pmi.iter().sum::<f64>() / 150.0), "{found}");
    assert_eq!((found["cases"].as_f64(), found["tokens"].as_f64()), (Some(3.0), Some(150.0)));
    assert_eq!(found["efficient_reasoning"], 1.0);
    assert_eq!(found["curve"].as_array().unwrap().len(), 2);
    let second = &found["curve"][1];
    assert!(close(&second["bits"], pmi[2] / 2.0) && close(&second["tokens"], 65.0), "{found}");
    assert!(close(&second["density"], pmi[2] / 130.0), "{found}");
    let table = place.run_with(&["audit", "--density", "-"], DECISIONS).ok().stdout;
    assert!(table.contains("curve.200.bits") && table.contains("active_density"), "{table}");
}

#[test]
fn what_is_wrong_names_its_line() {
    let place = Place::new();
    for (line, told) in [
        (r#"{"base":0.5}"#, "no `mem`"),
        (r#"{"base":0.5,"mem":1.5}"#, "`mem` is no probability"),
        (r#"{"base":0.5,"mem":0.5,"tokens":-1}"#, "whole number"),
        (r#"{"base":0.5,"mem":0.5,"cost":1}"#, "unknown member `cost`"),
        (r#"{"base":0.5,"mem":0.5,"actions":{"base":[0.5,0.4],"mem":[0.5,0.5]}}"#, "does not sum to 1"),
    ] {
        place.write("bad.jsonl", format!("\n{line}\n"));
        let run = place.run(&["audit", "--density", "bad.jsonl", "--format", "json"]);
        let error = run.error();
        assert_eq!((run.status, error["line"].as_u64()), (2, Some(2)), "{run:#?}");
        assert!(error["message"].as_str().unwrap().contains(told), "{error}");
    }
}
