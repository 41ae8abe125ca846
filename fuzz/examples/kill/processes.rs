//! Ten processes on one database, killed at random moments: four that write with the library, four with the program
//! `holotype` (each transaction a process of its own), two that read.
//!
//! Every transaction writes two numbered traces. A writer prints its number when its commit returned; the program ends
//! with success. In the end, and before by each reader, it must hold:
//!
//! 1. Nothing acknowledged is lost: the traces 1 to n of each writer are there, n at least the last acknowledged.
//! 2. Order is kept: a writer's traces stand in the order of their numbers.
//! 3. Nobody sees half a transaction: the number of items is even.
//! 4. Nobody starves: the longest wait for a commit is reported, and how often the program gave up and tried again.

use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use holotype::{Durability, Holotype, ItemId, NewTrace, Options, Snapshot};
use holotype_fuzz::explore::Random;

use crate::Arguments;

/// The program says this when its turn does not come in time.
const REFUSED: &str = "did not give back its turn";

/// The writers with the program, then those with the library, then the readers.
const PROGRAMS: u64 = 4;
const WRITERS: u64 = 8;
const PROCESSES: u64 = 10;

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn options() -> Options {
    let write_timeout = Duration::from_secs(60);
    Options { page_size: 4096, checkpoint_records: 300, background_threads: 1, write_timeout, ..Options::shared() }
}

fn key(writer: u64, number: u64, part: &str) -> String {
    format!("w{writer}-{number}-{part}")
}

/// Runs a child until it is killed.
pub(crate) fn child(path: &Path, role: &str, writer: u64) -> Result<(), String> {
    match role {
        "write" => write(path, writer),
        _ => read(path),
    }
}

fn write(path: &Path, writer: u64) -> Result<(), String> {
    let database = Holotype::open(path, options()).map_err(said)?;
    let mut number = Known::default().advance(&database.snapshot(), writer)?;
    loop {
        number += 1;
        let started = Instant::now();
        let mut transaction = database.begin().map_err(said)?;
        for part in ["a", "b"] {
            let trace = NewTrace::turn("e", format!("{number} of {writer}")).key(key(writer, number, part));
            transaction.record(trace).map_err(said)?;
        }
        transaction.commit(Durability::Sync).map_err(said)?;
        let waited = started.elapsed().as_micros();
        // One write of a whole line, which is atomic on a pipe.
        std::io::stdout().lock().write_all(format!("{number} {waited}\n").as_bytes()).map_err(said)?;
    }
}

fn read(path: &Path) -> Result<(), String> {
    let database = Holotype::open(path, Options { read_only: true, ..options() }).map_err(said)?;
    let mut known: Vec<Known> = (0..WRITERS).map(|_| Known::default()).collect();
    let mut last = 0;
    loop {
        database.refresh().map_err(said)?;
        let snapshot = database.snapshot();
        if snapshot.commit() < last {
            return Err(format!("commit {} after {last}", snapshot.commit()));
        }
        last = snapshot.commit();
        check_whole(&snapshot)?;
        for (writer, known) in (0..).zip(&mut known) {
            known.advance(&snapshot, writer)?;
        }
        std::io::stdout().lock().write_all(format!("{last} 0\n").as_bytes()).map_err(said)?;
    }
}

fn check_whole(snapshot: &Snapshot) -> Result<(), String> {
    match snapshot.len() % 2 {
        0 => Ok(()),
        _ => Err(format!("{} items at commit {}: half a transaction", snapshot.len(), snapshot.commit())),
    }
}

/// The traces of a writer that were found so far, without a gap.
#[derive(Default)]
struct Known {
    number: u64,
    newest: Option<ItemId>,
}

impl Known {
    /// Looks for more; returns the number of the last one.
    fn advance(&mut self, snapshot: &Snapshot, writer: u64) -> Result<u64, String> {
        loop {
            let number = self.number + 1;
            let find = |part| snapshot.get(&key(writer, number, part)).map_err(said);
            let (Some(a), Some(b)) = (find("a")?, find("b")?) else { return Ok(self.number) };
            if Some(a.id) <= self.newest || b.id <= a.id {
                return Err(format!("trace {number} of writer {writer} stands before an earlier one"));
            }
            (self.number, self.newest) = (number, Some(b.id));
        }
    }
}

