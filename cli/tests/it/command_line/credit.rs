//! `credit` and the training data of `export`: the lines that go in come out with their credit.

use crate::command_line::program::Place;
use serde_json::{Value, json};

const GOOD: &str = concat!(
    r#"{"group":"g","rollout":"a","step":0,"reward":1.0,"s_prev":-2.1,"s_now":-1.4,"log_h":-0.9,"#,
    r#""mem":"It costs $450.","question":"What does it cost?","item":"r1","#,
    r#""template":"himpo-1:4616c2c34840bf28"}"#,
);
const POOR: &str = concat!(
    r#"{"group":"g","rollout":"b","step":0,"reward":0.0,"s_prev":-2.0,"s_now":-2.4,"log_h":-1.9,"#,
    r#""mem":"Nothing."}"#,
);
const TOKENS: &str = concat!(
    r#"{"group":"g","rollout":"a","policy":[-0.1,-0.2,-0.7],"old":[-0.1,-0.9,-0.7],"#,
    r#""reference":[-0.2,-0.2,-0.7],"mem":[{"step":0,"start":1,"end":3}]}"#,
);

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn kept_rollouts_come_out_as_training_data_with_their_credit() {
    let place = Place::with_trip();
    place.write("all.jsonl", format!("{GOOD}\n{POOR}\n"));
    place.write("first.jsonl", format!("{GOOD}\n"));
    place.write("second.jsonl", format!("{GOOD}\n{POOR}\n"));
    let whole = lines(&place.run(&["credit", "all.jsonl"]).ok().stdout);
    // Files may come one after the other; what is known is not counted twice.
    let first = place.run(&["credit", "first.jsonl", "--db", "memory.holo", "--keep"]).ok();
    assert!(first.stderr.contains("1 rollout kept"), "{first:#?}");
    let second = place.run(&["credit", "second.jsonl", "--db", "memory.holo", "--keep"]).ok();
    assert!(second.stderr.contains("1 rollout kept; the credit of 1 item changed"), "{second:#?}");
    let again = place.run(&["credit", "second.jsonl", "--db", "memory.holo", "--keep"]).ok();
    assert!(again.stderr.contains("0 rollouts kept; the credit of 0 items changed"), "{again:#?}");
    let trained = lines(&place.run(&["export", "memory.holo", "--training", "rollouts"]).ok().stdout);
    assert_eq!(trained.len(), 2);
    for (trained, whole) in trained.iter().zip(&whole) {
        let (trained, whole) = (trained.as_object().unwrap(), whole.as_object().unwrap());
        for (name, value) in whole {
            assert_eq!(&trained[name], value, "{name}");
        }
    }
    let found = place.run(&["query", "memory.holo", "find facts return key, credit", "--format", "json"]).ok().json();
    let credit = found["rows"][0]["credit"].as_f64().unwrap();
    assert!((credit - whole[0]["smoothed"].as_f64().unwrap()).abs() < 1e-6, "{found}");
}

#[test]
fn tokens_get_their_advantages_and_the_objective_ends_the_output() {
    let place = Place::new();
    place.write("tokens.jsonl", format!("{TOKENS}\n{GOOD}\n{POOR}\n"));
    let out = lines(&place.run(&["credit", "tokens.jsonl"]).ok().stdout);
    let [tokens, good, _, objective] = out.as_slice() else { panic!("{out:#?}") };
    let write = good["token_advantage"].as_f64().unwrap();
    let trajectory = good["trajectory_advantage"].as_f64().unwrap();
    assert_eq!(tokens["advantages"], json!([trajectory, write, write]));
    // Eq. 16 by hand: the second token's ratio is e^0.7, which counts as 1.2.
    let surrogate = (trajectory + 1.2 * write + write) / 3.0;
    let divergence = |policy: f64, reference: f64| (reference - policy).exp() - (reference - policy) - 1.0;
    let kl = divergence(-0.1, -0.2) / 3.0;
    let close = |name: &str, value: f64| (objective[name].as_f64().unwrap() - value).abs() < 1e-12;
    assert!(close("surrogate", surrogate) && close("kl", kl), "{objective}");
    assert!(close("objective", surrogate - 0.001 * kl) && close("clipped_share", 1.0 / 3.0), "{objective}");
    let wide = lines(&place.run(&["credit", "tokens.jsonl", "--clip", "9", "--kl-weight", "0"]).ok().stdout);
    assert_eq!(wide[3]["clipped_share"], 0.0);
    assert_eq!(wide[3]["objective"], wide[3]["surrogate"]);
}

#[test]
fn what_is_refused_names_its_line() {
    let place = Place::with_trip();
    let other = POOR.replace("\"mem\"", "\"template\":\"himpo-2:00\",\"mem\"");
    let cases = [
        (format!("{GOOD}\n\n{other}\n"), 3, "template \"himpo-2:00\""),
        (format!("{GOOD}\n{TOKENS}\n").replace("\"end\":3", "\"end\":4"), 2, "span 1"),
        (
            format!("{GOOD}\n{TOKENS}\n").replace("\"rollout\":\"a\",\"policy\"", "\"rollout\":\"c\",\"policy\""),
            2,
            "reward",
        ),
        (format!("{GOOD}\n{TOKENS}\n").replace("-0.1,-0.9,-0.7", "-0.1"), 2, "`old`"),
        (format!("{GOOD}\n{TOKENS}\n").replace("\"start\"", "\"from\""), 2, "`step`, `start` and `end`"),
    ];
    for (text, line, told) in cases {
        place.write("bad.jsonl", text);
        let run = place.run(&["credit", "bad.jsonl", "--format", "json"]);
        let error = run.error();
        assert_eq!((run.status, error["line"].as_u64()), (2, Some(line)), "{run:#?}");
        assert!(error["message"].as_str().unwrap().contains(told), "{error}");
    }
    assert_eq!(place.run(&["credit", "bad.jsonl", "--keep"]).status, 2);
    place.write("missing.jsonl", GOOD.replace("\"r1\"", "\"r7\""));
    for keep in [&["--keep"][..], &[]] {
        let args = [&["credit", "missing.jsonl", "--db", "memory.holo", "--format", "json"], keep].concat();
        let run = place.run(&args);
        assert_eq!((run.status, run.error()["line"].as_u64()), (2, Some(1)), "{run:#?}");
    }
}
