//! An import that is killed (SIGKILL) at random moments and run again: after each kill a whole prefix of the
//! transactions is there, every one that was reported committed, nothing half, and `verify` is clean; in the end the
//! database says what one that was never disturbed says. This proves nothing about power loss; `crash.rs` does.
//!
//! The process that is killed is this test binary, started again to run `the_process_that_is_killed` alone. How often
//! is in the environment: `HOLOTYPE_KILLS`.
#![cfg(unix)]

use crate::observed::{everything, faults};
use holotype::interchange::{ImportOptions, export, import};
use holotype::time::FixedClock;
use holotype::{Durability, Holotype, Options, Space};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

const TRANSACTIONS: u64 = 60;

fn options() -> Options {
    Options {
        page_size: 4096,
        // So often that many kills hit a checkpoint.
        checkpoint_records: 23,
        clock: Arc::new(FixedClock(1_770_000_000_000_000)),
        ..Options::with_space(Space::new("test", 2))
    }
}

/// A file of many small transactions, in which later ones rest on earlier ones.
fn lines() -> String {
    let mut lines = String::new();
    for number in 1..=TRANSACTIONS {
        let (episode, late) = (number / 12, number * 7 % 5);
        for part in 0..3 {
            let words = "and on ".repeat((number * 13 + part) as usize % 60);
            let _ = writeln!(
                lines,
                r#"{{"trace":{{"key":"t{number}-{part}","episode":"e{episode}","time":"2026-01-05T10:00:0{late}Z","fields":{{"text":"said {number} {part} {words}"}},"vector":[1,{part}]}}}}"#
            );
        }
        let _ = writeln!(
            lines,
            r#"{{"recall":{{"key":"r{number}","text":"fact of {number}","from":[{{"key":"t{number}-1"}},{{"key":"t{}-0","start":0,"end":4}}]}}}}"#,
            number.div_ceil(2)
        );
        if number % 6 == 0 {
            let _ = writeln!(lines, r#"{{"mark":{{"key":"t{}-1","status":"failed"}}}}"#, number / 2);
        }
        let _ = writeln!(lines, r#"{{"commit":{{"number":{},"time":"2026-01-05T10:00:00Z"}}}}"#, number + 1);
    }
    lines
}

/// Imports the lines and calls `committed` with the number of transactions after each one that is.
fn run(database: &Holotype, committed: &mut dyn FnMut(u64)) {
    let lines = lines();
    let ends: Vec<u64> = lines
        .match_indices("{\"commit\"")
        .map(|(at, _)| at + lines[at..].find('\n').unwrap_or_default() + 1)
        .map(|end| end as u64)
        .collect();
    let options = ImportOptions { durability: Durability::Sync, ..ImportOptions::default() };
    let mut progress = |bytes| {
        if let Ok(at) = ends.binary_search(&bytes) {
            committed(at as u64 + 1);
        }
    };
    import(database, "lines.jsonl", lines.as_bytes(), None, &options, &mut progress).unwrap();
}

/// Does nothing unless it is told where; then it imports, says what is committed, and is killed.
#[test]
fn the_process_that_is_killed() {
    let Some(path) = std::env::var_os("HOLOTYPE_KILLED_IMPORT") else { return };
    let database = Holotype::open(Path::new(&path), options()).unwrap();
    let mut out = std::io::stdout();
    run(&database, &mut |number| {
        writeln!(out, "committed {number}").and_then(|()| out.flush()).unwrap();
    });
}

/// Starts an import and kills it some way behind the transaction it is to report; says which it reported last.
fn import_and_kill(path: &Path, after: u64, spins: u64) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::the_process_that_is_killed", "--nocapture", "--test-threads=1"])
        .env("HOLOTYPE_KILLED_IMPORT", path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut last = 0;
    let mut line = String::new();
    let mut next = |last: &mut u64| {
        line.clear();
        let read = out.read_line(&mut line).unwrap();
        if let Some((_, number)) = line.trim().split_once("committed ") {
            *last = number.parse().unwrap();
        }
        read > 0
    };
    while last < after && next(&mut last) {}
    for _ in 0..spins {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // The output from before it died counts too.
    while next(&mut last) {}
    last
}

#[test]
fn a_killed_import_leaves_a_whole_prefix_and_completes_when_run_again() {
    let dir = tempfile::tempdir().unwrap();
    let undisturbed = Holotype::create(dir.path().join("undisturbed.holo"), options()).unwrap();
    let mut story = vec![everything(&undisturbed.snapshot()).unwrap()];
    {
        let database = undisturbed.clone();
        run(&undisturbed, &mut |_| story.push(everything(&database.snapshot()).unwrap()));
    }
    let exported = |database: &Holotype| {
        let mut bytes = Vec::new();
        export(&database.snapshot(), &mut bytes, None).unwrap();
        bytes
    };
    let wanted = exported(&undisturbed);
    let kills: u64 = std::env::var("HOLOTYPE_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(10);
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let (mut done, mut database_number, mut within) = (0, 0, 0);
    while done < kills {
        database_number += 1;
        let path = dir.path().join(format!("killed{database_number}.holo"));
        Holotype::create(&path, options()).unwrap().close().unwrap();
        let mut at = 0;
        for _ in 0..1 + draw(3) {
            if done == kills || at == TRANSACTIONS {
                break;
            }
            done += 1;
            let after = at + draw(TRANSACTIONS - at);
            let reported = import_and_kill(&path, after, draw(200_000));
            let context = format!("kill {done}, after {after}, reported {reported}");
            let database = Holotype::open(&path, options()).unwrap_or_else(|error| panic!("{context}: {error}"));
            let found = database.snapshot().commit() - 1;
            assert!(found >= reported.max(at), "{context}: {found} are there");
            assert!(everything(&database.snapshot()).unwrap() == story[found as usize], "{context}: {found}");
            assert_eq!(faults(&database), [""; 0], "{context}");
            within += u64::from(found < TRANSACTIONS);
            at = found;
        }
        let database = Holotype::open(&path, options()).unwrap();
        run(&database, &mut |_| {});
        assert!(exported(&database) == wanted, "the export differs after {done} kills");
        assert_eq!(database.snapshot().commit(), TRANSACTIONS + 1);
    }
    assert!(within * 2 > kills, "only {within} of {kills} kills came in time");
}
