//! The recall language: parsing, planning, looking up, counting and recalling, on one thread.
//!
//! The database is made here (`world`): the same items at every run, in three layers, with clustered vectors. It is
//! kept when `--keep DIR` names a folder, and used again from there. Every statement is prepared once and run with
//! parameters, as a program would; `parse` and `plan` are what preparing and planning the statement of the README
//! costs. Beside the time on the clock stands that on the processor (`cpu_p50_us`, `cpu_p99_us`), which other programs
//! on the machine lengthen less; reading it adds some 0.2 us to itself.
//!
//! | point | what is timed |
//! |---|---|
//! | parse | the README's recall from text to a checked tree |
//! | plan | the same statement bound and planned, against the README's database (two items) |
//! | soup | the slowest of several sources of 1 MiB that are no statement, parsed and told what is wrong |
//! | find, cold | one item by its key, with key and step, as rows, of a database just opened |
//! | find | the same of other keys, each for the first time, after so many others that the catalog's cache is filled |
//! | count | the traces that a predicate on several columns holds for |
//! | overrun | statements that look at every item and have 10 ms: how long after these they end |
//! | recall | the default recall of a question with its vector, after some others were asked |

mod overrun;
mod soup;
mod world;

use crate::Result;
use crate::measure::{quantile_us, round, thread_cpu_time};
use crate::random::Random;
use holotype::answer::Output;
use holotype::query::{ParamValue, Params, check, parse};
use holotype::{Durability, Holotype, NewTrace, Options, Prepared, Snapshot};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use world::World;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Items of the database: eight of ten are traces, most others recalls, one in fifty a theme.
    #[arg(long, default_value_t = 1_000_000)]
    items: usize,
    /// The dimension of the vectors.
    #[arg(long, default_value_t = 64)]
    dim: usize,
    /// Questions asked.
    #[arg(long, default_value_t = 1_000)]
    questions: usize,
    /// Only what parses (`parse`), looks up (`find`), counts (`count`), recalls (`recall`) or is ended by its time
    /// limit (`overrun`); without it, everything.
    #[arg(long)]
    only: Option<String>,
    /// Of the finds, counts and recalls only the one of this name.
    #[arg(long, default_value = "")]
    phase: String,
    /// The path of the database; by default a temporary folder that is removed at the end.
    #[arg(long)]
    keep: Option<PathBuf>,
}

/// The recall of the README.
const README: &str = "recall $q in episode 'trip-42' limit 2";

/// Questions asked before those that are timed, so that files are mapped and checked as far as a running program has
/// them.
const WARMING: usize = 300;

/// Keys looked up before those that are timed, enough to have met nearly every page of the catalog that holds keys.
const LOOKED_UP: usize = 50_000;

/// The number of repetitions of what takes microseconds.
const REPEATS: usize = 2_000;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let wanted = |part: &str| arguments.only.as_deref().is_none_or(|only| only == part);
    if wanted("parse") {
        parsing()?;
        soup::run()?;
    }
    let temporary = tempfile::tempdir_in(".")?;
    let dir = arguments.keep.clone().unwrap_or_else(|| temporary.path().to_owned());
    let world = World { items: arguments.items, dim: arguments.dim };
    let path = dir.join(world.name());
    if !path.exists() {
        world.write(&path)?;
    }
    let started = Instant::now();
    let database = Holotype::open(&path, Options::read_only())?;
    let open_ms = round(started.elapsed().as_secs_f64() * 1e3, 3);
    let snapshot = database.snapshot();
    println!("{}", json!({"bench": "language", "phase": "open", "items": snapshot.len(), "open_ms": open_ms}));
    if wanted("find") {
        finding(&snapshot, &world, &arguments.phase)?;
    }
    if wanted("count") {
        counting(&snapshot, &world, &arguments.phase)?;
    }
    if wanted("recall") {
        recalling(&snapshot, &world, arguments)?;
    }
    if wanted("overrun") {
        overrun::run(&snapshot)?;
    }
    Ok(())
}

/// The durations of statements: wall-clock time and processor time.
#[derive(Default)]
struct Taken {
    wall: Vec<Duration>,
    cpu: Vec<Duration>,
}

/// Repeats `work` and gives what it took.
fn timed<T>(repeats: usize, mut work: impl FnMut(usize) -> Result<T>) -> Result<Taken> {
    let mut taken = Taken::default();
    for index in 0..repeats {
        let on_cpu = thread_cpu_time();
        let started = Instant::now();
        std::hint::black_box(work(index)?);
        taken.wall.push(started.elapsed());
        taken.cpu.push(thread_cpu_time().saturating_sub(on_cpu));
    }
    Ok(taken)
}

fn line(phase: &str, taken: &Taken) -> Value {
    let of = |durations: &[Duration]| (quantile_us(durations, 0.5), quantile_us(durations, 0.99));
    let ((p50, p99), (cpu_p50, cpu_p99)) = (of(&taken.wall), of(&taken.cpu));
    json!({
        "bench": "language", "phase": phase, "repeats": taken.wall.len(), "p50_us": p50, "p99_us": p99,
        "cpu_p50_us": cpu_p50, "cpu_p99_us": cpu_p99,
    })
}