/// State that the slots share.
struct Run<'a> {
    program: PathBuf,
    cli: PathBuf,
    path: &'a Path,
    ends: Instant,
    /// The last acknowledged number of each writer.
    acknowledged: Vec<AtomicU64>,
    commits: [AtomicU64; 2],
    longest_us: [AtomicU64; 2],
    kills: AtomicU64,
    /// Transactions of the program that waited too long for their turn, and were tried again.
    refused: AtomicU64,
    failed: AtomicBool,
    failures: Mutex<Vec<String>>,
}

pub(crate) fn parent(arguments: &Arguments, seconds: u64) -> Result<(), String> {
    let own = tempfile::tempdir().map_err(said)?;
    let path = arguments.dir.as_deref().unwrap_or(own.path()).join("processes.holo");
    let program = std::env::current_exe().map_err(said)?;
    let beside = program.parent().and_then(Path::parent).map(|dir| dir.join("holotype"));
    let cli = arguments.cli.clone().or(beside).filter(|cli| cli.exists()).ok_or("build holotype-cli, or name --cli")?;
    Holotype::create(&path, options()).and_then(Holotype::close).map_err(said)?;
    let run = Run {
        program,
        cli,
        path: &path,
        ends: Instant::now() + Duration::from_secs(seconds),
        acknowledged: (0..WRITERS).map(|_| AtomicU64::new(0)).collect(),
        commits: Default::default(),
        longest_us: Default::default(),
        kills: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        failed: AtomicBool::new(false),
        failures: Mutex::default(),
    };
    std::thread::scope(|scope| {
        for slot in 0..PROCESSES {
            let (run, seed) = (&run, arguments.seed * PROCESSES + slot);
            scope.spawn(move || {
                let done = if slot < PROGRAMS { run.programs(slot, seed) } else { run.children(slot, seed) };
                if let Err(why) = done {
                    run.failed.store(true, Ordering::Relaxed);
                    run.failures.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(why);
                }
            });
        }
    });
    let failures = run.failures.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).join("; ");
    if !failures.is_empty() {
        return Err(failures);
    }
    run.check()?;
    let figure = |of: &[AtomicU64; 2], at: usize| of[at].load(Ordering::Relaxed);
    println!(
        concat!(
            r#"{{"kill":{{"processes":{},"seconds":{},"kills":{},"program_commits":{},"library_commits":{},"#,
            r#""program_longest_ms":{},"library_longest_ms":{},"refused":{}}}}}"#
        ),
        PROCESSES,
        seconds,
        run.kills.load(Ordering::Relaxed),
        figure(&run.commits, 0),
        figure(&run.commits, 1),
        figure(&run.longest_us, 0) / 1000,
        figure(&run.longest_us, 1) / 1000,
        run.refused.load(Ordering::Relaxed),
    );
    Ok(())
}

