//! `fleet recall`, `route build` and `route update`.

use crate::command_line::program::Place;

const TEXTS: [(&str, &str); 3] = [
    ("ann", "the night train to Vienna costs 89 euros"),
    ("bob", "the boiler in the cellar was repaired"),
    ("eve", "tomatoes want sun and little water"),
];

/// A place with a database of each person.
fn company() -> Place {
    let place = Place::new();
    for (name, text) in TEXTS {
        let database = format!("{name}.holo");
        place.run(&["create", &database, "--space", "hashing-v1-64"]).ok();
        record(&place, &database, text);
    }
    place
}

fn record(place: &Place, database: &str, text: &str) {
    place.run(&["query", database, &format!("record turn '{text}' in episode 'diary'")]).ok();
}

#[test]
fn a_fleet_answers_with_rows_that_name_their_database() {
    let place = company();
    let run = place.run(&["fleet", "recall", "*.holo", "what does the train cost?", "-k", "2"]).ok();
    let mut lines = run.stdout.lines();
    assert!(lines.next().is_some_and(|line| line.starts_with("1  ") && line.contains("ann.holo ")), "{run:#?}");
    assert!(lines.next().is_some_and(|line| line.contains("night train")), "{run:#?}");
    assert!(run.stdout.ends_with("2 rows, from 3 of 3 databases asked\n"), "{run:#?}");
    let json = place.run(&["fleet", "recall", "*.holo", "the boiler", "--json"]).ok().json();
    let row = &json["rows"][0];
    assert_eq!((row["database"].as_str(), row["citations"][0]["verdict"].as_str()), (Some("bob.holo"), Some("ok")));
    assert_eq!(json["asked"].as_array().map(Vec::len), Some(3));
    let by_format = place.run(&["fleet", "recall", "*.holo", "the boiler", "--format", "json"]).ok().json();
    assert_eq!(by_format["rows"], json["rows"]);
    let markdown = place.run(&["fleet", "recall", "*.holo", "sun", "-k", "1", "--format", "markdown"]).ok();
    assert!(markdown.stdout.contains("| eve.holo |"), "{markdown:#?}");
}

#[test]
fn a_router_chooses_and_what_it_lacks_is_said() {
    let place = company();
    let built = place.run(&["route", "build", "*.holo", "router.holo"]).ok();
    assert_eq!(built.stdout, "router.holo is up to date with 3 databases: 3 new, 0 written to, 0 unchanged, 0 gone\n");
    let ask = |question: &str| {
        let args = ["fleet", "recall", "*.holo", question, "--router", "router.holo", "--ask", "1"];
        place.run(&args)
    };
    let run = ask("little water for tomatoes").ok();
    assert!(run.stdout.contains("eve.holo ") && run.stdout.contains("others promise more: 2 databases"), "{run:#?}");
    record(&place, "bob.holo", "a new lock for the shed");
    let run = ask("little water for tomatoes").ok();
    assert!(run.stdout.contains("out of date: bob.holo was written to after commit 2"), "{run:#?}");
    assert!(run.stdout.contains("`holotype route update`"), "{run:#?}");
    std::fs::remove_dir_all(place.path("ann.holo")).unwrap();
    let json = place.run(&["route", "update", "*.holo", "router.holo", "--format", "json"]).ok().json();
    let counts = ["added", "updated", "removed", "unchanged"].map(|name| json[name].as_u64());
    assert_eq!(counts, [Some(0), Some(1), Some(1), Some(1)], "{json}");
    assert!(ask("the lock of the shed").ok().stdout.contains("bob.holo "));
    // The router is a database as any other.
    let rows = place
        .run(&["query", "router.holo", "find facts where active = true return key, commit", "--format", "json"])
        .ok()
        .json();
    assert_eq!(rows["rows"].as_array().map(Vec::len), Some(2), "{rows}");
    assert_eq!(place.run(&["verify", "router.holo", "--format", "json"]).ok().json()["clean"], true);
}

#[test]
fn what_cannot_be_asked_has_an_exit_status() {
    let place = company();
    let log = place.path("bob.holo").join("log/0000000001.log");
    let len = std::fs::metadata(&log).unwrap().len();
    std::fs::write(&log, vec![7; usize::try_from(len).unwrap()]).unwrap();
    let run = place.run(&["fleet", "recall", "*.holo", "the train"]);
    assert!(run.status == 1 && run.stdout.contains("not asked: ") && run.stdout.contains("bob.holo"), "{run:#?}");
    assert!(run.stdout.contains("from 2 of 3 databases asked"), "{run:#?}");
    let run = place.run(&["fleet", "recall", "bob.holo", "the train", "--json"]);
    assert_eq!((run.status, run.json()["failed"][0]["code"].as_str()), (3, Some("storage")), "{run:#?}");
    let run = place.run(&["route", "build", "*.holo", "router.holo"]);
    assert!(run.status == 1 && run.stderr.contains("note: left as it was: ") && run.stdout.contains("1 could not"));
    for (args, status, message) in [
        (vec!["fleet", "recall", "none/*.holo", "x"], 2, "no database matches 'none/*.holo'"),
        (vec!["fleet", "recall", "*.holo", " "], 2, "the question is blank"),
        (vec!["fleet", "recall", "*.holo", "x", "--ask", "1"], 2, "needs a router"),
        (vec!["fleet", "recall", "*.holo", "x", "--router", "ann.holo"], 2, "no router"),
        (vec!["fleet", "recall", "*.holo", "x", "--router", "gone.holo"], 3, "gone.holo"),
        (vec!["fleet", "recall", "*.holo", "x", "--json", "--format", "table"], 2, "different formats"),
        (vec!["fleet", "recall", "*.holo", "x", "--open", "0"], 2, "at least one"),
        (vec!["fleet", "recall", "*.holo", "x", "--profile", "y"], 2, "no score profile"),
        (vec!["route", "update", "*.holo", "ann.holo"], 2, "no router"),
        (vec!["route", "update", "*.holo", "gone.holo"], 3, "gone.holo"),
        (vec!["route", "build", "*.holo", "ann.holo"], 2, "ann.holo"),
        (vec!["route", "build", "*.holo", "new.holo", "--parts", "0"], 2, "at least one part"),
    ] {
        let run = place.run(&args);
        assert!(run.status == status && run.stderr.contains(message), "{args:?}: {run:#?}");
    }
    assert!(!place.path("new.holo").exists(), "a command that is wrong leaves nothing behind");
}
