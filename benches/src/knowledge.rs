//! The graph of a large memory: recall over two hops, structuring, merging until nothing is left, and credit.
//!
//! The memory is made here, the same at every run. `ms` is the time of the whole transaction, its durable commit
//! included. `cpu_p50_us` is the processor time of the thread that asks: on a busy machine, it is what a query costs.
//!
//! | phase | what is timed |
//! |---|---|
//! | hops | questions that name a concept, over so many facts and concepts: at once, one hop, two hops |
//! | segments | the steps of one long trajectory split where their subgoals change |
//! | create | trajectories structured into that many facts, with concepts, procedures and intents |
//! | merge | passes over facts of which a twentieth restates another, until one changes nothing |
//! | credit | the credit of that many memory writes |

use crate::Result;
use crate::measure::{quantile_us, round, thread_cpu_time};
use crate::random::Random;
use holotype::credit::{CreditOptions, Scores, Write, credit};
use holotype::embed::HashingEmbedder;
use holotype::query::{ParamValue, Params};
use holotype::structure::{MergeByWords, Roles, Step, Trajectory, segments};
use holotype::{
    Durability, Edge, Holotype, ItemId, Kind, MergeOptions, NewRecall, NewTrace, Options, Pointer, Space, Transaction,
};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Facts of the memory that is asked over hops.
    #[arg(long, default_value_t = 1_000_000)]
    facts: usize,
    /// Its concepts.
    #[arg(long, default_value_t = 200_000)]
    concepts: usize,
    /// Facts that are structured, and facts that are merged.
    #[arg(long, default_value_t = 100_000)]
    structured: usize,
    /// Lines of credit.
    #[arg(long, default_value_t = 1_000_000)]
    lines: usize,
    /// Phases that run; by default all.
    #[arg(long, value_delimiter = ',', default_value = "hops,segments,create,merge,credit")]
    phases: Vec<String>,
    /// The folder for the databases; by default a temporary folder in the current one.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The database that is asked over hops: kept there, and asked as it is if it exists; made with --facts and
    /// --concepts.
    #[arg(long)]
    database: Option<PathBuf>,
}

const DIM: usize = 64;
/// Facts of a transaction while a memory is made.
const BATCH: usize = 5_000;
/// Facts of a trace.
const FACTS_OF_TRACE: usize = 4;
const QUESTIONS: usize = 300;
/// Passes of a merge, at most.
const MOST_PASSES: usize = 50;
/// Distance of the vectors of facts from those of their concepts: two of one concept have a cosine of 0.8, and of 0.4.
const NEAR: f32 = 0.5;
const FAR: f32 = 1.25;
const VERBS: [&str; 8] = ["met", "sold", "drew", "found", "left", "heard", "built", "lost"];
const THINGS: [&str; 12] = [
    "a lamp",
    "two ropes",
    "the clock",
    "new boots",
    "old maps",
    "a harp",
    "the gate",
    "some tea",
    "a boat",
    "the field",
    "an engine",
    "three bells",
];

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let temporary = match &arguments.dir {
        Some(dir) => tempfile::tempdir_in(dir)?,
        None => tempfile::tempdir_in(".")?,
    };
    let path = |name: &str| temporary.path().join(format!("{name}.holo"));
    for phase in &arguments.phases {
        match phase.as_str() {
            "hops" => {
                let path = arguments.database.clone().unwrap_or_else(|| path("hops"));
                hops(&path, arguments.facts, arguments.concepts)?;
            }
            "segments" => split(arguments.structured),
            "create" => create(&path("create"), arguments.structured)?,
            "merge" => merge(&path("merge"), arguments.structured)?,
            "credit" => credit_of(arguments.lines)?,
            other => return Err(format!("{other:?} is no phase: hops, segments, create, merge, credit").into()),
        }
    }
    Ok(())
}

fn ms(since: Instant) -> f64 {
    round(since.elapsed().as_secs_f64() * 1e3, 3)
}

/// A name for every number: letters, so that names share no stem.
fn name(mut number: usize) -> String {
    let parts = ["ba", "cor", "del", "fi", "gu", "hal", "jo", "kem", "lu", "mor", "nu", "pa", "quil", "ro", "su", "ti"];
    let mut name = String::new();
    for _ in 0..5 {
        name += parts[number % parts.len()];
        number /= parts.len();
    }
    name[..1].to_uppercase() + &name[1..]
}

/// Facts about concepts, a few of which are in many: the squares of even shares.
struct Facts {
    random: Random,
    concepts: Vec<ItemId>,
    vector_of: Vec<Vec<f32>>,
    spread: f32,
}

impl Facts {
    fn new(transaction: &mut Transaction<'_>, concepts: usize, spread: f32) -> Result<Facts> {
        let mut written = Vec::with_capacity(concepts);
        for nth in 0..concepts {
            written.push(transaction.remember(NewRecall::new(Kind::Concept, name(nth)).ungrounded())?);
        }
        Ok(Facts::about(written, spread))
    }

