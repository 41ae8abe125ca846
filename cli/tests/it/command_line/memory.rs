//! A process without memory says so and ends, or ends the statement and goes on; it is never aborted, and what it
//! acknowledged stands. The address space is limited, from what the program needs to start up to enough.

use crate::command_line::program::{PROGRAM, Place, Run};
use std::fmt::Write as _;

const MIB: u64 = 1 << 20;

/// Runs the program with at most `limit` bytes of address space.
fn limited(place: &Place, limit: u64, args: &[&str]) -> std::process::Output {
    let mut command = place.command(&[]);
    let shell = std::mem::replace(&mut command, std::process::Command::new("sh"));
    command.current_dir(shell.get_current_dir().unwrap());
    let kib = (limit / 1024).to_string();
    command.args(["-c", r#"ulimit -v "$0" && exec "$@""#, &kib, PROGRAM]).args(args).output().unwrap()
}

/// The least limit, in steps of 8 MiB, with which the program starts.
fn least(place: &Place) -> u64 {
    let starts = |limit: &u64| limited(place, *limit, &["--version"]).status.success();
    (2..256).map(|step| step * 8 * MIB).find(starts).expect("the program starts in 2 GiB")
}

/// A database of 100 texts of 150 KB. Each is one long word, which takes no time to index.
fn place() -> Place {
    let place = Place::new();
    let mut lines = String::from("{\"holotype\":{\"interchange\":1}}\n{\"episode\":{\"id\":\"e\"}}\n");
    for number in 0..100 {
        let text = "x".repeat(150_000);
        writeln!(
            lines,
            r#"{{"trace":{{"key":"k{number}","episode":"e","kind":"turn","fields":{{"text":"{number} {text}"}}}}}}"#
        )
        .unwrap();
    }
    place.write("lines.jsonl", lines);
    place.run(&["create", "memory.holo"]).ok();
    place.run(&["import", "memory.holo", "lines.jsonl"]).ok();
    place
}

#[test]
fn a_process_without_memory_says_so_and_keeps_what_it_acknowledged() {
    let place = place();
    let least = least(&place);
    each_command_ends_with_a_message(&place, least);
    a_statement_fails_and_the_next_one_runs(&place, least);
}

fn each_command_ends_with_a_message(place: &Place, least: u64) {
    let (mut refused, mut acknowledged) = (0, Vec::new());
    for step in 0..16 {
        let limit = least + step * 16 * MIB;
        let key = format!("new{step}");
        let record = format!("record turn 'a sentence' in episode 'e' with key = '{key}'");
        for statement in ["find traces order by time desc return key, text limit 100", &record] {
            let run = Run::of(limited(place, limit, &["query", "memory.holo", statement, "--format", "jsonl"]));
            match run.status {
                0 if statement == record => acknowledged.push(key.clone()),
                0 => {}
                3..=5 => {
                    assert!(run.stderr.contains("memory"), "{limit}: {run:#?}");
                    refused += 1;
                }
                _ => panic!("{limit}: {run:#?}"),
            }
        }
    }
    assert!(refused > 0 && !acknowledged.is_empty(), "{refused} refused, {acknowledged:?} acknowledged");
    place.run(&["verify", "memory.holo"]).ok();
    for key in acknowledged {
        let statement = format!("find traces where key = '{key}' return key");
        assert!(place.run(&["query", "memory.holo", &statement]).ok().stdout.contains(&key), "{key} is lost");
    }
}

fn a_statement_fails_and_the_next_one_runs(place: &Place, least: u64) {
    let large = "find traces order by time desc return key, text limit 100";
    let lines: String = [large, "find traces return key limit 1"]
        .map(|statement| format!("{}\n", serde_json::json!({ "statement": statement })))
        .concat();
    place.write("statements.jsonl", lines);
    let ends_one = |step: u64| {
        let args = ["query", "memory.holo", "--batch", "statements.jsonl"];
        let run = Run::of(limited(place, least + step * 4 * MIB, &args));
        let mut answers = run.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let codes = [(); 2].map(|()| answers.next().map(|answer| answer["error"]["code"].clone()));
        codes == [Some("out-of-memory".into()), Some(serde_json::Value::Null)]
    };
    assert!((0..64).any(ends_one), "no limit ended the first statement only");
}
