//! Import and export: the same bytes come out again, and an import can be run again.

use crate::command_line::program::Place;

#[test]
fn what_is_exported_imports_to_the_same_export() {
    let place = Place::with_trip();
    place.run(&["export", "memory.holo", "a.jsonl", "--vectors", "a.npy"]).ok();
    place.run(&["create", "b.holo"]).ok();
    let run = place.run(&["import", "b.holo", "a.jsonl", "--vectors", "a.npy", "--durability", "flush"]).ok();
    assert_eq!(run.stderr, "", "vectors came along, so nothing is embedded");
    place.run(&["export", "b.holo", "b.jsonl", "--vectors", "b.npy"]).ok();
    assert_eq!(place.read("a.jsonl"), place.read("b.jsonl"));
    assert_eq!(place.read("a.npy"), place.read("b.npy"));
    assert!(!place.path("a.jsonl.partial").exists());

    let run = place.run(&["export", "memory.holo"]).ok();
    assert!(run.stdout.starts_with("{\"holotype\":{\"interchange\":1}}\n"), "{run:#?}");
    assert!(run.stdout.contains("\"vector\":["), "{run:#?}");
    let history = place.run(&["export", "memory.holo", "-", "--history"]).ok();
    assert!(history.stdout.contains("{\"commit\":"), "{history:#?}");
}

#[test]
fn an_export_replaces_a_file_only_when_asked_to() {
    let place = Place::with_trip();
    place.write("a.jsonl", "my own notes");
    let refused = place.run(&["export", "memory.holo", "a.jsonl"]);
    assert!(refused.status == 2 && refused.stderr.contains("pass --overwrite"), "{refused:#?}");
    assert_eq!(place.read("a.jsonl"), b"my own notes");
    place.run(&["export", "memory.holo", "a.jsonl", "--overwrite"]).ok();
    assert!(place.read("a.jsonl").starts_with(b"{\"holotype\":"));
}

#[test]
fn the_built_in_embedder_is_named_once_and_an_import_can_be_run_again() {
    let place = Place::new();
    place.write("trip.jsonl", crate::command_line::program::TRIP);
    place.run(&["create", "memory.holo"]).ok();
    let run = place.run(&["import", "memory.holo", "trip.jsonl", "trip.jsonl"]).ok();
    assert_eq!(run.stderr.matches("hashing-v1-256").count(), 1, "{run:#?}");
    let again = place.run(&["import", "memory.holo", "trip.jsonl", "--format", "json"]).ok();
    assert_eq!(again.stderr, "");
    let report = again.json();
    assert_eq!((&report["added"], &report["skipped"]), (&0.into(), &0.into()), "{report}");
    assert_ne!(report["known"], 0);
}

#[test]
fn a_database_is_created_as_asked() {
    let place = Place::new();
    let run =
        place.run(&["create", "a.holo", "--space", "hashing-v1-64", "--profile", "archive", "--page-size", "4096"]);
    assert_eq!(run.ok().stdout, "created a.holo with the space hashing-v1-64 (64 x f32, cosine)\n");
    let stats = place.run(&["stats", "a.holo", "--format", "json"]).json();
    assert_eq!(stats["log page size"], 4096);
    let settings = place.run(&["query", "a.holo", "show settings"]).ok();
    assert!(settings.stdout.contains("archive"), "{settings:#?}");
    let run =
        place.run(&["create", "b.holo", "--dim", "8", "--metric", "dot", "--encoding", "f16", "--format", "json"]);
    let space = &run.json()["space"];
    assert_eq!((&space["dim"], &space["metric"], &space["encoding"]), (&8.into(), &"dot".into(), &"f16".into()));
    for wrong in [&["--space", "mine"][..], &["--space", "hashing-v1-64", "--dim", "65"], &["--dim", "0"]] {
        let run = place.run(&[&["create", "c.holo"], wrong].concat());
        assert_eq!(run.status, 2, "{wrong:?}: {run:#?}");
    }
}

#[test]
fn derived_files_are_made_anew_and_checkpoints_written() {
    let place = Place::with_trip();
    let ask = || {
        place
            .run(&["query", "memory.holo", "recall 'what does UA123 cost?' return key, score", "--format", "table"])
            .ok()
            .stdout
    };
    let before = ask();
    for derived in ["columns", "vectors", "words"] {
        std::fs::remove_dir_all(place.path("memory.holo").join(derived)).unwrap();
    }
    std::fs::remove_file(place.path("memory.holo/catalog.redb")).unwrap();
    let run = place.run(&["rebuild", "memory.holo"]).ok();
    assert!(run.stdout.contains("4 items"), "{run:#?}");
    assert_eq!(ask(), before);
    let run = place.run(&["checkpoint", "memory.holo"]).ok();
    assert!(run.stdout.contains("a checkpoint holds everything"), "{run:#?}");
    place.run(&["verify", "memory.holo"]).ok();
}

#[test]
fn training_triplets_are_lines_of_json() {
    let place = Place::with_trip();
    let text = place.run(&["export", "memory.holo", "--training", "triplets"]).ok().stdout;
    let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert!(line["query"]["text"].is_string() && !line["positives"].as_array().unwrap().is_empty(), "{text}");
    let run = place.run(&["export", "memory.holo", "--training", "triplets", "--history"]);
    assert_eq!(run.status, 2, "{run:#?}");
    assert_eq!(place.run(&["export", "memory.holo", "--training", "pairs"]).status, 2);
}

#[test]
fn a_model_in_a_folder_makes_the_vectors_and_another_one_is_refused() {
    let place = Place::new();
    let models = concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/tests/it/embedder/static_model");
    let (model, other) = (format!("{models}/plain"), format!("{models}/quantized"));
    place.write("trip.jsonl", crate::command_line::program::TRIP);
    place.run(&["create", "memory.holo"]).ok();
    let run = place.run(&["import", "memory.holo", "trip.jsonl", "--embedder", &model]).ok();
    assert!(!run.stderr.contains("hashing"), "{run:#?}");
    let stats = place.run(&["stats", "memory.holo", "--format", "json"]).json();
    assert_eq!(stats["embedding space"], "plain (5 x f32, cosine)", "{stats}");
    let ask = ["query", "memory.holo", "recall 'a night train' return key", "--embedder", &model];
    assert!(!place.run(&ask).ok().stderr.contains("keyword"));
    let refused = place.run(&["query", "memory.holo", "recall 'a night train'", "--embedder", &other]);
    assert_eq!(refused.status, 2, "{refused:#?}");
    assert!(refused.stderr.contains("reembed"), "{refused:#?}");
    let missing = place.run(&["query", "memory.holo", "recall 'a night train'", "--embedder", "nowhere"]);
    assert!(missing.status != 0 && missing.stderr.contains("config.json"), "{missing:#?}");

    let refused = place.run(&["reembed", "memory.holo"]);
    assert!(refused.status == 2 && refused.stderr.contains("--embedder"), "{refused:#?}");
    let run = place.run(&["reembed", "memory.holo", "--embedder", &other]).ok();
    assert!(run.stdout.contains("quantized (4 x f32, cosine)"), "{run:#?}");
    place.run(&["query", "memory.holo", "recall 'a night train'", "--embedder", &other]).ok();
    place.run(&["reembed", "memory.holo", "--built-in", "hashing-v1-64", "--format", "json"]).ok();
    let stats = place.run(&["stats", "memory.holo", "--format", "json"]).json();
    assert_eq!(stats["embedding space"], "hashing-v1-64 (64 x f32, cosine)", "{stats}");
    place.run(&["verify", "memory.holo"]).ok();
}
