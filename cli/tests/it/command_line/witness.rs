//! A witness outside the database shows that it was rolled back, whatever command opens it.

use crate::command_line::program::{Place, Run};
use std::path::Path;

#[test]
fn a_database_restored_from_an_old_copy_is_refused_by_every_command() {
    let place = Place::new();
    let witness = ["--witness", "seen"];
    let with = |args: &[&'static str]| place.run(&[args, &witness].concat());
    with(&["create", "memory.holo"]).ok();
    with(&["query", "memory.holo", "record turn 'one' in episode 'e'"]).ok();
    copy(&place.path("memory.holo"), &place.path("old.holo"));
    with(&["query", "memory.holo", "record turn 'two' in episode 'e'"]).ok();
    with(&["verify", "memory.holo"]).ok();
    place.run(&["verify", "old.holo"]).ok();
    let commands: [&[&'static str]; 8] = [
        &["query", "old.holo", "count traces"],
        &["query", "old.holo", "record turn 'three' in episode 'e'"],
        &["verify", "old.holo"],
        &["export", "old.holo"],
        &["stats", "old.holo"],
        &["head", "old.holo"],
        &["rebuild", "old.holo"],
        &["compact", "old.holo"],
    ];
    for command in commands {
        let refused = with(command);
        assert_eq!(refused.status, 3, "{refused:#?}");
        assert!(refused.stderr.contains("the database was rolled back: it ends at commit"), "{refused:#?}");
    }
    let refused = Run::of(place.command(&["verify", "old.holo"]).env("HOLOTYPE_WITNESS", "seen").output().unwrap());
    assert_eq!(refused.status, 3, "{refused:#?}");
    let missing = place.run(&["query", "old.holo", "count traces", "--witness", "new", "--format", "json"]);
    assert_eq!((missing.status, missing.error()["code"].as_str()), (3, Some("witness-missing")), "{missing:#?}");
    place.run(&["query", "old.holo", "record turn 'x' in episode 'e'", "--witness", "new", "--accept-witness"]).ok();
    place.run(&["query", "old.holo", "count traces", "--witness", "new"]).ok();
}

/// Copies a directory.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            std::fs::copy(&from, &to).unwrap();
        }
    }
}
