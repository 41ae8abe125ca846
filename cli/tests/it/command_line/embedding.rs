//! `embed`, `embedder` and `try`: vectors made later, what a model is, and a session that is remembered.

use crate::command_line::program::Place;

#[test]
fn what_was_written_without_the_model_is_counted_said_and_filled() {
    let place = Place::new();
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/tests/it/embedder/static_model/plain");
    let made = place.run(&["create", "memory.holo", "--embedder", model]).ok();
    assert!(made.stdout.contains("with the space plain (5 x f32, cosine)"), "{made:#?}");
    for text in ["a night train", "the train to rome", "a dog"] {
        place.run(&["query", "memory.holo", &format!("record turn '{text}' in episode 'e'")]).ok();
    }
    let pending = || place.run(&["stats", "memory.holo", "--format", "json"]).json()["pending vectors"].clone();
    assert_eq!(pending(), 3);
    let doctor = place.run(&["doctor", "--db", "memory.holo"]);
    assert!(doctor.stdout.contains("0 of 3 items, 3 pending: `holotype embed` fills them"), "{doctor:#?}");
    let asked = place.run(&["query", "memory.holo", "recall 'train'"]).ok();
    assert!(asked.stdout.contains("pending: 3 vectors"), "{asked:#?}");
    let asked = place.run(&["query", "memory.holo", "recall 'train'", "--format", "json"]).json();
    assert_eq!(asked["pending"], 3, "{asked}");

    let refused = place.run(&["embed", "memory.holo"]);
    assert!(refused.status != 0 && refused.stderr.contains("no embedder makes the vectors"), "{refused:#?}");
    let run = place.run(&["embed", "memory.holo", "--embedder", model, "--limit", "1"]).ok();
    assert_eq!(run.stdout, "1 vector made, 2 pending\n");
    let run = place.run(&["embed", "memory.holo", "--embedder", model, "--format", "json"]).json();
    assert_eq!((&run["embedded"], &run["pending"]), (&2.into(), &0.into()), "{run}");
    assert_eq!(pending(), 0);
    place.run(&["verify", "memory.holo"]).ok();
}

#[test]
fn an_embedder_says_what_it_is() {
    let place = Place::new();
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/tests/it/embedder/static_model/plain");
    let run = place.run(&["embedder", model]).ok();
    for said in ["plain", "static", "dimension", "longest input", "pooling", "blake3:", "texts a second"] {
        assert!(run.stdout.contains(said), "{said}: {run:#?}");
    }
    let missing = place.run(&["embedder", "nowhere"]);
    assert!(missing.status != 0 && missing.stderr.contains("config.json"), "{missing:#?}");
    std::fs::create_dir(place.path("transformer")).unwrap();
    place.write("transformer/config.json", r#"{"model_type": "bert"}"#);
    let refused = place.run(&["embedder", "transformer"]);
    let reason = if cfg!(feature = "embed") { "hidden_size" } else { "--features embed" };
    assert!(refused.status != 0 && refused.stderr.contains(reason), "{refused:#?}");
}

#[test]
fn a_session_is_recorded_cleared_and_remembered_in_a_minute() {
    let place = Place::new();
    let run = place.run(&["try"]).ok();
    let told: Vec<&str> = run.stdout.lines().filter(|line| line.starts_with("   | ")).collect();
    assert!(told[0].contains("From memory (quoted; verify):"), "{run:#?}");
    assert!(told.iter().any(|line| line.contains("try-1/call-2") && line.contains("nightly export")), "{run:#?}");
    let (_, asked) = run.stdout.split_once("3. It is asked").unwrap();
    let (asked, _) = asked.split_once("4. The evidence").unwrap();
    assert!(asked.contains("try-1/call-2"), "{run:#?}");
    assert!(run.stdout.contains("holotype init --for claude-code --hooks --mcp"), "{run:#?}");
    assert_eq!(run.stderr, "");
    place.run(&["try", "--keep", "kept"]).ok();
    place.run(&["verify", "kept/.holotype/memory.holo"]).ok();
}
