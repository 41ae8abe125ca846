//! Upkeep of a large memory: pruning, consolidating, and what one failed call does to all that rests on it.
//!
//! The memory is made here, the same at every run, and each phase starts from a database of its own. `ms` is the time
//! of the whole transaction, its durable commit included; `commit_ms` that of the commit alone; `cpu_ms` the processor
//! time of the process, which other programs on the machine lengthen less; `own_cpu_ms` that of the thread that does
//! it, without what is done in the background meanwhile: vectors that were just written are linked.
//!
//! | phase | what is timed |
//! |---|---|
//! | prune | `items` items with clustered vectors brought under a tenth of them |
//! | consolidate | the claims of `items` calls in 100 episodes made into recalls: five calls for each claim |
//! | propagate | one trace marked failed, on which so many facts rest |

use crate::Result;
use crate::measure::{cpu_time, round, thread_cpu_time};
use crate::random::Random;
use holotype::query::Noun;
use holotype::{
    Consolidate, Durability, Holotype, Mark, NewRecall, NewTrace, Options, Pointer, Prune, Space, Status, Support,
    Transaction,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Items that are pruned, and calls that are consolidated.
    #[arg(long, default_value_t = 100_000)]
    items: usize,
    /// Dependents of the trace that fails.
    #[arg(long, value_delimiter = ',', default_value = "1000,100000")]
    dependents: Vec<usize>,
    /// The folder for the databases; by default a temporary folder in the current one.
    #[arg(long)]
    dir: Option<PathBuf>,
}

const DIM: usize = 64;
/// Writes of a transaction while a memory is made.
const BATCH: usize = 5_000;
const EPISODES: usize = 100;
/// Calls that say the same, or contradict each other.
const CALLS_PER_CLAIM: usize = 5;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let temporary = match &arguments.dir {
        Some(dir) => tempfile::tempdir_in(dir)?,
        None => tempfile::tempdir_in(".")?,
    };
    prune(&temporary.path().join("prune.holo"), arguments.items)?;
    consolidate(&temporary.path().join("consolidate.holo"), arguments.items)?;
    for dependents in &arguments.dependents {
        propagate(&temporary.path().join(format!("propagate-{dependents}.holo")), *dependents)?;
    }
    Ok(())
}

/// A phase that is being timed.
struct Watch {
    started: Instant,
    cpu: Duration,
    own_cpu: Duration,
}

/// The times of a phase.
struct Times {
    all: Duration,
    commit: Duration,
    cpu: Duration,
    own_cpu: Duration,
}

impl Watch {
    fn start() -> Watch {
        Watch { started: Instant::now(), cpu: cpu_time(), own_cpu: thread_cpu_time() }
    }

    /// Commits durably and stops.
    fn commit(self, transaction: Transaction<'_>) -> Result<Times> {
        let before = self.started.elapsed();
        transaction.commit(Durability::Sync)?;
        let all = self.started.elapsed();
        let (cpu, own_cpu) = (cpu_time().saturating_sub(self.cpu), thread_cpu_time().saturating_sub(self.own_cpu));
        Ok(Times { all, commit: all.saturating_sub(before), cpu, own_cpu })
    }
}

impl Times {
    /// Prints the line of the phase.
    fn print(&self, mut line: Value) {
        let times = [("ms", self.all), ("commit_ms", self.commit), ("cpu_ms", self.cpu), ("own_cpu_ms", self.own_cpu)];
        for (name, time) in times {
            line[name] = round(time.as_secs_f64() * 1e3, 3).into();
        }
        println!("{line}");
    }
}

