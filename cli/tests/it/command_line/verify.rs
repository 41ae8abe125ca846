//! Verify finds a changed byte and a changed past, and says what it checked.

use crate::command_line::program::Place;

const LOG: &str = "demo.holo/log/0000000001.log";

/// The demo's database with one byte of `needle` changed; gives where.
fn with_a_change(needle: &[u8], nth: usize, to: u8) -> (Place, u64) {
    let place = Place::new();
    place.run(&["demo", "--keep", "demo.holo"]).ok();
    let mut log = place.read(LOG);
    let at = log.windows(needle.len()).position(|window| window == needle).unwrap() + nth;
    log[at] = to;
    place.write(LOG, log);
    (place, at as u64)
}

#[test]
fn a_sound_database_is_clean_and_says_what_was_checked() {
    let place = Place::with_trip();
    let report = place.run(&["verify", "memory.holo", "--format", "json"]).ok().json();
    assert_eq!(report["clean"], true);
    assert_eq!(report["checked"]["items"], 4);
    assert_eq!(report["checked"]["pointers"], 1);
    assert!(!report["not_checked"].as_array().unwrap().is_empty());
}

#[test]
fn a_changed_byte_is_found_with_file_page_and_offset() {
    let (place, at) = with_a_change(b"268 EUR each", 0, b'1');
    let run = place.run(&["verify", "demo.holo"]);
    assert_eq!(run.status, 1, "{run:#?}");
    assert!(run.stdout.contains("0000000001.log: log page ") && run.stdout.contains("byte offset "), "{run:#?}");
    let report = place.run(&["verify", "demo.holo", "--format", "json"]).json();
    let fault = &report["faults"][0];
    assert!(fault["file"].as_str().unwrap().ends_with("0000000001.log"), "{report}");
    assert_eq!(fault["page"].as_u64().unwrap(), at / 32768, "{report}");
    assert!(fault["offset"].as_u64().unwrap() <= at, "{report}");
}

#[test]
fn a_head_kept_elsewhere_shows_whether_the_past_is_still_there() {
    let place = Place::with_trip();
    let head = place.run(&["head", "memory.holo", "--format", "json"]).json()["hash"].as_str().unwrap().to_owned();
    place.run(&["query", "memory.holo", "mark 't1' failed because 'no'"]).ok();
    assert_ne!(place.run(&["head", "memory.holo", "--format", "json"]).json()["hash"], head.as_str());
    let run = place.run(&["verify", "memory.holo", "--head", &head]).ok();
    assert!(run.stdout.contains("is part of this log's past"), "{run:#?}");
    let run = place.run(&["verify", "memory.holo", "--head", &"ab".repeat(32)]);
    assert_eq!(run.status, 1, "{run:#?}");
    assert!(run.stdout.contains("the head given is not in this log"), "{run:#?}");
    assert_eq!(place.run(&["verify", "memory.holo", "--head", "short"]).status, 2);
}

#[test]
fn the_statement_that_verifies_fails_like_the_command() {
    let (place, _) = with_a_change(b"268 EUR each", 0, b'1');
    place.run(&["query", "demo.holo", "verify 'joseph-visa'"]).ok();
    let run = place.run(&["query", "demo.holo", "verify 'fare-thu'"]);
    assert_eq!(run.status, 1, "{run:#?}");
    assert!(run.stdout.contains("mismatch"), "{run:#?}");
}
