//! The program itself on a disk that keeps nothing but what was synced: killed (SIGKILL) at random moments, after which
//! every change that no sync had covered is undone. What it had answered for is there, and nothing needs to be made
//! anew. With the syncs of any one kind of file left out the same check fails.
//!
//! The disk is a library of C that is loaded before the program (`unsynced.c` beside this file says how it works), so
//! the program is the one that is shipped. How often it is killed is in the environment: `HOLOTYPE_KILLS`.
#![cfg(target_os = "linux")]

mod undo;

use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use holotype::{Holotype, Options};

const PROGRAM: &str = env!("CARGO_BIN_EXE_holotype");

/// Compiles the disk.
fn library(dir: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/unsynced/unsynced.c");
    let library = dir.join("unsynced.so");
    let status = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .args(["-ldl", "-lpthread"])
        .status()
        .expect("a C compiler, which building needs too");
    assert!(status.success());
    library
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A database on the disk, and what the program said of it.
struct Disk {
    root: PathBuf,
    journal: PathBuf,
    library: PathBuf,
    /// The traces asked for so far, by their numbers.
    asked: u64,
    /// Those that were answered for.
    answered: Vec<u64>,
}

impl Disk {
    fn new(dir: &Path, library: &Path, ignored: &str) -> Self {
        // The library compares paths, so there may be no links in it.
        let dir = dir.canonicalize().unwrap();
        let (root, journal) = (dir.join("disk"), dir.join("journal"));
        for dir in [&root, &journal.join("files"), &journal.join("kept")] {
            std::fs::create_dir_all(dir).unwrap();
        }
        let disk = Self { root, journal, library: library.to_owned(), asked: 0, answered: Vec::new() };
        let created = disk.command(ignored).arg("create").arg(disk.database()).output().unwrap();
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
        disk
    }

    /// From the root on: the disk knows its files by their whole paths.
    fn database(&self) -> PathBuf {
        self.root.join("killed.holo")
    }

    /// The program on the disk, with the syncs of some paths left out.
    fn command(&self, ignored: &str) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .env("LD_PRELOAD", &self.library)
            .env("UNSYNCED_ROOT", &self.root)
            .env("UNSYNCED_JOURNAL", &self.journal)
            .env("UNSYNCED_IGNORE", ignored);
        command
    }

    /// Lets the program answer so many statements of more that it was given, and kills it.
    fn write_and_kill(&mut self, ignored: &str, answers: u64, spins: u64) {
        let mut child = self
            .command(ignored)
            .arg("repl")
            .arg(self.database())
            .args(["--format", "jsonl"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut statements = child.stdin.take().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let first = self.asked + 1;
        self.asked += answers + 3;
        for number in first..=self.asked {
            let words = "and on ".repeat((number * 131 % 400) as usize);
            writeln!(statements, "record turn '{words}' in episode 'e' with key = 't{number}';").unwrap();
        }
        statements.flush().unwrap();
        let mut next = first;
        let mut answer = |answered: &mut Vec<u64>| {
            let mut line = String::new();
            let read = out.read_line(&mut line).unwrap();
            if line.ends_with('\n') {
                assert!(!line.contains("\"error\""), "{line}");
                answered.push(next);
                next += 1;
            }
            read > 0
        };
        for _ in 0..answers {
            if !answer(&mut self.answered) {
                break;
            }
        }
        for _ in 0..spins {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // Answers from before its end count too.
        while answer(&mut self.answered) {}
    }

    /// Takes back what was not synced, and holds what is left against what was answered.
    fn check(&self, checkpointed: bool) -> Result<(), String> {
        undo::undo(&self.journal)?;
        let database = Holotype::open(self.database(), Options::default()).map_err(|error| error.to_string())?;
        let report = database.report();
        if let Some(why) = &report.rebuilt {
            return Err(format!("derived files had to be made anew: {why}"));
        }
        if checkpointed && report.replayed > 0 {
            return Err(format!("after a checkpoint {} records had to be replayed", report.replayed));
        }
        let verified = database.verify(&mut |_, _| {}).map_err(|error| error.to_string())?;
        if !verified.is_clean() {
            return Err(format!("it does not verify: {:?}", verified.faults));
        }
        let snapshot = database.snapshot();
        for number in &self.answered {
            if snapshot.get(&format!("t{number}")).map_err(|error| error.to_string())?.is_none() {
                return Err(format!("t{number} was answered for and is not there"));
            }
        }
        Ok(())
    }
}

/// Kills the program so often; the first check that fails is told.
fn kill(ignored: &str, kills: u64) -> Result<(), String> {
    let dir = tempfile::tempdir().unwrap();
    let library = library(dir.path());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut disk = Disk::new(dir.path(), &library, ignored);
    disk.check(false).map_err(|why| format!("created: {why}"))?;
    for kill in 0..kills {
        disk.write_and_kill(ignored, random.below(40), random.below(300_000));
        disk.check(false).map_err(|why| format!("kill {kill}: {why}"))?;
        if kill % 3 == 2 {
            disk.write_and_kill(ignored, 3, 0);
            let written = disk.command(ignored).arg("checkpoint").arg(disk.database()).output().unwrap();
            let said = String::from_utf8_lossy(&written.stderr).into_owned();
            if !written.status.success() {
                return Err(format!("kill {kill}, then a checkpoint: {said}"));
            }
            disk.check(true).map_err(|why| format!("kill {kill}, then a checkpoint: {why}"))?;
        }
    }
    Ok(())
}

#[test]
fn what_was_answered_for_is_there_when_only_synced_changes_are_left() {
    let kills = std::env::var("HOLOTYPE_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(6);
    kill("", kills).unwrap();
}

#[test]
fn without_any_one_kind_of_sync_something_is_missed() {
    let kinds = [
        ("segments of the log", ".log"),
        ("files under a temporary name", ".tmp"),
        ("the directory of the log", "/log"),
        ("the catalog", "catalog.redb"),
        ("the directory of columns", "/columns"),
        ("the directory of words", "/words"),
        ("the directory of the database", ".holo"),
    ];
    for (what, ignored) in kinds {
        assert!(kill(ignored, 40).is_err(), "nobody noticed that {what} were not synced");
    }
}
