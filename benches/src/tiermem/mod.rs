//! TierMem on conversations: what each policy reads, in tokens, and what of the evidence it then holds.
//!
//! S is the first tier: facts and the spans they cite, at 250 tokens. A fact of the data that cites a whole turn is
//! linked to the sentences of it that say the fact, as `ByWords::sentences_of` finds them. R is the loop over raw pages
//! at a budget B; in a routed policy it leaves out what promises too little for its tokens (`escalate auto`).
//!
//! | method | what is read |
//! |---|---|
//! | `summaries` | S for every question |
//! | `flat` | R for every question, at the one budget that costs what `routed` costs |
//! | `raw` | R at B for every question |
//! | `routed` | S; where the built-in router says so, R at B beside it; S's tokens count |
//! | `routed-fitted` | the same with a router fitted to the other conversations |
//! | `routed-random` | the same at the rate of `routed`, for questions drawn at random (expected values) |
//! | `oracle` | the same for exactly the questions where R adds evidence |
//!
//! With `--replay N`, N epochs of all questions, in both modes of write-back ([`replay`]).
//!
//! Support is the mean share of the turns that answer a question which was read. A question without evidence in the
//! data is left out. The curve of `flat` is interpolated between measured budgets.

mod policy;
mod replay;

use crate::Result;
use crate::dataset::{Asked, Dataset, Question, median};
use crate::measure::thread_cpu_time;
use holotype::answer::Answer;
use holotype::query::EscalateMode;
use holotype::router::{Action, Label, LinearRouter, Router, Signals};
use holotype::{Layer, Roles, Snapshot, UncoveredWords};
use serde_json::json;
use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The budgets that are reported.
const BUDGETS: [u64; 4] = [500, 1000, 2000, 4000];
/// Further budgets, for the curve of `flat`.
const CURVE: [u64; 12] = [250, 375, 500, 625, 750, 1000, 1250, 1500, 2000, 2500, 3000, 4000];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder, laid out as for `locomo`.
    #[arg(long)]
    data: PathBuf,
    /// Writes one JSON line a question: its signals and what each path holds.
    #[arg(long)]
    labels: Option<PathBuf>,
    /// Instead, asks all questions in this many epochs, and writes back what each teaches.
    #[arg(long, value_name = "N")]
    replay: Option<u64>,
}

/// The evidence and the cost of an answer.
#[derive(Clone, Copy, Default)]
struct Held {
    support: f64,
    tokens: f64,
}

/// The measurements of one question.
pub(crate) struct Measured {
    pub(crate) conversation: usize,
    id: String,
    pub(crate) signals: Signals,
    first: Held,
    /// R at each budget of [`CURVE`].
    raw: Vec<Held>,
    /// S, and R beside it, at each budget of [`BUDGETS`].
    both: Vec<Held>,
    router_micros: u64,
    routed_micros: u64,
    /// Of the processor, for the same.
    routed_cpu: u64,
}

/// A router that always says the same.
struct Always(Action);

