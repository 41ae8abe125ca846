//! A process with several writers that is killed repeatedly (SIGKILL): `kill [--cycles N] [--writers W] [--seed S]
//! [--dir DIR]`; with `--processes SECONDS [--cli PROGRAM]`, many processes on one database ([`processes`]).
//!
//! Each cycle starts this program again as a child that opens the database. Every writer of the child commits numbered
//! traces with durability `sync`, and prints each number when its commit returned. After a while the child is killed.
//! The database must then open, verify, and have the traces 1 to n of each writer without a gap, where n is at least
//! the last printed number, and a search by vector must find the last trace of each. Checkpoints run at times, and the
//! database is created again after a number of cycles. It begins with so many vectors that checkpoints soon link a
//! graph, which refers to the log for them. Prints one line of JSON.

mod processes;

use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use std::{env, fs};

use holotype::{Durability, Holotype, Layer, Metric, NewTrace, Options, Space};
use holotype_fuzz::explore::Random;

/// The number of cycles after which the database is created again, so that opening does not take most of the time.
const CYCLES_OF_DATABASE: u64 = 100;

/// The traces that a database begins with: the writers soon add as many as a graph needs.
const FIRST: u32 = 2_000;

struct Arguments {
    cycles: u64,
    writers: u64,
    seed: u64,
    dir: Option<PathBuf>,
    child: Option<PathBuf>,
    /// For how many seconds many processes are killed.
    processes: Option<u64>,
    cli: Option<PathBuf>,
    /// The work of a child of those.
    role: Option<String>,
}

fn main() -> ExitCode {
    let done = arguments().and_then(|arguments| match (&arguments.child, &arguments.role, arguments.processes) {
        (Some(path), Some(role), _) => processes::child(path, role, arguments.writers),
        (Some(path), None, _) => child(path, arguments.writers),
        (None, _, Some(seconds)) => processes::parent(&arguments, seconds),
        (None, _, None) => parent(&arguments),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("kill: {why}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Arguments, String> {
    let mut arguments = Arguments {
        cycles: 10_000,
        writers: 4,
        seed: 1,
        dir: None,
        child: None,
        processes: None,
        cli: None,
        role: None,
    };
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{word} {value}: not a number"));
        match word.as_str() {
            "--cycles" => arguments.cycles = number()?,
            "--writers" => arguments.writers = number()?.max(1),
            "--seed" => arguments.seed = number()?,
            "--dir" => arguments.dir = Some(value.into()),
            "--processes" => arguments.processes = Some(number()?),
            "--cli" => arguments.cli = Some(value.into()),
            "--role" => arguments.role = Some(value),
            "--child" => arguments.child = Some(value.into()),
            _ => return Err(format!("unknown argument {word}")),
        }
    }
    Ok(arguments)
}

fn options() -> Options {
    Options { page_size: 4096, checkpoint_records: 300, background_threads: 1, ..Options::default() }
}

fn key(writer: u64, number: u64) -> String {
    format!("w{writer}-{number}")
}

/// The vector of a trace, which the log has with the bytes that a segment has.
fn vector(writer: u64, number: u64) -> Vec<f32> {
    let mut random = Random(writer << 32 | number);
    (0..8).map(|_| random.below(2_048) as f32 / 16.0).collect()
}

/// Creates a database with the first traces.
fn create(path: &Path) -> holotype::Result<()> {
    let space = Some(Space::new("killed", 8).metric(Metric::L2));
    let database = Holotype::create(path, Options { space, ..options() })?;
    let mut transaction = database.begin()?;
    for number in 0..FIRST {
        let trace = NewTrace::turn("e", format!("first {number}"));
        transaction.record(trace.vector(vector(u64::MAX >> 32, number.into())))?;
    }
    transaction.commit(Durability::Sync)?;
    database.close()
}

/// Writes until it is killed.
fn child(path: &Path, writers: u64) -> Result<(), String> {
    let database = Holotype::open(path, options()).map_err(|error| error.to_string())?;
    let commits = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let all = (0..writers).map(|writer| {
            let (database, commits) = (&database, &commits);
            scope.spawn(move || write(database, writer, commits))
        });
        all.collect::<Vec<_>>().into_iter().try_for_each(|thread| thread.join().map_err(|_| "a panic".to_owned())?)
    })
}

fn write(database: &Holotype, writer: u64, commits: &AtomicU64) -> Result<(), String> {
    let said = |error: holotype::Error| error.to_string();
    let mut number = written(database, writer)?;
    loop {
        number += 1;
        let mut transaction = database.begin().map_err(said)?;
        let words = "and on ".repeat((number * 31 % 90) as usize);
        let trace = NewTrace::turn("e", format!("{number}: {words}")).key(key(writer, number));
        transaction.record(trace.vector(vector(writer, number))).map_err(said)?;
        transaction.commit(Durability::Sync).map_err(said)?;
        // One write of a whole line, which is atomic on a pipe.
        std::io::stdout()
            .lock()
            .write_all(format!("{writer} {number}\n").as_bytes())
            .map_err(|error| error.to_string())?;
        if commits.fetch_add(1, Ordering::Relaxed) % 97 == 96 {
            database.checkpoint().map_err(said)?;
        }
    }
}

