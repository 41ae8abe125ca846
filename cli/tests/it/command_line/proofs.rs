//! Proofs on the command line, checked by the program and by the independent checker in `docs/`.

use crate::command_line::program::Place;
use std::process::{Command, Stdio};

/// Status and output of `docs/check_proof.py`; nothing where there is no Python.
fn python(place: &Place, proof: &str, key: &str) -> Option<(i32, String)> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/check_proof.py");
    let mut command = Command::new("python3");
    command.args(["-B", script]).arg(place.path(proof)).arg(key).stdin(Stdio::null());
    let output = command.output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    Some((output.status.code().unwrap(), String::from_utf8_lossy(&text).into_owned()))
}

/// The answer of both checkers, which agree.
fn holds(place: &Place, proof: &str, key: &str) -> bool {
    let run = place.run(&["check-proof", proof, "--key", key, "--format", "json"]);
    let holds = run.json()["holds"].as_bool().unwrap();
    assert_eq!(run.status, i32::from(!holds), "{run:#?}");
    if let Some((status, said)) = python(place, proof, key) {
        assert_eq!((status == 0, said.contains("the proof holds")), (holds, holds), "{said}\n{run:#?}");
    }
    holds
}

fn with_proofs() -> (Place, String) {
    let place = Place::with_trip();
    let made = place.run(&["key", "memory.holo"]).ok();
    assert!(made.stderr.contains("memory.holo.key is a new signing key"), "{made:#?}");
    let key = made.stdout.trim().to_owned();
    assert_eq!(place.run(&["key", "memory.holo"]).ok().stdout.trim(), key, "made once");
    (place, key)
}

fn prove(place: &Place, item: &str, file: &str) -> String {
    let run = place.run(&["prove", "memory.holo", item]).ok();
    place.write(file, &run.stdout);
    run.stdout
}

#[test]
fn items_are_proven_and_checked_without_the_database() {
    let (place, key) = with_proofs();
    let long = "a longer text of which more than one chunk is made, ".repeat(400);
    let statements = format!(
        "record turn '{long}' in episode 'trip-42' with key = 'long'; close episode 'trip-42';
         remember fact 'it was long' from 'long', 't1' quoting '$450' with key = 'r2'"
    );
    place.run(&["query", "memory.holo", &statements]).ok();
    for item in ["t1", "r1", "#2", "long", "r2"] {
        prove(&place, item, "proof.json");
        assert!(holds(&place, "proof.json", &key), "{item}");
    }
    place.write("public", &key);
    let run = place.run(&["check-proof", "proof.json", "--key", "public"]).ok();
    assert!(run.stdout.contains("cites #0.text[23..27]  ok  $450"), "{run:#?}");
    assert!(run.stdout.ends_with("the proof holds\n"), "{run:#?}");
    let run = place.run(&["check-proof", "proof.json", "--key", "memory.holo.key"]).ok();
    assert!(run.stdout.contains("item  #"), "{run:#?}");
    std::fs::remove_dir_all(place.path("memory.holo")).unwrap();
    assert!(holds(&place, "proof.json", &key), "without the database");
}

#[test]
fn both_checkers_refuse_what_was_changed() {
    let (place, key) = with_proofs();
    let proof: serde_json::Value = serde_json::from_str(&prove(&place, "r1", "proof.json")).unwrap();
    assert!(holds(&place, "proof.json", &key));
    let refused = |what: &str, change: &dyn Fn(&mut serde_json::Value)| {
        let mut changed = proof.clone();
        change(&mut changed);
        assert_ne!(changed, proof, "{what}");
        place.write("changed.json", changed.to_string());
        assert!(!holds(&place, "changed.json", &key), "{what}");
    };
    let flip = |value: &mut serde_json::Value, at: usize| {
        let mut text = value.as_str().unwrap().to_owned();
        let digit = if text[at..].starts_with('0') { "1" } else { "0" };
        text.replace_range(at..=at, digit);
        *value = text.into();
    };
    for record in 0..2 {
        for name in ["header", "salt"] {
            refused(name, &|proof| flip(&mut proof["records"][record][name], 3));
        }
        refused("payload", &|proof| flip(&mut proof["records"][record]["payload"], 20));
        refused("path", &|proof| flip(&mut proof["records"][record]["path"][0], 5));
        refused("index", &|proof| proof["records"][record]["index"] = 0.into());
        refused("a record", &|proof| drop(proof["records"].as_array_mut().unwrap().remove(record)));
    }
    refused("item", &|proof| proof["item"] = 0.into());
    refused("order", &|proof| proof["records"].as_array_mut().unwrap().swap(0, 1));
    refused("a part of the path", &|proof| drop(proof["records"][0]["path"].as_array_mut().unwrap().pop()));
    refused("version", &|proof| proof["holotype_proof"] = 2.into());
    let checkpoint = proof["checkpoint"].as_str().unwrap();
    let lines: Vec<&str> = checkpoint.split('\n').collect();
    for line in [0, 1, 2, 4] {
        refused("checkpoint", &|proof| {
            let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            let at = lines[line].len() - 5.min(lines[line].len());
            let digit = if lines[line][at..].starts_with('1') { "2" } else { "1" };
            lines[line].replace_range(at..=at, digit);
            proof["checkpoint"] = lines.join("\n").into();
        });
    }
    place.run(&["create", "other.holo"]).ok();
    let other = place.run(&["key", "other.holo"]).ok().stdout;
    assert!(!holds(&place, "proof.json", other.trim()));
    let wrong = place.run(&["check-proof", "proof.json", "--key", "nonsense"]);
    assert_eq!(wrong.status, 2, "{wrong:#?}");
    place.write("changed.json", "no proof");
    assert!(!holds(&place, "changed.json", &key));
}

