//! `seal`, `compact`, `retain`, `backup` and `salvage`.

use crate::command_line::program::Place;

#[test]
fn a_backup_opens_with_the_same_head_and_nothing_is_ever_copied_over() {
    let place = Place::with_trip();
    assert!(place.run(&["seal", "memory.holo", "--format", "json"]).ok().json()["commit"].as_u64().is_some());
    let compacted = place.run(&["compact", "memory.holo", "--format", "json"]).ok().json();
    assert!(compacted["after"].as_u64().is_some(), "{compacted}");
    let head = place.run(&["head", "memory.holo", "--format", "json"]).ok().json();
    let made = place.run(&["backup", "memory.holo", "copy.holo", "--format", "json"]).ok().json();
    assert_eq!((made["derived"].as_bool(), &made["head"]["hash"]), (Some(true), &head["hash"]), "{made} {head}");
    assert_eq!(place.run(&["verify", "copy.holo", "--format", "json"]).ok().json()["clean"], true);
    let export = |name: &str| place.run(&["export", name]).ok().stdout.clone();
    assert_eq!(export("copy.holo"), export("memory.holo"));
    let again = place.run(&["backup", "memory.holo", "copy.holo"]);
    assert!(again.status != 0 && again.stderr.contains("already exists"), "{again:#?}");
}

#[test]
fn what_is_saved_of_a_damaged_log_opens_and_what_is_lost_is_listed() {
    let place = Place::with_trip();
    let whole = place.run(&["salvage", "memory.holo", "whole.holo", "--format", "json"]).ok().json();
    assert_eq!(whole["lost"], serde_json::json!([]), "{whole}");
    let log = place.path("memory.holo").join("log/0000000001.log");
    let mut bytes = std::fs::read(&log).unwrap();
    let at = bytes.windows(5).position(|window| window == b"UA123").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    let saved = place.run(&["salvage", "memory.holo", "saved.holo", "--format", "json"]);
    assert_eq!(saved.status, 1, "{saved:#?}");
    let told = saved.json();
    let lost = &told["lost"][0];
    assert!(lost["len"].as_u64().is_some_and(|len| len > 0), "{told}");
    assert!(lost["what"].as_str().is_some_and(|what| what.contains("0000000001.log: log page 1, ")), "{told}");
    assert!(told["items"].as_u64() < whole["items"].as_u64(), "{told}");
    assert_eq!(place.run(&["verify", "saved.holo", "--format", "json"]).ok().json()["clean"], true);
    let again = place.run(&["salvage", "memory.holo", "saved.holo"]);
    assert!(again.status > 1 && again.stderr.contains("already exists"), "{again:#?}");
}

#[test]
fn history_is_kept_from_a_commit_on() {
    let place = Place::with_trip();
    let query = |statement: &str| place.run(&["query", "memory.holo", statement, "--format", "json"]);
    query("mark 't1' failed because 'timeout'").ok();
    let newest = place.run(&["head", "memory.holo", "--format", "json"]).ok().json()["commit"].as_u64().unwrap();
    let before = query("find items").ok().json()["rows"].clone();
    let since = newest.to_string();
    let done =
        place.run(&["retain", "memory.holo", "--since", &since, "--archive", "old", "--format", "json"]).ok().json();
    assert_eq!((done["since"].as_u64(), done["left"].as_u64()), (Some(newest), Some(0)), "{done}");
    assert!(done["records"].as_u64() > Some(4), "{done}");
    assert_eq!(query("find items").ok().json()["rows"], before);
    query(&format!("count items as of commit {newest}")).ok();
    let gone = query("count items as of commit 1");
    assert_eq!((gone.status, gone.error()["code"].as_str()), (2, Some("before-history")), "{gone:#?}");
    assert_eq!(place.run(&["verify", "memory.holo", "--format", "json"]).ok().json()["clean"], true);
    let young = place.run(&["retain", "memory.holo", "--older-than", "90d"]).ok();
    assert!(young.stdout.contains("nothing is removed"), "{young:#?}");
    for wrong in [&["retain", "memory.holo"][..], &["retain", "memory.holo", "--older-than", "long ago"]] {
        assert_eq!(place.run(wrong).status, 2, "{wrong:?}");
    }
    let later = place.run(&["retain", "memory.holo", "--since", "1000"]);
    assert_eq!(later.status, 2, "{later:#?}");
}