impl Run<'_> {
    fn is_over(&self) -> bool {
        Instant::now() >= self.ends || self.failed.load(Ordering::Relaxed)
    }

    fn note(&self, kind: usize, waited_us: u64) {
        self.commits[kind].fetch_add(1, Ordering::Relaxed);
        self.longest_us[kind].fetch_max(waited_us, Ordering::Relaxed);
    }

    /// Transactions with the program, some of which are killed.
    fn programs(&self, writer: u64, seed: u64) -> Result<(), String> {
        let mut random = Random(seed);
        let mut number = 1;
        let mut began = Instant::now();
        while !self.is_over() {
            let mut child = Command::new(&self.cli)
                .args(["import".as_ref(), self.path.as_os_str(), "-".as_ref()])
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .map_err(said)?;
            let mut lines = String::new();
            for part in ["a", "b"] {
                let key = key(writer, number, part);
                lines += &format!(r#"{{"trace":{{"key":"{key}","episode":"p{writer}","fields":{{"text":"said"}}}}}}"#);
                lines.push('\n');
            }
            // A process that was killed does not read to the end.
            let _ = child.stdin.take().ok_or("no input")?.write_all(lines.as_bytes());
            if random.below(4) == 0 {
                std::thread::sleep(Duration::from_micros(random.below(60_000)));
                self.kill(&mut child)?;
                began = Instant::now();
                // It may be there or not; the next one finds it the same or writes it.
                continue;
            }
            let output = child.wait_with_output().map_err(said)?;
            let said = String::from_utf8_lossy(&output.stderr);
            if !output.status.success() && said.contains(REFUSED) {
                self.refused.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            if !output.status.success() {
                return Err(format!("the program failed: {said}"));
            }
            self.acknowledged[writer as usize].store(number, Ordering::Relaxed);
            self.note(0, began.elapsed().as_micros() as u64);
            number += 1;
            began = Instant::now();
        }
        Ok(())
    }

    /// Children of this program, each killed after some lines.
    fn children(&self, slot: u64, seed: u64) -> Result<(), String> {
        let mut random = Random(seed);
        let role = if slot < WRITERS { "write" } else { "read" };
        while !self.is_over() {
            let mut child = Command::new(&self.program)
                .args(["--role", role, "--writers", &slot.to_string(), "--child"])
                .arg(self.path)
                .stdout(Stdio::piped())
                .spawn()
                .map_err(said)?;
            let mut out = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
            let lines = if random.below(8) == 0 { 0 } else { random.below(40) };
            for _ in 0..lines {
                match out.next() {
                    Some(line) => self.acknowledge(slot, &line.map_err(said)?)?,
                    None => return Err(format!("a process ({role}) ended on its own")),
                }
            }
            std::thread::sleep(Duration::from_micros(random.below(20_000)));
            self.kill(&mut child)?;
            for line in out {
                self.acknowledge(slot, &line.map_err(said)?)?;
            }
        }
        Ok(())
    }

    fn acknowledge(&self, slot: u64, line: &str) -> Result<(), String> {
        let mut words = line.split(' ').map(str::parse::<u64>);
        let (Some(Ok(number)), Some(Ok(waited))) = (words.next(), words.next()) else {
            return Err(format!("a line of a child: {line:?}"));
        };
        if let Some(acknowledged) = self.acknowledged.get(slot as usize) {
            acknowledged.store(number, Ordering::Relaxed);
            self.note(1, waited);
        }
        Ok(())
    }

    fn kill(&self, child: &mut Child) -> Result<(), String> {
        self.kills.fetch_add(1, Ordering::Relaxed);
        child.kill().and_then(|()| child.wait()).map(|_| ()).map_err(said)
    }

    /// Opens the database in the end and compares it with what was acknowledged.
    fn check(&self) -> Result<(), String> {
        let database = Holotype::open(self.path, Options { exclusive: true, ..options() }).map_err(said)?;
        if let Some(why) = &database.report().rebuilt {
            return Err(format!("a kill made a rebuild necessary: {why}"));
        }
        let verified = database.verify(&mut |_, _| ()).map_err(said)?;
        if !verified.is_clean() {
            return Err(format!("it does not verify: {:?}", verified.faults));
        }
        let snapshot = database.snapshot();
        check_whole(&snapshot)?;
        let mut items = 0;
        for (writer, acknowledged) in (0..).zip(&self.acknowledged) {
            let (found, acknowledged) =
                (Known::default().advance(&snapshot, writer)?, acknowledged.load(Ordering::Relaxed));
            if found < acknowledged {
                return Err(format!("{acknowledged} commits of writer {writer} returned, but only {found} are there"));
            }
            items += 2 * found;
        }
        match u64::from(snapshot.len()) {
            len if len == items => Ok(()),
            len => Err(format!("{len} items are there and {items} without gaps")),
        }
    }
}