/// The number of traces of a writer, which must have no gap.
fn written(database: &Holotype, writer: u64) -> Result<u64, String> {
    let snapshot = database.snapshot();
    let is_there =
        |number| snapshot.get(&key(writer, number)).map(|item| item.is_some()).map_err(|error| error.to_string());
    let mut number = 0;
    while is_there(number + 1)? {
        number += 1;
    }
    Ok(number)
}

fn parent(arguments: &Arguments) -> Result<(), String> {
    let own = tempfile::tempdir().map_err(|error| error.to_string())?;
    let dir = arguments.dir.as_deref().unwrap_or(own.path());
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let mut random = Random(arguments.seed);
    let started = Instant::now();
    let (mut commits, mut promised) = (0, Vec::new());
    let mut path = PathBuf::new();
    for cycle in 0..arguments.cycles {
        if cycle % CYCLES_OF_DATABASE == 0 {
            if cycle > 0 {
                fs::remove_dir_all(&path).map_err(|error| error.to_string())?;
            }
            path = dir.join(format!("killed-{cycle}.holo"));
            create(&path).map_err(|error| error.to_string())?;
            promised = vec![0; arguments.writers as usize];
        }
        // Most are killed while they write, some while they open.
        let lines = if random.below(8) == 0 { 0 } else { random.below(60) };
        let spins = random.below(200_000);
        commits += write_and_kill(&program, arguments.writers, &path, lines, spins, &mut promised)?;
        check(&path, &mut promised).map_err(|why| format!("cycle {cycle}, killed after {lines} commits: {why}"))?;
    }
    println!(
        r#"{{"kill":{{"cycles":{},"writers":{},"commits":{commits},"seconds":{:.1}}}}}"#,
        arguments.cycles,
        arguments.writers,
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Starts a child, kills it after this many commits, and notes the last numbers it printed.
fn write_and_kill(
    program: &Path,
    writers: u64,
    path: &Path,
    lines: u64,
    spins: u64,
    promised: &mut [u64],
) -> Result<u64, String> {
    let mut child = Command::new(program)
        .args(["--writers", &writers.to_string(), "--child"])
        .arg(path)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut out = BufReader::new(child.stdout.take().ok_or("no output")?);
    let mut seen = 0;
    let mut next = |promised: &mut [u64]| -> Result<bool, String> {
        let mut line = String::new();
        let read = out.read_line(&mut line).map_err(|error| error.to_string())?;
        let mut words = line.strip_suffix('\n').unwrap_or_default().split(' ').map(str::parse::<u64>);
        if let (Some(Ok(writer)), Some(Ok(number))) = (words.next(), words.next()) {
            promised[writer as usize] = number;
            seen += 1;
        }
        Ok(read > 0)
    };
    for _ in 0..lines {
        if !next(promised)? {
            let status = child.wait().map_err(|error| error.to_string())?;
            return Err(format!("the child ended on its own: {status}"));
        }
    }
    for _ in 0..spins {
        std::hint::spin_loop();
    }
    child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
    // The numbers that it printed before it died count too.
    while next(promised)? {}
    Ok(seen)
}

/// Finds the last trace of a writer by its vector.
fn find(database: &Holotype, writer: u64, number: u64) -> Result<(), String> {
    let (snapshot, said) = (database.snapshot(), |error: holotype::Error| error.to_string());
    let Some(last) = snapshot.get(&key(writer, number)).map_err(said)? else { return Ok(()) };
    let nearest = snapshot.nearest(Layer::Trace, &vector(writer, number), 3).map_err(said)?;
    match nearest.iter().any(|(item, _)| *item == last.id) {
        true => Ok(()),
        false => Err(format!("trace {number} of writer {writer} is not found by its vector: {nearest:?}")),
    }
}

/// Opens the database and compares it with the printed numbers.
fn check(path: &Path, promised: &mut [u64]) -> Result<(), String> {
    let database = Holotype::open(path, options()).map_err(|error| error.to_string())?;
    if let Some(why) = &database.report().rebuilt {
        return Err(format!("a kill made a rebuild necessary: {why}"));
    }
    let verified = database.verify(&mut |_, _| ()).map_err(|error| error.to_string())?;
    if !verified.is_clean() {
        return Err(format!("it does not verify: {:?}", verified.faults));
    }
    let mut items = u64::from(FIRST);
    for (writer, promised) in (0..).zip(promised) {
        let found = written(&database, writer)?;
        if found < *promised {
            return Err(format!("{promised} commits of writer {writer} returned, but only {found} are there"));
        }
        find(&database, writer, found)?;
        *promised = found;
        items += found;
    }
    match u64::from(database.snapshot().len()) {
        len if len == items => Ok(()),
        len => Err(format!("{len} items are there and {items} without gaps")),
    }
}