fn parsing() -> Result<()> {
    let durations = timed(REPEATS, |_| {
        let script = parse(README)?;
        check(&script, None, None)?;
        Ok(script)
    })?;
    println!("{}", line("parse", &durations));
    let dir = tempfile::tempdir_in(".")?;
    let database = Holotype::create(dir.path().join("readme.holo"), Options::default())?;
    let mut transaction = database.begin()?;
    for (key, text) in [("t1", "UA123 costs $450"), ("t2", "UA123 costs $120")] {
        transaction.record(NewTrace::call("trip-42", "search_flights", text).key(key))?;
    }
    transaction.commit(Durability::Sync)?;
    let snapshot = database.snapshot();
    let params = Params::from([("q".to_owned(), ParamValue::Text("price of UA123".to_owned()))]);
    let source = format!("explain {README}");
    let durations = timed(REPEATS, |_| Ok(snapshot.query(&source, &params)?))?;
    println!("{}", line("parse, check and plan", &durations));
    Ok(())
}

fn finding(snapshot: &Snapshot, world: &World, only: &str) -> Result<()> {
    let by_key = "find items where key = $key return key, step";
    let statements = [
        ("find by key, cold", by_key),
        ("find by key", by_key),
        ("find by key, with its text", "find items where key = $key"),
        ("find traces by key and status", "find traces where key = $key and status = success return key"),
        ("find traces by an unknown key", "find traces where key = $key and key = 'nobody' return key"),
    ];
    let mut random = Random(7);
    for (phase, statement) in statements.into_iter().filter(|(phase, _)| only.is_empty() || *phase == only) {
        let prepared = snapshot.prepare(statement)?;
        let before = if phase == "find by key, cold" { 0 } else { LOOKED_UP };
        let keys: Vec<Params> = (0..before + REPEATS)
            .map(|_| Params::from([("key".to_owned(), ParamValue::Text(world.some_trace(&mut random)))]))
            .collect();
        for key in &keys[..before] {
            rows(snapshot, &prepared, key)?;
        }
        let durations = timed(REPEATS, |index| rows(snapshot, &prepared, &keys[before + index]))?;
        println!("{}", line(phase, &durations));
    }
    Ok(())
}

fn counting(snapshot: &Snapshot, world: &World, only: &str) -> Result<()> {
    let statements = [
        ("count by status", "count traces where status = failed"),
        ("count by step and status", "count traces where step between 100 and 200 and status = success"),
        ("count by time and tool", "count traces where time >= $from and tool = 'tool-3'"),
        ("count one episode", "count traces in episode 'e-7' where not status = failed"),
        ("count and group", "count traces, sum tokens by tool, status"),
    ];
    for (phase, statement) in statements.into_iter().filter(|(phase, _)| only.is_empty() || *phase == only) {
        let prepared = snapshot.prepare(statement)?;
        let mut params = Params::new();
        if statement.contains("$from") {
            params.insert("from".to_owned(), ParamValue::Int(world.time_of(world.items / 2)));
        }
        let repeats = if phase == "count and group" { 5 } else { 100 };
        let durations = timed(repeats, |_| rows(snapshot, &prepared, &params))?;
        println!("{}", line(phase, &durations));
    }
    Ok(())
}

/// Runs a statement and gives the number of its rows.
fn rows(snapshot: &Snapshot, prepared: &Prepared, params: &Params) -> Result<usize> {
    match snapshot.run(prepared, params)?.as_slice() {
        [Output::Table(table)] => Ok(table.rows.len()),
        outputs => Err(format!("{} gave {outputs:?}", prepared.source()).into()),
    }
}

fn recalling(snapshot: &Snapshot, world: &World, arguments: &Arguments) -> Result<()> {
    let questions = arguments.questions;
    let mut random = Random(11);
    let asked: Vec<Params> = (0..WARMING + questions)
        .map(|_| {
            let (text, vector) = world.question(&mut random);
            Params::from([("q".to_owned(), ParamValue::TextVector { text, vector })])
        })
        .collect();
    let statements = [
        ("recall", "recall $q"),
        ("recall, a filter", "recall $q where status = success and source = tool"),
        ("recall, recent alone", "recall $q through traces 10"),
    ];
    for (phase, statement) in
        statements.into_iter().filter(|(phase, _)| arguments.phase.is_empty() || *phase == arguments.phase)
    {
        let prepared = snapshot.prepare(statement)?;
        for params in &asked[..WARMING] {
            snapshot.run(&prepared, params)?;
        }
        let mut found = 0;
        let durations = timed(questions, |index| match snapshot.run(&prepared, &asked[WARMING + index])?.as_slice() {
            [Output::Answer(answer)] if !answer.rows.is_empty() => {
                found += answer.rows.len();
                Ok(())
            }
            outputs => Err(format!("a recall gave {outputs:?}").into()),
        })?;
        let mut line = line(phase, &durations);
        line["rows"] = json!(round(found as f64 / questions as f64, 2));
        println!("{line}");
    }
    Ok(())
}