#[test]
fn growth_is_proven_and_a_roll_back_is_found() {
    let (place, key) = with_proofs();
    let old = place.run(&["head", "memory.holo", "--sign"]).ok().stdout;
    place.write("old.txt", &old);
    place.run(&["query", "memory.holo", "record turn 'more' in episode 'e'"]).ok();
    let growth = place.run(&["prove", "memory.holo", "--since", "old.txt"]).ok().stdout;
    place.write("growth.json", &growth);
    assert!(holds(&place, "growth.json", &key));
    place.write("changed.json", growth.replacen("\"path\": [\n    \"", "\"path\": [\n    \"00", 1));
    assert!(!holds(&place, "changed.json", &key));
    let late = place.run(&["head", "memory.holo", "--sign"]).ok().stdout;
    place.write("late.txt", &late);
    std::fs::remove_dir_all(place.path("memory.holo")).unwrap();
    place.run(&["create", "memory.holo"]).ok();
    let run = place.run(&["prove", "memory.holo", "--since", "late.txt"]);
    assert_eq!(run.status, 1, "{run:#?}");
    assert!(run.stderr.contains("rolled back"), "{run:#?}");
}

/// A duplicate member was read in two ways: the checkers took the last, other programs may take the first.
#[test]
fn both_checkers_refuse_every_text_but_the_canonical_one() {
    let (place, key) = with_proofs();
    let proof = prove(&place, "r1", "proof.json");
    assert!(holds(&place, "proof.json", &key));
    place.write("odd.json", proof.trim_end());
    assert!(holds(&place, "odd.json", &key), "without the line feed at the end");
    let swapped = |from: &str, to: &str| {
        assert!(proof.contains(from), "{from}");
        proof.replacen(from, to, 1)
    };
    let item = "  \"item\": 3,\n";
    let odd = [
        ("a duplicate member", swapped(item, &format!("  \"item\": 0,\n{item}"))),
        ("a duplicate of the same value", swapped(item, &format!("{item}{item}"))),
        ("a duplicate in a record", swapped("      \"index\"", "      \"index\": 7,\n      \"index\"")),
        ("an unknown member", swapped(item, &format!("{item}  \"note\": \"trust me\",\n"))),
        ("a float", swapped("\"item\": 3", "\"item\": 3.0")),
        ("an exponent", swapped("\"item\": 3", "\"item\": 3e0")),
        ("a negative zero", swapped("\"item\": 3", "\"item\": -0")),
        ("true for 1", swapped("\"holotype_proof\": 1", "\"holotype_proof\": true")),
        ("a float version", swapped("\"holotype_proof\": 1", "\"holotype_proof\": 1.0")),
        ("a blank", swapped("\"item\": 3", "\"item\":  3")),
        ("an escape", swapped("\"item\"", "\"it\\u0065m\"")),
        ("capital digits", swapped("\"header\": \"", "\"header\": \"A")),
        ("a comment behind it", format!("{proof}{{}}\n")),
        ("two line feeds", format!("{proof}\n")),
        ("one line", proof.split_whitespace().collect::<Vec<_>>().join(" ")),
        ("no object", "[]\n".to_owned()),
        ("nothing", String::new()),
    ];
    for (what, text) in odd {
        place.write("odd.json", &text);
        assert!(!holds(&place, "odd.json", &key), "{what}: {text}");
    }
}
