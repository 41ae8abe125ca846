//! Running the program in a directory of its own.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_holotype");

/// The outcome of one run of the program.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn of(output: Output) -> Run {
        Run {
            status: output.status.code().expect("the program ended by itself"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The same run, which ended well and had nothing to say about it.
    #[track_caller]
    pub(crate) fn ok(self) -> Run {
        assert_eq!(self.status, 0, "{self:#?}");
        assert!(!self.stderr.contains("error"), "{self:#?}");
        self
    }

    /// The one JSON document on stdout.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// The error object on stderr.
    #[track_caller]
    pub(crate) fn error(&self) -> serde_json::Value {
        let line = self.stderr.lines().last().unwrap_or_default();
        let document: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {self:#?}"));
        document["error"].clone()
    }
}

/// A directory to work in.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap() }
    }

    /// A place with `memory.holo` in it: a small trip, embedded by the built-in embedder.
    pub(crate) fn with_trip() -> Place {
        let place = Place::new();
        place.write("trip.jsonl", TRIP);
        place.run(&["create", "memory.holo"]).ok();
        place.run(&["import", "memory.holo", "trip.jsonl"]).ok();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(args).current_dir(self.dir.path()).env_remove("COLUMNS").env("HOME", self.dir.path());
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        Run::of(self.command(args).output().unwrap())
    }

    pub(crate) fn run_with(&self, args: &[&str], input: &str) -> Run {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Run::of(child.wait_with_output().unwrap())
    }
}

/// Two searches, one of which failed, and a fact that rests on the other.
pub(crate) const TRIP: &str = r#"{"holotype":{"interchange":1}}
{"episode":{"id":"trip-42","task":"book a flight","version":"v3","open":true}}
{"trace":{"key":"t1","episode":"trip-42","step":1,"time":"2026-01-05T10:00:00Z","kind":"call","source":"tool","tool":"search_flights","status":"success","fields":{"text":"UA123 to Lisbon: price=$450","price":450}}}
{"trace":{"key":"t2","episode":"trip-42","step":2,"time":"2026-01-05T10:05:00Z","kind":"call","source":"tool","tool":"search_flights","status":"failed","fields":{"text":"UA123 to Lisbon: price=$120"}}}
{"trace":{"key":"t3","episode":"trip-42","step":3,"time":"2026-01-05T10:06:00Z","kind":"turn","source":"user","speaker":"Mara","fields":{"text":"Is that with a bag?"}}}
{"recall":{"key":"r1","kind":"fact","text":"UA123 costs $450","from":[{"key":"t1","start":17,"end":27}]}}
{"commit":{"number":1,"time":"2026-01-05T10:07:00Z"}}
"#;

/// A `.npy` file of 32-bit rows.
pub(crate) fn npy(rows: &[&[f32]]) -> Vec<u8> {
    let dim = rows.first().map_or(0, |row| row.len());
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {dim}), }}", rows.len());
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(118_u16.to_le_bytes());
    bytes.extend(format!("{header:<117}\n").bytes());
    bytes.extend(rows.iter().flat_map(|row| row.iter().flat_map(|number| number.to_le_bytes())));
    bytes
}