/// Writes in transactions of [`BATCH`] items, without waiting for the disk, and then a checkpoint.
fn fill(
    database: &Holotype,
    count: usize,
    mut one: impl FnMut(&mut Transaction<'_>, usize) -> holotype::Result<()>,
) -> Result<()> {
    for first in (0..count).step_by(BATCH) {
        let mut transaction = database.begin()?;
        for nth in first..count.min(first + BATCH) {
            one(&mut transaction, nth)?;
        }
        transaction.commit(Durability::None)?;
    }
    database.checkpoint()?;
    Ok(())
}

fn prune(path: &Path, items: usize) -> Result<()> {
    let database = Holotype::create(path, Options::with_space(Space::new("bench", DIM)))?;
    let mut random = Random(7);
    let centres: Vec<Vec<f32>> = (0..items.div_ceil(50)).map(|_| (0..DIM).map(|_| random.normal()).collect()).collect();
    fill(&database, items, |transaction, nth| {
        let centre = &centres[random.below(centres.len())];
        let vector = centre.iter().map(|part| part + 0.3 * random.normal()).collect();
        let status = if random.below(10) == 0 { Status::Failed } else { Status::Success };
        let trace = NewTrace::call(format!("e{}", nth % EPISODES), "tool", format!("observation {nth}"));
        transaction.record(trace.key(format!("t{nth}")).status(status).vector(vector))?;
        if nth % 10 == 9 {
            let fact = NewRecall::fact(format!("fact {nth}")).from(Pointer::to_key(format!("t{nth}")));
            transaction.remember(fact.utility(random.below(100) as f32 / 100.0))?;
        }
        Ok(())
    })?;
    let budget = items as u64 / 10;
    let watch = Watch::start();
    let mut transaction = database.begin()?;
    let report = transaction.prune(&Prune::new().to(Noun::Recalls, budget / 10).to(Noun::Traces, budget))?;
    let times = watch.commit(transaction)?;
    let items = database.snapshot().len();
    times.print(json!({"bench": "upkeep", "phase": "prune", "items": items, "pruned": report.pruned.len()}));
    database.close()?;
    Ok(())
}

fn consolidate(path: &Path, calls: usize) -> Result<()> {
    let database = Holotype::create(path, Options::default())?;
    let mut transaction = database.begin()?;
    transaction.set("consolidate.limit", &calls.to_string())?;
    transaction.commit(Durability::Sync)?;
    let mut random = Random(11);
    let subjects = calls.div_ceil(EPISODES * CALLS_PER_CLAIM).max(1);
    fill(&database, calls, |transaction, nth| {
        let (flight, price) = (nth / EPISODES % subjects, 100 + random.below(3) * 50);
        let text = format!("search_flights(flight UA{flight}): price = ${price}");
        transaction.record(NewTrace::call(format!("e{}", nth % EPISODES), "search_flights", text))?;
        Ok(())
    })?;
    let watch = Watch::start();
    let mut transaction = database.begin()?;
    let report = transaction.consolidate(&Consolidate::new(Noun::Calls))?;
    let times = watch.commit(transaction)?;
    let made = database.snapshot().len() as usize - calls;
    let over = report.over_limit;
    times
        .print(json!({"bench": "upkeep", "phase": "consolidate", "calls": calls, "recalls": made, "over_limit": over}));
    database.close()?;
    Ok(())
}

fn propagate(path: &Path, dependents: usize) -> Result<()> {
    let database = Holotype::create(path, Options::default())?;
    let mut transaction = database.begin()?;
    let trace = transaction.record(NewTrace::call("e", "tool", "a claim that much rests on"))?;
    transaction.commit(Durability::Sync)?;
    let mut last = trace;
    fill(&database, dependents, |transaction, nth| {
        last = transaction.remember(NewRecall::fact(format!("fact {nth}")).from(Pointer::to_item(trace)))?;
        Ok(())
    })?;
    let watch = Watch::start();
    let mut transaction = database.begin()?;
    transaction.mark(trace, Mark::Status(Status::Failed), None)?;
    let times = watch.commit(transaction)?;
    if database.snapshot().attributes(last)?.support != Support::Unsupported {
        return Err("propagate: a fact stands on a failed trace".into());
    }
    times.print(json!({"bench": "upkeep", "phase": "propagate", "dependents": dependents}));
    database.close()?;
    Ok(())
}
