//! Beside a writer: readers and other writers of their own processes take turns; beside an exclusive one, a writer is
//! told who is in the way.

use crate::command_line::program::{Place, Run};
use holotype::{Holotype, Options};
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A session in a process of its own.
struct Session {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Session {
    fn new(place: &Place, args: &[&str]) -> Session {
        let mut command = place.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Session { child, stdin, stdout }
    }

    /// Runs a statement and returns its one line of answer.
    fn ask(&mut self, statement: &str) -> serde_json::Value {
        // A session on a pipe runs a statement when the next line begins.
        writeln!(self.stdin, "{statement};\n.format jsonl").unwrap();
        self.stdin.flush().unwrap();
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn end(self) -> i32 {
        drop(self.stdin);
        let mut child = self.child;
        child.wait().unwrap().code().unwrap()
    }
}

#[test]
fn readers_and_writers_follow_a_writer() {
    let place = Place::with_trip();
    let mut writer = Session::new(&place, &["repl", "memory.holo", "--format", "jsonl"]);
    let mut reader = Session::new(&place, &["repl", "memory.holo", "--format", "jsonl", "--read-only"]);
    let count = |answer: &serde_json::Value| answer["rows"][0]["count"].as_u64().unwrap();
    assert_eq!(count(&writer.ask("count recalls")), 1);
    for number in 2..6 {
        let statement = format!("remember fact 'the {number}th' from 't1' with key = 'n{number}'");
        writer.ask(&statement);
        assert_eq!(count(&reader.ask("count recalls")), number);
        let other = place.run(&["query", "memory.holo", "count recalls", "--read-only", "--format", "jsonl"]).ok();
        assert_eq!(count(&other.json()), number, "{other:#?}");
    }
    place.run(&["query", "memory.holo", "remember fact 'x' from 't1'"]).ok();
    for session in [&mut reader, &mut writer] {
        assert_eq!(count(&session.ask("count recalls")), 6);
    }
    writer.ask("remember fact 'y' from 't1'");
    assert_eq!(count(&reader.ask("count recalls")), 7);
    assert_eq!((reader.end(), writer.end()), (0, 0));
    place.run(&["query", "memory.holo", "remember fact 'z' from 't1'"]).ok();
}

#[test]
fn a_writer_beside_an_exclusive_one_is_told_who_is_in_the_way() {
    let place = Place::with_trip();
    let exclusive = Holotype::open(place.path("memory.holo"), Options::default()).unwrap();
    let refused: Run = place.run(&["query", "memory.holo", "remember fact 'x' from 't1'", "--format", "json"]);
    assert_eq!(refused.status, 3, "{refused:#?}");
    assert_eq!(refused.error()["code"], "locked");
    let message = refused.error()["message"].to_string();
    assert!(message.contains(&format!("process {} ", std::process::id())), "{message}");
    place.run(&["query", "memory.holo", "count recalls", "--read-only"]).ok();
    exclusive.close().unwrap();
    place.run(&["query", "memory.holo", "remember fact 'x' from 't1'"]).ok();
}
