//! `replicate`, `follow`, `restore`, incremental `backup`, and exports of a past state and of a part.

use crate::command_line::program::Place;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Bytes of every chunk below a folder, unpacked.
fn holds(folder: &Path, text: &str) -> bool {
    let mut found = false;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found |= holds(&path, text);
        } else {
            let bytes = std::fs::read(&path).unwrap();
            let unpacked = bytes.get(48..).map(|frame| zstd::stream::decode_all(frame).unwrap_or_default());
            let has = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
            found |= has(&bytes) || has(&unpacked.unwrap_or_default());
        }
    }
    found
}

fn record(place: &Place, database: &str, key: &str, text: &str) {
    let statement = format!("record turn '{text}' in episode 'e' with key = '{key}'");
    place.run(&["query", database, &statement]).ok();
}

fn texts(place: &Place, database: &str) -> String {
    let rows = place.run(&["query", database, "find traces return key, text", "--format", "json"]).ok().json();
    rows["rows"].to_string()
}

#[test]
fn a_backup_grows_and_is_restored_as_of_any_commit() {
    let place = Place::with_trip();
    let first = place.run(&["backup", "memory.holo", "safe", "--incremental", "--format", "json"]).ok().json();
    let commit = first["head"]["commit"].as_u64().unwrap();
    record(&place, "memory.holo", "later", "a later turn");
    let second = place.run(&["backup", "memory.holo", "safe", "--format", "json"]).ok().json();
    assert!(second["log_bytes"].as_u64() < first["log_bytes"].as_u64(), "only what is new: {second}");
    let whole = place.run(&["restore", "safe", "whole.holo", "--format", "json"]).ok().json();
    assert_eq!((whole["root_compared"].as_bool(), whole["read_only"].as_bool()), (Some(true), Some(false)), "{whole}");
    let export = |name: &str| place.run(&["export", name]).ok().stdout.clone();
    assert_eq!(export("whole.holo"), export("memory.holo"));
    assert_eq!(place.run(&["verify", "whole.holo", "--format", "json"]).ok().json()["clean"], true);
    place.run(&["restore", "safe", "past.holo", "--commit", &commit.to_string()]).ok();
    let as_of = place.run(&["export", "memory.holo", "--as-of", &commit.to_string()]).ok().stdout.clone();
    assert_eq!(export("past.holo"), as_of);
    let refused = place.run(&["query", "past.holo", "record turn 'x' in episode 'e'"]);
    assert!(refused.status == 3 && refused.stderr.contains("opens read-only"), "{refused:#?}");
    assert_eq!(place.run(&["verify", "past.holo", "--format", "json"]).ok().json()["clean"], true);
    place.run(&["restore", "safe", "fork.holo", "--commit", &commit.to_string(), "--fork"]).ok();
    record(&place, "fork.holo", "own", "another future");
    assert!(texts(&place, "fork.holo").contains("another future") && !texts(&place, "fork.holo").contains("later"));
    for (args, code) in [
        (vec!["restore", "safe", "whole.holo"], "exists"),
        (vec!["restore", "safe", "x.holo", "--commit", "99"], "not-there"),
        (vec!["restore", "safe", "x.holo", "--at", "1999-01-01T00:00:00Z"], "not-there"),
        (vec!["restore", "nowhere", "x.holo"], "no-replica"),
    ] {
        let refused = place.run(&[&args[..], &["--format", "json"]].concat());
        assert_eq!(refused.error()["code"].as_str(), Some(code), "{refused:#?}");
        assert!(!place.path("x.holo").exists());
    }
}

#[test]
fn a_plain_backup_is_restored_as_of_a_commit_too() {
    let place = Place::with_trip();
    let head = place.run(&["head", "memory.holo", "--format", "json"]).ok().json();
    record(&place, "memory.holo", "later", "a later turn");
    place.run(&["backup", "memory.holo", "copy.holo"]).ok();
    let commit = head["commit"].to_string();
    let restored =
        place.run(&["restore", "copy.holo", "past.holo", "--commit", &commit, "--format", "json"]).ok().json();
    assert_eq!(restored["hash"], head["hash"]);
    assert!(!texts(&place, "past.holo").contains("later"));
}

#[test]
fn what_is_forgotten_leaves_the_replica_its_followers_and_every_restore() {
    let place = Place::with_trip();
    record(&place, "memory.holo", "secret", "the code is ZEBRA4711");
    let commit =
        place.run(&["replicate", "memory.holo", "--to", "safe", "--format", "json"]).ok().json()["head"]["commit"]
            .to_string();
    place.run(&["follow", "safe", "reader.holo"]).ok();
    assert!(holds(&place.path("safe"), "ZEBRA4711") && holds(&place.path("reader.holo"), "ZEBRA4711"));
    place.run(&["query", "memory.holo", "forget 'secret' because 'asked'"]).ok();
    place.run(&["replicate", "memory.holo", "--to", "safe", "--gc", "--grace", "0s"]).ok();
    assert!(!holds(&place.path("safe"), "ZEBRA4711"));
    place.run(&["follow", "safe", "reader.holo"]).ok();
    assert!(!holds(&place.path("reader.holo"), "ZEBRA4711"));
    let past = place.run(&["restore", "safe", "past.holo", "--commit", &commit, "--format", "json"]).ok().json();
    assert!(past["kept"].as_u64() > past["commit"].as_u64(), "{past}");
    assert!(!holds(&place.path("past.holo"), "ZEBRA4711"));
    assert!(texts(&place, "past.holo").contains("secret"), "it was there then, erased now");
    place.run(&["verify", "past.holo", "--format", "json"]).ok();
    let refused = place.run(&["query", "reader.holo", "record turn 'x' in episode 'e'"]);
    assert!(refused.status == 3 && refused.stderr.contains("follows a replica"), "{refused:#?}");
}