impl Router for Always {
    fn decide(&self, _: &str, _: &[&str], _: &Signals) -> std::result::Result<Action, String> {
        Ok(self.0)
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(epochs) = arguments.replay {
        return replay::run(&arguments.data, epochs);
    }
    let measured = measure_all(&arguments.data)?;
    if let Some(path) = &arguments.labels {
        write_labels(path, &measured)?;
    }
    policy::report(&measured)?;
    let micros = |of: fn(&Measured) -> u64| median(measured.iter().map(of).collect());
    let (query, router) = (micros(|question| question.routed_micros), micros(|question| question.router_micros));
    println!(
        "{}",
        json!({"bench": "tiermem", "query_p50_us": query, "query_cpu_p50_us": micros(|question| question.routed_cpu),
        "until_routed_p50_us": router, "router_p50_ns": decision_nanos(&measured)})
    );
    Ok(())
}

/// Measures every question of a folder that has evidence.
pub(crate) fn measure_all(data: &Path) -> Result<Vec<Measured>> {
    let dataset = Dataset::load_linked(data)?;
    let snapshot = dataset.database.snapshot();
    let mut measured = Vec::new();
    for (conversation, asked) in dataset.asked.iter().enumerate() {
        for question in &asked.questions {
            measured.extend(measure(&snapshot, conversation, asked, question)?);
        }
    }
    Ok(measured)
}

/// The turns that answer a question and are in the data.
fn evidence(snapshot: &Snapshot, question: &Question) -> HashSet<String> {
    let named = question.strings("evidence").into_iter();
    named.filter(|key| snapshot.get(key).is_ok_and(|item| item.is_some())).collect()
}

fn measure(snapshot: &Snapshot, conversation: usize, asked: &Asked, question: &Question) -> Result<Option<Measured>> {
    let evidence = evidence(snapshot, question);
    if evidence.is_empty() {
        return Ok(None);
    }
    let ask = |mode, budget, router: &dyn Router| ask(snapshot, (asked, question), mode, budget, router);
    let built_in = LinearRouter::default();
    let first = ask(EscalateMode::Never, 250, &built_in)?;
    let Some(escalation) = &first.escalation else { return Err("an answer does not say how it was routed".into()) };
    let of_first = held(&first, &evidence);
    let mut raw = Vec::new();
    for budget in CURVE {
        raw.push(held(&ask(EscalateMode::Always, budget, &built_in)?, &evidence));
    }
    let mut both = Vec::new();
    for budget in BUDGETS {
        let with_first = budget + of_first.tokens as u64;
        both.push(held(&ask(EscalateMode::Auto, with_first, &Always(Action::Escalate))?, &evidence));
    }
    let before = thread_cpu_time();
    let routed = ask(EscalateMode::Auto, 2000, &built_in)?;
    let routed_cpu = (thread_cpu_time() - before).as_micros() as u64;
    Ok(Some(Measured {
        conversation,
        id: question.line.get("id").and_then(|id| id.as_str()).unwrap_or_default().to_owned(),
        signals: escalation.router.signals,
        first: of_first,
        raw,
        both,
        router_micros: escalation.router_micros,
        routed_micros: routed.micros,
        routed_cpu,
    }))
}

fn ask(
    snapshot: &Snapshot,
    (asked, question): (&Asked, &Question),
    mode: EscalateMode,
    budget: u64,
    router: &dyn Router,
) -> Result<Answer> {
    let recall = snapshot.recall(question.text.clone()).near(question.vector.clone()).in_episode(asked.episode.clone());
    let roles = Roles::new(router, &UncoveredWords);
    let answer = recall.escalate(mode).budget(budget).run_with(roles)?;
    let tokens = answer.escalation.as_ref().map_or(0, |escalation| escalation.tokens);
    assert!(tokens <= budget, "a budget is a hard limit: {tokens} of {budget}");
    Ok(answer)
}

/// The turns that are rows or cited by one.
fn turns(answer: &Answer) -> HashSet<&str> {
    let mut turns: HashSet<&str> = HashSet::new();
    for row in &answer.rows {
        match row.layer {
            Layer::Trace => drop(turns.insert(&row.key)),
            _ => turns.extend(row.citations.iter().map(|citation| citation.target.as_str())),
        }
    }
    turns
}

/// The share of the evidence that an answer holds, and the tokens of it all.
fn held(answer: &Answer, evidence: &HashSet<String>) -> Held {
    let turns = turns(answer);
    let found = evidence.iter().filter(|key| turns.contains(key.as_str())).count();
    let tokens = answer.escalation.as_ref().map_or(0, |escalation| escalation.tokens);
    Held { support: found as f64 / evidence.len() as f64, tokens: tokens as f64 }
}

/// The label of a question: did S suffice, did R at the largest budget?
pub(crate) fn label(question: &Measured) -> Label {
    let raw = question.raw.last().map_or(0.0, |held| held.support);
    Label {
        signals: question.signals,
        summaries_suffice: question.first.support >= 1.0,
        raw_suffices: raw >= 1.0 || raw > question.first.support,
    }
}

fn write_labels(path: &PathBuf, measured: &[Measured]) -> Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    for question in measured {
        let of = |held: &[Held]| -> Vec<[f64; 2]> { held.iter().map(|held| [held.support, held.tokens]).collect() };
        let signals: serde_json::Map<_, _> = Signals::NAMES
            .iter()
            .zip(question.signals.values())
            .map(|(name, value)| ((*name).to_owned(), value.into()))
            .collect();
        let label = label(question);
        let line = json!({"id": question.id, "conversation": question.conversation, "signals": signals,
            "c_s": label.summaries_suffice, "c_r": label.raw_suffices,
            "first": of(&[question.first])[0], "raw": of(&question.raw), "both": of(&question.both)});
        writeln!(file, "{line}")?;
    }
    Ok(())
}

/// The time of one decision, in nanoseconds.
fn decision_nanos(measured: &[Measured]) -> u64 {
    let router = LinearRouter::default();
    let of = |question: &Measured| {
        let started = std::time::Instant::now();
        std::hint::black_box(router.decide("", &[], &question.signals).is_ok());
        started.elapsed().as_nanos() as u64
    };
    median(measured.iter().map(of).collect())
}
