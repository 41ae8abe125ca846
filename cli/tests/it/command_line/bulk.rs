//! `import --bulk`: a new database at once or not at all, and what was interrupted is continued.

use crate::command_line::program::{Place, TRIP};

fn place() -> Place {
    let place = Place::new();
    place.write("trip.jsonl", TRIP);
    place
}

#[test]
fn a_bulk_load_makes_the_database_that_an_import_makes() {
    let place = place();
    place.run(&["create", "a.holo"]).ok();
    place.run(&["import", "a.holo", "trip.jsonl"]).ok();
    let loaded = place.run(&["import", "b.holo", "trip.jsonl", "--bulk", "--format", "json"]).ok();
    assert_ne!(loaded.json()["added"], 0, "{loaded:#?}");
    assert!(!place.path("b.holo.loading").exists());
    let exported = |database: &str| place.run(&["export", database]).ok().stdout;
    assert_eq!(exported("a.holo"), exported("b.holo"));
    let asked = |database: &str| {
        let statement = "recall 'what does UA123 cost?' return key, score";
        place.run(&["query", database, statement, "--format", "table"]).ok().stdout
    };
    assert_eq!(asked("a.holo"), asked("b.holo"));
    place.run(&["verify", "b.holo"]).ok();
}

#[test]
fn a_bulk_load_into_a_database_that_exists_is_refused_with_what_to_do() {
    let place = Place::with_trip();
    let run = place.run(&["import", "memory.holo", "-", "--bulk"]);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{run:#?}");
    assert!(run.stderr.contains("import without --bulk"), "{run:#?}");
    let run = place.run(&["import", "new.holo", "-", "--bulk", "--durability", "none"]);
    assert_eq!(run.status, 2, "{run:#?}");
}

#[test]
fn an_interrupted_bulk_load_has_no_name_and_the_same_command_continues_it() {
    let place = place();
    let bad = format!("{TRIP}{{\"trace\":{{\"key\":\"t9\"}}}}\n");
    place.write("more.jsonl", bad);
    let run = place.run(&["import", "memory.holo", "trip.jsonl", "more.jsonl", "--bulk"]);
    assert_eq!(run.status, 2, "{run:#?}");
    assert!(run.stderr.contains("run the same command again to continue"), "{run:#?}");
    assert!(!place.path("memory.holo").exists() && place.path("memory.holo.loading").exists());
    assert_eq!(place.run(&["query", "memory.holo", "count items"]).status, 3);
    place.write("more.jsonl", TRIP);
    let run = place.run(&["import", "memory.holo", "trip.jsonl", "more.jsonl", "--bulk"]).ok();
    assert!(run.stderr.contains("continuing the load"), "{run:#?}");
    assert!(place.path("memory.holo").exists() && !place.path("memory.holo.loading").exists());
    place.run(&["verify", "memory.holo"]).ok();
}