    fn about(concepts: Vec<ItemId>, spread: f32) -> Facts {
        let mut random = Random(7);
        let vector_of = (0..1_000).map(|_| (0..DIM).map(|_| random.normal()).collect()).collect();
        Facts { random, concepts, vector_of, spread }
    }

    fn concept(&mut self) -> usize {
        let share = self.random.below(1 << 20) as f64 / f64::from(1 << 20);
        ((share * share) * self.concepts.len() as f64) as usize
    }

    /// A vector near that of a concept.
    fn vector(&mut self, concept: usize) -> Vec<f32> {
        let centre = &self.vector_of[concept % self.vector_of.len()];
        centre.iter().map(|part| part + self.spread * self.random.normal()).collect()
    }

    /// Writes a fact; its concepts, its text and its vector.
    fn fact(&mut self, transaction: &mut Transaction<'_>, trace: ItemId) -> Result<([usize; 2], String, Vec<f32>)> {
        let pair = [self.concept(), self.concept()];
        let (verb, thing) = (VERBS[self.random.below(VERBS.len())], THINGS[self.random.below(THINGS.len())]);
        let text = format!("{} {verb} {thing} with {}.", name(pair[0]), name(pair[1]));
        let vector = self.vector(pair[0]);
        let fact = NewRecall::fact(text.clone()).from(Pointer::to_item(trace)).vector(vector.clone());
        self.linked(transaction, fact, pair)?;
        Ok((pair, text, vector))
    }

    fn linked(&self, transaction: &mut Transaction<'_>, fact: NewRecall, pair: [usize; 2]) -> Result<()> {
        let fact = transaction.remember(fact)?;
        for concept in pair {
            transaction.link(fact, Edge::Mentions, self.concepts[concept])?;
        }
        Ok(())
    }
}

fn filled(path: &Path, facts: usize, concepts: usize, spread: f32) -> Result<(Holotype, Facts)> {
    let database = Holotype::create(path, Options::with_space(Space::new("bench", DIM)))?;
    let mut transaction = database.begin()?;
    let mut made = Facts::new(&mut transaction, concepts, spread)?;
    transaction.commit(Durability::None)?;
    for first in (0..facts).step_by(BATCH) {
        let mut transaction = database.begin()?;
        for nth in (first..facts.min(first + BATCH)).step_by(FACTS_OF_TRACE) {
            let trace = transaction.record(NewTrace::turn("e", format!("Page {nth}.")))?;
            for _ in 0..FACTS_OF_TRACE.min(facts - nth) {
                made.fact(&mut transaction, trace)?;
            }
        }
        transaction.commit(Durability::None)?;
    }
    database.checkpoint()?;
    Ok((database, made))
}

fn hops(path: &Path, facts: usize, concepts: usize) -> Result<()> {
    let started = Instant::now();
    let database = if path.exists() {
        Holotype::open(path, Options::default())?
    } else {
        let database = filled(path, facts, concepts, NEAR)?.0;
        database.seal()?;
        println!("{}", json!({"bench": "knowledge", "phase": "fill", "facts": facts, "ms": ms(started)}));
        database
    };
    // The concepts are written first, and the questions are others than what the facts were made with.
    let mut made = Facts::about((0..concepts as u32).map(ItemId).collect(), NEAR);
    made.random = Random(11);
    let snapshot = database.snapshot();
    let hop = |hops: u64| match hops {
        0 => "recall $q through facts 20 limit 10".to_owned(),
        hops => format!("recall $q through facts 20 -> (concepts 8 -> facts 20) up to {hops} hops limit 10"),
    };
    let questions: Vec<Params> = (0..QUESTIONS)
        .map(|_| {
            let concept = made.concept();
            let text = format!("Whom did the friend of {} meet with the harp?", name(concept));
            let vector = made.vector(concept);
            Params::from([("q".to_owned(), ParamValue::TextVector { text, vector })])
        })
        .collect();
    for hops in [0, 1, 2] {
        let statement = hop(hops);
        let (mut times, mut cpu): (Vec<Duration>, Vec<Duration>) = (Vec::new(), Vec::new());
        for round in 0..2 {
            for question in &questions {
                let (started, cpu_before) = (Instant::now(), thread_cpu_time());
                snapshot.query(&statement, question)?;
                if round > 0 {
                    times.push(started.elapsed());
                    cpu.push(thread_cpu_time().saturating_sub(cpu_before));
                }
            }
        }
        println!(
            "{}",
            json!({"bench": "knowledge", "phase": "hops", "facts": facts, "concepts": concepts, "hops": hops,
                "p50_us": quantile_us(&times, 0.5), "p99_us": quantile_us(&times, 0.99),
                "cpu_p50_us": quantile_us(&cpu, 0.5)})
        );
    }
    database.close()?;
    Ok(())
}

