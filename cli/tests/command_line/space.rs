//! `seal`, `compact` and `backup`.

use crate::program::Place;

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
    assert!(again.status != 0 && again.stderr.contains("exists already"), "{again:#?}");
}