#[test]
fn a_log_that_went_another_way_is_refused_and_the_head_is_a_witness() {
    let place = Place::with_trip();
    place.run(&["backup", "memory.holo", "old.holo"]).ok();
    record(&place, "memory.holo", "later", "a later turn");
    place.run(&["replicate", "memory.holo", "--to", "safe"]).ok();
    place.run(&["prove", "memory.holo", "--against", "safe"]).ok();
    let old = place.run(&["prove", "old.holo", "--against", "safe"]);
    assert!(old.status == 1 && old.stderr.contains("rolled back"), "{old:#?}");
    record(&place, "old.holo", "other", "another way");
    let other = place.run(&["prove", "old.holo", "--against", "safe", "--format", "json"]);
    assert_eq!(other.status, 1, "{other:#?}");
    let refused = place.run(&["replicate", "old.holo", "--to", "safe", "--format", "json"]);
    assert_eq!((refused.status, refused.error()["code"].as_str()), (1, Some("diverged")), "{refused:#?}");
    place.run(&["create", "another.holo"]).ok();
    let refused = place.run(&["replicate", "another.holo", "--to", "safe", "--format", "json"]);
    assert_eq!(refused.error()["code"].as_str(), Some("other-database"), "{refused:#?}");
    let refused = place.run(&["replicate", "another.holo", "--to", "ftp://safe", "--format", "json"]);
    assert_eq!(refused.error()["code"].as_str(), Some("store-unfit"), "{refused:#?}");
}

#[test]
fn a_damaged_or_forged_replica_is_not_restored() {
    let place = Place::with_trip();
    place.run(&["replicate", "memory.holo", "--to", "safe"]).ok();
    let other = place.run(&["key", "memory.holo", "--key", "other.key"]).ok().stdout.trim().to_owned();
    let forged = place.run(&["restore", "safe", "x.holo", "--key", &other, "--format", "json"]);
    assert_eq!(forged.error()["code"].as_str(), Some("replica-signature"), "{forged:#?}");
    place.run(&["restore", "safe", "signed.holo", "--key", "memory.holo.key"]).ok();
    let mut chunk = place.path("safe/chunks");
    while chunk.is_dir() {
        chunk = std::fs::read_dir(&chunk).unwrap().next().unwrap().unwrap().path();
    }
    let mut bytes = std::fs::read(&chunk).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&chunk, &bytes).unwrap();
    let damaged = place.run(&["restore", "safe", "x.holo", "--format", "json"]);
    assert_eq!(damaged.error()["code"].as_str(), Some("replica-damaged"), "{damaged:#?}");
    assert!(!place.path("x.holo").exists() && !place.path("x.holo.restoring").exists());
}

#[test]
fn a_part_is_exported_whole() {
    let place = Place::with_trip();
    record(&place, "memory.holo", "apart", "something else");
    let lines = place.run(&["export", "memory.holo", "--where", "episode = 'e'"]).ok().stdout.clone();
    let stories: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((stories.len(), stories[0]["item"]["text"].as_str()), (1, Some("something else")));
    let wrong = place.run(&["export", "memory.holo", "out.jsonl", "--where", "episod = 'e'"]);
    assert!(wrong.status == 2 && wrong.stderr.contains("did you mean"), "{wrong:#?}");
    assert!(!place.path("out.jsonl").exists() && !place.path("out.jsonl.partial").exists());
}

/// A writer that goes on after another took its replica over: its next head is refused, it ends, and its log is kept.
#[test]
fn a_writer_whose_replica_was_taken_over_is_fenced_and_keeps_its_log() {
    let place = Place::with_trip();
    let args = ["replicate", "memory.holo", "--to", "safe", "--follow", "--interval", "20ms"];
    let mut old = Command::new(env!("CARGO_BIN_EXE_holotype"))
        .args(args)
        .current_dir(place.path("."))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    BufReader::new(old.stdout.take().unwrap()).read_line(&mut told).unwrap();
    assert!(told.contains("holds everything"), "{told}");
    place.run(&["restore", "safe", "heir.holo"]).ok();
    record(&place, "heir.holo", "heir", "of the heir");
    place.run(&["replicate", "heir.holo", "--to", "safe"]).ok();
    record(&place, "memory.holo", "old", "of the old one");
    let ended = old.wait_with_output().unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.code() == Some(1) && stderr.contains("fenced: writer "), "{stderr}");
    let kept = std::fs::read_dir(place.path("memory.holo/diverged")).unwrap().next().unwrap().unwrap().path();
    place.run(&["restore", kept.to_str().unwrap(), "kept.holo"]).ok();
    assert!(texts(&place, "kept.holo").contains("of the old one"));
    place.run(&["restore", "safe", "new.holo"]).ok();
    let new = texts(&place, "new.holo");
    assert!(new.contains("of the heir") && !new.contains("of the old one"), "{new}");
    assert_eq!(place.run(&["verify", "memory.holo", "--format", "json"]).ok().json()["clean"], true);
}
