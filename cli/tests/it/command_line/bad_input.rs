//! Everything wrong that is given to the program is told with its place, and has the exit status it should have.

use crate::command_line::program::{Place, Run, TRIP, npy};
use holotype::{Holotype, Options};

/// Imports the trip with one more line, which is line 7.
fn import(line: &str) -> (Place, Run) {
    let place = Place::new();
    place.run(&["create", "memory.holo", "--dim", "2", "--space", "test"]).ok();
    let lines: Vec<&str> = TRIP.lines().collect();
    let (commit, before) = lines.split_last().unwrap();
    place.write("trip.jsonl", format!("{}\n{line}\n{commit}\n", before.join("\n")));
    place.write("v.npy", npy(&[&[1.0, 0.0], &[f32::NAN, 0.0]]));
    place.write("long.npy", npy(&[&[1.0, 0.0, 0.0]]));
    let run = place.run(&["import", "memory.holo", "trip.jsonl", "--vectors", "v.npy"]);
    (place, run)
}

/// A bad line ends the import with status 2, the place where `from` begins, and a code; nothing of its transaction is
/// there.
#[track_caller]
fn assert_refused(line: &str, from: &str, code: &str, told: &str) {
    let column = line.find(from).unwrap() + 1;
    let (place, run) = import(line);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{run:#?}");
    assert!(run.stderr.starts_with(&format!("error: trip.jsonl:7:{column}: ")), "{run:#?}");
    assert!(run.stderr.contains(told), "{run:#?}");
    assert_eq!(place.run(&["query", "memory.holo", "count items", "--format", "json"]).json()["rows"][0]["count"], 0);

    let run = place.run(&["import", "memory.holo", "trip.jsonl", "--vectors", "v.npy", "--format", "json"]);
    let error = run.error();
    assert_eq!((run.status, error["code"].as_str()), (2, Some(code)), "{run:#?}");
    assert_eq!((error["file"].as_str(), error["line"].as_u64()), (Some("trip.jsonl"), Some(7)), "{run:#?}");
    assert_eq!(error["column"].as_u64(), Some(column as u64), "{run:#?}");

    let run = place.run(&["import", "memory.holo", "trip.jsonl", "--vectors", "v.npy", "--skip-bad"]);
    assert_eq!(run.status, 1, "{run:#?}");
    assert!(run.stderr.contains(told) && run.stdout.contains("1 skipped"), "{run:#?}");
    assert_eq!(place.run(&["query", "memory.holo", "count items", "--format", "json"]).json()["rows"][0]["count"], 4);
}

#[test]
fn a_line_that_is_no_json() {
    assert_refused("{\"trace\":{\"key\" \"t9\"}}", "\"t9\"", "bad-line", "expected `:`");
}

#[test]
fn an_unknown_member() {
    assert_refused("{\"trace\":{\"key\":\"t9\",\"colour\":\"red\"}}", "\"colour\"", "bad-line", "`colour`");
}

/// A turn with more members.
fn turn(key: &str, more: &str) -> String {
    let fields = "\"fields\":{\"text\":\"x\"}";
    format!("{{\"trace\":{{\"key\":\"{key}\",\"episode\":\"trip-42\",\"kind\":\"turn\",{fields}{more}}}}}")
}

/// A fact that rests on `t1`.
fn fact(pointer: &str) -> String {
    let from = format!("[{{\"key\":\"t1\",{pointer}}}]");
    format!("{{\"recall\":{{\"key\":\"r9\",\"kind\":\"fact\",\"text\":\"x\",\"from\":{from}}}}}")
}

#[test]
fn a_vector_of_the_wrong_length() {
    assert_refused(&turn("t9", ",\"vector\":[1,2,3]"), "[1,2,3]", "vector", "3 numbers");
}

#[test]
fn a_vector_that_holds_nan() {
    assert_refused(&turn("t9", ",\"row\":1"), "1}}", "vector", "row 1, number 0: NaN");
    assert_refused(&turn("t9", ",\"vector\":[1,NaN]"), "NaN", "bad-line", "expected a value");
}

#[test]
fn a_key_that_is_taken() {
    assert_refused(&turn("t1", ""), "{\"key\"", "differs", "'t1' exists with another");
}

#[test]
fn a_pointer_past_the_end_of_its_field() {
    let line = fact("\"start\":17,\"end\":99");
    assert_refused(&line, "17,", "unresolved-pointer", "17 to 99 are outside its 27 bytes");
}

#[test]
fn a_hash_that_disagrees() {
    let line = fact(&format!("\"start\":17,\"end\":27,\"hash\":\"{}\"", "00".repeat(32)));
    assert_refused(&line, "\"0000", "hash-mismatch", "but the bytes have");
}

#[test]
fn vectors_that_are_no_vectors() {
    let (place, _) = import("");
    place.write("text.npy", "hello");
    let run = place.run(&["import", "memory.holo", "trip.jsonl", "--vectors", "text.npy"]);
    assert_eq!(run.status, 2, "{run:#?}");
    assert!(run.stderr.contains("text.npy"), "{run:#?}");
    let run = place.run(&["import", "memory.holo", "trip.jsonl", "--vectors", "v.npy", "--vectors", "v.npy"]);
    assert_eq!(run.status, 2, "{run:#?}");
    assert!(run.stderr.contains("once for each FILE"), "{run:#?}");
}

#[test]
fn an_unknown_attribute_in_a_query() {
    let place = Place::with_trip();
    let run = place.run(&["query", "memory.holo", "recall 'x' where colour = red"]);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{run:#?}");
    let shown = "error[unknown-attribute]: items have no attribute `colour`\n --> 1:18\n  |\n\
        1 | recall 'x' where colour = red\n  |                  ^^^^^^\n";
    assert!(run.stderr.starts_with(shown), "{run:#?}");

    let run = place.run(&["query", "memory.holo", "recall 'x' where colour = red", "--format", "json"]);
    let error = run.error();
    assert_eq!((error["code"].as_str(), error["line"].as_u64()), (Some("unknown-attribute"), Some(1)), "{run:#?}");
    assert_eq!(error["column"].as_u64(), Some(18), "{run:#?}");
    assert!(error["hint"].is_string() && error["file"].is_null(), "{run:#?}");
}

#[test]
fn a_parameter_that_is_missing_or_of_the_wrong_length() {
    let place = Place::with_trip();
    let run = place.run(&["query", "memory.holo", "recall $q"]);
    assert_eq!(run.status, 2);
    assert!(run.stderr.contains("missing-parameter"), "{run:#?}");
    let run = place.run(&["query", "memory.holo", "recall near $v", "--param", "v:=[1,2,3]"]);
    assert_eq!(run.status, 2);
    assert!(run.stderr.contains("vector-length"), "{run:#?}");
}

#[test]
fn a_command_that_does_not_exist() {
    let place = Place::new();
    let run = place.run(&["exhume", "a", "b"]);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{run:#?}");
    let run = place.run(&["--format", "json", "exhume"]);
    assert_eq!((run.status, run.error()["code"].as_str()), (2, Some("usage")), "{run:#?}");
    assert_eq!(place.run(&["create", "x.holo", "--page-size", "5000"]).status, 2);
    assert!(!place.path("x.holo").exists(), "nothing is left behind");
}

#[test]
fn a_database_that_is_not_there() {
    let place = Place::new();
    place.write("trip.jsonl", TRIP);
    let commands: [&[&str]; 7] = [
        &["query", "no.holo", "count items"],
        &["stats", "no.holo"],
        &["head", "no.holo"],
        &["verify", "no.holo"],
        &["rebuild", "no.holo"],
        &["export", "no.holo"],
        &["repl", "no.holo"],
    ];
    for command in commands {
        let run = place.run(command);
        assert_eq!((run.status, run.stdout.as_str()), (3, ""), "{command:?}: {run:#?}");
        assert!(run.stderr.starts_with("error: no database at no.holo"), "{run:#?}");
    }
    let run = place.run(&["import", "no.holo", "trip.jsonl"]);
    assert_eq!(run.status, 3);
    assert!(run.stderr.contains("holotype create no.holo"), "{run:#?}");
    assert!(!place.path("no.holo").exists());
}

#[test]
fn a_database_that_is_there_already() {
    let place = Place::with_trip();
    let run = place.run(&["create", "memory.holo"]);
    assert_eq!(run.status, 2, "{run:#?}");
    assert!(run.stderr.contains("already exists"), "{run:#?}");
}

#[test]
fn a_database_that_another_process_writes_to() {
    let place = Place::with_trip();
    let holder = Holotype::open(place.path("memory.holo"), Options::default()).unwrap();
    let run = place.run(&["query", "memory.holo", "mark 't1' failed because 'no'"]);
    assert_eq!((run.status, run.stdout.as_str()), (3, ""), "{run:#?}");
    let (command, pid) = (std::env::args().next().unwrap(), std::process::id());
    let command = command.rsplit('/').next().unwrap();
    assert!(run.stderr.contains(&format!("process {pid} ({command}) has the database open")), "{run:#?}");
    let error = place.run(&["import", "memory.holo", "trip.jsonl", "--format", "json"]).error();
    assert_eq!(error["code"], "locked", "{error}");
    place.run(&["query", "memory.holo", "count items"]).ok();

    holder.close().unwrap();
    place.run(&["query", "memory.holo", "mark 't1' failed because 'no'"]).ok();
}

#[test]
fn a_statement_that_writes_where_only_reading_is_allowed() {
    let place = Place::with_trip();
    let run = place.run(&["query", "memory.holo", "mark 't1' failed", "--read-only"]);
    assert_eq!(run.status, 2, "{run:#?}");
    assert!(run.stderr.contains("open read-only"), "{run:#?}");
}

#[test]
fn a_database_of_a_newer_format() {
    let place = Place::with_trip();
    let mut log = place.read("memory.holo/log/0000000001.log");
    // The header: its version at 8, the CRC of bytes 0 to 136 behind them (`docs/format.md`).
    log[8] = 2;
    let crc = crc32fast::hash(&log[..136]);
    log[136..140].copy_from_slice(&crc.to_le_bytes());
    place.write("memory.holo/log/0000000001.log", log);
    for command in [["stats", "memory.holo"], ["checkpoint", "memory.holo"]] {
        let run = place.run(&command);
        assert_eq!((run.status, run.stdout.as_str()), (3, ""), "{run:#?}");
        assert!(run.stderr.contains("newer version of holotype"), "{run:#?}");
    }
}

#[test]
fn a_database_whose_log_is_no_log() {
    let place = Place::with_trip();
    place.write("memory.holo/log/0000000001.log", "hello");
    let run = place.run(&["checkpoint", "memory.holo"]);
    assert_eq!((run.status, run.stdout.as_str()), (3, ""), "{run:#?}");
    assert!(run.stderr.contains("0000000001.log"), "{run:#?}");
}

#[test]
fn places_that_cannot_be_read_or_written() {
    let place = Place::with_trip();
    place.write("file", "");
    let commands: [&[&str]; 5] = [
        &["create", "file/memory.holo"],
        &["export", "memory.holo", "nowhere/out.jsonl"],
        &["import", "memory.holo", "nowhere.jsonl"],
        &["import", "memory.holo", "."],
        &["query", "memory.holo", "--batch", "nowhere.jsonl"],
    ];
    for command in commands {
        let run = place.run(command);
        assert_eq!((run.status, run.stdout.as_str()), (4, ""), "{command:?}: {run:#?}");
        assert!(run.stderr.starts_with("error: "), "{run:#?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    let place = Place::with_trip();
    let run = place.run(&["export", "memory.holo", "/dev/full"]);
    assert_eq!(run.status, 4, "{run:#?}");
    assert!(run.stderr.contains("/dev/full") && run.stderr.contains("No space left"), "{run:#?}");
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    for command in [["export", "memory.holo"], ["stats", "memory.holo"], ["completions", "bash"]] {
        let run = Run::of(place.command(&command).stdout(full()).output().unwrap());
        assert_eq!(run.status, 4, "{command:?}: {run:#?}");
        assert!(run.stderr.contains("cannot write the output: No space left"), "{run:#?}");
    }
}