fn steps(count: usize) -> Vec<Step> {
    let embedder = HashingEmbedder::default();
    let step = |nth: usize| {
        let subject = name(nth / 4);
        let subgoal = format!("{} {}", VERBS[nth / 5 % VERBS.len()], name(nth / 5));
        let mut step = Step::new(format!(
            "{subject} sells {}. {subject} {} {}. At {subject} {} is cheap. Then {subject} closed.",
            THINGS[nth % THINGS.len()],
            VERBS[nth % VERBS.len()],
            THINGS[nth / 7 % THINGS.len()],
            THINGS[nth / 11 % THINGS.len()],
        ));
        step.subgoal_vector = embedder.embed(&subgoal);
        step.action("sort").subgoal(subgoal).reward(0.5)
    };
    (0..count).map(step).collect()
}

fn split(count: usize) {
    let steps = steps(count);
    let started = Instant::now();
    let once = segments(&steps, 0.75);
    let took = ms(started);
    let again = segments(&steps, 0.75) == once;
    let line = json!({"bench": "knowledge", "phase": "segments", "steps": count, "segments": once.len(),
        "same_again": again, "ms": took});
    println!("{line}");
}

fn create(path: &Path, facts: usize) -> Result<()> {
    let embedder = HashingEmbedder::default();
    let space = Space::new(embedder.name(), embedder.dim());
    let database = Holotype::create(path, Options::with_space(space))?;
    let steps = steps(facts / 4);
    let started = Instant::now();
    let (mut made, mut split) = (0, 0);
    for (nth, steps) in steps.chunks(500).enumerate() {
        let trajectory = Trajectory { episode: format!("e{nth}"), goal: "sort".to_owned(), steps: steps.to_vec() };
        let mut transaction = database.begin()?;
        let created = transaction.create(&trajectory, &Roles::default())?;
        transaction.commit(Durability::Sync)?;
        made += created.facts.len();
        split += created.segments;
    }
    let line = json!({"bench": "knowledge", "phase": "create", "facts": made, "segments": split, "ms": ms(started)});
    println!("{line}");
    database.close()?;
    Ok(())
}

fn merge(path: &Path, facts: usize) -> Result<()> {
    let (database, mut made) = filled(path, facts, facts / 5, FAR)?;
    let mut transaction = database.begin()?;
    for nth in 0..facts / 20 {
        let trace = transaction.record(NewTrace::turn("e", format!("Another page {nth}.")))?;
        let (pair, text, vector) = made.fact(&mut transaction, trace)?;
        let other = transaction.record(NewTrace::turn("e", format!("A third page {nth}.")))?;
        let vector = vector.iter().map(|part| part + 0.2 * made.random.normal()).collect();
        let restated = NewRecall::fact(format!("Today {text}")).from(Pointer::to_item(other)).vector(vector);
        made.linked(&mut transaction, restated, pair)?;
    }
    transaction.commit(Durability::None)?;
    for pass in 1..=MOST_PASSES {
        let snapshot = database.snapshot();
        let mut among = Vec::new();
        for id in (0..snapshot.len()).map(ItemId) {
            if snapshot.attributes(id)?.kind == Kind::Fact {
                among.push(id);
            }
        }
        let started = Instant::now();
        let mut transaction = database.begin()?;
        let merged = transaction.merge(&among, &MergeByWords, MergeOptions::default())?.len();
        transaction.commit(Durability::Sync)?;
        println!(
            "{}",
            json!({"bench": "knowledge", "phase": "merge", "pass": pass, "facts": among.len(), "merged": merged,
                "ms": ms(started)})
        );
        if merged == 0 {
            break;
        }
    }
    database.close()?;
    Ok(())
}

fn credit_of(lines: usize) -> Result<()> {
    let mut random = Random(3);
    let names: Vec<String> = (0..lines / 8 + 1).map(|nth| format!("q{nth}")).collect();
    let rollouts: Vec<String> = (0..8).map(|nth| nth.to_string()).collect();
    let mut number = || f64::from(random.normal());
    let mut writes = Vec::with_capacity(lines);
    for nth in 0..lines {
        // Groups of eight rollouts of four writes each.
        let (group, rollout, step) = (nth / 32, nth / 4 % 8, nth % 4);
        let scores = Scores { s_prev: number() - 2.0, s_now: number() - 2.0, log_h: Some(number() - 3.0) };
        let reward = f64::from(u8::from(rollout % 2 == 0));
        writes.push(Write::new(&names[group], &rollouts[rollout], step as u64, scores).reward(reward));
    }
    let started = Instant::now();
    let credits = credit(&writes, &CreditOptions::default())?;
    let line = json!({"bench": "knowledge", "phase": "credit", "lines": credits.lines.len(), "ms": ms(started)});
    println!("{line}");
    Ok(())
}
